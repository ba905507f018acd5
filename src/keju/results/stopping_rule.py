"""Stopping rules: ``--until-ci`` and ``--until-decided``.

Both rules are valid at every time they stop, however often they look (`keju.stats.sequential`). The
interval of ``--until-ci`` contains the true value at all looks at once with 95 % probability.
``--until-decided`` calls two equal systems different in at most 5 % of all runs.
The engine decides when a rule may look, and at which questions.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from keju.benchmarks import registry
from keju.benchmarks.base import Exam
from keju.benchmarks.samples import mark_as_drawn
from keju.config import TaskConfig
from keju.errors import ConfigError, UsageError
from keju.results.metrics import cluster_of, join, metrics_of, read_items, read_subset
from keju.results.schema import ACCURACY, WHOLE_SET, Metric
from keju.results.scored_exam import mismatches, scored_exam_of, scored_exams_of
from keju.runs.manifest import Manifest, StoredStop
from keju.scores.exam_scores import ExamScores
from keju.scores.stopping import StoppingRule
from keju.scores.tally import Tally
from keju.stats.intervals import Interval, Moments
from keju.stats.paired import clip_difference
from keju.stats.sequential import (
    EARLIEST,
    LEVEL,
    LIKELY,
    always_valid_p,
    anytime_factor,
    anytime_stretch,
    e_value,
    graded_e_value,
    tightest_item_count,
)

if TYPE_CHECKING:
    from keju.judges import GradingStage

TIGHTEST = 1000
"""The number of pairs at which the interval of a difference is tightest."""


def make_rule(
    config: TaskConfig, jobs: Sequence[ExamScores], manifest: Manifest, stage: GradingStage | None
) -> PrecisionRule | DecisionRule:
    """Return the rule that the configuration names; raise an error if the jobs do not allow it."""
    if stage is not None:
        raise ConfigError("until_with_judge")
    for job in jobs:
        if job.exam.arm:
            raise ConfigError("config_rule_with_arms")
        if not any(sample.target for sample in job.exam.samples):
            raise ConfigError("until_without_gold", name=job.exam.benchmark)
    if config.until_ci is not None:
        return PrecisionRule(config.until_ci, config.seed)
    assert config.until_decided is not None
    baselines = {job: _load_rival(config.until_decided, job, config, manifest) for job in jobs}
    return DecisionRule(baselines, config.seed)


class PrecisionRule(StoppingRule):
    """Stops when the anytime interval of the headline is narrow enough on both sides."""

    def __init__(self, half_width: float, seed: int) -> None:
        self._half = half_width
        self._seed = seed

    def usable_samples(self, job: ExamScores) -> Sequence[int]:
        """Return all samples."""
        return range(len(job.exam.samples))

    def evaluate(
        self, job: ExamScores, seen_samples: Sequence[int], total_samples: int, looks: int
    ) -> StoredStop:
        """Return the state of the rule, which is met if the headline is known precisely enough."""
        exam = mark_as_drawn(job.exam)
        name, metric = headline_of(exam, job.tallies[0].restrict_to(seen_samples))
        share = len(seen_samples) / sum(subset.population for subset in exam.subsets)
        interval = anytime_interval(metric, self._half, share)
        is_met = (
            interval is not None
            and metric.value is not None
            and len(seen_samples) >= min(EARLIEST, total_samples)
            and max(metric.value - interval.low, interval.high - metric.value) <= self._half
        )
        return StoredStop(
            rule="until_ci",
            met=is_met,
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
    """Return the name of the headline, and its estimate from the questions drawn at random.

    If the headline is the mean over all questions, the estimate is for the whole set.
    """
    cells = {subset.name: read_subset(exam, tally, subset) for subset in exam.subsets}
    metrics = metrics_of(exam, tally, cells, join(cells.values(), clustered=exam.clustered), {})
    name = exam.protocol.headline
    return name, metrics.get(WHOLE_SET if name == ACCURACY else name, metrics[ACCURACY])


def anytime_interval(metric: Metric, half_width: float, share: float) -> Interval | None:
    """Return the interval of a metric, widened so that it holds at all looks at once.

    It is tightest at the latest look at which the half-width is reached. `share` is the share of
    the questions that were asked.
    """
    if metric.value is None or metric.ci95 is None:
        return None
    units = metric.clusters or metric.n
    effective_units = units / (1 - share) if metric.finite_population and share < 1 else units
    stretch = anytime_stretch(effective_units, tightest_item_count(half_width) * units / metric.n)
    low, high = (metric.value + stretch * (end - metric.value) for end in metric.ci95)
    return Interval(low, high).clip()


class BaselineScores(NamedTuple):
    """The baseline of one exam: its name, and its scores by sample."""

    name: str
    scores: Mapping[int, float]


def _load_rival(
    source: str, job: ExamScores, config: TaskConfig, manifest: Manifest
) -> BaselineScores:
    """Return the baseline's scores on the questions of a job.

    Raise UsageError if the baseline is not comparable.
    """
    exam = job.exam
    dataset_names = {registry.get(name).name: name for name in config.datasets}
    baselines = scored_exams_of(
        source,
        datasets=dataset_names[exam.benchmark],
        reader=job.readers[0].name,
        protocol=exam.protocol.name,
        data_dir=config.data_dir,
        work_dir=config.work_dir,
    )
    if len(baselines) > 1:
        arms = [scored_exam.arm for scored_exam in baselines]
        raise UsageError("until_baseline_arms", baseline=source, arms=arms)
    (baseline,) = baselines
    worst_mismatch = next(iter(mismatches(scored_exam_of(job, manifest), baseline)), None)
    if worst_mismatch is not None and worst_mismatch.decisive:
        code, values = worst_mismatch.told("until_baseline_unlike", baseline=str(source))
        raise UsageError(code, **values)
    places = {sample.id: place for place, sample in enumerate(exam.samples)}
    scores = {
        places[question.id]: question.score
        for question in baseline
        if question.score is not None and question.id in places
    }
    if not scores:
        raise UsageError("until_baseline_empty", baseline=source, name=exam.benchmark)
    return BaselineScores(baseline.name, scores)


class DecisionRule(StoppingRule):
    """Stops when the evidence that the model differs from its baseline is strong enough."""

    def __init__(self, baselines: Mapping[ExamScores, BaselineScores], seed: int) -> None:
        self._baselines = baselines
        self._seed = seed
        self._evidence: dict[ExamScores, list[float]] = {job: [] for job in baselines}

    def usable_samples(self, job: ExamScores) -> Sequence[int]:
        """Return the samples that the baseline has a score for."""
        return sorted(self._baselines[job].scores)

    def evaluate(
        self, job: ExamScores, seen_samples: Sequence[int], total_samples: int, looks: int
    ) -> StoredStop:
        """Return the state of the rule, which is met if the recorded pairs decide."""
        baseline = self._baselines[job]
        score_differences = differences(job, seen_samples, baseline.scores)
        evidence = self._evidence[job]
        evidence.append(
            evidence_of(
                sum_by_cluster(score_differences, largest_cluster(job, self.usable_samples(job)))
            )
        )
        value, interval = anytime_difference(score_differences)
        return StoredStop(
            rule="until_decided",
            met=evidence[-1] >= 1 / LEVEL,
            asked=len(seen_samples),
            whole=total_samples,
            looks=looks,
            seed=self._seed,
            level=LEVEL,
            value=value,
            interval=interval,
            baseline=baseline.name,
            wins=sum(difference > 0 for _, difference in score_differences),
            losses=sum(difference < 0 for _, difference in score_differences),
            left_out=len(seen_samples) - len(score_differences),
            e_value=evidence[-1],
            p=always_valid_p(evidence),
        )


def differences(
    job: ExamScores, positions: Sequence[int], baseline: Mapping[int, float]
) -> list[tuple[str, float]]:
    """Return the score minus the baseline's, with its cluster, for samples that have both."""
    cells = ((position, read_items(job.exam, job.tallies[0], [position])) for position in positions)
    shares = ((position, next(iter(cell.states))[1].share) for position, cell in cells)
    return [
        (cluster_of(job.exam, position), score - baseline[position])
        for position, score in shares
        if score is not None
    ]


def largest_cluster(job: ExamScores, positions: Sequence[int]) -> int:
    """Return the largest number of samples that share a context."""
    if not job.exam.clustered:
        return 1
    return max(Counter(cluster_of(job.exam, position) for position in positions).values())


def sum_by_cluster(score_differences: Sequence[tuple[str, float]], largest: int) -> Counter[float]:
    """Return the differences and their counts; the ones of a cluster are summed and scaled.

    The sum of a cluster is divided by the size of the largest one.
    """
    if largest == 1:
        return Counter(round(difference, 9) for _, difference in score_differences)
    sums: dict[str, float] = {}
    for cluster, difference in score_differences:
        sums[cluster] = sums.get(cluster, 0.0) + difference / largest
    return Counter(round(cluster_sum, 9) for cluster_sum in sums.values())


def evidence_of(difference_counts: Counter[float]) -> float:
    """Return the e-value of differences and their counts."""
    if difference_counts.keys() <= {-1.0, 0.0, 1.0}:
        return e_value(difference_counts[1.0], difference_counts[-1.0], LIKELY)
    return graded_e_value(difference_counts, LIKELY)


def anytime_difference(
    score_differences: Sequence[tuple[str, float]],
) -> tuple[float | None, Interval | None]:
    """Return the mean difference and its interval at all looks from `EARLIEST` pairs on."""
    sums: dict[str, list[float]] = {}
    for place, (cluster, difference) in enumerate(score_differences):
        sums.setdefault(cluster or str(place), []).append(difference)
    moments = Moments.of(difference for _, difference in score_differences)
    if moments is None:
        return None, None
    n, size, value = len(score_differences), len(sums), moments.mean
    if n < EARLIEST or size < 2:
        return value, None
    squares = math.fsum(
        (math.fsum(cluster_differences) - len(cluster_differences) * value) ** 2
        for cluster_differences in sums.values()
    )
    half = anytime_factor(size, TIGHTEST) * math.sqrt(size / (size - 1) * squares) / n
    return value, clip_difference(Interval(value - half, value + half))
