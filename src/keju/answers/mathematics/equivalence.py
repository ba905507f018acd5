"""Whether two mathematical answers are equal.

Answers are compared part by part. Tuples and intervals keep their order and their brackets; sets
and lists do not. Expressions are equal if their exact values are, or else if their values agree at
all points (see `values`). These differences of notation do not count:

- ``x = 5`` and ``5``; an equation and a multiple of it; an inequality and its interval
- units after a number, unless both answers have one and Keju knows that they differ
- ``50\\%`` and ``50``; ``60^\\circ`` and ``60``; the base of ``12_8`` if one answer leaves it out
- the brackets around a text, and upper and lower case
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from fractions import Fraction

from keju.answers.mathematics.notation import MOST_CHARACTERS, plain_text
from keju.answers.mathematics.parsing import Node, Unparsable, negate, parse
from keju.answers.mathematics.values import Undefined, exact_value, symbols_of, values_of

TOLERANCE = 1e-9
"""The largest relative difference of two values that count as equal."""
MOST_ITEMS = 24
"""The most items of sets and lists that are compared in any order; nested ones keep theirs."""
MOST_DECIMALS = 10**6
"""A fraction with a larger denominator never equals the irrational number that it approximates."""

INFINITY = Node("constant", value="inf")

UNITS = {
    name: unit
    for unit, names in {
        "mm": "mm millimeter millimetre",
        "cm": "cm centimeter centimetre",
        "m": "m meter metre",
        "km": "km kilometer kilometre",
        "inch": "in inch inches",
        "foot": "ft foot feet",
        "yard": "yd yard",
        "mile": "mi mile",
        "second": "s sec second",
        "minute": "min minute",
        "hour": "h hr hour",
        "day": "day",
        "week": "week",
        "year": "year",
        "gram": "g gram",
        "kilogram": "kg kilogram",
        "dollar": "dollar",
        "cent": "cent",
        "degree": "deg degree",
        "percent": "percent",
    }.items()
    for name in names.split()
}
"""The units that Keju tells apart, by their names without the plural."""


def is_equivalent(value: str, target: str) -> bool:
    """Return whether two answers are equal."""
    if max(len(value), len(target)) > MOST_CHARACTERS:
        return value.strip() == target.strip()
    if value == target or plain_text(value) == plain_text(target) != "":
        return True
    if _are_trees_equal(value, target, split_commas=False):
        return True
    return _GROUPED.search(value + " " + target) is not None and _are_trees_equal(
        value, target, split_commas=True
    )


# `100,200`: one number or two.
_GROUPED = re.compile(r"\d,\d{3}(?!\d)")


def _are_trees_equal(value: str, target: str, *, split_commas: bool) -> bool:
    try:
        lhs, rhs = (parse(text, split_commas=split_commas) for text in (value, target))
        return is_same_answer(lhs, rhs)
    except (Unparsable, Undefined, RecursionError):
        return False


def is_same_answer(lhs: Node, rhs: Node) -> bool:
    """Return whether two trees are equal answers."""
    if lhs == rhs:
        return True
    lhs, rhs = _remove_names(lhs, rhs), _remove_names(rhs, lhs)
    lhs, rhs = _unify_forms(lhs, rhs), _unify_forms(rhs, lhs)
    if lhs == rhs:
        return True
    for kinds, compare in _COMPARISONS:
        if lhs.kind in kinds or rhs.kind in kinds:
            return compare(lhs, rhs)
    return is_same_value(lhs, rhs)


# --- notation ----------------------------------------------------------------------------------


def _remove_names(node: Node, counterpart: Node) -> Node:
    """Return ``5`` for ``x = 5``, unless the other answer is also an equation."""
    if node.kind == "list" and all(_is_assignment(item) for item in node.items):
        values = tuple(item.items[1] for item in node.items)
        if counterpart.kind == "tuple":
            return Node("tuple", values, counterpart.value)
        if not any(item.kind == "relation" for item in counterpart.items):
            return Node("list", values)
    if node.kind != "relation":
        return node
    if node.value[0] in ("\\in", ":") and len(node.items) == 2:
        return node.items[1]
    is_equation = set(node.value) <= {"=", "\\approx"}
    is_result = _is_assignment(node) or len(node.items) > 2 or not symbols_of(node.items[0])
    return node.items[-1] if is_equation and counterpart.kind != "relation" and is_result else node


def _is_assignment(node: Node) -> bool:
    """Whether a node gives a value to a name: ``x = 5``, ``f(x) = 2x``, ``\\text{Area} = 5``."""
    if node.kind != "relation" or node.value[0] not in ("=", "\\approx") or len(node.items) != 2:
        return False
    name = node.items[0]
    parts = name.items if name.kind == "product" else (name,)
    return all(part.kind in ("symbol", "text") for part in parts)


def _unify_forms(node: Node, counterpart: Node) -> Node:
    """Return a node in the form of the other answer, if it has one."""
    if node.kind == "relation" and (interval := as_interval(node)):
        return interval
    if node.kind == "either" and counterpart.kind != "either":
        lhs, rhs = node.items
        return Node("list", (Node("sum", (lhs, rhs)), Node("sum", (lhs, negate(rhs)))))
    if node.kind == "matrix" and counterpart.kind == "tuple" and 1 in (node.value, _height(node)):
        return Node("tuple", node.items, counterpart.value)
    return node


def _height(matrix: Node) -> int:
    return len(matrix.items) // int(matrix.value)


_BOUNDS = {"<": ")", "\\le": "]"}
_MIRRORED = {">": "<", "\\ge": "\\le"}


def as_interval(node: Node) -> Node | None:
    """Return the interval of an inequality of one symbol: ``1 < x \\le 2`` is ``(1, 2]``."""
    items, signs = node.items, node.value
    if all(sign in _MIRRORED for sign in signs):
        items, signs = items[::-1], tuple(_MIRRORED[sign] for sign in reversed(signs))
    if not all(sign in _BOUNDS for sign in signs):
        return None
    if len(items) == 2:
        if items[0].kind == "symbol":
            return Node("tuple", (negate(INFINITY), items[1]), "(" + _BOUNDS[signs[0]])
        if items[1].kind == "symbol":
            return Node("tuple", (items[0], INFINITY), _opening(signs[0]) + ")")
    if len(items) == 3 and items[1].kind == "symbol":
        return Node("tuple", (items[0], items[2]), _opening(signs[0]) + _BOUNDS[signs[1]])
    return None


def _opening(sign: str) -> str:
    return "(" if sign == "<" else "["


# --- structures --------------------------------------------------------------------------------


def _is_same_text(lhs: Node, rhs: Node) -> bool:
    return _text_of(lhs) == _text_of(rhs) != ""


def _text_of(node: Node) -> str:
    """Return the letters of a text, or of symbols multiplied."""
    if node.kind in ("text", "symbol"):
        return re.sub(r"[^\w]", "", str(node.value)).casefold()
    if node.kind in ("product", "list"):
        return "".join(_text_of(item) or "\0" for item in node.items)
    return ""


def _is_same_sequence(lhs: Node, rhs: Node) -> bool:
    """Compare tuples, intervals, matrices and determinants: in order, with their brackets."""
    return (
        lhs.kind == rhs.kind
        and lhs.value == rhs.value
        and len(lhs.items) == len(rhs.items)
        and all(map(is_same_answer, lhs.items, rhs.items))
    )


def _is_same_collection(lhs: Node, rhs: Node) -> bool:
    """Compare sets and lists, in any order; a list without brackets may be a set."""
    if not {lhs.kind, rhs.kind} <= {"set", "list"} or len(lhs.items) != len(rhs.items):
        return False
    is_nested = any(item.kind in ("set", "list") for item in lhs.items)
    if is_nested or len(lhs.items) > MOST_ITEMS:
        return all(map(is_same_answer, lhs.items, rhs.items))
    remaining = list(rhs.items)
    for item in lhs.items:
        place = next(
            (n for n, candidate in enumerate(remaining) if is_same_answer(item, candidate)), -1
        )
        if place < 0:
            return False
        del remaining[place]
    return True


def _is_same_union(lhs: Node, rhs: Node) -> bool:
    """Compare unions and other operations on sets; the parts of a union in any order."""
    if lhs.kind != rhs.kind or lhs.value != rhs.value:
        return False
    parts, rhs_parts = (_union_parts(node) for node in (lhs, rhs))
    if lhs.value == "\\setminus":
        return len(parts) == len(rhs_parts) and all(map(is_same_answer, parts, rhs_parts))
    return _is_same_collection(Node("list", parts), Node("list", rhs_parts))


def _union_parts(node: Node) -> tuple[Node, ...]:
    """Return the parts of ``A \\cup B \\cup C`` in order."""
    parts: list[Node] = []
    sign = node.value
    while node.kind == "union" and node.value == sign:
        parts.append(node.items[1])
        node = node.items[0]
    return (node, *reversed(parts))


def _is_same_relation(lhs: Node, rhs: Node) -> bool:
    """Compare equations by their difference of sides, and other relations side by side."""
    if lhs.kind != rhs.kind or lhs.value != rhs.value:
        return False
    if lhs.value == ("=",):
        return _is_multiple(_difference(lhs), _difference(rhs))
    return all(map(is_same_answer, lhs.items, rhs.items))


def _difference(equation: Node) -> Node:
    lhs, rhs = equation.items
    return Node("sum", (lhs, negate(rhs)))


def _is_multiple(lhs: Node, rhs: Node) -> bool:
    """Whether one expression is a constant multiple of the other: both have the same zeros."""
    rows = values_of((lhs, rhs))
    ratios = [a / b for a, b in rows if b]
    return (
        len(ratios) == len(rows) > 0
        and abs(ratios[0]) > TOLERANCE
        and all(is_close(ratio, ratios[0]) for ratio in ratios)
    )


def _is_same_either(lhs: Node, rhs: Node) -> bool:
    """Compare ``a \\pm b`` with ``c \\pm d``."""
    return lhs.kind == rhs.kind and all(map(is_same_answer, lhs.items, rhs.items))


def _is_same_measure(lhs: Node, rhs: Node) -> bool:
    """Compare numbers with units, per cent or degrees."""
    units = [_unit_of(node) for node in (lhs, rhs)]
    if all(units) and units[0] != units[1]:
        return False
    bare_left, bare_right = (
        node.items[0] if node.kind in _MEASURES else node for node in (lhs, rhs)
    )
    if is_same_answer(bare_left, bare_right):
        return True
    return lhs.kind != rhs.kind and "unit" not in (lhs.kind, rhs.kind) and is_same_value(lhs, rhs)


# `square `, `cubic `, `^2`, `/`: parts of a unit other than its name.
_UNIT_POWER = re.compile(r"\b(?:square|sq|cubic|cu|per)\b|\^?\d|[/.^{}]")


def _unit_of(node: Node) -> str:
    """Return the name of a unit that Keju knows; empty for other units."""
    if node.kind == "percent":
        return "percent"
    if node.kind == "degrees":
        return "degree"
    if node.kind != "unit":
        return ""
    names = _UNIT_POWER.sub(" ", node.value).split()
    known_units = [UNITS.get(name) or UNITS.get(name.removesuffix("s"), "") for name in names]
    return known_units[0] if len(known_units) == 1 else ""


def _is_same_based(lhs: Node, rhs: Node) -> bool:
    """Compare numbers in a base; a number without a base is taken as written."""
    digits = [_digits_of(node) for node in (lhs, rhs)]
    bases = [node.value[1] for node in (lhs, rhs) if node.kind == "based"]
    return digits[0] == digits[1] != "" and len(set(bases)) == 1


def _digits_of(node: Node) -> str:
    if node.kind == "based":
        return str(node.value[0])
    return str(node.value) if node.kind == "number" else ""


def _is_same_constant(lhs: Node, rhs: Node) -> bool:
    """Compare infinities, the empty set and the real numbers; π is a value like any other."""
    if "pi" in (lhs.value, rhs.value):
        return is_same_value(lhs, rhs)
    return lhs == rhs


_MEASURES = frozenset({"unit", "percent", "degrees"})
_COMPARISONS: Sequence[tuple[frozenset[str], Callable[[Node, Node], bool]]] = (
    (_MEASURES, _is_same_measure),
    (frozenset({"text"}), _is_same_text),
    (frozenset({"set", "list"}), _is_same_collection),
    (frozenset({"tuple", "matrix"}), _is_same_sequence),
    (frozenset({"union"}), _is_same_union),
    (frozenset({"relation"}), _is_same_relation),
    (frozenset({"either"}), _is_same_either),
    (frozenset({"based"}), _is_same_based),
    (frozenset({"constant"}), _is_same_constant),
)
"""The comparisons of kinds, in this order; all other kinds compare values."""


# --- values ------------------------------------------------------------------------------------


def is_close(lhs: complex, rhs: complex, tolerance: float = TOLERANCE) -> bool:
    """Whether two values differ by at most the relative tolerance."""
    if lhs == rhs:
        return True
    size = max(abs(lhs), abs(rhs))
    return abs(lhs - rhs) <= tolerance * size or size < TOLERANCE * TOLERANCE


def is_same_value(lhs: Node, rhs: Node, tolerance: float = TOLERANCE) -> bool:
    """Compare expressions by their exact values, or by their values at several points."""
    exact = [exact_value(node) for node in (lhs, rhs)]
    if exact[0] is not None and exact[1] is not None:
        return exact[0] == exact[1] or _is_within(exact[0], exact[1], tolerance)
    is_approximation = any(
        value is not None and value.denominator > MOST_DECIMALS for value in exact
    )
    if is_approximation and tolerance == TOLERANCE:
        return False
    return _agree(lhs, rhs, tolerance)


def _is_within(lhs: Fraction, rhs: Fraction, tolerance: float) -> bool:
    return tolerance > TOLERANCE and math.isclose(lhs, rhs, rel_tol=tolerance)


def _agree(lhs: Node, rhs: Node, tolerance: float) -> bool:
    rows = values_of((lhs, rhs))
    return bool(rows) and all(is_close(a, b, tolerance) for a, b in rows)
