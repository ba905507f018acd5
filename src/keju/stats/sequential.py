"""Sequential analysis: tests and intervals that are valid at every look.

A fixed-sample test that is repeated while items arrive is not valid: two equal systems compared
every 50 items up to 2,000 give a false alarm in about one of three cases. An e-value is the wealth
of a gambler who bets on "not equal" against "equal". If both are equal, it ever exceeds 1/α with a
probability of at most α. Items must come in random order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import lru_cache

from keju.stats.intervals import Z95, floor_p

LEVEL = 0.05
PLAIN = 0.5
"""Prior of the bets for a coin about which nothing is known (Jeffreys)."""
LIKELY = 5.0
"""Prior of the bets for typical differences between models: the better one wins a third to two
thirds of the items on which they differ. At 3 points and a discordance of 0.17 it needs a fifth
fewer items."""
NODES = 128
"""Number of bets over which the stake for graded differences is divided."""
EARLIEST = 50
"""Number of items from which the asymptotic sequence is valid."""
GUESSED_SD = 0.5
"""The largest possible standard deviation of scores in [0, 1]."""


def e_value(wins: int, losses: int, prior: float = PLAIN) -> float:
    """Return the evidence against a fair coin: 2^m B(w+a, l+a) / B(a, a).

    Wins and losses are items that only the first, or only the second, got right.
    """
    log = (wins + losses) * math.log(2) + _log_beta(wins + prior, losses + prior)
    return _exp(log - _log_beta(prior, prior))


def graded_e_value(differences: Mapping[float, int], prior: float = PLAIN) -> float:
    """Return the evidence for differences in [-1, 1] (given with counts) whose mean is 0 if both
    are equal.

    The stake is divided among bets b, and each multiplies its part by 1 + b d at every item. A sum
    over bets is as valid as the integral in `e_value`.
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
    angles = [(2 * index + 1) * math.pi / (2 * NODES) for index in range(NODES)]
    weights = [math.sin(angle) ** (2 * prior - 1) for angle in angles]
    total_weight = math.fsum(weights)
    return [(math.cos(angle), w / total_weight) for angle, w in zip(angles, weights, strict=True)]


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def _exp(log: float) -> float:
    """Return e to a power, limited to the range of floats."""
    return math.exp(min(log, 700.0))


def always_valid_p(e_values: Iterable[float]) -> float:
    """Return the p that is valid at any look, from the e-values of all looks so far."""
    return floor_p(min((1 / e for e in e_values if e > 1), default=1.0))


def tuning_parameter(tightest: float, level: float = LEVEL) -> float:
    """Return ρ² of the confidence sequence that is tightest after `tightest` items."""
    surprise = -2 * math.log(level)
    return (surprise + math.log(surprise + 1)) / tightest


def anytime_factor(item_count: float, tightest: float, level: float = LEVEL) -> float:
    """Return the half-width of a confidence sequence in standard errors of the mean.

    This is the asymptotic normal mixture of Robbins (Waudby-Smith et al. 2021), valid from
    `EARLIEST` items on. If the items are drawn from a known set of N, `item_count` is n / (1 -
    n/N).
    """
    scaled = item_count * tuning_parameter(tightest, level)
    return math.sqrt(2 * (scaled + 1) / scaled * math.log(math.sqrt(scaled + 1) / level))


def anytime_stretch(item_count: float, tightest: float, level: float = LEVEL) -> float:
    """Return how many times wider than a fixed-sample 95 % interval the sequence is."""
    return max(1.0, anytime_factor(item_count, tightest, level) / Z95)


def tightest_item_count(half_width: float) -> float:
    """Return after how many items a sequence should be tightest to reach a half-width.

    It is chosen before the first look, for the largest standard deviation.
    """
    factor = anytime_factor(1.0, 1.0)  # at its tightest, for any number of items
    return max(float(EARLIEST), (factor * GUESSED_SD / half_width) ** 2)
