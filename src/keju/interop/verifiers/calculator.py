"""Exact arithmetic for models: a parser for fractions with limits, so that it cannot hang."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction

LONGEST_INPUT = 500
MAX_DEPTH = 50
"""The deepest nesting of brackets and signs."""
MAX_BITS = 4096
"""The size of the largest numerator or denominator, about 1,200 digits."""
EXACT_DIGITS = 30
ROUNDED_DIGITS = 12

_TOKEN = re.compile(r"\s*(?:(\d[\d_]*\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)|(\*\*|//|.))")
"""A number, ``12``, ``1_000.5``, ``.5``, ``2e-3``, or a sign, ``**``, ``//`` or one character."""
_SIGNS = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "^": "**"})
_LEVELS: tuple[dict[str, Callable[[Fraction, Fraction], Fraction | int]], ...] = (
    {"+": operator.add, "-": operator.sub},
    {
        "*": operator.mul,
        "/": operator.truediv,
        "//": operator.floordiv,
        "%": operator.mod,
    },
)
"""Operators by precedence, the lowest first. Signs and powers have a higher one."""


class CalculatorError(Exception):
    """The expression has no value. The message tells the model why."""


def calculate(expression: str) -> str:
    """Return the exact value of an expression of numbers, + - * / // % **, and brackets.

    A finite decimal is written in full. Any other value is written as a fraction, with a rounded
    value.
    """
    if len(expression) > LONGEST_INPUT:
        raise CalculatorError(f"the expression is longer than {LONGEST_INPUT} characters")
    all_tokens = ("".join(token) for token in _TOKEN.findall(expression.translate(_SIGNS)))
    tokens = [token for token in all_tokens if token.strip()]
    if not tokens:
        raise CalculatorError("the expression is empty")
    parser = _Parser(tokens)
    try:
        value = parser.parse_operation()
    except ZeroDivisionError:
        raise CalculatorError("division by zero") from None
    if parser.tokens:
        raise CalculatorError(f"did not expect '{parser.tokens[-1]}'")
    return _format_value(value)


class _Parser:
    """A recursive descent parser with the usual precedence; ** binds to the right and before a
    sign."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens[::-1]
        """The remaining tokens, the next one last."""
        self._depth = 0

    def _pop_if(self, *signs: str) -> str:
        return self.tokens.pop() if self.tokens and self.tokens[-1] in signs else ""

    def parse_operation(self, level: int = 0) -> Fraction:
        """Parse sums of products of signed values."""
        if level == len(_LEVELS):
            return self._parse_signed()
        value = self.parse_operation(level + 1)
        while sign := self._pop_if(*_LEVELS[level]):
            value = _check_size(
                Fraction(_LEVELS[level][sign](value, self.parse_operation(level + 1)))
            )
        return value

    def _parse_signed(self) -> Fraction:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise CalculatorError("too many brackets or signs")
        sign = self._pop_if("+", "-")
        value = self._parse_signed() if sign else self._parse_power()
        self._depth -= 1
        return -value if sign == "-" else value

    def _parse_power(self) -> Fraction:
        base = self._parse_atom()
        if not self._pop_if("**"):
            return base
        exponent = self._parse_signed()
        if exponent.denominator != 1:
            raise CalculatorError("exponents must be whole numbers")
        if abs(exponent) * _bit_length(base) > MAX_BITS:
            raise CalculatorError("the value is too large")
        return Fraction(base ** int(exponent))

    def _parse_atom(self) -> Fraction:
        if self._pop_if("("):
            value = self.parse_operation()
            if not self._pop_if(")"):
                raise CalculatorError("a bracket is not closed")
            return value
        if not self.tokens:
            raise CalculatorError("a number is missing")
        token = self.tokens.pop()
        digits, _, exponent = token.replace("_", "").lower().partition("e")
        if len(exponent) > 5:
            raise CalculatorError("the value is too large")
        if not digits.isascii() or not any(map(str.isdigit, digits)):
            raise CalculatorError(f"did not expect '{token}'")
        return _check_size(Fraction(digits) * Fraction(10) ** int(exponent or 0))


def _bit_length(value: Fraction) -> int:
    return max(value.numerator.bit_length(), value.denominator.bit_length())


def _check_size(value: Fraction) -> Fraction:
    if _bit_length(value) > MAX_BITS:
        raise CalculatorError("the value is too large")
    return value


def _format_value(value: Fraction) -> str:
    if value.denominator == 1:
        return str(value.numerator)
    remaining_factor = value.denominator
    for factor in (2, 5):
        while remaining_factor % factor == 0:
            remaining_factor //= factor
    digits = EXACT_DIGITS if remaining_factor == 1 else ROUNDED_DIGITS
    context = Context(prec=digits, rounding=ROUND_HALF_EVEN)
    decimal = context.divide(Decimal(value.numerator), Decimal(value.denominator))
    if Fraction(decimal) == value:
        return f"{decimal.normalize(context):f}"
    if len(str(value.numerator)) + len(str(value.denominator)) > 2 * EXACT_DIGITS:
        return f"about {decimal}"
    return f"{value.numerator}/{value.denominator} (about {decimal})"
