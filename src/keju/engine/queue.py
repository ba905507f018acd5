"""The order of the work: equal prefixes together, seeded; in blocks where a rule may end it early.

A rule may be asked again and again only if what it has seen is a random part of the exam. So the
questions are put in a seeded random order in which every beginning has each subset in proportion;
questions with a shared context stay together; and a look comes only when every question of its
block has its record, so that none is favoured for being answered fast. Inside a block the queue
keeps equal prefixes together as ever. The order depends on the seed and the questions alone: a run
that is resumed goes on where it was, and looks again at all that it had seen.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from keju.benchmarks.base import Exam
from keju.engine.job import Job
from keju.runs.manifest import Stopping


class Unit(NamedTuple):
    """One sample in one epoch, to be asked."""

    job: Job
    number: int


@dataclass(slots=True)
class _Group:
    """The units of one subset that are still to be asked; they share a prefix.

    `jobs` are the arms of its exam. Place p of `units` is unit ``p // len(jobs)`` of the arm
    ``p % len(jobs)``.
    """

    jobs: Sequence[Job]
    units: array[int]
    taken: int = 0
    lanes: int = 0

    @property
    def left(self) -> int:
        return len(self.units) - self.taken


class Queue:
    """Gives out work, one unit at a time.

    Without lanes all workers empty one group after the other, so that a server's prefix cache is
    hit. With `lanes` (a local model with few slots) each worker stays on a group of its own as
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
    ) -> None:
        """The arms of a unit come together, in an order that is drawn if `draw_arms`."""
        self._groups: list[_Group] = []
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
                    self._groups.append(_Group(arms, wanted))
        random.Random(seed).shuffle(self._groups)
        order = {exam: position for position, exam in enumerate(exams)}
        self._groups.sort(key=lambda group: order[id(group.jobs[0].exam)])
        for number, group in enumerate(self._groups):
            draw = random.Random(seed * 1_000_003 + number)
            draw.shuffle(group.units)
            if len(group.jobs) > 1:
                group.units = _arms_of_units(group, known, draw if draw_arms else None)
        self.left = sum(group.left for group in self._groups)
        """Units that nobody has taken yet."""
        self._lanes: dict[int, _Group] | None = {} if lanes else None
        self._current = 0

    def take(self, lane: int) -> Unit | None:
        """The next unit for a worker; None if there is none."""
        if not self.left:
            return None
        self.left -= 1
        if self._lanes is not None:
            group = self._group_of(lane, self._lanes)
        else:
            while not self._groups[self._current].left:
                self._current += 1
            group = self._groups[self._current]
        group.taken += 1
        unit, arm = divmod(group.units[group.taken - 1], len(group.jobs))
        return Unit(group.jobs[arm], unit)

    def _group_of(self, lane: int, lanes: dict[int, _Group]) -> _Group:
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


def _arms_of_units(
    group: _Group, known: Mapping[Job, bytearray], draw: random.Random | None
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
