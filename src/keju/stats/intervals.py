"""How sure a score is: what a standard error needs to know, and the interval of a share.

The unit is the item: repeats are averaged inside the item before anything here sees them. The
estimator that puts these parts together is `keju.stats.strata.stratified_mean`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Self

from keju.stats.distributions import Z90, Z95, student_t_quantile

FEW_CLUSTERS = 10
"""Below this number of clusters the clustered standard error is itself unsure."""
FEARED_CORRELATION = 0.2
"""How much the answers of one bunch may have in common where the data cannot tell."""
TELLING = 4
"""So many independent rare answers halve what has to be feared."""
_RAREST = -math.log(0.95)
_NOISE = 1e-15
"""Variances below this are rounding noise of values in [0, 1]."""


class Interval(NamedTuple):
    """A two-sided 95 % interval unless said otherwise."""

    low: float
    high: float

    def clipped(self) -> Interval:
        """The interval cut to [0, 1], for display."""
        return Interval(max(0.0, self.low), min(1.0, self.high))


class Moments(NamedTuple):
    """What a mean's standard error needs to know of the values in [0, 1] behind it."""

    n: int
    mean: float
    variance: float | None
    """Sample variance (n - 1 in the denominator); None for a single value."""
    binary: bool
    """Whether every value is 0 or 1."""

    @classmethod
    def of(cls, values: Iterable[float]) -> Self | None:
        """The moments of `values`; None if there are none."""
        return cls.of_counts(Counter(values))

    @classmethod
    def of_counts(cls, counts: Mapping[float, int]) -> Self | None:
        """The moments of values given with their multiplicity; None if there are none."""
        n = sum(counts.values())
        if n == 0:
            return None
        mean = math.fsum(value * count for value, count in counts.items()) / n
        squares = math.fsum(count * (value - mean) ** 2 for value, count in counts.items())
        variance = squares / (n - 1) if n > 1 else None
        if variance is not None and variance < _NOISE:
            variance = 0.0
        binary = all(value in (0.0, 1.0) for value, count in counts.items() if count)
        return cls(n, mean, variance, binary)

    @property
    def second(self) -> float:
        """The mean of the squared values."""
        spread = 0.0 if self.variance is None else self.variance * (self.n - 1) / self.n
        return self.mean**2 + spread

    @property
    def se(self) -> float | None:
        """Plain standard error of the mean; None for a single value."""
        return None if self.variance is None else math.sqrt(self.variance / self.n)


def wilson(share: float, n: float, z: float = Z95) -> Interval:
    """Wilson's score interval of a proportion; `n` may be an effective size, not whole.

    Where only one item is right, or wrong, the end on that side lies too near to it: of 30 items
    with a true share of 0.0058 one in six has a right one, and Wilson's intervals of all of these
    leave the truth out. There the end is the share that gives one or more such items with the
    chance that an interval may err, 5 % (Brown, Cai and DasGupta 2001).
    """
    if n <= 0:
        raise ValueError("a proportion of nothing has no interval")
    spread = z * z / n
    centre = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    low, high = centre - half, centre + half
    low -= max(0.0, low - _RAREST * share) * _rarity(share * n)
    high += max(0.0, 1 - _RAREST * (1 - share) - high) * _rarity((1 - share) * n)
    return Interval(0.0 if share == 0 else low, 1.0 if share == 1 else high).clipped()


def _rarity(items: float) -> float:
    """1 for up to one item, 0 from two items on: an effective number of items need not be whole."""
    return min(1.0, max(0.0, 2 - items))


def bunched_wilson(
    share: float, size: float, bunches: float, deff: float, z: float = Z95
) -> Interval:
    """Wilson's interval of `size` answers that come in bunches: of one item, or one context.

    `deff` is the estimated design effect, by which the bunches lower the size; `z` is the quantile
    that fits how it was estimated. Few rare answers cannot show whether such answers come in
    bunches. So towards the middle, where more of them may hide, a correlation of
    `FEARED_CORRELATION` is added to the effect, the less the more rare answers there are.

    The end that is moved outwards so hardly ever errs, the less the fewer bunches there are. The
    other one takes over its part of the 5 %: it goes from `z` towards the normal's quantile of
    95 %, else five contexts would hold the truth in 98 of 100 cases. It can do without Student's
    wider one: a mean that is too large by chance comes with a spread that is too large.
    """
    rare = min(share, 1 - share) * size / deff
    hidden = abs(1 - 2 * share) * TELLING / (rare + TELLING)
    most = max(1.0, size / bunches)
    feared = min(deff + FEARED_CORRELATION * (most - 1) * hidden, max(deff, most))
    few = student_t_quantile(0.975, max(1.0, bunches - 1)) / Z95
    moved = (feared / deff - 1) * few**6
    eased = z - moved / (1 + moved) * (z - Z90)
    near, far = wilson(share, size / deff, eased), wilson(share, size / feared, z)
    return Interval(near.low, far.high) if share <= 0.5 else Interval(far.low, near.high)


def least_share(n: int) -> float:
    """The one-sided 95 % bound of a share where all of `n` items are right; about 1 - 3/n."""
    return float(0.05 ** (1 / n))


class Cluster(NamedTuple):
    """The items of one cluster: how many, and the sum of their scores."""

    n: int
    total: float
