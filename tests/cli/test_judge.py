"""``keju judge`` and ``keju eval --judge``: flags, exit codes, and what stands in the folder."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from keju.benchmarks import registry
from keju.config import JudgeConfig
from tests.cli.conftest import Keju
from tests.support import open_exam
from tests.support.endpoint import FaultyEndpoint
from tests.support.open_exam import SIZE
from tests.support.replies import EndpointRequest, Plan

pytestmark = pytest.mark.slow

EXAM = ("--datasets", "demo", "--dataset-args", '{"demo": {"size": 2}}')
UNITS = 12


def grade(request: EndpointRequest) -> str:
    return "<grade>refused</grade>"


@pytest.fixture
def judge() -> Iterator[FaultyEndpoint]:
    with FaultyEndpoint(Plan(answers=grade, key="sk-judge-0123456789")) as running:
        yield running


def judge_flags(endpoint: FaultyEndpoint) -> tuple[str, ...]:
    return ("--model", "j", "--api-url", endpoint.url, "--api-key-var", "GRADER_KEY")


def test_a_stored_run_is_judged_and_the_judge_is_remembered(
    keju: Keju, judge: FaultyEndpoint, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GRADER_KEY", "sk-judge-0123456789")
    assert keju("eval", "-m", "scripted", *EXAM, "--run-id", "r", "-q", "--no-report").code == 0
    ran = keju("judge", "r", *judge_flags(judge), "--strategy", "llm", "--json", "-q")
    assert ran.code == 0
    entry = ran.json["benchmarks"][0]
    assert entry["outcomes"]["refused"] == UNITS
    assert entry["judge"]["judged"] == UNITS
    assert judge.stats.requests == UNITS + 1
    assert "refused" in (tmp_path / "runs" / "r" / "report.html").read_text()
    remembered = keju("judge", "r", "--json", "-q")
    assert remembered.json["benchmarks"][0]["outcomes"] == entry["outcomes"]
    assert judge.stats.requests == UNITS + 1
    rule = keju("judge", "r", "--strategy", "rule", "--json", "-q")
    assert rule.json["benchmarks"][0]["outcomes"]["refused"] == 0
    for path in (tmp_path / "runs" / "r").iterdir():
        assert "sk-judge" not in path.read_text()


def test_settings_as_json_are_laid_over_and_flags_go_first(
    keju: Keju, judge: FaultyEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRADER_KEY", "sk-judge-0123456789")
    keju("eval", "-m", "scripted", *EXAM, "--run-id", "r", "-q", "--no-report")
    settings = json.dumps({"model": "other", "strategy": "llm", "repeats": 2})
    ran = keju(
        "judge", "r", "--judge", settings, *judge_flags(judge), "--no-report", "--json", "-q"
    )
    entry = ran.json["benchmarks"][0]
    assert (entry["judge"]["model"], entry["judge"]["repeats"]) == ("j", 2)
    assert judge.stats.requests == 2 * UNITS + 1


def test_what_cannot_be_done_is_said_in_one_line(keju: Keju, judge: FaultyEndpoint) -> None:
    keju("eval", "-m", "scripted", *EXAM, "--run-id", "r", "-q", "--no-report")
    cases = {
        ("judge", "nothing"): (2, "no run 'nothing'"),
        ("judge", "r"): (2, "no judge is named"),
        ("judge", "r", "--strategy", "llm"): (2, "'judge.model' is required"),
        ("judge", "r", "--model", "j"): (2, "judge: model 'j' needs the address"),
        ("judge", "r", "--judge", '{"model": "j", "stategy": "llm"}'): (2, "strategy"),
        ("judge", "r", *judge_flags(judge)): (5, "GRADER_KEY"),
    }
    for argv, (code, words) in cases.items():
        ran = keju(*argv)
        assert ran.code == code, argv
        assert words in ran.err, argv
        assert len(re.findall("keju: error", ran.err)) == 1


def test_a_named_judge_is_asked_after_a_grading_by_rule(
    keju: Keju, judge: FaultyEndpoint, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GRADER_KEY", "sk-judge-0123456789")
    keju("eval", "-m", "scripted", *EXAM, "--run-id", "r", "-q", "--no-report")
    with_body = '{"strategy": "llm", "generation_config": {"extra_body": {"mark": 1}}}'
    assert (
        keju("judge", "r", *judge_flags(judge), "--judge", with_body, "-q", "--no-report").code == 0
    )
    assert judge.last_body["mark"] == 1
    for model in ("j2", "j2"):
        assert keju("judge", "r", "--strategy", "rule", "-q", "--no-report").code == 0
        ran = keju("judge", "r", "--model", model, "-q", "--no-report", "--json")
        assert ran.code == 0, ran.err
        assert ran.json["benchmarks"][0]["judge"]["strategy"] == "llm_recall"
    assert judge.last_body["model"] == "j2"
    assert "mark" not in judge.last_body
    conflicting = keju("judge", "r", "--strategy", "rule", "--model", "j3")
    assert conflicting.code == 2
    assert "strategy 'rule' asks no judge" in conflicting.err


def test_a_key_in_place_of_its_variable_reaches_no_file_and_no_line(
    keju: Keju, judge: FaultyEndpoint, tmp_path: Path
) -> None:
    keju("eval", "-m", "scripted", *EXAM, "--run-id", "r", "-q", "--no-report")
    ran = keju("judge", "r", *judge_flags(judge)[:-1], "sk-proj-MARKKEY999")
    assert ran.code == 2
    assert "api_key_var is the name of an environment variable" in ran.err
    assert "MARKKEY" not in ran.err + ran.out
    for path in (tmp_path / "runs" / "r").iterdir():
        assert "MARKKEY" not in path.read_text()


def test_a_dry_run_refuses_a_judge_that_cannot_be_made(keju: Keju) -> None:
    ran = keju("eval", "-m", "scripted", *EXAM, "--judge", "model=j", "--dry-run")
    assert ran.code == 2
    assert "judge: model 'j' needs the address" in ran.err


def test_an_exam_with_a_judge_and_what_is_left_to_do(
    keju: Keju, judge: FaultyEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRADER_KEY", "sk-judge-0123456789")
    settings = {
        "model": "j", "api_url": judge.url, "api_key_var": "GRADER_KEY", "strategy": "llm",
        "budget": {"requests": 5}, "eval_batch_size": 1,
    }  # fmt: skip
    argv = ("eval", "-m", "scripted", *EXAM, "--run-id", "r", "-q", "--no-report")
    ran = keju(*argv, "--judge", json.dumps(settings), "--json")
    assert ran.code == 4
    assert "5 requests is used up" in ran.err
    assert "--resume" in ran.err
    assert ran.json["benchmarks"][0]["outcomes"]["ungraded"] == UNITS - 5
    remaining = keju("judge", "r", "--judge", '{"budget": {"requests": 50}}', "--json", "-q")
    assert remaining.code == 0
    assert remaining.json["benchmarks"][0]["judge"]["judged"] == UNITS


def test_the_table_says_who_judged_what_and_at_which_cost(
    keju: Keju, judge: FaultyEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRADER_KEY", "sk-judge-0123456789")
    keju("eval", "-m", "scripted", *EXAM, "--run-id", "r", "-q", "--no-report")
    price = '{"strategy": "llm", "repeats": 2, "price": {"input": 1, "output": 1}}'
    ran = keju("judge", "r", *judge_flags(judge), "--judge", price, "--no-report", "-q")
    assert f"judged by j: answers {UNITS}, without a verdict 0, cost 0.0" in ran.out
    other_judge = ("--model", "j2", "--strategy", "llm", "--no-report", "--json", "-q")
    assert "repeats" not in keju("judge", "r", *other_judge).json["benchmarks"][0]["judge"]


def test_flags_are_laid_over_the_judge_of_the_exam(
    keju: Keju, judge: FaultyEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(registry.BUILT_IN, "open", ("tests.support.open_exam:OPEN",))
    judge_config = JudgeConfig(model="j", api_url=judge.url, api_key_var="GRADER_KEY")
    monkeypatch.setattr(open_exam, "JUDGE", judge_config)
    monkeypatch.setenv("GRADER_KEY", "sk-judge-0123456789")
    with FaultyEndpoint(Plan(answers="prose")) as candidate:
        run_flags = ("--api-url", candidate.url, "--datasets", "open", "--run-id", "r")
        assert keju("eval", "-m", "m", *run_flags, "-q", "--no-report").code == 0
    ran = keju("judge", "r", "--repeats", "3", "--no-report", "--json", "-q")
    assert ran.code == 0, ran.err
    judge_entry = ran.json["benchmarks"][0]["judge"]
    assert (judge_entry["model"], judge_entry["repeats"], judge_entry["judged"]) == ("j", 3, SIZE)


@pytest.mark.parametrize(
    ("grade_word", "worth"), [("incorrect", 0), ("refused", 0), ("correct", 1)]
)
def test_a_judge_does_not_hide_that_replies_were_cut_off(
    keju: Keju, grade_word: str, worth: float
) -> None:
    def speak(request: EndpointRequest) -> str | dict[str, Any]:
        if request.body["model"] == "j":
            return f"<grade>{grade_word}</grade>"
        return {"message": {"content": "Well, let me think"}, "finish_reason": "length"}

    with FaultyEndpoint(Plan(answers=speak)) as endpoint:
        words = ("eval", "-m", "m", "--api-url", endpoint.url, *EXAM, "--run-id", "r", "-q")
        assert keju(*words, "--no-report").code == 0
        ran = keju("judge", "r", "--model", "j", "--strategy", "llm", "--json", "-q", "--no-report")
    entry = ran.json["benchmarks"][0]
    assert entry["judge"]["judged"] == UNITS
    assert entry["outcomes"]["truncated"] == UNITS
    assert entry["metrics"]["accuracy"]["value"] == worth


def test_a_judge_that_takes_the_place_of_a_reader_is_told(
    keju: Keju, judge: FaultyEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The published accuracy of a closed exam stays beside the judge's; a reply names its judge."""
    monkeypatch.setenv("GRADER_KEY", "sk-judge-0123456789")
    argv = ("eval", "-m", "scripted", *EXAM, "--run-id", "r", "-q", "--no-report", "--json")
    before = keju(*argv).json["benchmarks"][0]
    ran = keju(
        "judge", "r", *judge_flags(judge), "--strategy", "llm", "--json", "-q", "--no-report"
    )
    entry = ran.json["benchmarks"][0]
    notice_values = {notice["code"]: notice["values"] for notice in entry["notices"]}
    right = before["outcomes"]["correct"]
    assert notice_values["judge_overrules_reader"] == {
        "reader": before["reader"], "raised": 0, "lowered": right, "whole": UNITS,
    }  # fmt: skip
    alone = entry["metrics"]["accuracy_without_judge"]
    assert alone["value"] == before["metrics"]["accuracy"]["value"] == right / UNITS
    assert entry["metrics"]["accuracy"]["value"] == 0
    judge_output = keju("judge", "r", "-q", "--no-report").out
    assert f"it raises 0 and lowers {right} of the {UNITS} scores" in judge_output
    ids = [json.loads(line)["id"] for line in Path("runs/r/records.jsonl").read_text().splitlines()]
    sample_output = keju("show", "r", "--sample", ids[0])
    assert "refused, score 0 by the judge 'j'" in sample_output.out
    assert keju("show", "r", "--sample", ids[0], "--json").json["judge"] == "j"


def test_a_judge_whose_model_changes_is_told(keju: Keju) -> None:
    keju("eval", "-m", "scripted", *EXAM, "--run-id", "r", "-q", "--no-report")
    reply_plan = Plan(answers="<grade>correct</grade>", model_name="j-1")
    less = {"strategy": "llm", "budget": {"requests": 5}, "eval_batch_size": 1}
    with FaultyEndpoint(reply_plan) as first_judge:
        argv = ("--model", "j", "--api-url", first_judge.url, "--judge", json.dumps(less))
        assert keju("judge", "r", *argv, "-q", "--no-report").code == 4
    with FaultyEndpoint(replace(reply_plan, model_name="j-2")) as second_judge:
        larger_budget = json.dumps({"strategy": "llm", "budget": {"requests": 99}})
        argv = ("--model", "j", "--api-url", second_judge.url, "--judge", larger_budget)
        ran = keju("judge", "r", *argv, "--json", "-q", "--no-report")
    notice_values = {n["code"]: n["values"] for n in ran.json["benchmarks"][0]["notices"]}
    counts = f"j-2 ({UNITS - 5}), j-1 (5)"
    assert notice_values["judge_reported_models"] == {"judge": "j", "models": 2, "counts": counts}
