"""A number with its uncertainty: what exams and results say about a model."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from keju.stats.intervals import Cluster, Moments
from keju.stats.strata import FEWEST, Stratum, stratified_mean

Ends = tuple[float, float]
"""Both ends of an interval."""
ONE_CLUSTER, FEW_QUESTIONS = "one_cluster", "few_questions"
"""Why there is no interval: all items share one context, or there are too few of them."""
MOST_UNGRADED = 0.2
"""Share of replies without a grade above which a mean over the others is not given."""
ROUNDING = 1e-9
"""What sums of shares may be off by."""


class Estimate(msgspec.Struct, frozen=True, omit_defaults=True):
    """A number, its 95 % interval and how both came about; one metric of ``results.json``.

    Values are shares in [0, 1], never rounded. None stands for "not defined", which is not 0;
    what was not even asked for is left out of the encoding.
    """

    value: float | None
    ci95: Ends | None
    n: int
    """Items behind the value."""
    method: str = ""
    """How the interval was made: ``wilson``, ``clustered``, ``stratified``, ``rogan-gladen``."""
    se: float | UnsetType | None = UNSET
    n_eff: float | None = None
    """The number of independent yes-or-no items that would leave the value as unsure as it is."""
    clusters: int | None = None
    deff: float | UnsetType | None = UNSET
    """Design effect: what clusters do to the variance."""
    t_interval: Ends | UnsetType | None = UNSET
    t_df: int | None = None
    strata: int | None = None
    strata_by_wilson: int = 0
    """Strata without a spread of their own; the name is that of 0.1."""
    finite_population: bool = False
    within_variance: float | None = None
    between_variance: float | None = None
    title: str = ""
    tasks: int | None = None
    partial: bool = False
    """Not all that the mean is published over was asked."""
    of: str = ""
    withheld: str = ""
    """Why a value that is known has no interval: the code of a notice."""
    details: dict[str, Any] = {}
    """What only this metric has; in the encoding its keys stand beside the others."""
    bounds: Ends | None = None
    """The value if all replies without a grade were wrong, and if they were right; None where
    every reply has a grade."""

    def within(self, worst: float | None, best: float | None) -> Estimate:
        """This estimate with its bounds; without a value where they lie too far apart for one.

        What lies between the bounds is the share of replies without a grade. A mean over the
        others is a selection, and above `MOST_UNGRADED` no longer a measurement of the whole.
        """
        if worst is None or best is None or best - worst < ROUNDING:
            return self
        bounded = msgspec.structs.replace(self, bounds=(worst, best))
        if best - worst <= MOST_UNGRADED + ROUNDING:
            return bounded
        return Estimate(
            None,
            None,
            self.n,
            title=self.title,
            bounds=(worst, best),
            of=self.of,
            details=self.details,
        )


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

    def stratum(self, population: int = 0) -> Stratum | None:
        """The items as a stratum, one drawn from `population` items; None if there are none."""
        moments = self.moments()
        if moments is None:
            return None
        return Stratum(moments, population, self.clusters, self.draws)

    def estimate(self, **more: Any) -> Estimate:
        """The mean over items with the interval that fits how they were drawn.

        `more` are further fields of the estimate, such as its title.
        """
        stratum = self.stratum()
        return Estimate(None, None, 0, **more) if stratum is None else estimate([stratum], **more)


def estimate(strata: Sequence[Stratum], weights: Sequence[float] = (1.0,), **more: Any) -> Estimate:
    """The weighted mean of strata as an estimate; `more` are further fields of it."""
    mean = stratified_mean(strata, weights)
    several = len(strata) > 1
    if several:
        more |= {"strata": len(strata), "strata_by_wilson": mean.without_spread}
    elif mean.clusters is not None or mean.n_eff != mean.n:
        more["n_eff"] = mean.n_eff
    method = "stratified" if several else "wilson"
    if mean.clusters is not None:
        method = "clustered"
        more |= {"clusters": mean.clusters, "deff": mean.deff}
        if not several:
            more |= {"t_interval": mean.t_interval, "t_df": mean.clusters - 1}
    if mean.interval is None:
        more["withheld"] = FEW_QUESTIONS if mean.n < FEWEST else ONE_CLUSTER
    more["finite_population"] = mean.finite
    return Estimate(mean.value, mean.interval, mean.n, method, mean.se, **more)


class Bounded:
    """The values of items, and what they come to if all that lacks a grade is wrong, or right."""

    def __init__(self, *, clustered: bool) -> None:
        self.seen = Gathered(clustered=clustered)
        self.worst, self.best = Gathered(clustered=False), Gathered(clustered=False)

    def add(
        self,
        value: float | None,
        bounds: tuple[float, float],
        group: str = "",
        *,
        many: int = 1,
        draws: int = 1,
    ) -> None:
        """Take in `many` items; the value is None where too little of an item has a grade."""
        if value is not None:
            self.seen.add(value, group, many=many, draws=draws)
        for end, worth in zip((self.worst, self.best), bounds, strict=True):
            end.add(worth, many=many)

    def estimate(self, **more: Any) -> Estimate:
        """The mean over items within its bounds; `more` are further fields of the estimate."""
        worst, best = self.worst.moments(), self.best.moments()
        return self.seen.estimate(**more).within(worst and worst.mean, best and best.mean)


class Repeats(NamedTuple):
    """One question: what its graded repeats are worth, and how many repeats lack a grade."""

    group: str
    values: Sequence[float]
    lost: int


def mean_of_items(items: Iterable[Repeats], *, clustered: bool, draws: bool = False) -> Estimate:
    """The mean over items, each the mean of its repeats, within the bounds that lost ones leave.

    With `draws` values are answers of yes or no.
    """
    bounded = Bounded(clustered=clustered)
    for group, values, lost in items:
        total, size = math.fsum(values), len(values) + lost
        if size:
            mean = total / len(values) if values else None
            bounds = (total / size, (total + lost) / size)
            bounded.add(mean, bounds, group, draws=len(values) if draws else 0)
    return bounded.estimate()
