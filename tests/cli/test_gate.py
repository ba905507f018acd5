"""``keju gate``: verdicts, exit codes, and what is written for servers and people."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from keju import gate
from tests.cli.conftest import Keju
from tests.runs01.cases import HERE
from tests.support.compared_runs import Evaluate
from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import Plan

pytestmark = pytest.mark.slow


def test_a_copy_passes_a_worse_run_fails_and_few_questions_decide_nothing(
    keju: Keju, evaluate_run: Evaluate
) -> None:
    evaluate_run("base", "1")
    evaluate_run("same", "1")
    evaluate_run("wrong", form="So the answer is (Z)")
    evaluate_run("few", "1", "--limit", "1")
    files = ("--junit", "g.xml", "--markdown", "g.md", "--badge", "g.svg")
    for run, code, verdict in (
        ("same", 0, "pass"),
        ("wrong", 1, "fail"),
        ("few", 3, "inconclusive"),
    ):
        ran = keju("gate", run, "--baseline", "base", "--margin", "0.05", "--json", *files)
        assert (ran.code, ran.json["verdict"]) == (code, verdict), ran
        (row,) = ran.json["gates"]
        assert row["conclusion"] in keju("gate", run, "--baseline", "base", "--margin", "0.05").out
        suite = ET.parse("g.xml").getroot()
        assert suite.get("tests") == "1"
        assert (suite.get("failures"), suite.get("errors")) == (
            str(int(code == 1)),
            str(int(code == 3)),
        )
        assert verdict in Path("g.md").read_text("utf-8")
        assert ET.fromstring(Path("g.svg").read_text("utf-8")).get("aria-label") == (
            f"keju gate: {verdict}"
        )
    assert gate("same", baseline="base", margin=0.05).verdict == "pass"


def test_the_next_command_is_told_and_works(keju: Keju, evaluate_run: Evaluate) -> None:
    evaluate_run("base", "1")
    evaluate_run("few", "1", "--limit", "1")
    ran = keju("gate", "few", "--baseline", "base", "--margin", "0.05")
    lines = ran.out.splitlines()
    next_commands = [shlex.split(line, comments=True) for line in lines[lines.index("next:") + 1 :]]
    grow = ["keju", "eval", "--config", "runs/few/manifest.json", "--resume", "--limit", "10"]
    assert next_commands[:2] == [grow, ["keju", "compare", "base", "few"]]
    assert [keju(*command[1:]).code for command in next_commands] == [0, 0, 0]
    alone = keju("gate", "few", "--at-least", "0.5").out
    assert "keju audit few" in alone


def test_runs_that_do_not_differ_are_told_how_many_questions_decide(
    keju: Keju, evaluate_run: Evaluate
) -> None:
    """So many that pass, and no fewer: 0.95^59 is below 0.05, 0.95^58 is above."""
    evaluate_run("base", "1")
    evaluate_run("few", "1", "--limit", "1")
    (row,) = keju("gate", "few", "--baseline", "base", "--margin", "0.05", "--json").json["gates"]
    assert (row["n"], row["needed"]) == (6, 59)
    assert "about 59 questions would decide" in row["conclusion"]
    for n, code in ((58, 3), (59, 0)):
        evaluate_run(f"of-{n}", "1", "--total", str(n))
        ran = keju("gate", f"of-{n}", "--baseline", "base", "--margin", "0.05")
        assert ran.code == code, ran.out


def test_a_run_that_is_its_own_baseline_is_said_to_be(keju: Keju, evaluate_run: Evaluate) -> None:
    evaluate_run("one", "1")
    ran = keju("gate", "runs/one", "--baseline", "one", "--margin", "0.05")
    assert "warning: one is its own baseline" in " ".join(ran.out.split())
    ran = keju("gate", "runs/one", "--baseline", "one", "--margin", "0.01", "--json")
    assert [notice["code"] for notice in ran.json["notices"]] == ["gate_itself", "compare_unread"]
    assert ran.json["next"] == []


def test_a_score_is_gated_alone(keju: Keju, evaluate_run: Evaluate) -> None:
    evaluate_run("one", "1")
    (entry,) = keju("score", "one", "--json").json["benchmarks"]
    score = entry["metrics"]["accuracy"]["value"]
    for least_score, code in ((score / 3, 0), (0.99, 1), (score - 0.01, 3)):
        ran = keju("gate", "one", "--at-least", f"{least_score:.4f}", "--json")
        assert ran.code == code, ran
        assert ran.json["gates"][0]["score"] == pytest.approx(score)
    assert ran.json["gates"][0]["needed"] > entry["n"]
    assert (
        f"about {ran.json['gates'][0]['needed']:,} questions" in ran.json["gates"][0]["conclusion"]
    )


def interrupted(name: str, kept_share: float) -> None:
    """Keep only the first replies of a run, as an interrupt would."""
    folder = Path("runs", name)
    lines = (folder / "records.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "records.jsonl").write_bytes(b"".join(lines[: int(kept_share * len(lines))]))
    (folder / "results.json").unlink()


def test_a_part_that_is_no_lot_decides_nothing_and_a_gap_is_told(
    keju: Keju, evaluate_run: Evaluate
) -> None:
    evaluate_run("base", "1")
    for name, kept_share, code in (("half", 0.5, 3), ("most", 0.95, 0)):
        evaluate_run(name, "1")
        interrupted(name, kept_share)
        for rule in (("--baseline", "base", "--margin", "0.1"), ("--at-least", "0.01")):
            ran = keju("gate", name, *rule, "--json")
            assert ran.code == code, ran
            assert "compare_unfinished" in {notice["code"] for notice in ran.json["notices"]}
            assert ("decide nothing" in ran.json["gates"][0]["conclusion"]) == (name == "half")
    turned = keju("gate", "base", "--baseline", "half", "--margin", "0.1", "--json")
    assert (turned.code, turned.json["gates"][0]["left_out"] > 0) == (3, True)
    warnings = keju("compare", "base", "half", "--json").json["comparisons"][0]["warnings"]
    assert any("is not finished" in text for text in warnings)


def test_a_run_that_a_rule_has_stopped_is_gated_and_warned_about(
    keju: Keju, evaluate_run: Evaluate
) -> None:
    evaluate_run("base", "1")
    evaluate_run("early", "1", "--until-ci", "0.2")
    (entry,) = keju("score", "early", "--json").json["benchmarks"]
    assert entry["stopping"]["met"]
    assert entry["n"] < keju("score", "base", "--json").json["benchmarks"][0]["n"]
    ran = keju("gate", "early", "--at-least", "0.01", "--json")
    assert (ran.code, ran.json["gates"][0]["left_out"]) == (0, 0)
    codes = [notice["code"] for notice in ran.json["notices"]]
    assert codes == ["compare_stopped", "compare_unread"]
    notices = keju("compare", "base", "early", "--json").json["comparisons"][0]["notices"]
    assert "compare_stopped" in {notice["code"] for notice in notices}


def test_several_exams_are_gated_with_holm_and_the_worst_verdict_wins(
    keju: Keju, evaluate_run: Evaluate
) -> None:
    evaluate_run("base", "1", exams=("demo", "bbh"))
    evaluate_run("copy", "1", exams=("demo", "bbh"))
    ran = keju("gate", "copy", "--baseline", "base", "--margin", "0.05", "--json")
    demo, bbh = ran.json["gates"]
    assert ran.code == 3
    assert (demo["verdict"], bbh["verdict"]) == ("pass", "inconclusive")
    assert demo["p_holm"] == pytest.approx(2 * demo["p"])
    evaluate_run("half", "1")
    ran = keju("gate", "half", "--baseline", "base", "--margin", "0.05")
    assert (ran.code, "does not include bbh" in ran.err) == (2, True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("one",), "nothing to decide"),
        (("one", "--baseline", "one"), "belong together"),
        (("one", "--margin", "0.1"), "belong together"),
        (("one", "--baseline", "one", "--margin", "1"), "must be between 0 and 1"),
        (("one", "--at-least", "70"), "must be between 0 and 1"),
        (("one", "--at-least", "nan"), "must be between 0 and 1"),
        (("two", "--baseline", "one", "--margin", "0.1"), "not comparable: seed is 7"),
        (("one", "--baseline", "absent", "--margin", "0.1"), "no run 'absent'"),
    ],
)
def test_what_cannot_be_gated_is_refused(
    keju: Keju, evaluate_run: Evaluate, words: tuple[str, ...], message: str
) -> None:
    evaluate_run("one", "1", "--limit", "1")
    if words[0] == "two":
        evaluate_run("two", "1", "--limit", "1", "--seed", "7")
    ran = keju("gate", *words)
    assert (ran.code, message in ran.err) == (2, True), ran


@pytest.mark.parametrize(("language", "points"), [("en", " points"), ("zh", " 个百分点")])
def test_a_score_and_its_limit_are_told_in_one_form(
    keju: Keju, evaluate_run: Evaluate, language: str, points: str
) -> None:
    evaluate_run("base", "1")
    evaluate_run("wrong", form="So the answer is (Z)")
    ran = keju("gate", "wrong", "--at-least", "0.7", "--language", language)
    row = next(line for line in ran.out.splitlines() if "70.00" in line)
    amounts = re.findall(r"[\d.]+ %", row)
    assert (len(amounts), len(re.findall(r"\d\.\d\d", row))) == (5, 5), row
    score_line = ran.out.splitlines()[-3]
    assert len(re.findall(r"\d\.\d\d(?! %)", score_line)) == 0, score_line
    assert "70.00 %" in score_line
    ran = keju("gate", "wrong", "--baseline", "base", "--margin", "0.05", "--language", language)
    row = next(line for line in ran.out.splitlines() if "-5.00" in line)
    assert row.count(points) == 4, row
    score_line = next(line for line in ran.out.splitlines()[4:] if "-5.00" in line)
    assert f"-5.00{points}" in score_line
    assert len(re.findall(rf"[+-]\d+\.\d\d(?!{points})", score_line)) == 0, score_line


@pytest.mark.parametrize("flag", ["--limit", "--total"])
def test_a_score_that_is_undecided_is_told_how_the_run_grows(
    keju: Keju, evaluate_run: Evaluate, flag: str
) -> None:
    evaluate_run("c1", "1", flag, "4")
    levels = [str(percent / 100) for percent in range(2, 90, 2)]
    gates = {
        least_score: keju("gate", "c1", "--at-least", least_score, "--json")
        for least_score in levels
    }
    undecided = {least_score: ran for least_score, ran in gates.items() if ran.code == 3}
    least_score, ran = min(
        undecided.items(), key=lambda item: item[1].json["gates"][0]["needed"] or 999
    )
    row = ran.json["gates"][0]
    assert row["n"] < row["needed"] <= 120
    grow, audit = ran.json["next"]
    assert grow.startswith(f"keju eval --config runs/c1/manifest.json --resume {flag} ")
    assert audit == "keju audit c1"
    assert grow in keju("gate", "c1", "--at-least", least_score).out
    assert keju(*shlex.split(grow)[1:], "-q", "--no-report").code == 0
    assert (
        keju("gate", "c1", "--at-least", least_score, "--json").json["gates"][0]["n"]
        >= row["needed"]
    )


@pytest.mark.parametrize(("flag", "per_unit"), [("--limit", 1), ("--total", 6)])
@pytest.mark.parametrize(
    ("asked_units", "baseline", "grown"),
    [(1, None, ["few"]), (1, 2, ["few", "base"]), (1, 12, ["few"]), (12, 1, ["base"])],
)
def test_an_undecided_gate_against_a_baseline_is_told_how_the_runs_grow(
    keju: Keju,
    evaluate_run: Evaluate,
    flag: str,
    per_unit: int,
    asked_units: int,
    baseline: int | None,
    grown: list[str],
) -> None:
    evaluate_run("base", "1", *(() if baseline is None else (flag, str(baseline * per_unit))))
    evaluate_run("few", "1", flag, str(asked_units * per_unit))
    gate = ("gate", "few", "--baseline", "base", "--margin", "0.05")
    ran = keju(*gate, "--json")
    (row,) = ran.json["gates"]
    assert (ran.code, row["needed"]) == (3, 59)
    *grow, compare, _ = ran.json["next"]
    assert [command.split("/")[1] for command in grow] == grown
    assert all(f"manifest.json --resume {flag} " in command for command in grow)
    assert compare == "keju compare base few"
    output = " ".join(keju(*gate).out.split())
    assert all(command in output for command in grow)
    for command in grow:
        assert keju(*shlex.split(command)[1:], "-q", "--no-report").code == 0
    assert keju(*gate).code == 0


@pytest.mark.parametrize(
    ("flag", "per_unit", "grown"), [("--limit", 2, (30, 30)), ("--total", 12, (59, 177))]
)
def test_runs_that_share_some_subsets_grow_until_these_decide(
    keju: Keju, evaluate_run: Evaluate, flag: str, per_unit: int, grown: tuple[int, int]
) -> None:
    """Questions of a subset that only one of the runs asks decide nothing."""
    evaluate_run("all", "1", "--dataset-args", '{"demo": {"size": 40}}', flag, str(per_unit))
    two_subsets = '{"demo": {"size": 40, "subset_list": ["object_counting", "word_sorting"]}}'
    evaluate_run("some", "1", "--dataset-args", two_subsets, flag, "10")
    gate = ("gate", "some", "--baseline", "all", "--margin", "0.05", "--json")
    ran = keju(*gate)
    (row,) = ran.json["gates"]
    assert (ran.code, row["n"], row["needed"], row["whole"]) == (3, 4, 59, 80)
    own_command, base, *_ = ran.json["next"]
    for command, size in zip((own_command, base), grown, strict=True):
        assert command.endswith(f" --resume {flag} {size}")
        assert keju(*shlex.split(command)[1:], "-q", "--no-report").code == 0
    decided = keju(*gate)
    assert (decided.code, decided.json["gates"][0]["n"] >= 59) == (0, True), decided
    less = '{"demo": {"size": 40, "subset_list": ["object_counting", "dyck_languages"]}}'
    evaluate_run("less", "1", "--dataset-args", less, flag, "4")
    ran = keju("gate", "some", "--baseline", "less", "--margin", "0.05", "--json")
    (row,) = ran.json["gates"]
    assert (row["needed"] > row["whole"] == 40, "--resume" in str(ran.json["next"])) == (
        True,
        False,
    )


def test_runs_with_a_limit_in_their_exams_settings_grow_by_that_setting(
    keju: Keju, evaluate_run: Evaluate
) -> None:
    evaluate_run("base", "1", "--dataset-args", '{"demo": {"limit": 2}}')
    evaluate_run("few", "1", "--limit", "9", "--dataset-args", '{"demo": {"limit": 1}}')
    gate = ("gate", "few", "--baseline", "base", "--margin", "0.05")
    ran = keju(*gate, "--json")
    assert (ran.code, ran.json["gates"][0]["needed"]) == (3, 59)
    own_command, base, *_ = ran.json["next"]
    for command in (own_command, base):
        assert command.endswith(" --resume --dataset-args demo.limit=10")
        assert keju(*shlex.split(command)[1:], "-q", "--no-report").code == 0
    assert keju(*gate).code == 0


def test_runs_that_draw_otherwise_are_not_told_to_grow(keju: Keju, evaluate_run: Evaluate) -> None:
    evaluate_run("base", "1", "--limit", "2")
    for name, flags in (
        ("total", ("--total", "12")),
        ("drawn", ("--limit", "2", "--sample", "random")),
    ):
        evaluate_run(name, "1", *flags)
        ran = keju("gate", name, "--baseline", "base", "--margin", "0.05", "--json")
        assert (ran.code, ran.json["gates"][0]["needed"]) == (3, 59)
        assert [command.split()[1] for command in ran.json["next"]] == ["compare", "plan"]


def test_a_run_that_cannot_grow_is_not_told_to(keju: Keju, evaluate_run: Evaluate) -> None:
    evaluate_run("few", "1", "--limit", "8")
    assert keju("gate", "few", "--at-least", "0.3", "--json").json["gates"][0]["needed"] > 120
    ran = keju("gate", "few", "--at-least", "0.3", "--json")
    assert not any("--resume" in command for command in ran.json["next"]), ran.json


def test_a_run_that_is_not_finished_is_told_how_to_go_on(
    keju: Keju, evaluate_run: Evaluate
) -> None:
    evaluate_run("base", "1")
    evaluate_run("half", "1")
    interrupted("half", 0.5)
    go_on = "keju eval --config runs/half/manifest.json --resume"
    for rule in (("--at-least", "0.01"), ("--baseline", "base", "--margin", "0.1")):
        ran = keju("gate", "half", *rule, "--json")
        assert (ran.code, ran.json["next"][0]) == (3, go_on)
        assert "asks the questions that are not answered yet" in keju("gate", "half", *rule).out
    turned = keju("gate", "base", "--baseline", "half", "--margin", "0.1", "--json")
    assert turned.json["next"][0] == go_on
    assert keju(*shlex.split(go_on)[1:], "-q", "--no-report").code == 0
    finished = keju("gate", "half", *rule, "--json")
    assert (finished.code, finished.json["next"]) == (0, ["keju compare base half"])


def test_a_run_with_a_key_is_told_to_give_it_again(
    keju: Keju, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "sk-a-key-that-is-not-shown"
    with FaultyEndpoint(Plan(key=key, answers="The answer is A.")) as endpoint:
        model_flags = (
            "--model",
            "m",
            "--api-url",
            endpoint.url,
            "--datasets",
            "demo",
            "--run-id",
            "half",
        )
        flags = ("--api-key", key, "--budget", "requests=20", "--quiet", "--no-report")
        assert keju("eval", *model_flags, *flags).code == 4
    go_on = "keju eval --config runs/half/manifest.json --resume"
    ran = keju("gate", "half", "--at-least", "0.01", "--json")
    assert ran.json["next"][0] == f"{go_on} --api-key YOUR_KEY"
    assert f"{go_on} --api-key YOUR_KEY" in " ".join(keju("list", "runs").err.split())
    assert key not in ran.out + Path("runs/half/manifest.json").read_text()
    monkeypatch.setenv("OPENAI_API_KEY", key)
    assert keju("gate", "half", "--at-least", "0.01", "--json").json["next"][0] == go_on


def test_runs_with_other_seeds_grow_only_where_they_draw_the_same(
    keju: Keju, evaluate_run: Evaluate
) -> None:
    """Those that draw at random share few questions, which is said; the first ones are shared."""
    gate = ("--margin", "0.3", "--json")
    for seed in ("1", "2"):
        part = ("--limit", "4", "--seed", seed)
        evaluate_run(f"first{seed}", "1", *part, exams=("bbh",))
        evaluate_run(f"drawn{seed}", "1", *part, "--sample", "random", exams=("bbh",))
    first_gate = keju("gate", "first1", "--baseline", "first2", *gate)
    assert (first_gate.code, "--resume --limit" in first_gate.json["next"][0]) == (3, True), (
        first_gate
    )
    assert "gate_other_draw" not in {notice["code"] for notice in first_gate.json["notices"]}
    random_gate = keju("gate", "drawn1", "--baseline", "drawn2", *gate)
    (warning,) = [text for text in random_gate.json["warnings"] if "in different ways" in text]
    assert (random_gate.code, "(--seed 1 and --seed 2)" in warning) == (3, True)
    assert not any("--resume" in command for command in random_gate.json["next"])


def test_an_exam_without_more_questions_is_said_to_have_none(
    keju: Keju, evaluate_run: Evaluate
) -> None:
    for name, salt in (("base", "1"), ("other", "2")):
        evaluate_run(name, salt, exams=("bbh",))
    gate = ("gate", "other", "--baseline", "base", "--margin", "0.02")
    ran = keju(*gate, "--json")
    (row,) = ran.json["gates"]
    (no_more_notice,) = [
        notice for notice in ran.json["notices"] if notice["code"] == "gate_no_more_asked"
    ]
    assert (ran.code, row["needed"] > no_more_notice["values"]["whole"] == row["n"]) == (3, True)
    assert ran.json["next"] == ["keju compare base other"]
    assert f"bbh has {row['n']} questions in the subsets that these runs ask" in keju(*gate).out


def test_an_exam_that_is_generated_is_told_how_to_be_sat_with_more(
    keju: Keju, evaluate_run: Evaluate
) -> None:
    """By commands that work as they stand: both runs anew, and their gate."""
    evaluate_run("base", "1")
    evaluate_run("same", "1")
    ran = keju("gate", "same", "--baseline", "base", "--margin", "0.02", "--json")
    (row,) = ran.json["gates"]
    assert (ran.code, row["needed"]) == (3, 149)
    assert "gate_makes_more" in {notice["code"] for notice in ran.json["notices"]}
    own_command, base, gate, compare, plan = ran.json["next"]
    assert "--dataset-args demo.size=25 --run-id same-25" in own_command
    assert "--dataset-args demo.size=25 --run-id base-25" in base
    for command in (own_command, base):
        assert keju(*shlex.split(command)[1:], "-q", "--no-report").code == 0
    decided = keju(*shlex.split(gate)[1:], "--json")
    assert (decided.code, decided.json["gates"][0]["n"]) == (0, 150)
    assert compare == "keju compare base same"
    assert keju(*shlex.split(plan)[1:], "--json").json["questions"] == 149
    alone = keju("gate", "base", "--at-least", "0.3", "--json").json["next"]
    assert alone[1].startswith("keju gate base-")
    assert alone[1].endswith(" --at-least 0.3")


def test_a_part_of_an_exam_that_is_generated_and_several_are_sat_with_more(
    keju: Keju, evaluate_run: Evaluate
) -> None:
    """By commands that ask all the questions that are made."""
    for name, flags in (("base", ("--limit", "18")), ("same", ("--total", "100"))):
        evaluate_run(name, "1", *flags)
    ran = keju("gate", "same", "--baseline", "base", "--margin", "0.02", "--json")
    own_command, base, gate, *_ = ran.json["next"]
    assert "--dataset-args demo.size=25 --total 150 --run-id same-25" in own_command
    assert "--dataset-args demo.size=25 --limit 25 --run-id base-25" in base
    (warning,) = [text for text in ran.json["warnings"] if "demo.size" in text]
    assert "the number of questions of each subset" in warning
    for command in (own_command, base):
        assert keju(*shlex.split(command)[1:], "-q", "--no-report").code == 0
    assert keju(*shlex.split(gate)[1:], "--json").json["gates"][0]["n"] == 150
    size_args = ("--dataset-args", '{"fresh_bbh": {"n": 2}}')
    evaluate_run("two", "1", *size_args, exams=("demo", "fresh_bbh"))
    evaluate_run("two-base", "1", *size_args, exams=("demo", "fresh_bbh"))
    two_exams = keju("gate", "two", "--baseline", "two-base", "--margin", "0.02", "--json")
    own_command, base, gate, *_ = two_exams.json["next"]
    for command in (own_command, base):
        assert keju(*shlex.split(command)[1:], "-q", "--no-report").code == 0
    larger = keju(*shlex.split(gate)[1:], "--json").json
    for before, after in zip(two_exams.json["gates"], larger["gates"], strict=True):
        assert after["n"] >= before["needed"] > before["n"]


@pytest.mark.parametrize(
    ("exams", "flags", "limit_flag"),
    [
        (("demo",), ("--limit", "20"), "--limit 25"),
        (("demo",), ("--limit", "99"), "--limit 25"),
        (("demo",), ("--total", "120"), "--total 150"),
        (("demo", "bbh"), ("--limit", "20"), "--limit 25"),
    ],
)
def test_a_limit_that_lets_all_through_does_not_hold_back_what_is_made_beside(
    keju: Keju,
    evaluate_run: Evaluate,
    exams: tuple[str, ...],
    flags: tuple[str, ...],
    limit_flag: str,
) -> None:
    for name in ("base", "same"):
        evaluate_run(name, "1", *flags, exams=exams)
    gated = ("gate", "same", "--baseline", "base", "--margin", "0.02", "--json", "--datasets")
    ran = keju(*gated, "demo")
    (row,) = ran.json["gates"]
    assert (ran.code, row["n"], row["needed"]) == (3, 120, 149)
    own_command, base, gate, *_ = ran.json["next"]
    for command in (own_command, base):
        assert f"--dataset-args demo.size=25 {limit_flag} --run-id " in command
        assert keju(*shlex.split(command)[1:], "-q", "--no-report").code == 0
    decided = keju(*shlex.split(gate)[1:], "--json", "--datasets", "demo")
    assert (decided.code, decided.json["gates"][0]["n"]) == (0, 150)


def test_the_plan_that_a_gate_names_has_the_number_of_the_gate(
    keju: Keju, evaluate_run: Evaluate
) -> None:
    """And its sentence, for the two runs at hand."""
    evaluate_run("base", "1", "--limit", "4")
    evaluate_run("other", "2", "--limit", "4")
    margins = [f"{percent / 100:g}" for percent in range(2, 60, 2)]
    gates = (keju("gate", "other", "--baseline", "base", "--margin", m, "--json") for m in margins)
    ran = next(ran for ran in gates if ran.code == 3 and ran.json["gates"][0]["planned"] <= 120)
    (row,) = ran.json["gates"]
    plan = shlex.split(ran.json["next"][-1])[1:]
    assert plan[0] == "plan"
    power_plan = keju(*plan, "--json").json
    assert (power_plan["goal"], power_plan["questions"]) == ("margin", row["planned"])
    assert (power_plan["questions_in_general"], power_plan["seen"]) == (
        row["planned"],
        row["value"],
    )
    pair = keju("compare", "base", "other", "--json").json["comparisons"][0]
    assert power_plan["discordance_from"] == "measured"
    assert power_plan["discordance"] == (pair["arm_only"] + pair["base_only"]) / pair["n"]
    assert row["conclusion"] in power_plan["warnings"]
    assert row["conclusion"] in keju(*plan).out


@pytest.mark.parametrize(
    ("run", "verdict", "code"), [("same", "pass", 0), ("wrong", "fail", 1), ("few", "", 3)]
)
def test_a_plan_decides_as_the_gate_does(
    keju: Keju, evaluate_run: Evaluate, run: str, verdict: str, code: int
) -> None:
    """Of a decided gate no sentence says that more questions would decide it."""
    evaluate_run("base", "1")
    evaluate_run("same", "1")
    evaluate_run("wrong", form="So the answer is (Z)")
    evaluate_run("few", "1", "--limit", "1")
    gated = keju("gate", run, "--baseline", "base", "--margin", "0.05", "--json")
    (row,) = gated.json["gates"]
    power_plan = keju(
        "plan", row["exam"], "--pilot", run, "--baseline", "base", "--margin", "0.05", "--json"
    )
    assert (gated.code, power_plan.code) == (code, 0)
    assert row["conclusion"] in power_plan.json["warnings"]
    assert power_plan.json["questions_in_general"] == (row["n"] if verdict else row["planned"])
    assert any("would decide" in text for text in power_plan.json["warnings"]) is (not verdict)


def test_several_exams_are_gated_with_holms_p(keju: Keju, evaluate_run: Evaluate) -> None:
    """A score that passes alone by little does not pass as one of two that are tried."""
    evaluate_run("r", "1", exams=("bbh", "demo"))
    rows = keju("gate", "r", "--at-least", "0.5", "--json").json["gates"]
    best_row = max(rows, key=lambda row: row["low"])
    least_score = f"{best_row['low'] - 1e-4:.6f}"
    alone = keju("gate", "r", "--at-least", least_score, "--datasets", best_row["exam"], "--json")
    assert (alone.code, alone.json["verdict"]) == (0, "pass")
    two_exams = keju("gate", "r", "--at-least", least_score, "--json")
    (row,) = (
        gate_row for gate_row in two_exams.json["gates"] if gate_row["exam"] == best_row["exam"]
    )
    assert row["p"] <= 0.05 < row["p_holm"]
    assert (two_exams.code, row["verdict"]) == (3, "inconclusive")
    assert row["needed"] > row["n"]


def test_replies_without_an_answer_are_told_of_with_a_least_score_too(
    keju: Keju, evaluate_run: Evaluate
) -> None:
    evaluate_run("mute", form="I do not know.")
    ran = keju("gate", "mute", "--at-least", "0.5")
    assert "keju audit mute shows which, and why" in ran.out
    evaluate_run("base")
    both_rules = keju("gate", "mute", "--baseline", "base", "--margin", "0.05", "--at-least", "0.5")
    assert both_rules.out.count("keju audit mute shows which, and why") == 1


def test_an_undecided_score_says_how_many_questions_there_are(
    keju: Keju, evaluate_run: Evaluate
) -> None:
    """Thousands are separated, and what an exam has not is not told as a next step."""
    evaluate_run("base", "1")
    row = keju("gate", "base", "--at-least", "0.28", "--json").json["gates"][0]
    ran = keju("gate", "base", "--at-least", "0.28")
    assert row["needed"] > 1000 > row["whole"]
    sentence = f"about {row['needed']:,} questions would decide, more than the {row['whole']} that"
    assert sentence in ran.out
    assert "value tested" in ran.out
    assert "gated" not in ran.out


def test_runs_that_are_not_comparable_are_told_the_command_that_shows_all_that_differs(
    keju: Keju, evaluate_run: Evaluate
) -> None:
    evaluate_run("one", "1", "--limit", "1")
    evaluate_run("two", "1", "--limit", "1", "--seed", "7")
    refusal = keju("gate", "two", "--baseline", "one", "--margin", "0.1").err
    assert "; keju compare --why one two shows every difference" in refusal
    output = keju("compare", "one", "two").out
    assert "  keju compare --why one two  # every difference" in output
    assert keju("diff", "one", "two").code == 0


@pytest.mark.parametrize(
    ("language", "message"),
    [
        ("en", "means over questions; the headline of bbh is another mean: mean of 23 tasks"),
        ("zh", "这里的得分是全部题目的均值；bbh 的主指标是另一个均值：23 个任务的平均"),
    ],
)
def test_the_mean_that_is_tested_is_told_where_the_headline_is_another(
    keju: Keju, monkeypatch: pytest.MonkeyPatch, language: str, message: str
) -> None:
    monkeypatch.setenv("KEJU_LANGUAGE", language)
    bbh = ("eval", "-m", "scripted", "--datasets", "bbh", "--data-dir", str(HERE / "data"), "-q")
    for protocol in ("paper", "evalscope"):
        assert keju(*bbh, "--protocol", protocol, "--run-id", protocol).code == 0
        pages = [
            keju("compare", protocol, protocol).out,
            keju("gate", protocol, "--at-least", "0.1").out,
        ]
        for page in pages:
            assert (message in " ".join(page.split())) == (protocol == "paper")
