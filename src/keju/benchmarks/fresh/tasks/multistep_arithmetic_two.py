"""``((-1 + 2 + 9 * 5) - (-2 + -4 + -4 * -7)) =``: the value of an expression with brackets.

Every published expression has two groups of four numbers from -9 to 9. The difficulty of a fresh
one determines how many numbers it has. They are in groups of about four, which are joined in pairs:
``(((1 - 2) * (3 + 4)) - (5 * 6)) =``.
"""

from __future__ import annotations

import operator
import random
import re
from collections.abc import Callable

from keju.benchmarks.fresh.task import FreshQuestion, FreshTask, Language, scale_size

PUBLISHED_NUMBERS = 8
GROUP = 4
"""Numbers in a published group."""
LARGEST = 9
OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}
SIGNS = tuple(OPERATIONS)
QUESTION_FORMS = {"en": "{} =", "zh": "计算：{} ="}
TOKEN = re.compile(r" ([-+*]) |(-?\d+)|([()])")
"""An operation between spaces, a number, a bracket; the second minus of ``2 - -3`` is a sign."""
SMALL = 3
"""Up to this many numbers, an exam could come close to the number of different expressions."""

Tree = int | list["Tree | str"]
"""A number, or values with operations between them: ``[1, "+", [2, "*", 3]]``."""


class MultistepArithmeticTwo(FreshTask):
    """A problem is the tree of its expression."""

    subset = "multistep_arithmetic_two"
    languages = ("en", "zh")

    def invent(self, draw: random.Random, difficulty: float) -> Tree:
        numbers = scale_size(PUBLISHED_NUMBERS, difficulty, least=2)
        groups = max(1, round(numbers / GROUP))
        sizes = [numbers // groups + (place < numbers % groups) for place in range(groups)]
        return _join_groups(draw, [_draw_group(draw, size) for size in sizes])

    def write(self, problem: Tree, language: Language) -> FreshQuestion:
        return FreshQuestion(
            QUESTION_FORMS[language].format(_tree_text(problem)), str(_evaluate(problem))
        )

    def solve(self, text: str) -> str | None:
        for question_form in QUESTION_FORMS.values():
            prefix, suffix = question_form.split("{}")
            if text.startswith(prefix) and text.endswith(suffix):
                value = ExpressionParser(text.removeprefix(prefix).removesuffix(suffix)).value()
                if value is not None:
                    return str(value)
        return None

    def space(self, difficulty: float) -> int | None:
        numbers = scale_size(PUBLISHED_NUMBERS, difficulty, least=2)
        if numbers > SMALL:
            return None
        return int((2 * LARGEST + 1) ** numbers * len(SIGNS) ** (numbers - 1))


# --- drawing and writing -----------------------------------------------------------------------


def _draw_group(draw: random.Random, size: int) -> Tree:
    """Draw numbers with an operation between each two: ``[3, "*", -3, "+", 6]``."""
    group: list[Tree | str] = [draw.randint(-LARGEST, LARGEST)]
    for _ in range(size - 1):
        group += (draw.choice(SIGNS), draw.randint(-LARGEST, LARGEST))
    return group


def _join_groups(draw: random.Random, groups: list[Tree]) -> Tree:
    """Join groups in pairs: four become ``((a + b) * (c - d))``."""
    if len(groups) == 1:
        return groups[0]
    half = (len(groups) + 1) // 2
    sign = draw.choice(SIGNS)
    return [_join_groups(draw, groups[:half]), sign, _join_groups(draw, groups[half:])]


def _tree_text(tree: Tree | str) -> str:
    return f"({' '.join(map(_tree_text, tree))})" if isinstance(tree, list) else str(tree)


def _evaluate(tree: Tree) -> int:
    """Return the value of a tree as the sum of its products."""
    if isinstance(tree, int):
        return tree
    total, product = 0, 0
    for sign, part in zip(["+", *tree[1::2]], tree[::2], strict=True):
        assert not isinstance(part, str)
        value = _evaluate(part)
        if sign == "*":
            product *= value
        else:
            total, product = total + product, value if sign == "+" else -value
    return total + product


# --- solving -----------------------------------------------------------------------------------


class ExpressionParser:
    """Parses an expression from left to right; ``*`` binds before ``+`` and ``-``."""

    def __init__(self, text: str) -> None:
        self._tokens: list[str] = []
        end = 0
        for match in TOKEN.finditer(text):
            self._tokens.append(match[0].strip() if match.start() == end else "?")
            end = match.end()
        self._tokens = [*self._tokens, "?" if end < len(text) else ""][::-1]

    def value(self) -> int | None:
        """Return the value of the full expression, or None if it is invalid."""
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
