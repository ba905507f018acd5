"""``keju modes``: an exam sat with and without a chain of thought, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from keju.cli.command import command
from keju.cli.common import Output, print_lines, stored_run

if TYPE_CHECKING:
    from keju.results.modes import ModesRow


@command("modes", "keju modes monday-answer-only monday-cot")
def modes(answer_only: str, cot: str, work_dir: str | None) -> Output:
    """Knowledge or reasoning? Two runs of a model in the two modes of C-Eval, by subject.

    A subject that gains from a chain of thought is one of reasoning; one that does not is one of
    knowledge. The runs must be alike in all but the mode. Only questions that both graded are
    compared, one by one; a difference whose interval leaves out 0 is marked. What the reader
    beside the headline's makes of the same replies stands next to it: where it sees no difference,
    the form of the answers makes it, not ability.
    """
    from keju.results.modes import compare_runs

    direct, reasoned = stored_run(answer_only, work_dir), stored_run(cot, work_dir)
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
        _print("subject", [*comparison.subjects, comparison.overall])
        if comparison.categories:
            print_lines("")
            _print("category", comparison.categories)
        print_lines(*(f"warning: {notice.said}" for notice in notices))

    return Output(document, show)


def _document(row: ModesRow) -> dict[str, Any]:
    other = None if row.robust is None else _document(row.robust)
    return row._asdict() | {"robust": other, "by_format": row.by_format}


def _print(kind: str, rows: list[ModesRow]) -> None:
    from keju.report.format import percent
    from keju.report.table import Column, render_table

    numbers = ("shared", "answer-only", "chain of thought", "difference", "95 % interval")
    right = [Column(title, "right") for title in numbers]
    other = [Column("robust: difference", "right"), Column("robust: 95 % interval", "right")]
    columns = [Column(kind), Column("title"), *right, Column("beyond noise"), *other]
    cells = [
        [
            row.subject,
            row.title if row.title != row.subject else "",
            row.n,
            percent(row.answer_only),
            percent(row.cot),
            f"{100 * row.difference:+.2f}",
            _interval(row),
            "by format" if row.by_format else "yes" if row.apart else "",
            "" if row.robust is None else f"{100 * row.robust.difference:+.2f}",
            _interval(row.robust),
        ]
        for row in rows
    ]
    render_table(columns, cells)


def _interval(row: ModesRow | None) -> str:
    if row is None or row.ci95 is None:
        return ""
    return f"{100 * row.ci95.low:+.2f} to {100 * row.ci95.high:+.2f}"
