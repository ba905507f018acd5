"""Exports of a run, with one table of formats for the command line and Python."""

from __future__ import annotations

import codecs
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import msgspec

from keju.benchmarks import registry
from keju.engine.job import Job, make_jobs
from keju.errors import KejuError, Notice, UsageError, WriteError, near_hint, quoted
from keju.files import open_for_writing, whole_file, write_json
from keju.interop.hub import eval_results
from keju.interop.trackers import log_to_mlflow, log_to_wandb
from keju.messages import printable
from keju.reporting.tables import latex, markdown
from keju.results.export import (
    submission_of,
    write_csv,
    write_jsonl,
    write_parquet,
    write_prediction_files,
)
from keju.results.samples import Samples
from keju.results.score import current_results
from keju.runs.manifest import format_now
from keju.runs.run import Run, damage_notices, missing_notices

TABLES = ("csv", "jsonl", "parquet")
"""Formats with a row for each answer."""
SUBMISSION = "submission"
FILES = "-csv"
"""The suffix of formats that are folders of an exam's own files, after the exam's name."""
PAGES = ("markdown", "latex", "hub-yaml")
"""Formats that are a text about the results."""
TRACKERS = ("wandb", "mlflow")
"""Formats that are a folder of an experiment tracker."""
SUFFIXES = {
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".parquet": "parquet",
    ".md": "markdown",
    ".tex": "latex",
    ".yaml": "hub-yaml",
}
"""The formats by file suffix."""
FORMS = (*TABLES, *PAGES, *TRACKERS)
"""The formats of `keju.export`. Submissions are made on the command line, which records how."""
LOG = "exports.jsonl"
"""The file in a run's folder that records its submissions, and how they were made."""


class ExportedFile(NamedTuple):
    """The result of an export."""

    facts: dict[str, Any]
    """The number of rows, the columns and the files."""
    notices: list[Notice]
    missing: tuple[str, ...] = ()
    """Questions of a submission without a letter."""


def form_of(output: str | Path | None, form: str | None) -> str:
    """Return the requested format or the one of the suffix; UsageError for an unknown suffix."""
    suffix = Path(output or "").suffix
    suffix_form = SUFFIXES.get(suffix)
    if form is not None:
        if form in SUFFIXES.values() and suffix_form not in (None, form):
            raise UsageError("export_format_and_suffix", file=output, form=form)
        return form
    if suffix and suffix_form is None:
        raise UsageError("export_unknown_suffix", file=output, suffixes=[*SUFFIXES])
    return suffix_form or "csv"


def check_form(form: str) -> None:
    """Raise UsageError for an unknown format."""
    valid = [*FORMS, SUBMISSION]
    if form not in valid:
        exams_with_files = [
            name for name in registry.names() if registry.get(name).prediction_files
        ]
        valid += [f"{name}{FILES}" for name in exams_with_files]
    if form not in valid:
        choices, hint = quoted(valid), near_hint(form, valid)
        error_values = {"place": "--format", "value": form, "command": "export"}
        raise UsageError("cli_not_a_choice", **error_values, choices=choices, hint=hint)


def require_target(form: str, target: str | Path | None) -> None:
    """Raise UsageError for a format that cannot be written to standard output."""
    if target is None and (form == "parquet" or form.endswith(FILES)):
        raise UsageError("export_needs_file")


def export_run(
    run: Run,
    form: str,
    target: Path | None,
    *,
    full_text: bool = False,
    fill: str | None = None,
    partial: bool = False,
    data_dir: str | None = None,
) -> ExportedFile:
    """Write a run to `target`, or to standard output."""
    require_target(form, target)
    if form == SUBMISSION or form.endswith(FILES):
        jobs = make_jobs(run.config(data_dir))
        if form == SUBMISSION:
            return _submit(run, jobs, target, fill=fill, partial=partial)
        assert target is not None
        files = [str(file) for file in write_prediction_files(run, jobs, form, target)]
        rows = sum(job.units for job in jobs)
        return _make_export(run, {"rows": rows, "files": files}, [])
    if form in PAGES:
        return _write_page(run, form, target, data_dir)
    if form in TRACKERS:
        return _track(run, form, target, data_dir)
    return _write_rows(run, Samples(run, data_dir), form, target, full_text=full_text)


def _write_rows(
    run: Run, samples: Samples, form: str, target: Path | None, *, full_text: bool
) -> ExportedFile:
    table, notices = samples.table(full_text=full_text), []
    if samples.problem is not None:
        notices.append(Notice("export_without_data", {"problem": samples.problem.notice}))
    write = write_csv if form == "csv" else write_jsonl
    if form == "parquet" and target is not None:
        rows = write_parquet(table, target)
    elif target is not None:
        with whole_file(target) as stream:
            rows = write(table, stream)
    else:
        with _standard_output() as stream:
            rows = write(table, stream)
    return _make_export(run, {"rows": rows, "columns": list(table.columns)}, notices)


@contextmanager
def _standard_output() -> Iterator[BinaryIO]:
    """Yield standard output for bytes. A terminal gets no characters that could control it."""
    sys.stdout.flush()
    if not sys.stdout.isatty():
        yield sys.stdout.buffer
        return
    with io.BufferedWriter(_TerminalStream()) as stream:
        yield cast(BinaryIO, stream)


class _TerminalStream(io.RawIOBase):
    """A terminal as a target for texts of data; see `printable`."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        """Write the text of the bytes without control characters."""
        sys.stdout.write(printable(self._decoder.decode(bytes(data))))
        return len(data)


def _write_page(run: Run, form: str, target: Path | None, data_dir: str | None) -> ExportedFile:
    results = current_results(run, data_dir)
    notices: list[Notice] = []
    if form == "hub-yaml":
        text, notices = eval_results(results, run.manifest)
    else:
        text = (markdown if form == "markdown" else latex)(results)
    if target is not None:
        with whole_file(target) as stream:
            stream.write(text.encode("utf-8", "replace"))
    else:
        with _standard_output() as stream:
            stream.write(text.encode("utf-8", "replace"))
    return ExportedFile({"rows": len(results.benchmarks)}, notices)


def _track(run: Run, form: str, target: Path | None, data_dir: str | None) -> ExportedFile:
    results = current_results(run, data_dir)
    log, default_folder = (log_to_wandb, ".") if form == "wandb" else (log_to_mlflow, "mlruns")
    try:
        place = log(results, target or Path(default_folder))
    except KejuError:
        raise
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
        raise UsageError("tracker_failed", tracker=form, problem=problem) from error
    return ExportedFile({"rows": len(results.benchmarks), "place": place}, [])


def _make_export(run: Run, facts: dict[str, Any], notices: list[Notice]) -> ExportedFile:
    """Return the export's result with notices about the missing part of the run."""
    wanted_count = run.manifest.expected_replies
    missing = wanted_count - facts["rows"]
    notices += damage_notices(run.damaged, missing)
    notices += missing_notices(facts["rows"], wanted_count)
    return ExportedFile(facts, notices)


def _submit(
    run: Run, jobs: list[Job], target: Path | None, *, fill: str | None, partial: bool
) -> ExportedFile:
    """Write a submission, and record in the run's folder how it was made, because fills are not
    answers."""
    submission = submission_of(run, jobs, fill=fill, partial=partial)
    if target is not None:
        write_json(target, submission.document)
    else:
        with _standard_output() as stream:
            document = msgspec.json.encode(submission.document)
            stream.write(msgspec.json.format(document, indent=2) + b"\n")
    facts: dict[str, Any] = {
        "rows": sum(map(len, submission.document.values())),
        "fill": fill,
        "partial": partial,
        "missing": submission.missing,
    }
    entry = {"at": format_now(), "format": SUBMISSION, "file": str(target) if target else None}
    try:
        fd = open_for_writing(run.folder / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        with os.fdopen(fd, "ab") as log:
            log.write(msgspec.json.encode(entry | facts) + b"\n")
    except (OSError, WriteError) as error:
        place = run.folder / LOG
        problem = error.values["problem"] if isinstance(error, WriteError) else error.strerror
        raise UsageError("export_cannot_record", place=place, problem=problem) from None
    return _make_export(run, facts, [])._replace(missing=tuple(submission.missing))
