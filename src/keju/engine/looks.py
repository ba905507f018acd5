"""Asking until a rule is met: blocks of questions in a random order, and a look after each.

A rule may be asked again and again only if what it has seen is a random part of the exam. So the
questions are put in a seeded random order in which every beginning has each subset in proportion;
questions with a shared context stay together; and a look comes only when every question of its
block has its record, so that none is favoured for being answered fast. Inside a block the queue
keeps equal prefixes together as ever. The order depends on the seed and the questions alone: a run
that is resumed goes on where it was, and looks again at all that it had seen.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Protocol

from keju.benchmarks.base import Exam
from keju.engine.job import Job
from keju.runs.manifest import Stopping

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
