"""The estimator of all means: over fixed strata, shared contexts and repeats. It also defines
`Estimate`, the number with its uncertainty that exams and results report.

The subsets of an exam are chosen and not drawn at random, so they are strata. An exam without
subsets is a single stratum. Clusters are shared contexts such as a passage, and may extend over
several strata.
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
    student_t_quantile,
)

FEWEST = 5
"""Fewest items for an interval. With fewer items it would exclude hardly any share."""
BORROWED = 0.5
"""Pseudo-items with the variance of the whole exam that are added to each stratum when its variance
is estimated."""


class Stratum(NamedTuple):
    """One subset: its scores, and its size if only a part of it was drawn."""

    moments: Moments
    population: int = 0
    """Size of the whole subset; 0 if all of it was asked."""
    clusters: Mapping[str, Cluster] | None = None
    """Its items by shared context; None if every item has its own context."""
    draws: int = 0
    """Number of yes-or-no answers behind the values; 0 if the values are not shares of answers."""

    @property
    def unseen(self) -> float:
        """Finite population factor: the share of the subset that was not asked, or 1 if all of it
        was."""
        return 1 - self.moments.n / self.population if self.population > self.moments.n else 1.0


class StratifiedMean(NamedTuple):
    """A weighted mean of stratum means and its uncertainty."""

    value: float
    se: float | None
    """None for a single item or a single cluster."""
    interval: Interval | None
    """Within [0, 1]. None for a single cluster, because the variance between clusters is unknown,
    and for fewer than `FEWEST` items."""
    n: int
    n_eff: float
    """The number of independent yes-or-no items that would give the same uncertainty."""
    without_spread: int
    """The number of strata without any variance, for which the variance of the whole exam is
    used."""
    finite: bool
    """Whether a sample of a known whole was drawn, so that only the remaining items are
    uncertain."""
    clusters: int | None = None
    deff: float | None = None
    """Design effect, (clustered SE / plain SE) squared; None if all scores are equal."""
    t_interval: Interval | None = None
    """Mean plus and minus t times the clustered SE; may extend beyond 0 and 1."""


def micro_weights(strata: Sequence[Stratum]) -> list[float]:
    """Return weights by size: of the whole subset if it is known, otherwise of the questions
    asked."""
    sizes = [max(s.population, s.moments.n) for s in strata]
    return [size / sum(sizes) for size in sizes]


def stratified_mean(strata: Sequence[Stratum], weights: Sequence[float] = (1.0,)) -> StratifiedMean:
    """Return the weighted mean with Wilson's interval at its effective size.

    For yes-or-no items of one stratum this is Wilson's interval itself. Items that vary less (means
    of repeats, strata that differ) raise the effective size, and shared contexts lower it. If not
    all values are yes or no, their variance is estimated and Student's t replaces the normal
    distribution.
    """
    parts = list(zip(weights, strata, strict=True))
    n = sum(stratum.moments.n for stratum in strata)
    value = math.fsum(weight * stratum.moments.mean for weight, stratum in parts)
    clusters = _residuals(parts)
    bunched = 0 < len(clusters) < n
    unseen = [1.0 if bunched else stratum.unseen for stratum in strata]
    sample_variances = [stratum.moments.variance for stratum in strata]
    shrunk_variances = _shrunk_variances(parts)
    scale = [
        w * w * unseen_share / s.moments.n
        for (w, s), unseen_share in zip(parts, unseen, strict=True)
    ]
    sizes = _sizes_of_mean(parts, value, scale, shrunk_variances)
    binary = all(stratum.moments.binary for stratum in strata)
    z = Z95 if binary or n < 2 else student_t_quantile(0.975, n - 1)
    variances = [
        sample_variance or shrunk_variance
        for sample_variance, shrunk_variance in zip(sample_variances, shrunk_variances, strict=True)
    ]
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
        mean = _apply_clusters(unclustered, sizes, clusters, imbalance(_cluster_sizes(parts)), z)
    return mean if n >= FEWEST else mean._replace(interval=None, t_interval=None)


def _shrunk_variances(parts: Sequence[tuple[float, Stratum]]) -> list[float]:
    """Return the variance of one item of each stratum, from its items and `BORROWED` pseudo-items.

    Two items of a stratum that are both right would have no variance, and the variance of a single
    item is unknown. So each stratum gets half an item like the whole exam. The result is divided by
    its expected value if all strata were equal. Single items then count with the variance of the
    whole exam, and strata of many items with their own.
    """
    mean = math.fsum(weight * stratum.moments.mean for weight, stratum in parts)
    mean_square = math.fsum(weight * stratum.moments.mean_square for weight, stratum in parts)
    pooled_variance = _pooled_variance(parts)
    variances = []
    for weight, (moments, *_) in parts:
        total = moments.n + BORROWED
        centre = (moments.n * moments.mean + BORROWED * mean) / total
        spread = (moments.n * moments.mean_square + BORROWED * mean_square) / total - centre**2
        expected_share = (
            1 - (moments.n + 2 * BORROWED * weight + BORROWED**2 * pooled_variance) / total**2
        )
        variances.append(max(0.0, spread) / expected_share if expected_share > 1e-9 else 0.0)
    return variances


def _pooled_variance(parts: Sequence[tuple[float, Stratum]]) -> float:
    """Return the variance of the mean, in units of one item's variance, if all strata were
    equal."""
    return math.fsum(weight * weight / stratum.moments.n for weight, stratum in parts)


class _EffectiveSizes(NamedTuple):
    """Numbers of items that would give the uncertainty of a mean."""

    plain_items: float
    """If all strata were equal and every item was asked once."""
    answers: float
    """If the repeats of an item were independent."""
    effective: float
    """From the variance of the mean: p(1 - p) divided by this size is that variance."""


def _sizes_of_mean(
    parts: Sequence[tuple[float, Stratum]],
    value: float,
    scale: Sequence[float],
    variances: Sequence[float],
) -> _EffectiveSizes:
    """Return the sizes of a mean; `scale` weights the `variances` of one item of each stratum.

    Means of repeats that happen to be equal do not count as certain. If not all values are yes or
    no, the effective size is at most the number of answers behind them.
    """
    n = sum(stratum.moments.n for _, stratum in parts)
    drawn = sum(stratum.draws for _, stratum in parts)
    item_count = 1 / math.fsum(scale)
    answers = item_count * max(1.0, drawn / n)
    variance = math.fsum(
        factor * item_variance for factor, item_variance in zip(scale, variances, strict=True)
    )
    if n < 2 or value in (0.0, 1.0):
        return _EffectiveSizes(item_count, answers, item_count)
    if variance < 1e-15:
        return _EffectiveSizes(item_count, answers, answers)
    size = value * (1 - value) / (1 - _pooled_variance(parts)) / variance
    if math.isclose(size, item_count, rel_tol=1e-12):
        size = item_count  # as for yes-or-no items of one stratum, up to rounding
    if drawn and not all(stratum.moments.binary for _, stratum in parts):
        size = min(size, answers)
    return _EffectiveSizes(item_count, max(answers, size), size)


def _residuals(parts: Sequence[tuple[float, Stratum]]) -> dict[str, float]:
    """Return how much each cluster adds to the weighted mean beyond the average of its strata."""
    residuals: dict[str, float] = {}
    for weight, stratum in parts:
        moments = stratum.moments
        for name, cluster in (stratum.clusters or {}).items():
            residual = weight * (cluster.total - cluster.n * moments.mean) / moments.n
            residuals[name] = residuals.get(name, 0.0) + residual
    return residuals


def _cluster_sizes(parts: Sequence[tuple[float, Stratum]]) -> list[float]:
    """Return the share of the weighted mean that each cluster has."""
    shares: dict[str, float] = {}
    for weight, stratum in parts:
        for name, cluster in (stratum.clusters or {}).items():
            share = weight * cluster.n / stratum.moments.n
            shares[name] = shares.get(name, 0.0) + share
    return list(shares.values())


def _apply_clusters(
    unclustered: StratifiedMean,
    sizes: _EffectiveSizes,
    residuals: Mapping[str, float],
    unequal: Imbalance,
    z: float,
) -> StratifiedMean:
    """Return the mean with its clusters; `unclustered` is the same mean without them.

    A design effect below 1 is noise and does not add items. A design effect above 1 is estimated
    from few clusters, so Student's t replaces `z` in part. The part grows with the share of the
    variance that only the clusters show. The result is corrected for clusters of unequal size.
    """
    count, value = len(residuals), unclustered.value
    if count == 1:
        return unclustered._replace(se=None, interval=None, n_eff=1.0, clusters=1)
    squares = math.fsum(residual**2 for residual in residuals.values())
    se = math.sqrt(count / (count - 1) * squares)
    deff = (se / unclustered.se) ** 2 if unclustered.se else None
    t = student_t_quantile(0.975, count - 1)
    observed_effect = max(1.0, deff or 1.0)
    # The items of one cluster cannot correlate more than completely.
    largest_effect = max(observed_effect, sizes.answers / unequal.effective)
    effect = (
        min(observed_effect * unequal.factor, largest_effect)
        if observed_effect > 1
        else observed_effect
    )
    size = unclustered.n_eff / effect
    wider = student_t_quantile(0.975, unequal.df)
    reach = z + (max(z, wider) - z) * (1 - effect**-2)
    return unclustered._replace(
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
"""Reasons for a missing interval: all items share one context, or there are too few items."""
MOST_UNGRADED = 0.2
"""Largest share of replies without a grade for which a mean over the others is reported."""
ROUNDING = 1e-9
"""Largest rounding error of sums of shares."""


class Estimate(msgspec.Struct, frozen=True, omit_defaults=True):
    """A number, its 95 % interval and how both came about; one metric of ``results.json``.

    Values are shares in [0, 1], never rounded. None means "not defined", which is not 0;
    values that were not requested are left out of the encoding.
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
    """The number of strata without variance; the field has its name from version 0.1."""
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
    """Values that only this metric has; the encoding lists their keys next to the others."""
    bounds: Ends | None = None
    """The value if all replies without a grade were wrong, and if they were right; None where
    every reply has a grade."""
    unit: str = ""
    """``number`` where the value is not a share, such as a perplexity; usually empty."""

    def with_bounds(self, worst: float | None, best: float | None) -> Estimate:
        """Return this estimate with its bounds, and without a value if they are too far apart.

        The distance between the bounds is the share of replies without a grade. A mean over the
        other replies is a selection. If more than `MOST_UNGRADED` lack a grade, it does not measure
        the whole exam.
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


class ItemValues:
    """The values of items, stored as counts (and as sums by cluster) instead of one by one."""

    def __init__(self, *, clustered: bool) -> None:
        self.counts: Counter[float] = Counter()
        self.clusters: dict[str, Cluster] | None = {} if clustered else None
        self.draws = 0
        """Number of answers behind the values; 0 if the values are not shares of answers."""

    def add(self, value: float, group: str = "", *, count: int = 1, draws: int = 1) -> None:
        """Add `count` items of one value, each the mean of `draws` yes-or-no answers."""
        self.counts[value] += count
        self.draws += count * draws
        if self.clusters is not None:
            n, total = self.clusters.get(group, (0, 0.0))
            self.clusters[group] = Cluster(n + count, total + count * value)

    def moments(self) -> Moments | None:
        """Return mean and variance over items; None if there are none."""
        return Moments.of_counts(self.counts)

    def stratum(self, population: int = 0) -> Stratum | None:
        """Return the items as a stratum, drawn from `population` items; None if there are none."""
        moments = self.moments()
        if moments is None:
            return None
        return Stratum(moments, population, self.clusters, self.draws)

    def estimate(self, **fields: Any) -> Estimate:
        """Return the mean over items with the interval that fits how they were drawn.

        `fields` are further fields of the estimate, such as its title.
        """
        stratum = self.stratum()
        return (
            Estimate(None, None, 0, **fields) if stratum is None else estimate([stratum], **fields)
        )


def estimate(
    strata: Sequence[Stratum], weights: Sequence[float] = (1.0,), **fields: Any
) -> Estimate:
    """Return the weighted mean of strata as an estimate; `fields` are further fields of it."""
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


class BoundedValues:
    """The values of items, with bounds: the means if everything ungraded is wrong, and if it is
    right."""

    def __init__(self, *, clustered: bool) -> None:
        self.graded = ItemValues(clustered=clustered)
        self.worst, self.best = ItemValues(clustered=False), ItemValues(clustered=False)

    def add(
        self,
        value: float | None,
        bounds: tuple[float, float],
        group: str = "",
        *,
        count: int = 1,
        draws: int = 1,
    ) -> None:
        """Add `count` items; the value is None if too little of an item has a grade."""
        if value is not None:
            self.graded.add(value, group, count=count, draws=draws)
        for end, end_value in zip((self.worst, self.best), bounds, strict=True):
            end.add(end_value, count=count)

    def estimate(self, **fields: Any) -> Estimate:
        """Return the mean over items within its bounds; `fields` are further fields of the
        estimate."""
        worst, best = self.worst.moments(), self.best.moments()
        return self.graded.estimate(**fields).with_bounds(worst and worst.mean, best and best.mean)


class QuestionRepeats(NamedTuple):
    """One question: the scores of its graded repeats, and the number of repeats without a grade."""

    group: str
    values: Sequence[float]
    ungraded: int


def mean_of_items(
    questions: Iterable[QuestionRepeats], *, clustered: bool, draws: bool = False
) -> Estimate:
    """Return the mean over questions, each the mean of its repeats, with bounds for ungraded
    repeats.

    With `draws` the values are yes-or-no answers.
    """
    bounded = BoundedValues(clustered=clustered)
    for group, values, ungraded in questions:
        total, size = math.fsum(values), len(values) + ungraded
        if size:
            mean = total / len(values) if values else None
            bounds = (total / size, (total + ungraded) / size)
            bounded.add(mean, bounds, group, draws=len(values) if draws else 0)
    return bounded.estimate()
