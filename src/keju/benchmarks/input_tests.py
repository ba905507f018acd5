"""Tests by inputs: a program must return what the published solution returns, as EvalPlus decides.

This text runs in the sandbox of the tests and uses only the standard library. The time limit of a
call is EvalPlus's, in CPU time: at least one second, and four times the time of the solution.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from typing import Any

SHORTEST_LIMIT, TIME_FACTOR = 1.0, 4.0
FLOAT_TOLERANCE, RELATIVE_TOLERANCE = 1e-6, 1e-7

Rule = Callable[[Any, Any, Any], bool]
"""A rule of a question: from the result, the expected result and the input."""


def check_inputs(
    candidate: Any,
    data: dict[str, Any],
    inputs: Iterable[Any],
    copy: Callable[[Any], Any],
    rule: Rule | None = None,
) -> None:
    """Raise AssertionError at the first input with another result than the solution's."""
    space: dict[str, Any] = {}
    exec(data["solution"], space)
    solution, tolerance = space[data["entry_point"]], float(data["atol"])
    for arguments in inputs:
        start = time.process_time()
        expected = copy(solution(*copy(arguments)))
        seconds = time.process_time() - start
        limit = max(SHORTEST_LIMIT, TIME_FACTOR * seconds)
        value = candidate.call(copy(arguments), seconds=limit)
        if tolerance == 0 and is_floating(expected):
            tolerance = FLOAT_TOLERANCE
        is_right = rule(value, expected, arguments) if rule else value == expected
        if not is_right and tolerance:
            is_right = type(value) is type(expected) and is_close(value, expected, tolerance)
        assert is_right


def is_floating(value: Any) -> bool:
    """Whether a value is a floating-point number or a sequence of nothing else."""
    if isinstance(value, list | tuple):
        return all(isinstance(item, float) for item in value)
    return isinstance(value, float)


def is_close(value: Any, expected: Any, tolerance: float) -> bool:
    """Whether two numbers, or all numbers of two sequences, are nearly equal."""
    if isinstance(expected, list | tuple):
        if not isinstance(value, list | tuple) or len(value) != len(expected):
            return False
        pairs = zip(value, expected, strict=True)
        return all(is_close(item, expected_item, tolerance) for item, expected_item in pairs)
    if not isinstance(value, int | float | complex) or not isinstance(
        expected, int | float | complex
    ):
        return False
    if value == expected:
        return True
    try:
        limit = tolerance + RELATIVE_TOLERANCE * abs(expected)
        return math.isfinite(limit) and abs(value - expected) <= limit
    except OverflowError:
        return False
