"""What a model calls, and what it gets when the call is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from keju.errors import ConfigError
from keju.interop.verifiers.tools import CALCULATOR, choose_tools

pytestmark = pytest.mark.slow


def test_a_call_gives_the_value() -> None:
    assert CALCULATOR.call({"expression": "6 * 7"}) == ("42", "ok", (), 0.0, 0.0, None)


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({}, "bad_arguments", "takes one argument"),
        ({"expression": 4}, "bad_arguments", "takes one argument"),
        ({"expression": "1", "code": "1"}, "bad_arguments", "takes one argument"),
        ({"expression": "1/0"}, "tool_error", "division by zero"),
    ],
)
def test_a_wrong_call_is_told_to_the_model(
    arguments: dict[str, Any], kind: str, message: str
) -> None:
    result = CALCULATOR.call(arguments)
    assert result.kind == kind
    assert result.text.startswith("error: ")
    assert message in result.text


def test_an_unknown_tool_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ConfigError, match=r"unknown tool 'calculater' \(did you mean 'calculator'"):
        choose_tools(["calculater"])
    assert choose_tools(["calculator", "calculator"]) == [CALCULATOR]


def test_the_schema_asks_for_exactly_the_argument() -> None:
    parameters = CALCULATOR.tool.parameters
    assert parameters["required"] == list(parameters["properties"]) == ["expression"]
