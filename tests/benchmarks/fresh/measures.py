"""Published and fresh questions side by side: how far apart their sizes and shares are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from statistics import mean

from keju.benchmarks.fresh.making import make_questions
from keju.benchmarks.fresh.task import FreshQuestion
from keju.benchmarks.fresh.tasks import TASKS

FRESH = 1000


def fresh(
    subset: str, n: int = FRESH, *, seed: int = 1, difficulty: float = 1.0
) -> list[FreshQuestion]:
    """Fresh questions of a subset, as hard as the published ones."""
    return list(make_questions(TASKS[subset], n, seed=seed, difficulty=difficulty))


def mean_gap(
    measure: Callable[[FreshQuestion], float],
    published: Sequence[FreshQuestion],
    fresh_questions: Sequence[FreshQuestion],
) -> float:
    """How much the mean of a measure differs, as a share of the published one."""
    published_mean = mean(map(measure, published))
    return abs(mean(map(measure, fresh_questions)) - published_mean) / published_mean


def share_gap(
    measure: Callable[[FreshQuestion], Hashable],
    published: Sequence[FreshQuestion],
    fresh_questions: Sequence[FreshQuestion],
) -> float:
    """How much the share of any one value differs at most."""
    published_counts, fresh_counts = (
        Counter(map(measure, published)),
        Counter(map(measure, fresh_questions)),
    )
    return max(
        abs(published_counts[v] / len(published) - fresh_counts[v] / len(fresh_questions))
        for v in published_counts | fresh_counts
    )


def length(question: FreshQuestion) -> int:
    """Characters of a question."""
    return len(question.text)
