"""``Sort the following words alphabetically: List: oyster costume`` gives ``costume oyster``.

The published lists have two to twenty words, each length as often as any other.
"""

from __future__ import annotations

import random

from keju.benchmarks.fresh.task import Language, Question, Task, scaled
from keju.benchmarks.fresh.vocabulary import vocabulary

PUBLISHED_WORDS = (2, 20)
ASKED = "Sort the following words alphabetically: List: "


class WordSorting(Task):
    """A problem is a list of words."""

    subset = "word_sorting"

    def invent(self, draw: random.Random, difficulty: float) -> list[str]:
        size = scaled(draw.randint(*PUBLISHED_WORDS), difficulty, least=2)
        return draw.sample(vocabulary("words.en"), size)

    def write(self, problem: list[str], language: Language) -> Question:
        return Question(ASKED + " ".join(problem), " ".join(sorted(problem)))

    def solve(self, text: str) -> str | None:
        if not text.startswith(ASKED):
            return None
        words = text.removeprefix(ASKED).split()
        # Merging sorted runs: pairs of words, pairs of pairs, until one run is left.
        runs = [[word] for word in words]
        while len(runs) > 1:
            pairs = zip(runs[::2], [*runs[1::2], []], strict=False)
            runs = [_merged(first, second) for first, second in pairs]
        return " ".join(runs[0]) if runs else None


def _merged(first: list[str], second: list[str]) -> list[str]:
    """Two sorted lists as one."""
    merged: list[str] = []
    one, two = first[::-1], second[::-1]
    while one and two:
        merged.append(one.pop() if one[-1] <= two[-1] else two.pop())
    return merged + one[::-1] + two[::-1]
