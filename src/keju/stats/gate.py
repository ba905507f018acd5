"""Gates: one-sided decisions at level 0.05 that keep their error rates with few items too.

A gate passes a run that is shown to be good enough, fails a run that is shown not to be, and is
inconclusive otherwise. Both errors (passing a run that is too bad, failing a run that is good
enough) are rarer than the level.

Yes-or-no scores use exact or score tests. The standard error is 0 if no item differs, and a test
based on it would let everything pass. Graded scores and clusters use Student's t.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
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
from keju.stats.paired import PairedDifference

LEVEL = 0.05
POWER = 0.8
"""The power at which the planned number of items decides."""
_STEPS = 60

Verdict = Literal["pass", "fail", "inconclusive"]


class GateDecision(NamedTuple):
    """The decision of a gate, with its bounds and p-values."""

    verdict: Verdict
    value: float
    low: float
    high: float
    """Both one-sided bounds at the level."""
    p: float
    """p of the test that it is good enough."""
    p_fail: float
    """p of the test that it is not good enough."""
    needed: int | None
    """The number of items that would decide if they were like the present ones; None if no number
    would."""
    planned: int | None = None
    """The number of items that decide with a power of 0.8 if the true value is the observed one."""
    p_log10: float = 0.0
    """The logarithms of both p, exact even if the p are at their floor."""
    p_fail_log10: float = 0.0


class _TestBounds(NamedTuple):
    """One test: both bounds, both p and their logarithms."""

    low: float
    high: float
    p: float
    p_fail: float
    p_log10: float
    p_fail_log10: float


def decide(p: float, p_fail: float, level: float = LEVEL) -> Verdict:
    """Return the decision from two one-sided p."""
    return "pass" if p <= level else "fail" if p_fail <= level else "inconclusive"


def decide_no_worse(
    difference: PairedDifference, margin: float, *, binary: bool, level: float = LEVEL
) -> GateDecision:
    """Decide whether first minus second is above ``-margin``.

    Yes-or-no scores use Tango's score test (1998). Clusters count as the number of independent
    items that they are worth. Student's t is used as well if it is more cautious: if few items
    differ, one of the tests passes too rarely and the other fails too rarely.
    """
    n, value, limit = difference.effective_items, difference.value, -margin
    se, df = difference.corrected_se, difference.df
    spread = null_spread = (se or 0.0) * math.sqrt(difference.n)
    tests = [_t_bounds(value, se, limit, df, level, n)]
    if binary and df:
        share = n / difference.n
        score = _TangoScore(difference.first_only * share, difference.second_only * share, n)
        df = df if difference.clusters is not None else math.inf
        quantile = _quantile(level, df)
        low = _root(lambda limit_tried: score(limit_tried) - quantile, -1.0, value)
        high = _root(lambda limit_tried: score(limit_tried) + quantile, value, 1.0)
        tests.append(_TestBounds(low, high, *_tail_probabilities(score(limit), df)))
        null_spread = max(spread, math.sqrt(score.variance(limit) * difference.n) / n)
    test = _most_cautious(tests)
    needed = _needed_items(difference.n, spread, value - limit, level)
    planned = _planned_items(
        difference.n, (null_spread, spread), value - limit, level, binary=binary
    )
    if not spread and value != limit:
        needed = max(
            difference.n + 1,
            math.ceil(_equal_items_needed(value - limit, level) * difference.n / n),
        )
        planned = needed
    return _make_decision(test, value, (-1.0, 1.0), level, (needed, planned))


def decide_counts(
    first_only: int, second_only: int, n: int, margin: float, level: float = LEVEL
) -> Verdict:
    """Return the verdict of `decide_no_worse` for `n` independent yes-or-no items, without its
    bounds and p.

    `first_only` and `second_only` are the items that only one of the two got right. This is fast
    enough to try all counts that the questions still to be asked can lead to.
    """
    difference = (first_only - second_only) / n
    squares = first_only + second_only - n * difference**2
    normal, student = _both_quantiles(level, n)
    score = _TangoScore(first_only, second_only, n)(-margin)
    if n < 2 or squares <= 0:
        _, _, p, p_fail, _, _ = _t_bounds(difference, None, -margin, n - 1.0, level, n)
        return decide(
            1.0 if n > 1 and score < normal else p, 1.0 if n > 1 and score > -normal else p_fail
        )
    t = (difference + margin) / math.sqrt(squares / (n * (n - 1)))
    if score >= normal and t >= student:
        return "pass"
    return "fail" if score <= -normal and t <= -student else "inconclusive"


@lru_cache(maxsize=64)
def _both_quantiles(level: float, n: int) -> tuple[float, float]:
    """Return the quantile of the normal distribution, and Student's for the mean of `n` items."""
    return normal_quantile(1 - level), _quantile(level, n - 1.0) if n > 1 else math.inf


def decide_at_least(
    score: PairedDifference, minimum: float, *, binary: bool, level: float = LEVEL
) -> GateDecision:
    """Decide whether a mean score, given as a difference from 0, is at least `minimum`.

    Yes-or-no scores use the exact binomial test. Clusters count as the number of independent items
    that they are worth, and Student's t is used as well if it is more cautious.
    """
    n, value, se = score.effective_items, score.value, score.corrected_se
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
    test: _TestBounds,
    value: float,
    limits: tuple[float, float],
    level: float,
    item_counts: tuple[int | None, int | None],
) -> GateDecision:
    """Return the decision of a test; `limits` are the least and the largest possible value."""
    ends = max(limits[0], test.low), min(limits[1], test.high)
    verdict, logs = decide(test.p, test.p_fail, level), (test.p_log10, test.p_fail_log10)
    return GateDecision(verdict, value, *ends, test.p, test.p_fail, *item_counts, *logs)


def _most_cautious(tests: Sequence[_TestBounds]) -> _TestBounds:
    """Return the widest bounds and the largest p of several tests."""
    low, high, *ps = zip(*tests, strict=True)
    return _TestBounds(min(low), max(high), *(max(values) for values in ps))


def _exact_bounds(value: float, n: float, limit: float, level: float) -> _TestBounds:
    """Return bounds and p of the exact binomial test."""
    right, wrong = value * n, (1 - value) * n
    return _TestBounds(
        _root(lambda share: binomial_at_least(right, n, share) - level, 0.0, value),
        1 - _root(lambda share: binomial_at_least(wrong, n, share) - level, 0.0, 1 - value),
        floor_p(binomial_at_least(right, n, limit)),
        floor_p(binomial_at_least(wrong, n, 1 - limit)),
        binomial_at_least_log10(right, n, limit),
        binomial_at_least_log10(wrong, n, 1 - limit),
    )


def _t_bounds(
    value: float, se: float | None, limit: float, df: float, level: float, n: float
) -> _TestBounds:
    """Return bounds and p of Student's t. Without variance, use those of items none of which
    differ.

    Even if 0 of 10 items differ, the true share may be up to 26 %: 0.74^10 = 0.05.
    """
    if not se:
        reach = 1 - level ** (1 / n)
        gap = value - limit
        shares = [floor_p(max(0.0, 1 - max(0.0, sign * gap))) for sign in (1, -1)]
        ps, logs = (
            [floor_p(share**n) for share in shares],
            [n * log10_p(share_of_items) for share_of_items in shares],
        )
        return _TestBounds(value - reach, value + reach, *ps, *logs)
    half = _quantile(level, df) * se
    return _TestBounds(value - half, value + half, *_tail_probabilities((value - limit) / se, df))


def _quantile(level: float, df: float) -> float:
    return normal_quantile(1 - level) if df == math.inf else student_t_quantile(1 - level, df)


def _tail_probabilities(t: float, df: float) -> tuple[float, float, float, float]:
    """Return P(T > t) and P(T > -t), and their logarithms."""
    if df == math.inf:
        ps = [normal_survival(value) for value in (t, -t)]
        logs = [normal_survival_log10(value) for value in (t, -t)]
    else:
        ps = [student_t_survival(value, df) for value in (t, -t)]
        logs = [student_t_survival_log10(value, df) for value in (t, -t)]
    return floor_p(ps[0]), floor_p(ps[1]), logs[0], logs[1]


def _needed_items(n: int, spread: float, gap: float, level: float) -> int | None:
    """Return the number of items with which a normal bound reaches the limit; more than `n`.

    `spread` is the standard deviation of one item, and `gap` the distance of the observed value
    from the limit.

    None if the observed value equals the limit, because no number of items decides that.
    """
    if not gap or not spread:
        return None
    return max(n + 1, math.ceil((normal_quantile(1 - level) * spread / gap) ** 2))


def _planned_items(
    n: int, spreads: tuple[float, float], gap: float, level: float, *, binary: bool
) -> int | None:
    """Return the number of items that reach the power if the true value is the observed one.

    It is more than `n`. `spreads` are the standard deviations of one item at the limit and as
    observed. `gap` is the distance of the observed value from the limit. Exact tests of yes-or-no
    items need one more item for each 1 / `gap`.

    None if the observed value equals the limit, because no number of items decides that.
    """
    limit_spread, observed_spread = spreads
    if not gap or not limit_spread:
        return None
    quantile = normal_quantile(1 - level)
    reach = quantile * limit_spread + normal_quantile(POWER) * observed_spread
    extra_items = 1 / abs(gap) if binary else quantile**2 / 2  # extra items that Student's t needs
    return max(n + 1, math.ceil((reach / gap) ** 2 + extra_items))


def _equal_items_needed(gap: float, level: float) -> float:
    """Return with how many items of one equal difference `_t_bounds` decides: 0.95^59 = 0.05."""
    return math.log(level) / math.log1p(-abs(gap)) if abs(gap) < 1 else 1.0


class _TangoScore:
    """The score statistic of a difference of two shares on the same items, by the true
    difference."""

    def __init__(self, first_only: float, second_only: float, n: float) -> None:
        self._first_only, self._second_only, self._n = first_only, second_only, n

    def variance(self, true: float) -> float:
        """Return the variance of the number of items that the first wins more, under `true`."""
        n, first_wins, second_wins = self._n, self._first_only, self._second_only
        # The most likely share of items that only the second gets right, under `true`.
        square, linear = (
            2 * n,
            -first_wins - second_wins + (2 * n - first_wins + second_wins) * true,
        )
        free = -second_wins * true * (1 - true)
        root = math.sqrt(max(0.0, linear * linear - 4 * square * free))
        share = (root - linear) / (2 * square)
        return n * (2 * share + true * (1 - true))

    def __call__(self, true: float) -> float:
        """Return how many standard errors the observed difference is above `true`."""
        variance = self.variance(true)
        excess = self._first_only - self._second_only - self._n * true
        if variance <= 0:
            return math.copysign(math.inf, excess) if excess else 0.0
        return excess / math.sqrt(variance)


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Return where a monotone function is 0 between `low` and `high`, or the end nearest to it."""
    rising = function(high) > function(low)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if (function(middle) < 0) == rising:
            low = middle
        else:
            high = middle
    return (low + high) / 2
