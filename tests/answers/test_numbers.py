"""Numbers are read by value: sign, point and exponent count."""

from __future__ import annotations

from decimal import Decimal

import pytest

from keju.answers.numbers import (
    find_numbers,
    is_same_number,
    parse_number,
    parse_range,
    plain_numerals,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("4,550", "4550"),
        ("12,345,678.5", "12345678.5"),
        ("1.2e-5", "0.000012"),
        ("1.2E+05", "120000"),
        ("1.2×10⁻⁵", "0.000012"),
        ("1.2 x 10^-5", "0.000012"),
        ("5.107 x 10^-47", "5.107e-47"),
        (r"$1.9\times 10^{-5}$", "0.000019"),
        ("10^-5", "0.00001"),
        ("10⁵", "100000"),
        ("\u22120.5", "-0.5"),
        ("-0.5.", "-0.5"),
        ("–0.5", "-0.5"),
        ("—0.5", "-0.5"),
        ("- 0.5", "-0.5"),
        ("minus 0.5", "-0.5"),
        ("Negative 0.5", "-0.5"),
        ("+0.5", "0.5"),
        ("-10^5", "-100000"),
        ("1.2 x 10^–5", "0.000012"),
        (".5", "0.5"),
        ("**17.0**", "17"),
        ("１２", "12"),
        ("35%", "35"),
        ("35 percent", "35"),
    ],
)
def test_a_text_that_is_a_number(text: str, value: str) -> None:
    number = parse_number(text)
    assert number is not None
    assert number.value == Decimal(value)
    assert number.percent == ("%" in text or "percent" in text)


@pytest.mark.parametrize(
    "text",
    ["", "NaN", "inf", "1-50", "5:1", "22/64", "337 samples", "10k", "<0.05", "CD14", "1,23",
     "110^3", "1e99999", "9" * 100],
)  # fmt: skip
def test_a_text_that_is_no_number(text: str) -> None:
    assert parse_number(text) is None


@pytest.mark.parametrize(
    ("left_text", "right_text"),
    [("1.9E-05", "1.9E+05"), ("-0.5", "0.5"), ("3.5", "35"), ("35", "35%"), ("0.0002", "0.0003")],
)
def test_what_makes_two_numbers_different(left_text: str, right_text: str) -> None:
    left_number, right_number = parse_number(left_text), parse_number(right_text)
    assert left_number is not None
    assert right_number is not None
    assert not is_same_number(left_number, right_number)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("CD14 was 0.65 in IL-6 samples", ["0.65"]),
        ("between -0.45 and -0.35", ["-0.45", "-0.35"]),
        ("40-50", ["40", "50"]),
        ("157,912 mm²", ["157912"]),
        ("log2FC=2.3, p=0.05", ["2.3", "0.05"]),
        ("none at all", []),
        ("about -5, r = - 6, x: –7, is minus 8", ["-5", "-6", "-7", "-8"]),
        ("5 - 7", ["5", "7"]),
        ("5–7", ["5", "7"]),
        ("Done.-5", ["-5"]),
    ],
)
def test_numbers_of_a_sentence(text: str, values: list[str]) -> None:
    assert [str(number.value) for number in find_numbers(plain_numerals(text))] == values


@pytest.mark.parametrize(
    "text",
    ["10k", "3/4", "5:1", "< 0.05", "2 million", "(700,800)", "5mM", "5 - 7", "5–7", "5 minus 7",
     "IL - 6", "word – 5", "word—5", "false negative 5", "- 5 genes", "--5", "+/-5", "2^5", "2^-5",
     "5 x 9", "5 * 9", "5+", "5.0.1", "1_234", "5 dozen", "5 hundred", "5 000", "5,7", "≠ 5", "!= 5"],
)  # fmt: skip
def test_numbers_that_are_part_of_something_else_are_not_clear(text: str) -> None:
    numbers = find_numbers(plain_numerals(text))
    assert numbers
    assert not any(number.clear for number in numbers)


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("(0.6 , 0.7)", "0.6", "0.7"),
        ("(700,800)", "700", "800"),
        ("(-0.064,-0.084) ", "-0.084", "-0.064"),
        ("(1.13e-10,1.13e-12)", "1.13e-12", "1.13e-10"),
        ("[0,1]", "0", "1"),
    ],
)
def test_ranges_have_sorted_inclusive_bounds(text: str, low: str, high: str) -> None:
    bounds = parse_range(text)
    assert bounds is not None
    assert (bounds.low, bounds.high) == (Decimal(low), Decimal(high))
    assert bounds.holds(bounds.low)
    assert bounds.holds(bounds.high)
    assert not bounds.holds(bounds.high + 1)


@pytest.mark.parametrize("text", ["(40-50)", "0.6,0.7", "(a,b)", "()", "", "(1,2,3)", "(NaN,1)"])
def test_other_texts_are_no_ranges(text: str) -> None:
    assert parse_range(text) is None


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["1", "1,", "111,", "1.1", "-", "- 1", "10^", "9 x 10 ", "1e"])
def test_looping_text_is_read_to_its_end(piece: str) -> None:
    text = piece * (100_000 // len(piece))
    assert all(number.end <= len(text) for number in find_numbers(text))
