"""Means over fixed strata: subsets of an exam are chosen, not drawn."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from keju.stats.distributions import Z95
from keju.stats.intervals import Cluster, Interval, Moments, wilson


class Stratum(NamedTuple):
    """One subset: what was seen of it, and its size where only a part was drawn."""

    moments: Moments
    population: int = 0
    """Size of the whole subset; 0 if all of it was asked."""

    @property
    def unseen(self) -> float:
        """Finite population factor: the share of the subset that was not asked, else 1."""
        return 1 - self.moments.n / self.population if self.population > self.moments.n else 1.0


class StratifiedMean(NamedTuple):
    """A weighted mean of stratum means."""

    value: float
    se: float
    interval: Interval
    """May pass 0 or 1."""
    by_wilson: int
    """How many strata showed no spread, so that Wilson's interval stands in for theirs."""


def micro_weights(strata: Sequence[Stratum]) -> list[float]:
    """Weights by size: of the whole subset where it is known, else of what was asked."""
    sizes = [max(s.population, s.moments.n) for s in strata]
    return [size / sum(sizes) for size in sizes]


def stratified_mean(
    strata: Sequence[Stratum], weights: Sequence[float], *, finite: bool = True
) -> StratifiedMean:
    """The weighted mean with the standard error that fixed strata leave.

    A stratum without spread (one item, or all right, or all wrong) would enter with a variance of
    0, which is false. Its Wilson interval enters instead: half its width over z as standard
    error, its two arms in the interval, which is then not symmetric. `by_wilson` counts these.
    With `finite`, strata of which only a part was drawn enter with their unseen share.
    """
    value = math.fsum(w * s.moments.mean for w, s in zip(weights, strata, strict=True))
    variance = below = above = 0.0
    for weight, stratum in zip(weights, strata, strict=True):
        factor = weight * weight * (stratum.unseen if finite else 1.0)
        n, mean, spread, _ = stratum.moments
        if spread:
            own = spread / n
            down = up = Z95 * Z95 * own
        else:
            low, high = wilson(mean, n)
            own = ((high - low) / (2 * Z95)) ** 2
            down, up = (mean - low) ** 2, (high - mean) ** 2
        variance += factor * own
        below += factor * down
        above += factor * up
    interval = Interval(value - math.sqrt(below), value + math.sqrt(above))
    by_wilson = sum(not stratum.moments.variance for stratum in strata)
    return StratifiedMean(value, math.sqrt(variance), interval, by_wilson)


def clustered_strata_se(
    strata: Sequence[Mapping[str, Cluster]], weights: Sequence[float]
) -> tuple[float | None, int]:
    """Standard error of a stratified mean whose items share contexts, and the clusters behind it.

    A cluster may reach over several strata; its weighted residuals are summed before they are
    squared. None for a single cluster.
    """
    residuals: dict[str, float] = {}
    for clusters, weight in zip(strata, weights, strict=True):
        n = sum(cluster.n for cluster in clusters.values())
        mean = math.fsum(cluster.total for cluster in clusters.values()) / n
        for name, cluster in clusters.items():
            own = weight * (cluster.total - cluster.n * mean) / n
            residuals[name] = residuals.get(name, 0.0) + own
    size = len(residuals)
    if size < 2:
        return None, size
    squares = math.fsum(residual**2 for residual in residuals.values())
    return math.sqrt(size / (size - 1) * squares), size
