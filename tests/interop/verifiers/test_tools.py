"""What a model calls, and what it gets when the call is wrong."""

from __future__ import annotations

import pytest

from keju.errors import ConfigError
from keju.interop.verifiers.tools import CALCULATOR, answer_call, choose


def test_a_call_gives_the_value() -> None:
    assert answer_call([CALCULATOR], "calculator", '{"expression": "6 * 7"}') == "42"


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("calculator", "{", "no JSON object"),
        ("calculator", "[]", "no JSON object"),
        ("calculator", "", "takes one argument"),
        ("calculator", '{"expression": 4}', "takes one argument"),
        ("calculator", '{"expression": "1/0"}', "division by zero"),
        ("python", '{"code": "1"}', "there is no tool 'python'"),
    ],
)
def test_a_wrong_call_is_told_to_the_model(name: str, arguments: str, said: str) -> None:
    result = answer_call([CALCULATOR], name, arguments)
    assert result.startswith("error: ")
    assert said in result


def test_an_unknown_tool_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ConfigError, match=r"unknown tool 'calculater' \(did you mean 'calculator'"):
        choose(["calculater"])
    assert choose(["calculator", "calculator"]) == [CALCULATOR]


def test_the_schema_asks_for_exactly_the_argument() -> None:
    parameters = CALCULATOR.schema()["function"]["parameters"]
    assert parameters["required"] == list(parameters["properties"]) == ["expression"]
