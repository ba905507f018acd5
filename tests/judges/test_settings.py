"""Judging a run again: what stays until it is done, and who is named when it fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from keju.benchmarks import registry
from keju.config import JudgeConfig
from keju.config.load import merge
from keju.errors import ConfigError, EndpointError
from keju.judges.judge import complete_settings
from keju.runs.journal import VERDICTS
from keju.stored_tasks import judge_run
from keju.task import run_exams
from tests.support import open_exam
from tests.support.endpoint import FaultyEndpoint
from tests.support.judged import (
    JUDGED,
    KEY,
    RIGHT,
    benchmark_entry,
    candidate,
    candidate_or_verdict,
    judged_config,
    verdict,
)
from tests.support.replies import EndpointRequest, Plan


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.BUILT_IN, "open", ("tests.support.open_exam:OPEN",))


@pytest.fixture
def plan() -> Plan:
    """How the endpoint answers."""
    return Plan(answers=candidate_or_verdict)


def stored(folder: Path) -> dict[str, bytes]:
    changing = (VERDICTS, "manifest.json")
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.name not in changing}


def test_a_grading_that_stops_leaves_complete_results_in_force(
    endpoint: FaultyEndpoint, tmp_path: Path
) -> None:
    run = tmp_path / "r"
    run_exams(judged_config(tmp_path, endpoint.url, {}))
    before, manifest = stored(run), json.loads((run / "manifest.json").read_text())
    with FaultyEndpoint(Plan(answers="<grade>refused</grade>")) as other_endpoint:
        judge: dict[str, Any] = {"model": "j2", "api_url": other_endpoint.url, "eval_batch_size": 1}
        short = judge | {"budget": {"requests": 5}}
        stopped = judge_run(judged_config(tmp_path, endpoint.url, short), run)
        assert stopped.exit_code == 4
        assert "the judge 'j2': " in stopped.message
        assert "the earlier results stay" in stopped.message
        assert '"j2"' in stopped.resume_command
        assert benchmark_entry(stopped.document)["outcomes"]["correct"] == RIGHT
        assert stored(run) == before
        manifest_now = json.loads((run / "manifest.json").read_text())
        assert (manifest_now["config"], manifest_now["complete"]) == (manifest["config"], True)
        assert manifest_now["judges"]["j2"]["sessions"][0]["requests"] == 5
        finished = judge_run(judged_config(tmp_path, endpoint.url, judge), run)
        assert other_endpoint.stats.requests == JUDGED + 2
    assert finished.exit_code == 0
    assert benchmark_entry(finished.document)["outcomes"]["refused"] == JUDGED
    manifest_now = json.loads((run / "manifest.json").read_text())
    assert (manifest_now["graded_by"]["model"], manifest_now["complete"]) == ("j2", True)
    assert manifest_now["config"]["judge"]["model"] == "judge"


def test_a_first_grading_that_stops_leaves_what_it_has(
    endpoint: FaultyEndpoint, tmp_path: Path
) -> None:
    run_exams(judged_config(tmp_path, endpoint.url, None))
    judge = {"budget": {"requests": 5}, "eval_batch_size": 1}
    stopped = judge_run(judged_config(tmp_path, endpoint.url, judge), tmp_path / "r")
    assert stopped.exit_code == 4
    assert benchmark_entry(stopped.document)["judge"]["judged"] == 5
    assert json.loads((tmp_path / "r" / "results.json").read_text())["complete"] is False


def test_what_was_set_up_for_one_judge_does_not_pass_to_another(tmp_path: Path) -> None:
    first_judge = {
        "second": "k", "repeats": 3, "budget": {"requests": 5, "tokens": 9}, "strategy": "llm",
        "continuous": True, "price": {"input": 1.0, "output": 2.0}, "api_url": "http://there/v1",
        "generation_config": {"temperature": 1.0, "extra_body": {"x": 1}}, "attempts": 2,
    }  # fmt: skip
    task = judged_config(tmp_path, "http://127.0.0.1:9/v1", first_judge)
    assert task.judge is not None
    assert complete_settings(task, {"strategy": "llm"}) == {"strategy": "llm"}
    assert complete_settings(task, {"model": "judge"}) == {"model": "judge"}

    def laid_over(judge_settings: dict[str, Any]) -> JudgeConfig:
        lower_settings = {"judge": task.judge.model_dump() if task.judge is not None else None}
        return JudgeConfig(
            **merge(lower_settings, {"judge": complete_settings(task, judge_settings)})["judge"]
        )

    kept_settings: dict[str, Any] = {
        "api_url": "http://there/v1",
        "api_key_var": KEY,
        "attempts": 2,
    }
    assert laid_over({"model": "j2"}) == JudgeConfig(model="j2", **kept_settings)
    changed_settings: dict[str, Any] = {
        "model": "j2", "repeats": 2, "budget": {"tokens": 7}, "price": {"input": 5.0},
        "generation-config": {"max_new_tokens": 9},
    }  # fmt: skip
    assert laid_over(changed_settings) == JudgeConfig(**changed_settings, **kept_settings)
    with pytest.raises(ConfigError, match=r"judge\.price"):
        laid_over({"model": "j2", "price": {"input": -1}})
    with pytest.raises(ConfigError, match="budget"):
        laid_over({"model": "j2", "budget": 5})


def test_a_judge_that_is_named_is_asked(tmp_path: Path) -> None:
    task = judged_config(tmp_path, "http://127.0.0.1:9/v1", {"strategy": "rule"})
    for model in ("judge", "j2"):
        assert complete_settings(task, {"model": model})["strategy"] == "llm_recall"
        assert complete_settings(task, {"model": model, "strategy": "llm"})["strategy"] == "llm"
        with pytest.raises(ConfigError, match="asks no judge"):
            complete_settings(task, {"model": model, "strategy": "rule"})
    assert complete_settings(task, {"repeats": 2}) == {"repeats": 2}


def test_an_address_is_told_by_the_judges_own_setting(
    endpoint: FaultyEndpoint, tmp_path: Path
) -> None:
    with pytest.raises(EndpointError) as caught:
        run_exams(judged_config(tmp_path, endpoint.url, {"api_url": "http://127.0.0.1:9/v1"}))
    assert "check judge.api_url (or llm_judge_base_url)" in str(caught.value)
    assert "--api-url" not in str(caught.value)


def test_a_variable_that_is_named_and_not_set_is_told_in_the_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(KEY, raising=False)
    plan = Plan(answers=verdict, key="sk-right-judge-key-654321")
    with (
        FaultyEndpoint(Plan(answers=candidate)) as good,
        FaultyEndpoint(plan) as judge,
        pytest.raises(EndpointError) as caught,
    ):
        run_exams(judged_config(tmp_path, good.url, {"api_url": judge.url}))
    assert f"set {KEY} (the judge's api_key_var names {KEY}, which is not set" in str(caught.value)


def test_settings_are_laid_over_the_judge_that_the_exam_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "http://127.0.0.1:9/v1"
    exam_judge = judged_config(tmp_path, url, {}).judge
    task = judged_config(tmp_path, url, None)
    assert complete_settings(task, {"repeats": 3}) == {"repeats": 3}
    monkeypatch.setattr(open_exam, "JUDGE", exam_judge)
    expected = {"model": "judge", "api_key_var": KEY, "repeats": 3}
    assert complete_settings(task, {"repeats": 3}) == expected
    assert complete_settings(task, {"model": "j2"}) == {"model": "j2"}


def test_a_refused_key_is_told_by_the_variable_of_the_judge_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY, "sk-wrong-judge-key-123456")
    plan = Plan(answers=verdict, key="sk-right-judge-key-654321")
    with (
        FaultyEndpoint(Plan(answers=candidate)) as good,
        FaultyEndpoint(plan) as judge,
        pytest.raises(EndpointError) as caught,
    ):
        run_exams(judged_config(tmp_path, good.url, {"api_url": judge.url}))
    message = str(caught.value)
    assert f"set {KEY}" in message
    assert "OPENAI_API_KEY" not in message
    assert "--api-key" not in message


def test_a_failure_of_the_second_judge_names_it(tmp_path: Path) -> None:
    def answers(request: EndpointRequest) -> str:
        return candidate(request) if request.body["model"] == "m" else verdict(request)

    with FaultyEndpoint(Plan(answers=answers)) as endpoint:
        short = {"second": "k", "budget": {"requests": JUDGED + 3}, "eval_batch_size": 1}
        stopped = run_exams(judged_config(tmp_path, endpoint.url, short))
    assert stopped.exit_code == 4
    assert stopped.message.startswith("the second judge 'k': ")


def test_a_resumed_run_keeps_the_judge_that_graded_it(
    endpoint: FaultyEndpoint, tmp_path: Path
) -> None:
    run_exams(judged_config(tmp_path, endpoint.url, None))
    judged = judge_run(judged_config(tmp_path, endpoint.url, {}), tmp_path / "r")
    requests = endpoint.stats.requests
    resumed = run_exams(judged_config(tmp_path, endpoint.url, None, resume=True))
    assert resumed.exit_code == 0
    assert benchmark_entry(resumed.document)["judge"]["judged"] == JUDGED
    assert (
        benchmark_entry(resumed.document)["outcomes"]
        == benchmark_entry(judged.document)["outcomes"]
    )
    assert endpoint.stats.requests == requests


def test_a_key_does_not_pass_to_another_address(tmp_path: Path) -> None:
    task = judged_config(tmp_path, "http://127.0.0.1:9/v1", {"api_url": "http://127.0.0.1:8/v1"})
    first_address, elsewhere = (
        {"api_url": "http://127.0.0.1:8/v1"},
        {"api_url": "http://127.0.0.2:8/v1"},
    )
    assert complete_settings(task, first_address) == first_address
    assert complete_settings(task, elsewhere) == {"api_key_var": None} | elsewhere
    with_key_variable = elsewhere | {"api_key_var": "OTHER_KEY"}
    assert complete_settings(task, with_key_variable) == with_key_variable
