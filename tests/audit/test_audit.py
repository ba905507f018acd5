"""``keju audit`` on runs whose replies were written for it, and on recorded replies.

The runs are those of version 0.1 (`tests/audit/make.py`), so that their stored scores are 0.1's.
"""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest

from keju import Reply, audit, prepare_exam
from keju.messages import Language, labels
from keju.reporting.audit import SHARED_FAILURES_SHOWN
from keju.results.causes import CODES
from tests.audit.make import HERE, RUNS, copy_run
from tests.audit.replies import WRITTEN
from tests.cli.conftest import Keju, keju
from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import EndpointRequest, Plan

pytestmark = pytest.mark.slow

__all__ = ["keju"]

DATA = Path(__file__).parents[3] / "shared" / "data"
GOLDEN = DATA / "golden"
CLEAN = 500


def written(run: str) -> dict[str, dict[str, str]]:
    """By id of a question: what the reply was written for, and its cause."""
    causes: dict[str, dict[str, str]] = json.loads((HERE / run / "causes.json").read_bytes())
    return causes


def findings(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {finding["id"]: finding for exam in document["exams"] for finding in exam["findings"]}


def test_there_is_a_reply_for_every_line() -> None:
    recorded = [line for run in RUNS for line in written(run).values()]
    expected = [{"about": line.about, "cause": line.cause} for line in WRITTEN]
    assert sorted(map(str, recorded)) == sorted(map(str, expected))
    assert {line.cause for line in WRITTEN} <= set(CODES)


@pytest.mark.parametrize("run", RUNS)
def test_each_reply_is_listed_under_its_own_cause(run: str, keju: Keju, tmp_path: Path) -> None:
    copy_run(run, tmp_path)
    ran = keju("audit", run, "--json")
    assert ran.code == 0
    findings_by_id = findings(ran.json)
    expected = {name: line["cause"] for name, line in written(run).items()}
    assert {name: line["cause"] for name, line in findings_by_id.items()} == expected


def test_the_range_over_at_least_four_readers_is_shown(keju: Keju, tmp_path: Path) -> None:
    copy_run("replies", tmp_path)
    document = keju("audit", "replies", "--json").json
    for exam in document["exams"]:
        values = [row["accuracy"]["value"] for row in exam["readers"]]
        assert len(values) >= 4
        assert exam["range"] == [min(values), max(values)]
        assert len(exam["pairs"]) == len(values) * (len(values) - 1) / 2
    out = keju("audit", "replies").out
    assert "accuracy 82.50 % by 'evalscope'; over 5 readers 0.00 % to 88.75 %" in out
    assert "; over the 3 that know the protocol's form 71.25 % to 88.75 %" in out
    assert "warning: the reader 'robust' gives +6.25 points against 'evalscope'" in out


def test_what_does_not_vary_has_neither_range_nor_standard_error(keju: Keju) -> None:
    exam = ("eval", "-m", "scripted", "--datasets", "demo", "-q", "--no-report", "--limit", "1")
    keju(*exam, "--run-id", "alike")
    out = keju("audit", "alike").out
    assert "; over the 2 that know the protocol's form 33.33 %\n" in out
    assert keju(*exam, "--reader", "inspect", "--run-id", "zero").code == 0
    out = keju("audit", "zero").out
    assert "the reader 'robust' gives +33.33 points against 'inspect'; it scores 2 replies" in out
    assert "standard error" not in out


def test_every_reader_of_an_audit_can_score_alone(keju: Keju) -> None:
    """Also those that the exam has not got itself, `robust` among them, with the same accuracy."""
    keju("eval", "-m", "scripted", "--datasets", "demo", "-q", "--no-report", "--run-id", "one")
    (exam,) = keju("audit", "one", "--json").json["exams"]
    assert "robust" in {row["reader"] for row in exam["readers"]}
    for row in exam["readers"]:
        ran = keju("score", "one", "--reader", row["reader"], "--json")
        assert ran.code == 0, ran.err
        (entry,) = ran.json["benchmarks"]
        assert entry["reader"] == row["reader"]
        assert entry["metrics"]["accuracy"]["value"] == row["accuracy"]["value"]
    assert keju("audit", "one", "--reader", "inspect").code == 0
    error_text = keju("score", "one", "--reader", "nobody").err
    assert "marker, robust, evalscope, inspect, last-line, whole-reply" in error_text


def test_a_disagreement_shows_both_readings_the_end_and_a_command(
    keju: Keju, tmp_path: Path
) -> None:
    copy_run("replies", tmp_path)
    ran = keju("audit", "replies")
    assert ran.out.index("First those whose score depends") < ran.out.index("Then the others")
    assert "bbh_word_sorting_0 · gold amber kettle walnut · evalscope: amber, kettle" in ran.out
    assert "… So the answer is amber, kettle, walnut." in ran.out
    command = "show replies --sample bbh_word_sorting_0"
    assert f"keju {command}" in ran.out
    assert "amber, kettle, walnut" in keju(*command.split()).out


def test_a_reader_that_is_asked_for_takes_the_place_of_the_protocols(
    keju: Keju, tmp_path: Path
) -> None:
    copy_run("lines", tmp_path)
    (exam,) = keju("audit", "lines", "--reader", "robust", "--json").json["exams"]
    assert exam["reader"] == "robust"
    assert [finding["cause"] for finding in exam["findings"]] == ["stop_string"]
    assert keju("audit", "lines", "--reader", "zzz").code == 2


def test_questions_that_all_runs_fail_alike_are_told(keju: Keju, tmp_path: Path) -> None:
    copy_run("replies", tmp_path)
    document = keju("audit", "replies", "--beside", "replies", "--json").json
    shared = {failure["id"]: failure for failure in document["shared_failures"]}
    assert shared["bbh_object_counting_0"]["answer"] == "14"
    assert document["failed_by_all"] > len(shared)
    section = keju("audit", "replies", "--beside", "replies").out.partition(
        "the same wrong answer"
    )[2]
    assert sum(name in section for name in shared) == SHARED_FAILURES_SHOWN < len(shared)
    assert f"{len(shared) - SHARED_FAILURES_SHOWN} more" in section


def test_one_exam_of_several_is_audited_with_predictions_beside_it(keju: Keju) -> None:
    words = ("--model", "scripted", "--datasets", "demo", "fresh_bbh", "--limit", "1")
    args = ("--dataset-args", '{"fresh_bbh": {"subset_list": ["navigate"]}}')
    assert keju("eval", *words, *args, "--run-id", "both", "-q", "--no-report").code == 0
    row = {"id": "demo_word_sorting_0", "output": "The answer is (Z)."}
    Path("p.jsonl").write_text(json.dumps(row), "utf-8")
    ran = keju("audit", "both", "--beside", "p.jsonl")
    assert (ran.code, "name its exam with --datasets" in ran.err) == (2, True)
    ran = keju("audit", "both", "--beside", "p.jsonl", "--datasets", "demo", "--json")
    assert ran.code == 0, ran.err
    assert [exam["name"] for exam in ran.json["exams"]] == ["demo"]
    assert "both does not include bbh" in keju("audit", "both", "--datasets", "bbh").err


def test_predictions_stand_beside_a_run_also_where_no_question_is_left(keju: Keju) -> None:
    words = ("--model", "scripted", "--datasets", "demo", "--limit", "1", "--run-id", "guess")
    assert keju("eval", *words, "-q").code == 0
    rows = [
        json.loads(line)
        for line in keju("export", "guess", "--format", "jsonl").out.split("\n")
        if line
    ]
    right = [{"id": row["id"], "output": f"So the answer is {row['target']}."} for row in rows]
    Path("right.jsonl").write_text("".join(json.dumps(row) + "\n" for row in right))
    ran = keju("audit", "guess", "--beside", "right.jsonl", "--beside", "right.jsonl", "--json")
    assert (ran.code, ran.json["failed_by_all"]) == (0, 0)


def test_an_audit_is_there_in_python_and_in_chinese(
    keju: Keju, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copy_run("tags", tmp_path)
    result = audit(str(folder))
    assert [finding.cause for finding in result.exams[0].findings] == ["open_tag", "other_marker"]
    monkeypatch.setenv("KEJU_LANGUAGE", "zh")
    assert "答案的标签没有闭合" in keju("audit", "tags").out


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("run", RUNS)
def test_the_terminal_names_causes_and_json_has_their_codes(
    run: str, language: Language, keju: Keju, tmp_path: Path
) -> None:
    copy_run(run, tmp_path)
    exams = keju("audit", run, "--json", "--language", language).json["exams"]
    causes = {row["cause"]: row["n"] for exam in exams for row in exam["causes"]}
    out = keju("audit", run, "--language", language).out
    lines = [line.strip() for line in out.splitlines()]
    for cause, n in causes.items():
        name = labels(language)[f"cause.{cause}"]
        # In the table and, where replies stand under it, above these.
        assert sum(line.startswith(name) for line in lines) >= 1 + bool(n), cause
        assert not any(line.startswith(cause) for line in lines if "_" in cause), cause


def test_the_mark_of_a_reader_is_explained_where_one_has_it(keju: Keju) -> None:
    words = ("-m", "scripted", "--datasets", "demo", "-q", "--no-report")
    assert keju("eval", *words, "--run-id", "whole").code == 0
    assert keju("eval", *words, "--limit", "1", "--run-id", "few").code == 0
    for language, explanation in (
        ("en", "* more than a standard error from the accuracy by 'marker'"),
        ("zh", "* 与“marker”的准确率相差超过一个标准误"),
    ):
        output = keju("--language", language, "audit", "whole").out
        assert "inspect *" in output
        assert explanation in output
        output = keju("--language", language, "audit", "few").out
        assert (" *" in output, explanation in output) in ((False, False), (True, True))


def test_labels_are_compared_with_gold(keju: Keju, tmp_path: Path) -> None:
    copy_run("replies", tmp_path)
    exams = {exam["name"]: exam for exam in keju("audit", "replies", "--json").json["exams"]}
    labels = exams["mmlu_pro"]["labels"]
    assert sum(row["gold"] for row in labels["rows"]) == 42
    assert labels["p"] is not None
    assert exams["sums"]["labels"] is None


# --- recorded replies ----------------------------------------------------------------------------

RECORDED = {
    "official": ("mmlu_pro", "mmlu_pro/Meta-Llama-3_1-8B-Instruct_predictions.jsonl.gz"),
    "evalscope": ("mmlu_pro", "mmlu_pro/Meta-Llama-3_1-8B-Instruct_predictions.jsonl.gz"),
    "paper": ("bbh", "bbh/code-davinci-002_cot_predictions.jsonl.gz"),
}
"""By protocol: an exam, and replies of a model to it."""
AGREE = {"mmlu_pro": ("l1", "l2", "robust"), "bbh": ("paper", "evalscope", "robust")}
"""The readers that must find the right answer in a clean reply."""


def clean_replies(name: str, file: Path) -> dict[str, tuple[str, str]]:
    """By question: the id and the reply, of `CLEAN` replies that all readers find right."""
    exam, _ = prepare_exam(name, None, data_dir=str(DATA))
    readers = [exam.readers[reader] for reader in AGREE[name]]
    samples = {sample.id: sample for sample in exam.samples}
    with gzip.open(file) as lines:
        rows = [json.loads(line) for line in lines]
    random.Random(4).shuffle(rows)
    replies_by_text: dict[str, tuple[str, str]] = {}
    for row in rows:
        sample = samples[exam.locate(row)]
        reply = Reply(row["output"], finish="stop")
        readings = [exam.grade(reply, sample, reader) for reader in readers]
        if all(reading.score.outcome == "correct" for reading in readings):
            replies_by_text.setdefault(sample.text.strip(), (sample.id, row["output"]))
        if len(replies_by_text) == CLEAN:
            break
    return replies_by_text


@pytest.mark.parametrize("protocol", RECORDED)
def test_at_most_two_in_a_hundred_clean_replies_are_flagged(
    protocol: str, keju: Keju, tmp_path: Path
) -> None:
    exam, file = RECORDED[protocol]
    if not (GOLDEN / file).exists():
        pytest.skip("the recorded replies are not here")
    replies = clean_replies(exam, GOLDEN / file)

    def answer(request: EndpointRequest) -> str:
        question = max(replies, key=request.text.rfind)
        return replies[question][1] if question in request.text else "A"

    settings = {
        "model": "recorded",
        "datasets": [exam],
        "ids": [name for name, _ in replies.values()],
        "protocol": protocol,
        "data_dir": str(DATA),
        "run_id": "clean",
    }
    with FaultyEndpoint(Plan(answers=answer)) as endpoint:
        (tmp_path / "task.json").write_text(json.dumps(settings | {"api_url": endpoint.url}))
        assert keju("eval", "--config", "task.json", "--no-report", "-q", "--json").code == 0
    (audited,) = keju("audit", "clean", "--json").json["exams"]
    assert audited["replies"] == CLEAN
    assert audited["readers"][0]["accuracy"]["value"] > 0.99
    assert audited["flagged"] <= 0.02 * CLEAN, audited["findings"][:5]
    # Readers of other protocols, such as `answer-only`, score some of these runs 0 %.
    knows = {row["reader"]: row["knows_form"] for row in audited["readers"]}
    warned = [n["values"]["reader"] for n in audited["notices"] if "audit_reader" in n["code"]]
    assert all(knows[name] for name in warned)
    assert not warned or exam != "bbh"


# --- what stored files and probabilities tell ----------------------------------------------------


def test_a_reply_whose_stored_score_is_not_its_own_is_listed(keju: Keju, tmp_path: Path) -> None:
    folder = copy_run("replies", tmp_path)
    journal = folder / "records.jsonl"
    lines = journal.read_text("utf-8").splitlines()
    place = next(n for n, line in enumerate(lines) if '"mmlu_pro_1041"' in line)
    assert "ANSWER: " in lines[place]
    record = json.loads(lines[place])
    record["reply"]["text"] = "It is a sum.\n\nANSWER: " + ("B" if record["target"] != "B" else "C")
    lines[place] = json.dumps(record, ensure_ascii=False)
    journal.write_text("\n".join(lines) + "\n", "utf-8")
    findings_by_id = findings(keju("audit", "replies", "--json").json)
    assert "stale_score" in (
        findings_by_id["mmlu_pro_1041"]["cause"],
        *findings_by_id["mmlu_pro_1041"]["also"],
    )


def test_a_gold_answer_that_has_changed_is_told(keju: Keju, tmp_path: Path) -> None:
    folder = copy_run("lines", tmp_path)
    journal = folder / "records.jsonl"
    journal.write_text(journal.read_text("utf-8").replace('"target":"True"', '"target":"False"'))
    findings_by_id = findings(keju("audit", "lines", "--json").json)
    assert findings_by_id["bbh_boolean_expressions_0"]["cause"] == "gold_changed"


def test_labels_that_are_hardly_likely_are_told(keju: Keju, tmp_path: Path) -> None:
    copy_run("replies", tmp_path)

    def tokens(request: EndpointRequest) -> dict[str, float]:
        return {"A": -1.1, "The": -1.2, "So": -1.3, "B": -4.0}

    with FaultyEndpoint(Plan(tokens=tokens)) as endpoint:
        flags = ("--datasets", "ceval", "--protocol", "tutorial", "--data-dir", "data")
        args = json.dumps({"ceval": {"subset_list": ["law"]}})
        endpoint_flags = ("--model", "m", "--api-url", endpoint.url, "--run-id", "labels", "-q")
        assert (
            keju("eval", *flags, *endpoint_flags, "--dataset-args", args, "--no-report").code == 0
        )
    (exam,) = keju("audit", "labels", "--json").json["exams"]
    assert {finding["cause"] for finding in exam["findings"]} == {"outside_labels"}


@pytest.mark.parametrize(
    ("language", "page"), [("en", "reference-causes.md"), ("zh", "reference-causes.zh-CN.md")]
)
def test_every_cause_is_documented_by_its_name_and_its_code(language: Language, page: str) -> None:
    text = (Path(__file__).parents[2] / "docs" / page).read_text("utf-8")
    names = {code: labels(language)[f"cause.{code}"] for code in CODES}
    assert len(set(names.values())) == len(CODES)
    assert [code for code, name in names.items() if f"| {name} | `{code}` |" not in text] == []
