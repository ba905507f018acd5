"""Exports: a run as a table, or the submission file of a leaderboard.

A table has one row for each sample and epoch, in the order of the exam. Rows are written one by
one, so memory holds positions in the journal but no replies. Texts of questions and replies are
licensed data; they are exported only on request.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

import msgspec

from keju.benchmarks import registry
from keju.benchmarks.metadata import Submission
from keju.engine.job import Job
from keju.engine.resume import JobRequests
from keju.errors import UsageError
from keju.files import whole_file
from keju.results.samples import (
    SETTINGS,
    Cell,
    SamplesTable,
    exported_answers,
    import_duckdb,
    lines_query,
)
from keju.results.samples import write_jsonl as write_jsonl
from keju.runs.run import Run

# Tables as files, written row by row.


def write_csv(table: SamplesTable, stream: BinaryIO) -> int:
    """Write a CSV file (RFC 4180: UTF-8, CRLF, minimal quotes); return the number of rows.

    A list is written as JSON. A missing value is an empty cell. `_escape_formula` protects
    spreadsheets.
    """
    writer = csv.writer(codecs.getwriter("utf-8")(stream))
    writer.writerow(table.columns)
    count = 0
    for count, row in enumerate(table.rows, 1):  # noqa: B007 (the last number is the answer)
        writer.writerow(_escape_formula(cell) for cell in row.values())
    return count


# -5, +.5, 1e-3, 12,000.5
_NUMBER = re.compile(r"[-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?%?")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""The characters with which a spreadsheet formula may begin; the last ones are full-width."""


def _escape_formula(cell: Cell) -> Cell:
    """Return a cell that a spreadsheet does not execute: a formula gets an apostrophe in front.

    ``=HYPERLINK(…)`` becomes ``'=HYPERLINK(…)``; a number such as ``-5`` is not changed.
    """
    if isinstance(cell, list):
        return msgspec.json.encode(cell).decode()
    risky = isinstance(cell, str) and cell.startswith(_FORMULA)
    return f"'{cell}" if risky and not _NUMBER.fullmatch(str(cell)) else cell


def write_parquet(table: SamplesTable, path: Path) -> int:
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


# Submissions.


def submission_of(
    run: Run, jobs: Sequence[Job], *, fill: str | None = None, partial: bool = False
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


def _find_only_job(jobs: Sequence[Job]) -> Job | None:
    """Return the first job; raise UsageError if its exam has several arms."""
    arms = [job.arm for job in jobs if job.exam is jobs[0].exam]
    if len(arms) > 1:
        raise UsageError("submission_arms", arms=arms)
    return jobs[0] if jobs else None


def _read_answers(run: Run, job: Job) -> dict[str, str | None]:
    """Return the answer to each question; raise UsageError if questions were repeated.

    Questions that ended in an error are left out.
    """
    if job.epochs > 1 or "rotate_options" in job.exam.settings:
        raise UsageError("submission_repeats")
    return {
        record.id: record.readings[0].answer.value
        for _, record in exported_answers(run, JobRequests([job]))
        if record.reply.error is None
    }


def write_prediction_files(run: Run, jobs: Sequence[Job], form: str, folder: Path) -> list[Path]:
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
