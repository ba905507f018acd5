"""Compare published with fresh questions, in the terminal and as an HTML page."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any, TextIO

from keju.files import whole_file
from keju.messages import Language, current_language
from keju.reporting import format as fmt
from keju.reporting.format import Labels, count, percent
from keju.reporting.pages import HTML_LANG, BilingualLabels, make_environment
from keju.reporting.pairs import (
    difference_mark,
    difference_ticks,
    p_value,
    point_ends,
    points,
    scale_of,
)
from keju.reporting.table import Cell, TableColumn, TerminalScreen
from keju.results.contamination import Contamination, SubsetGap
from keju.results.schema import SIGNIFICANT


def render_contamination(
    contamination: Contamination, *, file: TextIO | None = None, width: int | None = None
) -> None:
    """Print the comparison of published and fresh questions; the conclusion comes last."""
    labels, screen = Labels(current_language()), TerminalScreen(file, width)
    screen.line(_title(contamination, labels), style="bold")
    if contamination.subsets:
        _print_table(screen, contamination, labels)
    for line in _notes(contamination, labels):
        screen.line(line)
    for notice in contamination.notices:
        screen.line(labels("warning", text=notice.text(labels.language)), style="yellow")
    for notice in contamination.conclusions:
        screen.line(notice.text(labels.language), style="bold")
    screen.flush()


def _title(contamination: Contamination, labels: Labels) -> str:
    values = {
        "published": contamination.published_run,
        "fresh": contamination.fresh_run,
        "model": contamination.model,
    }
    return labels("contamination.title", **values)


def _notes(contamination: Contamination, labels: Labels) -> Iterator[str]:
    """Yield notes about the difference: the subsets that differ, and the questions left out."""
    significant_subsets = [
        row.name for row in contamination.subsets if row.p_adjusted < SIGNIFICANT
    ]
    if significant_subsets:
        values = {
            "n": len(significant_subsets),
            "whole": len(contamination.subsets),
            "listed": labels("list_separator").join(significant_subsets),
        }
        key = "subsets" if len(significant_subsets) < len(contamination.subsets) else "all_subsets"
        yield labels(f"contamination.{key}", **values)
    elif contamination.subsets:
        yield labels("contamination.no_subsets")
    if contamination.uncompared:
        yield labels(
            "contamination.uncompared",
            listed=labels("list_separator").join(contamination.uncompared),
        )
    if contamination.left_out:
        yield labels("contamination.left_out", n=count(contamination.left_out))
    if contamination.faulty:
        yield labels("contamination.faulty", n=count(contamination.faulty))


def _print_table(screen: TerminalScreen, contamination: Contamination, labels: Labels) -> None:
    """Print a row for each subset, then for the exam."""
    names = "published_n", "fresh_n", "published", "fresh", "difference", "interval", "p"
    columns: list[TableColumn | str] = [labels("compare.subset")]
    columns += [TableColumn(labels(f"contamination.{name}"), "right") for name in names]
    columns.append(TableColumn(labels("compare.p_adjusted"), "right"))
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
        for row in contamination.subsets
    ]
    rows.append(
        [
            labels("contamination.all"),
            sum(row.published_n for row in contamination.subsets),
            sum(row.fresh_n for row in contamination.subsets),
            percent(contamination.published),
            percent(contamination.fresh),
            points(contamination.difference),
            point_ends(contamination.ci95),
            p_value(contamination.p),
            None,
        ]
    )
    screen.table(columns, rows)
    screen.line()


@fmt.one_decimal()
def write_contamination(
    contamination: Contamination, output: Path, *, language: Language = "en"
) -> None:
    """Write the page of a comparison to `output`, completely or not at all."""
    tongues = BilingualLabels(Labels(language), Labels("zh" if language == "en" else "en"))
    contexts = (_context(contamination, labels) for labels in tongues.all_labels)
    context = tongues.merge_contexts(*contexts) | {"t": tongues, "lang": HTML_LANG[language]}
    with whole_file(output) as file:
        for part in make_environment().get_template("contamination.html.j2").generate(context):
            file.write(part.encode("utf-8", "replace"))


def _mark(row: SubsetGap, scale: float) -> dict[str, Any]:
    """Return the mark of a difference; its colour only shows whether it is significant."""
    mark = difference_mark(row, row.p_adjusted, scale)
    return mark | {"class_": "tie" if mark["class_"] == "tie" else "series-1"}


def _context(contamination: Contamination, labels: Labels) -> dict[str, Any]:
    """Return the template context in one language."""
    scale = scale_of(contamination.subsets)
    return {
        "languages": [
            (HTML_LANG[language], Labels(language)("language_name")) for language in ("en", "zh")
        ],
        "title": fmt.printable(_title(contamination, labels), one_line=True),
        "model": fmt.printable(contamination.model, one_line=True),
        "points": "" if contamination.difference is None else points(contamination.difference, 1),
        "interval": point_ends(contamination.ci95, 1),
        "p": p_value(contamination.p),
        "conclusions": [notice.text(labels.language) for notice in contamination.conclusions],
        "notices": [notice.text(labels.language) for notice in contamination.notices],
        "notes": list(_notes(contamination, labels)),
        "ticks": difference_ticks(scale),
        "rows": [
            {
                "name": row.name,
                "words": f"{points(row.difference, 1)} ({point_ends(row.ci95, 1)})",
                "mark": _mark(row, scale),
                "points": points(row.difference, 1),
                "ends": point_ends(row.ci95, 1),
                "p": p_value(row.p),
                "p_adjusted": p_value(row.p_adjusted),
                "significant": row.p_adjusted < SIGNIFICANT,
                "published": row.published,
                "fresh": row.fresh,
                "published_n": row.published_n,
                "fresh_n": row.fresh_n,
            }
            for row in contamination.subsets
        ],
        "version": metadata.version("keju"),
    }
