"""What a task of a fresh exam is: problems drawn from a seed, put into words, solved from words.

A task is one subset of BBH whose questions follow a rule. It has three parts, which share nothing
but the vocabulary:

    invent   draws a problem: numbers, names by their place in a vocabulary, an order of events
    write    puts a problem into words in a language and says what its answer is
    solve    reads a question, a published or a fresh one, and computes its answer

`invent` knows nothing of languages, so that one seed gives the same question in each. `solve` reads
the text alone: it is measured on the published questions, where nobody told it the answer.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from keju.types import LABELS

Language = Literal["en", "zh"]

OPTIONS = {"en": "Options:", "zh": "选项："}
"""The line before the options of a question."""


class Question(NamedTuple):
    """A question as BBH writes it: options stand in its text; a target is ``(B)`` or a word."""

    text: str
    target: str


class Task(ABC):
    """One subset: how its problems are drawn, put into words, and solved.

    A problem is whatever the task's own parts hand to each other, usually a named tuple.
    """

    subset: str
    """The name that BBH gives it."""
    languages: tuple[Language, ...] = ("en",)
    exceptions: Mapping[int, str] = {}
    """Published rows that `solve` does not answer as published, by index, and why."""

    @abstractmethod
    def invent(self, draw: random.Random, difficulty: float) -> Any:
        """Draw a problem. At difficulty 1 sizes and shares are those of the published questions."""

    @abstractmethod
    def write(self, problem: Any, language: Language) -> Question:
        """The problem in words, and its answer."""

    @abstractmethod
    def solve(self, text: str) -> str | None:
        """The answer to a question in any of the languages, spelt as a target.

        None where the question is not understood: never a guess.
        """

    def space(self, difficulty: float) -> int | None:
        """How many different questions there are, where an exam could come near that number."""
        return None


def scaled(published: float, difficulty: float, *, least: int) -> int:
    """A published size times a difficulty: ``scaled(8, 1.5, least=2)`` is 12."""
    return max(least, round(published * difficulty))


def with_options(text: str, options: Sequence[str], answer: int, language: Language) -> Question:
    """A question with lettered options, of which number `answer` is right."""
    lines = [f"({label}) {option}" for label, option in zip(LABELS, options, strict=False)]
    return Question("\n".join([text, OPTIONS[language], *lines]), f"({LABELS[answer]})")


def split_options(text: str) -> tuple[str, list[str]]:
    """A question without its options, and those; ``(C) seven`` is the third, ``- Yes`` is none."""
    for line in OPTIONS.values():
        head, found, tail = text.partition(f"\n{line}\n")
        if found:
            lettered = tail.split("\n") if tail.startswith("(A) ") else []
            return head, [option.partition(") ")[2] for option in lettered]
    return text, []


def label_of(options: Sequence[str], answer: str) -> str | None:
    """The target of the one option that is `answer`; None where no or several options are."""
    return f"({LABELS[options.index(answer)]})" if options.count(answer) == 1 else None
