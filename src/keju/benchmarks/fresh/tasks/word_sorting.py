"""``Sort the following words alphabetically: List: oyster costume`` gives ``costume oyster``.

The published lists have two to twenty words; all lengths are equally likely.
"""

from __future__ import annotations

import random

from keju.benchmarks.fresh.task import FreshQuestion, FreshTask, Language, scale_size
from keju.benchmarks.fresh.vocabulary import vocabulary

PUBLISHED_WORDS = (2, 20)
REQUEST = "Sort the following words alphabetically: List: "


class WordSorting(FreshTask):
    """A problem is a list of words."""

    subset = "word_sorting"

    def invent(self, draw: random.Random, difficulty: float) -> list[str]:
        size = scale_size(draw.randint(*PUBLISHED_WORDS), difficulty, least=2)
        return draw.sample(vocabulary("words.en"), size)

    def write(self, problem: list[str], language: Language) -> FreshQuestion:
        return FreshQuestion(REQUEST + " ".join(problem), " ".join(sorted(problem)))

    def solve(self, text: str) -> str | None:
        if not text.startswith(REQUEST):
            return None
        words = text.removeprefix(REQUEST).split()
        # Merge sorted runs in pairs until one run remains.
        runs = [[word] for word in words]
        while len(runs) > 1:
            pairs = zip(runs[::2], [*runs[1::2], []], strict=False)
            runs = [_merge_runs(left_run, right_run) for left_run, right_run in pairs]
        return " ".join(runs[0]) if runs else None


def _merge_runs(left_run: list[str], right_run: list[str]) -> list[str]:
    """Merge two sorted lists."""
    merged: list[str] = []
    left_stack, right_stack = left_run[::-1], right_run[::-1]
    while left_stack and right_stack:
        merged.append(left_stack.pop() if left_stack[-1] <= right_stack[-1] else right_stack.pop())
    return merged + left_stack[::-1] + right_stack[::-1]
