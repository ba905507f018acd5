"""Which questions of an exam are asked: the user's limit, per subset, and how it is drawn."""

from __future__ import annotations

import copy
import heapq
import math
import random
from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Literal

from keju.benchmarks.base import Exam, Subset
from keju.benchmarks.samples import ChosenSamples
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
    chosen: array[int] = array("I")
    subsets: list[Subset] = []
    for subset in exam.subsets:
        rows: Sequence[int] = range(subset.start, subset.stop)
        draw = random.Random(f"{seed}:{exam.benchmark}:{subset.name}")
        if shuffle:
            draw.shuffle(shuffled := array("I", rows))
            rows = shuffled
        wanted = len(rows)
        if limit is not None:
            wanted = min(wanted, limit if isinstance(limit, int) else math.ceil(wanted * limit))
        start = len(chosen)
        chosen.extend(_draw(rows, wanted, how, exam.samples, draw))
        subsets.append(Subset(subset.name, start, len(chosen), subset.title, len(rows)))
    return _with_rows(exam, chosen, subsets)


def restrict(exam: Exam, rows: Sequence[int]) -> Exam:
    """Return `exam` with only these rows, which must ascend; subsets without any are left out."""
    if len(rows) == len(exam.samples):
        return exam
    subsets: list[Subset] = []
    start = 0
    for subset in exam.subsets:
        stop = bisect_left(rows, subset.stop)
        if stop > start:
            subsets.append(Subset(subset.name, start, stop, subset.title, len(subset)))
        start = stop
    return _with_rows(exam, rows, subsets)


def _with_rows(exam: Exam, rows: Sequence[int], subsets: Sequence[Subset]) -> Exam:
    chosen = copy.copy(exam)
    chosen.samples, chosen.subsets = ChosenSamples(exam.samples, rows), tuple(subsets)
    return chosen


def _draw(
    rows: Sequence[int], wanted: int, how: How, samples: Sequence[Sample], draw: random.Random
) -> Sequence[int]:
    if wanted >= len(rows) or how == "first":
        return rows[:wanted]
    drawn = draw.sample(rows, len(rows))
    if how == "random":
        return sorted(drawn[:wanted])
    first = heapq.nsmallest(wanted, _placed(drawn, samples), key=lambda place: place[0])
    return sorted(row for _, row in first)


def _placed(rows: Sequence[int], samples: Sequence[Sample]) -> Iterator[tuple[float, int]]:
    """Places that give an order in which every beginning holds each target in proportion.

    The k-th of n rows with the same target stands at (k + 1/2) / n of the way.
    """
    strata: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        strata[samples[row].target].append(row)
    for members in strata.values():
        for rank, row in enumerate(members):
            yield (rank + 0.5) / len(members), row
