"""Two groups of different items, of which the first may score higher: how far, and by chance?

For the same questions see `keju.stats.paired`. Groups may come in strata, subsets say: each is
compared with its own counterpart alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Self

from keju.stats.intervals import Z95, Interval, floor_p, normal_survival, wilson


class Group(NamedTuple):
    """The scores of one group, in [0, 1]."""

    n: int
    total: float
    squares: float
    """The sum of their squares."""

    @classmethod
    def of(cls, scores: Iterable[float]) -> Self:
        """The group of these scores."""
        values = list(scores)
        return cls(len(values), math.fsum(values), math.fsum(value * value for value in values))

    @property
    def mean(self) -> float:
        """The mean score."""
        return self.total / self.n

    @property
    def binary(self) -> bool:
        """Whether every score is 0 or 1."""
        return self.total == self.squares

    @property
    def variance(self) -> float:
        """Of the mean; as if there were one right and one wrong score more: nothing is certain."""
        mean = (self.total + 1) / (self.n + 2)
        spread = (self.squares + 1) / (self.n + 2) - mean * mean
        return max(0.0, spread) / self.n


class Apart(NamedTuple):
    """How far apart two groups are: the first minus the second."""

    value: float
    interval: Interval
    p: float
    """One-sided: the chance of a difference as large as this where the first is no better."""


def group_difference(first: Group, second: Group) -> Apart | None:
    """The difference of two groups, with Newcombe's hybrid score interval; None without scores.

    The test is Fisher's exact one where scores are right or wrong, else that of all ways to deal
    the scores out, which is normal for many.
    """
    if not first.n or not second.n:
        return None
    value = first.mean - second.mean
    first_interval, second_interval = wilson(first.mean, first.n), wilson(second.mean, second.n)
    low = value - math.hypot(first.mean - first_interval.low, second_interval.high - second.mean)
    high = value + math.hypot(first_interval.high - first.mean, second.mean - second_interval.low)
    p = fisher(first, second) if first.binary and second.binary else None
    p = floor_p(normal_survival(_z([(first, second)]))) if p is None else p
    return Apart(value, Interval(max(-1.0, low), min(1.0, high)), p)


def stratified_difference(strata: Sequence[tuple[Group, Group]]) -> Apart | None:
    """The difference over strata, as Mantel and Haenszel weigh them; None without scores.

    So is the test: the variance is that of all ways to deal the scores of a stratum out to its two
    groups, and half an answer is taken off where scores are right or wrong. The interval takes the
    variances of the groups themselves.
    """
    strata = [pair for pair in strata if pair[0].n and pair[1].n]
    if not strata:
        return None
    weights = [first.n * second.n / (first.n + second.n) for first, second in strata]
    total_weight = math.fsum(weights)
    pairs = list(zip(weights, strata, strict=True))
    value = math.fsum(weight * (first_group.mean - second_group.mean) for weight, (first_group, second_group) in pairs) / total_weight
    variance = math.fsum(weight**2 * (first_group.variance + second_group.variance) for weight, (first_group, second_group) in pairs)
    half = Z95 * math.sqrt(variance) / total_weight
    return Apart(value, Interval(value - half, value + half), floor_p(normal_survival(_z(strata))))


def fisher(first: Group, second: Group) -> float:
    """The chance to deal the first group as many right answers or more: Fisher's exact test."""
    n, right, first_right = first.n + second.n, round(first.total + second.total), round(first.total)
    # P(k) of the hypergeometric distribution, from the number seen up to the largest possible.
    logs = [
        _log_choices(right, k) + _log_choices(n - right, first.n - k)
        for k in range(first_right, min(first.n, right) + 1)
    ]
    log_total = _log_choices(n, first.n)
    return floor_p(min(1.0, math.fsum(math.exp(log - log_total) for log in logs)))


def _log_choices(n: int, k: int) -> float:
    """The logarithm of the ways to choose k of n."""
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _z(strata: Iterable[tuple[Group, Group]]) -> float:
    """How many standard errors the first groups are above what chance would deal them.

    Right and wrong come in steps: such a difference loses half an answer on its way to 0, so that
    the test errs on the safe side.
    """
    excess = variance = 0.0
    step = 0.5
    for first, second in strata:
        n, total = first.n + second.n, first.total + second.total
        step = step if first.binary and second.binary else 0.0
        excess += first.total - first.n * total / n
        if n > 1:
            spread = (first.squares + second.squares - total * total / n) / (n - 1)
            variance += first.n * second.n / n * max(0.0, spread)
    if variance <= 0:
        return 0.0
    return math.copysign(max(0.0, abs(excess) - step), excess) / math.sqrt(variance)
