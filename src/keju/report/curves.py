"""Accuracy against difficulty in words, once for the terminal and the page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from keju.messages import format_p
from keju.report.arms import Table
from keju.report.format import UNKNOWN, Labels, count, interval, percent
from keju.results.curve import Curve, CurvePoint
from keju.results.schema import Results

STRIP = 41
"""Characters of the scale from 0 to 100 % on which a terminal shows a point."""
FINE, PLAIN = ("├", "─", "┤", "●", "┊", "·"), ("|", "-", "|", "o", ":", ".")
"""End, line and end of an interval, the point, chance, and the rest of the scale; and in letters
that any terminal has."""
MARGIN = 0.07
"""Share of a chart's width on each side of its points."""
TOPS = (20, 40, 100)
"""Per cent at the top of a chart, the least that has room: a quarter of each is a round number."""


def level_table(curve: Curve, labels: Labels) -> Table:
    """A row for each difficulty of the whole exam."""
    names = ("difficulty", "accuracy", "interval", "chance", "n")
    rows = [
        [
            f"{point.difficulty:g}",
            percent(point.accuracy),
            interval(point.ci95),
            percent(point.chance),
            count(point.n),
        ]
        for point in curve.points
    ]
    return Table([labels(f"curve.{name}") for name in names], rows)


def strip(point: CurvePoint, *, plain: bool = False) -> str:
    """A point with its interval and chance on a line of characters."""
    left, line, right, dot, chance, rest = PLAIN if plain else FINE
    cells = [rest] * STRIP

    def place(share: float) -> int:
        return min(STRIP - 1, max(0, round(share * (STRIP - 1))))

    if point.ci95 is not None:
        low, high = map(place, point.ci95)
        cells[low : high + 1] = [left, *(line * (high - low - 1)), right] if high > low else [left]
    if point.chance is not None:
        cells[place(point.chance)] = chance
    if point.accuracy is not None:
        cells[place(point.accuracy)] = dot
    return "".join(cells)


def subset_table(curve: Curve, labels: Labels) -> Table:
    """A row for each subset: its accuracy at every difficulty, its trend, its halfway point."""
    levels = [point.difficulty for point in curve.points]
    titles = [labels("curve.subset"), *(f"{level:g}" for level in levels)]
    titles += [labels(f"curve.{name}") for name in ("chance", "slope", "p_adjusted", "half")]
    rows = []
    for own in curve.subsets if len(curve.subsets) > 1 else ():
        rates = {point.difficulty: percent(point.accuracy, 1) for point in own.points}
        chances = {percent(point.chance, 1) for point in own.points}
        rows.append(
            [
                own.subset,
                *(rates.get(level, UNKNOWN) for level in levels),
                chances.pop() if len(chances) == 1 else UNKNOWN,
                UNKNOWN if own.slope is None else f"{100 * own.slope:+.1f}",
                UNKNOWN if own.p_adjusted is None else format_p(own.p_adjusted, 2),
                halfway(own, labels),
            ]
        )
    return Table(titles, rows)


def halfway(curve: Curve, labels: Labels) -> str:
    """``1.7``, ``> 4`` or ``at chance``: where half of the way to chance is gone."""
    half = curve.half
    if half is None:
        return UNKNOWN
    if half.reached == "beyond":
        return labels("curve.beyond", most=curve.points[-1].difficulty)
    return f"{half.difficulty:.2g}" if half.difficulty else labels("curve.at_chance")


def curve_lines(curve: Curve, labels: Labels) -> Iterator[str]:
    """What a curve shows, in sentences."""
    for notice in curve.conclusions:
        yield notice.text(labels.language)
    falling = [own.subset for own in curve.subsets if own.verdict == "falls"]
    if len(curve.subsets) > 1:
        part, whole = len(falling), len(curve.subsets)
        key = "falling" if part < whole else "all_falling"
        values = {"part": part, "whole": whole, "listed": labels("list_separator").join(falling)}
        yield labels(f"curve.{key if falling else 'none_falling'}", **values)


class Spot(NamedTuple):
    """A point of a chart, in shares of its width and of its height from the top."""

    x: float
    y: float
    ends: tuple[float, float] | None
    chance: float | None


class Drawing(NamedTuple):
    """A curve as its marks take it; see ``templates/marks.svg.j2``."""

    spots: list[Spot]
    half: float | None
    band: tuple[float, float] | None
    ticks: list[tuple[float, str]]
    """Difficulties and their places."""
    top: int
    """Per cent at the top; the bottom is 0."""


class Scale(NamedTuple):
    """Difficulties on a scale of doublings, with a margin on both sides; shares from 0 to a top."""

    least: float
    most: float
    top: int

    @classmethod
    def of(cls, curves: Iterable[Curve]) -> Scale:
        """One scale on which these curves, and those of their subsets, can be compared."""
        points = [p for curve in curves for own in (curve, *curve.subsets) for p in own.points]
        levels = [point.difficulty for point in points]
        shares = [value for p in points for value in (p.accuracy, p.chance, *(p.ci95 or ()))]
        highest = max((100 * value for value in shares if value is not None), default=100.0)
        top = next((top for top in TOPS if highest <= top), TOPS[-1])
        return cls(min(levels), max(levels), top)

    def height(self, share: float) -> float:
        """How far below the top a share stands, as a share of the height."""
        return 1 - 100 * share / self.top

    def place(self, difficulty: float) -> float:
        """Where a difficulty stands, as a share of the width."""
        if self.most <= self.least:
            return 0.5
        share = math.log(difficulty / self.least) / math.log(self.most / self.least)
        return MARGIN + (1 - 2 * MARGIN) * share


def drawing(curve: Curve, scale: Scale) -> Drawing:
    """A curve as its marks take it."""
    place, height, most = scale.place, scale.height, scale.most
    spots = [
        Spot(
            place(point.difficulty),
            height(point.accuracy),
            (height(point.ci95[1]), height(point.ci95[0])) if point.ci95 else None,
            None if point.chance is None else height(point.chance),
        )
        for point in curve.points
        if point.accuracy is not None
    ]
    half, band = curve.half, None
    if half is not None and half.ci95 is not None and half.ci95 != (None, None):
        low, high = half.ci95
        band = (place(most if low is None else low), 1.0 if high is None else place(high))
    at = place(half.difficulty) if half is not None and half.difficulty is not None else None
    ticks = [(place(point.difficulty), f"{point.difficulty:g}") for point in curve.points]
    return Drawing(spots, at, band, ticks, scale.top)


def curve_label(curve: Curve, labels: Labels) -> str:
    """A curve in words, for those who do not see it."""
    points = labels("clause_separator").join(
        labels("curve.at", accuracy=percent(point.accuracy, 1), difficulty=point.difficulty)
        for point in curve.points
    )
    return labels("curve.label", name=curve.subset or curve.exam, points=points)


class Chart(NamedTuple):
    """One chart of the page: its name, the same in words, and its marks."""

    title: str
    label: str
    drawing: Drawing


class Section(NamedTuple):
    """What the page shows of a curve."""

    title: str
    lines: list[str]
    whole: Chart
    levels: Table
    subsets: list[Chart]
    table: Table


def sections(results: Results, labels: Labels) -> list[Section]:
    """The curves of a run, made ready for the page."""
    found = []
    for curve in results.curves:
        title = labels("curve.of_exam", exam=curve.exam, reader=curve.reader)
        scale = Scale.of([curve])
        charts = [
            Chart(own.subset, curve_label(own, labels), drawing(own, scale))
            for own in curve.subsets
            if len(curve.subsets) > 1 and own.points
        ]
        whole = Chart(title, curve_label(curve, labels), drawing(curve, scale))
        levels, table = level_table(curve, labels), subset_table(curve, labels)
        found.append(Section(title, [*curve_lines(curve, labels)], whole, levels, charts, table))
    return found
