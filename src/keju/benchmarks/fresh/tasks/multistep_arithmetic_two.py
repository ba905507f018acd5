"""``((-1 + 2 + 9 * 5) - (-2 + -4 + -4 * -7)) =``: the value of an expression with brackets.

Every published expression has two groups of four numbers from -9 to 9. A fresh one has as many
numbers as its difficulty asks for, in groups of about four, which are joined two by two:
``(((1 - 2) * (3 + 4)) - (5 * 6)) =``.
"""

from __future__ import annotations

import operator
import random
import re
from collections.abc import Callable

from keju.benchmarks.fresh.task import Language, Question, Task, scaled

PUBLISHED_NUMBERS = 8
GROUP = 4
"""Numbers of a published group."""
LARGEST = 9
OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}
SIGNS = tuple(OPERATIONS)
ASKED = {"en": "{} =", "zh": "计算：{} ="}
TOKEN = re.compile(r" ([-+*]) |(-?\d+)|([()])")
"""An operation between spaces, a number, a bracket: the first minus of ``2 - -3`` is no sign."""
SMALL = 3
"""Up to so many numbers an exam could come near the number of different expressions."""

Tree = int | list["Tree | str"]
"""A number, or values with operations between them: ``[1, "+", [2, "*", 3]]``."""


class MultistepArithmeticTwo(Task):
    """A problem is the tree of its expression."""

    subset = "multistep_arithmetic_two"
    languages = ("en", "zh")

    def invent(self, draw: random.Random, difficulty: float) -> Tree:
        numbers = scaled(PUBLISHED_NUMBERS, difficulty, least=2)
        groups = max(1, round(numbers / GROUP))
        sizes = [numbers // groups + (place < numbers % groups) for place in range(groups)]
        return _joined(draw, [_group(draw, size) for size in sizes])

    def write(self, problem: Tree, language: Language) -> Question:
        return Question(ASKED[language].format(_text(problem)), str(_value(problem)))

    def solve(self, text: str) -> str | None:
        for asked in ASKED.values():
            before, after = asked.split("{}")
            if text.startswith(before) and text.endswith(after):
                value = Reader(text.removeprefix(before).removesuffix(after)).value()
                if value is not None:
                    return str(value)
        return None

    def space(self, difficulty: float) -> int | None:
        numbers = scaled(PUBLISHED_NUMBERS, difficulty, least=2)
        if numbers > SMALL:
            return None
        return int((2 * LARGEST + 1) ** numbers * len(SIGNS) ** (numbers - 1))


# --- drawing and writing -----------------------------------------------------------------------


def _group(draw: random.Random, size: int) -> Tree:
    """So many numbers with an operation between every two: ``[3, "*", -3, "+", 6]``."""
    group: list[Tree | str] = [draw.randint(-LARGEST, LARGEST)]
    for _ in range(size - 1):
        group += (draw.choice(SIGNS), draw.randint(-LARGEST, LARGEST))
    return group


def _joined(draw: random.Random, groups: list[Tree]) -> Tree:
    """Groups joined two by two: four become ``((a + b) * (c - d))``."""
    if len(groups) == 1:
        return groups[0]
    half = (len(groups) + 1) // 2
    sign = draw.choice(SIGNS)
    return [_joined(draw, groups[:half]), sign, _joined(draw, groups[half:])]


def _text(tree: Tree | str) -> str:
    return f"({' '.join(map(_text, tree))})" if isinstance(tree, list) else str(tree)


def _value(tree: Tree) -> int:
    """The sum of the products that a tree is made of."""
    if isinstance(tree, int):
        return tree
    total, product = 0, 0
    for sign, part in zip(["+", *tree[1::2]], tree[::2], strict=True):
        assert not isinstance(part, str)
        value = _value(part)
        if sign == "*":
            product *= value
        else:
            total, product = total + product, value if sign == "+" else -value
    return total + product


# --- solving -----------------------------------------------------------------------------------


class Reader:
    """Reads an expression from left to right; ``*`` binds before ``+`` and ``-``."""

    def __init__(self, text: str) -> None:
        self._tokens: list[str] = []
        end = 0
        for found in TOKEN.finditer(text):
            self._tokens.append(found[0].strip() if found.start() == end else "?")
            end = found.end()
        self._tokens = [*self._tokens, "?" if end < len(text) else ""][::-1]

    def value(self) -> int | None:
        """The value of the whole expression; None where it is none."""
        try:
            value = self._sum()
        except ValueError:
            return None
        return value if self._tokens == [""] else None

    def _sum(self) -> int:
        value = self._product()
        while (sign := self._tokens[-1]) in ("+", "-"):
            self._tokens.pop()
            value = OPERATIONS[sign](value, self._product())
        return value

    def _product(self) -> int:
        value = self._factor()
        while self._tokens[-1] == "*":
            self._tokens.pop()
            value *= self._factor()
        return value

    def _factor(self) -> int:
        token = self._tokens.pop() if self._tokens[-1] else ""
        if token != "(":
            return int(token)
        value = self._sum()
        if self._tokens[-1] != ")":
            raise ValueError("a bracket is not closed")
        self._tokens.pop()
        return value
