"""Accuracy against difficulty, out of the entries of an exam that is sat at several.

Every difficulty has questions of its own, so nothing is paired. Scores count as right or wrong of
independent questions; where questions were repeated the tests are on the safe side.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from keju.results.curve import Curve, CurvePoint, Half
from keju.results.schema import Entry
from keju.stats.curve import Level, half_point, trend
from keju.stats.paired import benjamini_hochberg


def curves_of(entries: Iterable[Entry]) -> list[Curve]:
    """A curve for each exam and reader that has entries at several difficulties."""
    found: dict[tuple[str, str, str], dict[float, Entry]] = {}
    for entry in entries:
        if entry.difficulty is not None and entry.arm:
            own = found.setdefault((entry.name, entry.protocol, entry.reader), {})
            own[entry.difficulty] = entry
    return [
        _curve([levels[difficulty] for difficulty in sorted(levels)])
        for levels in found.values()
        if len(levels) > 1 and len({entry.arm for entry in levels.values()}) == len(levels)
    ]


def _curve(entries: Sequence[Entry]) -> Curve:
    """The curve of an exam; `entries` ascend in difficulty."""
    names = dict.fromkeys(row.name for entry in entries for row in entry.subsets)
    subsets = [_with_tests(_of_subset(entries, name)) for name in names]
    adjusted = iter(benjamini_hochberg([own.p for own in subsets if own.p is not None]))
    subsets = [own if own.p is None else replace(own, p_adjusted=next(adjusted)) for own in subsets]
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
    whole = _made(entries[0], "", points)
    strata = [levels for own in subsets if len(levels := _levels(own.points)) > 1]
    return replace(_with_tests(whole, strata), subsets=tuple(subsets))


def _mean_chance(entry: Entry) -> float | None:
    """What a blind guess scores over all questions; nothing where guessing is not defined."""
    if all(row.chance is None for row in entry.subsets):
        return None
    n = sum(row.n for row in entry.subsets)
    return math.fsum(row.n * (row.chance or 0.0) for row in entry.subsets) / n if n else None


def _of_subset(entries: Sequence[Entry], name: str) -> Curve:
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
    return _made(entries[0], name, points)


def _made(entry: Entry, subset: str, points: Sequence[CurvePoint]) -> Curve:
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


def _levels(points: Iterable[CurvePoint]) -> list[Level]:
    """The points that have a score, on a scale of doublings."""
    return [
        Level(math.log2(point.difficulty), point.n, point.accuracy, point.chance or 0.0)
        for point in points
        if point.accuracy is not None and point.n
    ]


def _with_tests(curve: Curve, strata: Sequence[Sequence[Level]] | None = None) -> Curve:
    """`curve` with its trend, within `strata` where it has some, and its halfway point."""
    levels = _levels(curve.points)
    if len(levels) < 2:
        return curve
    found, half = trend([levels] if strata is None else strata), half_point(levels)
    low, high = (None if end is None else 2**end for end in (half.low, half.high))
    return replace(
        curve,
        slope=None if found is None else found.slope,
        p=None if found is None else found.p,
        half=Half(
            reached=half.reached,
            difficulty=None if half.place is None else 2**half.place,
            ci95=None if half.reached == "at_chance" else (low, high),
        ),
    )
