"""Published against fresh questions: in the terminal, and as one page like that of a comparison."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any, TextIO

from keju.files import whole_file
from keju.messages import Language, spoken
from keju.report import format as fmt
from keju.report.format import Labels, count, percent
from keju.report.pages import HTML_LANG, Tongues, make_environment
from keju.report.pairs import (
    difference_mark,
    difference_ticks,
    p_value,
    point_ends,
    points,
    scale_of,
)
from keju.report.table import Cell, Column, Screen
from keju.results.contamination import Contamination, SubsetGap
from keju.results.schema import SIGNIFICANT


def render_contamination(
    found: Contamination, *, file: TextIO | None = None, width: int | None = None
) -> None:
    """Print what a comparison of published and fresh questions found; the conclusion comes last."""
    labels, screen = Labels(spoken()), Screen(file, width)
    screen.line(_title(found, labels), style="bold")
    if found.subsets:
        _table(screen, found, labels)
    for line in _beside(found, labels):
        screen.line(line)
    for notice in found.notices:
        screen.line(labels("warning", text=notice.text(labels.language)), style="yellow")
    for notice in found.conclusions:
        screen.line(notice.text(labels.language), style="bold")
    screen.flush()


def _title(found: Contamination, labels: Labels) -> str:
    values = {"published": found.published_run, "fresh": found.fresh_run, "model": found.model}
    return labels("contamination.title", **values)


def _beside(found: Contamination, labels: Labels) -> Iterator[str]:
    """What stands beside a difference: the subsets that differ, and what is left out."""
    clear = [row.name for row in found.subsets if row.p_adjusted < SIGNIFICANT]
    if clear:
        values = {
            "n": len(clear),
            "whole": len(found.subsets),
            "listed": labels("list_separator").join(clear),
        }
        key = "subsets" if len(clear) < len(found.subsets) else "all_subsets"
        yield labels(f"contamination.{key}", **values)
    elif found.subsets:
        yield labels("contamination.no_subsets")
    if found.uncompared:
        yield labels(
            "contamination.uncompared", listed=labels("list_separator").join(found.uncompared)
        )
    if found.left_out:
        yield labels("contamination.left_out", n=count(found.left_out))
    if found.faulty:
        yield labels("contamination.faulty", n=count(found.faulty))


def _table(screen: Screen, found: Contamination, labels: Labels) -> None:
    """A row for each subset, then for the exam."""
    names = "published_n", "fresh_n", "published", "fresh", "difference", "interval", "p"
    columns: list[Column | str] = [labels("compare.subset")]
    columns += [Column(labels(f"contamination.{name}"), "right") for name in names]
    columns.append(Column(labels("compare.p_adjusted"), "right"))
    rows: list[list[Cell]] = [
        [
            row.name,
            row.published_n,
            row.fresh_n,
            percent(row.published),
            percent(row.fresh),
            points(row.difference),
            point_ends(row.ci95),
            p_value(row.p),
            p_value(row.p_adjusted),
        ]
        for row in found.subsets
    ]
    rows.append(
        [
            labels("contamination.all"),
            sum(row.published_n for row in found.subsets),
            sum(row.fresh_n for row in found.subsets),
            percent(found.published),
            percent(found.fresh),
            points(found.difference),
            point_ends(found.ci95),
            p_value(found.p),
            None,
        ]
    )
    screen.table(columns, rows)
    screen.line()


def write_contamination(found: Contamination, output: Path, *, language: Language = "en") -> None:
    """Write the page of a comparison to `output`, whole or not at all."""
    tongues = Tongues(Labels(language), Labels("zh" if language == "en" else "en"))
    contexts = (_context(found, labels) for labels in tongues.both)
    context = tongues.merged(*contexts) | {"t": tongues, "lang": HTML_LANG[language]}
    with whole_file(output) as file:
        for part in make_environment().get_template("contamination.html.j2").generate(context):
            file.write(part.encode("utf-8", "replace"))


def _mark(row: SubsetGap, scale: float) -> dict[str, Any]:
    """A difference as a mark; neither way is the better one, so that its colour only stands out."""
    mark = difference_mark(row, row.p_adjusted, scale)
    return mark | {"class_": "tie" if mark["class_"] == "tie" else "series-1"}


def _context(found: Contamination, labels: Labels) -> dict[str, Any]:
    """What the template needs in one language."""
    scale = scale_of(found.subsets)
    return {
        "languages": [(HTML_LANG[own], Labels(own)("language_name")) for own in ("en", "zh")],
        "title": fmt.printable(_title(found, labels), one_line=True),
        "model": fmt.printable(found.model, one_line=True),
        "points": "" if found.difference is None else points(found.difference),
        "interval": point_ends(found.ci95),
        "p": p_value(found.p),
        "conclusions": [notice.text(labels.language) for notice in found.conclusions],
        "notices": [notice.text(labels.language) for notice in found.notices],
        "beside": list(_beside(found, labels)),
        "ticks": difference_ticks(scale),
        "rows": [
            {
                "name": row.name,
                "words": f"{points(row.difference)} ({point_ends(row.ci95)})",
                "mark": _mark(row, scale),
                "points": points(row.difference),
                "ends": point_ends(row.ci95),
                "p": p_value(row.p),
                "p_adjusted": p_value(row.p_adjusted),
                "told": row.p_adjusted < SIGNIFICANT,
                "published": row.published,
                "fresh": row.fresh,
                "published_n": row.published_n,
                "fresh_n": row.fresh_n,
            }
            for row in found.subsets
        ],
        "version": metadata.version("keju"),
    }
