"""The answers that a run already has: its records that count, by the jobs whose requests they
answer.

The rule in `keju.runs.run` decides which records count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from keju.benchmarks.samples import DigestTable
from keju.runs.journal import Journal, Records
from keju.runs.manifest import NEVER
from keju.runs.run import key_digest, select_counting
from keju.scores.exam_scores import ExamScores
from keju.scores.stored_replies import ExamRequests, StoredScores
from keju.scores.usage import UsageMeter
from keju.types import FaultKind, Record

KEPT_FAULTS: frozenset[FaultKind] = frozenset({"context_length", "content_filter"})
"""Errors that are the outcome of a sample. All other errors are asked again."""


MAX_LENGTHS = 200_000
"""The most questions whose earlier replies are kept in memory for the order of the work."""


class ReusedUnits:
    """The units that need not be asked, by job."""

    def __init__(self, jobs: Sequence[ExamScores]) -> None:
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
    requests: ExamRequests,
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

    def __init__(self, requests: ExamRequests) -> None:
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
    requests: ExamRequests,
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
    jobs: Sequence[ExamScores], records: Iterable[tuple[int, Record]], meter: UsageMeter
) -> Iterator[tuple[int, Record]]:
    """Yield the same records. For records of the jobs, count the cost that this run paid."""
    job_keys = {(job.exam.benchmark, job.arm) for job in jobs}
    for start, record in records:
        if not record.origin and (record.bench, record.arm) in job_keys:
            meter.count(record.reply, record.faults)
        yield start, record
