"""The several numbers of a grader as metrics with intervals."""

from __future__ import annotations

import math

from keju.benchmarks.base import Exam, Scores
from keju.stats.estimate import Estimate, Gathered
from keju.types import OUTCOMES

_GRADED = frozenset(
    code for code, outcome in enumerate(OUTCOMES) if outcome not in ("error", "ungraded")
)


def part_metrics(exam: Exam, scores: Scores) -> dict[str, Estimate]:
    """The mean of each number over the questions, each of them the mean of its repeats."""
    metrics = {}
    for name, values in scores.parts.items():
        gathered = Gathered(clustered=exam.clustered)
        for item, sample in enumerate(exam.samples):
            units = range(item * scores.epochs, (item + 1) * scores.epochs)
            graded = [values[unit] for unit in units if scores.outcomes[unit] in _GRADED]
            if graded:
                mean = math.fsum(graded) / len(graded)
                gathered.add(mean, sample.group or sample.id, draws=0)
        metrics[name] = gathered.estimate(title=f"mean of {name}")
    return metrics
