"""Moments and intervals of a share.

The module also has descriptions of values, and quantiles and tails of the normal, Student's t and
chi-squared distributions. The unit is the item: callers average repeats inside each item first.
`keju.stats.estimate.stratified_mean` combines the parts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple, Self


def mean(values: Sequence[float]) -> float | None:
    """Return the mean; None for no values."""
    return math.fsum(values) / len(values) if values else None


def quantile(ordered: Sequence[float], share: float) -> float | None:
    """Return the value below which `share` of the ordered values are, interpolated linearly.

    The median of 1 and 3 is 2, as in most packages. None for no values.
    """
    if not ordered:
        return None
    position = share * (len(ordered) - 1)
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (position - low) * (ordered[high] - ordered[low])


_NORMAL = NormalDist()
_TINY = 1e-300
"""Replaces a denominator of zero in Lentz's method."""
_EPSILON = 1e-16
_MOST_TERMS = 100_000
_EXPANSION_FROM = 1e5
"""Degrees of freedom from which three terms of the t expansion are exact to double precision."""


def normal_quantile(p: float) -> float:
    """Return the point below which a share `p` (strictly between 0 and 1) of the normal lies."""
    return _NORMAL.inv_cdf(p)


def normal_survival(z: float) -> float:
    """Return P(Z > z), exact in the far tail."""
    return math.erfc(z / math.sqrt(2)) / 2


LEAST_P = 1e-300
"""The smallest p that is written. The stored logarithm gives the exact size of smaller ones."""


def floor_p(p: float) -> float:
    """Return a p that is never 0: at least `LEAST_P`."""
    return max(p, LEAST_P)


def log10_p(p: float) -> float:
    """Return the logarithm of a p; that of `LEAST_P` for smaller ones."""
    return math.log10(floor_p(p))


def normal_survival_log10(z: float) -> float:
    """Return log10 of P(Z > z), also if that is too small for a float."""
    if z < 30 or z == math.inf:
        return log10_p(normal_survival(z))
    # The asymptotic series of Mills' ratio, exact to 1e-10 from here on.
    series = 1 - 1 / z**2 + 3 / z**4 - 15 / z**6 + 105 / z**8
    return (math.log(series / z) - z * z / 2 - math.log(2 * math.pi) / 2) / math.log(10)


Z90, Z95 = normal_quantile(0.95), normal_quantile(0.975)
"""Half-width of a two-sided 95 % normal interval in standard errors, 1.959964."""


@lru_cache(maxsize=1024)
def student_t_quantile(p: float, df: float) -> float:
    """Return the point below which a share `p` of Student's t with `df` degrees of freedom lies."""
    if not 0 < p < 1 or df <= 0:
        raise ValueError(f"no t quantile for p={p}, df={df}")
    if p < 0.5:
        return -student_t_quantile(1 - p, df)
    if p == 0.5:
        return 0.0
    if df >= _EXPANSION_FROM:
        # Cornish and Fisher's expansion of the t quantile in powers of 1/df.
        z = normal_quantile(p)
        first_term, second_term = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
        return z + first_term / df + second_term / df**2
    low, high = 0.0, 1.0
    while _t_tail(high, df) > 1 - p:
        low, high = high, 2 * high
    while high - low > 4e-16 * high:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if _t_tail(middle, df) > 1 - p:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def student_t_survival_log10(t: float, df: float) -> float:
    """Return log10 of P(T > t), also if that is too small for a float."""
    if t < 1:
        return log10_p(student_t_survival(t, df))
    square = t * t
    parts = df / (df + square), square / (df + square)
    return _incomplete_beta_log10(df / 2, 0.5, *parts) - math.log10(2)


def student_t_survival(t: float, df: float) -> float:
    """Return P(T > t) of Student's t with `df` degrees of freedom."""
    return _t_tail(t, df) if t >= 0 else 1 - _t_tail(-t, df)


def binomial_at_least(right: float, n: float, share: float) -> float:
    """Return P(at least `right` of `n` items are right) if a `share` of all is; need not be
    integers."""
    if right <= 0:
        return 1.0
    return _incomplete_beta(right, n - right + 1, share, 1 - share)


def binomial_at_least_log10(right: float, n: float, share: float) -> float:
    """Return log10 of `binomial_at_least`, also if that is too small for a float."""
    return 0.0 if right <= 0 else _incomplete_beta_log10(right, n - right + 1, share, 1 - share)


def _t_tail(t: float, df: float) -> float:
    """Return P(T > t) for t >= 0."""
    square = t * t
    return 0.5 * _incomplete_beta(df / 2, 0.5, df / (df + square), square / (df + square))


def _incomplete_beta(a: float, b: float, x: float, complement: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b).

    `complement` is 1 - x without cancellation.
    """
    if x <= 0 or complement <= 0:
        return 0.0 if x <= 0 else 1.0
    front = math.exp(_beta_front_log(a, b, x, complement))
    if x < (a + 1) / (a + b + 2):
        return front * _beta_fraction(a, b, x) / a
    return 1.0 - front * _beta_fraction(b, a, complement) / b


def _incomplete_beta_log10(a: float, b: float, x: float, complement: float) -> float:
    """Return log10 of `_incomplete_beta`, or the logarithm of `LEAST_P` if it is 0."""
    if 0 < x < (a + 1) / (a + b + 2) and complement > 0:
        logs = _beta_front_log(a, b, x, complement) + math.log(_beta_fraction(a, b, x) / a)
        return min(0.0, logs / math.log(10))
    return min(0.0, log10_p(_incomplete_beta(a, b, x, complement)))


def _beta_front_log(a: float, b: float, x: float, complement: float) -> float:
    """Return the logarithm of the factor before the continued fraction."""
    gammas = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    return gammas + a * math.log(x) + b * math.log(complement)


def _beta_fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta function, by Lentz's method."""
    value, numerator_ratio, denominator_ratio = 1.0, 1.0, 0.0
    for index in range(1, _MOST_TERMS):
        half = index // 2
        if index % 2:
            term = -(a + half) * (a + b + half) * x / ((a + 2 * half) * (a + 2 * half + 1))
        else:
            term = half * (b - half) * x / ((a + 2 * half - 1) * (a + 2 * half))
        denominator_ratio = 1.0 / ((1.0 + term * denominator_ratio) or _TINY)
        numerator_ratio = (1.0 + term / numerator_ratio) or _TINY
        change = denominator_ratio * numerator_ratio
        value *= change
        if abs(change - 1.0) < _EPSILON:
            break
    return 1.0 / value


def chi_squared_survival(x: float, df: float) -> float:
    """Return P(X >= x) for chi-squared with `df` degrees of freedom."""
    if df <= 0:
        raise ValueError(f"chi-squared needs positive degrees of freedom, not {df}")
    a, half = df / 2, x / 2
    if half <= 0:
        return 1.0
    front = math.exp(a * math.log(half) - half - math.lgamma(a))
    if half < a + 1:
        return 1.0 - front * _gamma_series(a, half)
    return front * _gamma_fraction(a, half)


def _gamma_series(a: float, x: float) -> float:
    """Return the lower incomplete gamma over its front factor, as a power series."""
    term = total = 1.0 / a
    for step in range(1, _MOST_TERMS):
        term *= x / (a + step)
        total += term
        if term < total * _EPSILON:
            break
    return total


def _gamma_fraction(a: float, x: float) -> float:
    """Return the upper incomplete gamma over its front factor, as a continued fraction."""
    base = x + 1.0 - a
    numerator_ratio, denominator_ratio = 1.0 / _TINY, 1.0 / base
    value = denominator_ratio
    for step in range(1, _MOST_TERMS):
        term = -step * (step - a)
        base += 2.0
        denominator_ratio = 1.0 / ((term * denominator_ratio + base) or _TINY)
        numerator_ratio = (base + term / numerator_ratio) or _TINY
        change = denominator_ratio * numerator_ratio
        value *= change
        if abs(change - 1.0) < _EPSILON:
            break
    return value


FEW_CLUSTERS = 10
"""Number of clusters below which the clustered standard error is itself uncertain."""
FEARED_CORRELATION = 0.2
"""Assumed correlation of the answers of one bunch if the data cannot show it."""
TELLING = 4
"""Number of independent rare answers that halves the assumed correlation."""
_RAREST = -math.log(0.95)
_NOISE = 1e-15
"""Variances below this are rounding noise of values in [0, 1]."""


class Interval(NamedTuple):
    """A two-sided 95 % interval, unless documented otherwise."""

    low: float
    high: float

    def clip(self) -> Interval:
        """Return the interval clipped to [0, 1], for display."""
        return Interval(max(0.0, self.low), min(1.0, self.high))


class Moments(NamedTuple):
    """The moments of values in [0, 1] that the standard error of their mean needs."""

    n: int
    mean: float
    variance: float | None
    """Sample variance (n - 1 in the denominator); None for a single value."""
    binary: bool
    """Whether every value is 0 or 1."""

    @classmethod
    def of(cls, values: Iterable[float]) -> Self | None:
        """Return the moments of `values`; None if there are none."""
        return cls.of_counts(Counter(values))

    @classmethod
    def of_counts(cls, counts: Mapping[float, int]) -> Self | None:
        """Return the moments of values given with their counts; None if there are none."""
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
    def mean_square(self) -> float:
        """The mean of the squared values."""
        spread = 0.0 if self.variance is None else self.variance * (self.n - 1) / self.n
        return self.mean**2 + spread

    @property
    def se(self) -> float | None:
        """Plain standard error of the mean; None for a single value."""
        return None if self.variance is None else math.sqrt(self.variance / self.n)


def wilson(share: float, n: float, z: float = Z95) -> Interval:
    """Return Wilson's score interval of a proportion; `n` may be a fractional effective size.

    If only one item is right (or wrong), the end on that side is too close. For example, of 30
    items with a true share of 0.0058, one sample in six has a right item, and Wilson's interval of
    each of these excludes the truth. In this case the end is the share that gives one or more such
    items with probability 5 % (Brown, Cai and DasGupta 2001).
    """
    if n <= 0:
        raise ValueError("a proportion of nothing has no interval")
    spread = z * z / n
    centre = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    low, high = centre - half, centre + half
    low -= max(0.0, low - _RAREST * share) * _rarity(share * n)
    high += max(0.0, 1 - _RAREST * (1 - share) - high) * _rarity((1 - share) * n)
    return Interval(0.0 if share == 0 else low, 1.0 if share == 1 else high).clip()


def _rarity(item_count: float) -> float:
    """Return 1 for up to one item, falling to 0 at two items: an effective number may be
    fractional."""
    return min(1.0, max(0.0, 2 - item_count))


def bunched_wilson(
    share: float, size: float, bunches: float, deff: float, z: float = Z95
) -> Interval:
    """Return Wilson's interval of `size` answers that come in bunches (of one item or one context).

    `deff` is the estimated design effect, by which the bunches lower the size. `z` is the quantile
    that fits how it was estimated. A few rare answers cannot show whether such answers come in
    bunches. So at the end towards the middle a correlation of `FEARED_CORRELATION` is added to the
    effect, less for more rare answers.

    The end that is moved outwards then hardly ever errs, especially with few bunches. The other end
    takes over its part of the 5 %: it moves from `z` towards the normal quantile of 95 %. Otherwise
    the interval for five contexts would hold the truth in 98 of 100 cases. The other end does not
    need Student's wider quantile, because a mean that is too large by chance has a variance that is
    too large.
    """
    rare = min(share, 1 - share) * size / deff
    hidden_share = abs(1 - 2 * share) * TELLING / (rare + TELLING)
    largest_deff = max(1.0, size / bunches)
    feared_deff = min(
        deff + FEARED_CORRELATION * (largest_deff - 1) * hidden_share, max(deff, largest_deff)
    )
    small_sample_factor = student_t_quantile(0.975, max(1.0, bunches - 1)) / Z95
    outward_shift = (feared_deff / deff - 1) * small_sample_factor**6
    inner_z = z - outward_shift / (1 + outward_shift) * (z - Z90)
    inner, outer = wilson(share, size / deff, inner_z), wilson(share, size / feared_deff, z)
    return Interval(inner.low, outer.high) if share <= 0.5 else Interval(outer.low, inner.high)


class Cluster(NamedTuple):
    """The items of one cluster: their number and the sum of their scores."""

    n: int
    total: float


class Imbalance(NamedTuple):
    """The effect of clusters of unequal size on the variance between them."""

    effective: float
    """The number of clusters of equal size with the same information."""
    df: float
    """Satterthwaite's degrees of freedom of the variance between clusters."""
    factor: float
    """The factor by which this variance is too small after the usual correction G / (G - 1)."""


def imbalance(sizes: Sequence[float]) -> Imbalance:
    """Return the corrections for two or more clusters of these sizes; no correction if all are
    equal.

    The model assumes that the items of a cluster correlate completely (Bell and McCaffrey 2002).
    Subtracting the mean, in which large clusters weigh more, makes their residuals too small. A few
    large clusters also make up most of the sum of squares.
    """
    count, total_size = len(sizes), math.fsum(sizes)
    shares = [size / total_size for size in sizes]
    squares = math.fsum(share**2 for share in shares)
    if math.isclose(squares * count, 1, rel_tol=1e-12):
        return Imbalance(float(count), count - 1.0, 1.0)
    cubes, fourths = (math.fsum(share**power for share in shares) for power in (3, 4))
    trace = squares * (1 + squares) - 2 * cubes
    # The trace of the square of the quadratic form of the residuals.
    double = squares**4 + 2 * squares * fourths - 4 * squares**2 * cubes + 2 * cubes**2
    double += math.fsum(share**4 * (1 + 2 * squares - 4 * share) for share in shares)
    factor = squares / trace * (count - 1) / count
    return Imbalance(1 / squares, max(1.0, trace**2 / double), max(1.0, factor))
