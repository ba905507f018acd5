"""The order of the work: equal prefixes together, the longest first, seeded; in blocks where a rule
may end it early.

A rule may be asked again and again only if what it has seen is a random part of the exam. So the
questions are put in a seeded random order in which every beginning has each subset in proportion;
questions with a shared context stay together; and a look comes only when every question of its
block has its record, so that none is favoured for being answered fast. Inside a block the queue
keeps equal prefixes together as ever. The order depends on the seed and the questions alone: a run
that is resumed goes on where it was, and looks again at all that it had seen.
"""

from __future__ import annotations

import asyncio
import random
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from statistics import fmean
from time import monotonic
from typing import NamedTuple, Protocol

from keju.benchmarks.base import Exam
from keju.engine.job import Job
from keju.runs.manifest import Stopping

LONGEST_PREFILL = 2.0
"""Seconds after which a server has surely computed a prefix. Nothing waits longer for a pilot."""
ROUNDS_AHEAD = 3
"""Rounds of requests by which a pilot goes before its group: by then most pilots have ended."""
MOST_SORTED = 20_000
"""Units of a group that are put in order by their expected length."""


class Unit(NamedTuple):
    """One sample in one epoch, to be asked."""

    job: Job
    number: int


class Held(NamedTuple):
    """There is work, but what it shares with a request in flight is worth waiting for."""

    seconds: float
    """The longest wait."""


Expected = Callable[[Job, Sequence[int]], Sequence[float]]
"""How long the replies to some units of a job will be, by any measure: only their order counts."""
Where = tuple[int, str]
"""A subset of an exam, as what its questions share."""


@dataclass(slots=True, eq=False)
class Group:
    """The units of one subset that are still to be asked; they share a prefix.

    `jobs` are the arms of its exam. Place p of `units` is unit ``p // len(jobs)`` of the arm
    ``p % len(jobs)``.
    """

    where: Where
    jobs: Sequence[Job]
    units: array[int]
    taken: int = 0
    lanes: int = 0
    before: int = 0
    """Units of the groups that come before it."""
    pilot: Unit | None = None
    """The first of its units, as long as that has no reply."""
    begun: float = 0.0
    """When that was taken."""

    @property
    def left(self) -> int:
        return len(self.units) - self.taken

    def take(self) -> Unit:
        """Its next unit."""
        self.taken += 1
        unit, arm = divmod(self.units[self.taken - 1], len(self.jobs))
        return Unit(self.jobs[arm], unit)

    def split(self, most: int) -> Group:
        """Take away up to `most` of the units that are left, from the end."""
        size = min(most, self.left)
        rest = self.units[len(self.units) - size :]
        del self.units[len(self.units) - size :]
        return Group(self.where, self.jobs, rest)


class Queue:
    """Gives out work, one unit at a time, so that a server computes what prompts share only once.

    Without lanes all workers empty one group after the other. A server can share a prefix only
    when it has computed it: so one unit of each group, its pilot, goes before the others, by three
    rounds of `ahead` requests, and groups whose pilot has a reply come first. Where the server has
    reported that it is `caching`, the others wait until the pilot's prefix is computed: at most for
    the shortest reply to a pilot so far, or `LONGEST_PREFILL`. They do not wait near the end, where
    slots would be idle. Three groups of four units, with pilots four units ahead::

        a b a a a c b b b c c c

    Inside a group the longest replies come first, as far as they can be `expected`: a long one that
    begins last is what everybody waits for in the end. The pilot is the shortest.

    With `lanes` (a server that keeps one prompt a slot) each worker stays on a group of its own as
    long as there are groups, so that a slot computes a prefix once.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        done: Sequence[bytearray],
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
        """The arms of a unit come together, in an order that is drawn if `draw_arms`.

        `warm` are the groups whose prefix the server has seen; it grows.
        """
        self._groups: list[Group] = []
        known = dict(zip(jobs, done, strict=True))
        exams: dict[int, list[Job]] = {}
        for job in jobs:
            exams.setdefault(id(job.exam), []).append(job)
        # Exams come one after the other; the order of an exam's subsets, and of the units of each,
        # is drawn.
        for arms in exams.values():
            for subset in arms[0].exam.subsets:
                first, last = subset.start * arms[0].epochs, subset.stop * arms[0].epochs
                lacking = [known[arm] for arm in arms]
                units = (u for u in range(first, last) if not all(arm[u] for arm in lacking))
                if wanted := array("Q" if len(arms) > 1 else "I", units):
                    self._groups.append(Group((id(arms[0].exam), subset.name), arms, wanted))
        random.Random(seed).shuffle(self._groups)
        order = {exam: position for position, exam in enumerate(exams)}
        self._groups.sort(key=lambda group: order[id(group.jobs[0].exam)])
        before = 0
        for number, group in enumerate(self._groups):
            draw = random.Random(seed * 1_000_003 + number)
            draw.shuffle(group.units)
            if expected is not None:
                group.units = _longest_first(group, expected)
            if len(group.jobs) > 1:
                group.units = _arms_of_units(group, known, draw if draw_arms else None)
            group.before = before
            before += len(group.units)
        self.left = before
        """Units that nobody has taken yet."""
        self._all = before
        # The arms of a question stay together: none of them goes ahead.
        self._slots = ahead if all(len(arms) == 1 for arms in exams.values()) else 0
        self._ahead = ROUNDS_AHEAD * self._slots
        self._caching = caching
        self._warm = set() if warm is None else warm
        self._clock = clock or monotonic
        self._prefill = LONGEST_PREFILL
        """Seconds in which the server has computed a prefix, as far as is known."""
        self._lanes: dict[int, Group] | None = {} if lanes else None
        self._next = 0
        """The first group of which nothing was taken."""
        self._open: list[Group] = []
        """Groups of which something was taken and something is left, in order."""
        self._pilots: dict[Unit, Group] = {}
        self._waiting: list[asyncio.Future[None]] = []

    def take(self, lane: int) -> Unit | Held | None:
        """The next unit for a worker; None if there is none."""
        if not self.left:
            return None
        if self._lanes is not None:
            self.left -= 1
            return self._group_of(lane, self._lanes).take()
        fresh = self._groups[self._next] if self._next < len(self._groups) else None
        distance = fresh.before - (self._all - self.left) if fresh is not None else 0
        if fresh is not None and (distance <= self._ahead or not self._open):
            return self._begin(fresh)
        group = next((each for each in self._open if each.pilot is None), self._open[0])
        if group.pilot is not None and self.left > 2 * self._slots and self._caching():
            # The pilot of the first group was sent first.
            wait = group.begun + self._prefill - self._clock()
            if wait > 0:
                # One more pilot is better than an empty slot; one far ahead would be forgotten.
                if fresh is not None and distance <= 2 * self._ahead:
                    return self._begin(fresh)
                return Held(wait)
        self.left -= 1
        if group.left == 1:
            self._open.remove(group)
        return group.take()

    def _begin(self, group: Group) -> Unit:
        """Take the first unit of a group: its pilot, unless its prefix is known."""
        self._next += 1
        self.left -= 1
        unit = group.take()
        if group.left:
            self._open.append(group)
            if self._ahead and group.where not in self._warm:
                group.pilot, group.begun = unit, self._clock()
                self._pilots[unit] = group
        return unit

    def landed(self, unit: Unit) -> None:
        """A unit has its record: whoever waits for its prefix may go on."""
        group = self._pilots.pop(unit, None)
        if group is not None:
            group.pilot = None
            self._prefill = min(self._prefill, self._clock() - group.begun)
            self._warm.add(group.where)
            self._wake()

    def _wake(self) -> None:
        """Let everybody who waits for work look again."""
        while self._waiting:
            turn = self._waiting.pop()
            if not turn.done():
                turn.set_result(None)

    async def changed(self, held: Held) -> None:
        """Wait until there may be work again."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        with suppress(TimeoutError):
            async with asyncio.timeout(held.seconds):
                await turn

    # Work that passes from one queue to another, where several endpoints share it

    def admit(self, group: Group) -> None:
        """Take work over, behind all other; what has its prefix here already goes with that."""
        self.left += group.left
        own = next((each for each in self._groups if each.where == group.where and each.left), None)
        if own is None:
            group.before = self._all
            self._groups.append(group)
        else:
            own.units.extend(group.units)
        self._shift(own, group.left)
        self._wake()

    def give(self, most: int, *, first: Callable[[Where], bool]) -> Group | None:
        """Let go of a whole group of at most `most` units, of which nothing was taken.

        The last one goes, but before it those whose prefix is one of the `first`.
        """
        fresh = [group for group in self._groups[::-1] if not group.taken and group.left <= most]
        chosen = next((group for group in fresh if first(group.where)), None)
        chosen = chosen or (fresh[0] if fresh else None)
        return None if chosen is None else self._part(chosen, chosen.left)

    def give_part(self, most: int) -> Group | None:
        """Let go of up to `most` units of the group that has most of them left."""
        fullest = max(self._groups, key=lambda group: group.left, default=None)
        return None if fullest is None or not fullest.left else self._part(fullest, most)

    def _part(self, group: Group, most: int) -> Group:
        """Let go of up to `most` units of a group."""
        part = group.split(most)
        self.left -= part.left
        self._shift(group, -part.left)
        if group.left:
            return part
        if group in self._open:
            self._open.remove(group)
        elif not group.taken:
            self._groups.remove(group)
        return part

    def clear(self) -> list[Group]:
        """Let go of all that nobody has taken yet; the server's cache is gone too."""
        self._warm.clear()
        given = [group.split(group.left) for group in self._groups if group.left]
        self._groups, self._open, self._pilots = [], [], {}
        self._all = self.left = self._next = 0
        self._wake()
        return given

    def forget(self, unit: Unit) -> None:
        """A unit goes to another endpoint: nobody waits for its prefix any more."""
        group = self._pilots.pop(unit, None)
        if group is not None:
            group.pilot = None
            self._wake()

    def _shift(self, group: Group | None, size: int) -> None:
        """Count so many more units in `group`, before all groups that come after it."""
        self._all += size
        for later in self._groups[self._groups.index(group) + 1 :] if group is not None else ():
            later.before += size

    def _group_of(self, lane: int, lanes: dict[int, Group]) -> Group:
        """The worker's own group; else one that nobody works on; else the fullest of all."""
        own = lanes.get(lane)
        if own is not None and own.left:
            return own
        open_groups = [group for group in self._groups if group.left]
        free = next((group for group in open_groups if not group.lanes), None)
        chosen = free or max(open_groups, key=lambda group: group.left / (group.lanes + 1))
        chosen.lanes += 1
        lanes[lane] = chosen
        return chosen


def expected_lengths(earlier: Mapping[str, float]) -> Expected:
    """How long replies will be: as they were in an `earlier` run, by the ids of the questions; as
    those to the same question in other repeats; else as the question is long.

    Each is a share of the mean of its kind in the group, so that they can be compared.
    """

    def expected(job: Job, units: Sequence[int]) -> list[float]:
        texts: list[float] = []
        known: list[float] = []
        for unit in units:
            sample = job.exam.samples[unit // job.epochs]
            texts.append(float(len(sample.text)))
            first = unit - unit % job.epochs
            repeats = [second for second in job.seconds[first : first + job.epochs] if second]
            known.append(earlier.get(sample.id) or (fmean(repeats) if repeats else 0.0))
        usual = fmean(told) if (told := [length for length in known if length]) else 1.0
        of_text = fmean(texts) or 1.0
        pairs = zip(known, texts, strict=True)
        return [length / usual if length else text / of_text for length, text in pairs]

    return expected


def _longest_first(group: Group, expected: Expected) -> array[int]:
    """The units of a group by what is expected of them, the shortest before all others.

    A group that is too large to be looked at one by one stays as it is.
    """
    if len(group.units) > MOST_SORTED:
        return group.units
    lengths = dict(zip(group.units, expected(group.jobs[0], group.units), strict=True))
    ordered = sorted(group.units, key=lengths.__getitem__, reverse=True)
    return array(group.units.typecode, ordered[-1:] + ordered[:-1])


def _arms_of_units(
    group: Group, known: Mapping[Job, bytearray], draw: random.Random | None
) -> array[int]:
    """The places of a group's units, those of one unit's arms side by side."""
    arms = list(range(len(group.jobs)))
    places = array("Q")
    for unit in group.units:
        if draw is not None:
            draw.shuffle(arms)
        places.extend(unit * len(arms) + arm for arm in arms if not known[group.jobs[arm]][unit])
    return places


FIRST = 50
"""Questions before the first look, and the least between two."""
GROWTH = 10
"""Later blocks are a tenth of what was asked before, so that looks stay few."""


class Rule(Protocol):
    """When enough has been asked."""

    def items(self, job: Job) -> Sequence[int]:
        """The samples that the rule can make use of."""

    def look(self, job: Job, seen: Sequence[int], whole: int, looks: int) -> Stopping:
        """What the samples that were seen say; the rule ends the asking where it is `met`."""


def blocks(
    jobs: Sequence[Job], done: Sequence[bytearray], rule: Rule, seed: int
) -> Iterator[list[bytearray]]:
    """For each block that lacks records: a mark on every unit that is not to be asked now.

    The next block may be taken when all units of this one have been asked. Where the rule ends
    the asking of a job, or nothing is left to ask, that stands in `Job.stopping`.
    """
    for place, job in enumerate(jobs):
        order, ends = random_order(job.exam, rule.items(job), seed)
        start = 0
        for looks, end in enumerate(ends, 1):
            units = (item * job.epochs + e for item in order[start:end] for e in range(job.epochs))
            if lacking := [unit for unit in units if not done[place][unit]]:
                masks = [bytearray([1]) * each.units for each in jobs]
                for unit in lacking:
                    masks[place][unit] = 0
                yield masks
            stopping = rule.look(job, order[:end], len(order), looks)
            if stopping.met or end == len(order):
                job.stopping = stopping
                break
            start = end


def random_order(exam: Exam, items: Sequence[int], seed: int) -> tuple[list[int], list[int]]:
    """The samples in a random order, each subset in proportion from the start, and the looks.

    The k-th of n bunches of a subset, which are in random order, stands somewhere between k/n and
    (k+1)/n of the way. A bunch is a sample, or all samples that share a context.
    """
    chance = random.Random(seed)
    bunches: dict[str, list[int]] = {}
    for item in items:
        own = exam.samples[item].group if exam.clustered else ""
        bunches.setdefault(own or f"\0{item}", []).append(item)
    strata: dict[str, list[list[int]]] = {}
    for bunch in bunches.values():
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
        last = ends[-1] if ends else 0
        if len(order) >= last + max(FIRST, last // GROWTH):
            ends.append(len(order))
    if order and (not ends or ends[-1] < len(order)):
        ends.append(len(order))
    return order, ends
