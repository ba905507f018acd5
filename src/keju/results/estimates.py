"""From the values of items to a metric of ``results.json``."""

from __future__ import annotations

from collections import Counter
from typing import Any

from keju.stats.intervals import (
    BoundedMean,
    Cluster,
    ClusteredMean,
    Interval,
    Moments,
    bounded_mean,
    clustered_mean,
)

Metric = dict[str, Any]
"""At least ``value``, ``ci95`` and ``n``; values in [0, 1] and never rounded."""


def undefined(**more: Any) -> Metric:
    """The metric of nothing: no value, which is not the same as a value of 0."""
    return {"value": None, "ci95": None, "n": 0, **more}


def ends(interval: Interval | None) -> list[float] | None:
    """An interval as the results show it, cut to [0, 1]."""
    return None if interval is None else list(interval.clipped())


class Gathered:
    """The values of items, kept as counts (and as sums by cluster), never one by one."""

    def __init__(self, *, clustered: bool) -> None:
        self.counts: Counter[float] = Counter()
        self.clusters: dict[str, Cluster] | None = {} if clustered else None
        self.draws = 0
        """Answers behind the values; 0 where the values are no shares of answers."""

    def add(self, value: float, group: str = "", *, many: int = 1, draws: int = 1) -> None:
        """Take in `many` items of one value, each the mean of `draws` yes-or-no answers."""
        self.counts[value] += many
        self.draws += many * draws
        if self.clusters is not None:
            n, total = self.clusters.get(group, (0, 0.0))
            self.clusters[group] = Cluster(n + many, total + many * value)

    def moments(self) -> Moments | None:
        """Mean and variance over items; None if there are none."""
        return Moments.of_counts(self.counts)

    def metric(self, **more: Any) -> Metric:
        """The mean over items with the interval that fits how they were drawn."""
        moments = self.moments()
        if moments is None:
            return undefined(**more)
        if self.clusters is None or len(self.clusters) == moments.n:
            return _independent(bounded_mean(moments, draws=self.draws or None)) | more
        clusters = list(self.clusters.values())
        return _clustered(clustered_mean(clusters, moments, draws=self.draws or None)) | more


def _independent(mean: BoundedMean) -> Metric:
    metric = _head(mean.value, mean.interval, mean.n, "wilson", mean.se)
    if mean.n_eff != mean.n:
        metric["n_eff"] = mean.n_eff
    return metric


def _clustered(mean: ClusteredMean) -> Metric:
    return _head(mean.value, mean.interval, mean.n, "clustered", mean.se) | {
        "clusters": mean.clusters,
        "deff": mean.deff,
        "n_eff": mean.n_eff,
        "t_interval": None if mean.t_interval is None else list(mean.t_interval),
        "t_df": mean.clusters - 1,
    }


def _head(value: float, interval: Interval | None, n: int, method: str, se: float | None) -> Metric:
    return {"value": value, "ci95": ends(interval), "n": n, "method": method, "se": se}
