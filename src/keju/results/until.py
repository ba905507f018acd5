"""When enough has been asked: ``--until-ci`` and ``--until-decided``.

Both hold whenever they stop, however often they look (`keju.stats.sequential`): the interval of
the one holds the truth at all looks at once with 95 %, and the other calls two equal systems
different in at most 5 % of all runs. What may be looked at, and when, says `keju.engine.queue`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from keju.benchmarks import registry
from keju.benchmarks.base import Exam
from keju.benchmarks.samples import as_drawn
from keju.config import TaskConfig
from keju.engine.job import Job
from keju.engine.queue import Rule
from keju.engine.tally import Tally
from keju.errors import ConfigError, UsageError
from keju.results.metrics import cluster_of, join, metrics_of, read_items, read_subset
from keju.results.schema import ACCURACY, WHOLE_SET, Metric
from keju.results.sittings import sitting_of, sittings_of, unlikes
from keju.runs.manifest import Manifest, Stopping
from keju.stats.intervals import Interval, Moments
from keju.stats.paired import in_range
from keju.stats.sequential import (
    EARLIEST,
    LEVEL,
    LIKELY,
    always_valid_p,
    anytime_factor,
    anytime_stretch,
    e_value,
    graded_e_value,
    tightest_for,
)

if TYPE_CHECKING:
    from keju.judges.stage import JudgeStage

TIGHTEST = 1000
"""Pairs at which the interval of a difference is tightest."""


def make_rule(
    config: TaskConfig, jobs: Sequence[Job], manifest: Manifest, stage: JudgeStage | None
) -> Rule:
    """The rule that a task names; refuses what no rule can work with."""
    if stage is not None:
        raise ConfigError("until_with_judge")
    for job in jobs:
        if job.exam.arm:
            raise ConfigError("config_rule_with_arms")
        if not any(sample.target for sample in job.exam.samples):
            raise ConfigError("until_without_gold", name=job.exam.benchmark)
    if config.until_ci is not None:
        return UntilKnown(config.until_ci, config.seed)
    assert config.until_decided is not None
    rivals = {job: _rival(config.until_decided, job, config, manifest) for job in jobs}
    return UntilDecided(rivals, config.seed)


class UntilKnown:
    """Stops when the anytime interval of the headline is narrow enough on both sides."""

    def __init__(self, half_width: float, seed: int) -> None:
        self._half = half_width
        self._seed = seed

    def usable_samples(self, job: Job) -> Sequence[int]:
        """All samples."""
        return range(len(job.exam.samples))

    def evaluate(
        self, job: Job, seen_samples: Sequence[int], total_samples: int, looks: int
    ) -> Stopping:
        """Whether the headline of what was seen is known well enough."""
        exam = as_drawn(job.exam)
        name, metric = headline_of(exam, job.tallies[0].restrict_to(seen_samples))
        share = len(seen_samples) / sum(subset.population for subset in exam.subsets)
        interval = anytime_interval(metric, self._half, share)
        met = (
            interval is not None
            and metric.value is not None
            and len(seen_samples) >= min(EARLIEST, total_samples)
            and max(metric.value - interval.low, interval.high - metric.value) <= self._half
        )
        return Stopping(
            rule="until_ci",
            met=met,
            asked=len(seen_samples),
            whole=total_samples,
            looks=looks,
            seed=self._seed,
            level=LEVEL,
            value=metric.value,
            interval=interval,
            goal=self._half,
            metric=name,
        )


def headline_of(exam: Exam, tally: Tally) -> tuple[str, Metric]:
    """The name of the headline, and its estimate from what was drawn at random.

    Where it is the mean over all questions, it is what the whole set would give.
    """
    cells = {subset.name: read_subset(exam, tally, subset) for subset in exam.subsets}
    metrics = metrics_of(exam, tally, cells, join(cells.values(), clustered=exam.clustered), {})
    name = exam.protocol.headline
    return name, metrics.get(WHOLE_SET if name == ACCURACY else name, metrics[ACCURACY])


def anytime_interval(metric: Metric, half_width: float, share: float) -> Interval | None:
    """The interval of a metric stretched so that it holds at all looks at once.

    It is tightest where the half-width will be reached at the latest. `share` is that of the
    questions that were asked.
    """
    if metric.value is None or metric.ci95 is None:
        return None
    units = metric.clusters or metric.n
    seen = units / (1 - share) if metric.finite_population and share < 1 else units
    stretch = anytime_stretch(seen, tightest_for(half_width) * units / metric.n)
    low, high = (metric.value + stretch * (end - metric.value) for end in metric.ci95)
    return Interval(low, high).clipped()


class Rival(NamedTuple):
    """The baseline of one exam: its name, and its scores by sample."""

    name: str
    scores: Mapping[int, float]


def _rival(source: str, job: Job, config: TaskConfig, manifest: Manifest) -> Rival:
    """The scores of the baseline on the questions of a job; refuses one that is not comparable."""
    exam = job.exam
    asked = {registry.get(name).name: name for name in config.datasets}
    found = sittings_of(
        source,
        datasets=asked[exam.benchmark],
        reader=job.readers[0].name,
        protocol=exam.protocol.name,
        data_dir=config.data_dir,
        work_dir=config.work_dir,
    )
    if len(found) > 1:
        arms = [sitting.arm for sitting in found]
        raise UsageError("until_baseline_arms", baseline=source, arms=arms)
    (baseline,) = found
    first = next(iter(unlikes(sitting_of(job, manifest), baseline)), None)
    if first is not None and first.decisive:
        code, values = first.told("until_baseline_unlike", baseline=str(source))
        raise UsageError(code, **values)
    places = {sample.id: place for place, sample in enumerate(exam.samples)}
    scores = {
        places[item.id]: item.score
        for item in baseline
        if item.score is not None and item.id in places
    }
    if not scores:
        raise UsageError("until_baseline_empty", baseline=source, name=exam.benchmark)
    return Rival(baseline.name, scores)


class UntilDecided:
    """Stops when the evidence that the model differs from its baseline is strong enough."""

    def __init__(self, rivals: Mapping[Job, Rival], seed: int) -> None:
        self._rivals = rivals
        self._seed = seed
        self._evidence: dict[Job, list[float]] = {job: [] for job in rivals}

    def usable_samples(self, job: Job) -> Sequence[int]:
        """The samples that the baseline has a score for."""
        return sorted(self._rivals[job].scores)

    def evaluate(
        self, job: Job, seen_samples: Sequence[int], total_samples: int, looks: int
    ) -> Stopping:
        """Whether the pairs that were seen decide."""
        rival = self._rivals[job]
        apart = differences(job, seen_samples, rival.scores)
        evidence = self._evidence[job]
        evidence.append(evidence_of(bunched(apart, largest_cluster(job, self.usable_samples(job)))))
        value, interval = anytime_difference(apart)
        return Stopping(
            rule="until_decided",
            met=evidence[-1] >= 1 / LEVEL,
            asked=len(seen_samples),
            whole=total_samples,
            looks=looks,
            seed=self._seed,
            level=LEVEL,
            value=value,
            interval=interval,
            baseline=rival.name,
            wins=sum(own > 0 for _, own in apart),
            losses=sum(own < 0 for _, own in apart),
            left_out=len(seen_samples) - len(apart),
            e_value=evidence[-1],
            p=always_valid_p(evidence),
        )


def differences(
    job: Job, seen_samples: Sequence[int], baseline: Mapping[int, float]
) -> list[tuple[str, float]]:
    """Own score minus that of the baseline, with the cluster, of samples that have both."""
    cells = ((item, read_items(job.exam, job.tallies[0], [item])) for item in seen_samples)
    shares = ((item, next(iter(cell.states))[1].share) for item, cell in cells)
    return [
        (cluster_of(job.exam, item), own - baseline[item])
        for item, own in shares
        if own is not None
    ]


def largest_cluster(job: Job, items: Sequence[int]) -> int:
    """How many samples share a context at most."""
    if not job.exam.clustered:
        return 1
    return max(Counter(cluster_of(job.exam, item) for item in items).values())


def bunched(apart: Sequence[tuple[str, float]], largest: int) -> Counter[float]:
    """Differences by their count; those of one cluster together, as a part of the largest."""
    if largest == 1:
        return Counter(round(own, 9) for _, own in apart)
    sums: dict[str, float] = {}
    for cluster, own in apart:
        sums[cluster] = sums.get(cluster, 0.0) + own / largest
    return Counter(round(own, 9) for own in sums.values())


def evidence_of(differences: Counter[float]) -> float:
    """The e-value of differences by their count."""
    if differences.keys() <= {-1.0, 0.0, 1.0}:
        return e_value(differences[1.0], differences[-1.0], LIKELY)
    return graded_e_value(differences, LIKELY)


def anytime_difference(
    apart: Sequence[tuple[str, float]],
) -> tuple[float | None, Interval | None]:
    """The mean difference, and its interval for all looks at once from `EARLIEST` pairs on."""
    sums: dict[str, list[float]] = {}
    for place, (cluster, own) in enumerate(apart):
        sums.setdefault(cluster or str(place), []).append(own)
    moments = Moments.of(own for _, own in apart)
    if moments is None:
        return None, None
    n, size, value = len(apart), len(sums), moments.mean
    if n < EARLIEST or size < 2:
        return value, None
    squares = math.fsum((math.fsum(own) - len(own) * value) ** 2 for own in sums.values())
    half = anytime_factor(size, TIGHTEST) * math.sqrt(size / (size - 1) * squares) / n
    return value, in_range(Interval(value - half, value + half))
