"""The bootstrap, for ratios and other values that are no mean: bias-corrected and accelerated."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from keju.stats.describe import mean, quantile
from keju.stats.distributions import normal_quantile, normal_survival
from keju.stats.intervals import Interval

Item = TypeVar("Item")
RESAMPLES = 10_000


class Levels(NamedTuple):
    """Which quantiles of the resampled values are the ends of the interval."""

    low: float
    high: float
    corrected: bool = True
    """Whether they are corrected; else they are the plain percentiles."""


def acceleration(left_out: Sequence[float]) -> float:
    """How fast the spread changes with the value, from the values with one item left out."""
    centre = mean(left_out) or 0.0
    squares = math.fsum((centre - own) ** 2 for own in left_out)
    cubes = math.fsum((centre - own) ** 3 for own in left_out)
    return cubes / (6 * squares**1.5) if squares else 0.0


def bca_levels(below: float, accelerated: float) -> Levels:
    """The levels of a 95 % interval; `below` is the share of resampled values below the value."""
    if not 0 < below < 1:
        return Levels(0.025, 0.975, corrected=False)
    bias = normal_quantile(below)

    def level(q: float) -> float:
        far = bias + normal_quantile(q)
        return normal_survival(-(bias + far / (1 - accelerated * far)))

    return Levels(level(0.025), level(0.975))


def bca_interval(
    items: Sequence[Item],
    value: Callable[[Sequence[Item]], float],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """The 95 % interval of a value of independent items; clusters are items that are lists."""
    own, chance = value(items), random.Random(seed)
    drawn = sorted(value(chance.choices(items, k=len(items))) for _ in range(resamples))
    left_out = [value([*items[:place], *items[place + 1 :]]) for place in range(len(items))]
    below = sum(each < own for each in drawn) / resamples
    low, high, _ = bca_levels(below, acceleration(left_out))
    return Interval(quantile(drawn, low) or 0.0, quantile(drawn, high) or 0.0)
