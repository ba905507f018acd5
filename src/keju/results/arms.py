"""Arms side by side: the same questions with other tools, compared question by question.

Every pair of arms of an exam is one `Comparison`: the later arm against the earlier one, on the
questions that have a score in both. Repeats of a question are averaged first. A question without a
grade in either arm is left out of the pair and counted: it says nothing of the tools.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations
from typing import NamedTuple

from msgspec.structs import replace

from keju.benchmarks.base import Exam
from keju.benchmarks.grading import GRADED
from keju.config import Price
from keju.engine.job import Job
from keju.engine.tally import PENDING
from keju.results.cells import cluster_of
from keju.results.schema import LISTED, Change, Comparison, SubsetChange
from keju.stats.describe import mean
from keju.stats.distributions import student_t_quantile
from keju.stats.many import benjamini_hochberg, holm
from keju.stats.paired import Difference, paired_difference
from keju.stats.power import items_needed, items_needed_exactly, minimal_detectable_effect


def compare_arms(jobs: Sequence[Job], price: Price | None = None) -> list[Comparison]:
    """Every pair of arms of each exam, the earlier arm as the base, under the headline's reader."""
    by_exam: dict[str, list[Job]] = {}
    for job in jobs:
        by_exam.setdefault(job.exam.benchmark, []).append(job)
    found = []
    for arms in by_exam.values():
        own = [_comparison(base, arm, price) for base, arm in combinations(arms, 2)]
        own = [replace(pair, base_is_first=pair.base == arms[0].arm) for pair in own]
        found += _adjusted(own) if len(own) > 1 else own
    return found


def _adjusted(pairs: Sequence[Comparison]) -> list[Comparison]:
    """The pairs of an exam with p that allow for looking at all of them."""
    ps = iter(holm([pair.p for pair in pairs if pair.p is not None]))
    return [pair if pair.p is None else replace(pair, p_holm=next(ps)) for pair in pairs]


class _Pair(NamedTuple):
    """A question that both arms have a score for."""

    item: int
    arm: float
    base: float


def _comparison(base: Job, arm: Job, price: Price | None) -> Comparison:
    exam = base.exam
    pairs, left_out = [], []
    for item in range(len(exam.samples)):
        own, other = _score(arm, item), _score(base, item)
        if own is not None and other is not None:
            pairs.append(_Pair(item, own, other))
        elif _begun(arm, item) or _begun(base, item):
            left_out.append(item)
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
        left_out=len(left_out),
        bounds=_bounds(arm, base, pairs, left_out) if left_out else None,
        base_rate=mean([pair.base for pair in pairs]),
        arm_rate=mean([pair.arm for pair in pairs]),
        difference=apart.value if apart else None,
        ci95=(apart.interval.low, apart.interval.high) if apart and apart.interval else None,
        p=apart.p if apart else None,
        clusters=apart.clusters if apart else None,
        both=table[1.0, 1.0] if binary else None,
        arm_only=len(gained),
        base_only=len(lost),
        neither=table[0.0, 0.0] if binary else None,
        detectable=minimal_detectable_effect(len(pairs), discordance) if discordance else None,
        needed=_needed(apart, exact=binary) if apart and apart.value else None,
        subsets=tuple(_subsets(exam, pairs)),
        gained=tuple(gained[:LISTED]),
        lost=tuple(lost[:LISTED]),
        tokens=_change(arm, base, items, _tokens),
        cost=_change(arm, base, items, partial(_cost, price)) if price is not None else None,
        seconds=_change(arm, base, items, lambda job, unit: job.seconds[unit]),
    )


def _tokens(job: Job, unit: int) -> float:
    return job.ledger.tokens(unit) if job.ledger else 0.0


def _cost(price: Price, job: Job, unit: int) -> float:
    return job.ledger.cost(unit, price) if job.ledger else 0.0


def _needed(apart: Difference, *, exact: bool) -> int:
    """How many questions the test of a difference needs: McNemar's where it is that one."""
    one, other = apart.first_only / apart.n, apart.second_only / apart.n
    if exact and apart.clusters is None:
        return items_needed_exactly(one, other)
    return items_needed(apart.value, one + other)


def _bounds(
    arm: Job, base: Job, pairs: Sequence[_Pair], left_out: Sequence[int]
) -> tuple[float, float]:
    """The difference if all that lacks a grade went against the arm, and if it went for it."""
    seen = math.fsum(pair.arm - pair.base for pair in pairs)
    ranges = [(_range(arm, item), _range(base, item)) for item in left_out]
    worst = math.fsum(own[0] - other[1] for own, other in ranges)
    best = math.fsum(own[1] - other[0] for own, other in ranges)
    n = len(pairs) + len(left_out)
    return (seen + worst) / n, (seen + best) / n


def _range(job: Job, item: int) -> tuple[float, float]:
    """The least and the most that a question scores, whatever its repeats without a grade are."""
    tally = job.tallies[0]
    units = range(item * job.epochs, (item + 1) * job.epochs)
    graded = [tally.values[unit] for unit in units if tally.outcomes[unit] in GRADED]
    least = math.fsum(graded)
    return least / job.epochs, (least + job.epochs - len(graded)) / job.epochs


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

    def taken(job: Job, item: int) -> float:
        return math.fsum(value(job, item * job.epochs + e) for e in range(job.epochs)) / job.epochs

    own, other = ([taken(job, item) for item in items] for job in (arm, base))
    apart = [one - two for one, two in zip(own, other, strict=True)]
    middle = math.fsum(apart) / len(apart)
    ends = None
    if len(apart) > 1:
        spread = math.fsum((each - middle) ** 2 for each in apart) / (len(apart) - 1)
        half = student_t_quantile(0.975, len(apart) - 1) * math.sqrt(spread / len(apart))
        ends = (middle - half, middle + half)
    return Change(mean(other) or 0.0, mean(own) or 0.0, middle, ends)
