"""The base class of fresh tasks: draw a problem from a seed, write it as text, solve it from text.

A task is one subset of BBH whose questions follow a rule. It has three parts, which share only the
vocabulary:

    invent   draws a problem: numbers, indexes of names in a vocabulary, an order of events
    write    writes a problem as a question in a language, with its answer
    solve    reads a question, published or fresh, and computes its answer

`invent` does not depend on the language, so one seed gives the same question in every language.
`solve` reads only the text. It is tested on the published questions, without their answers.
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


class FreshQuestion(NamedTuple):
    """A question in BBH's form: the options are part of the text; a target is ``(B)`` or a word."""

    text: str
    target: str


class FreshTask(ABC):
    """One subset: it draws problems, writes them as questions, and solves them.

    A problem is any value that the task's methods exchange, usually a named tuple.
    """

    subset: str
    """The name of the subset in BBH."""
    languages: tuple[Language, ...] = ("en",)
    exceptions: Mapping[int, str] = {}
    """Published rows that `solve` answers differently from their targets, by index, with the
    reason."""

    @abstractmethod
    def invent(self, draw: random.Random, difficulty: float) -> Any:
        """Draw a problem. At difficulty 1 sizes and shares match the published questions."""

    @abstractmethod
    def write(self, problem: Any, language: Language) -> FreshQuestion:
        """Return the problem as a question with its answer."""

    @abstractmethod
    def solve(self, text: str) -> str | None:
        """Return the answer to a question in any of the languages, in the form of a target.

        None if the question is not understood; `solve` never guesses.
        """

    def space(self, difficulty: float) -> int | None:
        """Return the number of different questions, if an exam could come close to it."""
        return None


def scale_size(published: float, difficulty: float, *, least: int) -> int:
    """Return a published size multiplied by a difficulty: ``scaled(8, 1.5, least=2)`` is 12."""
    return max(least, round(published * difficulty))


def add_options(
    text: str, options: Sequence[str], answer: int, language: Language
) -> FreshQuestion:
    """Return a question with lettered options; `answer` is the index of the right one."""
    lines = [f"({label}) {option}" for label, option in zip(LABELS, options, strict=False)]
    return FreshQuestion("\n".join([text, OPTIONS[language], *lines]), f"({LABELS[answer]})")


def split_options(text: str) -> tuple[str, list[str]]:
    """Return a question's text and its options: ``(C) seven`` is the third one, ``- Yes`` is not
    one."""
    for line in OPTIONS.values():
        head, separator, tail = text.partition(f"\n{line}\n")
        if separator:
            option_lines = tail.split("\n") if tail.startswith("(A) ") else []
            return head, [option.partition(") ")[2] for option in option_lines]
    return text, []


def find_label(options: Sequence[str], answer: str) -> str | None:
    """Return the target for the only option equal to `answer`; None if it is not unique."""
    return f"({LABELS[options.index(answer)]})" if options.count(answer) == 1 else None
