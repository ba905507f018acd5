"""``keju modes``: compares an exam's scores with and without a chain of thought."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from keju.cli.command import command
from keju.cli.common import CommandOutput, open_stored_run, print_sentences
from keju.messages import label_text

if TYPE_CHECKING:
    from keju.results.modes import ModesRow


@command("modes", "keju modes monday-answer-only monday-cot")
def modes(answer_only: str, cot: str, work_dir: str | None) -> CommandOutput:
    """Knowledge or reasoning? Two runs of a model in the two modes of an exam, by subject.

    A subject tests reasoning if a chain of thought improves its score, and knowledge if not. The
    runs may differ only in the mode. Keju compares only questions with a grade in both runs, one by
    one, and marks a difference whose interval does not contain 0. Next to it is the difference by
    the secondary reader. If that reader finds none, the cause is the form of the answers, not
    ability.
    """
    from keju.results.modes import compare_runs

    direct, reasoned = open_stored_run(answer_only, work_dir), open_stored_run(cot, work_dir)
    comparison = compare_runs(direct, reasoned)
    notices = comparison.notices()
    document = {
        "model": direct.manifest.model,
        "answer_only": direct.id,
        "cot": reasoned.id,
        "overall": _document(comparison.overall),
        "subjects": [_document(row) for row in comparison.subjects],
        "categories": [_document(row) for row in comparison.categories],
        "warnings": [notice.text() for notice in notices],
        "notices": [{"code": notice.code, "values": notice.values} for notice in notices],
    }

    def show() -> None:
        _print("modes.subject", [*comparison.subjects, comparison.overall])
        if comparison.categories:
            print_sentences("")
            _print("modes.category", comparison.categories)
        print_sentences(*(label_text("warning", text=notice.message) for notice in notices))

    return CommandOutput(document, show)


def _document(row: ModesRow) -> dict[str, Any]:
    robust_document = None if row.robust is None else _document(row.robust)
    return row._asdict() | {"robust": robust_document, "by_format": row.is_due_to_format}


def _print(kind: str, rows: list[ModesRow]) -> None:
    from keju.reporting.format import percent
    from keju.reporting.table import Cell, TableColumn, render_table

    name_columns = (kind, "modes.title")
    number_columns = (
        "modes.shared",
        "modes.answer_only",
        "modes.cot",
        "modes.difference",
        "interval",
    )
    robust_columns = ("modes.robust_difference", "modes.robust_interval")
    columns = [
        *(TableColumn(label_text(name)) for name in name_columns),
        *(TableColumn(label_text(name), "right") for name in number_columns),
        TableColumn(label_text("modes.apart")),
        *(TableColumn(label_text(name), "right") for name in robust_columns),
    ]
    cells: list[list[Cell]] = [
        [
            row.subject,
            row.title if row.title != row.subject else "",
            row.n,
            percent(row.answer_only),
            percent(row.cot),
            f"{100 * row.difference:+.2f}",
            _format_interval(row),
            _describe_difference(row),
            "" if row.robust is None else f"{100 * row.robust.difference:+.2f}",
            _format_interval(row.robust),
        ]
        for row in rows
    ]
    render_table(columns, cells)


def _describe_difference(row: ModesRow) -> str:
    """Return whether a difference is more than noise, and its likely cause."""
    if row.is_due_to_format:
        return label_text("modes.by_format")
    return label_text("modes.yes") if row.apart else ""


def _format_interval(row: ModesRow | None) -> str:
    if row is None or row.ci95 is None:
        return ""
    low, high = (f"{100 * end:+.2f}" for end in (row.ci95.low, row.ci95.high))
    return label_text("modes.ends", low=low, high=high)
