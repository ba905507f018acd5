"""``keju export``: a run as a table, or as the file that an exam's site takes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from keju.cli import options
from keju.cli.arguments import StrictCommand
from keju.cli.output import note, print_json
from keju.config import load as settings
from keju.errors import UsageError

if TYPE_CHECKING:
    from keju.engine.job import Job
    from keju.results.export import Table
    from keju.runs.manifest import Manifest

app = options.new_app()

Format = Literal["csv", "jsonl", "parquet", "submission"]
LOG = "exports.jsonl"
"""The file of a run's folder that says which submissions were made of it, and how."""


@app.command(
    cls=StrictCommand,
    epilog=options.examples(
        "keju export tuesday -o tuesday.csv",
        "keju export tuesday --format parquet -o tuesday.parquet --full-text",
        "keju export ceval-test --format submission -o submission.json",
    ),
)
def export(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run: its folder or its id.")],
    form: Annotated[
        Format,
        typer.Option(
            "--format", help="Submission: C-Eval's own JSON.", rich_help_panel=options.OUTPUT
        ),
    ] = "csv",
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where to write; stdout by default.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    full_text: Annotated[
        bool,
        typer.Option(
            "--full-text",
            help="Also the texts of questions and replies, which are left out by default.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = False,
    fill: Annotated[
        str | None,
        typer.Option(
            metavar="LETTER",
            help="Submission: the letter for questions without a readable answer.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    partial: Annotated[
        bool,
        typer.Option(
            "--partial",
            help="Submission: also where questions were not asked.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = False,
    data_dir: options.DataDir = None,
    work_dir: options.WorkDir = None,
    as_json: options.Json = False,
) -> None:
    """Export a run: one row a sample and epoch, or the submission file of C-Eval."""
    from keju.runs.folder import find_run
    from keju.runs.manifest import Manifest

    _check_flags(form, output, full_text=full_text, fill=fill, partial=partial, as_json=as_json)
    folder = find_run(run, str(settings.work_dir(work_dir)))
    manifest = Manifest.read(folder)
    target = Path(output) if output else None
    if form == "submission":
        jobs = _jobs(manifest, data_dir)
        done = _submit(folder, jobs, target, fill=fill, partial=partial)
    else:
        done = _tabulate(folder, manifest, data_dir, form, target, full_text=full_text)
    if as_json:
        print_json({"run": folder.name, "format": form, "file": output} | done)
    elif target:
        note(f"keju: wrote {done['rows']} rows to {target}")


def _check_flags(
    form: Format,
    output: str | None,
    *,
    full_text: bool,
    fill: str | None,
    partial: bool,
    as_json: bool,
) -> None:
    if form != "submission" and (fill is not None or partial):
        flag = "--fill" if fill is not None else "--partial"
        raise UsageError(f"{flag} is for --format submission, not for {form}")
    if form == "submission" and full_text:
        raise UsageError("--full-text has no place in a submission: it holds letters only")
    if output is None and form == "parquet":
        raise UsageError("Parquet is no text: give the file to write with -o FILE")
    if output is None and as_json:
        raise UsageError("--json reports on a file: give one with -o FILE")


def _jobs(manifest: Manifest, data_dir: str | None) -> list[Job]:
    from keju.engine.job import make_jobs

    return make_jobs(settings.of_run(manifest.config, data_dir))


def _tabulate(
    folder: Path,
    manifest: Manifest,
    data_dir: str | None,
    form: Format,
    target: Path | None,
    *,
    full_text: bool,
) -> dict[str, Any]:
    from keju.results.export import read_table

    jobs: list[Job] | None = None
    try:
        jobs = _jobs(manifest, data_dir)
    except UsageError as error:
        note(f"keju: the table goes without subsets and questions: {error}")
    table = read_table(folder, manifest, jobs, full_text=full_text)
    return {"rows": _write(table, form, target), "columns": list(table.columns)}


def _write(table: Table, form: Format, target: Path | None) -> int:
    from keju.files import whole_file
    from keju.results.writing import write_csv, write_jsonl, write_parquet

    if form == "parquet" and target is not None:
        return write_parquet(table, target)
    write = write_csv if form == "csv" else write_jsonl
    if target is not None:
        with whole_file(target) as stream:
            return write(table, stream)
    sys.stdout.flush()
    return write(table, sys.stdout.buffer)


def _submit(
    folder: Path, jobs: list[Job], target: Path | None, *, fill: str | None, partial: bool
) -> dict[str, Any]:
    from keju.files import write_json
    from keju.results.submissions import submission_of

    made = submission_of(folder, jobs, fill=fill, partial=partial)
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
    _record(folder, {"format": "submission", "file": str(target) if target else None} | facts)
    return facts


def _record(folder: Path, facts: dict[str, Any]) -> None:
    """Say in the run's folder how a submission was made; a filled letter is no answer."""
    import msgspec

    from keju.runs.manifest import now

    line = msgspec.json.encode({"at": now()} | facts) + b"\n"
    try:
        with (folder / LOG).open("ab") as log:
            log.write(line)
    except OSError as error:
        raise UsageError(
            f"cannot record the submission in {folder / LOG}: {error.strerror}"
        ) from None
