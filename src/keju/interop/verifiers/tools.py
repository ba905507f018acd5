"""Tools that a user gives a model inside an environment. None runs code or opens a file."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from keju.errors import ConfigError, did_you_mean
from keju.interop.verifiers.calculator import CalculatorError, calculate
from keju.solvers.toolbox import Toolbox, ToolResult, ToolSource
from keju.types import Sample, Tool


class FunctionTool(NamedTuple):
    """A tool with one text argument."""

    name: str
    description: str
    argument: str
    meaning: str
    """The description of the argument."""
    run: Callable[[str], str]

    @property
    def tool(self) -> Tool:
        """The tool's definition for the model."""
        argument = {"type": "string", "description": self.meaning}
        parameters = {
            "type": "object",
            "properties": {self.argument: argument},
            "required": [self.argument],
            "additionalProperties": False,
        }
        return Tool(self.name, self.description, parameters)

    def call(self, arguments: dict[str, Any]) -> ToolResult:
        """Return the result of a call. Invalid arguments also give a result."""
        value = arguments.get(self.argument)
        if not isinstance(value, str) or len(arguments) != 1:
            text = f"error: {self.name} takes one argument, the text '{self.argument}'"
            return ToolResult(text, "bad_arguments")
        try:
            return ToolResult(self.run(value))
        except CalculatorError as error:
            return ToolResult(f"error: {error}", "tool_error")


CALCULATOR = FunctionTool(
    "calculator",
    "Compute the exact value of an arithmetic expression.",
    "expression",
    "Numbers, brackets and + - * / // % **, e.g. (3 + 4.5) * 2 ** 10",
    calculate,
)
TOOLS = {function.name: function for function in (CALCULATOR,)}


def choose_tools(names: Sequence[str]) -> list[FunctionTool]:
    """Return the tools with these names; ConfigError names the nearest one for an unknown name."""
    for name in names:
        if name not in TOOLS:
            raise ConfigError("environment_unknown_tool", name=name, hint=did_you_mean(name, TOOLS))
    return [TOOLS[name] for name in dict.fromkeys(names)]


class FunctionTools(ToolSource):
    """Functions as the tools of every rollout."""

    def __init__(self, functions: Sequence[FunctionTool]) -> None:
        self._box = _FunctionToolbox(functions)
        self.tools = self._box.tools

    @asynccontextmanager
    async def episode(self, sample: Sample, epoch: int) -> AsyncIterator[Toolbox]:
        """Yield the same tools for every rollout: they have no state."""
        yield self._box


class _FunctionToolbox(Toolbox):
    def __init__(self, functions: Sequence[FunctionTool]) -> None:
        self.tools = tuple(function.tool for function in functions)
        self._functions = {function.name: function for function in functions}

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        return self._functions[name].call(arguments)
