"""Power planning: which difference an exam can show, and how many questions a difference needs.

The two-sided level is 0.05 and the power 0.8, unless documented otherwise. Binary scores are
planned by their discordance, the share of items on which exactly one of two models is right. It is
about 0.28 for two models of similar size, and 0.02 to 0.08 for a model and its quantised copy. All
functions except `items_needed_exactly` use the normal approximation, which is too optimistic for
few items.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import count, islice
from typing import NamedTuple

from keju.stats.intervals import (
    Z95,
    normal_quantile,
    student_t_quantile,
)

LIKE_SIZE = 0.28
"""The discordance of two models of similar size."""
LEVEL = 0.05
POWER = 0.8
BEYOND = 6
"""Assumed ratio of the longest possible reply to the longest reply that was observed."""
MOST_EXACT = 200_000
"""Number of items above which the power of the exact test is approximated. The exact test needs two
more items for each 1 / effect than the normal approximation."""


def minimal_detectable_effect(
    n: int, discordance: float = LIKE_SIZE, *, deff: float = 1.0, power: float = POWER
) -> float:
    """Return the smallest difference of two shares on the same `n` items that is found with
    `power`."""
    reach = Z95 + normal_quantile(power)
    return min(1.0, reach * math.sqrt(discordance / (n / deff + reach**2)))


def detectable_mean(se: float, *, power: float = POWER) -> float:
    """Return the smallest mean difference that is found with `power`, from its standard error."""
    return min(1.0, (Z95 + normal_quantile(power)) * se)


def items_needed(
    effect: float,
    discordance: float = LIKE_SIZE,
    *,
    deff: float = 1.0,
    population: int = 0,
    power: float = POWER,
) -> int:
    """Return how many items show `effect` between two models; `population` is a finite set's
    size."""
    return planned_items(
        effect, discordance - effect**2, deff=deff, population=population, power=power
    )


def planned_items(
    effect: float,
    variance: float,
    *,
    deff: float = 1.0,
    population: int = 0,
    power: float = POWER,
) -> int:
    """Return how many items show `effect`, from the `variance` of one item's difference.

    With repeats this is the variance of the true item differences plus each run's variance within
    an item divided by its repeats.
    """
    if not effect:
        raise ValueError("no number of items shows a difference of nothing")
    reach = Z95 + normal_quantile(power)
    n = deff * reach**2 * max(0.0, variance) / effect**2
    if population:
        n /= 1 + n / population
    return max(1, math.ceil(n - 1e-9))


class ForecastTotal(NamedTuple):
    """The total of many items: a 95 % interval is the value plus and minus `half`."""

    value: float
    half: float | None
    """None for a single measured item, because its spread is unknown."""


def estimate_total(mean: float, sd: float, measured: int, item_count: int) -> ForecastTotal:
    """Return the total over `item_count` items, from the mean and deviation of a random sample."""
    if measured < 2:
        return ForecastTotal(mean * item_count, None)
    reach = student_t_quantile(0.975, measured - 1) / math.sqrt(measured)
    return ForecastTotal(mean * item_count, reach * sd * item_count)


def cautious_mean(
    values: Sequence[float], largest_possible: float = math.inf
) -> tuple[float, float, float]:
    """Return the mean cost of items with a 95 % interval that allows for rare long ones.

    Lengths of replies are skewed. Of thirty replies none may have reached the limit although one in
    fifty does, and Student's interval is then too low in one of seven cases. So the upper end
    assumes one more item with `largest_possible`, but at most `BEYOND` times the largest observed
    value.
    """
    mean, half = student_interval(values)
    higher, wider = student_interval([*values, min(largest_possible, BEYOND * max(values))])
    return mean, max(0.0, mean - half), max(mean, higher + wider)


def student_interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean and half of Student's interval of it; infinite for a single value."""
    n, mean = len(values), math.fsum(values) / len(values)
    if n < 2:
        return mean, math.inf
    squares = math.fsum((value - mean) ** 2 for value in values)
    return mean, estimate_total(mean, math.sqrt(squares / (n - 1)), n, 1).half or 0.0


def items_needed_exactly(first_only: float, second_only: float, *, power: float = POWER) -> int:
    """Return how many items McNemar's exact test needs to find a difference of two yes-or-no
    scores.

    The arguments are the shares of items on which only the first, and only the second, is right.
    The search begins at the normal approximation. Above `MOST_EXACT` items the approximation is
    corrected instead.
    """
    discordance = min(1.0, first_only + second_only)
    effect = abs(first_only - second_only)
    low = items_needed(effect, discordance, power=power) - 1
    corrected = low + 1 + math.ceil(2 / effect)
    if corrected > MOST_EXACT:
        return corrected
    chances = _detection_chances(max(first_only, second_only) / discordance)
    detection_chances: list[float] = []

    def reaches_power(n: int) -> bool:
        """Whether `n` items have the power."""
        largest_count = _likely_counts(n, discordance).stop
        detection_chances.extend(islice(chances, max(0, largest_count - len(detection_chances))))
        return _average_power(n, discordance, detection_chances) >= power

    high = corrected
    while not reaches_power(high):
        low, high = high, high + max(1, high // 8)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if middle > 0 and reaches_power(middle) else (middle, high)
    return high


def _average_power(n: int, discordance: float, detection_chances: Sequence[float]) -> float:
    """Return the mean of the chances over the binomial number of discordant items.

    Numbers more than eight standard deviations from the expected number add nothing.
    """
    return math.fsum(
        _binomial(n, d, discordance) * detection_chances[d] for d in _likely_counts(n, discordance)
    )


def _likely_counts(n: int, discordance: float) -> range:
    """Return the numbers of discordant items with a non-negligible probability."""
    expected, margin = n * discordance, 8 * math.sqrt(n * discordance * (1 - discordance)) + 8
    return range(max(0, math.floor(expected - margin)), min(n, math.ceil(expected + margin)) + 1)


def _detection_chances(share: float) -> Iterator[float]:
    """Yield, for 0, 1, 2 … discordant items, the probability that the exact test finds a
    difference.

    The better score wins `share` of them, at least half. The test finds a difference if the other
    score wins at most `limit` of them: 0 of 6, 1 of 9. One more item lowers the probability of at
    most `limit` wins by the probability of exactly that many wins followed by another one.
    """
    yield 0.0
    limit = -1
    # P(at most `limit` wins) of a fair coin, the worse score, the better score
    fair = worse = better = 0.0
    for d in count():
        fair -= 0.5 * _binomial(d, limit, 0.5)
        worse -= (1 - share) * _binomial(d, limit, 1 - share)
        better -= share * _binomial(d, limit, share)
        while 2 * (fair + (step_chance := _binomial(d + 1, limit + 1, 0.5))) < LEVEL:
            limit += 1
            fair += step_chance
            worse += _binomial(d + 1, limit, 1 - share)
            better += _binomial(d + 1, limit, share)
        yield worse + better


def _binomial(n: int, wins: int, share: float) -> float:
    """Return the probability of exactly `wins` wins in `n` draws."""
    if not 0 <= wins <= n:
        return 0.0
    if share in (0.0, 1.0):
        return float(wins == n * share)
    ways = math.lgamma(n + 1) - math.lgamma(wins + 1) - math.lgamma(n - wins + 1)
    return math.exp(ways + wins * math.log(share) + (n - wins) * math.log1p(-share))
