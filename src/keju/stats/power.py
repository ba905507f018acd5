"""Planning: which difference an exam can show, and how many questions a difference needs.

Two-sided level 0.05 and power 0.8 unless said otherwise. Binary scores are planned by their
discordance, the share of items on which exactly one of two models is right: about 0.28 for two
models of like size, 0.02 to 0.08 for a model and its quantised copy.
"""

from __future__ import annotations

import math

from keju.stats.distributions import Z95, normal_quantile, normal_survival

LIKE_SIZE = 0.28
"""The discordance of two models of like size."""
POWER = 0.8


def minimal_detectable_effect(
    n: int, discordance: float = LIKE_SIZE, *, deff: float = 1.0, power: float = POWER
) -> float:
    """The smallest difference of two shares on the same `n` items that is found with `power`."""
    reach = Z95 + normal_quantile(power)
    return min(1.0, reach * math.sqrt(discordance / (n / deff + reach**2)))


def items_needed(
    effect: float,
    discordance: float = LIKE_SIZE,
    *,
    deff: float = 1.0,
    population: int = 0,
    power: float = POWER,
) -> int:
    """How many items show `effect` between two models; `population` is the size of a finite set."""
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
    """How many items show `effect`, from the `variance` of one item's difference.

    With repeats that is the variance of the true item differences, and each run's variance
    within an item over its repeats.
    """
    if not effect:
        raise ValueError("no number of items shows a difference of nothing")
    reach = Z95 + normal_quantile(power)
    n = deff * reach**2 * max(0.0, variance) / effect**2
    if population:
        n /= 1 + n / population
    return max(1, math.ceil(n - 1e-9))


def power_of(n: int, effect: float, discordance: float = LIKE_SIZE, *, deff: float = 1.0) -> float:
    """The chance that `effect` is found on `n` items."""
    if discordance < abs(effect):
        raise ValueError("an effect is at most the share of items that are discordant")
    variance = discordance - effect**2
    if not variance:
        return 1.0
    return normal_survival(Z95 - abs(effect) / math.sqrt(variance * deff / n))
