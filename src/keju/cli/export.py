"""``keju export``: a run as a table, or as the file that an exam's site takes."""

from __future__ import annotations

from pathlib import Path

from keju.cli.command import command
from keju.cli.common import note, print_json, stored_run
from keju.errors import UsageError


@command(
    "export",
    "keju export tuesday -o tuesday.csv",
    "keju export tuesday --format parquet -o tuesday.parquet --full-text",
    "keju export ceval-test --format submission -o submission.json",
)
def export(
    run: str,
    form: str | None,
    output: str | None,
    full_text: bool,
    fill: str | None,
    partial: bool,
    data_dir: str | None,
    work_dir: str | None,
    as_json: bool,
) -> None:
    """Export a run: one row a sample and epoch, or the submission file of an exam's site."""
    from keju.interop.export import SUBMISSION, export_run, form_of

    form = form_of(output, form)
    if form != SUBMISSION and (fill is not None or partial):
        flag = "--fill" if fill is not None else "--partial"
        raise UsageError("cli_only_submission", flag=flag, form=form)
    if form == SUBMISSION and full_text:
        raise UsageError("cli_submission_full_text")
    if output is None and as_json:
        raise UsageError("cli_json_needs_file")
    stored = stored_run(run, work_dir)
    target = Path(output) if output else None
    facts, notices, missing = export_run(
        stored,
        form,
        target,
        full_text=full_text,
        fill=fill,
        partial=partial,
        data_dir=data_dir,
    )
    if missing:
        filled = f"filled with {fill}" if fill else 'written as ""'
        note(f"keju: {len(missing)} questions have no letter and are {filled}:")
        for sample_id in missing:
            note(f"  {sample_id}")
    for notice in notices:
        note(f"keju: {notice.said}")
    if as_json:
        told = {"warnings": [notice.text() for notice in notices], "notices": notices}
        print_json({"run": stored.id, "format": form, "file": output} | facts | told)
    elif target:
        note(f"keju: wrote {facts['rows']} rows to {target}")
