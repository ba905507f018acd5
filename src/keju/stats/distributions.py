"""Quantiles and tail probabilities of the normal, Student's t and chi-squared distributions."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

_NORMAL = NormalDist()
_TINY = 1e-300
"""Stands in for a zero denominator in Lentz's method."""
_EPSILON = 1e-16
_MOST_TERMS = 100_000
_EXPANSION_FROM = 1e5
"""Degrees of freedom from which three terms of the t expansion are exact to double precision."""


def normal_quantile(p: float) -> float:
    """The point below which a share `p` (strictly between 0 and 1) of the normal lies."""
    return _NORMAL.inv_cdf(p)


def normal_survival(z: float) -> float:
    """P(Z > z), exact in the far tail."""
    return math.erfc(z / math.sqrt(2)) / 2


Z90, Z95 = normal_quantile(0.95), normal_quantile(0.975)
"""Half-width of a two-sided 95 % normal interval in standard errors, 1.959964."""


@lru_cache(maxsize=1024)
def student_t_quantile(p: float, df: float) -> float:
    """The point below which a share `p` of Student's t with `df` degrees of freedom lies."""
    if not 0 < p < 1 or df <= 0:
        raise ValueError(f"no t quantile for p={p}, df={df}")
    if p < 0.5:
        return -student_t_quantile(1 - p, df)
    if p == 0.5:
        return 0.0
    if df >= _EXPANSION_FROM:
        # Cornish and Fisher's expansion of the t quantile in powers of 1/df.
        z = normal_quantile(p)
        first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
        return z + first / df + second / df**2
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


def student_t_survival(t: float, df: float) -> float:
    """P that Student's t with `df` degrees of freedom is above `t`."""
    return _t_tail(t, df) if t >= 0 else 1 - _t_tail(-t, df)


def binomial_at_least(right: float, n: float, share: float) -> float:
    """P that at least so many of `n` items are right if a `share` of all is; need not be whole."""
    if right <= 0:
        return 1.0
    return _incomplete_beta(right, n - right + 1, share, 1 - share)


def _t_tail(t: float, df: float) -> float:
    """P(T > t) for t >= 0."""
    square = t * t
    return 0.5 * _incomplete_beta(df / 2, 0.5, df / (df + square), square / (df + square))


def _incomplete_beta(a: float, b: float, x: float, rest: float) -> float:
    """Regularised incomplete beta function I_x(a, b); `rest` is 1 - x without cancellation."""
    if x <= 0 or rest <= 0:
        return 0.0 if x <= 0 else 1.0
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest)
    )
    if x < (a + 1) / (a + b + 2):
        return front * _beta_fraction(a, b, x) / a
    return 1.0 - front * _beta_fraction(b, a, rest) / b


def _beta_fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz's method."""
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
    """P(X >= x) for chi-squared with `df` degrees of freedom."""
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
    """Lower incomplete gamma over its front factor, as a power series."""
    term = total = 1.0 / a
    for step in range(1, _MOST_TERMS):
        term *= x / (a + step)
        total += term
        if term < total * _EPSILON:
            break
    return total


def _gamma_fraction(a: float, x: float) -> float:
    """Upper incomplete gamma over its front factor, as a continued fraction."""
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
