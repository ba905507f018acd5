"""What leaves the house: a run as a table, or the file that the site of an exam's makers takes.

A table has one row a sample and epoch, in the order of the exam.

Which record a row is of says the rule in `keju.runs.run`. Rows are written one by one, so that
memory holds places in the journal and never replies. Question and reply texts are licensed data
and stay out unless they are asked for.
"""

from __future__ import annotations

import codecs
import csv
import re
from array import array
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO, NamedTuple

import msgspec

from keju.benchmarks import registry
from keju.benchmarks.choices import as_shown
from keju.benchmarks.facts import Submission
from keju.engine.job import Job
from keju.engine.resume import JobRequests, answers_of
from keju.errors import MissingExtra, UsageError
from keju.files import natural_key, whole_file
from keju.runs.judged import graded
from keju.runs.run import Run
from keju.types import UNSCORED, Answer, Reading, Record, Sample, Score

Cell = str | int | float | list[str] | list[int] | None
Row = dict[str, Cell]

COLUMNS: dict[str, str] = {
    "run": "VARCHAR",
    "benchmark": "VARCHAR",
    "subset": "VARCHAR",
    "id": "VARCHAR",
    "index": "BIGINT",
    "group": "VARCHAR",
    "epoch": "BIGINT",
    "arm": "VARCHAR",
    "reader": "VARCHAR",
    "answer": "VARCHAR",
    "tier": "VARCHAR",
    "reason": "VARCHAR",
    "signs": "VARCHAR",
    "outcome": "VARCHAR",
    "score": "DOUBLE",
    "grader": "VARCHAR",
    "target": "VARCHAR",
    "order": "BIGINT[]",
    "finish": "VARCHAR",
    "input_tokens": "BIGINT",
    "output_tokens": "BIGINT",
    "cached_tokens": "BIGINT",
    "reasoning_tokens": "BIGINT",
    "seconds": "DOUBLE",
    "attempts": "BIGINT",
    "error": "VARCHAR",
    "error_message": "VARCHAR",
    "at": "DOUBLE",
}
"""Column to its type in SQL."""

TEXTS: dict[str, str] = {
    "question": "VARCHAR",
    "choices": "VARCHAR[]",
    "reply": "VARCHAR",
    "reasoning": "VARCHAR",
}
"""The columns that hold texts of the data set and of the model."""

ACTING: dict[str, str] = {"stop_reason": "VARCHAR", "tool_calls": "BIGINT"}
"""The columns of runs in which a model may use tools; ``transcript`` is a text of theirs."""

_UNREAD = Reading("", Answer(), Score(0.0, "ungraded"))


class Table(NamedTuple):
    """The rows of a run, ready to be written."""

    columns: dict[str, str]
    rows: Iterator[Row]


def read_table(run: Run, requests: JobRequests | None, *, full_text: bool = False) -> Table:
    """The table of a run.

    With `requests` (those of its exams, loaded) the rows stand in the order of the exams. Without
    them the rows are sorted by id, and what only the exam knows is left empty.
    """
    exams = run.manifest.benchmarks
    beside = list(dict.fromkeys(name for exam in exams for name in list(exam.readers)[1:]))
    answers = exported_answers(run, requests)
    first = next(answers, None)
    if first is None:
        raise UsageError("export_nothing", run=run.id)
    columns = dict(COLUMNS)
    for reader in beside:
        columns |= {f"answer_{reader}": "VARCHAR", f"outcome_{reader}": "VARCHAR"}
    acts = bool(run.manifest.config.get("arms")) or first[1].reply.episode is not None
    if acts:
        columns |= ACTING
    if full_text:
        columns |= TEXTS | ({"transcript": "VARCHAR"} if acts else {})
    rows = (_row(run.id, sample, record, beside) for sample, record in chain([first], answers))
    return Table(columns, ({name: row[name] for name in columns} for row in rows))


def exported_answers(
    run: Run, requests: JobRequests | None
) -> Iterator[tuple[Sample | None, Record]]:
    """The records that count, each after its question as it was shown, where that is known."""
    if requests is None:
        yield from ((None, record) for record in _sorted_by_id(run))
        return
    for sample, record in answers_of(run, requests):
        yield sample and as_shown(sample, record.order), record


def _sorted_by_id(run: Run) -> Iterator[Record]:
    """The records that count by exam, id in natural order, arm and epoch.

    The sort keys are bytes that end in the record's number, since a million tuples would not fit
    into memory. A number in an id follows the count of its digits, so that ``q2`` (one digit)
    stands before ``q10`` (two).
    """
    exams = {exam.name: number for number, exam in enumerate(run.manifest.benchmarks)}
    starts, keys = array("q"), list[bytes]()
    for number, start, record in run.counting():
        starts[number : number + 1] = array("q", [start])
        if number < len(keys):
            continue
        key = exams.get(record.bench, len(exams)).to_bytes(4)
        for is_number, digits, text in natural_key(record.id):
            if is_number:
                key += b"\2%b%d" % (len(str(digits)).to_bytes(2), digits)
            else:
                key += b"\1%b\0" % text.encode()
        arm = record.arm.encode()
        keys.append(b"%b\0%b\0%b%b" % (key, arm, record.epoch.to_bytes(4), number.to_bytes(4)))
    keys.sort()
    in_order = (starts[int.from_bytes(key[-4:])] for key in keys)
    yield from graded(run.folder, run.records.at(in_order))


def _row(run: str, sample: Sample | None, record: Record, beside: Sequence[str]) -> Row:
    """All that may be told of an answer; the columns of the table say what is shown."""
    reading, *others = record.readings or (_UNREAD,)
    reply, answer, score = record.reply, reading.answer, reading.score
    row: Row = {
        "run": run,
        "benchmark": record.bench,
        "subset": sample.subset if sample else None,
        "id": record.id,
        "index": sample.index if sample else None,
        "group": (sample.group or None) if sample else None,
        "epoch": record.epoch,
        "arm": record.arm or None,
        "reader": reading.reader,
        "answer": answer.value,
        "tier": answer.tier or None,
        "reason": answer.reason or None,
        "signs": ",".join(dict.fromkeys(s for r in record.readings for s in r.answer.signs))
        or None,
        "outcome": score.outcome,
        "score": None if score.outcome in UNSCORED else score.value,
        "grader": score.grader or None,
        "target": record.target or None,
        "order": list(record.order) or None,
        "finish": reply.finish or None,
        "input_tokens": reply.usage.input,
        "output_tokens": reply.usage.output,
        "cached_tokens": reply.usage.cached,
        "reasoning_tokens": reply.usage.reasoning,
        "seconds": reply.seconds,
        "attempts": 1 + len(record.faults),
        "error": reply.error.kind if reply.error else None,
        "error_message": reply.error.message if reply.error else None,
        "at": record.at,
        "stop_reason": reply.episode.stop if reply.episode else None,
        "tool_calls": sum(len(t.calls) for t in reply.episode.turns) if reply.episode else None,
        "transcript": msgspec.json.encode(reply.episode.turns).decode() if reply.episode else None,
        "question": sample.text if sample else None,
        "choices": (list(sample.choices) or None) if sample else None,
        "reply": reply.text,
        "reasoning": reply.reasoning or None,
    }
    by_name = {reading.reader: reading for reading in others}
    for name in beside:
        other = by_name.get(name)
        row[f"answer_{name}"] = other.answer.value if other else None
        row[f"outcome_{name}"] = other.score.outcome if other else None
    return row


# Tables as files, written a row at a time.

LONGEST_ROW = 1 << 26
"""Bytes of one row of Parquet: replies may be long."""


def write_csv(table: Table, stream: BinaryIO) -> int:
    """Write RFC 4180: UTF-8, CRLF, quotes where they are needed; return the number of rows.

    A list stands in its cell as JSON; what is not there is an empty cell; see `_inert`.
    """
    writer = csv.writer(codecs.getwriter("utf-8")(stream))
    writer.writerow(table.columns)
    count = 0
    for count, row in enumerate(table.rows, 1):  # noqa: B007 (the last number is the answer)
        writer.writerow(_inert(cell) for cell in row.values())
    return count


# -5, +.5, 1e-3, 12,000.5
_NUMBER = re.compile(r"[-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?%?")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""How a cell begins that a spreadsheet may take for a formula; the last ones in full width."""


def _inert(cell: Cell) -> Cell:
    """A cell that no spreadsheet runs: an apostrophe stands before what may be a formula.

    ``=HYPERLINK(…)`` becomes ``'=HYPERLINK(…)``; a number such as ``-5`` stays as it is.
    """
    if isinstance(cell, list):
        return msgspec.json.encode(cell).decode()
    risky = isinstance(cell, str) and cell.startswith(_FORMULA)
    return f"'{cell}" if risky and not _NUMBER.fullmatch(str(cell)) else cell


def write_jsonl(table: Table, stream: BinaryIO) -> int:
    """Write one JSON object a line; return the number of rows."""
    encoder = msgspec.json.Encoder()
    count = 0
    for count, row in enumerate(table.rows, 1):  # noqa: B007 (the last number is the answer)
        stream.write(encoder.encode(row) + b"\n")
    return count


def write_parquet(table: Table, path: Path) -> int:
    """Write a Parquet file; return the number of rows."""
    try:
        import duckdb
    except ImportError:
        raise MissingExtra("writing Parquet", "data") from None

    types = ", ".join(f"'{name}': '{kind}'" for name, kind in table.columns.items())
    with TemporaryDirectory(prefix="keju-") as scratch:
        lines, made = Path(scratch) / "rows.jsonl", Path(scratch) / "rows.parquet"
        with lines.open("wb") as stream:
            count = write_jsonl(table, stream)
        settings: dict[str, str | bool | int | float | list[str]] = {
            "autoinstall_known_extensions": False,
            "threads": 1,
        }
        with duckdb.connect(":memory:", config=settings) as database:
            database.execute(
                f"COPY (SELECT * FROM read_json('{lines}', format='newline_delimited', "
                f"maximum_object_size={LONGEST_ROW}, columns={{{types}}})) "
                f"TO '{made}' (FORMAT parquet, COMPRESSION zstd)"
            )
        with whole_file(path) as stream:
            stream.write(made.read_bytes())
    return count


# Submissions.


def submission_of(
    run: Run, jobs: Sequence[Job], *, fill: str | None = None, partial: bool = False
) -> Submission:
    """The answers of a run, as the site of the exam's makers takes them.

    UsageError for an exam without such a site, and where a question has more than one answer. A
    question that ended in an error counts as not asked.
    """
    job = _only_job([job for job in jobs if job.exam.submitted])
    submission = registry.get(job.exam.benchmark).submission if job else None
    if job is None or submission is None:
        able = ", ".join(name for name in registry.names() if registry.get(name).submission)
        exams = ", ".join(job.exam.benchmark for job in jobs)
        raise UsageError("submission_no_format", able=able, exams=exams)
    return submission(job.exam, _only_answers(run, job), fill, partial=partial)


def _only_job(jobs: Sequence[Job]) -> Job | None:
    """The first of the jobs; UsageError where it has other arms beside it."""
    arms = [job.arm for job in jobs if job.exam is jobs[0].exam]
    if len(arms) > 1:
        raise UsageError("submission_arms", arms=", ".join(arms))
    return jobs[0] if jobs else None


def _only_answers(run: Run, job: Job) -> dict[str, str | None]:
    """What was read of each question, which must have been asked once; errors are left out."""
    if job.epochs > 1 or "rotate_options" in job.exam.settings:
        raise UsageError("submission_repeats")
    return {
        record.id: record.readings[0].answer.value
        for _, record in exported_answers(run, JobRequests([job]))
        if record.reply.error is None
    }


def write_prediction_files(run: Run, jobs: Sequence[Job], form: str, folder: Path) -> list[Path]:
    """The exam's own files with a column of predictions; UsageError where no exam has them."""
    name = form.partition("-")[0]
    job = _only_job([job for job in jobs if job.exam.benchmark == name])
    make = registry.get(name).prediction_files
    if job is None or make is None:
        exams = ", ".join(job.exam.benchmark for job in jobs)
        raise UsageError("submission_no_format", able=name, exams=exams)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for file, rows in make(job.exam, _only_answers(run, job)).items():
        with whole_file(folder / file) as stream:
            csv.writer(codecs.getwriter("utf-8")(stream)).writerows(rows)
        written.append(folder / file)
    return written
