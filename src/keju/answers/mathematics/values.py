"""The values of expressions: exact fractions, or floating-point numbers at a point.

A point gives each symbol a value. Roots and powers stay in the real numbers unless a point allows
complex values: ``\\sqrt{x^2}`` is not ``x`` where ``x`` is negative.
"""

from __future__ import annotations

import cmath
import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from keju.answers.mathematics.parsing import Node

Number = complex
Point = Mapping[str, float]

MOST_BITS = 4000
"""The largest numerator or denominator of an exact value, in bits."""
MOST_FACTORIAL = 170
POINTS = 10
"""The number of points at which two expressions are compared."""
ENOUGH_POINTS = 3
"""The fewest points at which both must have a value."""


class Undefined(ArithmeticError):
    """An expression without a value at a point."""


# --- exact values ------------------------------------------------------------------------------


def exact_value(node: Node) -> Fraction | None:
    """Return the exact value of an expression without symbols; None if it is not rational."""
    evaluate = _EXACT.get(node.kind)
    if evaluate is None:
        return None
    values = [exact_value(item) for item in node.items]
    rationals = [value for value in values if value is not None]
    if len(rationals) < len(values):
        return None
    value = evaluate(node, rationals)
    return value if value is not None and _is_small(value) else None


def _is_small(value: Fraction) -> bool:
    return max(value.numerator.bit_length(), value.denominator.bit_length()) <= MOST_BITS


def _exact_sum(_: Node, values: Sequence[Fraction]) -> Fraction | None:
    total = Fraction(0)
    for value in values:
        total += value
        if not _is_small(total):
            return None
    return total


def _exact_product(_: Node, values: Sequence[Fraction]) -> Fraction | None:
    product = Fraction(1)
    for value in values:
        product *= value
        if not _is_small(product):
            return None
    return product


def _exact_quotient(_: Node, values: Sequence[Fraction]) -> Fraction | None:
    if not values[1]:
        raise Undefined
    return values[0] / values[1]


def _exact_power(node: Node, values: Sequence[Fraction]) -> Fraction | None:
    base, exponent = values
    if not base and exponent <= 0:
        raise Undefined
    if exponent.denominator != 1:
        root = _exact_root(base, exponent.denominator)
        return None if root is None else _exact_power(node, (root, Fraction(exponent.numerator)))
    size = max(base.numerator.bit_length(), base.denominator.bit_length())
    if abs(exponent) * size > MOST_BITS:
        return None
    power: Fraction = base ** int(exponent)
    return power


def _exact_root(value: Fraction, degree: int) -> Fraction | None:
    """Return a real root that is rational; odd roots of negative numbers are negative."""
    if degree > 64 or degree < 1 or (value < 0 and degree % 2 == 0):
        return None
    parts = [_whole_root(abs(value.numerator), degree), _whole_root(value.denominator, degree)]
    if parts[0] is None or parts[1] is None:
        return None
    return Fraction(parts[0] if value >= 0 else -parts[0], parts[1])


def _whole_root(value: int, degree: int) -> int | None:
    """Return the whole root of a number if it has one."""
    if degree == 2:
        root = math.isqrt(value)
    elif value.bit_length() > 900:
        return None
    else:
        root = round(value ** (1 / degree))
    return root if root**degree == value else None


def _exact_function(node: Node, values: Sequence[Fraction]) -> Fraction | None:
    argument = values[0]
    if node.value == "sqrt":
        degree = values[1] if len(values) > 1 else Fraction(2)
        return _exact_root(argument, int(degree)) if degree.denominator == 1 else None
    if node.value in _EXACT_FUNCTIONS:
        return _EXACT_FUNCTIONS[node.value](argument)
    if node.value == "binomial" and all(value.denominator == 1 for value in values):
        upper, lower = int(argument), int(values[1])
        return Fraction(math.comb(upper, lower)) if 0 <= lower <= upper <= 500 else None
    return None


def _exact_factorial(value: Fraction) -> Fraction | None:
    if value.denominator != 1 or not 0 <= value <= MOST_FACTORIAL:
        return None
    return Fraction(math.factorial(int(value)))


_EXACT_FUNCTIONS: Mapping[str, Callable[[Fraction], Fraction | None]] = {
    "abs": abs,
    "floor": lambda value: Fraction(math.floor(value)),
    "ceil": lambda value: Fraction(math.ceil(value)),
    "factorial": _exact_factorial,
}
_EXACT: Mapping[str, Callable[[Node, Sequence[Fraction]], Fraction | None]] = {
    "number": lambda node, _: node.value,
    "sum": _exact_sum,
    "product": _exact_product,
    "quotient": _exact_quotient,
    "power": _exact_power,
    "percent": lambda _, values: values[0] / 100,
    "function": _exact_function,
}


# --- values at a point -------------------------------------------------------------------------


class Evaluation(NamedTuple):
    """A way to evaluate: the values of symbols, and whether roots may be complex."""

    point: Point
    is_complex: bool

    def value(self, node: Node) -> Number:
        """Return the value of an expression. Raise `Undefined` if it has none."""
        evaluate = _NUMERIC.get(node.kind)
        if evaluate is None:
            raise Undefined
        try:
            value = evaluate(self, node)
        except (ZeroDivisionError, OverflowError, ValueError):
            raise Undefined from None
        if not cmath.isfinite(value):
            raise Undefined
        return value

    def values(self, node: Node) -> list[Number]:
        """Return the values of the parts of a node."""
        return [self.value(item) for item in node.items]

    def real(self, node: Node) -> float:
        """Return a value that must be real."""
        value = self.value(node)
        if value.imag:
            raise Undefined
        return value.real

    def power(self, base: Number, exponent: Number) -> Number:
        """Return a power; outside the real numbers only if complex values are allowed."""
        if base == 0 and exponent.real <= 0:
            raise Undefined
        is_real = not base.imag and not exponent.imag
        if is_real and (base.real >= 0 or exponent.real == int(exponent.real)):
            return complex(math.pow(base.real, exponent.real))
        if is_real and not self.is_complex:
            raise Undefined
        return complex(base) ** exponent

    def root(self, base: Number, degree: Number) -> Number:
        """Return a root: the real one of a negative number if the degree is odd."""
        integer = int(degree.real)
        if not base.imag and base.real < 0 and degree == integer and integer % 2:
            return complex(-math.pow(-base.real, 1 / integer))
        return self.power(base, 1 / degree)


def _numeric_number(_: Evaluation, node: Node) -> Number:
    return complex(float(node.value))


def _numeric_symbol(how: Evaluation, node: Node) -> Number:
    if node.value == "e":
        return complex(math.e)
    if node.value == "i":
        return 1j
    return complex(how.point[node.value])


def _numeric_constant(_: Evaluation, node: Node) -> Number:
    if node.value == "pi":
        return complex(math.pi)
    raise Undefined


def _numeric_product(how: Evaluation, node: Node) -> Number:
    product: Number = 1
    for value in how.values(node):
        product *= value
    return product


def _numeric_quotient(how: Evaluation, node: Node) -> Number:
    upper, lower = how.values(node)
    return upper / lower


def _numeric_power(how: Evaluation, node: Node) -> Number:
    if node.items[0] == Node("symbol", value="e"):
        return cmath.exp(how.value(node.items[1]))
    base, exponent = how.values(node)
    return how.power(base, exponent)


def _numeric_function(how: Evaluation, node: Node) -> Number:
    name = node.value
    if name == "sqrt":
        values = how.values(node)
        return how.root(values[0], values[1] if len(values) > 1 else 2)
    if name in ("log", "ln"):
        return _logarithm(how, node)
    if name in _REAL_FUNCTIONS:
        return complex(_REAL_FUNCTIONS[name](how.real(node.items[0])))
    if name in _COMPLEX_FUNCTIONS:
        return _COMPLEX_FUNCTIONS[name](how.value(node.items[0]))
    raise Undefined


def _logarithm(how: Evaluation, node: Node) -> Number:
    values = how.values(node)
    if not how.is_complex and any(value.imag or value.real <= 0 for value in values):
        raise Undefined
    logarithm = cmath.log(values[0])
    return logarithm / cmath.log(values[1]) if len(values) > 1 else logarithm


def _gamma(value: float) -> float:
    return math.gamma(value + 1) if value <= MOST_FACTORIAL else math.inf


_REAL_FUNCTIONS: Mapping[str, Callable[[float], float]] = {
    "floor": math.floor,
    "ceil": math.ceil,
    "factorial": _gamma,
    "arcsin": math.asin,
    "arccos": math.acos,
    "arctan": math.atan,
}
_COMPLEX_FUNCTIONS: Mapping[str, Callable[[Number], Number]] = {
    "abs": lambda value: complex(abs(value)),
    "exp": cmath.exp,
    "sin": cmath.sin,
    "cos": cmath.cos,
    "tan": cmath.tan,
    "cot": lambda value: 1 / cmath.tan(value),
    "sec": lambda value: 1 / cmath.cos(value),
    "csc": lambda value: 1 / cmath.sin(value),
    "sinh": cmath.sinh,
    "cosh": cmath.cosh,
    "tanh": cmath.tanh,
}
_NUMERIC: Mapping[str, Callable[[Evaluation, Node], Number]] = {
    "number": _numeric_number,
    "symbol": _numeric_symbol,
    "constant": _numeric_constant,
    "sum": lambda how, node: sum(how.values(node)),
    "product": _numeric_product,
    "quotient": _numeric_quotient,
    "power": _numeric_power,
    "function": _numeric_function,
    "percent": lambda how, node: how.value(node.items[0]) / 100,
    "degrees": lambda how, node: how.value(node.items[0]) * math.pi / 180,
    "unit": lambda how, node: how.value(node.items[0]),
}


def symbols_of(node: Node) -> set[str]:
    """Return the names of the symbols in a tree, without the constants e and i."""
    names: set[str] = set()
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if part.kind == "symbol":
            names.add(part.value)
        waiting += part.items
    return names - {"e", "i"}


@lru_cache(maxsize=512)
def _coordinate(name: str, number: int) -> float:
    """Return the value of a symbol at a point: positive at the first points, then also negative."""
    source = random.Random(f"{name}:{number}")
    value = source.uniform(0.3, 2.9)
    return -value if number >= POINTS // 2 and source.random() < 0.5 else value


def points_for(names: Iterable[str]) -> list[Point]:
    """Return the points at which expressions with these symbols are compared."""
    ordered = sorted(names)
    count = POINTS if ordered else 1
    return [{name: _coordinate(name, number) for name in ordered} for number in range(count)]


def values_of(nodes: Sequence[Node]) -> list[list[Number]]:
    """Return the values of several expressions at the points where all of them have one.

    Complex values count only if there are too few points with real ones.
    """
    names = set().union(*map(symbols_of, nodes))
    points = points_for(names)
    enough = min(ENOUGH_POINTS, len(points))
    for is_complex in (False, True):
        rows: list[list[Number]] = []
        for point in points:
            try:
                rows.append([Evaluation(point, is_complex).value(node) for node in nodes])
            except Undefined:
                continue
        if len(rows) >= enough:
            return rows
    return []
