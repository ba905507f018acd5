"""Tools and models that act, for tests: a source made of Python functions, and a scripted endpoint.

`Functions` is a `ToolSource`; `scripted` makes the answers of an endpoint's `Plan` out of a function
that sees what the model sees.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from keju.solvers.toolbox import Toolbox, ToolResult, ToolSource
from keju.types import Sample, Tool
from tests.support.replies import EndpointRequest

Function = Callable[..., Any]
"""Takes the arguments of a call, and `sample` where it asks for it; gives a text or a ToolResult."""


class Functions(ToolSource):
    """Tools that are Python functions; a coroutine function may wait."""

    def __init__(
        self, functions: Mapping[str, Function], note: Callable[[], str | None] | None = None
    ) -> None:
        self.functions = functions
        self.note = note
        self.tools = tuple(
            Tool(name, function.__doc__ or "") for name, function in functions.items()
        )
        self.events: list[str] = []
        self.calls: Counter[str] = Counter()

    async def open(self) -> None:
        self.events.append("open")

    async def close(self) -> None:
        self.events.append("close")

    @asynccontextmanager
    async def episode(self, sample: Sample, epoch: int) -> AsyncIterator[Toolbox]:
        self.events.append(f"+{sample.id}")
        try:
            yield _Box(self, sample)
        finally:
            self.events.append(f"-{sample.id}")

    def facts(self) -> dict[str, Any]:
        return {"kind": "functions"}


class _Box(Toolbox):
    def __init__(self, source: Functions, sample: Sample) -> None:
        self._source, self._sample = source, sample
        self.tools = source.tools

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        self._source.calls[name] += 1
        function = self._source.functions[name]
        if "sample" in inspect.signature(function).parameters:
            arguments = arguments | {"sample": self._sample}
        result = function(**arguments)
        if inspect.isawaitable(result):
            result = await result
        return result if isinstance(result, ToolResult) else ToolResult(str(result))

    def note(self) -> str | None:
        return self._source.note() if self._source.note is not None else None


def calling(*calls: tuple[str, Any], text: str = "", first_number: int = 1) -> dict[str, Any]:
    """A message with tool calls: names and arguments, these as JSON text or as an object."""
    return {
        "message": {
            "role": "assistant",
            "content": text or None,
            "tool_calls": [
                {
                    "id": f"call_{number}",
                    "type": "function",
                    "function": {
                        "name": name,
                        "arguments": arguments
                        if isinstance(arguments, str)
                        else msgspec.json.encode(arguments).decode(),
                    },
                }
                for number, (name, arguments) in enumerate(calls, first_number)
            ],
        },
        "finish_reason": "tool_calls",
    }


def results_in(request: EndpointRequest) -> list[str]:
    """The results that a request carries, in order."""
    return [m["content"] for m in request.body["messages"] if m["role"] == "tool"]
