"""Write the table of several runs for a paper, as Markdown, LaTeX or CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from keju.files import whole_file
from keju.interop.export import escape_formula, standard_output
from keju.messages import Language
from keju.reporting.paper_table import (
    PaperTable,
    make_paper_table,
    paper_latex,
    paper_markdown,
    paper_rows,
)
from keju.results.score import current_results
from keju.runs.run import Run

TableForm = Literal["md", "latex", "csv"]
TABLE_SUFFIXES: dict[str, TableForm] = {".md": "md", ".tex": "latex", ".csv": "csv"}


def write_table(
    runs: Sequence[Run],
    form: TableForm,
    target: Path | None,
    *,
    intervals: bool = False,
    language: Language = "en",
    data_dir: str | None = None,
) -> dict[str, Any]:
    """Write the table to a file or to standard output; return its rows, columns and notes."""
    results = [current_results(run, data_dir) for run in runs]
    table = make_paper_table(results, language)
    text = _render(table, form, language, intervals=intervals)
    if target is not None:
        with whole_file(target) as stream:
            stream.write(text.encode("utf-8", "replace"))
    else:
        with standard_output() as stream:
            stream.write(text.encode("utf-8", "replace"))
    return {
        "rows": len(table.rows),
        "columns": table.columns,
        "metrics": table.metrics,
        "notes": table.notes,
    }


def _render(table: PaperTable, form: TableForm, language: Language, *, intervals: bool) -> str:
    if form == "md":
        return paper_markdown(table, language, intervals=intervals)
    if form == "latex":
        return paper_latex(table, language, intervals=intervals)
    stream = io.StringIO(newline="")
    writer = csv.writer(stream)
    for row in paper_rows(table, intervals=intervals):
        writer.writerow(escape_formula(cell) for cell in row)
    return stream.getvalue()
