"""A run as a table: one row a sample and epoch, in the order of the exam.

The journal is read twice: once for where each row's last record stands, once to write the rows one
by one, so that memory holds places and never replies. Question and reply texts are licensed data
and stay out unless they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from keju.benchmarks.choices import as_shown
from keju.engine.job import Job
from keju.engine.resume import KEPT_FAULTS
from keju.errors import DataError, UsageError
from keju.files import natural_key
from keju.runs.journal import FILE
from keju.runs.judged import read_grades
from keju.runs.manifest import Manifest
from keju.types import Answer, Fault, Reading, Record, Sample, Score

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

_NOT_SCORED = ("error", "ungraded")
_UNREAD = Reading("", Answer(), Score(0.0, "ungraded"))


class _HeadReply(msgspec.Struct, gc=False):
    error: Fault | None = None


class _Head(msgspec.Struct, gc=False):
    """What tells which row a journal line belongs to."""

    bench: str
    id: str
    hash: str
    reply: _HeadReply
    epoch: int = 0
    arm: str = ""


class Table(NamedTuple):
    """The rows of a run, ready to be written."""

    columns: dict[str, str]
    rows: Callable[[], Iterator[Row]]


class Place(NamedTuple):
    """Where a record stands in the journal, and which unit of which exam it answers."""

    start: int
    job: Job | None = None
    unit: int = 0


class Found(NamedTuple):
    """A record with the question it answers, where that is known."""

    record: Record
    sample: Sample | None


def read_table(
    run: Path,
    manifest: Manifest,
    jobs: Sequence[Job] | None,
    *,
    full_text: bool = False,
) -> Table:
    """The table of the run in `run`.

    With `jobs` (the run's exams, loaded) the rows stand in the order of the exams and only replies
    to their requests count. Without them the rows are sorted by id, and what only the exam knows
    is left empty.
    """
    places = _places(run, manifest, jobs)
    if not places:
        raise UsageError(f"run '{run.name}' has no answers to export")
    beside = _other_readers(manifest)
    columns = dict(COLUMNS)
    for reader in beside:
        columns |= {f"answer_{reader}": "VARCHAR", f"outcome_{reader}": "VARCHAR"}
    if full_text:
        columns |= TEXTS

    def rows() -> Iterator[Row]:
        for found in _records(run, places):
            row = _row(run.name, found, beside)
            yield row | (_texts(found) if full_text else {})

    return Table(columns, rows)


def records_of(run: Path, job: Job) -> Iterator[Record]:
    """The records of a run that answer the requests of one exam, in its order."""
    return (found.record for found in _records(run, _by_exam(run, [job])))


def _other_readers(manifest: Manifest) -> list[str]:
    """The readers that stand beside the headline's in any exam of the run."""
    names = [name for exam in manifest.benchmarks for name in list(exam.readers)[1:]]
    return list(dict.fromkeys(names))


def _places(run: Path, manifest: Manifest, jobs: Sequence[Job] | None) -> list[Place]:
    if jobs is not None:
        return _by_exam(run, jobs)
    order = {exam.name: number for number, exam in enumerate(manifest.benchmarks)}
    latest = _latest(run, lambda head: (head.bench, head.id, head.arm, head.epoch))
    keyed = sorted(
        ((order.get(bench, len(order)), natural_key(key), arm, epoch), start)
        for (bench, key, arm, epoch), start in latest.items()
    )
    return [Place(start) for _, start in keyed]


def _by_exam(run: Path, jobs: Sequence[Job]) -> list[Place]:
    """By request, as a resumed run finds its replies; by id where no request is known any more."""
    requests = {
        job.request(unit).hash: (number, unit)
        for number, job in enumerate(jobs)
        for unit in range(job.units)
    }
    latest = _latest(run, lambda head: requests.get(head.hash))
    if not latest:
        ids = {
            (job.exam.benchmark, sample.id, epoch): (number, index * job.epochs + epoch)
            for number, job in enumerate(jobs)
            for index, sample in enumerate(job.exam.samples)
            for epoch in range(job.epochs)
        }
        latest = _latest(run, lambda head: ids.get((head.bench, head.id, head.epoch)))
    return [Place(start, jobs[number], unit) for (number, unit), start in sorted(latest.items())]


def _latest(run: Path, key_of: Callable[[_Head], Any]) -> dict[Any, int]:
    """Where the record that counts stands, by key; an error never replaces a reply."""
    decode = msgspec.json.Decoder(_Head).decode
    found: dict[Any, int] = {}
    failed: set[Any] = set()
    position = 0
    for line in _lines(run):
        start, position = position, position + len(line)
        if line.startswith(b'{"kind":') or not line.endswith(b"\n"):
            continue
        try:
            head = decode(line)
        except msgspec.DecodeError:
            continue
        key = key_of(head)
        error = head.reply.error
        retried = error is not None and error.kind not in KEPT_FAULTS
        if key is None or (retried and key in found and key not in failed):
            continue
        found[key] = start
        if retried:
            failed.add(key)
        else:
            failed.discard(key)
    return found


def _lines(run: Path) -> Iterator[bytes]:
    try:
        with (run / FILE).open("rb", buffering=1 << 20) as lines:
            yield from lines
    except OSError as error:
        raise DataError(f"cannot read {run / FILE}: {error.strerror}") from None


def _records(run: Path, places: Sequence[Place]) -> Iterator[Found]:
    """The records at `places`, with the judges' grades entered.

    Readings of other readers than the run's own, left over from an earlier sitting, are made anew.
    """
    decode = msgspec.json.Decoder(Record).decode
    grades = read_grades(run)
    with (run / FILE).open("rb") as journal:
        for start, job, unit in places:
            journal.seek(start)
            record = decode(journal.readline())
            readings = grades.get(record.hash, record.readings)
            sample = None
            if job is not None:
                index = unit // job.epochs
                sample = as_shown(job.exam.samples[index], record.order)
                if [r.reader for r in readings] != [reader.name for reader in job.readers]:
                    readings = job.grade(index, record.reply, record.order)
            yield Found(msgspec.structs.replace(record, readings=readings), sample)


def _row(run: str, found: Found, beside: Sequence[str]) -> Row:
    record, sample = found
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
        "outcome": score.outcome,
        "score": None if score.outcome in _NOT_SCORED else score.value,
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
    }
    return row | _others(others, beside)


def _others(readings: Sequence[Reading], beside: Sequence[str]) -> Row:
    by_name = {reading.reader: reading for reading in readings}
    cells: Row = {}
    for name in beside:
        reading = by_name.get(name)
        cells[f"answer_{name}"] = reading.answer.value if reading else None
        cells[f"outcome_{name}"] = reading.score.outcome if reading else None
    return cells


def _texts(found: Found) -> Row:
    record, sample = found
    return {
        "question": sample.text if sample else None,
        "choices": (list(sample.choices) or None) if sample else None,
        "reply": record.reply.text,
        "reasoning": record.reply.reasoning or None,
    }
