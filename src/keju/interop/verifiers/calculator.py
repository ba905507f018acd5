"""Exact arithmetic for models: a parser of its own, on fractions, that cannot be made to hang."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction

LONGEST_INPUT = 500
DEEPEST = 50
"""Nested brackets and signs."""
MOST_BITS = 4096
"""Size of the largest numerator or denominator, about 1,200 digits."""
SHOWN_DIGITS = 30
ROUNDED_DIGITS = 12

_TOKEN = re.compile(r"\s*(?:(\d[\d_]*\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)|(\*\*|//|.))")
_SIGNS = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "^": "**"})


class CalculatorError(Exception):
    """The expression has no value; the message tells the model why."""


def calculate(expression: str) -> str:
    """The exact value of an expression of numbers, + - * / // % **, and brackets.

    A value whose decimals end is written out; any other is given as a fraction and rounded.
    """
    if len(expression) > LONGEST_INPUT:
        raise CalculatorError(f"the expression is longer than {LONGEST_INPUT} characters")
    return _shown(_Parser(expression.translate(_SIGNS)).value())


class _Parser:
    """Recursive descent; the usual precedence, ** binds to the right and before a sign."""

    def __init__(self, text: str) -> None:
        self._tokens = [
            number or sign for number, sign in _TOKEN.findall(text) if (number or sign).strip()
        ]
        self._at = 0
        self._depth = 0

    def value(self) -> Fraction:
        if not self._tokens:
            raise CalculatorError("the expression is empty")
        value = self._sum()
        if self._at < len(self._tokens):
            raise CalculatorError(f"did not expect '{self._tokens[self._at]}'")
        return value

    def _next(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self, *signs: str) -> str:
        found = self._next()
        if found not in signs:
            return ""
        self._at += 1
        return found

    def _sum(self) -> Fraction:
        value = self._product()
        while sign := self._take("+", "-"):
            other = self._product()
            value = _bounded(value + other if sign == "+" else value - other)
        return value

    def _product(self) -> Fraction:
        value = self._signed()
        while sign := self._take("*", "/", "//", "%"):
            other = self._signed()
            if sign != "*" and not other:
                raise CalculatorError("division by zero")
            if sign == "*":
                value *= other
            elif sign == "/":
                value /= other
            else:
                value = Fraction(value // other) if sign == "//" else value % other
            value = _bounded(value)
        return value

    def _signed(self) -> Fraction:
        self._depth += 1
        if self._depth > DEEPEST:
            raise CalculatorError("too many brackets or signs")
        sign = self._take("+", "-")
        value = self._signed() if sign else self._power()
        self._depth -= 1
        return -value if sign == "-" else value

    def _power(self) -> Fraction:
        base = self._atom()
        if not self._take("**"):
            return base
        exponent = self._signed()
        if exponent.denominator != 1:
            raise CalculatorError("exponents must be whole numbers")
        if not base and exponent < 0:
            raise CalculatorError("division by zero")
        if abs(exponent) * _bits(base) > MOST_BITS:
            raise CalculatorError("the value is too large")
        return Fraction(base ** int(exponent))

    def _atom(self) -> Fraction:
        if self._take("("):
            value = self._sum()
            if not self._take(")"):
                raise CalculatorError("a bracket is not closed")
            return value
        token = self._next()
        if not token or not (token[0].isdigit() or token[0] == "."):
            raise CalculatorError(f"did not expect '{token}'" if token else "a number is missing")
        self._at += 1
        return _number(token)


def _number(token: str) -> Fraction:
    digits, _, exponent = token.replace("_", "").lower().partition("e")
    if len(exponent) > 5:
        raise CalculatorError("the value is too large")
    if not digits.isascii() or not any(map(str.isdigit, digits)):
        raise CalculatorError(f"did not expect '{token}'")
    return _bounded(Fraction(digits) * Fraction(10) ** int(exponent or 0))


def _bits(value: Fraction) -> int:
    return max(value.numerator.bit_length(), value.denominator.bit_length())


def _bounded(value: Fraction) -> Fraction:
    if _bits(value) > MOST_BITS:
        raise CalculatorError("the value is too large")
    return value


def _shown(value: Fraction) -> str:
    if value.denominator == 1:
        return str(value.numerator)
    rest = value.denominator
    for factor in (2, 5):
        while rest % factor == 0:
            rest //= factor
    digits = SHOWN_DIGITS if rest == 1 else ROUNDED_DIGITS
    context = Context(prec=digits, rounding=ROUND_HALF_EVEN)
    decimal = context.divide(Decimal(value.numerator), Decimal(value.denominator))
    if Fraction(decimal) == value:
        return f"{decimal.normalize(context):f}"
    if len(str(value.numerator)) + len(str(value.denominator)) > 2 * SHOWN_DIGITS:
        return f"about {decimal}"
    return f"{value.numerator}/{value.denominator} (about {decimal})"
