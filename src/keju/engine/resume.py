"""What a run has answered already: its records that count, by the jobs whose requests they answer.

Which records count says the rule in `keju.runs.run`.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import msgspec

from keju.benchmarks.choices import restore_order
from keju.benchmarks.samples import DigestTable
from keju.engine.cores import on_all_cores
from keju.engine.job import Job, exams_of, make_jobs
from keju.engine.limits import Meter
from keju.errors import DataError, UsageError
from keju.runs.journal import Journal, Records
from keju.runs.manifest import NEVER
from keju.runs.run import Requests, Run, counting, key_digest
from keju.runs.sameness import changed_files
from keju.types import FaultKind, Reading, Record, Reply, Sample

KEPT_FAULTS: frozenset[FaultKind] = frozenset({"context_length", "content_filter"})
"""Errors that are the outcome of a sample; all others are asked again."""


MOST_LENGTHS = 200_000
"""Questions whose earlier replies are kept in mind for the order of the work."""


class JobRequests(Requests):
    """The requests of several jobs, one job's units after the other's."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self.jobs = jobs
        self._targets = array("I")
        self._starts = [0, *accumulate(job.units for job in jobs)]

    @cached_property
    def by_hash(self) -> DigestTable:
        """The numbers of the requests by hash."""
        table = DigestTable(size=self._starts[-1])
        for job in self.jobs:
            for unit in range(job.units):
                table.add(bytes.fromhex(job.request(unit).hash))
                if unit % job.epochs == 0:
                    target = crc32(job.exam.samples[unit // job.epochs].target.encode())
                self._targets.append(target)
        return table

    def target(self, number: int) -> int:
        """A checksum of the gold answer of a request."""
        if self._targets:  # they were made with `by_hash`
            return self._targets[number]
        position, unit = self.place(number)
        job = self.jobs[position]
        return crc32(job.exam.samples[unit // job.epochs].target.encode())

    @cached_property
    def by_key(self) -> DigestTable:
        """The numbers of the requests by key."""
        digests = (
            key_digest(job.exam.benchmark, sample.id, job.arm, epoch)
            for job in self.jobs
            for sample in job.exam.samples
            for epoch in range(job.epochs)
        )
        return DigestTable(digests, size=self._starts[-1])

    def forget(self) -> None:
        """Let go of the tables, which are made again where they are needed."""
        self._targets = array("I")
        for table in ("by_hash", "by_key"):
            self.__dict__.pop(table, None)

    def place(self, number: int) -> tuple[int, int]:
        """The position of the job, and its unit, that a request is of."""
        position = bisect_right(self._starts, number) - 1
        return position, number - self._starts[position]


class StoredReply(NamedTuple):
    """A record that counts, with the job and unit that it answers."""

    job: Job
    unit: int
    record: Record

    @property
    def sample(self) -> Sample:
        """The question with its options in the order in which they were shown."""
        return restore_order(self.job.exam.samples[self.unit // self.job.epochs], self.record.order)

    def enter(self, readings: tuple[Reading, ...]) -> None:
        """Enter the reply on the scoreboards as it was read."""
        record = msgspec.structs.replace(self.record, readings=readings)
        self.job.enter(self.unit, record, record.order)


def stored_replies(
    run: Run, requests: JobRequests, *, match_keys: bool = True
) -> Iterator[StoredReply]:
    """The records of a run that count, errors among them, in the order of its journal.

    A later one of the same unit takes the place of an earlier one.
    """
    for number, _, record in run.counting(requests, match_keys=match_keys):
        position, unit = requests.place(number)
        yield StoredReply(requests.jobs[position], unit, record)


def read_anew(
    replies: Iterable[StoredReply], jobs: Sequence[Job]
) -> Iterator[tuple[StoredReply, tuple[Reading, ...]]]:
    """Stored replies of these jobs with what their readers make of them today, by all cores."""
    positions = {id(job): position for position, job in enumerate(jobs)}

    def send(stored: StoredReply) -> tuple[int, int, Reply, tuple[int, ...]]:
        record, job = stored.record, stored.job
        return positions[id(job)], stored.unit // job.epochs, record.reply, record.order

    def read(sent: tuple[int, int, Reply, tuple[int, ...]]) -> tuple[Reading, ...]:
        position, index, reply, order = sent
        return jobs[position].grade(index, reply, order)

    return on_all_cores(read, replies, send)


def requests_of(run: Run, data_dir: str | None = None) -> JobRequests:
    """The requests of the exams of a run.

    UsageError where their data is not at hand, or is not what the run was asked and graded by.
    """
    jobs = make_jobs(run.config(data_dir))
    requests, changed = JobRequests(jobs), changed_files(run.manifest, exams_of(jobs))
    if changed and not _all_fit(run, requests):
        raise DataError("run_data_changed", file=changed[0])
    return requests


def _all_fit(run: Run, requests: JobRequests) -> bool:
    """Whether the exams have the question and the answer of every reply that counts."""
    fitting = 0
    for number, _, record in run.counting(requests, match_keys=False):
        position, unit = requests.place(number)
        job = requests.jobs[position]
        sample = restore_order(job.exam.samples[unit // job.epochs], record.order)
        if record.target != sample.target:
            return False
        fitting += 1
    return fitting == sum(1 for _ in run.counting())


def answers_of(run: Run, requests: JobRequests | None) -> Iterator[tuple[Sample | None, Record]]:
    """Each record that counts, once and graded, after its question as the exam has it.

    In the order of the exams, and read anew where stored scores cannot be believed; without
    `requests` in the order of the journal, as stored, and without questions.
    """
    if requests is None:
        yield from ((None, record) for _, record in run.answers())
        return
    stored = StoredScores(
        requests, run.records, run.manifest.believed_from(exams_of(requests.jobs))
    )
    for number, record in run.answers(requests, read=stored.read):
        position, unit = requests.place(number)
        job = requests.jobs[position]
        yield job.exam.samples[unit // job.epochs], record


def graded_records(run: Run) -> Iterator[Record]:
    """The records that count, graded; read anew where that is called for and the data is there."""
    try:
        requests = requests_of(run)
    except UsageError:
        requests = None
    return (record for _, record in answers_of(run, requests))


class StoredScores:
    """Which scores of a journal's lines are believed: those that reading anew would give too.

    A line must have been written under the readers and settings of today, in the journal from the
    place `since` on; its checksum must show that it is what was written; and the gold answer must
    be the same.
    """

    def __init__(self, requests: JobRequests, records: Records, since: int) -> None:
        self._requests = requests
        self._records = records
        self._since = since
        self._names = [tuple(reader.name for reader in job.readers) for job in requests.jobs]

    def believed(self, position: int, number: int, start: int, record: Record) -> bool:
        """Whether the scores of the record that `records` gave last are believed.

        It answers request `number`, of the job at `position`, and its line begins at `start`.
        """
        return (
            start >= self._since
            and self._records.sealed
            and tuple([reading.reader for reading in record.readings]) == self._names[position]
            and crc32(record.target.encode()) == self._requests.target(number)
        )

    def read(self, number: int, start: int, record: Record) -> Record:
        """The record with its stored readings if they are believed, else with new ones."""
        position, unit = self._requests.place(number)
        if self.believed(position, number, start, record):
            return record
        job = self._requests.jobs[position]
        readings = job.grade(unit // job.epochs, record.reply, record.order)
        return msgspec.structs.replace(record, readings=readings)


class Recalled:
    """Which units need not be asked, by job."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self.done = [bytearray(job.units) for job in jobs]
        self.damaged = 0
        """Journal lines that could not be read."""
        self.spent = Meter()
        """What the jobs' lines in the journal have cost, with those that no longer count."""
        self.unused = 0
        """Questions with stored replies that would no longer count."""
        self.lengths: dict[str, float] = {}
        """Tokens of earlier replies to questions, by their ids, where another run has them."""

    @property
    def count(self) -> int:
        """How many units are known."""
        return sum(known.count(1) for known in self.done)


def recall(
    requests: JobRequests,
    path: Path,
    *,
    believed_from: int = NEVER,
    ask_again: frozenset[FaultKind] = frozenset(),
    find_unused: bool = False,
    enter_errors: bool = False,
) -> Recalled:
    """Enter the stored replies that answer exactly these requests; `path` is their journal.

    Scores are taken as stored from the place `believed_from` on (see `StoredScores`). Errors that
    are asked again count for nothing: all but `KEPT_FAULTS`, and those of the kinds `ask_again`.
    With `enter_errors` they stand on the scoreboards all the same, as long as there is no reply.
    """
    jobs = requests.jobs
    recalled = Recalled(jobs)
    if not path.is_file() or not path.stat().st_size:
        requests.fresh = True
        return recalled
    records = Records(path.parent, path.name)
    placed = _metered(jobs, records.placed(), recalled.spent)
    stored, others = StoredScores(requests, records, believed_from), _Others(requests)
    on_other = others.see if find_unused else lambda _: None
    for number, start, record in counting(placed, requests.by_hash, on_other=on_other):
        position, unit = requests.place(number)
        job, error = jobs[position], record.reply.fault
        if error is not None and error.kind not in KEPT_FAULTS - ask_again:
            recalled.done[position][unit] = 0  # whichever error was kept before
            if enter_errors:
                job.recall(unit, record, trusted=False)
            continue
        trusted = stored.believed(position, number, start, record)
        job.recall(unit, record, trusted=trusted)
        recalled.done[position][unit] = 1
    recalled.damaged = records.damaged
    recalled.unused = others.unused(recalled)
    return recalled


class _Others:
    """Records that answer none of today's requests, counted by question.

    Their questions are asked otherwise today, or are not asked. A question that has its answer
    beside such a record lacks nothing.
    """

    def __init__(self, requests: JobRequests) -> None:
        self._requests = requests
        self._asked_otherwise = bytearray()
        self._not_asked = DigestTable()

    def see(self, record: Record) -> None:
        """Take note of a reply; an error is no loss."""
        if record.reply.error is not None:
            return
        key = key_digest(record.bench, record.id, record.arm, record.epoch)
        table, flags = self._requests.by_key, self._asked_otherwise
        flags += bytes(len(table) - len(flags))
        number = table.find(key)
        if number >= 0:
            flags[number] = 1
        else:
            self._not_asked.add(key)

    def unused(self, recalled: Recalled) -> int:
        """How many questions have stored replies of which none counts."""
        done = b"".join(recalled.done)
        pairs = zip(self._asked_otherwise, done, strict=False)  # there may be none of the former
        lacking = sum(seen and not known for seen, known in pairs)
        return lacking + len(self._not_asked)


def copy_cached(
    requests: JobRequests,
    recalled: Recalled,
    cache: Path,
    journal: Journal,
    *,
    ask_again: frozenset[FaultKind] = frozenset(),
) -> None:
    """Enter what the run in `cache` answers and this one lacks.

    Replies are read anew and copied into the journal, so that the folder stays complete in itself.
    """
    before = [bytes(known) for known in recalled.done]
    records = Records(cache)

    def note_length(record: Record) -> None:
        if record.reply.usage.output and len(recalled.lengths) < MOST_LENGTHS:
            recalled.lengths[record.id] = record.reply.usage.output

    for number, _, record in counting(records.placed(), requests.by_hash, on_other=note_length):
        position, unit = requests.place(number)
        error = record.reply.fault
        if not before[position][unit] and (error is None or error.kind in KEPT_FAULTS - ask_again):
            readings = requests.jobs[position].recall(unit, record, trusted=False)
            recalled.done[position][unit] = 1
            origin = record.origin or cache.name
            journal.append([msgspec.structs.replace(record, readings=readings, origin=origin)])
    recalled.damaged += records.damaged


def _metered(
    jobs: Sequence[Job], placed: Iterable[tuple[int, Record]], spent: Meter
) -> Iterator[tuple[int, Record]]:
    """The same records; what this run paid for those of the jobs is counted on the way."""
    own = {(job.exam.benchmark, job.arm) for job in jobs}
    for start, record in placed:
        if not record.origin and (record.bench, record.arm) in own:
            spent.count(record.reply, record.faults)
        yield start, record
