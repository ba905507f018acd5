"""Judging a run again: what stays until it is done, and who is named when it fails."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from keju.benchmarks import registry
from keju.errors import EndpointError
from keju.journal import VERDICTS
from keju.rejudge import complete_settings, judge_run
from keju.task import sit
from tests.support.endpoint import FaultyEndpoint
from tests.support.judged import JUDGED, KEY, RIGHT, both, candidate, config, entry, verdict
from tests.support.open_exam import OpenExam
from tests.support.replies import Asked, Plan


@pytest.fixture(autouse=True)
def open_exam(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.ROOMS, "open", "tests.support.open_exam:OpenBenchmark")


@pytest.fixture
def endpoint() -> Iterator[FaultyEndpoint]:
    with FaultyEndpoint(Plan(answers=both)) as running:
        yield running


def stored(folder: Path) -> dict[str, bytes]:
    changing = (VERDICTS, "manifest.json")
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.name not in changing}


def test_a_grading_that_stops_leaves_complete_results_in_force(
    endpoint: FaultyEndpoint, tmp_path: Path
) -> None:
    run = tmp_path / "r"
    sit(config(tmp_path, endpoint.url, {}))
    before, manifest = stored(run), json.loads((run / "manifest.json").read_text())
    with FaultyEndpoint(Plan(answers="<grade>refused</grade>")) as other:
        judge: dict[str, Any] = {"model": "j2", "api_url": other.url, "eval_batch_size": 1}
        short = judge | {"budget": {"requests": 5}}
        stopped = judge_run(config(tmp_path, endpoint.url, short), run)
        assert stopped.exit_code == 4
        assert "the judge 'j2': " in stopped.message
        assert "the earlier results stay" in stopped.message
        assert '"j2"' in stopped.resume_command
        assert entry(stopped.results)["outcomes"]["correct"] == RIGHT
        assert stored(run) == before
        now = json.loads((run / "manifest.json").read_text())
        assert (now["config"], now["complete"]) == (manifest["config"], True)
        assert now["judges"]["j2"]["sessions"][0]["requests"] == 5
        done = judge_run(config(tmp_path, endpoint.url, judge), run)
        assert other.stats.requests == JUDGED + 2
    assert done.exit_code == 0
    assert entry(done.results)["outcomes"]["refused"] == JUDGED
    now = json.loads((run / "manifest.json").read_text())
    assert (now["config"]["judge"]["model"], now["complete"]) == ("j2", True)


def test_a_first_grading_that_stops_leaves_what_it_has(
    endpoint: FaultyEndpoint, tmp_path: Path
) -> None:
    sit(config(tmp_path, endpoint.url, None))
    judge = {"budget": {"requests": 5}, "eval_batch_size": 1}
    stopped = judge_run(config(tmp_path, endpoint.url, judge), tmp_path / "r")
    assert stopped.exit_code == 4
    assert entry(stopped.results)["judge"]["judged"] == 5
    assert json.loads((tmp_path / "r" / "results.json").read_text())["complete"] is False


def test_what_was_set_up_for_one_judge_does_not_pass_to_another(tmp_path: Path) -> None:
    own = {"second": "k", "repeats": 3, "budget": {"requests": 5, "tokens": 9}}
    task = config(tmp_path, "http://127.0.0.1:9/v1", own)
    assert complete_settings(task, {"strategy": "llm"}) == {"strategy": "llm"}
    assert complete_settings(task, {"model": "judge"}) == {"model": "judge"}
    nothing = dict.fromkeys(("requests", "tokens", "cost", "seconds"))
    fresh = {"second": None, "repeats": 1, "labelled": None, "budget": nothing}
    assert complete_settings(task, {"model": "j2"}) == fresh | {"model": "j2"}
    given = {"model": "j2", "repeats": 2, "budget": {"tokens": 7}}
    assert complete_settings(task, given) == fresh | given | {"budget": nothing | {"tokens": 7}}


def test_settings_are_laid_over_the_judge_that_the_exam_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "http://127.0.0.1:9/v1"
    own = config(tmp_path, url, {}).judge
    task = config(tmp_path, url, None)
    assert complete_settings(task, {"repeats": 3}) == {"repeats": 3}
    monkeypatch.setattr(OpenExam, "judge", own)
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
        sit(config(tmp_path, good.url, {"api_url": judge.url}))
    told = str(caught.value)
    assert f"set {KEY}" in told
    assert "OPENAI_API_KEY" not in told
    assert "--api-key" not in told


def test_a_failure_of_the_second_judge_names_it(tmp_path: Path) -> None:
    def answers(asked: Asked) -> str:
        return candidate(asked) if asked.body["model"] == "m" else verdict(asked)

    with FaultyEndpoint(Plan(answers=answers)) as endpoint:
        short = {"second": "k", "budget": {"requests": JUDGED + 3}, "eval_batch_size": 1}
        stopped = sit(config(tmp_path, endpoint.url, short))
    assert stopped.exit_code == 4
    assert stopped.message.startswith("the second judge 'k': ")
