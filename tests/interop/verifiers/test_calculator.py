"""The calculator is exact, and whatever it is given it ends at once."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keju.interop.verifiers.calculator import CalculatorError, calculate

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("2 + 3 * 4", "14"),
        ("(2 + 3) * 4", "20"),
        ("-2 ** 2", "-4"),
        ("2 ** 3 ** 2", "512"),
        ("2 ** -2", "0.25"),
        ("7 // 2 - -7 % 3", "1"),
        ("0.1 + 0.2", "0.3"),
        ("1.5e3 / 4", "375"),
        ("1/3", "1/3 (about 0.333333333333)"),
        ("10 - 2 - 3", "5"),
        ("((((1))))", "1"),
        ("3 × 4 ÷ 2 − 1", "5"),
        ("2^10", "1024"),
        (".5 * 2", "1"),
        ("10 ** 40 + 1", "1" + "0" * 39 + "1"),
        ("- - 3", "3"),
    ],
)
def test_values(expression: str, value: str) -> None:
    assert calculate(expression) == value


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("", "empty"),
        ("1 +", "a number is missing"),
        ("(1", "not closed"),
        ("1 / (2 - 2)", "division by zero"),
        ("0 ** -1", "division by zero"),
        ("4 ** 0.5", "whole numbers"),
        ("9 ** 9 ** 9", "too large"),
        ("1e99999999", "too large"),
        ("2 2", "did not expect '2'"),
        ("4,550 + 1", "did not expect ','"),
        ("__import__('os')", "did not expect '_'"),
        ("(" * 200 + "1" + ")" * 200, "too many brackets"),
        ("1+" * 400 + "1", "longer than"),
    ],
)
def test_what_has_no_value_is_told(expression: str, why: str) -> None:
    with pytest.raises(CalculatorError, match=why):
        calculate(expression)


_numbers = st.integers(0, 10**6).map(str) | st.decimals(0, 10**4, places=3).map(str)
_terms = st.recursive(
    _numbers,
    lambda inner: st.tuples(inner, st.sampled_from("+-*"), inner).map(
        lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"
    ),
    max_leaves=12,
)


def _as_fractions(term: str) -> Fraction:
    value = eval(re.sub(r"[\d.]+", lambda m: f"Fraction('{m[0]}')", term), {"Fraction": Fraction})
    assert isinstance(value, Fraction)
    return value


@given(_terms)
def test_sums_and_products_are_exact(term: str) -> None:
    value = calculate(term)
    if not value.startswith("about") and "(" not in value:
        assert Fraction(value) == _as_fractions(term)


@given(st.text("0123456789+-*/%^() .eE_", max_size=120))
def test_any_text_ends_with_a_value_or_a_reason(text: str) -> None:
    try:
        outcome = calculate(text)
    except CalculatorError as error:
        outcome = str(error)
    assert outcome
