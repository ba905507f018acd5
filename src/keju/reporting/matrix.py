"""Show models against exams, in the terminal and as a page with links to the report of each run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any, TextIO

from msgspec.structs import replace

from keju.files import whole_file
from keju.messages import Language, current_language
from keju.reporting import format as fmt
from keju.reporting.format import UNKNOWN, Labels
from keju.reporting.pages import HTML_LANG, BilingualLabels, make_environment
from keju.reporting.pairs import (
    difference_mark,
    difference_ticks,
    p_value,
    point_ends,
    points,
    scale_of,
)
from keju.reporting.table import Cell as TableCell
from keju.reporting.table import TableColumn, TerminalScreen
from keju.results.matrix import Matrix, MatrixCell, side_name
from keju.results.schema import Comparison, SubsetRow
from keju.runs.run import REPORT

DIGITS = 1
MARKS = {"highest": "*", "tie": "=", "not comparable": "?"}
"""The mark after a number in the terminal."""


def figure_of(cell: MatrixCell, labels: Labels) -> str:
    """Return the number of a cell with its interval: ``63.6 % (60.5–66.6)``, or words."""
    if cell.value is None and cell.bounds is None:
        return labels(f"matrix.{cell.state}" if cell.state != "complete" else "no_score")
    ends = f" ({fmt.interval(cell.ci95, DIGITS)})" if cell.ci95 else ""
    if cell.value is None:
        return f"{fmt.interval(cell.bounds, DIGITS)} %"
    return fmt.percent(cell.value, DIGITS) + ends


def incomplete_progress(cell: MatrixCell) -> str:
    """Return how many answers an incomplete run has: ``40/120``; empty for a complete run."""
    if cell.state != "incomplete":
        return ""
    return f"{fmt.count(cell.done)}/{fmt.count(cell.total)}"


def describe_standing(matrix: Matrix, exam: str, labels: Labels) -> Iterator[str]:
    """Yield, for each arm of an exam, which models are highest, tied, and below."""
    cells = matrix.of(exam)
    for best in (cell for cell in cells if cell.standing == "highest"):
        other_cells = [cell for cell in cells if cell.arm == best.arm and cell is not best]
        clauses = [labels("matrix.highest", name=side_name(best))]
        for standing in ("tie", "below", "not comparable"):
            names = [side_name(cell) for cell in other_cells if cell.standing == standing]
            if names:
                listed = labels("list_separator").join(names)
                clauses.append(labels(f"matrix.{standing}", names=listed))
        yield labels("matrix.sentence", exam=exam, words=labels("pair_separator").join(clauses))


def describe_incomplete_runs(matrix: Matrix, labels: Labels) -> Iterator[str]:
    """Yield the incomplete runs, each with its progress and the reason why it ended."""
    for cell in {cell.run: cell for cell in matrix.cells}.values():
        if cell.state != "complete":
            state = labels(f"matrix.{cell.state}")
            progress = f" {incomplete_progress(cell)}" if incomplete_progress(cell) else ""
            sentence = labels("named", name=cell.run, text=f"{state}{progress}")
            why = "" if cell.error is None else cell.error.text(labels.language)
            yield labels("named", name=sentence, text=why) if why else sentence


def render_matrix(matrix: Matrix, *, file: TextIO | None = None, width: int | None = None) -> None:
    """Print a matrix to `file` (stdout by default)."""
    labels, screen = Labels(current_language()), TerminalScreen(file, width)
    size = {"models": len(matrix.models), "exams": len(matrix.exams)}
    screen.line(labels("matrix.title", plan=matrix.plan, **size), style="bold")
    cells = {(cell.model, cell.arm, cell.exam): cell for cell in matrix.cells}
    rows: list[list[TableCell]] = []
    for model, arm in matrix.rows():
        row: list[TableCell] = [f"{model} · {arm}" if arm else model]
        for exam in matrix.exams:
            cell = cells.get((model, arm, exam))
            parts = [UNKNOWN]
            if cell is not None:
                mark = MARKS.get(cell.standing, "")
                parts = [
                    figure_of(cell, labels) + (f" {mark}" if mark else ""),
                    incomplete_progress(cell),
                ]
            row.append(" ".join(part for part in parts if part))
        rows.append(row)
    screen.table([labels("setting.model"), *(TableColumn(exam) for exam in matrix.exams)], rows)
    if any(cell.standing for cell in matrix.cells):
        screen.line(labels("matrix.legend"), style="dim")
    screen.line()
    for line in describe_incomplete_runs(matrix, labels):
        screen.line(labels("warning", text=line), style="yellow")
    for notice in matrix.notices:
        screen.line(labels("warning", text=notice.text(labels.language)), style="yellow")
    for exam in matrix.exams:
        for sentence in describe_standing(matrix, exam, labels):
            screen.line(sentence, style="bold")
    screen.flush()


def write_matrix(
    matrix: Matrix, folder: Path, output: Path | None = None, *, language: Language = "en"
) -> Path:
    """Write the page of the matrix, by default into `folder`, completely or not at all.

    Its links to the reports of the runs are relative to `output`.
    """
    output = output or folder / REPORT
    relative_folder = os.path.relpath(folder, output.absolute().parent)
    cells = tuple(
        replace(
            cell, report=os.path.normpath(f"{relative_folder}/{cell.report}") if cell.report else ""
        )
        for cell in matrix.cells
    )
    matrix = replace(matrix, cells=cells)
    primary_labels, secondary_labels = Labels(language), Labels("zh" if language == "en" else "en")
    tongues = BilingualLabels(primary_labels, secondary_labels)
    contexts = (_context(matrix, labels) for labels in tongues.all_labels)
    context = tongues.merge_contexts(*contexts) | {"t": tongues, "lang": HTML_LANG[language]}
    with whole_file(output) as file:
        for part in make_environment().get_template("matrix.html.j2").generate(context):
            file.write(part.encode("utf-8", "replace"))
    return output


def _context(matrix: Matrix, labels: Labels) -> dict[str, Any]:
    """Return the template context in one language."""
    cells = {(cell.model, cell.arm, cell.exam): cell for cell in matrix.cells}
    size = {"models": len(matrix.models), "exams": len(matrix.exams)}
    return {
        "languages": [
            (HTML_LANG[language], Labels(language)("language_name")) for language in ("en", "zh")
        ],
        "plan": fmt.printable(matrix.plan, one_line=True),
        "subtitle": labels("matrix.subtitle", **size),
        "incomplete_runs": list(describe_incomplete_runs(matrix, labels)),
        "notices": [notice.text(labels.language) for notice in matrix.notices],
        "exams": [
            {"name": exam, "anchor": f"exam-{number}"} for number, exam in enumerate(matrix.exams)
        ],
        "rows": [
            {
                "name": f"{model} · {arm}" if arm else model,
                "cells": [
                    _cell_context(cells[model, arm, exam], labels)
                    if (model, arm, exam) in cells
                    else None
                    for exam in matrix.exams
                ],
            }
            for model, arm in matrix.rows()
        ],
        "sections": [
            _section(matrix, exam, number, labels) for number, exam in enumerate(matrix.exams)
        ],
        "spent": _describe_usage(matrix, labels),
        "marked": any(cell.standing for cell in matrix.cells),
        "version": metadata.version("keju"),
    }


def _cell_context(cell: MatrixCell, labels: Labels) -> dict[str, Any]:
    standing = cell.standing.replace(" ", "-")
    words = labels(f"matrix.mark.{cell.standing}") if cell.standing else ""
    return {
        "cell": cell,
        "name": side_name(cell),
        "figure": figure_of(cell, labels),
        "progress": incomplete_progress(cell),
        "state": labels(f"matrix.{cell.state}"),
        "standing": standing,
        "standing_words": words,
        "row": SubsetRow(
            name=cell.model,
            n=cell.n,
            ungraded=cell.ungraded,
            accuracy=cell.value,
            ci95=cell.ci95,
            outcomes=cell.outcomes,
            bounds=cell.bounds,
        ),
        "protocol": f"{cell.protocol}@{cell.protocol_version}" if cell.protocol else UNKNOWN,
        "tokens": fmt.compact(cell.spent.input_tokens + cell.spent.output_tokens),
        "cost": UNKNOWN if cell.spent.cost is None else fmt.money(cell.spent.cost),
        "time": labels.duration(cell.spent.seconds),
    }


def _section(matrix: Matrix, exam: str, number: int, labels: Labels) -> dict[str, Any]:
    pairs = [pair for pair in matrix.comparisons if pair.exam == exam]
    scale = scale_of(pairs)
    return {
        "name": exam,
        "anchor": f"exam-{number}",
        "sentences": list(describe_standing(matrix, exam, labels)),
        "cells": [_cell_context(cell, labels) for cell in matrix.of(exam)],
        "costs": any(cell.spent.cost is not None for cell in matrix.of(exam)),
        "ticks": difference_ticks(scale),
        "pairs": [_pair(pair, scale, labels) for pair in pairs],
    }


def _pair(pair: Comparison, scale: float, labels: Labels) -> dict[str, Any]:
    p = pair.p if pair.p_holm is None else pair.p_holm
    return {
        "title": labels("arms.against", base=pair.base, arm=pair.arm),
        "pair": pair,
        "class_": pair.verdict if pair.verdict in ("above", "below") else "tie",
        "words": f"{points(pair.difference, 1)} ({point_ends(pair.ci95, 1)})",
        "mark": difference_mark(pair, p, scale),
        "points": points(pair.difference, 1),
        "ends": point_ends(pair.ci95, 1),
        "p": p_value(p),
        "conclusion": pair.conclusion.text(labels.language),
        "notices": [notice.text(labels.language) for notice in pair.notices],
    }


def _describe_usage(matrix: Matrix, labels: Labels) -> str:
    usage = matrix.spent
    words = labels(
        "matrix.spent",
        requests=fmt.count(usage.requests),
        tokens=fmt.compact(usage.input_tokens + usage.output_tokens),
    )
    if usage.cost is not None:
        words += labels("matrix.cost", cost=fmt.money(usage.cost))
    return words
