"""Accuracy against difficulty, from the entries of an exam that was run at several difficulties.

Each difficulty has different questions, so nothing is paired. The tests treat scores as right or
wrong and questions as independent. If questions were repeated, the tests are conservative.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from keju.results.curve import Curve, CurvePoint, HalvingPoint
from keju.results.schema import ResultEntry
from keju.stats.curve import DifficultyScore, half_point, trend
from keju.stats.paired import benjamini_hochberg


def curves_of(entries: Iterable[ResultEntry]) -> list[Curve]:
    """Return a curve for each exam and reader that has entries at several difficulties."""
    entries_by_exam: dict[tuple[str, str, str], dict[float, ResultEntry]] = {}
    for entry in entries:
        if entry.difficulty is not None and entry.arm:
            exam_entries = entries_by_exam.setdefault(
                (entry.name, entry.protocol, entry.reader), {}
            )
            exam_entries[entry.difficulty] = entry
    return [
        _build_exam_curve([levels[difficulty] for difficulty in sorted(levels)])
        for levels in entries_by_exam.values()
        if len(levels) > 1 and len({entry.arm for entry in levels.values()}) == len(levels)
    ]


def _build_exam_curve(entries: Sequence[ResultEntry]) -> Curve:
    """Return the curve of an exam; `entries` are in ascending order of difficulty."""
    names = dict.fromkeys(row.name for entry in entries for row in entry.subsets)
    subsets = [_add_tests(_build_subset_curve(entries, name)) for name in names]
    adjusted = iter(benjamini_hochberg([curve.p for curve in subsets if curve.p is not None]))
    subsets = [
        curve if curve.p is None else replace(curve, p_adjusted=next(adjusted)) for curve in subsets
    ]
    points = [
        CurvePoint(
            difficulty=entry.difficulty or 0.0,
            arm=entry.arm,
            n=entry.metrics["accuracy"].n,
            accuracy=entry.metrics["accuracy"].value,
            ci95=entry.metrics["accuracy"].ci95,
            chance=_mean_chance(entry),
        )
        for entry in entries
    ]
    overall = _build_curve(entries[0], "", points)
    strata = [levels for curve in subsets if len(levels := _find_levels(curve.points)) > 1]
    return replace(_add_tests(overall, strata), subsets=tuple(subsets))


def _mean_chance(entry: ResultEntry) -> float | None:
    """Return the mean score of a blind guess over all questions; None if it is undefined."""
    if all(row.chance is None for row in entry.subsets):
        return None
    n = sum(row.n for row in entry.subsets)
    return math.fsum(row.n * (row.chance or 0.0) for row in entry.subsets) / n if n else None


def _build_subset_curve(entries: Sequence[ResultEntry], name: str) -> Curve:
    points = [
        CurvePoint(
            difficulty=entry.difficulty or 0.0,
            arm=entry.arm,
            n=row.n,
            accuracy=row.accuracy,
            ci95=row.ci95,
            chance=row.chance,
        )
        for entry in entries
        for row in entry.subsets
        if row.name == name
    ]
    return _build_curve(entries[0], name, points)


def _build_curve(entry: ResultEntry, subset: str, points: Sequence[CurvePoint]) -> Curve:
    return Curve(
        exam=entry.name,
        protocol=entry.protocol,
        reader=entry.reader,
        subset=subset,
        points=tuple(points),
        half=None,
        slope=None,
        p=None,
    )


def _find_levels(points: Iterable[CurvePoint]) -> list[DifficultyScore]:
    """Return the points that have a score, with the logarithm of their difficulty to base 2."""
    return [
        DifficultyScore(math.log2(point.difficulty), point.n, point.accuracy, point.chance or 0.0)
        for point in points
        if point.accuracy is not None and point.n
    ]


def _add_tests(curve: Curve, strata: Sequence[Sequence[DifficultyScore]] | None = None) -> Curve:
    """Return `curve` with its trend (within `strata`, if given) and its halfway point."""
    levels = _find_levels(curve.points)
    if len(levels) < 2:
        return curve
    trend_test, half = trend([levels] if strata is None else strata), half_point(levels)
    low, high = (None if end is None else 2**end for end in (half.low, half.high))
    return replace(
        curve,
        slope=None if trend_test is None else trend_test.slope,
        p=None if trend_test is None else trend_test.p,
        half=HalvingPoint(
            reached=half.reached,
            difficulty=None if half.place is None else 2**half.place,
            ci95=None if half.reached == "at_chance" else (low, high),
        ),
    )
