"""What earlier sittings have answered: found by the hash of the request, never by position."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from keju.engine.budget import Meter
from keju.engine.job import Job
from keju.runs.journal import Damage, Journal, read_records
from keju.types import FaultKind, Record

KEPT_FAULTS: frozenset[FaultKind] = frozenset({"context_length", "content_filter"})
"""Errors that are the outcome of a sample; all others are asked again."""


Places = dict[str, tuple[int, int, str]]
"""Hash of a request to the number of its job, its unit, and the target of its sample."""


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


def recall(
    jobs: Sequence[Job],
    journal: Journal,
    *,
    trusted: bool,
    cache: Path | None = None,
    ask_again: frozenset[FaultKind] = frozenset(),
) -> Recalled:
    """Enter all stored replies that answer exactly these requests.

    Scores are taken as stored where the readers have not changed since (`trusted`). Final errors
    of the kinds `ask_again` count for nothing. Replies from another run (`cache`) are read anew
    and copied into this journal, so that the folder stays complete in itself.
    """
    recalled = Recalled(jobs)
    if not journal.path.stat().st_size and cache is None:
        return recalled
    places = _places(jobs)
    damage = Damage()
    kept = KEPT_FAULTS - ask_again
    _remember(recalled, jobs, journal.path, places, trusted=trusted, damage=damage, kept=kept)
    if cache is not None:
        for number, unit, _, record in _known(read_records(cache, damage), places, kept):
            if not recalled.done[number][unit]:
                jobs[number].recall(unit, record, trusted=False)
                recalled.done[number][unit] = 1
                journal.append(
                    [msgspec.structs.replace(record, origin=record.origin or cache.name)]
                )
    recalled.damaged = damage.lines
    return recalled


def remember(jobs: Sequence[Job], path: Path) -> Recalled:
    """Enter what a journal holds, read anew, without opening it for writing."""
    recalled = Recalled(jobs)
    if path.is_file():
        damage = Damage()
        _remember(recalled, jobs, path, _places(jobs), trusted=False, damage=damage)
        recalled.damaged = damage.lines
    return recalled


def _remember(
    recalled: Recalled,
    jobs: Sequence[Job],
    path: Path,
    places: Places,
    *,
    trusted: bool,
    damage: Damage,
    kept: frozenset[FaultKind] = KEPT_FAULTS,
) -> None:
    """Enter the first reply to each request; an error only until there is one."""
    names = [tuple(reader.name for reader in job.readers) for job in jobs]
    records = _metered(jobs, read_records(path.parent, damage, path.name), recalled.spent)
    for number, unit, target, record in _known(records, places, kept):
        mends = record.reply.error is None and unit in jobs[number].errors
        if mends or not recalled.done[number][unit]:
            same = tuple([reading.reader for reading in record.readings]) == names[number]
            unchanged = trusted and same and record.target == target
            jobs[number].recall(unit, record, trusted=unchanged)
            recalled.done[number][unit] = 1


def stored_replies(
    jobs: Sequence[Job], run: Path, *, by_id: bool = True
) -> Iterator[tuple[Job, int, Record]]:
    """The records of a stored run that belong to these jobs, each with its job and unit.

    Errors are among them; a later record of a unit, say of a resumed run, replaces an earlier one.
    Where no request of the run has the hash it would have today (it was rendered by another
    version, say), replies are matched by sample id instead, the last one winning: that needs the
    data of the run, so it can be ruled out (`by_id`).
    """
    matched, places = False, _places(jobs)
    for record in read_records(run):
        if record.hash in places:
            matched = True
            number, unit, _ = places[record.hash]
            yield jobs[number], unit, record
    if matched or not by_id:
        return
    named = {
        (job.exam.benchmark, sample.id): (number, index)
        for number, job in enumerate(jobs)
        for index, sample in enumerate(job.exam.samples)
    }
    for record in read_records(run):
        place = named.get((record.bench, record.id))
        if place is not None and record.epoch < jobs[place[0]].epochs:
            job = jobs[place[0]]
            yield job, place[1] * job.epochs + record.epoch, record


def _metered(jobs: Sequence[Job], records: Iterable[Record], spent: Meter) -> Iterator[Record]:
    """The same records; what this run paid for those of the jobs is counted on the way."""
    own = {(job.exam.benchmark, job.arm) for job in jobs}
    for record in records:
        if not record.origin and (record.bench, record.arm) in own:
            spent.count(record.reply.usage, record.faults)
        yield record


def _places(jobs: Sequence[Job]) -> Places:
    return {
        job.request(unit).hash: (number, unit, job.exam.samples[unit // job.epochs].target)
        for number, job in enumerate(jobs)
        for unit in range(job.units)
    }


def _known(
    records: Iterable[Record], places: Places, kept: frozenset[FaultKind]
) -> Iterator[tuple[int, int, str, Record]]:
    """The records that answer one of the requests, errors that are asked again left out."""
    for record in records:
        place = places.get(record.hash)
        error = record.reply.error
        if place is not None and (error is None or error.kind in kept):
            yield *place, record
