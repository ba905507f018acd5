"""Means over subsets and tasks, each subset a fixed stratum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from keju.benchmarks.base import Mean
from keju.results.estimates import Gathered, Metric, ends, undefined
from keju.stats.distributions import Z95, student_t_quantile
from keju.stats.intervals import Interval
from keju.stats.strata import (
    StratifiedMean,
    Stratum,
    clustered_strata_se,
    micro_weights,
    stratified_mean,
)


class Scored(NamedTuple):
    """One subset's scores and, where only a part of it was drawn, its full size."""

    gathered: Gathered
    population: int = 0

    @property
    def stratum(self) -> Stratum | None:
        """The subset as a stratum; None if nothing in it is graded."""
        moments = self.gathered.moments()
        return None if moments is None else Stratum(moments, self.population)


def mean_metric(mean: Mean, subsets: Mapping[str, Scored], *, main: bool) -> Metric | None:
    """The metric of one mean; None if the exam lacks subsets of it.

    The main mean is given all the same, over the tasks that are there, and says ``partial``. A
    subset that is there without a single grade leaves the others undefined, and the main one
    partial.
    """
    wanted = [name for task in mean.tasks for name in task]
    if not main and any(name not in subsets for name in wanted):
        return None
    graded = {name for name in wanted if name in subsets and subsets[name].stratum is not None}
    complete = len(graded) == len(set(wanted))
    tasks = [[name for name in task if name in graded] for task in mean.tasks]
    tasks = [task for task in tasks if task]
    if not tasks or not (complete or main):
        return undefined(title=mean.title)
    metric = _weighted(_weights(tasks), subsets)
    metric |= {"title": mean.title, "tasks": len(tasks)}
    return metric if complete else metric | {"partial": True}


def whole_set_metric(subsets: Mapping[str, Scored]) -> Metric | None:
    """Micro accuracy expected on the whole set, where subsets were drawn unevenly.

    None where every subset was asked in full, so that plain accuracy says the same.
    """
    graded = {name: s.stratum for name, s in subsets.items()}
    strata = {name: stratum for name, stratum in graded.items() if stratum is not None}
    if not strata or not any(s.population for s in strata.values()):
        return None
    weights = micro_weights(list(strata.values()))
    metric = _weighted(dict(zip(strata, weights, strict=True)), subsets)
    return metric | {"title": "accuracy expected on the whole set, subsets weighted by their size"}


def _weights(tasks: Sequence[Sequence[str]]) -> dict[str, float]:
    """Each task counts alike, and each subset alike inside its task."""
    weights: dict[str, float] = {}
    for task in tasks:
        for name in task:
            weights[name] = weights.get(name, 0.0) + 1 / (len(tasks) * len(task))
    return weights


def _weighted(weights: Mapping[str, float], subsets: Mapping[str, Scored]) -> Metric:
    names = list(weights)
    if len(names) == 1:
        return subsets[names[0]].gathered.metric()
    strata = [stratum for name in names if (stratum := subsets[name].stratum) is not None]
    shares = [weights[name] for name in names]
    clusters = [subsets[name].gathered.clusters for name in names]
    by_group = [own for own in clusters if own is not None]
    estimate = stratified_mean(strata, shares, finite=not by_group)
    metric: Metric = {
        "value": estimate.value,
        "ci95": ends(estimate.interval),
        "n": sum(stratum.moments.n for stratum in strata),
        "method": "stratified",
        "se": estimate.se,
        "strata": len(strata),
    }
    if estimate.by_wilson:
        metric["strata_by_wilson"] = estimate.by_wilson
    if by_group:
        metric |= _allow_for_clusters(estimate, *clustered_strata_se(by_group, shares))
    elif any(stratum.unseen < 1 for stratum in strata):
        metric["finite_population"] = True
    return metric


def _allow_for_clusters(estimate: StratifiedMean, se: float | None, clusters: int) -> Metric:
    """Widen both arms to the clustered standard error; shared contexts never narrow them."""
    if se is None:
        return {"method": "clustered", "se": None, "ci95": None, "clusters": clusters}
    wider = max(se, estimate.se)
    stretch = wider / estimate.se * student_t_quantile(0.975, clusters - 1) / Z95
    low, high = estimate.interval
    interval = Interval(
        estimate.value - stretch * (estimate.value - low),
        estimate.value + stretch * (high - estimate.value),
    )
    return {
        "method": "clustered",
        "se": wider,
        "ci95": ends(interval),
        "clusters": clusters,
        "deff": (se / estimate.se) ** 2,
    }
