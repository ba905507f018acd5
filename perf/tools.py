"""What a turn with a tool call costs the harness, against a plain request."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any
from unittest import mock

from perf.exam import bbh
from perf.measure import Row, alternate, in_child
from perf.nginx import REPLY, constant_endpoint
from perf.overhead import IN_FLIGHT, clock_of_session

ROUNDS = 3
TURNS = 5
"""Turns with calls of each episode; one more asks for the answer."""
SAMPLES, PLAIN_SAMPLES = 27 * 40, 27 * 200
LIMIT = 2.0
CALL = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
MESSAGE = {"role": "assistant", "content": "I look it up.", "tool_calls": [CALL]}
CALLING = REPLY | {"choices": [{"index": 0, "message": MESSAGE, "finish_reason": "tool_calls"}]}


def measure() -> Iterator[Row]:
    """CPU a request of both kinds, in turns."""
    exam = bbh()
    with constant_endpoint() as plain, constant_endpoint(CALLING) as calling:

        def turn() -> float:
            return _per_request(session, exam.settings | {"model": "constant", "api_url": calling})

        def request() -> float:
            return _per_request(
                plain_session, exam.settings | {"model": "constant", "api_url": plain}
            )

        sides = alternate(ROUNDS, turn, request)
    yield Row(
        f"tools: CPU a turn with a call, {TURNS + 1} turns, {IN_FLIGHT} in flight",
        f"{sides.keju * 1e6:.0f} µs",
        f"{LIMIT:g}x of {sides.peer * 1e6:.0f} µs plain",
        sides.ratio,
        sides.ratio <= LIMIT,
    )


def _per_request(function: Any, settings: dict[str, Any]) -> float:
    usage = in_child(function, settings=settings)
    return float(usage.value["seconds"] / usage.value["requests"])


def plain_session(settings: dict[str, Any]) -> dict[str, float]:
    """Requests without tools."""
    return _run(settings | {"total": PLAIN_SAMPLES})


def session(settings: dict[str, Any]) -> dict[str, float]:
    """Episodes of a model that calls a tool in every turn; the tool itself costs nothing."""
    from keju.solvers import tool_setup
    from keju.solvers.toolbox import Toolbox, ToolResult, ToolSource
    from keju.types import Sample, Tool

    parameters = {"type": "object", "properties": {"what": {"type": "string"}}}
    tools = tuple(Tool(name, "Look something up.", parameters) for name in ("look", "read", "ask"))

    class Box(Toolbox):
        async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
            return ToolResult("What was found is of no use. " * 8)

    Box.tools = tools

    class Source(ToolSource):
        @asynccontextmanager
        async def episode(self, sample: Sample, epoch: int) -> AsyncIterator[Toolbox]:
            yield Box()

    Source.tools = tools
    with mock.patch.object(tool_setup, "arm_sources", return_value=[Source()]):
        acting = {"arms": [{"name": "acts", "tools": ["python"]}], "total": SAMPLES}
        return _run(settings | acting | {"agent": {"max_iterations": TURNS}})


def _run(settings: dict[str, Any]) -> dict[str, float]:
    from keju import task
    from keju.config import TaskConfig

    with tempfile.TemporaryDirectory() as folder, clock_of_session() as timings:
        config = TaskConfig(**settings, work_dir=folder, eval_batch_size=IN_FLIGHT)
        finished = task.run_exams(config, report=False)
    assert finished.exit_code == 0, finished.message
    (entry,) = finished.document["benchmarks"]
    return {"seconds": timings[0], "requests": entry["usage"]["requests"]}
