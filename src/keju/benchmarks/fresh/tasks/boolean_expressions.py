"""``not ( True ) and ( True ) is``: the value of a Boolean expression.

Every published expression has eight tokens. A fresh one is drawn from all expressions of its
length that have its value, each as likely as any other: the table counts how many ways there are
to go on, and what is worth the other value is drawn again. True and False are equally likely.
"""

from __future__ import annotations

import random
from functools import cache

from keju.benchmarks.fresh.task import Language, Question, Task, scaled

PUBLISHED_TOKENS = 8
PUBLISHED_ROWS = 250
DEEPEST = 3
"""Open brackets at one place, as published; longer expressions may nest deeper."""
WORDS = {
    "en": {"True": "True", "False": "False", "not": "not", "and": "and", "or": "or"},
    "zh": {"True": "真", "False": "假", "not": "非", "and": "且", "or": "或"},
}
ASKED = {"en": "{} is", "zh": "{} 的值是"}

# --- drawing -----------------------------------------------------------------------------------

# The grammar as a machine: before a value comes `not`, `(` or the value, after it `)`, `and`, `or`.
BEFORE, AFTER = (("not", 0, 0), ("(", 1, 0), ("True", 0, 1), ("False", 0, 1)), (
    (")", -1, 1), ("and", 0, 0), ("or", 0, 0),
)  # fmt: skip
"""Tokens with the change of depth and the state that follows: 0 before a value, 1 after it."""


@cache
def count(tokens: int, depth: int, state: int) -> int:
    """In how many ways `tokens` more tokens end an expression that has `depth` open brackets."""
    if not tokens:
        return int(depth == 0 and state == 1)
    total = 0
    for _, change, after in AFTER if state else BEFORE:
        if 0 <= depth + change <= DEEPEST:
            total += count(tokens - 1, depth + change, after)
    return total


def _expression(draw: random.Random, left: int) -> list[str]:
    """One of the expressions of `left` tokens, each as likely as any other."""
    depth, state = 0, 0
    tokens: list[str] = []
    while left:
        place = draw.randrange(count(left, depth, state))
        left -= 1
        for token, change, after in AFTER if state else BEFORE:
            if not 0 <= depth + change <= DEEPEST:
                continue
            ways = count(left, depth + change, after)
            if place < ways:
                tokens.append(token)
                depth, state = depth + change, after
                break
            place -= ways
    return tokens


class BooleanExpressions(Task):
    """A problem is a list of tokens."""

    subset = "boolean_expressions"
    languages = ("en", "zh")

    def invent(self, draw: random.Random, difficulty: float) -> list[str]:
        size, wanted = scaled(PUBLISHED_TOKENS, difficulty, least=2), draw.random() < 0.5
        while _value(tokens := _expression(draw, size)) != wanted:
            pass
        return tokens

    def write(self, problem: list[str], language: Language) -> Question:
        words = WORDS[language]
        text = " ".join(words.get(token, token) for token in problem)
        return Question(ASKED[language].format(text), words[str(_value(problem))])

    def solve(self, text: str) -> str | None:
        for language, words in WORDS.items():
            before, after = ASKED[language].split("{}")
            if text.startswith(before) and text.endswith(after):
                meaning = {word: token for token, word in words.items()}
                tokens = text.removeprefix(before).removesuffix(after).split()
                value = Parser([meaning.get(token, token) for token in tokens]).value()
                return None if value is None else words[str(value)]
        return None

    def space(self, difficulty: float) -> int:
        size = scaled(PUBLISHED_TOKENS, difficulty, least=2)
        return count(size, 0, 0) - (PUBLISHED_ROWS if size == PUBLISHED_TOKENS else 0)


def _value(tokens: list[str]) -> bool:
    """What an expression is worth: the brackets first, from the inside out."""
    flat: list[str] = []
    for token in tokens:
        if token != ")":
            flat.append(token)
            continue
        opening = len(flat) - 1 - flat[::-1].index("(")
        flat[opening:] = [str(_value(flat[opening + 1 :]))]
    clauses = " ".join(flat).split(" or ")
    return any(
        all((term.count("not") % 2 == 0) == term.endswith("True") for term in clause.split(" and "))
        for clause in clauses
    )


# --- solving -----------------------------------------------------------------------------------


class Parser:
    """Reads an expression from left to right: ``not`` binds before ``and``, that before ``or``."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens[::-1]

    def value(self) -> bool | None:
        """The value of the whole expression; None where it is none."""
        try:
            value = self._any()
        except ValueError:
            return None
        return None if self._tokens else value

    def _next(self, *wanted: str) -> str:
        """Take the next token if it is one of these."""
        return self._tokens.pop() if self._tokens and self._tokens[-1] in wanted else ""

    def _any(self) -> bool:
        value = self._all()
        while self._next("or"):
            value |= self._all()
        return value

    def _all(self) -> bool:
        value = self._one()
        while self._next("and"):
            value &= self._one()
        return value

    def _one(self) -> bool:
        if self._next("not"):
            return not self._one()
        if self._next("("):
            value = self._any()
            if not self._next(")"):
                raise ValueError("a bracket is not closed")
            return value
        token = self._next("True", "False")
        if not token:
            raise ValueError("no value")
        return token == "True"
