"""Bias-corrected and accelerated bootstrap (Efron 1987) over clusters."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, TypeVar

from keju.stats.distributions import Z95, normal_cdf, normal_quantile
from keju.stats.intervals import Interval

DRAWS = 10_000

T = TypeVar("T")


class Bootstrap(NamedTuple):
    """A bootstrap interval and how it came about."""

    value: float
    interval: Interval
    method: Literal["bca", "percentile"]
    """``percentile`` where the correction is undefined: all draws on one side of the value."""
    bias: float | None
    acceleration: float
    draws: int
    seed: int


def bootstrap(
    clusters: Sequence[T],
    statistic: Callable[[Sequence[T]], float],
    *,
    seed: int,
    draws: int = DRAWS,
) -> Bootstrap:
    """A 95 % interval of `statistic` by resampling whole clusters.

    An item without company is a cluster of one. The same seed gives the same interval.
    """
    if len(clusters) < 2:
        raise ValueError("a bootstrap needs at least two clusters")
    value = statistic(clusters)
    generator = random.Random(seed)
    size = len(clusters)
    drawn = sorted(statistic(generator.choices(clusters, k=size)) for _ in range(draws))
    below = sum(1 for one in drawn if one < value)
    left_out = [statistic([*clusters[:i], *clusters[i + 1 :]]) for i in range(size)]
    skew = acceleration(left_out)
    if below in (0, draws):
        ends = Interval(_percentile(drawn, 0.025), _percentile(drawn, 0.975))
        return Bootstrap(value, ends, "percentile", None, skew, draws, seed)
    bias = normal_quantile(below / draws)
    low, high = bca_levels(bias, skew)
    ends = Interval(_percentile(drawn, low), _percentile(drawn, high))
    return Bootstrap(value, ends, "bca", bias, skew, draws, seed)


def acceleration(left_out: Sequence[float]) -> float:
    """Skewness of the statistic from its values with one cluster left out."""
    centre = math.fsum(left_out) / len(left_out)
    squares = math.fsum((centre - value) ** 2 for value in left_out)
    if squares == 0:
        return 0.0
    cubes = math.fsum((centre - value) ** 3 for value in left_out)
    return cubes / (6 * squares * math.sqrt(squares))


def bca_levels(bias: float, skew: float) -> tuple[float, float]:
    """Which quantiles of the draws are the ends of a 95 % interval."""

    def level(z: float) -> float:
        moved = bias + z
        return normal_cdf(bias + moved / (1 - skew * moved))

    return level(-Z95), level(Z95)


def _percentile(ordered: Sequence[float], level: float) -> float:
    """The quantile of sorted values, linear between neighbours."""
    place = level * (len(ordered) - 1)
    lower = math.floor(place)
    upper = min(lower + 1, len(ordered) - 1)
    return ordered[lower] + (place - lower) * (ordered[upper] - ordered[lower])
