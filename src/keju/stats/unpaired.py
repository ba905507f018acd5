"""Differences of two groups of different items, tested in one direction: the first may score
higher.

For the same questions see `keju.stats.paired`. Groups may come in strata such as subsets: each
group is only compared with its counterpart in the same stratum.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Self

from keju.stats.intervals import Z95, Interval, floor_p, normal_survival, wilson


class ScoreGroup(NamedTuple):
    """The scores of one group, in [0, 1]."""

    n: int
    total: float
    squares: float
    """The sum of the squared scores."""

    @classmethod
    def of(cls, scores: Iterable[float]) -> Self:
        """Return the group of these scores."""
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
        """The variance of the mean, computed with one more right and one more wrong score."""
        mean = (self.total + 1) / (self.n + 2)
        spread = (self.squares + 1) / (self.n + 2) - mean * mean
        return max(0.0, spread) / self.n


class GroupDifference(NamedTuple):
    """The difference of two groups: the first minus the second."""

    value: float
    interval: Interval
    p: float
    """One-sided: the probability of a difference at least this large if the first is not better."""


def group_difference(first_group: ScoreGroup, second_group: ScoreGroup) -> GroupDifference | None:
    """Return the difference of two groups with Newcombe's hybrid score interval; None without
    scores.

    The test is Fisher's exact test if scores are right or wrong. Otherwise it is the permutation
    test, in its normal approximation.
    """
    if not first_group.n or not second_group.n:
        return None
    value = first_group.mean - second_group.mean
    first_interval, second_interval = (
        wilson(first_group.mean, first_group.n),
        wilson(second_group.mean, second_group.n),
    )
    low = value - math.hypot(
        first_group.mean - first_interval.low, second_interval.high - second_group.mean
    )
    high = value + math.hypot(
        first_interval.high - first_group.mean, second_group.mean - second_interval.low
    )
    p = fisher(first_group, second_group) if first_group.binary and second_group.binary else None
    p = floor_p(normal_survival(_z([(first_group, second_group)]))) if p is None else p
    return GroupDifference(value, Interval(max(-1.0, low), min(1.0, high)), p)


def stratified_difference(
    strata: Sequence[tuple[ScoreGroup, ScoreGroup]],
) -> GroupDifference | None:
    """Return the difference over strata with Mantel-Haenszel weights; None without scores.

    The test uses the same weights. Its variance is over all assignments of a stratum's scores to
    its two groups, with a continuity correction of half an answer if scores are right or wrong. The
    interval uses the variances of the groups themselves.
    """
    strata = [pair for pair in strata if pair[0].n and pair[1].n]
    if not strata:
        return None
    weights = [
        first_group.n * second_group.n / (first_group.n + second_group.n)
        for first_group, second_group in strata
    ]
    total_weight = math.fsum(weights)
    pairs = list(zip(weights, strata, strict=True))
    value = (
        math.fsum(
            weight * (first_group.mean - second_group.mean)
            for weight, (first_group, second_group) in pairs
        )
        / total_weight
    )
    variance = math.fsum(
        weight**2 * (first_group.variance + second_group.variance)
        for weight, (first_group, second_group) in pairs
    )
    half = Z95 * math.sqrt(variance) / total_weight
    return GroupDifference(
        value, Interval(value - half, value + half), floor_p(normal_survival(_z(strata)))
    )


def fisher(first_group: ScoreGroup, second_group: ScoreGroup) -> float:
    """Return p of Fisher's exact test: the first group has at least as many right answers by
    chance."""
    n, right, first_right = (
        first_group.n + second_group.n,
        round(first_group.total + second_group.total),
        round(first_group.total),
    )
    # P(k) of the hypergeometric distribution, from the observed number to the largest possible.
    logs = [
        _log_choices(right, k) + _log_choices(n - right, first_group.n - k)
        for k in range(first_right, min(first_group.n, right) + 1)
    ]
    log_total = _log_choices(n, first_group.n)
    return floor_p(min(1.0, math.fsum(math.exp(log - log_total) for log in logs)))


def _log_choices(n: int, k: int) -> float:
    """Return the logarithm of the number of ways to choose k of n."""
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _z(strata: Iterable[tuple[ScoreGroup, ScoreGroup]]) -> float:
    """Return how many standard errors the first groups are above the expectation under chance.

    Right-or-wrong scores come in steps, so the difference is reduced by half an answer. This keeps
    the test conservative.
    """
    excess = variance = 0.0
    step = 0.5
    for first_group, second_group in strata:
        n, total = first_group.n + second_group.n, first_group.total + second_group.total
        step = step if first_group.binary and second_group.binary else 0.0
        excess += first_group.total - first_group.n * total / n
        if n > 1:
            spread = (first_group.squares + second_group.squares - total * total / n) / (n - 1)
            variance += first_group.n * second_group.n / n * max(0.0, spread)
    if variance <= 0:
        return 0.0
    return math.copysign(max(0.0, abs(excess) - step), excess) / math.sqrt(variance)
