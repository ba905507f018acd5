"""Looking early: tests and intervals that hold at every look, however often one looks.

A test of a fixed number of items that is repeated while they arrive is no test: two equal systems
looked at every 50 items up to 2,000 give a false alarm in about one of three cases. An e-value is
what a gambler makes of one coin who bets on "not equal" against "equal": where both are equal it
passes 1/α at any time with a chance of at most α. Items must come in random order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import lru_cache

from keju.stats.intervals import Z95, floor_p

LEVEL = 0.05
PLAIN = 0.5
"""Bets spread as widely as for a coin of which nothing is known (Jeffreys)."""
LIKELY = 5.0
"""Bets on effects as models show them: the better one wins a third to two thirds of the items on
which they differ. At 3 points and a discordance of 0.17 it needs a fifth fewer items."""
NODES = 128
"""Bets among which the stake of graded differences is divided."""
EARLIEST = 50
"""Items from which on the asymptotic sequence holds."""
GUESSED_SD = 0.5
"""The largest standard deviation of scores in [0, 1]."""


def e_value(wins: int, losses: int, prior: float = PLAIN) -> float:
    """The evidence that wins and losses are not those of a fair coin: 2^m B(w+a, l+a) / B(a, a).

    Wins and losses are items that only the first, or only the second, got right.
    """
    log = (wins + losses) * math.log(2) + _log_beta(wins + prior, losses + prior)
    return _exp(log - _log_beta(prior, prior))


def graded_e_value(differences: Mapping[float, int], prior: float = PLAIN) -> float:
    """The same for differences in [-1, 1] whose mean is 0 if both are equal, with their counts.

    The stake is divided among bets b, and each multiplies its part by 1 + b d at every item. A
    sum over bets in place of the integral of `e_value` is as valid.
    """
    logs = [
        math.log(weight)
        + math.fsum(count * math.log1p(bet * d) for d, count in differences.items() if d)
        for bet, weight in _bets(prior)
    ]
    largest_log = max(logs)
    return _exp(largest_log + math.log(math.fsum(math.exp(log - largest_log) for log in logs)))


@lru_cache
def _bets(prior: float) -> list[tuple[float, float]]:
    """Bets strictly between -1 and 1 with their shares of the stake, as Beta(a, a) has them.

    The cosines of even angles lie where the beta distribution of 1/2 puts even shares.
    """
    angles = [(2 * place + 1) * math.pi / (2 * NODES) for place in range(NODES)]
    weights = [math.sin(angle) ** (2 * prior - 1) for angle in angles]
    total_weight = math.fsum(weights)
    return [(math.cos(angle), w / total_weight) for angle, w in zip(angles, weights, strict=True)]


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def _exp(log: float) -> float:
    """e to that power, as far as a number goes."""
    return math.exp(min(log, 700.0))


def always_valid_p(e_values: Iterable[float]) -> float:
    """The p that may be read after any look, from the e-values of all looks so far."""
    return floor_p(min((1 / e for e in e_values if e > 1), default=1.0))


def tuning(tightest: float, level: float = LEVEL) -> float:
    """ρ² of the confidence sequence that is tightest after so many items."""
    surprise = -2 * math.log(level)
    return (surprise + math.log(surprise + 1)) / tightest


def anytime_factor(item_count: float, tightest: float, level: float = LEVEL) -> float:
    """Standard errors on each side of a mean within which it stays at all looks at once.

    The normal mixture of Robbins, asymptotic (Waudby-Smith and others 2021): from `EARLIEST` items
    on. Where the items are drawn from a known set of N, `items` is n / (1 - n/N), of which the
    standard error with its finite factor is the plain one.
    """
    scaled = item_count * tuning(tightest, level)
    return math.sqrt(2 * (scaled + 1) / scaled * math.log(math.sqrt(scaled + 1) / level))


def anytime_stretch(item_count: float, tightest: float, level: float = LEVEL) -> float:
    """How many times wider than a 95 % interval of a fixed size the one for all looks is."""
    return max(1.0, anytime_factor(item_count, tightest, level) / Z95)


def tightest_for(half_width: float) -> float:
    """After how many items a sequence should be tightest that is to reach a half-width.

    Known before the first look: those that it takes with the largest standard deviation.
    """
    factor = anytime_factor(1.0, 1.0)  # at its tightest, whenever that is
    return max(float(EARLIEST), (factor * GUESSED_SD / half_width) ** 2)
