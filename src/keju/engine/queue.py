"""The order of the work: equal prefixes together, seeded."""

from __future__ import annotations

import random
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from keju.engine.job import Job


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
