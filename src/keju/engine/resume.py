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

from keju.benchmarks.choices import as_shown
from keju.benchmarks.samples import DigestTable
from keju.engine.budget import Meter
from keju.engine.job import Job
from keju.errors import Notice
from keju.runs.journal import Journal, Records
from keju.runs.run import Requests, Run, counting, damage_notices, key_digest
from keju.types import FaultKind, Reading, Record, Sample

KEPT_FAULTS: frozenset[FaultKind] = frozenset({"context_length", "content_filter"})
"""Errors that are the outcome of a sample; all others are asked again."""


class JobRequests(Requests):
    """The requests of several jobs, one job's units after the other's."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self.jobs = jobs
        self.targets = array("I")
        """A checksum of each request's target, made with `by_hash`."""
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
                self.targets.append(target)
        return table

    @cached_property
    def by_key(self) -> DigestTable:
        """The numbers of the requests by key."""
        return DigestTable(
            key_digest(job.exam.benchmark, sample.id, job.arm, epoch)
            for job in self.jobs
            for sample in job.exam.samples
            for epoch in range(job.epochs)
        )

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
        return as_shown(self.job.exam.samples[self.unit // self.job.epochs], self.record.order)

    def enter(self) -> tuple[Reading, ...]:
        """Read the reply anew, enter it on the scoreboards, and return what was read."""
        return self.job.recall(self.unit, self.record, trusted=False)


def stored_replies(
    run: Run, requests: JobRequests, *, match_keys: bool = True
) -> Iterator[StoredReply]:
    """The records of a run that count, errors among them, in the order of its journal.

    A later one of the same unit takes the place of an earlier one.
    """
    for number, _, record in run.counting(requests, match_keys=match_keys):
        position, unit = requests.place(number)
        yield StoredReply(requests.jobs[position], unit, record)


def answers_of(run: Run, requests: JobRequests | None) -> Iterator[tuple[Sample | None, Record]]:
    """Each record that counts, once and graded, after its question as the exam has it.

    In the order of the exams; without `requests` in that of the journal, and without questions.
    """
    for number, record in run.answers(requests):
        sample = None
        if requests is not None:
            position, unit = requests.place(number)
            job = requests.jobs[position]
            sample = job.exam.samples[unit // job.epochs]
        yield sample, record


class Recalled:
    """Which units need not be asked, by job."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self.done = [bytearray(job.units) for job in jobs]
        self.damaged = 0
        """Journal lines that could not be read."""
        self.spent = Meter()
        """What the jobs' lines in the journal have cost, with those that no longer count."""

    @property
    def count(self) -> int:
        """How many units are known."""
        return sum(known.count(1) for known in self.done)

    @property
    def notices(self) -> list[Notice]:
        """What a reader of the results must know: lines that could not be read."""
        return damage_notices(self.damaged)


def recall(
    requests: JobRequests,
    path: Path,
    *,
    trusted: bool = False,
    ask_again: frozenset[FaultKind] = frozenset(),
) -> Recalled:
    """Enter the stored replies that answer exactly these requests; `path` is their journal.

    Scores are taken as stored where the readers have not changed since (`trusted`). Errors that
    are asked again count for nothing: all but `KEPT_FAULTS`, and those of the kinds `ask_again`.
    """
    jobs = requests.jobs
    recalled = Recalled(jobs)
    if not path.is_file() or not path.stat().st_size:
        requests.fresh = True
        return recalled
    names = [tuple(reader.name for reader in job.readers) for job in jobs]
    records = Records(path.parent, path.name)
    placed = _metered(jobs, records.placed(), recalled.spent)
    for number, _, record in counting(placed, requests.by_hash):
        position, unit = requests.place(number)
        job, error = jobs[position], record.reply.fault
        if error is not None and error.kind not in KEPT_FAULTS - ask_again:
            recalled.done[position][unit] = 0  # whichever error was kept before
            continue
        unchanged = (
            trusted
            and tuple([reading.reader for reading in record.readings]) == names[position]
            and crc32(record.target.encode()) == requests.targets[number]
        )
        job.recall(unit, record, trusted=unchanged)
        recalled.done[position][unit] = 1
    recalled.damaged = records.damaged
    return recalled


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
    for number, _, record in counting(records.placed(), requests.by_hash):
        position, unit = requests.place(number)
        error = record.reply.fault
        if not before[position][unit] and (error is None or error.kind in KEPT_FAULTS - ask_again):
            requests.jobs[position].recall(unit, record, trusted=False)
            recalled.done[position][unit] = 1
            origin = record.origin or cache.name
            journal.append([msgspec.structs.replace(record, origin=origin)])
    recalled.damaged += records.damaged


def _metered(
    jobs: Sequence[Job], placed: Iterable[tuple[int, Record]], spent: Meter
) -> Iterator[tuple[int, Record]]:
    """The same records; what this run paid for those of the jobs is counted on the way."""
    own = {(job.exam.benchmark, job.arm) for job in jobs}
    for start, record in placed:
        if not record.origin and (record.bench, record.arm) in own:
            spent.count(record.reply.usage, record.faults)
        yield start, record
