"""Tools that a model may call inside an environment. None of them runs code or opens a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from keju.errors import ConfigError, did_you_mean
from keju.interop.verifiers.calculator import CalculatorError, calculate


class Tool(NamedTuple):
    """A tool with one argument, a text."""

    name: str
    description: str
    argument: str
    meaning: str
    """What the argument is, in words."""
    run: Callable[[str], str]

    def schema(self) -> dict[str, Any]:
        """The tool as a chat request declares it."""
        argument = {"type": "string", "description": self.meaning}
        parameters = {
            "type": "object",
            "properties": {self.argument: argument},
            "required": [self.argument],
            "additionalProperties": False,
        }
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": parameters,
        }
        return {"type": "function", "function": function}

    def call(self, arguments: str) -> str:
        """The result of a call with these JSON arguments; what is wrong with them is a result."""
        try:
            given = msgspec.json.decode(arguments or "{}", type=dict[str, Any])
        except msgspec.DecodeError as error:
            return f"error: the arguments are no JSON object: {error}"
        value = given.get(self.argument)
        if not isinstance(value, str) or len(given) != 1:
            return f"error: {self.name} takes one argument, the text '{self.argument}'"
        try:
            return self.run(value)
        except CalculatorError as error:
            return f"error: {error}"


CALCULATOR = Tool(
    "calculator",
    "Compute the exact value of an arithmetic expression.",
    "expression",
    "Numbers, brackets and + - * / // % **, e.g. (3 + 4.5) * 2 ** 10",
    calculate,
)
TOOLS = {tool.name: tool for tool in (CALCULATOR,)}


def choose(names: Sequence[str]) -> list[Tool]:
    """The tools of these names; ConfigError names the nearest to one that does not exist."""
    for name in names:
        if name not in TOOLS:
            raise ConfigError("environment_unknown_tool", name=name, hint=did_you_mean(name, TOOLS))
    return [TOOLS[name] for name in dict.fromkeys(names)]


def answer_call(tools: Sequence[Tool], name: str, arguments: str) -> str:
    """What a call of the model gives, whatever it called."""
    for tool in tools:
        if tool.name == name:
            return tool.call(arguments)
    return f"error: there is no tool '{name}'"
