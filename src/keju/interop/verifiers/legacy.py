"""Keju's exams for verifiers up to 0.3, which loads environments with ``load_environment``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import verifiers as vf
from datasets import Dataset

from keju.answers.segments import as_reply
from keju.benchmarks import registry
from keju.errors import ConfigError, KejuError
from keju.interop.verifiers.exam import (
    UNANSWERED,
    ExamSpec,
    ExternalExam,
    metrics_of,
    open_exam,
)
from keju.interop.verifiers.tools import CALCULATOR, choose_tools
from keju.types import OUTCOMES, Reading, Reply

MAX_TURNS = 10
READINGS = "keju_readings"
"""The key of the rollout's state with the readings of its reply."""
Loader = Callable[..., Any]


def calculator(expression: str) -> str:
    """Compute the exact value of an arithmetic expression.

    Args:
        expression: Numbers, brackets and + - * / // % **, e.g. (3 + 4.5) * 2 ** 10
    """
    return CALCULATOR.call({CALCULATOR.argument: expression}).text


FUNCTIONS = {CALCULATOR.name: calculator}
"""Tools as functions: the model gets their signatures and docstrings."""


def loader(benchmark: str) -> Loader:
    """Return the ``load_environment`` of one benchmark."""

    def load_environment(
        data_dir: str | None = None,
        limit: int | float | None = None,
        seed: int = 42,
        tools: list[str] | None = None,
        max_turns: int = MAX_TURNS,
        **settings: Any,
    ) -> vf.Environment:
        """Load the exam. `settings` are the benchmark's settings in the form of ``dataset_args``.

        `max_turns` is the most turns of the assistant with `tools`. Invalid settings end the
        command with one line, because verifiers turns any ordinary exception into a traceback.
        """
        if "seed" in registry.get(benchmark).Args.model_fields:
            settings.setdefault("seed", seed)
        spec = ExamSpec(benchmark, settings, data_dir, limit, seed)
        try:
            functions = [FUNCTIONS[tool.name] for tool in choose_tools(tools or [])]
            if max_turns < 1 or (max_turns != MAX_TURNS and not tools):
                raise ConfigError("environment_max_turns")
            exam = open_exam(spec)
            if exam.exam.notebook is not None:
                raise ConfigError("environment_agentic", name=benchmark)
            return _make_environment(exam, functions, max_turns)
        except KejuError as error:
            raise SystemExit(f"keju: error: {error}") from None

    return load_environment


def _make_environment(
    exam: ExternalExam, tools: list[Callable[..., str]], turns: int
) -> vf.Environment:
    rows = [
        {
            "prompt": [{"role": m.role, "content": m.content} for m in exam.messages(sample)],
            "answer": sample.target,
            "info": {"id": sample.id, "subset": sample.subset},
        }
        for sample in exam.exam.samples
    ]
    common = {
        "eval_dataset": Dataset.from_list(rows),
        "rubric": ExamRubric([reader.name for reader in exam.readers[1:]]),
        "sampling_args": dict(exam.sampling),
    }
    if tools:
        return ToolExamEnv(exam, tools=tools, max_turns=turns, **common)
    return SingleTurnExamEnv(exam, **common)


class _GradedEnv:
    """Grades a rollout at its end. A reply that cannot be graded is an error of the rollout."""

    def __init__(self, exam: ExternalExam, **settings: Any) -> None:
        super().__init__(**settings)
        self._exam = exam

    @vf.cleanup
    async def grade_reply(self, state: vf.State) -> None:
        """Store the readings in the state, for the rubric."""
        if state.get("error") is not None:
            return
        try:
            state[READINGS] = await self._exam.grade(state["info"]["id"], _find_reply(state))
        except KejuError as error:
            state["error"] = vf.Error(str(error))

    @vf.teardown
    async def close_connections(self) -> None:
        """Close the connections to the judge."""
        await self._exam.close()


class SingleTurnExamEnv(_GradedEnv, vf.SingleTurnEnv):
    """One question, one reply."""


class ToolExamEnv(_GradedEnv, vf.ToolEnv):
    """Turns with tools until there is an answer in words."""


class ExamRubric(vf.Rubric):
    """The score by the protocol's reader as the reward, and the same metrics as the tasksets."""

    def __init__(self, secondary_readers: list[str]) -> None:
        super().__init__()
        self.add_reward_func(score_by_protocol)
        names = [f"outcome_{name}" for name in OUTCOMES]
        for name in (*names, *(f"{reader}_score" for reader in secondary_readers)):
            self.add_metric(_make_metric(name))


def score_by_protocol(state: vf.State) -> float:
    """Return the score in [0, 1] of a graded rollout."""
    readings: tuple[Reading, ...] | None = state.get(READINGS)
    return readings[0].score.value if readings else 0.0


def _make_metric(name: str) -> Callable[..., float]:
    def metric(state: vf.State) -> float:
        readings = state.get(READINGS)
        return metrics_of(readings).get(name, 0.0) if readings else 0.0

    metric.__name__ = name
    return metric


def _find_reply(state: vf.State) -> Reply:
    """Return the last message of the rollout, or `UNANSWERED` if it has no answer."""
    steps = state["trajectory"]
    if not steps:
        return Reply()
    message = steps[-1]["response"].message
    if message.tool_calls:
        return UNANSWERED
    content = message.content if isinstance(message.content, str) else None
    return as_reply(
        content or "",
        reasoning=(message.reasoning_content or "",),
        finish=message.finish_reason or "",
    )
