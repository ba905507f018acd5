"""Exams with replies from elsewhere: no verifiers is needed to test what is asked and graded."""

from __future__ import annotations

import asyncio
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from keju.answers.segments import as_reply
from keju.errors import ConfigError, EndpointError, MissingExtra
from keju.interop import verifiers
from keju.interop.verifiers.exam import (
    UNANSWERED,
    ExamSpec,
    RewardMissing,
    metrics_of,
    open_exam,
)
from keju.types import Fault, Reading, Reply
from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import Plan

pytestmark = pytest.mark.slow

DEMO = ExamSpec("demo", {"size": 3})


def readings_of(spec: ExamSpec, reply: Reply, place: int = 0) -> tuple[Reading, ...]:
    external = open_exam(spec)

    async def grade_in_session() -> tuple[Reading, ...]:
        try:
            return await external.grade(external.exam.samples[place].id, reply)
        finally:
            await external.close()

    return asyncio.run(grade_in_session())


def test_the_reward_is_the_score_of_the_headlines_reader() -> None:
    sample = open_exam(DEMO).exam.samples[0]
    right_reply = as_reply(f"<think>(Z)</think>So the answer is {sample.target}.", finish="stop")
    readings = readings_of(DEMO, right_reply)
    assert readings[0].score.value == 1.0
    assert metrics_of(readings)["outcome_correct"] == 1.0
    assert right_reply.reasoning == "(Z)"


def test_a_rollout_without_an_answer_is_truncated() -> None:
    metrics = metrics_of(readings_of(DEMO, UNANSWERED))
    assert metrics["outcome_truncated"] == 1.0
    assert sum(v for k, v in metrics.items() if k.startswith("outcome_")) == 1.0


def test_an_error_of_the_endpoint_has_no_reward() -> None:
    with pytest.raises(RewardMissing, match="no reply to grade: gone"):
        readings_of(DEMO, Reply(error=Fault("server", "gone")))


def test_an_exam_is_loaded_once() -> None:
    assert open_exam(DEMO) is open_exam(ExamSpec("demo", {"size": 3}))


@pytest.mark.parametrize(
    ("benchmark", "settings", "line"),
    [
        ("ceval", {"protocol": "tutorial"}, "compares log-probabilities"),
        ("ceval", {"split": "test"}, "published without answers"),
        ("mmlu_pro", {"protocol": "official"}, "environments only chat"),
        ("bbh", {"protocl": "paper"}, "unknown key 'protocl'"),
    ],
)
def test_what_an_environment_cannot_do_is_refused(
    data_dir: Path, benchmark: str, settings: dict[str, Any], line: str
) -> None:
    with pytest.raises(ConfigError, match=line):
        open_exam(ExamSpec(benchmark, settings, str(data_dir), 1))


OPEN = {"answer_mode": "open", "max_episodes": 40, "llm_judge_api_key_var": "JUDGE_KEY"}
UNDECIDED = as_reply("The reduction was seen in about half of all strains.", finish="stop")


def test_without_the_judges_key_open_answers_are_compared_exactly(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("JUDGE_KEY", raising=False)
    reading = readings_of(ExamSpec("bixbench", OPEN | {"seed": 1}, str(data_dir)), UNDECIDED)[0]
    assert (reading.score.outcome, reading.score.grader) == ("incorrect", "exact")
    assert "JUDGE_KEY is not set" in caplog.text


def test_undecided_answers_without_any_judge_are_no_zeros(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JUDGE_KEY", raising=False)
    spec = ExamSpec("bixbench", OPEN | {"no_judge": "ungraded"}, str(data_dir))
    with pytest.raises(RewardMissing, match="the rules cannot decide this answer"):
        readings_of(spec, UNDECIDED)


@pytest.mark.parametrize(
    ("judge_reply", "outcome", "value"),
    [("<grade>correct</grade>", "correct", 1.0), ("<grade>refused</grade>", "refused", 0.0)],
)
def test_a_judge_decides_what_no_rule_does(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, judge_reply: str, outcome: str, value: float
) -> None:
    monkeypatch.setenv("JUDGE_KEY", "judge-key-1234")
    with FaultyEndpoint(Plan(answers=judge_reply, key="judge-key-1234")) as judge:
        spec = ExamSpec("bixbench", OPEN | {"llm_judge_base_url": judge.url}, str(data_dir))
        reading = readings_of(spec, UNDECIDED)[0]
        assert judge.stats.requests == 1
    assert (reading.score.outcome, reading.score.value) == (outcome, value)
    assert reading.score.grader == "judge"


def test_a_judge_that_fails_raises(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_KEY", "judge-key-1234")
    with FaultyEndpoint(Plan(key="another")) as judge:
        spec = ExamSpec("bixbench", OPEN | {"llm_judge_base_url": judge.url}, str(data_dir))
        with pytest.raises(EndpointError, match="has no verdict on bixbench_") as raised:
            readings_of(spec, UNDECIDED)
    assert "judge-key-1234" not in str(raised.value)


def test_the_api_follows_the_installed_version(monkeypatch: pytest.MonkeyPatch) -> None:
    for version, expected in (
        ("0.3.1", False),
        ("0.4.0", True),
        ("0.4.0.dev3", True),
        ("1.2", True),
    ):
        monkeypatch.setattr(metadata, "version", {"verifiers": version}.__getitem__)
        assert verifiers.has_tasksets() is expected


def test_without_verifiers_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    with pytest.raises(MissingExtra, match=r"pip install 'keju\[verifiers\]'"):
        verifiers.has_tasksets()
