"""Compare the scores of assertions: each is a separate score, on the questions that have it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from keju.benchmarks.base import asserted_values
from keju.benchmarks.expectations import PART_NAMES
from keju.results.metrics import cluster_of
from keju.results.pairs import PairedScores, QuestionPositions
from keju.results.schema import AssertionChange
from keju.results.scored_exam import ScoredExam
from keju.stats.intervals import mean
from keju.stats.paired import paired_difference


def assertion_changes(base: ScoredExam, arm: ScoredExam) -> Iterator[AssertionChange]:
    """Yield the comparison of each assertion on the questions that have its score in both.

    Two arms without tools call nothing, so there is nothing to compare.
    """
    base_parts, arm_parts = (exam.job.tallies[exam.place].parts for exam in (base, arm))
    names = [name for name in PART_NAMES if name in base_parts and name in arm_parts]
    if not names or not (base.job.acts or arm.job.acts):
        return
    places = QuestionPositions(arm)
    shared = [
        (number, place)
        for number, sample in enumerate(base.exam.samples)
        if (place := places.find(sample.id, number)) >= 0
    ]
    for name in names:
        scores, clusters = PairedScores(), []
        for number, place in shared:
            values = [_score(base, name, number), _score(arm, name, place)]
            if values[0] is not None and values[1] is not None:
                scores.append(values[1], values[0])
                clusters.append(cluster_of(base.exam, number))
        is_clustered = base.exam.clustered or arm.exam.clustered
        difference = paired_difference(scores, clusters if is_clustered else None)
        if difference is not None:
            interval = difference.interval
            yield AssertionChange(
                name=name,
                n=len(scores),
                base_rate=mean(scores.base),
                arm_rate=mean(scores.arm),
                difference=difference.value,
                ci95=(interval.low, interval.high) if interval else None,
                p=difference.p,
            )


def _score(scored_exam: ScoredExam, name: str, number: int) -> float | None:
    """Return the mean of an assertion over the repeats of a question; None if it has none."""
    tally = scored_exam.job.tallies[scored_exam.place]
    values, _ = asserted_values(tally, tally.parts[name], number)
    return math.fsum(values) / len(values) if values else None


def assertion_scores(scored_exam: ScoredExam) -> Iterator[AssertionChange]:
    """Yield the score of each assertion of one exam, with its interval and without a baseline."""
    if not scored_exam.job.acts:
        return
    tally = scored_exam.job.tallies[scored_exam.place]
    metrics = scored_exam.exam.metrics(tally)
    for name in in_order(tally.parts):
        metric = metrics[name]
        if metric.n:
            yield AssertionChange(
                name=name, n=metric.n, arm_rate=metric.value, score_ci95=metric.ci95
            )


def in_order(names: Iterable[str]) -> list[str]:
    """Return the names of assertions among some metrics, in their usual order."""
    present = set(names)
    return [name for name in PART_NAMES if name in present]
