"""Run exams as environments of verifiers and compare rewards with outcomes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from keju.types import Score
from tests.bridges.conftest import Ran
from tests.support.replies import EndpointRequest

REWARD = "score_by_protocol"


def flags(data_dir: Path, **settings: Any) -> list[str]:
    """Settings as ``--env.taskset.*`` flags."""
    flag_values = {"data_dir": str(data_dir), **settings}
    pairs = [(f"--env.taskset.{k.replace('_', '-')}", v) for k, v in flag_values.items()]
    return [part for k, v in pairs for part in (k, v if isinstance(v, str) else json.dumps(v))]


def outcome_of(trace: dict[str, Any]) -> str:
    metrics: dict[str, float] = trace["metrics"]
    (outcome,) = (
        name.removeprefix("outcome_")
        for name, value in metrics.items()
        if name.startswith("outcome_") and value
    )
    return outcome


def graded(ran: Ran) -> dict[str, tuple[float, str]]:
    """Reward and outcome of each question."""
    traces = ran.traces()
    return {i: (t["rewards"][REWARD]["score"], outcome_of(t)) for i, t in traces.items()}


def assert_same(ran: Ran, expected: dict[str, Score]) -> None:
    """Row by row: the same questions, rewards and outcomes."""
    assert ran.code == 0, ran.out[-3000:]
    assert graded(ran) == {i: (score.value, score.outcome) for i, score in expected.items()}


PROMPT_OF_SUM = "7 * (8 - 3) / 4"


def with_calculator(request: EndpointRequest) -> str | dict[str, Any]:
    """Calls the calculator once and answers with what it said."""
    results = [m["content"] for m in request.body["messages"] if m["role"] == "tool"]
    return f"So the answer is {results[-1]}." if results else tool_call(PROMPT_OF_SUM)


def tool_call(expression: str) -> dict[str, Any]:
    function = {"name": "calculator", "arguments": json.dumps({"expression": expression})}
    call = {"id": "call-1", "type": "function", "function": function}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return {"message": message, "finish_reason": "tool_calls"}
