"""Published against fresh questions in the terminal; the conclusion comes last."""

from __future__ import annotations

from typing import TextIO

from keju.messages import spoken
from keju.report.format import Labels, count, percent
from keju.report.table import Cell, Column, Screen
from keju.results.contamination import Contamination
from keju.results.schema import SIGNIFICANT


def render_contamination(
    found: Contamination, *, file: TextIO | None = None, width: int | None = None
) -> None:
    """Print what a comparison of published and fresh questions found."""
    labels, screen = Labels(spoken()), Screen(file, width)
    values = {"published": found.published_run, "fresh": found.fresh_run, "model": found.model}
    screen.line(labels("contamination.title", **values), style="bold")
    if found.subsets:
        _table(screen, found, labels)
    clear = [row.name for row in found.subsets if row.p_adjusted < SIGNIFICANT]
    if clear:
        screen.line(labels("contamination.subsets", listed=", ".join(clear)))
    elif found.subsets:
        screen.line(labels("contamination.no_subsets"))
    for key, listed in (("uncompared", found.uncompared),):
        if listed:
            screen.line(labels(f"contamination.{key}", listed=", ".join(listed)))
    for key, n in (("left_out", found.left_out), ("faulty", found.faulty)):
        if n:
            screen.line(labels(f"contamination.{key}", n=count(n)))
    for notice in found.notices:
        screen.line(labels("warning", text=notice.text(labels.language)), style="yellow")
    for notice in found.conclusions:
        screen.line(notice.text(labels.language), style="bold")
    screen.flush()


def _table(screen: Screen, found: Contamination, labels: Labels) -> None:
    """A row for the exam and for each subset."""
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
            f"{100 * row.difference:+.2f}",
            f"{100 * row.ci95[0]:+.2f} … {100 * row.ci95[1]:+.2f}",
            f"{row.p:.3g}",
            f"{row.p_adjusted:.3g}",
        ]
        for row in found.subsets
    ]
    if found.difference is not None and found.ci95 is not None and found.p is not None:
        rows.append(
            [
                labels("contamination.all"),
                sum(row.published_n for row in found.subsets),
                sum(row.fresh_n for row in found.subsets),
                percent(found.published),
                percent(found.fresh),
                f"{100 * found.difference:+.2f}",
                f"{100 * found.ci95[0]:+.2f} … {100 * found.ci95[1]:+.2f}",
                f"{found.p:.3g}",
                None,
            ]
        )
    screen.table(columns, rows)
    screen.line()
