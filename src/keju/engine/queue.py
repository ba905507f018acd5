"""The order of the work: equal prefixes together, seeded."""

from __future__ import annotations

import random
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from keju.engine.job import Job


class Unit(NamedTuple):
    """One sample in one epoch, to be asked."""

    job: Job
    number: int


@dataclass(slots=True)
class _Group:
    """The units of one subset that are still to be asked; they share a prefix."""

    job: Job
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
        self, jobs: Sequence[Job], done: Sequence[bytearray], *, seed: int, lanes: bool = False
    ) -> None:
        self._groups: list[_Group] = []
        # Exams come one after the other; the order of an exam's subsets, and of the units of each,
        # is drawn.
        for job, known in zip(jobs, done, strict=True):
            for subset in job.exam.subsets:
                first, last = subset.start * job.epochs, subset.stop * job.epochs
                units = array("I", (unit for unit in range(first, last) if not known[unit]))
                if units:
                    self._groups.append(_Group(job, units))
        random.Random(seed).shuffle(self._groups)
        order = {id(job): position for position, job in enumerate(jobs)}
        self._groups.sort(key=lambda group: order[id(group.job)])
        for number, group in enumerate(self._groups):
            random.Random(seed * 1_000_003 + number).shuffle(group.units)
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
        return Unit(group.job, group.units[group.taken - 1])

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
