"""The order of the work: equal prefixes together, the longest first, seeded; in blocks where a rule
may stop early.

A rule may be evaluated repeatedly only if the questions asked so far are a random part of the exam.
So the questions are put in a seeded random order in which every beginning has each subset in
proportion. Questions with a shared context stay together. The rule is evaluated only when every
question of a block has its record, so that questions with fast replies are not favoured. Inside a
block the queue keeps equal prefixes together as usual.

The order depends only on the seed and the questions. A resumed run continues where it was and
repeats the earlier evaluations.
"""

from __future__ import annotations

import asyncio
import random
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from statistics import fmean
from time import monotonic
from typing import NamedTuple, Protocol, runtime_checkable

from keju.benchmarks.base import Exam
from keju.engine.job import Job
from keju.runs.manifest import StoredStop
from keju.scores.stopping import Pause, StoppingRule

LONGEST_PREFILL = 2.0
"""Seconds after which a server has certainly computed a prefix. The longest wait for a pilot."""
ROUNDS_AHEAD = 3
"""A pilot goes before its group by this many rounds of requests. By then most pilots have ended."""
MAX_SORTED = 20_000
"""Larger groups are not sorted by expected length."""


class Unit(NamedTuple):
    """One sample in one epoch, to be asked."""

    job: Job
    number: int


class WaitForPrefix(NamedTuple):
    """Work exists, but it shares a prefix with a request in flight, which is worth waiting for."""

    seconds: float
    """The longest wait."""


Expected = Callable[[Job, Sequence[int]], Sequence[float]]
"""Estimates how long the replies to some units of a job will be, by any measure. Only their order
counts."""
Where = tuple[int, str]
"""A subset of an exam. Its questions share a prefix."""


@dataclass(slots=True, eq=False)
class SubsetUnits:
    """The units of one subset that are still to be asked. They share a prefix.

    `jobs` are the arms of its exam. Place p of `units` is unit ``p // len(jobs)`` of the arm ``p %
    len(jobs)``.
    """

    where: Where
    jobs: Sequence[Job]
    units: array[int]
    taken_count: int = 0
    lanes: int = 0
    preceding_units: int = 0
    """The number of units in the groups before this one."""
    pilot: Unit | None = None
    """The first of its units, as long as it has no reply."""
    pilot_started: float = 0.0
    """The time at which the pilot was taken."""

    @property
    def remaining(self) -> int:
        return len(self.units) - self.taken_count

    def take(self) -> Unit:
        """Take the next unit of the group."""
        self.taken_count += 1
        unit, arm = divmod(self.units[self.taken_count - 1], len(self.jobs))
        return Unit(self.jobs[arm], unit)

    def split(self, limit: int) -> SubsetUnits:
        """Remove up to `limit` of the remaining units from the end and return them as a group."""
        size = min(limit, self.remaining)
        removed_units = self.units[len(self.units) - size :]
        del self.units[len(self.units) - size :]
        return SubsetUnits(self.where, self.jobs, removed_units)


class UnitQueue:
    """Hands out work, one unit at a time, so that a server computes a shared prefix only once.

    Without lanes all workers empty one group after the other. A server can share a prefix only when
    it has computed it. So one unit of each group, its pilot, goes before the others by three rounds
    of `ahead` requests. Groups whose pilot has a reply come first.

    If the server has reported that it is `caching`, the other units wait until the pilot's prefix
    is computed. They wait at most for the shortest reply to a pilot so far, or `LONGEST_PREFILL`.
    They do not wait near the end, where slots would be idle. Three groups of four units, with
    pilots four units ahead::

        a b a a a c b b b c c c

    With `lanes` (a server that keeps one prompt per slot) each worker stays on one group as long as
    there are groups, so that a slot computes a prefix once.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        done_masks: Sequence[bytearray],
        *,
        seed: int,
        lanes: bool = False,
        draw_arms: bool = True,
        ahead: int = 0,
        caching: Callable[[], bool] = lambda: False,
        expected: Expected | None = None,
        warm: set[Where] | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """Create a queue.

        The arms of a unit come together, in a random order if `draw_arms` is true. `warm` are the
        groups whose prefix the server has seen. The queue adds to it.
        """
        self._groups: list[SubsetUnits] = []
        done_by_job = dict(zip(jobs, done_masks, strict=True))
        exams: dict[int, list[Job]] = {}
        for job in jobs:
            exams.setdefault(id(job.exam), []).append(job)
        # Exams come one after the other. The order of an exam's subsets, and of the units of each,
        # is random.
        for arms in exams.values():
            for subset in arms[0].exam.subsets:
                start, stop = subset.start * arms[0].epochs, subset.stop * arms[0].epochs
                arm_masks = [done_by_job[arm] for arm in arms]
                units = (u for u in range(start, stop) if not all(mask[u] for mask in arm_masks))
                if missing_units := array("Q" if len(arms) > 1 else "I", units):
                    self._groups.append(
                        SubsetUnits((id(arms[0].exam), subset.name), arms, missing_units)
                    )
        random.Random(seed).shuffle(self._groups)
        order = {exam: position for position, exam in enumerate(exams)}
        self._groups.sort(key=lambda group: order[id(group.jobs[0].exam)])
        preceding_units = 0
        for number, group in enumerate(self._groups):
            group_random = random.Random(seed * 1_000_003 + number)
            group_random.shuffle(group.units)
            if expected is not None:
                group.units = _sort_longest_first(group, expected)
            if len(group.jobs) > 1:
                group.units = _interleave_arms(
                    group, done_by_job, group_random if draw_arms else None
                )
            group.preceding_units = preceding_units
            preceding_units += len(group.units)
        self.remaining = preceding_units
        """The number of units that no worker has taken yet."""
        self._total = preceding_units
        # The arms of a question stay together, so none of them goes ahead.
        self._slots = ahead if all(len(arms) == 1 for arms in exams.values()) else 0
        self._ahead = ROUNDS_AHEAD * self._slots
        self._caching = caching
        self._warm = set() if warm is None else warm
        self._clock = clock or monotonic
        self._prefill = LONGEST_PREFILL
        """Seconds in which the server has computed a prefix, as far as is known."""
        self._lanes: dict[int, SubsetUnits] | None = {} if lanes else None
        self._next = 0
        """The first group of which nothing was taken."""
        self._open: list[SubsetUnits] = []
        """Groups of which something was taken and something remains, in order."""
        self._pilots: dict[Unit, SubsetUnits] = {}
        self._waiting: list[asyncio.Future[None]] = []

    def take(self, lane: int) -> Unit | WaitForPrefix | None:
        """Return the next unit for a worker, or None if there is none."""
        if not self.remaining:
            return None
        if self._lanes is not None:
            self.remaining -= 1
            return self._group_of(lane, self._lanes).take()
        next_group = self._groups[self._next] if self._next < len(self._groups) else None
        distance = (
            next_group.preceding_units - (self._total - self.remaining)
            if next_group is not None
            else 0
        )
        if next_group is not None and (distance <= self._ahead or not self._open):
            return self._begin(next_group)
        group = next(
            (open_group for open_group in self._open if open_group.pilot is None), self._open[0]
        )
        if group.pilot is not None and self.remaining > 2 * self._slots and self._caching():
            # The pilot of the first group was sent first.
            wait = group.pilot_started + self._prefill - self._clock()
            if wait > 0:
                # One more pilot is better than an empty slot. A pilot far ahead would have left the
                # server's cache.
                if next_group is not None and distance <= 2 * self._ahead:
                    return self._begin(next_group)
                return WaitForPrefix(wait)
        self.remaining -= 1
        if group.remaining == 1:
            self._open.remove(group)
        return group.take()

    def _begin(self, group: SubsetUnits) -> Unit:
        """Take the first unit of a group. It becomes the pilot, unless the server has seen its
        prefix."""
        self._next += 1
        self.remaining -= 1
        unit = group.take()
        if group.remaining:
            self._open.append(group)
            if self._ahead and group.where not in self._warm:
                group.pilot, group.pilot_started = unit, self._clock()
                self._pilots[unit] = group
        return unit

    def note_reply(self, unit: Unit) -> None:
        """Note that a unit has its record, and wake the workers that wait for its prefix."""
        group = self._pilots.pop(unit, None)
        if group is not None:
            group.pilot = None
            self._prefill = min(self._prefill, self._clock() - group.pilot_started)
            self._warm.add(group.where)
            self._wake()

    def _wake(self) -> None:
        """Let all workers that wait for work look again."""
        while self._waiting:
            wakeup = self._waiting.pop()
            if not wakeup.done():
                wakeup.set_result(None)

    async def wait_for_change(self, hold: WaitForPrefix) -> None:
        """Wait until there may be work again."""
        wakeup = asyncio.get_running_loop().create_future()
        self._waiting.append(wakeup)
        with suppress(TimeoutError):
            async with asyncio.timeout(hold.seconds):
                await wakeup

    # Work that passes from one queue to another, where several endpoints share it

    def admit(self, group: SubsetUnits) -> None:
        """Take over a group, behind all other work. If its prefix is already here, it joins that
        group."""
        self.remaining += group.remaining
        local_group = next(
            (
                candidate
                for candidate in self._groups
                if candidate.where == group.where and candidate.remaining
            ),
            None,
        )
        if local_group is None:
            group.preceding_units = self._total
            self._groups.append(group)
        else:
            local_group.units.extend(group.units)
        self._shift_following(local_group, group.remaining)
        self._wake()

    def hand_over(self, limit: int, *, is_preferred: Callable[[Where], bool]) -> SubsetUnits | None:
        """Give away a whole group of at most `limit` units, of which nothing was taken.

        Groups for which `is_preferred` holds go first, then the last group.
        """
        untouched_groups = [
            group
            for group in self._groups[::-1]
            if not group.taken_count and group.remaining <= limit
        ]
        selected_group = next(
            (group for group in untouched_groups if is_preferred(group.where)), None
        )
        selected_group = selected_group or (untouched_groups[0] if untouched_groups else None)
        return (
            None
            if selected_group is None
            else self._split_off(selected_group, selected_group.remaining)
        )

    def hand_over_part(self, limit: int) -> SubsetUnits | None:
        """Give away up to `limit` units of the group that has most units remaining."""
        largest_group = max(self._groups, key=lambda group: group.remaining, default=None)
        return (
            None
            if largest_group is None or not largest_group.remaining
            else self._split_off(largest_group, limit)
        )

    def _split_off(self, group: SubsetUnits, limit: int) -> SubsetUnits:
        """Give away up to `limit` units of a group."""
        part = group.split(limit)
        self.remaining -= part.remaining
        self._shift_following(group, -part.remaining)
        if group.remaining:
            return part
        if group in self._open:
            self._open.remove(group)
        elif not group.taken_count:
            self._groups.remove(group)
        return part

    def clear(self) -> list[SubsetUnits]:
        """Give away all units that no worker has taken yet. The server's cache is gone too."""
        self._warm.clear()
        removed_groups = [group.split(group.remaining) for group in self._groups if group.remaining]
        self._groups, self._open, self._pilots = [], [], {}
        self._total = self.remaining = self._next = 0
        self._wake()
        return removed_groups

    def forget(self, unit: Unit) -> None:
        """Note that a unit goes to another endpoint, so that no worker waits for its prefix any
        more."""
        group = self._pilots.pop(unit, None)
        if group is not None:
            group.pilot = None
            self._wake()

    def _shift_following(self, group: SubsetUnits | None, size: int) -> None:
        """Add `size` to the number of units in `group`, before all groups that come after it."""
        self._total += size
        for later_group in (
            self._groups[self._groups.index(group) + 1 :] if group is not None else ()
        ):
            later_group.preceding_units += size

    def _group_of(self, lane: int, lanes: dict[int, SubsetUnits]) -> SubsetUnits:
        """Return the worker's group, else one without a worker, else the largest of all."""
        current_group = lanes.get(lane)
        if current_group is not None and current_group.remaining:
            return current_group
        open_groups = [group for group in self._groups if group.remaining]
        unused_group = next((group for group in open_groups if not group.lanes), None)
        selected_group = unused_group or max(
            open_groups, key=lambda group: group.remaining / (group.lanes + 1)
        )
        selected_group.lanes += 1
        lanes[lane] = selected_group
        return selected_group


def make_length_estimator(earlier: Mapping[str, float]) -> Expected:
    """Return an estimator of how long replies will be.

    It uses the seconds of an `earlier` run, by the ids of the questions. If there are none, it uses
    other repeats of the same question, and otherwise the length of the question. Each is
    divided by the mean of its kind in the group, so that they can be compared.
    """

    def estimate(job: Job, units: Sequence[int]) -> list[float]:
        text_lengths: list[float] = []
        reply_seconds: list[float] = []
        for unit in units:
            sample = job.exam.samples[unit // job.epochs]
            text_lengths.append(float(len(sample.text)))
            first_epoch = unit - unit % job.epochs
            repeats = [
                seconds
                for seconds in job.seconds[first_epoch : first_epoch + job.epochs]
                if seconds
            ]
            reply_seconds.append(earlier.get(sample.id) or (fmean(repeats) if repeats else 0.0))
        mean_seconds = (
            fmean(nonzero_seconds)
            if (nonzero_seconds := [length for length in reply_seconds if length])
            else 1.0
        )
        mean_text = fmean(text_lengths) or 1.0
        pairs = zip(reply_seconds, text_lengths, strict=True)
        return [length / mean_seconds if length else text / mean_text for length, text in pairs]

    return estimate


def _sort_longest_first(group: SubsetUnits, expected: Expected) -> array[int]:
    """Return the units of a group by their expected length, the longest first, after the shortest.

    A group that is too large to sort stays as it is.
    """
    if len(group.units) > MAX_SORTED:
        return group.units
    lengths = dict(zip(group.units, expected(group.jobs[0], group.units), strict=True))
    ordered = sorted(group.units, key=lengths.__getitem__, reverse=True)
    return array(group.units.typecode, ordered[-1:] + ordered[:-1])


def _interleave_arms(
    group: SubsetUnits, done_by_job: Mapping[Job, bytearray], arm_random: random.Random | None
) -> array[int]:
    """Return the places of a group's units, with the arms of one unit next to each other."""
    arms = list(range(len(group.jobs)))
    places = array("Q")
    for unit in group.units:
        if arm_random is not None:
            arm_random.shuffle(arms)
        places.extend(
            unit * len(arms) + arm for arm in arms if not done_by_job[group.jobs[arm]][unit]
        )
    return places


FIRST_LOOK = 50
"""Questions before the first evaluation, and the fewest between two."""
GROWTH = 10
"""Later blocks are a tenth of the questions asked before, so that evaluations stay few."""


@runtime_checkable
class ArmsRule(Protocol):
    """A rule that compares the arms of an exam and ends each of them by itself."""

    def evaluate_arms(
        self, arms: Sequence[Job], seen_samples: Sequence[int], total_samples: int, looks: int
    ) -> Sequence[StoredStop]:
        """Evaluate the samples that all arms were asked. The first arm is the baseline of the
        others, and is needed as long as one of them is."""


def blocks(
    jobs: Sequence[Job],
    done_masks: Sequence[bytearray],
    rule: StoppingRule | ArmsRule,
    seed: int,
) -> Iterator[list[bytearray] | Pause]:
    """Yield the masks of each block that lacks records: 1 for every unit not to be asked now.

    Take the next block when all units of this one have been asked, or the pause is over. If the
    rule ends a job, or nothing remains to ask, this function sets `Job.stopping`.
    """
    if isinstance(rule, ArmsRule):
        yield from _blocks_of_arms(jobs, done_masks, rule, seed)
        return
    for place, job in enumerate(jobs):
        order, ends = draw_random_order(job.exam, rule.usable_samples(job), seed)
        start = 0
        for looks, end in enumerate(rule.looks(job, ends), 1):
            masks = [bytearray([1]) * masked_job.units for masked_job in jobs]
            _open_units(masks[place], done_masks[place], order[start:end], job.epochs)
            if masks[place].count(0):
                yield masks
            yield from rule.pauses(job, order[:end])
            stopping = rule.evaluate(job, order[:end], len(order), looks)
            if stopping.met or end == len(order):
                job.stopping = stopping
                break
            start = end


def _blocks_of_arms(
    jobs: Sequence[Job], done_masks: Sequence[bytearray], rule: ArmsRule, seed: int
) -> Iterator[list[bytearray]]:
    """Yield the masks of each block for the arms that are still open, exam after exam.

    All arms get the questions in one order, so they can be compared at every look. With fewer
    questions than two looks need, there is only one look, at the end.
    """
    exams: dict[int, list[int]] = {}
    for place, job in enumerate(jobs):
        exams.setdefault(id(job.exam), []).append(place)
    for places in exams.values():
        exam = jobs[places[0]].exam
        order, ends = draw_random_order(exam, range(len(exam.samples)), seed)
        ends = ends if len(order) >= 2 * FIRST_LOOK else ends[-1:]
        open_places, start = places, 0
        for looks, end in enumerate(ends, 1):
            masks = [bytearray([1]) * job.units for job in jobs]
            for place in open_places:
                _open_units(masks[place], done_masks[place], order[start:end], jobs[place].epochs)
            if any(masks[place].count(0) for place in open_places):
                yield masks
            stops = rule.evaluate_arms(
                [jobs[p] for p in open_places], order[:end], len(order), looks
            )
            is_last = end == len(order)
            ended = [is_last or stop.met for stop in stops]
            for place, stop, has_ended in zip(open_places, stops, ended, strict=True):
                if has_ended:
                    jobs[place].stopping = stop
            open_places = [
                p for p, has_ended in zip(open_places, ended, strict=True) if not has_ended
            ]
            if not open_places:
                break
            start = end


def _open_units(mask: bytearray, done_mask: bytearray, samples: Sequence[int], epochs: int) -> None:
    """Mark the units of some samples as to be asked, unless they are done."""
    for sample in samples:
        units = slice(sample * epochs, (sample + 1) * epochs)
        mask[units] = done_mask[units]


def _bunch(exam: Exam, samples: Sequence[int]) -> Iterable[list[int]]:
    """Return the samples in bunches that share a context; others are alone in theirs."""
    bunches: dict[str, list[int]] = {}
    for sample in samples:
        context = exam.samples[sample].group if exam.clustered else ""
        bunches.setdefault(context or f"\0{sample}", []).append(sample)
    return bunches.values()


def draw_random_order(exam: Exam, samples: Sequence[int], seed: int) -> tuple[list[int], list[int]]:
    """Return the samples in a random order, each subset in proportion from the start, and the block
    ends.

    The k-th of n bunches of a subset, which are in random order, gets a place between k/n and
    (k+1)/n of the way. A bunch is a sample, or all samples that share a context.
    """
    chance = random.Random(seed)
    strata: dict[str, list[list[int]]] = {}
    for bunch in _bunch(exam, samples):
        strata.setdefault(exam.samples[bunch[0]].subset, []).append(bunch)
    placed: list[tuple[float, list[int]]] = []
    for stratum in strata.values():
        chance.shuffle(stratum)
        size = len(stratum)
        placed += [((k + chance.random()) / size, bunch) for k, bunch in enumerate(stratum)]
    order: list[int] = []
    ends: list[int] = []
    for _, bunch in sorted(placed, key=lambda pair: pair[0]):
        order += bunch
        last_look = ends[-1] if ends else 0
        if len(order) >= last_look + max(FIRST_LOOK, last_look // GROWTH):
            ends.append(len(order))
    if order and (not ends or ends[-1] < len(order)):
        ends.append(len(order))
    return order, ends
