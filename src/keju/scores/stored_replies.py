"""The stored replies of a run, by the exams whose requests they answer.

The rule in `keju.runs.run` decides which records count.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple
from zlib import crc32

import msgspec

from keju.benchmarks.choices import restore_order
from keju.benchmarks.samples import DigestTable
from keju.errors import DataError, UsageError
from keju.runs.journal import Records
from keju.runs.resume_compat import find_changed_files
from keju.runs.run import Run, RunRequests, key_digest
from keju.scores.exam_scores import ExamScores
from keju.scores.exams import describe_exams, make_scores
from keju.scores.parallel import map_on_all_cores
from keju.types import Reading, Record, Reply, Sample


class ExamRequests(RunRequests):
    """The requests of several exams, one exam's units after another's."""

    def __init__(self, jobs: Sequence[ExamScores]) -> None:
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

    job: ExamScores
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
    run: Run, requests: ExamRequests, *, match_keys: bool = True
) -> Iterator[StoredReply]:
    """Yield the records of a run that count, including errors, in the order of its journal.

    A later record of the same unit replaces an earlier one.
    """
    for number, _, record in run.counting(requests, match_keys=match_keys):
        position, unit = requests.locate(number)
        yield StoredReply(requests.jobs[position], unit, record)


def reread_replies(
    replies: Iterable[StoredReply], jobs: Sequence[ExamScores]
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


def load_requests(run: Run, data_dir: str | None = None) -> ExamRequests:
    """Return the requests of the exams of a run.

    Raise UsageError if their data is missing or differs from the data of the run.
    """
    jobs = make_scores(run.config(data_dir))
    requests, changed_names = (
        ExamRequests(jobs),
        find_changed_files(run.manifest, describe_exams(jobs)),
    )
    if changed_names and not _has_all_samples(run, requests):
        raise DataError("run_data_changed", file=changed_names[0])
    return requests


def _has_all_samples(run: Run, requests: ExamRequests) -> bool:
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


def iter_answers(run: Run, requests: ExamRequests | None) -> Iterator[tuple[Sample | None, Record]]:
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

    def __init__(self, requests: ExamRequests, records: Records, since: int) -> None:
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
