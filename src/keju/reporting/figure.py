"""Draw a figure as an SVG file: its page, its style and its layout.

Marks and colours are the same as in the report's tables (``templates/marks.svg.j2``). A
figure copies both from the report's style sheet as plain values, because few programs except
browsers support CSS variables. A figure has a background colour for light and dark mode, and its
texts remain texts. It loads nothing from outside.
"""

from __future__ import annotations

import re
import unicodedata
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from keju.errors import MissingExtra, TranslatableText, UsageError
from keju.files import whole_file
from keju.reporting import format as fmt
from keju.reporting.format import Labels
from keju.reporting.pages import HTML_LANG, make_environment

FORMATS = (".svg", ".png", ".pdf")

SERIES = 4
"""The number of runs that have distinct colours."""
WIDTH, MARGIN, COLUMN_GAP = 800, 20, 14
ROW_HEIGHT, HISTOGRAM_HEIGHT = 20, 110
"""The heights of a row and of a histogram."""
MIN_PLOT_WIDTH = 240
AXIS_WIDTH = 42
"""The width of the numbers at a vertical axis."""
MAX_LABEL_LENGTH = 44
RESOLUTION = 2.0
"""Pixels of a PNG per unit of the drawing."""

_STYLE_HERE = "STYLE-OF-THE-FIGURE"
_TEXT_STYLE = """
text { font: 13px FONTS; fill: var(--ink); }
.title { font-size: 16px; font-weight: 600; } .strong { font-weight: 600; }
.soft { fill: var(--soft); font-size: 12px; } .page { fill: var(--page); }
.grid { stroke: var(--line); stroke-width: 1; } .zero { stroke: var(--soft); stroke-width: 1; }
line { stroke-width: 1.5; } rect { stroke: none; }
"""


@dataclass(frozen=True)
class Figure:
    """A drawing as SVG that can also be saved as PNG and PDF."""

    title: str
    drawing: str = field(repr=False)
    """The SVG without its style."""

    @property
    def svg(self) -> str:
        """The SVG in the colours of light and dark pages."""
        return self.drawing.replace(_STYLE_HERE, style(dark=True))

    def save(self, path: str | Path) -> Path:
        """Write it as SVG, PNG or PDF, depending on the suffix of `path`."""
        target = Path(path)
        content = self._as(check_suffix(target))
        with whole_file(target) as stream:
            stream.write(content)
        return target

    def _as(self, suffix: str) -> bytes:
        if suffix == ".svg":
            return self.svg.encode("utf-8", "replace")
        try:
            import vl_convert
        except ImportError:
            raise MissingExtra(TranslatableText("extra_for_figure"), "plot") from None
        light = self.drawing.replace(_STYLE_HERE, style(dark=False))
        if suffix == ".png":
            return bytes(vl_convert.svg_to_png(light, scale=RESOLUTION))
        return bytes(vl_convert.svg_to_pdf(light))

    def _repr_html_(self) -> str:
        """Return it as an embedded image, so that its style does not affect the page."""
        data = b64encode(self.svg.encode("utf-8", "replace")).decode()
        return f'<img alt="{escape(self.title)}" src="data:image/svg+xml;base64,{data}">'


def check_suffix(path: str | Path) -> str:
    """Return the suffix of a file; raise UsageError if it is not a figure format."""
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise UsageError("plot_suffix", file=path, suffixes=[*FORMATS])
    return suffix


@cache
def style(*, dark: bool) -> str:
    """Return the style of a figure, with the report's colours as plain values."""
    sheet = files("keju.reporting").joinpath("templates/report.css").read_text("utf-8")
    marks = sheet.partition("/* Marks")[2].partition("*/")[2].partition("/* End of marks")[0]
    # The first two blocks of the sheet: ``--page: #fdfdfc;`` in light mode, and again in dark mode.
    light_colours, dark_colours = (
        dict(re.findall(r"--([\w-]+):\s*([^;]+);", block))
        for block in re.findall(r":root \{(.*?)\}", sheet, re.DOTALL)[:2]
    )
    rules = marks + _TEXT_STYLE.replace("FONTS", light_colours["sans"])

    if not dark:
        light_colours["page"] = "#ffffff"  # the colour of paper

    def plain(colours: dict[str, str]) -> str:
        return re.sub(r"var\(--([\w-]+)\)", lambda name: colours[name[1]], rules)

    light_and_dark = (
        plain(light_colours)
        + f"@media (prefers-color-scheme: dark) {{ {plain(light_colours | dark_colours)} }}"
    )
    return " ".join((light_and_dark if dark else plain(light_colours)).split())


class _SheetText(NamedTuple):
    x: float
    y: float
    text: str
    class_: str = "label"
    anchor: str = "start"


class _SheetRule(NamedTuple):
    x1: float
    y1: float
    x2: float
    y2: float
    class_: str = "grid"


class SheetRow(NamedTuple):
    """A line of a chart: a name, and for each series a mark and a few words."""

    label: str
    marks: Sequence[dict[str, Any]]
    words: Sequence[str]
    strong: bool = False


class CurveChart(NamedTuple):
    """A chart of shares against a scale, with a description and a drawing for each series."""

    title: str
    label: str
    series: Sequence[Any]


class ChartSheet:
    """A page that is drawn from top to bottom."""

    def __init__(self, title: str, subtitle: str, labels: Labels) -> None:
        self._title = clean_text(title)
        self._subtitle = subtitle
        self._labels = labels
        self._texts: list[_SheetText] = []
        self._rules: list[_SheetRule] = []
        self._drawings: list[dict[str, Any]] = []
        self._y = MARGIN + 14.0
        self._text(MARGIN, self._title, "title", limit=88)
        if subtitle:
            self._y += 20
            self._text(MARGIN, subtitle, "soft", limit=120)
        self._y += 16

    def _text(
        self, x: float, text: str, class_: str = "label", anchor: str = "start", limit: int = 0
    ) -> None:
        text = fmt.shorten(clean_text(text), limit) if limit else clean_text(text)
        self._texts.append(_SheetText(round(x, 1), round(self._y, 1), text, class_, anchor))

    def legend(self, names: Sequence[str]) -> None:
        """Draw a legend with a dot and a name for each series, if there are several."""
        self._y += 8 if len(names) > 1 else 0
        for place, name in enumerate(names if len(names) > 1 else ()):
            point = {"kind": "point", "value": 0.5, "ends": None, "bounds": None, "chance": None}
            self._draw(MARGIN, self._y - 10, 14, 14, "", point | {"class_": series(place)})
            self._text(MARGIN + 20, name, limit=90)
            self._y += 18
        self._y += 4

    def heading(self, text: str) -> None:
        """Draw the name of a part of the figure."""
        self._y += 10
        self._text(MARGIN, text, "strong", limit=88)
        self._y += 8

    def rows(
        self, rows: Sequence[SheetRow], ticks: Sequence[tuple[float, str]], zero: float
    ) -> None:
        """Draw rows on one scale; `zero` is the place of its reference line."""
        row_labels = [fmt.shorten(row.label, MAX_LABEL_LENGTH) for row in rows]
        label_width = max((_width(label) for label in row_labels), default=0.0)
        words_width = max((_width(word) for row in rows for word in row.words), default=0.0)
        start = MARGIN + label_width + COLUMN_GAP
        width = max(MIN_PLOT_WIDTH, WIDTH - start - words_width - COLUMN_GAP - MARGIN)
        top = self._y
        for row, label in zip(rows, row_labels, strict=True):
            class_ = "strong" if row.strong else "label"
            middle = ROW_HEIGHT * len(row.marks) / 2 + 4
            self._y += middle
            self._text(start - COLUMN_GAP, label, class_, "end")
            self._y -= middle
            for drawn, words in zip(row.marks, row.words, strict=True):
                title = clean_text(self._labels("named", name=row.label, text=words))
                self._draw(start, self._y + 3, width, ROW_HEIGHT - 6, title, drawn)
                self._y += 14
                self._text(start + width + COLUMN_GAP, words, "soft")
                self._y += ROW_HEIGHT - 14
            self._y += 6 if len(row.marks) > 1 else 0
        for place, text in ticks:
            x = round(start + place * width, 1)
            class_ = "zero" if place == zero else "grid"
            self._rules.append(_SheetRule(x, top, x, round(self._y, 1), class_))
            self._y += 16
            self._text(x, text, "soft", "middle")
            self._y -= 16
        self._y += 22

    def columns(
        self, heights: Sequence[float], places: Sequence[float], ticks: Sequence[tuple[float, str]],
        title: str, class_: str,
    ) -> None:  # fmt: skip
        """Draw a histogram: columns of these heights, and lines at these places."""
        width = WIDTH - 2 * MARGIN
        drawn = {"kind": "columns", "heights": heights, "places": places, "class_": class_}
        self._draw(MARGIN, self._y, width, HISTOGRAM_HEIGHT, clean_text(title), drawn)
        self._y += HISTOGRAM_HEIGHT
        y = round(self._y, 1)
        self._rules.append(_SheetRule(MARGIN, y, MARGIN + width, y, "zero"))
        self._y += 16
        for place, text in ticks:
            anchor = "start" if place == 0 else "end" if place == 1 else "middle"
            self._text(MARGIN + place * width, text, "soft", anchor)
        self._y += 12

    def curves(
        self,
        charts: Sequence[CurveChart],
        ticks: Sequence[tuple[float, str]],
        *,
        top: int,
        per_row: int,
    ) -> None:
        """Draw charts of shares, from 0 to `top` percent, against a scale.

        Each row has `per_row` charts; a single chart is taller.
        """
        width = (WIDTH - 2 * MARGIN - (per_row - 1) * COLUMN_GAP) / per_row - AXIS_WIDTH
        height = HISTOGRAM_HEIGHT if per_row > 1 else 2 * HISTOGRAM_HEIGHT
        for row_start in range(0, len(charts), per_row):
            row_top = self._y
            for column, chart in enumerate(charts[row_start : row_start + per_row]):
                self._y = row_top
                x = MARGIN + column * (width + AXIS_WIDTH + COLUMN_GAP) + AXIS_WIDTH
                if per_row > 1:
                    self._y += 14
                    self._text(x, fmt.shorten_name(clean_text(chart.title), int(width / 7)))
                self._y += 8
                start = self._y
                for quarter in range(5):
                    y = round(start + height * (1 - quarter / 4), 1)
                    self._rules.append(
                        _SheetRule(x, y, x + width, y, "grid" if quarter else "zero")
                    )
                    self._y = y + 4
                    if per_row == 1 or quarter % 2 == 0:
                        self._text(x - 6, f"{top * quarter // 4} %", "soft", "end")
                for place, drawn in enumerate(chart.series):
                    if drawn is not None:
                        curve_mark = {
                            "kind": "curve",
                            "drawn": drawn,
                            "alone": len(chart.series) == 1,
                        }
                        curve_mark["class_"] = series(place)
                        self._draw(x, start, width, height, clean_text(chart.label), curve_mark)
                self._y = start + height + 16
                for at, text in ticks:
                    self._text(x + at * width, text, "soft", "middle")
            self._y += 14
        self._y += 8

    def _draw(
        self, x: float, y: float, width: float, height: float, title: str, drawn: dict[str, Any]
    ) -> None:
        place = {"x": x, "y": y, "width": width, "height": height}
        box = {name: round(value, 1) for name, value in place.items()}
        self._drawings.append({"title": title} | box | drawn)

    def figure(self) -> Figure:
        """Return the figure."""
        right = max(text.x + _width(text.text) for text in self._texts if text.anchor == "start")
        context = {
            "width": round(max(WIDTH, right + MARGIN)),
            "height": round(self._y + MARGIN),
            "title": self._title,
            "about": clean_text(self._subtitle),
            "lang": HTML_LANG[self._labels.language],
            "style_here": _STYLE_HERE,
            "texts": self._texts,
            "rules": self._rules,
            "drawings": self._drawings,
        }
        drawing = make_environment().get_template("figure.svg.j2").render(context)
        return Figure(self._title, drawing.strip() + "\n")


def clean_text(text: str) -> str:
    """Return a text on one line, without characters that XML does not allow."""
    return re.sub("[\ufffe\uffff]", "\N{REPLACEMENT CHARACTER}", fmt.printable(text, one_line=True))


def _width(text: str) -> float:
    """Estimate the width of a text; Chinese characters are twice as wide as Latin ones."""
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return 7.2 * (len(text) - wide) + 13.0 * wide


def series(place: int) -> str:
    """Return the CSS class of the marks of one run among several."""
    return f"series-{place % SERIES}"
