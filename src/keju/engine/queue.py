"""The order of the work: equal prefixes together, seeded, and retries when they are due."""

from __future__ import annotations

import heapq
import itertools
import random
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from keju.engine.job import Job
from keju.types import Fault


@dataclass(slots=True)
class Task:
    """One unit to be asked, with what went wrong before."""

    job: Job
    unit: int
    faults: tuple[Fault, ...] = ()


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
        self.sampling = jobs[0].sampling
        """How the model is asked, for a call that only knocks."""
        self._groups = [
            g for job, known in zip(jobs, done, strict=True) for g in _split(job, known)
        ]
        random.Random(seed).shuffle(self._groups)
        order = {id(job): position for position, job in enumerate(jobs)}
        self._groups.sort(key=lambda group: order[id(group.job)])
        for number, group in enumerate(self._groups):
            random.Random(seed * 1_000_003 + number).shuffle(group.units)
        self.left = sum(group.left for group in self._groups)
        """Fresh units that nobody has taken yet."""
        self._lanes: dict[int, _Group] | None = {} if lanes else None
        self._current = 0
        self._retries: list[tuple[float, int, Task]] = []
        self._numbers = itertools.count()

    @property
    def waiting(self) -> int:
        """Units that wait for another attempt."""
        return len(self._retries)

    def postpone(self, task: Task, until: float) -> None:
        """Ask for `task` again, not before `until`."""
        heapq.heappush(self._retries, (until, next(self._numbers), task))

    def due(self) -> float | None:
        """When the next retry is due; None if there is none."""
        return self._retries[0][0] if self._retries else None

    def take(self, worker: int, now: float) -> Task | None:
        """The next unit for `worker`: a retry that is due, else a fresh one, else None."""
        if self._retries and self._retries[0][0] <= now:
            return heapq.heappop(self._retries)[2]
        if not self.left:
            return None
        group = self._next_group() if self._lanes is None else self._lane(worker, self._lanes)
        unit = group.units[group.taken]
        group.taken += 1
        self.left -= 1
        return Task(group.job, unit)

    def _next_group(self) -> _Group:
        while not self._groups[self._current].left:
            self._current += 1
        return self._groups[self._current]

    def _lane(self, worker: int, lanes: dict[int, _Group]) -> _Group:
        """The worker's own group; else one that nobody works on; else the fullest of all."""
        own = lanes.get(worker)
        if own is not None and own.left:
            return own
        if own is not None:
            own.lanes -= 1
        open_groups = [group for group in self._groups if group.left]
        free = next((group for group in open_groups if not group.lanes), None)
        chosen = free or max(open_groups, key=lambda group: group.left / (group.lanes + 1))
        chosen.lanes += 1
        lanes[worker] = chosen
        return chosen


def _split(job: Job, done: bytearray) -> list[_Group]:
    groups = []
    for subset in job.exam.subsets:
        first, last = subset.start * job.epochs, subset.stop * job.epochs
        units = array("I", (unit for unit in range(first, last) if not done[unit]))
        if units:
            groups.append(_Group(job, units))
    return groups
