"""What EvalPlus does differently for single questions of MBPP+ v0.1.0.

This text runs in the sandbox of the tests, after `keju.benchmarks.input_tests`. The inputs of 62
questions have types that JSON does not know. The solutions of a few questions are not the only
right ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import zip_longest
from typing import Any

Convert = Callable[[Any], Any]


def as_tuples(value: Any) -> Any:
    """Return a value with all its lists as tuples."""
    return tuple(map(as_tuples, value)) if isinstance(value, list) else value


def rows_of_lists(arguments: Any) -> Any:
    return [[tuple(row) for row in rows] for rows in arguments]


def rows_of_first(arguments: Any) -> Any:
    return [[tuple(row) for row in arguments[0]], arguments[1]]


def mixed_rows(arguments: Any) -> Any:
    return [tuple(tuple(row) if isinstance(row, list) else row for row in arguments[0])]


def sets_of_first(arguments: Any) -> Any:
    return [[set(row) if isinstance(row, list) and row else {} for row in arguments[0]]]


CONVERSIONS: tuple[tuple[Convert, tuple[int, ...]], ...] = (
    (
        lambda arguments: [tuple(part) for part in arguments],
        (
            *(2, 116, 132, 143, 222, 261, 273, 394, 399, 421, 424, 429, 470, 560, 579, 596, 616),
            *(630, 726, 740, 744, 809),
        ),
    ),
    (
        rows_of_lists,
        (63, 64, 70, 94, 120, 237, 272, 299, 400, 409, 417, 438, 473, 614, 780),
    ),
    (rows_of_first, (75, 413, 444, 753)),
    (lambda arguments: [arguments[0], tuple(arguments[1])], (106, 750)),
    (sets_of_first, (115,)),
    (lambda arguments: (float(arguments[0]), complex(arguments[1])), (124,)),
    (lambda arguments: [tuple(arguments[0]), arguments[1]], (250, 405, 446, 617, 720, 763, 808)),
    (lambda arguments: [tuple(tuple(row) for row in rows) for rows in arguments], (259, 401, 445)),
    (mixed_rows, (278,)),
    (lambda arguments: [tuple(arguments[0]), arguments[1], arguments[2]], (307,)),
    (
        lambda arguments: [{key: tuple(row) for key, row in arguments[0].items()}, *arguments[1:]],
        (722,),
    ),
    (lambda arguments: [complex(arguments[0])], (252,)),
    (as_tuples, (580, 615, 791)),
)
"""The conversion of an input, by the numbers of questions."""


def find_conversion(task_id: str) -> Convert:
    """Return the conversion of the inputs of a question: ``Mbpp/252``."""
    number = int(task_id.rpartition("/")[2])
    conversions = (convert for convert, numbers in CONVERSIONS if number in numbers)
    return next(conversions, lambda arguments: arguments)


def found_anything(value: Any, expected: Any, _: Any) -> bool:
    """Only whether there is a result counts; the solution returns a match or None."""
    is_found = expected is not None
    return bool(value == is_found) if isinstance(value, bool) else is_found == (value is not None)


def is_equal_or_zero(value: Any, expected: Any, _: Any) -> bool:
    return bool(value == expected or value == 0)


def is_pyramid_area(value: Any, expected: Any, arguments: Any) -> bool:
    """Whether a value is the surface of a square pyramid, rounded or not."""
    base, height = arguments
    slant_height = math.sqrt((base / 2) ** 2 + height**2)
    area = round(base**2 + 4 * (base * slant_height) / 2)
    return bool(value == expected or abs(value - area) <= 0.1)


def is_digit_distance(value: Any, expected: Any, arguments: Any) -> bool:
    """Whether a value is the sum of the differences of digits at equal places."""
    pairs = zip_longest(*(reversed(str(number)) for number in arguments), fillvalue="0")
    try:
        distance = sum(abs(int(digit) - int(other_digit)) for digit, other_digit in pairs)
    except ValueError:  # a sign
        return bool(value == expected)
    return value in (expected, distance)


RULES: dict[str, Callable[[Any, Any, Any], bool]] = {
    "check_str": found_anything,
    "text_match_three": found_anything,
    "text_starta_endb": found_anything,
    "are_equivalent": lambda *_: True,
    "sum_div": is_equal_or_zero,
    "surface_Area": is_pyramid_area,
    "digit_distance_nums": is_digit_distance,
}
"""The rule of a question, by the name of its function."""
