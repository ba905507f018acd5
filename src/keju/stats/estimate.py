"""The one estimator of a mean: over fixed strata, shared contexts and repeats; and the number with
its uncertainty that exams and results say about a model.

Subsets of an exam are chosen, not drawn, so they are strata; an exam without subsets is a single
one. Clusters are real shared contexts, such as a passage, and may reach over several strata.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from keju.stats.intervals import (
    Z95,
    Cluster,
    Imbalance,
    Interval,
    Moments,
    bunched_wilson,
    imbalance,
    mean,
    student_t_quantile,
)

FEWEST = 5
"""Below this number of items no interval is given: hardly any share would lie outside."""
BORROWED = 0.5
"""Items like those of the whole exam that each stratum is given when its variance is estimated."""


class Stratum(NamedTuple):
    """One subset: what was seen of it, and its size where only a part was drawn."""

    moments: Moments
    population: int = 0
    """Size of the whole subset; 0 if all of it was asked."""
    clusters: Mapping[str, Cluster] | None = None
    """Its items by shared context; None where each stands alone."""
    draws: int = 0
    """Yes-or-no answers behind the values; 0 where the values are no shares of answers."""

    @property
    def unseen(self) -> float:
        """Finite population factor: the share of the subset that was not asked, else 1."""
        return 1 - self.moments.n / self.population if self.population > self.moments.n else 1.0


class StratifiedMean(NamedTuple):
    """A weighted mean of stratum means and how sure it is."""

    value: float
    se: float | None
    """None for a single item or a single cluster."""
    interval: Interval | None
    """Inside [0, 1]; None for a single cluster, which shows no spread between clusters, and for
    fewer than `FEWEST` items."""
    n: int
    n_eff: float
    """The number of independent yes-or-no items that would leave the mean as unsure as it is."""
    without_spread: int
    """How many strata show no spread of their own, so that the whole exam's stands in."""
    finite: bool
    """Whether a part of a known whole was drawn, so that the rest alone is unsure."""
    clusters: int | None = None
    deff: float | None = None
    """Design effect, (clustered SE / plain SE) squared; None where all scores are equal."""
    t_interval: Interval | None = None
    """Mean plus and minus t times the clustered SE; may pass 0 or 1."""


def micro_weights(strata: Sequence[Stratum]) -> list[float]:
    """Weights by size: of the whole subset where it is known, else of what was asked."""
    sizes = [max(s.population, s.moments.n) for s in strata]
    return [size / sum(sizes) for size in sizes]


def stratified_mean(strata: Sequence[Stratum], weights: Sequence[float] = (1.0,)) -> StratifiedMean:
    """The weighted mean with Wilson's interval at the effective size that its variance leaves.

    Yes-or-no items of one stratum give Wilson's interval itself. Items that vary less (means of
    repeats, strata that differ) raise the effective size, shared contexts lower it. Where values
    are not all yes or no their variance is estimated, and Student's t takes the normal's place.
    """
    parts = list(zip(weights, strata, strict=True))
    n = sum(stratum.moments.n for stratum in strata)
    value = math.fsum(weight * stratum.moments.mean for weight, stratum in parts)
    clusters = _residuals(parts)
    bunched = 0 < len(clusters) < n
    unseen = [1.0 if bunched else stratum.unseen for stratum in strata]
    sample_variances = [stratum.moments.variance for stratum in strata]
    shrunk_variances = _shrunk_variances(parts)
    scale = [w * w * unseen_share / s.moments.n for (w, s), unseen_share in zip(parts, unseen, strict=True)]
    sizes = _sizes(parts, value, scale, shrunk_variances)
    binary = all(stratum.moments.binary for stratum in strata)
    z = Z95 if binary or n < 2 else student_t_quantile(0.975, n - 1)
    variances = [sample_variance or shrunk_variance for sample_variance, shrunk_variance in zip(sample_variances, shrunk_variances, strict=True)]
    spread = math.fsum(scale_factor * v for scale_factor, v in zip(scale, variances, strict=True))
    unclustered = StratifiedMean(
        value,
        math.sqrt(spread) if n > 1 else None,
        bunched_wilson(value, sizes.answers, sizes.plain_items, sizes.answers / sizes.effective, z),
        n,
        sizes.effective,
        sum(not variance for variance in sample_variances),
        any(unseen_share < 1 for unseen_share in unseen),
    )
    mean = unclustered
    if bunched:
        mean = _with_clusters(unclustered, sizes, clusters, imbalance(_cluster_sizes(parts)), z)
    return mean if n >= FEWEST else mean._replace(interval=None, t_interval=None)


def _shrunk_variances(parts: Sequence[tuple[float, Stratum]]) -> list[float]:
    """The variance of one item of each stratum, from its own items and `BORROWED` ones.

    A stratum of two items that are both right would claim to have no variance, one of a single
    item has none to show. So each is given half an item like the whole exam, and the result is
    divided by what it would be on average if all strata were alike. Single items then count with
    the whole exam's variance, and strata of many items with their own.
    """
    mean = math.fsum(weight * stratum.moments.mean for weight, stratum in parts)
    mean_square = math.fsum(weight * stratum.moments.mean_square for weight, stratum in parts)
    pooled_variance = _pooled_variance(parts)
    variances = []
    for weight, (moments, *_) in parts:
        total = moments.n + BORROWED
        centre = (moments.n * moments.mean + BORROWED * mean) / total
        spread = (moments.n * moments.mean_square + BORROWED * mean_square) / total - centre**2
        expected_share = 1 - (moments.n + 2 * BORROWED * weight + BORROWED**2 * pooled_variance) / total**2
        variances.append(max(0.0, spread) / expected_share if expected_share > 1e-9 else 0.0)
    return variances


def _pooled_variance(parts: Sequence[tuple[float, Stratum]]) -> float:
    """The variance of the mean, in those of one item, if all items came from one pot."""
    return math.fsum(weight * weight / stratum.moments.n for weight, stratum in parts)


class _Sizes(NamedTuple):
    """In how many items a mean is as unsure as it is."""

    plain_items: float
    """If all items came from one pot, asked once."""
    answers: float
    """If the repeats of an item had nothing in common."""
    effective: float
    """As the variance of the mean tells: p(1 - p) over it is that variance."""


def _sizes(
    parts: Sequence[tuple[float, Stratum]],
    value: float,
    scale: Sequence[float],
    variances: Sequence[float],
) -> _Sizes:
    """The sizes of a mean; `scale` weighs the `variances` of one item of each stratum.

    Means of repeats that happen to be equal are not taken for certain: the effective size of
    values that are not all yes or no never passes the number of answers behind them.
    """
    n = sum(stratum.moments.n for _, stratum in parts)
    drawn = sum(stratum.draws for _, stratum in parts)
    item_count = 1 / math.fsum(scale)
    answers = item_count * max(1.0, drawn / n)
    variance = math.fsum(factor * item_variance for factor, item_variance in zip(scale, variances, strict=True))
    if n < 2 or value in (0.0, 1.0):
        return _Sizes(item_count, answers, item_count)
    if variance < 1e-15:
        return _Sizes(item_count, answers, answers)
    size = value * (1 - value) / (1 - _pooled_variance(parts)) / variance
    if math.isclose(size, item_count, rel_tol=1e-12):
        size = item_count  # as for yes-or-no items of one stratum, but for rounding
    if drawn and not all(stratum.moments.binary for _, stratum in parts):
        size = min(size, answers)
    return _Sizes(item_count, max(answers, size), size)


def _residuals(parts: Sequence[tuple[float, Stratum]]) -> dict[str, float]:
    """What each cluster adds to the weighted mean beyond what its items would on average."""
    residuals: dict[str, float] = {}
    for weight, stratum in parts:
        moments = stratum.moments
        for name, cluster in (stratum.clusters or {}).items():
            residual = weight * (cluster.total - cluster.n * moments.mean) / moments.n
            residuals[name] = residuals.get(name, 0.0) + residual
    return residuals


def _cluster_sizes(parts: Sequence[tuple[float, Stratum]]) -> list[float]:
    """What share of the weighted mean each cluster has."""
    shares: dict[str, float] = {}
    for weight, stratum in parts:
        for name, cluster in (stratum.clusters or {}).items():
            share = weight * cluster.n / stratum.moments.n
            shares[name] = shares.get(name, 0.0) + share
    return list(shares.values())


def _with_clusters(
    alone: StratifiedMean,
    sizes: _Sizes,
    residuals: Mapping[str, float],
    unequal: Imbalance,
    z: float,
) -> StratifiedMean:
    """The mean as its clusters leave it; `alone` is the same mean of items without contexts.

    A design effect below 1 is noise and adds no items. One above 1 is estimated from few clusters,
    so that Student's t takes the place of `z`: the more, the larger the part of the variance is
    that only the clusters show. Clusters of unequal size are corrected for that.
    """
    count, value = len(residuals), alone.value
    if count == 1:
        return alone._replace(se=None, interval=None, n_eff=1.0, clusters=1)
    squares = math.fsum(residual**2 for residual in residuals.values())
    se = math.sqrt(count / (count - 1) * squares)
    deff = (se / alone.se) ** 2 if alone.se else None
    t = student_t_quantile(0.975, count - 1)
    observed_effect = max(1.0, deff or 1.0)
    # Items of one cluster can have no more in common than everything.
    largest_effect = max(observed_effect, sizes.answers / unequal.effective)
    effect = min(observed_effect * unequal.factor, largest_effect) if observed_effect > 1 else observed_effect
    size = alone.n_eff / effect
    wider = student_t_quantile(0.975, unequal.df)
    reach = z + (max(z, wider) - z) * (1 - effect**-2)
    return alone._replace(
        se=se,
        interval=bunched_wilson(
            value, sizes.answers, unequal.effective, sizes.answers / size, reach
        ),
        n_eff=unequal.effective if deff is None else size,
        clusters=count,
        deff=deff,
        t_interval=Interval(value - t * se, value + t * se),
    )


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
    tasks_published: int | None = None
    """Of how many tasks the published mean is, where it is partial."""
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

    def add(self, value: float, group: str = "", *, count: int = 1, draws: int = 1) -> None:
        """Take in `many` items of one value, each the mean of `draws` yes-or-no answers."""
        self.counts[value] += count
        self.draws += count * draws
        if self.clusters is not None:
            n, total = self.clusters.get(group, (0, 0.0))
            self.clusters[group] = Cluster(n + count, total + count * value)

    def moments(self) -> Moments | None:
        """Mean and variance over items; None if there are none."""
        return Moments.of_counts(self.counts)

    def stratum(self, population: int = 0) -> Stratum | None:
        """The items as a stratum, one drawn from `population` items; None if there are none."""
        moments = self.moments()
        if moments is None:
            return None
        return Stratum(moments, population, self.clusters, self.draws)

    def estimate(self, **fields: Any) -> Estimate:
        """The mean over items with the interval that fits how they were drawn.

        `more` are further fields of the estimate, such as its title.
        """
        stratum = self.stratum()
        return Estimate(None, None, 0, **fields) if stratum is None else estimate([stratum], **fields)


def estimate(strata: Sequence[Stratum], weights: Sequence[float] = (1.0,), **fields: Any) -> Estimate:
    """The weighted mean of strata as an estimate; `more` are further fields of it."""
    mean = stratified_mean(strata, weights)
    is_stratified = len(strata) > 1
    if is_stratified:
        fields |= {"strata": len(strata), "strata_by_wilson": mean.without_spread}
    elif mean.clusters is not None or mean.n_eff != mean.n:
        fields["n_eff"] = mean.n_eff
    method = "stratified" if is_stratified else "wilson"
    if mean.clusters is not None:
        method = "clustered"
        fields |= {"clusters": mean.clusters, "deff": mean.deff}
        if not is_stratified:
            fields |= {"t_interval": mean.t_interval, "t_df": mean.clusters - 1}
    if mean.interval is None:
        fields["withheld"] = FEW_QUESTIONS if mean.n < FEWEST else ONE_CLUSTER
    fields["finite_population"] = mean.finite
    return Estimate(mean.value, mean.interval, mean.n, method, mean.se, **fields)


class Bounded:
    """The values of items, and what they come to if all that lacks a grade is wrong, or right."""

    def __init__(self, *, clustered: bool) -> None:
        self.graded = Gathered(clustered=clustered)
        self.worst, self.best = Gathered(clustered=False), Gathered(clustered=False)

    def add(
        self,
        value: float | None,
        bounds: tuple[float, float],
        group: str = "",
        *,
        count: int = 1,
        draws: int = 1,
    ) -> None:
        """Take in `many` items; the value is None where too little of an item has a grade."""
        if value is not None:
            self.graded.add(value, group, count=count, draws=draws)
        for end, end_value in zip((self.worst, self.best), bounds, strict=True):
            end.add(end_value, count=count)

    def estimate(self, **fields: Any) -> Estimate:
        """The mean over items within its bounds; `more` are further fields of the estimate."""
        worst, best = self.worst.moments(), self.best.moments()
        return self.graded.estimate(**fields).within(worst and worst.mean, best and best.mean)


class Repeats(NamedTuple):
    """One question: what its graded repeats are worth, and how many repeats lack a grade."""

    group: str
    values: Sequence[float]
    ungraded: int


def mean_of_items(questions: Iterable[Repeats], *, clustered: bool, draws: bool = False) -> Estimate:
    """The mean over items, each the mean of its repeats, within the bounds that lost ones leave.

    With `draws` values are answers of yes or no.
    """
    bounded = Bounded(clustered=clustered)
    for group, values, ungraded in questions:
        total, size = math.fsum(values), len(values) + ungraded
        if size:
            mean = total / len(values) if values else None
            bounds = (total / size, (total + ungraded) / size)
            bounded.add(mean, bounds, group, draws=len(values) if draws else 0)
    return bounded.estimate()


class Predicted(NamedTuple):
    """A mean and its standard error, which counts only items without a score as unsure."""

    value: float
    se: float | None
    """None for a single score."""


def difference_estimate(predictions: Sequence[float], scores: Mapping[int, float]) -> Predicted:
    """The mean of the predictions, corrected by what they miss on a random sample of items.

    `scores` are the scores of the sample by position. Bad predictions widen the interval and do
    not make it wrong.
    """
    errors = Moments.of(score - predictions[place] for place, score in scores.items())
    if errors is None:
        raise ValueError("a mean cannot be corrected without a single score")
    value = (mean(predictions) or 0.0) + errors.mean
    unseen = 1 - errors.n / len(predictions)
    return Predicted(value, None if errors.se is None else math.sqrt(unseen) * errors.se)
