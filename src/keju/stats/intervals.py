"""How sure a score is: standard errors and intervals of one mean.

The unit is the item: repeats are averaged inside the item before anything here sees them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Self

from keju.stats.distributions import Z95, student_t_quantile

FEW_CLUSTERS = 10
"""Below this number of clusters the clustered standard error is itself unsure."""
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
    def se(self) -> float | None:
        """Plain standard error of the mean; None for a single value."""
        return None if self.variance is None else math.sqrt(self.variance / self.n)


def wilson(share: float, n: float, z: float = Z95) -> Interval:
    """Wilson's score interval of a proportion; `n` may be an effective size, not whole."""
    if n <= 0:
        raise ValueError("a proportion of nothing has no interval")
    spread = z * z / n
    centre = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    low = 0.0 if share == 0 else centre - half
    high = 1.0 if share == 1 else centre + half
    return Interval(low, high).clipped()


class BoundedMean(NamedTuple):
    """A mean of values in [0, 1] with an interval that stays inside [0, 1]."""

    value: float
    se: float | None
    interval: Interval
    n: int
    n_eff: float
    """The number of yes-or-no items that would leave the mean as unsure as it is."""


def bounded_mean(moments: Moments, *, draws: int | None = None) -> BoundedMean:
    """The mean with a Wilson interval whose size fits the values' own variance.

    Yes-or-no values give Wilson's interval itself. Item means of repeats vary less than that, so
    the size grows until p(1-p) over it equals the observed squared standard error; as that
    variance is estimated, Student's t takes the normal's place. The size never passes `draws`,
    the number of yes-or-no answers behind the values where there are such, so that values which
    happen to be equal are not taken for certain.
    """
    n, mean, variance, binary = moments
    if binary or variance is None or mean in (0.0, 1.0):
        return BoundedMean(mean, moments.se, wilson(mean, n), n, float(n))
    if_binary = mean * (1 - mean) * n / (n - 1)
    n_eff = n * if_binary / variance if variance else float(draws or n)
    if draws is not None:
        n_eff = min(n_eff, float(max(n, draws)))
    quantile = student_t_quantile(0.975, n - 1)
    return BoundedMean(mean, moments.se, wilson(mean, n_eff, quantile), n, n_eff)


class Cluster(NamedTuple):
    """The items of one cluster: how many, and the sum of their scores."""

    n: int
    total: float


class ClusteredMean(NamedTuple):
    """A mean whose items share contexts."""

    value: float
    n: int
    clusters: int
    se: float | None
    """Clustered standard error; None for a single cluster."""
    deff: float | None
    """Design effect, (clustered SE / plain SE) squared; None where all scores are equal."""
    n_eff: float
    """Size for Wilson's interval: that of independent items over the design effect, never above
    it; the clusters where deff is None."""
    interval: Interval | None
    """Wilson's at `n_eff`; None for a single cluster, which shows no spread between clusters."""
    t_interval: Interval | None
    """Mean plus and minus t times the clustered SE; may pass 0 or 1."""


def clustered_mean(
    clusters: Sequence[Cluster], moments: Moments, *, draws: int | None = None
) -> ClusteredMean:
    """The mean over items with a standard error that allows for shared contexts.

    `moments` are those of all items together, and `draws` are the answers behind them, as in
    `bounded_mean`: what repeats gain is kept, and the design effect divides it. Where the values
    are not all yes or no, Student's t of the clusters takes the normal's place. Where all scores
    are equal no spread can be seen, so each cluster counts as one item: the safe end of what it
    may hold.
    """
    n, mean, size = moments.n, moments.mean, len(clusters)
    if size == 1:
        return ClusteredMean(mean, n, 1, None, None, 1.0, None, None)
    squares = math.fsum((total - count * mean) ** 2 for count, total in clusters)
    se = math.sqrt(size / (size - 1) * squares) / n
    plain = moments.se
    deff, n_eff = None, float(size)
    if plain:
        deff = (se / plain) ** 2
        n_eff = bounded_mean(moments, draws=draws).n_eff / max(deff, 1.0)
    quantile = student_t_quantile(0.975, size - 1)
    ends = Interval(mean - quantile * se, mean + quantile * se)
    interval = wilson(mean, n_eff, Z95 if moments.binary else quantile)
    return ClusteredMean(mean, n, size, se, deff, n_eff, interval, ends)
