"""Differences of two runs, or two readers, on the same items, with tests and intervals.

A pair is (first, second): both scores of one item, in [0, 1]. A difference is first minus second,
in [-1, 1]. If many tests are made at once, `holm` and `benjamini_hochberg` adjust their p.
"""

from __future__ import annotations

import math
import random
from array import array
from collections.abc import Hashable, Sequence
from typing import Literal, NamedTuple

from keju.stats.intervals import (
    Z95,
    Imbalance,
    Interval,
    Moments,
    floor_p,
    imbalance,
    log10_p,
    normal_quantile,
    normal_survival,
    normal_survival_log10,
    student_t_quantile,
)

ALL_SIGNS = 20
"""Number of differences up to which the permutation test goes through all sign vectors."""
MOST_SUMS = 1 << 12
"""Number of different sums up to which it does so for more differences."""
MANY_SIGNS = 100
"""Number of differences from which their sum is treated as normal if it has too many values."""
DRAWS = 100_000
_TIE = 1e-9
"""Sums closer than this are equal up to rounding."""


class McNemar(NamedTuple):
    """McNemar's test of two yes-or-no scores, from the items on which only one of them is right."""

    first_only: int
    second_only: int
    p: float
    """Exact and two-sided; 1 if no item is discordant."""
    mid_p: float
    """The same with half of the observed outcome, which is less cautious."""
    p_log10: float = 0.0
    """The logarithm of `p`, exact even if `p` is at its floor."""


def mcnemar(first_only: int, second_only: int) -> McNemar:
    """Return the exact test: each discordant item is a fair coin if both are equally good."""
    total, fewer_wins = first_only + second_only, min(first_only, second_only)
    if first_only == second_only:
        return McNemar(first_only, second_only, 1.0, 1.0)
    logs = (
        math.lgamma(total + 1) - math.lgamma(fewer_wins + 1) - math.lgamma(total - fewer_wins + 1)
    )
    logs -= total * math.log(2)
    tail, term = 0.0, 1.0  # relative to the probability of the observed count
    for successes in range(fewer_wins, -1, -1):  # P(k - 1) = P(k) k / (total - k + 1)
        tail += term
        term *= successes / (total - successes + 1)
        if term < tail * 1e-17:
            break
    observed = math.exp(logs)
    p = min(1.0, 2 * tail * observed)
    p_log10 = min(0.0, (logs + math.log(2 * tail)) / math.log(10))
    return McNemar(first_only, second_only, floor_p(p), floor_p(p - observed), p_log10)


def bonett_price(first_only: int, second_only: int, n: int) -> Interval:
    """Return the interval of a difference of two shares on the same `n` items (Bonett and Price
    2012).

    One item is added to each kind of discordance, so zero discordant items do not count as certain.
    """
    first_share, second_share = (first_only + 1) / (n + 2), (second_only + 1) / (n + 2)
    half = Z95 * math.sqrt(
        (first_share + second_share - (first_share - second_share) ** 2) / (n + 2)
    )
    return clip_difference(
        Interval(first_share - second_share - half, first_share - second_share + half)
    )


def clip_difference(interval: Interval) -> Interval:
    """Return the interval of a difference clipped to [-1, 1]."""
    return Interval(max(-1.0, interval.low), min(1.0, interval.high))


class PairedDifference(NamedTuple):
    """A mean difference over items that both scored."""

    value: float
    se: float | None
    """None for one item or one cluster."""
    interval: Interval | None
    """Inside [-1, 1]; None for one item or one cluster."""
    n: int
    first_only: int
    """Items on which the first scored more."""
    second_only: int
    p: float
    """McNemar's exact p for yes-or-no scores of independent items, otherwise a permutation test's
    p."""
    mid_p: float
    """McNemar's mid-p if `p` is McNemar's, otherwise the same as `p`."""
    clusters: int | None = None
    deff: float = 1.0
    """The factor by which the variance exceeds that of independent items."""
    p_log10: float = 0.0
    """The logarithm of `p`, exact even if `p` is at its floor."""
    unequal: Imbalance | None = None
    """The effect of the unequal sizes of the clusters; None for no clusters or only one."""

    @property
    def df(self) -> float:
        """The degrees of freedom of Student's t."""
        return self.n - 1.0 if self.clusters is None else self.unequal.df if self.unequal else 0.0

    @property
    def corrected_se(self) -> float | None:
        """The standard error, corrected for clusters of unequal size."""
        if self.se is None or self.unequal is None:
            return self.se
        return self.se * math.sqrt(self.unequal.factor)

    @property
    def effective_items(self) -> float:
        """The number of independent items with the same information; clusters without spread count
        as one."""
        if self.unequal is None:
            return float(self.n if self.clusters is None else self.clusters)
        if not self.se:
            return self.unequal.effective
        return self.n / max(1.0, self.deff * self.unequal.factor)

    @property
    def is_significant(self) -> bool:
        """Whether the difference is more than noise: its interval excludes 0."""
        return self.interval is not None and not self.interval.low <= 0 <= self.interval.high


def paired_difference(
    pairs: Sequence[tuple[float, float]],
    groups: Sequence[Hashable] | None = None,
    *,
    seed: int = 0,
) -> PairedDifference | None:
    """Return the mean of first minus second; `groups` names each item's cluster. None for no pairs.

    Yes-or-no scores of independent items use Bonett and Price's interval and McNemar's exact p.
    Graded scores use Student's t and a sign-flip permutation test. Clusters use both by cluster.
    """
    differences = array("d", (first_score - second_score for first_score, second_score in pairs))
    moments = Moments.of(differences)
    if moments is None:
        return None
    members: dict[Hashable, list[float]] = {}
    """By cluster; empty if every item is its own cluster."""
    if groups is not None and len(set(groups)) < len(differences):
        for name, difference in zip(groups, differences, strict=True):
            members.setdefault(name, []).append(difference)
    clustered = bool(members)
    totals, sizes = differences, array("I", [1]) * len(differences)
    if clustered:
        totals = array("d", map(math.fsum, members.values()))
        sizes = array("I", map(len, members.values()))
    above, below = (sum(sign * difference > _TIE for difference in differences) for sign in (1, -1))
    n, size, value = len(differences), len(totals), moments.mean
    se, interval, deff, unequal = None, None, 1.0, None
    if size > 1:
        residuals = (
            total - size_of_cluster * value
            for total, size_of_cluster in zip(totals, sizes, strict=True)
        )
        se = (
            math.sqrt(size / (size - 1) * math.fsum(residual * residual for residual in residuals))
            / n
        )
        deff = (se / moments.se) ** 2 if clustered and moments.se else 1.0
        unequal = imbalance(sizes) if clustered else None
        df, factor = (unequal.df, unequal.factor) if unequal else (size - 1.0, 1.0)
        half = student_t_quantile(0.975, df) * se * math.sqrt(factor)
        interval = clip_difference(Interval(value - half, value + half))
    binary = all(score in (0.0, 1.0) for pair in pairs for score in pair)
    if binary and not clustered:
        test = mcnemar(above, below)
        p, mid_p, p_log10 = test.p, test.mid_p, test.p_log10
        interval = bonett_price(above, below, n) if n > 1 else None
    else:
        p, p_log10 = _sign_flip_p(totals, seed)
        mid_p = p
    clusters = size if clustered else None
    test_values = p, mid_p, clusters, deff, p_log10, unequal
    return PairedDifference(value, se, interval, n, above, below, *test_values)


def sign_flip(differences: Sequence[float], *, seed: int = 0) -> float:
    """Return the probability that random signs give a sum at least as far from 0 as the observed
    sum.

    All sign vectors are counted by the sums that they reach. If these are too many, `DRAWS` random
    vectors are used, and for very many differences the normal distribution.
    """
    return _sign_flip_p(differences, seed)[0]


def _sign_flip_p(differences: Sequence[float], seed: int) -> tuple[float, float]:
    """Return that probability and its logarithm."""
    magnitudes = [abs(difference) for difference in differences if abs(difference) > _TIE]
    observed_sum = abs(math.fsum(differences)) - _TIE
    ways = {0.0: 1}
    for size in magnitudes:
        next_ways: dict[float, int] = {}
        for total, count in ways.items():
            for sign in (size, -size):
                key = round(total + sign, 9)
                next_ways[key] = next_ways.get(key, 0) + count
        ways = next_ways
        if len(magnitudes) > ALL_SIGNS and len(ways) > MOST_SUMS:
            if len(magnitudes) > MANY_SIGNS:
                z = observed_sum / math.sqrt(math.fsum(d * d for d in magnitudes))
                p_log10 = normal_survival_log10(z) + math.log10(2)
                return floor_p(2 * normal_survival(z)), min(0.0, p_log10)
            sampled_p = _sampled_sign_flip_p(magnitudes, observed_sum, seed)
            return sampled_p, log10_p(sampled_p)
    extreme_count = sum(count for total, count in ways.items() if abs(total) >= observed_sum)
    return floor_p(extreme_count / (1 << len(magnitudes))), math.log10(max(1, extreme_count)) - len(
        magnitudes
    ) * math.log10(2)


def _sampled_sign_flip_p(sizes: Sequence[float], observed_sum: float, seed: int) -> float:
    generator, total_size = random.Random(seed), math.fsum(sizes)
    hits = 0
    for _ in range(DRAWS):
        bits = generator.getrandbits(len(sizes))
        flipped = sum(size for index, size in enumerate(sizes) if bits >> index & 1)
        hits += abs(total_size - 2 * flipped) >= observed_sum
    return (hits + 1) / (DRAWS + 1)


Verdict = Literal["pass", "fail", "inconclusive"]


class NonInferiority(NamedTuple):
    """A test of whether a new run is at most a margin worse than its base."""

    verdict: Verdict
    low: float
    high: float
    """Both one-sided bounds of the difference at level 0.05."""
    factor: float
    """How many times as many items would decide it at this difference; 1 if it is decided."""


def no_worse(difference: float, se: float, margin: float) -> NonInferiority:
    """Return the non-inferiority test of new minus base at one-sided level 0.05."""
    half = normal_quantile(0.95) * se
    low, high = difference - half, difference + half
    if low > -margin:
        return NonInferiority("pass", low, high, 1.0)
    if high < -margin:
        return NonInferiority("fail", low, high, 1.0)
    gap = abs(difference + margin)
    return NonInferiority("inconclusive", low, high, (half / gap) ** 2 if gap else math.inf)


def equivalence_p(difference: float, se: float, margin: float) -> float:
    """Return p of two one-sided tests that the difference is within the margin on both sides."""
    return max(normal_survival((sign * difference + margin) / se) for sign in (1, -1))


SIGNIFICANT = 0.05
"""The p below which a difference or a trend counts as more than noise."""


def benjamini_hochberg(ps: Sequence[float]) -> list[float]:
    """Return adjusted p in the given order; accepting those up to q keeps the false discovery rate
    at q.

    Meant for looking at many subsets. The test is step-up: a p above its own limit still counts if
    a larger one keeps its limit.
    """
    order = sorted(range(len(ps)), key=ps.__getitem__, reverse=True)
    adjusted, smallest_so_far = [1.0] * len(ps), 1.0
    for rank, index in enumerate(order):
        smallest_so_far = min(smallest_so_far, ps[index] * len(ps) / (len(ps) - rank))
        adjusted[index] = smallest_so_far
    return adjusted


def holm(ps: Sequence[float]) -> list[float]:
    """Return adjusted p in the given order; accepting those up to alpha keeps the family-wise error
    at alpha.

    Meant for gates.
    """
    order = sorted(range(len(ps)), key=ps.__getitem__)
    adjusted, largest_so_far = [0.0] * len(ps), 0.0
    for rank, index in enumerate(order):
        largest_so_far = max(largest_so_far, min(1.0, ps[index] * (len(ps) - rank)))
        adjusted[index] = largest_so_far
    return adjusted
