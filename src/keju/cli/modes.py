"""``keju modes``: compares an exam's scores with and without a chain of thought."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from keju.cli.command import command
from keju.cli.common import CommandOutput, is_brief, open_stored_run

if TYPE_CHECKING:
    from keju.results.modes import ModesRow


@command("modes", "keju modes monday-answer-only monday-cot")
def modes(answer_only: str, cot: str, work_dir: str | None, verbose: bool) -> CommandOutput:
    """Knowledge or reasoning? Two runs of a model in the two modes of an exam, by subject.

    A subject tests reasoning if a chain of thought improves its score, and knowledge if not. The
    runs may differ only in the mode. Keju compares only questions with a grade in both runs, one by
    one, and marks a difference whose interval does not contain 0. Next to it is the difference by
    the secondary reader. If that reader finds none, the cause is the form of the answers, not
    ability.
    """
    from keju.reporting.modes import render_modes
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

    return CommandOutput(
        document,
        lambda: render_modes(comparison, [answer_only, cot], brief=is_brief(verbose)),
    )


def _document(row: ModesRow) -> dict[str, Any]:
    robust_document = None if row.robust is None else _document(row.robust)
    return row._asdict() | {"robust": robust_document, "by_format": row.is_due_to_format}
