"""Gates: one-sided decisions at level 0.05 that keep what they promise with few items too.

A gate passes what is shown to be good enough, fails what is shown not to be, and else says that
too little is known. Both errors, to pass what is too bad and to fail what is good enough, are rarer
than the level.

Yes-or-no scores have exact or score tests: a standard error is 0 where no item was seen to differ,
and would let everything pass. Graded scores and clusters have Student's t.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from keju.stats.intervals import (
    binomial_at_least,
    binomial_at_least_log10,
    floor_p,
    log10_p,
    normal_quantile,
    normal_survival,
    normal_survival_log10,
    student_t_quantile,
    student_t_survival,
    student_t_survival_log10,
)
from keju.stats.paired import Difference

LEVEL = 0.05
POWER = 0.8
"""The chance with which the number of items that is named decides."""
_STEPS = 60

Verdict = Literal["pass", "fail", "inconclusive"]


class Gated(NamedTuple):
    """What a gate decides, and by how much."""

    verdict: Verdict
    value: float
    low: float
    high: float
    """Both one-sided bounds at the level."""
    p: float
    """Of the test that it is good enough."""
    p_fail: float
    """Of the test that it is not."""
    needed: int | None
    """How many items would decide, if they were as those at hand; None where that is no number."""
    planned: int | None = None
    """How many decide with a power of 0.8 if the true value is the one seen."""
    p_log10: float = 0.0
    """The logarithms of both p, exact where these are at their floor too."""
    p_fail_log10: float = 0.0


class _Bounds(NamedTuple):
    """One test: both bounds, both p and their logarithms."""

    low: float
    high: float
    p: float
    p_fail: float
    p_log10: float
    p_fail_log10: float


def decide(p: float, p_fail: float, level: float = LEVEL) -> Verdict:
    """What two one-sided p decide."""
    return "pass" if p <= level else "fail" if p_fail <= level else "inconclusive"


def decide_no_worse(difference: Difference, margin: float, *, binary: bool, level: float = LEVEL) -> Gated:
    """Whether first minus second is shown to be above ``-margin``.

    Yes-or-no scores have Tango's score test (1998), with clusters on as many items as these are
    worth, and Student's t where that is more cautious: the one passes too little, the other fails
    too little, where few items differ.
    """
    n, value, limit = difference.worth, difference.value, -margin
    se, df = difference.corrected_se, difference.df
    spread = null_spread = (se or 0.0) * math.sqrt(difference.n)
    tests = [_t_bounds(value, se, limit, df, level, n)]
    if binary and df:
        share = n / difference.n
        score = _Tango(difference.first_only * share, difference.second_only * share, n)
        df = df if difference.clusters is not None else math.inf
        quantile = _quantile(level, df)
        low = _root(lambda at: score(at) - quantile, -1.0, value)
        high = _root(lambda at: score(at) + quantile, value, 1.0)
        tests.append(_Bounds(low, high, *_survivals(score(limit), df)))
        null_spread = max(spread, math.sqrt(score.variance(limit) * difference.n) / n)
    test = _most_cautious(tests)
    needed = _needed_items(difference.n, spread, value - limit, level)
    planned = _planned_items(difference.n, (null_spread, spread), value - limit, level, binary=binary)
    if not spread and value != limit:
        needed = max(difference.n + 1, math.ceil(_equal_items_needed(value - limit, level) * difference.n / n))
        planned = needed
    return _make_decision(test, value, (-1.0, 1.0), level, (needed, planned))


def decide_at_least(score: Difference, minimum: float, *, binary: bool, level: float = LEVEL) -> Gated:
    """Whether a mean score, given as a difference from 0, is shown to be at least `least`.

    Yes-or-no scores have the exact binomial test; with clusters on as many items as these are
    worth, and Student's t where that is more cautious.
    """
    n, value, se = score.worth, score.value, score.corrected_se
    tests = [_exact_bounds(value, n, minimum, level)] if binary else []
    if not binary or score.clusters is not None:
        tests.append(_t_bounds(value, se, minimum, score.df, level, n))
    test = _most_cautious(tests)
    spread = (se or 0.0) * math.sqrt(score.n)
    null_spread = max(spread, math.sqrt(minimum * (1 - minimum) * score.deff))
    needed = _needed_items(score.n, null_spread, value - minimum, level)
    planned = _planned_items(score.n, (null_spread, spread), value - minimum, level, binary=binary)
    return _make_decision(test, value, (0.0, 1.0), level, (needed, planned))


def _make_decision(
    test: _Bounds,
    value: float,
    limits: tuple[float, float],
    level: float,
    item_counts: tuple[int | None, int | None],
) -> Gated:
    """Return the decision of a test; `limits` are the least and the largest possible value."""
    ends = max(limits[0], test.low), min(limits[1], test.high)
    verdict, logs = decide(test.p, test.p_fail, level), (test.p_log10, test.p_fail_log10)
    return Gated(verdict, value, *ends, test.p, test.p_fail, *item_counts, *logs)


def _most_cautious(tests: Sequence[_Bounds]) -> _Bounds:
    """The widest bounds, and the largest p, of several tests."""
    low, high, *ps = zip(*tests, strict=True)
    return _Bounds(min(low), max(high), *(max(values) for values in ps))


def _exact_bounds(value: float, n: float, limit: float, level: float) -> _Bounds:
    """Bounds and p of the exact binomial test."""
    right, wrong = value * n, (1 - value) * n
    return _Bounds(
        _root(lambda at: binomial_at_least(right, n, at) - level, 0.0, value),
        1 - _root(lambda at: binomial_at_least(wrong, n, at) - level, 0.0, 1 - value),
        floor_p(binomial_at_least(right, n, limit)),
        floor_p(binomial_at_least(wrong, n, 1 - limit)),
        binomial_at_least_log10(right, n, limit),
        binomial_at_least_log10(wrong, n, 1 - limit),
    )


def _t_bounds(
    value: float, se: float | None, limit: float, df: float, level: float, n: float
) -> _Bounds:
    """Bounds and p of Student's t; without any spread those of items of which none differs.

    0 of 10 items that differ from all others may well be 0 of a share of 26 %: 0.74^10 = 0.05.
    """
    if not se:
        reach = 1 - level ** (1 / n)
        gap = value - limit
        shares = [floor_p(max(0.0, 1 - max(0.0, sign * gap))) for sign in (1, -1)]
        ps, logs = [floor_p(share**n) for share in shares], [n * log10_p(share_of_items) for share_of_items in shares]
        return _Bounds(value - reach, value + reach, *ps, *logs)
    half = _quantile(level, df) * se
    return _Bounds(value - half, value + half, *_survivals((value - limit) / se, df))


def _quantile(level: float, df: float) -> float:
    return normal_quantile(1 - level) if df == math.inf else student_t_quantile(1 - level, df)


def _survivals(t: float, df: float) -> tuple[float, float, float, float]:
    """Return P(T > t) and P(T > -t), and their logarithms."""
    if df == math.inf:
        ps = [normal_survival(at) for at in (t, -t)]
        logs = [normal_survival_log10(at) for at in (t, -t)]
    else:
        ps = [student_t_survival(at, df) for at in (t, -t)]
        logs = [student_t_survival_log10(at, df) for at in (t, -t)]
    return floor_p(ps[0]), floor_p(ps[1]), logs[0], logs[1]


def _needed_items(n: int, spread: float, gap: float, level: float) -> int | None:
    """The items with which a bound of the normal approximation reaches the limit; more than `n`.

    `spread` is that of one item, and `gap` how far the value seen is from the limit.

    None where the value seen is the limit itself: no number of items decides that.
    """
    if not gap or not spread:
        return None
    return max(n + 1, math.ceil((normal_quantile(1 - level) * spread / gap) ** 2))


def _planned_items(
    n: int, spreads: tuple[float, float], gap: float, level: float, *, binary: bool
) -> int | None:
    """Return how many items reach the power if the true value is the one seen; more than `n`.

    `spreads` are those of one item at the limit and as seen; `gap` is how far the value seen is
    from the limit. Exact tests of yes-or-no items need one more item for each 1 / `gap`.

    None where the value seen is the limit itself: no number of items decides that.
    """
    limit_spread, observed_spread = spreads
    if not gap or not limit_spread:
        return None
    quantile = normal_quantile(1 - level)
    reach = quantile * limit_spread + normal_quantile(POWER) * observed_spread
    extra_items = 1 / abs(gap) if binary else quantile**2 / 2  # what Student's t needs more
    return max(n + 1, math.ceil((reach / gap) ** 2 + extra_items))


def _equal_items_needed(gap: float, level: float) -> float:
    """With how many items of one and the same difference `_by_t` decides: 0.95^59 = 0.05."""
    return math.log(level) / math.log1p(-abs(gap)) if abs(gap) < 1 else 1.0


class _Tango:
    """The score of a difference of two shares on the same items, as a function of the true one."""

    def __init__(self, first_only: float, second_only: float, n: float) -> None:
        self._first_only, self._second_only, self._n = first_only, second_only, n

    def variance(self, true: float) -> float:
        """The variance of the number of items that the first wins more, under `true`."""
        n, first_wins, second_wins = self._n, self._first_only, self._second_only
        # The share of items that only the second gets right, as likely as can be under `true`.
        square, linear = 2 * n, -first_wins - second_wins + (2 * n - first_wins + second_wins) * true
        free = -second_wins * true * (1 - true)
        root = math.sqrt(max(0.0, linear * linear - 4 * square * free))
        share = (root - linear) / (2 * square)
        return n * (2 * share + true * (1 - true))

    def __call__(self, true: float) -> float:
        """How many standard errors the difference seen is above `true`."""
        variance = self.variance(true)
        excess = self._first_only - self._second_only - self._n * true
        if variance <= 0:
            return math.copysign(math.inf, excess) if excess else 0.0
        return excess / math.sqrt(variance)


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a monotone function is 0 between `low` and `high`, or the end that is nearest to it."""
    rising = function(high) > function(low)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if (function(middle) < 0) == rising:
            low = middle
        else:
            high = middle
    return (low + high) / 2
