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
    made: Sequence[FreshQuestion],
) -> float:
    """How much the mean of a measure differs, as a share of the published one."""
    known = mean(map(measure, published))
    return abs(mean(map(measure, made)) - known) / known


def share_gap(
    measure: Callable[[FreshQuestion], Hashable],
    published: Sequence[FreshQuestion],
    made: Sequence[FreshQuestion],
) -> float:
    """How much the share of any one value differs at most."""
    one, two = Counter(map(measure, published)), Counter(map(measure, made))
    return max(abs(one[v] / len(published) - two[v] / len(made)) for v in one | two)


def length(question: FreshQuestion) -> int:
    """Characters of a question."""
    return len(question.text)
