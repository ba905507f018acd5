"""Other shapes of the same logs: further filters, JSON Lines, failed rows, exams of one's own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keju.config import TaskConfig
from keju.engine.job import make_jobs
from keju.runs.manifest import ManifestFile
from tests.cli.conftest import Keju
from tests.interop.imports.conftest import DATA, Import, exam_of

pytestmark = pytest.mark.slow

Log = Callable[[str], Path]


def edit(path: Path, change: Callable[[list[dict[str, Any]]], Any]) -> None:
    """Change the rows of a JSON Lines file."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    changed = change(rows)
    path.write_text("".join(json.dumps(row) + "\n" for row in (changed or rows)))


def test_a_second_filter_repeats_the_same_replies(imported: Import, log: Log) -> None:
    folder = log("lm-eval/bbh")
    strict_match = {"filter": "strict-match", "exact_match": 0.0, "filtered_resps": ["[invalid]"]}
    for samples in folder.glob("samples_*"):
        edit(samples, lambda rows: [*rows, *(row | strict_match for row in rows)])
    exam = exam_of(imported(folder), "bbh")
    assert (exam["rows"], exam["tool_accuracy"]) == (12, pytest.approx(1 / 3))


def test_several_replies_of_lm_eval_are_repeats(imported: Import, log: Log) -> None:
    folder = log("lm-eval/bbh")
    for samples in folder.glob("samples_*"):
        edit(samples, lambda rows: [r | {"resps": [r["resps"][0] * 3]} for r in rows])
    document = imported(folder)
    assert exam_of(document, "bbh")["rows"] == 36
    assert document["results"]["benchmarks"][0]["repeats"] == 3


def test_a_folder_without_results_goes_by_its_name(imported: Import, log: Log) -> None:
    folder = log("lm-eval/bbh")
    next(folder.glob("results_*")).unlink()
    document = imported(folder)
    assert (document["model"], document["version"]) == ("bbh", "")
    exam = exam_of(document, "bbh")
    assert exam["reported"] == {}
    assert exam["tool_accuracy"] == pytest.approx(1 / 3)


def test_failed_rows_of_evalscope_and_verifiers_are_errors(imported: Import, log: Log) -> None:
    folder = log("verifiers-0.3")

    def fail(rows: list[dict[str, Any]]) -> None:
        rows[0] |= {"error": "This model's maximum context length is 10 tokens", "reward": 0.0}
        rows[1] |= {"error": {"error": "ModelError", "message": "down"}, "completion": None}

    edit(folder / "results.jsonl", fail)
    document = imported(folder)
    assert exam_of(document, "bixbench")["errors"] == 2
    assert document["results"]["benchmarks"][0]["outcomes"]["error"] == 2


@pytest.mark.parametrize("resps", [[], [[]], None, [[None]], [None], [[[]], [[-1.0, True]]], 5])
def test_a_sample_of_lm_eval_without_a_reply_is_an_error(
    resps: Any, imported: Import, log: Log
) -> None:
    folder = log("lm-eval/bbh")

    def fail(rows: list[dict[str, Any]]) -> None:
        rows[1] |= {"resps": resps, "filtered_resps": []}

    edit(next(folder.glob("samples_*boolean*")), fail)
    document = imported(folder)
    exam = exam_of(document, "bbh")
    assert (exam["rows"], exam["errors"]) == (12, 1)
    assert document["results"]["benchmarks"][0]["outcomes"]["error"] == 1


@pytest.mark.parametrize("completion", [5, ["B"], [], None, [{"role": "user", "content": "B"}]])
def test_a_rollout_with_a_malformed_completion_is_an_error(
    completion: Any, imported: Import, log: Log, tmp_path: Path
) -> None:
    folder = log("verifiers-0.3")
    edit(folder / "results.jsonl", lambda rows: rows[3].update(completion=completion))
    document = imported(folder)
    assert exam_of(document, "bixbench")["errors"] == 1
    lines = (tmp_path / "runs" / "r" / "records.jsonl").read_text().splitlines()
    errors = [json.loads(line)["reply"].get("error") for line in lines]
    (error,) = [error for error in errors if error]
    assert error["kind"] == "malformed"
    assert error["message"].startswith("the log holds no reply here: ")


@pytest.mark.parametrize(
    ("path", "file", "change", "line"),
    [
        ("verifiers-0.3", "results.jsonl", {"timing": "soon"}, 3),
        ("verifiers-0.3", "results.jsonl", {"example_id": [1]}, 3),
        ("verifiers-0.4", "traces.jsonl", {"traces": [5]}, 3),
        ("lm-eval/bbh", "samples_*boolean*", {"metrics": 3}, 3),
    ],
)
def test_a_row_that_cannot_be_read_is_named(
    path: str, file: str, change: dict[str, Any], line: int, keju: Keju, log: Log
) -> None:
    folder = log(path)
    name = next(folder.glob(file))
    edit(name, lambda rows: rows[line - 1].update(change))
    ran = keju("import", str(folder), "--data-dir", str(DATA))
    assert ran.code == 2
    assert f"{name.name}, line {line}: " in ran.err
    assert len(ran.err.splitlines()) == 1


def test_rollouts_agree_on_options_whatever_order_showed_them(imported: Import, log: Log) -> None:
    """The second rollout of each question sees its options reversed; both choose the gold one."""
    folder = log("verifiers-0.3")

    def reverse(rows: list[dict[str, Any]]) -> None:
        for row in rows[1::2]:
            row["info"]["choices"].reverse()
            row["answer"] = "DCBA"["ABCD".index(row["answer"])]
        for row in rows:
            row["completion"] = row["answer"]

    edit(folder / "results.jsonl", reverse)
    metrics = imported(folder)["results"]["benchmarks"][0]["metrics"]
    assert metrics["accuracy"]["value"] == 1.0
    assert metrics["agreement"]["value"] == 1.0
    assert metrics["majority_vote"]["value"] == 1.0


def test_an_error_that_evalscope_recorded_is_an_error(imported: Import, log: Log) -> None:
    folder = log("evalscope")
    file = folder / "predictions" / "tiny-chat" / "ceval_law.jsonl"

    def fail(rows: list[dict[str, Any]]) -> None:
        rows[0]["model_output"] |= {"error": "status 500", "choices": []}

    edit(file, fail)
    exam = exam_of(imported(folder), "ceval")
    assert exam["errors"] == 1
    assert [d["keju"]["outcome"] for d in exam["differences"]] == ["error"]
    assert exam["differences"][0]["reply"] == "status 500"


def test_the_tools_own_figure_stands_with_its_own_n(imported: Import, log: Log) -> None:
    """Where rows are missing it is not recomputed over the rest; that is told."""
    folder = log("evalscope")
    (folder / "predictions" / "tiny-chat" / "bbh_boolean_expressions.jsonl").unlink()
    document = imported(folder)
    exam = exam_of(document, "bbh")
    assert (exam["rows"], exam["rows_missing"], exam["reported_n"]) == (6, 6, 12)
    assert exam["reported"]["accuracy"] == 0.6667
    assert exam["tool_accuracy"] == pytest.approx(5 / 6)
    notices = document["results"]["benchmarks"][0]["notices"]
    assert {"code": "rows_missing", "values": {"missing": 6, "whole": 12}} in notices


def cut(path: Path, rows: int) -> None:
    """Leave the first rows of a JSON Lines file."""
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:rows]))


@pytest.mark.parametrize("missing_part", ["rows", "file"])
def test_a_log_of_lm_eval_that_lost_rows_keeps_its_figure(
    missing_part: str, imported: Import, log: Log
) -> None:
    folder = log("lm-eval/mmlu_pro")
    math = next(folder.glob("samples_mmlu_pro_math_*"))
    if missing_part == "rows":
        cut(math, 2)
    else:
        math.unlink()
    exam = exam_of(imported(folder), "mmlu_pro")
    missing = 3 if missing_part == "rows" else 5
    assert (exam["rows"], exam["rows_missing"], exam["reported_n"]) == (9 - missing, missing, 9)
    assert exam["reported"] == {"exact_match,custom-extract": pytest.approx(1 / 3)}


def test_an_inspect_log_that_lost_samples_says_so(imported: Import, log: Log) -> None:
    path = log("inspect/mmlu-pro-with-an-error.json")
    document = json.loads(path.read_text())
    del document["samples"][0]
    path.write_text(json.dumps(document))
    exam = exam_of(imported(path), "mmlu_pro")
    assert (exam["rows"], exam["rows_missing"], exam["reported_n"]) == (3, 1, 3)


def test_the_filter_of_the_group_is_the_headline_and_all_are_shown(
    imported: Import, log: Log, keju: Keju
) -> None:
    """Two filters of which the file has the other one first."""
    folder = log("lm-eval/bbh")
    strict_match = {"filter": "strict-match", "exact_match": 0.0, "filtered_resps": ["[invalid]"]}
    for samples in folder.glob("samples_*"):
        edit(samples, lambda rows: [*(row | strict_match for row in rows), *rows])
    path = next(folder.glob("results_*"))
    results = json.loads(path.read_text())
    for figures in results["results"].values():
        figures |= {"exact_match,strict-match": 0.0}
    group = {"alias": "bbh", "exact_match,get-answer": 0.3334, "exact_match_stderr,get-answer": 0.1}
    results["groups"] = {"bbh_cot_fewshot": group}
    results["group_subtasks"] = {
        "all": ["bbh_cot_fewshot"],
        "bbh_cot_fewshot": [*results["results"]],
    }
    path.write_text(json.dumps(results))
    exam = exam_of(imported(folder), "bbh")
    assert list(exam["reported"].items()) == [
        ("exact_match,get-answer", 0.3334), ("exact_match,strict-match", 0.0)
    ]  # fmt: skip
    assert (exam["rows"], exam["reported_n"]) == (12, 12)
    assert exam["tool_accuracy"] == pytest.approx(1 / 3)
    ran = keju("import", str(folder), "--data-dir", str(DATA), "--run-id", "other")
    assert "exact_match,get-answer 33.34 %; exact_match,strict-match 0.00 %" in ran.out


def test_different_answers_are_listed_where_the_scores_are_the_same(
    imported: Import, log: Log, keju: Keju
) -> None:
    path = log("inspect/mmlu-pro-with-an-error.json")
    document = json.loads(path.read_text())
    scored = (sample for sample in document["samples"] if sample["scores"])
    incorrect_row = next(sample for sample in scored if sample["scores"]["choice"]["value"] == "I")
    incorrect_row["scores"]["choice"]["answer"] = "J"
    path.write_text(json.dumps(document))
    exam = exam_of(imported(path), "mmlu_pro")
    assert exam["differences"] == []
    (row,) = exam["answer_differences"]
    assert row["id"] == f"mmlu_pro_{incorrect_row['id']}"
    assert row["tool"]["answer"] == "J" != row["keju"]["answer"]
    ran = keju("import", str(path), "--data-dir", str(DATA), "--run-id", "other")
    assert "mmlu_pro: 1 row has the same score for different answers" in ran.out


REFUSALS = [
    ("model_length", "Range of input length should be [1, 900]", "context_length"),
    ("content_filter", "Output data may contain inappropriate content.", "content_filter"),
]


@pytest.mark.parametrize(("reason", "message", "kind"), REFUSALS)
def test_a_refusal_that_was_written_as_a_reply_is_an_error(
    reason: str, message: str, kind: str, imported: Import, log: Log
) -> None:
    folder = log("evalscope")

    def refuse(rows: list[dict[str, Any]]) -> None:
        choice = {"message": {"role": "assistant", "content": message}, "stop_reason": reason}
        rows[0]["model_output"] |= {"choices": [choice], "usage": None}
        rows[1]["model_output"]["choices"][0]["stop_reason"] = "model_length"  # a real one, cut off

    edit(folder / "predictions" / "tiny-chat" / "bbh_date_understanding.jsonl", refuse)
    document = imported(folder)
    assert exam_of(document, "bbh")["errors"] == 1
    entry = document["results"]["benchmarks"][0]
    assert entry["outcomes"]["error"] == 1
    errors = {"kinds": {kind: 1}, "example": message, "examples": {kind: message}}
    assert entry["errors"] == errors


def test_a_refusal_in_a_log_of_inspect_is_an_error(imported: Import, log: Log) -> None:
    path = log("inspect/mmlu-pro-with-an-error.json")
    document = json.loads(path.read_text())
    output = document["samples"][0]["output"]
    output["choices"][0] |= {"stop_reason": "model_length"}
    output["choices"][0]["message"]["content"] = "This model's maximum context length is 900 tokens"
    del output["usage"]
    path.write_text(json.dumps(document))
    assert exam_of(imported(path), "mmlu_pro")["errors"] == 2


def test_an_exam_of_ones_own_can_be_named(keju: Keju, log: Log, tmp_path: Path) -> None:
    exam = tmp_path / "riddles.jsonl"
    lines = (DATA / "mmlu_pro" / "test.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    exam.write_text(
        "".join(
            json.dumps({"question": r["question"], "choices": r["options"], "answer": r["answer"]})
            + "\n"
            for r in rows[:4]
        )
    )
    file = log("inspect/mmlu-pro-with-an-error.json")
    file.write_text(file.read_text().replace('"task": "mmlu_pro"', '"task": "riddles"'))
    ran = keju("import", str(file), "--datasets", str(exam), "--run-id", "r", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["benchmarks"][0]["matched"] == 4
    assert ran.json["benchmarks"][0]["permuted"] == 4
    assert keju("score", "runs/r").code == 0


def test_the_origin_stays_when_a_manifest_is_written_anew(imported: Import, tmp_path: Path) -> None:
    imported("verifiers-0.4")
    folder = tmp_path / "runs" / "r"
    stored = json.loads((folder / "manifest.json").read_text())
    config = TaskConfig(**stored["config"])
    rewritten = ManifestFile(folder, config, [job.facts() for job in make_jobs(config)]).manifest
    assert rewritten.imported is True
    assert rewritten.origin == stored["origin"]


@pytest.mark.parametrize(
    ("path", "file", "old", "new"),
    [
        ("lm-eval/bbh", "samples_*boolean*", '"resps": [["', '"resps": ["'),
        ("lm-eval/bbh", "results_*", '"results": {', '"results": 3, "more": {'),
        ("inspect/mmlu-pro-with-an-error.json", "", '"choices": [', '"choices": 3, "more": ['),
        ("inspect/mmlu-pro-with-an-error.json", "", '"eval": {', '"eval": 3, "more": {'),
        ("verifiers-0.4", "traces.jsonl", '"nodes":[', '"nodes":5,"more":['),
        ("verifiers-0.3", "metadata.json", '"env_args": {}', '"env_args": 3'),
        ("evalscope", "reports/*/bbh.json", '"metrics": [', '"metrics": 3, "more": ['),
        ("opencompass/base", "*/predictions/*/ceval-logic.json", '"PPL": 5', '"PPL": null, "x": 5'),
        (
            "opencompass/chat",
            "*/results/*/ceval-logic.json",
            '"details": {',
            '"details": 3, "m": {',
        ),
    ],
)
def test_a_log_that_is_laid_out_otherwise_is_told_in_one_line(
    path: str, file: str, old: str, new: str, keju: Keju, log: Log
) -> None:
    place = log(path)
    changed = next(place.glob(file)) if file else place
    text = changed.read_text()
    assert old in text
    changed.write_text(text.replace(old, new))
    ran = keju("import", str(place), "--data-dir", str(DATA), "--json")
    if ran.code:
        assert ran.code == 2
        assert len(ran.err.splitlines()) == 1
        assert "internal error" not in ran.err


def test_keys_that_a_tool_recorded_are_not_taken_over(
    imported: Import, log: Log, tmp_path: Path
) -> None:
    folder = log("evalscope")
    file = folder / "predictions" / "tiny-chat" / "ceval_law.jsonl"
    refused = "Incorrect API key provided: sk-marked-1234. Authorization: Bearer marked-5678"

    def fail(rows: list[dict[str, Any]]) -> None:
        rows[0]["model_output"] |= {"error": refused, "choices": []}

    edit(file, fail)
    config = folder / "configs" / "task_config.yaml"
    text = config.read_text()
    assert "generation_config:\n" in text
    config.write_text(
        text.replace("generation_config:\n", "generation_config:\n  extra_headers: {X: marked}\n")
    )
    imported(folder)
    file_texts = [path.read_text() for path in (tmp_path / "runs" / "r").iterdir()]
    assert [text for text in file_texts if "marked" in text] == []
    assert any("[redacted]" in text for text in file_texts)


def test_permuted_options_are_shown_and_exported_in_their_order(
    imported: Import, keju: Keju, tmp_path: Path
) -> None:
    imported("inspect/mmlu-pro.eval")
    ran = keju("export", "runs/r", "--format", "jsonl", "--full-text")
    first_row = json.loads(ran.out.splitlines()[0])
    assert (first_row["id"], first_row["target"]) == ("mmlu_pro_9001", "B")
    assert first_row["choices"][:3] == ["104", "84", "77"]
    report = (tmp_path / "runs" / "r" / "report.html").read_text()
    page_part = report[report.index("A square garden") :]
    assert page_part.index("A. 12") < page_part.index("B. 13") < page_part.index("C. 11")
