"""``keju compare`` and ``keju diff`` over stored runs, logs and files of predictions."""

from __future__ import annotations

import gzip
import json
import math
import re
import shutil
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from scipy import stats  # type: ignore[import-untyped]

from keju import compare
from keju.models.scripted import ScriptedModel
from keju.runs.journal import FILE
from keju.types import Request
from tests.cli.conftest import Keju
from tests.support.compared_runs import LOGS, Evaluate

pytestmark = pytest.mark.slow


def scores_of(keju: Keju, run: str) -> dict[str, float]:
    """The scores of a run as its export has them."""
    lines = keju("export", run, "--format", "jsonl").out.splitlines()
    rows = [json.loads(line) for line in lines]
    return {row["id"]: row["score"] for row in rows}


def test_a_tie_and_its_columns_are_told_so_that_they_can_be_followed(
    keju: Keju, evaluate_run: Evaluate
) -> None:
    """What these questions cannot show, how many show what is seen; a column's meaning once."""
    evaluate_run("one", "1", exams=("demo", "bbh"))
    evaluate_run("two", "2", exams=("demo", "bbh"))
    ran = keju("compare", "one", "two", "--json").json
    (tie,) = [pair for pair in ran["comparisons"] if pair["exam"] == "demo"]
    assert tie["verdict"] == "tie"
    below = f"a difference of less than {100 * tie['detectable']:.1f} points would need more"
    assert (
        f"{below} questions to show, one of this size about {tie['needed']:,}" in tie["conclusion"]
    )
    out = keju("compare", "one", "two").out
    assert out.count("\ndetectable: the smallest difference in points") == 1
    zh = keju("compare", "one", "two", "--language", "zh").out
    assert zh.count("\n可检出：这么多题有望显示的最小差异") == 1
    audited = keju("audit", "one").out
    assert audited.count("\nalso: replies that are listed under another cause") == 1


def test_two_runs_are_paired_question_by_question(keju: Keju, evaluate_run: Evaluate) -> None:
    evaluate_run("one", "1")
    evaluate_run("two", "2")
    ran = keju("compare", "one", "two", "--json")
    assert ran.code == 0, ran.err
    (comparison,) = ran.json["comparisons"]
    first_scores, second_scores = scores_of(keju, "one"), scores_of(keju, "two")
    gained_ids = {name for name in first_scores if second_scores[name] > first_scores[name]}
    lost_ids = {name for name in first_scores if second_scores[name] < first_scores[name]}
    assert comparison["n"] == len(first_scores) == len(second_scores)
    assert comparison["difference"] == pytest.approx(
        (len(gained_ids) - len(lost_ids)) / len(first_scores)
    )
    assert comparison["p"] == pytest.approx(
        stats.binomtest(len(gained_ids), len(gained_ids | lost_ids)).pvalue
    )
    flips = {flip["id"]: flip for flip in comparison["flips"]}
    assert flips.keys() == gained_ids | lost_ids
    for flip in flips.values():
        right = flip["arm_answer"] if flip["id"] in gained_ids else flip["base_answer"]
        wrong = flip["base_answer"] if flip["id"] in gained_ids else flip["arm_answer"]
        assert right == flip["target"] != wrong
    output = keju("compare", "one", "two").out
    assert "two against one" in output
    assert output.splitlines()[-1] == comparison["conclusion"]


def test_the_table_of_pairs_names_the_reader_that_they_are_by(
    keju: Keju, evaluate_run: Evaluate
) -> None:
    """One pair has it above its table, several have a column; both where that is what differs."""
    for name, reader in (("one", "marker"), ("two", "marker"), ("three", "robust")):
        evaluate_run(name, name, "--reader", reader)
    assert "demo · two against one · reader marker\n" in keju("compare", "one", "two").out
    chinese_output = keju("compare", "one", "two", "--reader", "robust", "--language", "zh").out
    assert "demo · two 对 one · 答案提取器 robust\n" in chinese_output
    three_runs_output = keju("compare", "one", "two", "three").out
    head, _, *rows = three_runs_output.splitlines()[:5]
    place = re.split(" {2,}", head).index("reader")
    assert [re.split(" {2,}", row)[place] for row in rows] == ["marker", *["marker / robust"] * 2]
    keju("compare", "one", "two", "three", "--reader", "robust", "-o", "page.html")
    page = Path("page.html").read_text("utf-8")
    overview = page[page.index('id="overview"') :].partition("</table>")[0]
    assert overview.count('<td class="spare">robust</td>') == 3


def test_equal_runs_are_alike_and_close_ones_a_tie(keju: Keju, evaluate_run: Evaluate) -> None:
    evaluate_run("one", "1")
    evaluate_run("same", "1")
    evaluate_run("two", "2")
    (comparison,) = keju("compare", "one", "same", "--json").json["comparisons"]
    assert (comparison["verdict"], comparison["arm_only"], comparison["base_only"]) == ("tie", 0, 0)
    assert "score the same on every one" in comparison["conclusion"]
    (comparison,) = keju("compare", "one", "two", "--json").json["comparisons"]
    low, high = comparison["ci95"]
    assert low < 0 < high
    assert comparison["verdict"] == "tie"
    assert "not ranked" in keju("compare", "one", "two").out
    (itself,) = keju("compare", "one", "one", "--json").json["comparisons"]
    assert itself["difference"] == 0


def test_a_clear_difference_is_ranked_with_what_it_needs(
    keju: Keju, evaluate_run: Evaluate
) -> None:
    evaluate_run("wrong", form="So the answer is (Z)")
    evaluate_run("one", "1")
    (comparison,) = keju("compare", "wrong", "one", "--json").json["comparisons"]
    assert comparison["verdict"] == "above"
    assert comparison["needed"] < comparison["n"]
    assert f"about {comparison['needed']:,} questions" in comparison["conclusion"]
    (comparison,) = keju("compare", "one", "wrong", "--json").json["comparisons"]
    assert comparison["verdict"] == "below"


def test_three_runs_are_compared_in_pairs_with_holm(keju: Keju, evaluate_run: Evaluate) -> None:
    for name, form in (("a", "So the answer is ({})"), ("b", "So the answer is (Z)"), ("c", "?")):
        evaluate_run(name, "1", form=form)
    pairs = keju("compare", "a", "b", "c", "--json").json["comparisons"]
    assert [(pair["base"], pair["arm"]) for pair in pairs] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert pairs[0]["p_holm"] == pytest.approx(3 * pairs[0]["p"])
    assert pairs[2]["p_holm"] == 1


@pytest.mark.parametrize(
    ("flags", "field", "first_value", "second_value"),
    [
        (("--seed", "7"), "seed", 42, 7),
        (("--dataset-args", '{"demo": {"size": 9}}'), "size", 20, 9),
        (("--protocol", "letters"), "protocol", "text", "letters"),
    ],
)
def test_unlike_runs_are_named_and_not_ranked(
    keju: Keju,
    evaluate_run: Evaluate,
    flags: tuple[str, ...],
    field: str,
    first_value: Any,
    second_value: Any,
) -> None:
    evaluate_run("one", "1")
    evaluate_run("two", "2", *flags)
    ran = keju("compare", "one", "two", "--json")
    assert ran.code == 3
    (comparison,) = ran.json["comparisons"]
    weightiest = comparison["unlike"][0]
    assert [weightiest[key] for key in ("field", "first", "second")] == [
        field,
        first_value,
        second_value,
    ]
    assert (comparison["verdict"], comparison["comparable"]) == ("not comparable", False)
    assert comparison["difference"] is comparison["p"] is comparison["ci95"] is None
    assert comparison["base_rate"] is not None
    assert comparison["arm_rate"] is not None
    ran = keju("compare", "one", "two")
    assert ran.code == 3
    assert f"not ranked: {field} is" in ran.err
    differing = keju("diff", "one", "two", "--json")
    assert differing.code == 0
    assert not differing.json["comparable"]
    assert differing.json["exams"][0]["unlike"][0]["field"] == field
    assert field in keju("diff", "one", "two").out


def test_what_differs_is_headed_by_the_runs_and_told_in_the_language_of_the_terminal(
    keju: Keju, evaluate_run: Evaluate
) -> None:
    evaluate_run("second", "1")
    evaluate_run("later", "1", exams=("bbh",))
    head = keju("diff", "second", "later").out.splitlines()[1]
    assert head.split() == ["field", "second", "later", "comparable"]
    chinese = keju("diff", "second", "later", "--language", "zh").out
    rows = [re.split(r"\s{2,}", line) for line in chinese.splitlines()[3:] if line]
    values_by_label = {row[0]: row[1:3] for row in rows}
    assert values_by_label["考试"] == ["demo", "bbh"]
    assert values_by_label["随机种子 seed"] == ["42", "无"]
    assert {
        "协议",
        "协议版本",
        "规模 size",
        "答案提取器",
        "答案提取器版本",
        "题数",
    } <= values_by_label.keys()
    assert not [name for name in values_by_label if name.isascii()]
    assert not {"none", "true", "false"} & {value for row in rows for value in row}
    ran = keju("compare", "second", "later", "--language", "zh")
    assert "“考试”在 second 中为 demo，在 later 中为 bbh" in ran.out
    assert "并非都考了" not in ran.out


def test_an_exam_beside_those_that_are_compared_is_told_once(
    keju: Keju, evaluate_run: Evaluate
) -> None:
    evaluate_run("one", "1", exams=("demo", "bbh"))
    evaluate_run("two", "2")
    output = keju("compare", "one", "two").out
    assert output.count("do not both include all of bbh") == 1


def test_a_reader_for_all_makes_runs_comparable(keju: Keju, evaluate_run: Evaluate) -> None:
    evaluate_run("one", "1", exams=("bbh",))
    evaluate_run("two", "2", "--reader", "robust", exams=("bbh",))
    ran = keju("compare", "one", "two", "--json")
    assert ran.code == 3
    assert ran.json["comparisons"][0]["unlike"][0]["field"] == "reader"
    assert ran.json["comparisons"][0]["warnings"] == ["--reader evalscope reads all of them alike"]
    ran = keju("compare", "one", "two", "--reader", "robust", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["comparisons"][0]["reader"] == "robust"
    assert "has no reader 'rob'" in keju("compare", "one", "two", "--reader", "rob").err


def test_other_settings_are_told_and_compared(keju: Keju, evaluate_run: Evaluate) -> None:
    evaluate_run("one", "1")
    evaluate_run("two", "2", "--generation-config", '{"temperature": 0.7}')
    ran = keju("compare", "one", "two")
    assert ran.code == 0, ran.err
    assert "temperature (0.0, 0.7)" in ran.out


def note_facts(run: str, **facts: object) -> None:
    """Enter facts of a model into a stored run, as a local model tells them."""
    path = Path("runs", run, "manifest.json")
    manifest = json.loads(path.read_text("utf-8"))
    manifest["endpoint"] |= facts
    path.write_text(json.dumps(manifest), "utf-8")


def test_facts_of_a_model_are_told_in_words(keju: Keju, evaluate_run: Evaluate) -> None:
    """Hashes and names of keys say nothing to people; programs find them in ``unlike``."""
    evaluate_run("one", "1")
    evaluate_run("two", "2")
    note_facts("one", sha256="a" * 64, chat_template_hash="b" * 16, dtype="float32")
    note_facts("two", sha256="c" * 64, chat_template_hash="d" * 16, dtype="bfloat16")
    (line,) = [
        row for row in keju("compare", "one", "two").out.splitlines() if "also differ" in row
    ]
    assert line == (
        "warning: they also differ in the weights, the chat template, dtype (float32, bfloat16)"
    )
    out = keju("compare", "one", "two", "--language", "zh").out
    assert "权重、对话模板、数值类型 dtype（float32，bfloat16）" in out
    (comparison,) = keju("compare", "one", "two", "--json").json["comparisons"]
    assert {"a" * 64, "c" * 64} <= {mismatch["first"] for mismatch in comparison["unlike"]} | {
        mismatch["second"] for mismatch in comparison["unlike"]
    }
    assert "the weights" in keju("diff", "one", "two").out
    assert "a" * 20 not in keju("diff", "one", "two").out
    note_facts("two", sha256="a" * 64, chat_template_hash=None, dtype="float32")
    assert "only one of them says: the chat template" in keju("compare", "one", "two").out


def test_other_data_is_named_by_its_file(keju: Keju, evaluate_run: Evaluate) -> None:
    evaluate_run("one", exams=("bbh",))
    evaluate_run("two", exams=("bbh",))
    path = Path("runs/two/manifest.json")
    manifest = json.loads(path.read_text("utf-8"))
    files = manifest["benchmarks"][0]["data"]["files"]
    name = next(name for name in files if "boolean_expressions" in name)
    files[name] = "0" * 64
    path.write_text(json.dumps(manifest), "utf-8")
    data = ("--data-dir", str(LOGS / "data"))
    ran = keju("compare", "one", "two", *data)
    message = f"one and two differ in the data file {name}"
    assert (ran.code, message in ran.err) == (3, True), ran.err
    ran = keju("gate", "two", "--baseline", "one", "--margin", "0.05", *data)
    assert f"not comparable: they differ in the data file {name}" in ran.err


def test_nothing_is_said_twice_of_several_pairs(keju: Keju, evaluate_run: Evaluate) -> None:
    for name in ("one", "two", "three"):
        evaluate_run(name, name, form="So it is ({})" if name == "one" else "So the answer is ({})")
    lines = keju("compare", "one", "two", "three").out.splitlines()
    warnings = [line for line in lines if line.startswith("warning") or "not ranked" in line]
    assert len(warnings) == len(set(warnings))
    assert sum("hold no answer" in line for line in lines) == 3, "one for each run, not each pair"
    evaluate_run("four", "four")
    lines = keju("compare", "two", "three", "four").out.splitlines()
    assert sum("not ranked" in line for line in lines if not line.startswith("demo")) == 1
    assert "two is compared with itself" in keju("compare", "two", "two").out


def test_runs_that_overlap_are_compared_where_they_do(keju: Keju, evaluate_run: Evaluate) -> None:
    evaluate_run("one", "1", "--limit", "3")
    evaluate_run("two", "2", "--limit", "5")
    (comparison,) = keju("compare", "one", "two", "--json").json["comparisons"]
    kinds = len(comparison["subsets"])
    assert (comparison["n"], comparison["only_in_arm"]) == (3 * kinds, 2 * kinds)
    assert "only_in_base" not in comparison


def test_nothing_shared_and_one_question_show_nothing(keju: Keju, evaluate_run: Evaluate) -> None:
    evaluate_run("whole", "1")
    names = list(scores_of(keju, "whole"))
    evaluate_run("first", "1", "--ids", names[0])
    evaluate_run("second", "2", "--ids", names[1])
    (comparison,) = keju("compare", "first", "second", "--json").json["comparisons"]
    assert (comparison["n"], comparison["verdict"]) == (0, "nothing")
    ran = keju("compare", "first", "second")
    assert ran.code == 3
    assert "share no question" in ran.err
    assert ran.err.count("\n") == 1
    (comparison,) = keju("compare", "whole", "second", "--json").json["comparisons"]
    assert (comparison["n"], comparison["ci95"], comparison["verdict"]) == (1, None, "tie")
    assert "one question shows nothing" in comparison["conclusion"]


def test_repeats_are_averaged_first(keju: Keju, evaluate_run: Evaluate) -> None:
    evaluate_run("one", "1", "--repeats", "3", "--generation-config", '{"temperature": 1}')
    evaluate_run("two", "2")
    ran = keju("compare", "one", "two", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["comparisons"][0]["n"] == len(scores_of(keju, "two"))


def test_a_killed_run_is_compared_on_what_it_has(keju: Keju, evaluate_run: Evaluate) -> None:
    evaluate_run("one", "1")
    evaluate_run("two", "2")
    journal = Path("runs", "two", FILE)
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:10]) + lines[10][:20])
    (comparison,) = keju("compare", "one", "two", "--json").json["comparisons"]
    assert (comparison["n"], comparison["only_in_base"]) == (10, len(lines) - 10)


def test_the_arms_of_one_run_are_compared(keju: Keju, evaluate_run: Evaluate) -> None:
    evaluate_run("arms", "1", "--arms", '[{"name": "plain"}, {"name": "other"}]')
    (comparison,) = keju("compare", "arms", "--json").json["comparisons"]
    assert (comparison["base"], comparison["arm"]) == ("plain", "other")
    evaluate_run("more", "2", "--arms", '[{"name": "plain"}, {"name": "other"}]')
    pairs = keju("compare", "arms", "more", "--json").json["comparisons"]
    assert [pair["arm"] for pair in pairs] == ["more · plain", "more · other"]
    evaluate_run("one")
    assert "has no arms to compare" in keju("compare", "one").err


def test_two_exams_are_two_comparisons(keju: Keju, evaluate_run: Evaluate) -> None:
    evaluate_run("one", "1", exams=("demo", "bbh"))
    evaluate_run("two", "2", exams=("demo", "bbh"))
    ran = keju("compare", "one", "two", "--json")
    assert [pair["exam"] for pair in ran.json["comparisons"]] == ["demo", "bbh"]
    ran = keju("compare", "one", "two", "--datasets", "bbh", "--json")
    assert [pair["exam"] for pair in ran.json["comparisons"]] == ["bbh"]


def test_a_log_of_another_tool_is_read_directly(keju: Keju, evaluate_run: Evaluate) -> None:
    log, data = str(LOGS / "evalscope"), str(LOGS / "data")
    ran = keju("compare", log, log, "--data-dir", data, "--json")
    assert ran.code == 0, ran.err
    assert len(ran.json["comparisons"]) > 1
    assert all(pair["difference"] == 0 for pair in ran.json["comparisons"])
    evaluate_run("one", exams=("bbh",))
    ran = keju("compare", "one", log, "--data-dir", data, "--datasets", "bbh", "--json")
    assert ran.code == 0, ran.err
    (comparison,) = ran.json["comparisons"]
    assert comparison["n"] == 12
    assert any("not fully known" in line for line in comparison["warnings"])
    ran = keju("compare", log, str(LOGS / "inspect" / "bbh.eval"), "--data-dir", data, "--json")
    assert ran.code == 3
    evaluate_run("other")
    ran = keju("compare", "other", log, "--data-dir", data, "--json")
    assert ran.code == 3
    assert ran.json["comparisons"][0]["unlike"][0]["field"] == "exam"
    assert not Path("runs", "log").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("absent", "one"), "no run 'absent'"),
        (("one", "empty.jsonl", "--datasets", "demo"), "holds no predictions"),
        (("one", "empty.jsonl"), "--datasets"),
        (("one", "two.jsonl", "--datasets", "dmo"), "demo"),
        (("one", "strange.jsonl", "--datasets", "demo"), "has no question 'x'"),
        (("one", "broken.jsonl", "--datasets", "demo"), "broken.jsonl, line 1"),
        ((), " is missing; for example: keju compare "),
        (("one",), "no arms"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_one_line(
    keju: Keju, evaluate_run: Evaluate, words: tuple[str, ...], message: str
) -> None:
    evaluate_run("one")
    Path("empty.jsonl").write_text("")
    Path("two.jsonl").write_text('{"id": "x", "output": "A"}\n')
    Path("strange.jsonl").write_text('{"id": "x", "output": "A"}\n')
    Path("broken.jsonl").write_text("{\n")
    ran = keju("compare", *words)
    assert ran.code == 2, ran
    assert message in ran.err
    assert ran.err.count("\n") == 1


def test_predictions_are_compared_with_a_run(keju: Keju, evaluate_run: Evaluate) -> None:
    evaluate_run("one", "1")
    names = list(scores_of(keju, "one"))
    lines = [json.dumps({"id": name, "output": "So the answer is (A)"}) for name in names]
    Path("p.jsonl").write_text("\n".join(lines))
    ran = keju("compare", "one", "p.jsonl", "--datasets", "demo", "--json")
    assert ran.code == 0, ran.err
    (comparison,) = ran.json["comparisons"]
    assert comparison["n"] == len(names)
    assert "tokens" not in comparison
    assert any("not fully known" in line for line in comparison["warnings"])


def test_settings_of_predictions_are_taken_or_refused(keju: Keju, evaluate_run: Evaluate) -> None:
    evaluate_run("one", "1", "--dataset-args", '{"demo": {"size": 9}}')
    names = list(scores_of(keju, "one"))
    lines = [json.dumps({"id": name, "output": "So the answer is (A)"}) for name in names]
    Path("some_predictions.jsonl").write_text("\n".join(lines))
    words = ("compare", "one", "some_predictions.jsonl", "--datasets", "demo")
    ran = keju(*words, "--dataset-args", '{"demo": {"size": 9}}', "--json")
    assert ran.code == 0, ran.err
    assert ran.json["comparisons"][0]["arm"] == "some"
    for flag, value in (("--gold", "current"), ("--protocol", "text")):
        ran = keju("compare", "one", "one", "--datasets", "demo", flag, value)
        assert ran.code == 2
        assert f"{flag} says how predictions are read" in ran.err
    ran = keju("diff", "one", "one", "--dataset-args", '{"demo": {"size": 9}}')
    assert "needs --datasets" in ran.err


def test_one_exam_of_several_has_a_reader_that_the_others_lack(
    keju: Keju, evaluate_run: Evaluate
) -> None:
    for name in ("one", "two"):
        evaluate_run(name, name, exams=("demo", "bbh"))
    ran = keju("compare", "one", "two", "--datasets", "bbh", "--reader", "paper", "--json")
    assert ran.code == 0, ran.err
    assert [pair["reader"] for pair in ran.json["comparisons"]] == ["paper"]
    evaluate_run("alone")
    ran = keju("gate", "alone", "--at-least", "0.1", "--datasets", "bbh", "--reader", "paper")
    assert "alone does not include bbh" in ran.err


def test_questions_without_labels_say_nothing(keju: Keju, evaluate_run: Evaluate) -> None:
    args = '{"ceval": {"split": "test", "subset_list": ["law"]}}'
    for name in ("one", "two"):
        evaluate_run(name, name, "--dataset-args", args, "--limit", "3", exams=("ceval",))
    ran = keju("compare", "one", "two", "--json")
    (comparison,) = ran.json["comparisons"]
    assert (comparison["n"], comparison["verdict"]) == (0, "nothing")
    assert comparison["left_out_why"] == {"unlabelled": 1}
    assert "bounds" not in comparison


def test_errors_leave_the_pair_and_bound_the_difference(keju: Keju, evaluate_run: Evaluate) -> None:
    evaluate_run("one", "1")
    evaluate_run("two", "2")
    journal = Path("runs", "two", FILE)
    lines = journal.read_text("utf-8").splitlines()
    for place, line in enumerate(lines[:4]):
        record = json.loads(line)
        del record["crc"]
        record["reply"] = {"error": {"kind": "context_length", "message": "too long"}}
        lines[place] = json.dumps(record)
    journal.write_text("".join(line + "\n" for line in lines), "utf-8")
    (comparison,) = keju("compare", "one", "two", "--json").json["comparisons"]
    assert (comparison["left_out"], comparison["left_out_why"]) == (4, {"error": 4})
    low, high = comparison["bounds"]
    assert high - low == pytest.approx(4 / len(lines))
    assert "error 4" in keju("compare", "one", "two").out


def read(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def test_recorded_models_give_what_an_independent_computation_gives(
    keju: Keju, data_dir: Path
) -> None:
    """Table, interval, p and categories from the recorded letters, with scipy as the oracle."""
    golden = data_dir / "golden" / "mmlu_pro"
    files = sorted(golden.glob("*_predictions.jsonl.gz"))
    if len(files) < 2:
        pytest.skip("needs two recorded models")
    questions = {row["question_id"]: row for row in read(data_dir / "mmlu_pro" / "test.jsonl.gz")}
    right = []
    for path in files[:2]:  # `l1` as its publication has it
        matches = {
            row["question_id"]: re.search(r"answer is \(?([A-J])\)?", row["output"])
            for row in read(path)
        }
        scores_by_id = {
            q: m is not None and m[1] == questions[q]["answer"] for q, m in matches.items()
        }
        right.append(scores_by_id)
    shared = right[0].keys() & right[1].keys()
    table = Counter((right[1][q], right[0][q]) for q in shared)
    b, c, n = table[True, False], table[False, True], len(shared)
    names = [str(path) for path in files[:2]]
    ran = keju(
        "compare", *names, "--datasets", "mmlu_pro", "--reader", "l1", "--gold", "current",
        "--data-dir", str(data_dir), "--json",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    (pair,) = ran.json["comparisons"]
    counts = [pair[key] for key in ("n", "both", "arm_only", "base_only", "neither")]
    assert counts == [n, table[True, True], b, c, table[False, False]]
    assert pair["difference"] == pytest.approx((b - c) / n)
    assert pair["p"] == pytest.approx(stats.binomtest(b, b + c).pvalue, rel=1e-6)
    arm_share, base_share = (b + 1) / (n + 2), (c + 1) / (n + 2)
    half = stats.norm.ppf(0.975) * math.sqrt(
        (arm_share + base_share - (arm_share - base_share) ** 2) / (n + 2)
    )
    assert pair["ci95"] == pytest.approx(
        [arm_share - base_share - half, arm_share - base_share + half], rel=1e-6
    )
    assert len(pair["flips"]) == b + c
    categories: dict[str, Counter[tuple[bool, bool]]] = defaultdict(Counter)
    for q in shared:
        categories[questions[q]["category"]][right[1][q], right[0][q]] += 1
    rows = {row["name"]: row for row in pair["subsets"]}
    assert rows.keys() == categories.keys()
    ps = {
        name: stats.binomtest(
            outcome_counts[True, False], outcome_counts[True, False] + outcome_counts[False, True]
        ).pvalue
        for name, outcome_counts in categories.items()
    }
    adjusted = dict(zip(ps, stats.false_discovery_control(list(ps.values())), strict=True))
    reach = stats.norm.ppf(0.975) + stats.norm.ppf(0.8)
    for name, outcome_counts in categories.items():
        row, size = rows[name], outcome_counts.total()
        won, lost_count = outcome_counts[True, False], outcome_counts[False, True]
        assert (row["n"], row["arm_only"], row["base_only"]) == (size, won, lost_count)
        assert row["difference"] == pytest.approx((won - lost_count) / size)
        assert row["p"] == pytest.approx(stats.binomtest(won, won + lost_count).pvalue, rel=1e-6)
        assert row["p_adjusted"] == pytest.approx(adjusted[name], rel=1e-6)
        assert row["p_adjusted"] >= row["p"]
        detectable = reach * math.sqrt((won + lost_count) / size / (size + reach**2))
        assert row["detectable"] == pytest.approx(detectable, rel=1e-6)
    python = compare(*names, datasets="mmlu_pro", reader="l1", data_dir=str(data_dir))
    assert python.comparisons[0].p == pair["p"]


def test_the_same_name_in_two_folders_is_told_apart(keju: Keju, evaluate_run: Evaluate) -> None:
    evaluate_run("one", "1")
    shutil.copytree("runs", "elsewhere")
    (comparison,) = keju("compare", "runs/one", "elsewhere/one", "--json").json["comparisons"]
    assert (comparison["base"], comparison["arm"]) == ("runs/one", "elsewhere/one")


def test_where_interval_and_p_disagree_it_is_said_which_one_decides(
    keju: Keju, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 120 questions 14 are gained and 27 lost: the interval leaves out 0, the test does not."""
    row = {"choices": ["yes", "no"], "answer": "A"}
    rows = [{"question": f"Number {n}?", **row} for n in range(120)]
    Path("own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name, right in (("base", range(32)), ("other", range(27, 46)), ("like", range(31))):

        def answer(request: Request, right: range = right) -> str:
            numbers = re.findall(r"Number (\d+)", request.prompt.tail)
            return f"The answer is ({'A' if int(numbers[-1]) in right else 'B'})"

        model = ScriptedModel(script=answer)
        monkeypatch.setattr("keju.task.make_model", lambda _, model=model: model)
        eval_flags = ("-q", "--no-report", "--run-id", name)
        ran = keju("eval", "-m", "scripted", "--datasets", "./own.jsonl", *eval_flags)
        assert ran.code == 0, ran.err
    for language, sentence in (("en", "p decides here"), ("zh", "此处以 p 为准")):
        ran = keju("--language", language, "compare", "base", "other", "-o", "c.html")
        assert "-21.02 … -0.29" in ran.out
        assert "0.0596" in ran.out
        assert ran.out.count(sentence) == 1
        assert sentence in Path("c.html").read_text("utf-8")
        assert sentence not in keju("--language", language, "compare", "base", "like").out
    page = Path("c.html").read_text("utf-8")
    assert "41 of the 41 questions that differ (14 gained, 27 lost) are shown" in page
    gated = keju("gate", "other", "--baseline", "base", "--margin", "0.05", "--markdown", "g.md")
    assert "own has 120 questions, fewer than would decide, and there are no more" in gated.out
    steps = gated.out.partition("next:")[2].split("\n")
    assert [line.split("#")[0].strip() for line in steps if line] == ["keju compare base other"]
    for text in (gated.out, Path("g.md").read_text("utf-8")):
        assert "keju compare tests whether the two differ" in text
    assert "another question" not in keju("gate", "other", "--at-least", "0.05").out
