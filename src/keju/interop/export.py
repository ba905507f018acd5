"""Exports of a run, with one table of formats for the command line and Python.

A table has one row for each sample and epoch, in the order of the exam. Rows are written one by
one, so memory holds positions in the journal but no replies. Texts of questions and replies are
licensed data; they are exported only on request.
"""

from __future__ import annotations

import codecs
import csv
import io
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, NamedTuple, cast

import msgspec

from keju.benchmarks import registry
from keju.benchmarks.metadata import Submission
from keju.errors import KejuError, Notice, UsageError, WriteError, near_hint, quoted
from keju.files import open_for_writing, whole_file, write_json
from keju.interop.hub import eval_results
from keju.interop.trackers import log_to_mlflow, log_to_wandb
from keju.messages import printable
from keju.reporting.tables import latex, markdown
from keju.results.samples import (
    SETTINGS,
    Cell,
    Samples,
    SamplesTable,
    exported_answers,
    import_duckdb,
    lines_query,
    write_jsonl,
)
from keju.results.score import current_results
from keju.runs.manifest import format_now
from keju.runs.run import Run, damage_notices, missing_notices
from keju.scores.exam_scores import ExamScores
from keju.scores.exams import make_scores
from keju.scores.stored_replies import ExamRequests

TABLES = ("csv", "jsonl", "parquet")
"""Formats with a row for each answer."""
SUBMISSION = "submission"
FILES = "-csv"
"""The suffix of formats that are folders of an exam's own files, after the exam's name."""
PAGES = ("markdown", "latex", "hub-yaml")
"""Formats that are a text about the results."""
TRACKERS = ("wandb", "mlflow")
"""Formats that are a folder of an experiment tracker."""
LOGS = ("eee", "inspect", "lm-eval")
"""Formats that are logs of other tools, with all texts. `keju import` reads them back."""
SUFFIXES = {
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".parquet": "parquet",
    ".md": "markdown",
    ".tex": "latex",
    ".yaml": "hub-yaml",
    ".eval": "inspect",
}
"""The formats by file suffix."""
FORMS = (*TABLES, *PAGES, *LOGS, *TRACKERS)
"""The formats of `keju.export`. Submissions are made on the command line, which records how."""
LOG = "exports.jsonl"
"""The file in a run's folder that records its submissions, and how they were made."""
# -5, +.5, 1e-3, 12,000.5
_NUMBER = re.compile(r"[-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?%?")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""The characters with which a spreadsheet formula may begin; the last ones are full-width."""


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
        jobs = make_scores(run.config(data_dir))
        if form == SUBMISSION:
            return _submit(run, jobs, target, fill=fill, partial=partial)
        assert target is not None
        files = [str(file) for file in _write_prediction_files(run, jobs, form, target)]
        rows = sum(job.units for job in jobs)
        return _make_export(run, {"rows": rows, "files": files}, [])
    if form in PAGES:
        return _write_page(run, form, target, data_dir)
    if form in TRACKERS:
        return _track(run, form, target, data_dir)
    if form in LOGS:
        return _write_logs(run, form, target, data_dir)
    return _write_rows(run, Samples(run, data_dir), form, target, full_text=full_text)


def _write_rows(
    run: Run, samples: Samples, form: str, target: Path | None, *, full_text: bool
) -> ExportedFile:
    table, notices = samples.table(full_text=full_text), []
    if samples.problem is not None:
        notices.append(Notice("export_without_data", {"problem": samples.problem.notice}))
    write = _write_csv if form == "csv" else write_jsonl
    if form == "parquet" and target is not None:
        rows = _write_parquet(table, target)
    elif target is not None:
        with whole_file(target) as stream:
            rows = write(table, stream)
    else:
        with standard_output() as stream:
            rows = write(table, stream)
    return _make_export(run, {"rows": rows, "columns": list(table.columns)}, notices)


def _write_csv(table: SamplesTable, stream: BinaryIO) -> int:
    """Write a CSV file (RFC 4180: UTF-8, CRLF, minimal quotes); return the number of rows.

    A list is written as JSON. A missing value is an empty cell. `escape_formula` protects
    spreadsheets.
    """
    writer = csv.writer(codecs.getwriter("utf-8")(stream))
    writer.writerow(table.columns)
    count = 0
    for count, row in enumerate(table.rows, 1):  # noqa: B007 (the last number is the answer)
        writer.writerow(escape_formula(cell) for cell in row.values())
    return count


def escape_formula(cell: Cell) -> Cell:
    """Return a cell that a spreadsheet does not execute: a formula gets an apostrophe in front.

    ``=HYPERLINK(…)`` becomes ``'=HYPERLINK(…)``; a number such as ``-5`` is not changed.
    """
    if isinstance(cell, list):
        return msgspec.json.encode(cell).decode()
    risky = isinstance(cell, str) and cell.startswith(_FORMULA)
    return f"'{cell}" if risky and not _NUMBER.fullmatch(str(cell)) else cell


def _write_parquet(table: SamplesTable, path: Path) -> int:
    """Write a Parquet file; return the number of rows."""
    duckdb = import_duckdb("writing Parquet")
    with TemporaryDirectory(prefix="keju-") as scratch:
        parquet_file = Path(scratch) / "rows.parquet"
        query, count = lines_query(table, Path(scratch))
        with duckdb.connect(":memory:", config=SETTINGS) as database:
            database.execute(
                f"COPY ({query}) TO '{parquet_file}' (FORMAT parquet, COMPRESSION zstd)"
            )
        with whole_file(path) as stream:
            stream.write(parquet_file.read_bytes())
    return count


@contextmanager
def standard_output() -> Iterator[BinaryIO]:
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
        with standard_output() as stream:
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


def _write_logs(run: Run, form: str, target: Path | None, data_dir: str | None) -> ExportedFile:
    """Write the run as logs of another tool, by default into the folder ``RUN-FORM``."""
    from keju.interop.logs import eee, inspect_files, lm_eval_files
    from keju.interop.logs.run_logs import RunLogs

    writers = {"eee": eee, "inspect": inspect_files, "lm-eval": lm_eval_files}
    place = target or Path(f"{run.id}-{form}")
    if form != "inspect" and place.suffix in (".json", ".jsonl", ".eval") and not place.is_dir():
        raise UsageError("log_needs_folder", form=form, file=place)
    files, rows = writers[form].write_logs(RunLogs(run, data_dir), place)
    facts = {"rows": rows, "files": [str(file) for file in files], "place": str(place)}
    return _make_export(run, facts, [])


def _make_export(run: Run, facts: dict[str, Any], notices: list[Notice]) -> ExportedFile:
    """Return the export's result with notices about the missing part of the run."""
    wanted_count = run.manifest.expected_replies
    missing = wanted_count - facts["rows"]
    notices += damage_notices(run.damaged, missing)
    notices += missing_notices(facts["rows"], wanted_count)
    return ExportedFile(facts, notices)


def _submit(
    run: Run, jobs: list[ExamScores], target: Path | None, *, fill: str | None, partial: bool
) -> ExportedFile:
    """Write a submission, and record in the run's folder how it was made, because fills are not
    answers."""
    submission = _make_submission(run, jobs, fill=fill, partial=partial)
    if target is not None:
        write_json(target, submission.document)
    else:
        with standard_output() as stream:
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


def _make_submission(
    run: Run, jobs: Sequence[ExamScores], *, fill: str | None = None, partial: bool = False
) -> Submission:
    """Return the answers of a run in the format of the exam's submission site.

    Raise UsageError if the exam has no such site or a question has more than one answer. A question
    that ended in an error counts as not asked.
    """
    job = _find_only_job([job for job in jobs if job.exam.submitted])
    submission = registry.get(job.exam.benchmark).submission if job else None
    if job is None or submission is None:
        supported_exams = [name for name in registry.names() if registry.get(name).submission]
        exams = [job.exam.benchmark for job in jobs]
        raise UsageError("submission_no_format", able=supported_exams, exams=exams)
    return submission(job.exam, _read_answers(run, job), fill, partial=partial)


def _find_only_job(jobs: Sequence[ExamScores]) -> ExamScores | None:
    """Return the first job; raise UsageError if its exam has several arms."""
    arms = [job.arm for job in jobs if job.exam is jobs[0].exam]
    if len(arms) > 1:
        raise UsageError("submission_arms", arms=arms)
    return jobs[0] if jobs else None


def _read_answers(run: Run, job: ExamScores) -> dict[str, str | None]:
    """Return the answer to each question; raise UsageError if questions were repeated.

    Questions that ended in an error are left out.
    """
    if job.epochs > 1 or "rotate_options" in job.exam.settings:
        raise UsageError("submission_repeats")
    return {
        record.id: record.readings[0].answer.value
        for _, record in exported_answers(run, ExamRequests([job]))
        if record.reply.error is None
    }


def _write_prediction_files(
    run: Run, jobs: Sequence[ExamScores], form: str, folder: Path
) -> list[Path]:
    """Write the exam's files with a column of predictions.

    Raise UsageError if the exam has no such files.
    """
    name = form.rpartition("-")[0]
    job = _find_only_job([job for job in jobs if job.exam.benchmark == name])
    make = registry.get(name).prediction_files
    if job is None or make is None:
        exams = [job.exam.benchmark for job in jobs]
        raise UsageError("submission_no_format", able=name, exams=exams)
    folder.mkdir(parents=True, exist_ok=True)
    written_files = []
    for file, rows in make(job.exam, _read_answers(run, job)).items():
        with whole_file(folder / file) as stream:
            csv.writer(codecs.getwriter("utf-8")(stream)).writerows(rows)
        written_files.append(folder / file)
    return written_files
