"""``keju export``: a run as a table, or as the file that an exam's site takes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keju.cli.command import command
from keju.cli.common import note, print_json, stored_run
from keju.errors import UsageError

if TYPE_CHECKING:
    from keju.engine.job import Job
    from keju.results.export import Table
    from keju.runs.run import Run

FILES = "-csv"
"""How the forms end that are folders of an exam's own files; the exam's name goes before it."""
SUFFIXES = {".csv": "csv", ".jsonl": "jsonl", ".parquet": "parquet"}
"""The formats by the names of their files."""
LOG = "exports.jsonl"
"""The file of a run's folder that says which submissions were made of it, and how."""


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
    from keju.engine.job import make_jobs
    from keju.engine.resume import JobRequests
    from keju.results.export import read_table, write_prediction_files
    from keju.runs.run import damage_notices
    from keju.types import Notice

    named = SUFFIXES.get(Path(output or "").suffix)
    if form in SUFFIXES.values() and named not in (None, form):
        raise UsageError("cli_format_and_suffix", file=output, form=form)
    form = form or _form_of(output)
    if form != "submission" and (fill is not None or partial):
        flag = "--fill" if fill is not None else "--partial"
        raise UsageError("cli_only_submission", flag=flag, form=form)
    if form == "submission" and full_text:
        raise UsageError("cli_submission_full_text")
    if output is None and (form == "parquet" or form.endswith(FILES)):
        raise UsageError("cli_parquet_needs_file")
    if output is None and as_json:
        raise UsageError("cli_json_needs_file")
    stored = stored_run(run, work_dir)
    target = Path(output) if output else None
    try:
        jobs = make_jobs(stored.config(data_dir))
    except UsageError as error:
        if form == "submission" or form.endswith(FILES):
            raise
        note(f"keju: the table goes without subsets and questions: {error}")
        jobs = None
    if form == "submission":
        facts = _submit(stored, jobs or [], target, fill=fill, partial=partial)
    elif form.endswith(FILES) and target is not None:
        files = write_prediction_files(stored, jobs or [], form, target)
        facts = {"rows": sum(job.units for job in jobs or ()), "files": [str(f) for f in files]}
    else:
        table = read_table(stored, JobRequests(jobs) if jobs else None, full_text=full_text)
        facts = {"rows": _write(table, form, target), "columns": list(table.columns)}
    whole = sum(exam.samples * exam.epochs for exam in stored.manifest.benchmarks)
    missing = whole - facts["rows"]
    notices = damage_notices(stored.damaged, missing)
    if missing > 0:
        notices.append(Notice("replies_missing", {"part": facts["rows"], "whole": whole}))
    for notice in notices:
        note(f"keju: {notice.said}")
    if as_json:
        told = {"warnings": [notice.text() for notice in notices], "notices": notices}
        print_json({"run": stored.id, "format": form, "file": output} | facts | told)
    elif target:
        note(f"keju: wrote {facts['rows']} rows to {target}")


def _form_of(output: str | None) -> str:
    """The format that the name of a file asks for; UsageError where it asks for none."""
    suffix = Path(output or "").suffix
    if suffix and suffix not in SUFFIXES:
        raise UsageError("cli_unknown_suffix", file=output, suffixes=", ".join(SUFFIXES))
    return SUFFIXES.get(suffix, "csv")


def _write(table: Table, form: str, target: Path | None) -> int:
    from keju.files import whole_file
    from keju.results.export import write_csv, write_jsonl, write_parquet

    if form == "parquet" and target is not None:
        return write_parquet(table, target)
    write = write_csv if form == "csv" else write_jsonl
    if target is not None:
        with whole_file(target) as stream:
            return write(table, stream)
    sys.stdout.flush()
    return write(table, sys.stdout.buffer)


def _submit(
    run: Run, jobs: list[Job], target: Path | None, *, fill: str | None, partial: bool
) -> dict[str, Any]:
    """Write a submission, and record in the run's folder how it was made: a fill is no answer."""
    import msgspec

    from keju.files import write_json
    from keju.results.export import submission_of
    from keju.runs.manifest import now

    made = submission_of(run, jobs, fill=fill, partial=partial)
    if made.missing:
        filled = f"filled with {fill}" if fill else 'written as ""'
        note(f"keju: {len(made.missing)} questions have no letter and are {filled}:")
        for sample_id in made.missing:
            note(f"  {sample_id}")
    if target is not None:
        write_json(target, made.document)
    else:
        print_json(made.document)
    facts: dict[str, Any] = {
        "rows": sum(map(len, made.document.values())),
        "fill": fill,
        "partial": partial,
        "missing": made.missing,
    }
    entry = {"at": now(), "format": "submission", "file": str(target) if target else None}
    try:
        with (run.folder / LOG).open("ab") as log:
            log.write(msgspec.json.encode(entry | facts) + b"\n")
    except OSError as error:
        place, problem = run.folder / LOG, error.strerror
        raise UsageError("cli_cannot_record", place=place, problem=problem) from None
    return facts
