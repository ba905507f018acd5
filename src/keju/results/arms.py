"""Arms side by side: the same questions with other tools, compared question by question.

Every pair of arms of an exam is one `Comparison`: the later arm against the earlier one, on the
questions that have a score in both. Repeats of a question are averaged first. A question without a
grade in either arm is left out of the pair and counted: it says nothing of the tools.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from keju.benchmarks.base import Exam
from keju.benchmarks.grading import GRADED
from keju.config import Price
from keju.engine.job import Job
from keju.engine.tally import PENDING
from keju.results.cells import cluster_of
from keju.results.schema import LISTED, Change, Comparison, SubsetChange
from keju.stats.distributions import student_t_quantile
from keju.stats.many import benjamini_hochberg
from keju.stats.paired import Difference, paired_difference
from keju.stats.power import items_needed, minimal_detectable_effect


def compare_arms(jobs: Sequence[Job], price: Price | None = None) -> list[Comparison]:
    """Every pair of arms of each exam, the earlier arm as the base, under the headline's reader."""
    by_exam: dict[str, list[Job]] = {}
    for job in jobs:
        by_exam.setdefault(job.exam.benchmark, []).append(job)
    pairs = (pair for arms in by_exam.values() for pair in combinations(arms, 2))
    return [_comparison(base, arm, price) for base, arm in pairs]


class _Pair(NamedTuple):
    """A question that both arms have a score for."""

    item: int
    arm: float
    base: float


def _comparison(base: Job, arm: Job, price: Price | None) -> Comparison:
    exam = base.exam
    pairs, left_out = [], 0
    for item in range(len(exam.samples)):
        own, other = _score(arm, item), _score(base, item)
        if own is not None and other is not None:
            pairs.append(_Pair(item, own, other))
        else:
            left_out += _begun(arm, item) or _begun(base, item)
    apart = _apart(exam, pairs)
    discordance = (apart.first_only + apart.second_only) / apart.n if apart else 0.0
    table = Counter((pair.arm, pair.base) for pair in pairs)
    binary = all(score in (0.0, 1.0) for scores in table for score in scores)
    items = [pair.item for pair in pairs]
    gained, lost = (
        [exam.samples[p.item].id for p in pairs if sign * (p.arm - p.base) > 0] for sign in (1, -1)
    )
    return Comparison(
        exam=exam.benchmark,
        reader=base.readers[0].name,
        base=base.arm,
        arm=arm.arm,
        n=len(pairs),
        left_out=left_out,
        base_rate=_mean([pair.base for pair in pairs]),
        arm_rate=_mean([pair.arm for pair in pairs]),
        difference=apart.value if apart else None,
        ci95=(apart.interval.low, apart.interval.high) if apart and apart.interval else None,
        p=apart.p if apart else None,
        clusters=apart.clusters if apart else None,
        both=table[1.0, 1.0] if binary else None,
        arm_only=len(gained),
        base_only=len(lost),
        neither=table[0.0, 0.0] if binary else None,
        detectable=minimal_detectable_effect(len(pairs), discordance) if discordance else None,
        needed=items_needed(apart.value, discordance) if apart and apart.value else None,
        subsets=tuple(_subsets(exam, pairs)),
        gained=tuple(gained[:LISTED]),
        lost=tuple(lost[:LISTED]),
        tokens=_change(arm, base, items, lambda job, unit: job.ledger.tokens(unit)),
        cost=_change(arm, base, items, lambda job, unit: job.ledger.cost(unit, price))
        if price is not None
        else None,
        seconds=_change(arm, base, items, lambda job, unit: job.seconds[unit]),
    )


def _score(job: Job, item: int) -> float | None:
    """The mean over the repeats of a question; None unless every one of them has a grade."""
    tally = job.tallies[0]
    units = range(item * job.epochs, (item + 1) * job.epochs)
    if any(tally.outcomes[unit] not in GRADED for unit in units):
        return None
    return sum(tally.values[unit] for unit in units) / job.epochs


def _begun(job: Job, item: int) -> bool:
    """Whether an arm has any record of a question."""
    outcomes = job.tallies[0].outcomes
    return any(outcomes[item * job.epochs + epoch] != PENDING for epoch in range(job.epochs))


def _apart(exam: Exam, pairs: Sequence[_Pair]) -> Difference | None:
    groups = [cluster_of(exam, pair.item) for pair in pairs] if exam.clustered else None
    return paired_difference([(pair.arm, pair.base) for pair in pairs], groups)


def _subsets(exam: Exam, pairs: Sequence[_Pair]) -> Iterator[SubsetChange]:
    """The same for each subset; the p are adjusted, since many subsets are looked at."""
    found = []
    for subset in exam.subsets if len(exam.subsets) > 1 else ():
        own = [pair for pair in pairs if subset.start <= pair.item < subset.stop]
        if (apart := _apart(exam, own)) is not None:
            found.append((subset.name, apart))
    adjusted = benjamini_hochberg([apart.p for _, apart in found])
    for (name, apart), p in zip(found, adjusted, strict=True):
        yield SubsetChange(
            name=name,
            n=apart.n,
            difference=apart.value,
            arm_only=apart.first_only,
            base_only=apart.second_only,
            p=apart.p,
            p_adjusted=p,
        )


def _change(
    arm: Job, base: Job, items: Sequence[int], value: Callable[[Job, int], float]
) -> Change | None:
    """How much more an arm takes for a question, with Student's interval over the questions."""
    if not items:
        return None

    def mean(job: Job, item: int) -> float:
        return math.fsum(value(job, item * job.epochs + e) for e in range(job.epochs)) / job.epochs

    own, other = ([mean(job, item) for item in items] for job in (arm, base))
    apart = [one - two for one, two in zip(own, other, strict=True)]
    middle = math.fsum(apart) / len(apart)
    ends = None
    if len(apart) > 1:
        spread = math.fsum((each - middle) ** 2 for each in apart) / (len(apart) - 1)
        half = student_t_quantile(0.975, len(apart) - 1) * math.sqrt(spread / len(apart))
        ends = (middle - half, middle + half)
    return Change(_mean(other) or 0.0, _mean(own) or 0.0, middle, ends)


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
