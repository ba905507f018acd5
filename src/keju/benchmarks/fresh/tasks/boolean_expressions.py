"""``not ( True ) and ( True ) is``: the value of a Boolean expression.

Every published expression has eight tokens. A fresh one is drawn uniformly from all expressions of
its length with the required value. A table counts the possible continuations, and expressions with
the other value are drawn again. True and False are equally likely.
"""

from __future__ import annotations

import random
from functools import cache

from keju.benchmarks.fresh.task import FreshQuestion, FreshTask, Language, scale_size

PUBLISHED_TOKENS = 8
PUBLISHED_ROWS = 250
MAX_DEPTH = 3
"""Maximum nesting of brackets, as published."""
WORDS = {
    "en": {"True": "True", "False": "False", "not": "not", "and": "and", "or": "or"},
    "zh": {"True": "真", "False": "假", "not": "非", "and": "且", "or": "或"},
}
QUESTION_FORMS = {"en": "{} is", "zh": "{} 的值是"}

# --- drawing -----------------------------------------------------------------------------------

# The grammar as a state machine. Before a value comes `not`, `(` or the value; after it `)`, `and`,
# `or`.
BEFORE, AFTER = (("not", 0, 0), ("(", 1, 0), ("True", 0, 1), ("False", 0, 1)), (
    (")", -1, 1), ("and", 0, 0), ("or", 0, 0),
)  # fmt: skip
"""Tokens with the change of depth and the next state: 0 before a value, 1 after it."""


@cache
def count_expressions(tokens: int, depth: int, state: int) -> int:
    """Return the number of ways to end an expression that has `depth` open brackets with `tokens`
    more tokens."""
    if not tokens:
        return int(depth == 0 and state == 1)
    total = 0
    for _, change, next_state in AFTER if state else BEFORE:
        if 0 <= depth + change <= MAX_DEPTH:
            total += count_expressions(tokens - 1, depth + change, next_state)
    return total


def _draw_expression(draw: random.Random, remaining: int) -> list[str]:
    """Draw an expression of `remaining` tokens; all are equally likely."""
    depth, state = 0, 0
    tokens: list[str] = []
    while remaining:
        place = draw.randrange(count_expressions(remaining, depth, state))
        remaining -= 1
        for token, change, next_state in AFTER if state else BEFORE:
            if not 0 <= depth + change <= MAX_DEPTH:
                continue
            ways = count_expressions(remaining, depth + change, next_state)
            if place < ways:
                tokens.append(token)
                depth, state = depth + change, next_state
                break
            place -= ways
    return tokens


class BooleanExpressions(FreshTask):
    """A problem is a list of tokens."""

    subset = "boolean_expressions"
    languages = ("en", "zh")

    def invent(self, draw: random.Random, difficulty: float) -> list[str]:
        size, target_value = scale_size(PUBLISHED_TOKENS, difficulty, least=2), draw.random() < 0.5
        while _evaluate(tokens := _draw_expression(draw, size)) != target_value:
            pass
        return tokens

    def write(self, problem: list[str], language: Language) -> FreshQuestion:
        words = WORDS[language]
        text = " ".join(words.get(token, token) for token in problem)
        return FreshQuestion(QUESTION_FORMS[language].format(text), words[str(_evaluate(problem))])

    def solve(self, text: str) -> str | None:
        for language, words in WORDS.items():
            prefix, suffix = QUESTION_FORMS[language].split("{}")
            if text.startswith(prefix) and text.endswith(suffix):
                token_of_word = {word: token for token, word in words.items()}
                tokens = text.removeprefix(prefix).removesuffix(suffix).split()
                value = BooleanParser([token_of_word.get(token, token) for token in tokens]).value()
                return None if value is None else words[str(value)]
        return None

    def space(self, difficulty: float) -> int:
        size = scale_size(PUBLISHED_TOKENS, difficulty, least=2)
        return count_expressions(size, 0, 0) - (PUBLISHED_ROWS if size == PUBLISHED_TOKENS else 0)


def _evaluate(tokens: list[str]) -> bool:
    """Return the value of an expression; the innermost brackets are evaluated first."""
    flat: list[str] = []
    for token in tokens:
        if token != ")":
            flat.append(token)
            continue
        opening = len(flat) - 1 - flat[::-1].index("(")
        flat[opening:] = [str(_evaluate(flat[opening + 1 :]))]
    clauses = " ".join(flat).split(" or ")
    return any(
        all((term.count("not") % 2 == 0) == term.endswith("True") for term in clause.split(" and "))
        for clause in clauses
    )


# --- solving -----------------------------------------------------------------------------------


class BooleanParser:
    """Parses an expression from left to right; precedence is ``not``, ``and``, ``or``."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens[::-1]

    def value(self) -> bool | None:
        """Return the value of the full expression, or None if it is invalid."""
        try:
            value = self._parse_or()
        except ValueError:
            return None
        return None if self._tokens else value

    def _take(self, *accepted_tokens: str) -> str:
        """Take the next token if it is one of these."""
        return self._tokens.pop() if self._tokens and self._tokens[-1] in accepted_tokens else ""

    def _parse_or(self) -> bool:
        value = self._parse_and()
        while self._take("or"):
            value |= self._parse_and()
        return value

    def _parse_and(self) -> bool:
        value = self._parse_factor()
        while self._take("and"):
            value &= self._parse_factor()
        return value

    def _parse_factor(self) -> bool:
        if self._take("not"):
            return not self._parse_factor()
        if self._take("("):
            value = self._parse_or()
            if not self._take(")"):
                raise ValueError("a bracket is not closed")
            return value
        token = self._take("True", "False")
        if not token:
            raise ValueError("no value")
        return token == "True"
