"""Describe accuracy against difficulty for the terminal and the page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from keju.messages import format_p
from keju.reporting.arms import TitledTable
from keju.reporting.format import UNKNOWN, Labels, count, interval, one_decimal, percent
from keju.results.curve import Curve, CurvePoint
from keju.results.schema import Results

STRIP_WIDTH = 41
"""The number of characters of the scale from 0 to 100 % in a terminal."""
UNICODE_MARKS, ASCII_MARKS = ("├", "─", "┤", "●", "┊", "·"), ("|", "-", "|", "o", ":", ".")
"""Low end, line and high end of an interval, point, chance, background; then in ASCII."""
MARGIN = 0.07
"""The share of a chart's width on each side of its points."""
TOP_PERCENTS = (20, 40, 100)
"""Percent at the top of a chart; the smallest one that fits is used, and its quarters are round."""


def level_table(curve: Curve, labels: Labels) -> TitledTable:
    """Return a row for each difficulty of the whole exam."""
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
    return TitledTable([labels(f"curve.{name}") for name in names], rows)


def draw_strip(point: CurvePoint, *, is_ascii: bool = False) -> str:
    """Draw a point with its interval and chance on a line of characters."""
    low_end, line, high_end, dot, chance, background = ASCII_MARKS if is_ascii else UNICODE_MARKS
    cells = [background] * STRIP_WIDTH

    def place(share: float) -> int:
        return min(STRIP_WIDTH - 1, max(0, round(share * (STRIP_WIDTH - 1))))

    if point.ci95 is not None:
        low, high = map(place, point.ci95)
        cells[low : high + 1] = (
            [low_end, *(line * (high - low - 1)), high_end] if high > low else [low_end]
        )
    if point.chance is not None:
        cells[place(point.chance)] = chance
    if point.accuracy is not None:
        cells[place(point.accuracy)] = dot
    return "".join(cells)


def subset_table(curve: Curve, labels: Labels) -> TitledTable:
    """Return a row for each subset: its accuracy at each difficulty, trend, halfway point."""
    levels = [point.difficulty for point in curve.points]
    titles = [labels("curve.subset"), *(f"{level:g}" for level in levels)]
    titles += [labels(f"curve.{name}") for name in ("chance", "slope", "p_adjusted", "half")]
    rows = []
    for subset in curve.subsets if len(curve.subsets) > 1 else ():
        rates = {point.difficulty: percent(point.accuracy, 1) for point in subset.points}
        chances = {percent(point.chance, 1) for point in subset.points}
        rows.append(
            [
                subset.subset,
                *(rates.get(level, UNKNOWN) for level in levels),
                chances.pop() if len(chances) == 1 else UNKNOWN,
                UNKNOWN if subset.slope is None else f"{100 * subset.slope:+.1f}",
                UNKNOWN if subset.p_adjusted is None else format_p(subset.p_adjusted, 2),
                halfway(subset, labels),
            ]
        )
    return TitledTable(titles, rows)


def halfway(curve: Curve, labels: Labels) -> str:
    """Return the difficulty at which half of the lead over chance is lost: ``1.7``, ``> 4``."""
    half = curve.half
    if half is None:
        return UNKNOWN
    if half.reached == "beyond":
        return labels("curve.beyond", most=curve.points[-1].difficulty)
    return f"{half.difficulty:.2g}" if half.difficulty else labels("curve.at_chance")


def curve_lines(curve: Curve, labels: Labels) -> Iterator[str]:
    """Yield the conclusions of a curve as sentences."""
    for notice in curve.conclusions:
        yield notice.text(labels.language)
    falling = [subset.subset for subset in curve.subsets if subset.verdict == "falls"]
    if len(curve.subsets) > 1:
        part, total = len(falling), len(curve.subsets)
        key = "falling" if part < total else "all_falling"
        values = {"part": part, "whole": total, "listed": labels("list_separator").join(falling)}
        yield labels(f"curve.{key if falling else 'none_falling'}", **values)


class ChartPoint(NamedTuple):
    """A point of a chart; x is a share of the width, y a share of the height from the top."""

    x: float
    y: float
    ends: tuple[float, float] | None
    chance: float | None


class CurveDrawing(NamedTuple):
    """The marks of a curve; see ``templates/marks.svg.j2``."""

    spots: list[ChartPoint]
    half: float | None
    band: tuple[float, float] | None
    ticks: list[tuple[float, str]]
    """Difficulties and their places."""
    top: int
    """Percent at the top; the bottom is 0."""


class DifficultyScale(NamedTuple):
    """A logarithmic scale of difficulties with a margin on both sides; shares from 0 to a top."""

    lowest: float
    highest: float
    top: int

    @classmethod
    def of(cls, curves: Iterable[Curve]) -> DifficultyScale:
        """Return one scale for these curves and the curves of their subsets."""
        points = [p for curve in curves for part in (curve, *curve.subsets) for p in part.points]
        levels = [point.difficulty for point in points]
        shares = [value for p in points for value in (p.accuracy, p.chance, *(p.ci95 or ()))]
        highest = max((100 * value for value in shares if value is not None), default=100.0)
        top = next((top for top in TOP_PERCENTS if highest <= top), TOP_PERCENTS[-1])
        return cls(min(levels), max(levels), top)

    def height(self, share: float) -> float:
        """Return the distance of a share from the top, as a share of the height."""
        return 1 - 100 * share / self.top

    def place(self, difficulty: float) -> float:
        """Return the place of a difficulty, as a share of the width."""
        if self.highest <= self.lowest:
            return 0.5
        share = math.log(difficulty / self.lowest) / math.log(self.highest / self.lowest)
        return MARGIN + (1 - 2 * MARGIN) * share


def draw_curve(curve: Curve, scale: DifficultyScale) -> CurveDrawing:
    """Return the marks of a curve."""
    place, height, highest = scale.place, scale.height, scale.highest
    spots = [
        ChartPoint(
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
        band = (place(highest if low is None else low), 1.0 if high is None else place(high))
    at = place(half.difficulty) if half is not None and half.difficulty is not None else None
    ticks = [(place(point.difficulty), f"{point.difficulty:g}") for point in curve.points]
    return CurveDrawing(spots, at, band, ticks, scale.top)


def curve_label(curve: Curve, labels: Labels) -> str:
    """Describe a curve in words, for screen readers."""
    points = labels("clause_separator").join(
        labels("curve.at", accuracy=percent(point.accuracy, 1), difficulty=point.difficulty)
        for point in curve.points
    )
    return labels("curve.label", name=curve.subset or curve.exam, points=points)


class PageChart(NamedTuple):
    """One chart of the page: its name, its description, and its marks."""

    title: str
    label: str
    drawing: CurveDrawing


class CurveSection(NamedTuple):
    """The context of a curve on the page."""

    title: str
    lines: list[str]
    exam_chart: PageChart
    levels: TitledTable
    subsets: list[PageChart]
    table: TitledTable


def sections(results: Results, labels: Labels) -> list[CurveSection]:
    """Return the curves of a run for the page."""
    page_sections = []
    for curve in results.curves:
        title = labels("curve.of_exam", exam=curve.exam, reader=curve.reader)
        scale = DifficultyScale.of([curve])
        charts = [
            PageChart(subset.subset, curve_label(subset, labels), draw_curve(subset, scale))
            for subset in curve.subsets
            if len(curve.subsets) > 1 and subset.points
        ]
        exam_chart = PageChart(title, curve_label(curve, labels), draw_curve(curve, scale))
        with one_decimal():
            levels = level_table(curve, labels)
        table = subset_table(curve, labels)
        page_sections.append(
            CurveSection(title, [*curve_lines(curve, labels)], exam_chart, levels, charts, table)
        )
    return page_sections
