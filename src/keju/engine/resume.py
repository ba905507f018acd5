"""The answers that a run already has: its records that count, by the jobs whose requests they
answer.

The rule in `keju.runs.run` decides which records count.
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
from keju.engine.job import Job, describe_exams, make_jobs
from keju.engine.limits import UsageMeter
from keju.engine.parallel import map_on_all_cores
from keju.errors import DataError, UsageError
from keju.runs.journal import Journal, Records
from keju.runs.manifest import NEVER
from keju.runs.resume_compat import find_changed_files
from keju.runs.run import Run, RunRequests, key_digest, select_counting
from keju.types import FaultKind, Reading, Record, Reply, Sample

KEPT_FAULTS: frozenset[FaultKind] = frozenset({"context_length", "content_filter"})
"""Errors that are the outcome of a sample. All other errors are asked again."""


MAX_LENGTHS = 200_000
"""The most questions whose earlier replies are kept in memory for the order of the work."""


class JobRequests(RunRequests):
    """The requests of several jobs, one job's units after another's."""

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
        """Return a checksum of the gold answer of a request."""
        if self._targets:  # they were made with `by_hash`
            return self._targets[number]
        position, unit = self.locate(number)
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
        """Delete the tables. They are created again where they are needed."""
        self._targets = array("I")
        for table in ("by_hash", "by_key"):
            self.__dict__.pop(table, None)

    def locate(self, number: int) -> tuple[int, int]:
        """Return the position of the job of a request, and its unit."""
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
        """Enter the reply on the scoreboards with these readings."""
        record = msgspec.structs.replace(self.record, readings=readings)
        self.job.enter(self.unit, record, record.order)


def iter_stored_replies(
    run: Run, requests: JobRequests, *, match_keys: bool = True
) -> Iterator[StoredReply]:
    """Yield the records of a run that count, including errors, in the order of its journal.

    A later record of the same unit replaces an earlier one.
    """
    for number, _, record in run.counting(requests, match_keys=match_keys):
        position, unit = requests.locate(number)
        yield StoredReply(requests.jobs[position], unit, record)


def reread_replies(
    replies: Iterable[StoredReply], jobs: Sequence[Job]
) -> Iterator[tuple[StoredReply, tuple[Reading, ...]]]:
    """Yield stored replies of these jobs with the readings of today's readers. Use all cores."""
    positions = {id(job): position for position, job in enumerate(jobs)}

    def send(stored: StoredReply) -> tuple[int, int, Reply, tuple[int, ...]]:
        record, job = stored.record, stored.job
        return positions[id(job)], stored.unit // job.epochs, record.reply, record.order

    def read(arguments: tuple[int, int, Reply, tuple[int, ...]]) -> tuple[Reading, ...]:
        position, index, reply, order = arguments
        return jobs[position].grade(index, reply, order)

    return map_on_all_cores(read, replies, send)


def load_requests(run: Run, data_dir: str | None = None) -> JobRequests:
    """Return the requests of the exams of a run.

    Raise UsageError if their data is missing or differs from the data of the run.
    """
    jobs = make_jobs(run.config(data_dir))
    requests, changed_names = (
        JobRequests(jobs),
        find_changed_files(run.manifest, describe_exams(jobs)),
    )
    if changed_names and not _has_all_samples(run, requests):
        raise DataError("run_data_changed", file=changed_names[0])
    return requests


def _has_all_samples(run: Run, requests: JobRequests) -> bool:
    """Whether the exams have the question and the answer of every reply that counts."""
    matching = 0
    for number, _, record in run.counting(requests, match_keys=False):
        position, unit = requests.locate(number)
        job = requests.jobs[position]
        sample = restore_order(job.exam.samples[unit // job.epochs], record.order)
        if record.target != sample.target:
            return False
        matching += 1
    return matching == sum(1 for _ in run.counting())


def iter_answers(run: Run, requests: JobRequests | None) -> Iterator[tuple[Sample | None, Record]]:
    """Yield each record that counts, once and graded, after its question in the exam.

    With `requests`, records come in the order of the exams, and replies are read again where stored
    scores cannot be trusted. Without, records come in the order of the journal, with stored scores
    and without questions.
    """
    if requests is None:
        yield from ((None, record) for _, record in run.answers())
        return
    stored = StoredScores(
        requests, run.records, run.manifest.find_trusted_start(describe_exams(requests.jobs))
    )
    for number, record in run.answers(requests, read=stored.read):
        position, unit = requests.locate(number)
        job = requests.jobs[position]
        yield job.exam.samples[unit // job.epochs], record


def iter_graded_records(run: Run) -> Iterator[Record]:
    """Yield the records that count, graded. Read them again where necessary, if the data is
    available."""
    try:
        requests = load_requests(run)
    except UsageError:
        requests = None
    return (record for _, record in iter_answers(run, requests))


class StoredScores:
    """Decides which stored scores are trusted: those that reading again would give too.

    A line must have been written with today's readers and settings, in the journal from the place
    `since` on. Its checksum must match. The gold answer must be the same.
    """

    def __init__(self, requests: JobRequests, records: Records, since: int) -> None:
        self._requests = requests
        self._records = records
        self._since = since
        self._names = [tuple(reader.name for reader in job.readers) for job in requests.jobs]

    def is_trusted(self, position: int, number: int, start: int, record: Record) -> bool:
        """Whether to trust the scores of the record that `records` returned last.

        It answers request `number`, of the job at `position`. Its line begins at `start`.
        """
        return (
            start >= self._since
            and self._records.is_sealed
            and tuple([reading.reader for reading in record.readings]) == self._names[position]
            and crc32(record.target.encode()) == self._requests.target(number)
        )

    def read(self, number: int, start: int, record: Record) -> Record:
        """Return the record with its stored readings if they are trusted, else with new ones."""
        position, unit = self._requests.locate(number)
        if self.is_trusted(position, number, start, record):
            return record
        job = self._requests.jobs[position]
        readings = job.grade(unit // job.epochs, record.reply, record.order)
        return msgspec.structs.replace(record, readings=readings)


class ReusedUnits:
    """The units that need not be asked, by job."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self.done = [bytearray(job.units) for job in jobs]
        self.damaged = 0
        """Journal lines that could not be read."""
        self.spent = UsageMeter()
        """The cost of the jobs' lines in the journal, including those that no longer count."""
        self.unused = 0
        """Questions with stored replies that would no longer count."""
        self.lengths: dict[str, float] = {}
        """Tokens of earlier replies to questions, by their ids, where another run has them."""

    @property
    def count(self) -> int:
        """The number of units that need not be asked."""
        return sum(done_mask.count(1) for done_mask in self.done)


def recall(
    requests: JobRequests,
    path: Path,
    *,
    trusted_from: int = NEVER,
    ask_again: frozenset[FaultKind] = frozenset(),
    find_unused: bool = False,
    enter_errors: bool = False,
) -> ReusedUnits:
    """Enter the stored replies that answer exactly these requests. `path` is their journal.

    Stored scores are used from the place `trusted_from` on (see `StoredScores`). Errors that are
    asked again do not count: all but `KEPT_FAULTS`, and errors of the kinds `ask_again`. With
    `enter_errors` they are entered on the scoreboards until a reply arrives.
    """
    jobs = requests.jobs
    recalled = ReusedUnits(jobs)
    if not path.is_file() or not path.stat().st_size:
        requests.fresh = True
        return recalled
    records = Records(path.parent, path.name)
    metered_records = _meter_records(jobs, records.iter_with_positions(), recalled.spent)
    stored, unmatched = StoredScores(requests, records, trusted_from), _UnmatchedReplies(requests)
    on_other = unmatched.see if find_unused else lambda _: None
    for number, start, record in select_counting(
        metered_records, requests.by_hash, on_unmatched=on_other
    ):
        position, unit = requests.locate(number)
        job, error = jobs[position], record.reply.fault
        if error is not None and error.kind not in KEPT_FAULTS - ask_again:
            recalled.done[position][unit] = 0  # replaces an error that was kept before
            if enter_errors:
                job.recall(unit, record, trusted=False)
            continue
        trusted = stored.is_trusted(position, number, start, record)
        job.recall(unit, record, trusted=trusted)
        recalled.done[position][unit] = 1
    recalled.damaged = records.damaged
    recalled.unused = unmatched.count_unused(recalled)
    return recalled


class _UnmatchedReplies:
    """Records that answer none of today's requests, counted by question.

    Their questions are asked differently today, or not at all. A question that also has an answer
    is not counted.
    """

    def __init__(self, requests: JobRequests) -> None:
        self._requests = requests
        self._changed_requests = bytearray()
        self._removed_questions = DigestTable()

    def see(self, record: Record) -> None:
        """Note a reply. An error is not a loss."""
        if record.reply.error is not None:
            return
        key = key_digest(record.bench, record.id, record.arm, record.epoch)
        table, flags = self._requests.by_key, self._changed_requests
        flags += bytes(len(table) - len(flags))
        number = table.find(key)
        if number >= 0:
            flags[number] = 1
        else:
            self._removed_questions.add(key)

    def count_unused(self, recalled: ReusedUnits) -> int:
        """Return how many questions have stored replies of which none counts."""
        done = b"".join(recalled.done)
        pairs = zip(self._changed_requests, done, strict=False)  # there may be none of the former
        unanswered = sum(is_stored and not is_done for is_stored, is_done in pairs)
        return unanswered + len(self._removed_questions)


def copy_cached(
    requests: JobRequests,
    recalled: ReusedUnits,
    cache: Path,
    journal: Journal,
    *,
    ask_again: frozenset[FaultKind] = frozenset(),
) -> None:
    """Enter replies of the run in `cache` that this run lacks.

    Replies are read again and copied into the journal, so that the folder stays complete.
    """
    done_before = [bytes(done_mask) for done_mask in recalled.done]
    records = Records(cache)

    def note_length(record: Record) -> None:
        if record.reply.usage.output and len(recalled.lengths) < MAX_LENGTHS:
            recalled.lengths[record.id] = record.reply.usage.output

    for number, _, record in select_counting(
        records.iter_with_positions(), requests.by_hash, on_unmatched=note_length
    ):
        position, unit = requests.locate(number)
        error = record.reply.fault
        if not done_before[position][unit] and (
            error is None or error.kind in KEPT_FAULTS - ask_again
        ):
            readings = requests.jobs[position].recall(unit, record, trusted=False)
            recalled.done[position][unit] = 1
            origin = record.origin or cache.name
            journal.append([msgspec.structs.replace(record, readings=readings, origin=origin)])
    recalled.damaged += records.damaged


def _meter_records(
    jobs: Sequence[Job], records: Iterable[tuple[int, Record]], meter: UsageMeter
) -> Iterator[tuple[int, Record]]:
    """Yield the same records. For records of the jobs, count the cost that this run paid."""
    job_keys = {(job.exam.benchmark, job.arm) for job in jobs}
    for start, record in records:
        if not record.origin and (record.bench, record.arm) in job_keys:
            meter.count(record.reply, record.faults)
        yield start, record
