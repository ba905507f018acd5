"""What other tools find in the logs that Keju writes."""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from tests.cli.conftest import Keju
from tests.interop.logs.eee_schema import AGGREGATE, SAMPLE, UUID
from tests.support.recorded_runs import LaidRun

EEE_RUNS = ["arms", "bixbench-judged", "ceval-labels", "errors", "notebook", "repeated", "several"]


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def export(keju: Keju, run: str, form: str, target: str = "out") -> Any:
    ran = keju("export", f"runs/{run}", "--format", form, "-o", target, "--json")
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


# Every Eval Ever


@pytest.mark.parametrize("laid", [f"1.0/{name}" for name in EEE_RUNS], indirect=True)
def test_files_of_every_eval_ever_keep_its_schema(laid: LaidRun, keju: Keju) -> None:
    facts = export(keju, laid.case.name, "eee")
    for name in facts["files"][::2]:
        path = Path(name)
        document = json.loads(path.read_text("utf-8"))
        Draft7Validator(AGGREGATE).validate(document)
        assert re.fullmatch(rf"out/data/[^/]+/unknown/tiny/{UUID}\.json", name)
        details = document["detailed_evaluation_results"]
        samples = Path("out", details["file_path"])
        assert samples == path.with_name(f"{path.stem}_samples.jsonl")
        assert details["checksum"] == hashlib.sha256(samples.read_bytes()).hexdigest()
        rows = lines(samples)
        assert details["total_rows"] == len(rows) > 0
        ids = {result["evaluation_result_id"] for result in document["evaluation_results"]}
        for row in rows:
            Draft7Validator(SAMPLE).validate(row)
            assert row["evaluation_id"] == document["evaluation_id"]
            assert row["model_id"] == document["model_info"]["id"]
            assert row.get("evaluation_result_id") in {None, *ids}


@pytest.mark.parametrize("laid", ["1.0/repeated"], indirect=True)
def test_a_result_has_its_interval_and_the_answers_name_their_reader(
    laid: LaidRun, keju: Keju
) -> None:
    aggregate, samples = export(keju, "repeated", "eee")["files"]
    document = json.loads(Path(aggregate).read_text("utf-8"))
    ran = keju("score", "runs/repeated", "--json")
    metric = json.loads(ran.out)["benchmarks"][0]["metrics"]["accuracy"]
    (result,) = [
        result
        for result in document["evaluation_results"]
        if result["evaluation_result_id"] == "mmlu_pro/evalscope/accuracy"
    ]
    details = result["score_details"]
    assert details["score"] == metric["value"]
    interval = details["uncertainty"]["confidence_interval"]
    assert [interval["lower"], interval["upper"]] == metric["ci95"]
    assert details["uncertainty"]["num_samples"] == metric["n"]
    readers = [row["answer_attribution"][0]["extraction_method"] for row in lines(Path(samples))]
    assert readers == ["evalscope", "robust"] * 42


@pytest.mark.parametrize("laid", ["1.0/errors"], indirect=True)
def test_an_error_is_named_as_an_error(laid: LaidRun, keju: Keju) -> None:
    _, samples = export(keju, "errors", "eee")["files"]
    errors = [row for row in lines(Path(samples)) if row["metadata"]["outcome"] == "error"]
    assert errors
    assert all(row["error"] for row in errors)


# Inspect


@pytest.mark.parametrize("laid", ["1.0/errors"], indirect=True)
def test_answers_are_graded_in_the_words_of_inspect(laid: LaidRun, keju: Keju) -> None:
    (name,) = export(keju, "errors", "inspect")["files"]
    assert re.fullmatch(r"out/2026-11-18T02-18-20\+00-00_demo_[0-9a-f]{22}\.json", name)
    log = json.loads(Path(name).read_text("utf-8"))
    grades = {"correct": "C", "incorrect": "I", "unparsed": "I", "truncated": "I"}
    for sample in log["samples"]:
        outcome = sample["metadata"]["outcome"]
        if outcome == "error":
            assert sample["error"]["message"]
            assert sample["scores"] == {}
        else:
            assert sample["scores"]["marker"]["value"] == grades[outcome]
            assert sample["scores"]["marker"]["metadata"]["outcome"] == outcome
    (score, _) = log["results"]["scores"]
    assert (score["scored_samples"], score["unscored_samples"]) == (28, 8)


@pytest.mark.parametrize("laid", ["1.0/arms"], indirect=True)
def test_arms_are_logs_and_episodes_are_messages_with_calls(laid: LaidRun, keju: Keju) -> None:
    names = export(keju, "arms", "inspect")["files"]
    logs = [json.loads(Path(name).read_text("utf-8")) for name in names]
    assert [log["eval"]["task"] for log in logs] == [
        "fresh_bbh-baseline",
        "fresh_bbh-calc",
        "fresh_bbh-placebo",
    ]
    assert [list(logs[1]["samples"][0]["scores"])] == [["evalscope", "robust"]]
    _, call, result, answer = logs[1]["samples"][0]["messages"]
    (made,) = call["tool_calls"]
    assert (made["function"], list(made["arguments"])) == ("calc__calculate", ["expression"])
    assert (result["role"], result["tool_call_id"]) == ("tool", made["id"])
    assert answer["content"] == logs[1]["samples"][0]["output"]["choices"][0]["message"]["content"]
    failed = logs[2]["samples"][0]["messages"][2]
    assert failed["error"] == {"type": "unknown", "message": "This tool is not available."}


@pytest.mark.parametrize("laid", ["1.0/notebook"], indirect=True)
def test_ids_of_calls_occur_once_in_a_log(laid: LaidRun, keju: Keju) -> None:
    (name,) = export(keju, "notebook", "inspect")["files"]
    for sample in json.loads(Path(name).read_text("utf-8"))["samples"]:
        calls = [call["id"] for m in sample["messages"] for call in m.get("tool_calls", ())]
        answered = [m["tool_call_id"] for m in sample["messages"] if m["role"] == "tool"]
        assert len(calls) == len({*calls}) > 1
        assert answered == calls


@pytest.mark.parametrize("laid", ["1.0/demo"], indirect=True)
def test_an_archive_has_a_file_for_each_answer(laid: LaidRun, keju: Keju) -> None:
    export(keju, "demo", "inspect", "demo.eval")
    with zipfile.ZipFile("demo.eval") as archive:
        names = archive.namelist()
        summaries = json.loads(archive.read("summaries.json"))
        header = json.loads(archive.read("header.json"))
    assert "samples/demo_boolean_expressions_0_epoch_1.json" in names
    assert len(summaries) == sum(name.startswith("samples/") for name in names) == 24
    assert header["results"]["total_samples"] == 24


# lm-eval


@pytest.mark.parametrize("laid", ["1.0/repeated"], indirect=True)
def test_readers_are_filters_and_repeats_are_replies_of_one_line(laid: LaidRun, keju: Keju) -> None:
    files = export(keju, "repeated", "lm-eval")["files"]
    assert files == [
        "out/tiny/samples_mmlu_pro_2026-11-18T02-18-17.000000.jsonl",
        "out/tiny/results_2026-11-18T02-18-17.000000.json",
    ]
    results = json.loads(Path(files[1]).read_text("utf-8"))
    rows = lines(Path(files[0]))
    assert [(row["doc_id"], row["filter"]) for row in rows[:4]] == [
        (0, "evalscope"), (0, "robust"), (1, "evalscope"), (1, "robust"),
    ]  # fmt: skip
    mine = [row for row in rows if row["filter"] == "evalscope"]
    assert {len(row["resps"][0]) for row in mine} == {3}
    mean = sum(row["exact_match"] for row in mine) / len(mine)
    assert results["results"]["mmlu_pro"]["exact_match,evalscope"] == pytest.approx(mean)
    assert results["configs"]["mmlu_pro"]["repeats"] == 3


@pytest.mark.parametrize("laid", ["1.0/ceval-labels"], indirect=True)
def test_compared_labels_are_log_likelihoods(laid: LaidRun, keju: Keju) -> None:
    files = export(keju, "ceval-labels", "lm-eval")["files"]
    row = lines(Path(files[0]))[0]
    assert len(row["resps"]) == len(row["arguments"]) == 4
    ((value, is_highest),) = row["resps"][0]
    assert isinstance(value, float)
    assert isinstance(is_highest, bool)
    assert row["acc"] in (0, 1)


# All formats


@pytest.mark.parametrize("form", ["eee", "inspect", "lm-eval"])
@pytest.mark.parametrize("laid", ["1.0/judged-arms"], indirect=True)
def test_a_log_has_no_address_of_an_endpoint(laid: LaidRun, form: str, keju: Keju) -> None:
    for file in export(keju, "judged-arms", form)["files"]:
        assert laid.served.endpoint.url not in Path(file).read_text("utf-8")


@pytest.mark.parametrize("laid", ["1.0/demo"], indirect=True)
def test_without_a_place_a_log_goes_into_a_folder_named_after_the_run(
    laid: LaidRun, keju: Keju
) -> None:
    ran = keju("export", "runs/demo", "--format", "inspect")
    assert (ran.code, ran.err) == (0, "keju: wrote demo-inspect\n")
    assert len(list(Path("demo-inspect").iterdir())) == 1


@pytest.mark.parametrize("laid", ["1.0/arms"], indirect=True)
def test_what_cannot_be_written_or_read_is_refused_in_one_line(laid: LaidRun, keju: Keju) -> None:
    export(keju, "arms", "eee")
    cases = {
        ("export", "runs/arms", "--format", "inspect", "-o", "a.json"): "3 logs",
        ("export", "runs/arms", "--format", "eee", "-o", "a.json"): "name a folder",
        ("export", "runs/arms", "--format", "eee", "--full-text"): "always has all texts",
        ("import", "out", "--protocol", "paper"): "--protocol has no effect",
        ("import", "out", "--datasets", "bbh"): "no exam 'bbh', only fresh_bbh",
        ("import", "out", "--from", "lm-eval"): "no log of lm-eval",
    }
    for argv, words in cases.items():
        ran = keju(*argv)
        assert (ran.code, words in ran.err) == (2, True), ran.err
        assert len(ran.err.splitlines()) == 1
    aggregate = next(Path("out").rglob("*.json"))
    document = json.loads(aggregate.read_text("utf-8"))
    for name, words in (("helm", "only files"), ("keju", "is damaged")):
        document["eval_library"] = {"name": name, "additional_details": {"keju": "{}"}}
        aggregate.write_text(json.dumps(document), "utf-8")
        ran = keju("import", str(aggregate))
        assert (ran.code, words in ran.err) == (2, True), ran.err
