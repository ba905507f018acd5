"""Which questions of an exam are asked: the user's limit, per subset, and how it is drawn."""

from __future__ import annotations

import copy
import math
import random
from collections import defaultdict
from collections.abc import Sequence
from typing import Literal

from keju.benchmarks.base import Exam, Subset
from keju.types import Sample

How = Literal["first", "random", "stratified"]


def select(
    exam: Exam, limit: int | float | None, *, how: How = "first", shuffle: bool = False, seed: int
) -> Exam:
    """Return `exam` with at most `limit` questions of each subset (or that share of each).

    `first` keeps the order of the data, `random` draws with the seed, `stratified` draws so that
    the target answers keep their proportions. A larger limit keeps all that a smaller one drew.
    `shuffle` permutes each subset first.
    """
    if limit is None and not shuffle:
        return exam
    samples: list[Sample] = []
    subsets: list[Subset] = []
    for subset in exam.subsets:
        rows = list(range(subset.start, subset.stop))
        draw = random.Random(f"{seed}:{exam.benchmark}:{subset.name}")
        if shuffle:
            draw.shuffle(rows)
        kept = _draw(rows, _wanted(len(rows), limit), how, exam.samples, draw)
        start = len(samples)
        samples.extend(exam.samples[row] for row in kept)
        subsets.append(Subset(subset.name, start, len(samples), subset.title, len(rows)))
    chosen = copy.copy(exam)
    chosen.samples, chosen.subsets = tuple(samples), tuple(subsets)
    return chosen


def restrict(exam: Exam, rows: Sequence[int]) -> Exam:
    """Return `exam` with only these rows, which must ascend; subsets without any are left out."""
    if len(rows) == len(exam.samples):
        return exam
    samples: list[Sample] = []
    subsets: list[Subset] = []
    remaining = iter(rows)
    row = next(remaining, None)
    for subset in exam.subsets:
        start = len(samples)
        while row is not None and row < subset.stop:
            samples.append(exam.samples[row])
            row = next(remaining, None)
        if len(samples) > start:
            subsets.append(Subset(subset.name, start, len(samples), subset.title, len(subset)))
    chosen = copy.copy(exam)
    chosen.samples, chosen.subsets = tuple(samples), tuple(subsets)
    return chosen


def _wanted(rows: int, limit: int | float | None) -> int:
    if limit is None:
        return rows
    return min(rows, limit if isinstance(limit, int) else math.ceil(rows * limit))


def _draw(
    rows: list[int], wanted: int, how: How, samples: Sequence[Sample], draw: random.Random
) -> list[int]:
    if wanted >= len(rows) or how == "first":
        return rows[:wanted]
    drawn = draw.sample(rows, len(rows))
    if how == "stratified":
        drawn = _interleaved(drawn, samples)
    return sorted(drawn[:wanted])


def _interleaved(rows: list[int], samples: Sequence[Sample]) -> list[int]:
    """An order in which every beginning holds each target answer in proportion.

    The k-th of n rows with the same target stands at (k + 1/2) / n of the way.
    """
    strata: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        strata[samples[row].target].append(row)
    placed = [
        ((rank + 0.5) / len(members), row)
        for members in strata.values()
        for rank, row in enumerate(members)
    ]
    placed.sort(key=lambda place: place[0])
    return [row for _, row in placed]
