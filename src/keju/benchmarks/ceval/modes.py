"""Knowledge or reasoning? The tutorial's question, asked of two runs of the same model.

A subject that gains from a chain of thought is one of reasoning; one that does not, or loses, is
one of knowledge. Only questions that both runs graded count, and they are compared one by one:
single subjects have 12 to 55 val rows, so the difference has an interval.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from keju.benchmarks.ceval.subjects import CATEGORIES, HARD, SUBJECTS, members
from keju.errors import UsageError
from keju.stats.distributions import student_t_quantile
from keju.stats.intervals import Interval, Moments

OVERALL = "all"
HARD_NAME = "hard"
_SAMPLE_ID = re.compile(r"ceval_(?P<subject>.+)_(?:val|test)_\d+")


class ModesRow(NamedTuple):
    """One subject, one category or everything, sat in both modes; shares in [0, 1]."""

    subject: str
    title: str
    """The Chinese name of a subject; what a category is called."""
    n: int
    """Questions that both runs graded."""
    answer_only: float
    cot: float
    difference: float
    """Chain of thought minus answer-only."""
    ci95: Interval | None
    """Of the difference; None where it has no spread to tell by."""
    apart: bool
    """Whether the interval leaves out 0, so that the difference is more than noise."""


class Comparison(NamedTuple):
    """Two runs, question by question."""

    overall: ModesRow
    subjects: list[ModesRow]
    """In the published order."""
    categories: list[ModesRow]
    """Means over their subjects, and C-Eval Hard; only those of which all subjects are there."""


class _Pair(NamedTuple):
    answer_only: float
    cot: float


def compare_modes(answer_only: Mapping[str, float], cot: Mapping[str, float]) -> Comparison:
    """Compare the scores of two runs by sample id."""
    pairs: dict[str, list[_Pair]] = {}
    for name, score in answer_only.items():
        found = _SAMPLE_ID.fullmatch(name)
        if found is not None and name in cot:
            pairs.setdefault(found["subject"], []).append(_Pair(score, cot[name]))
    if not pairs:
        raise UsageError("the two runs have no graded question in common: nothing to compare")
    known = {name: pairs[name] for name in SUBJECTS if name in pairs}
    groups = {name: members(name) for name in CATEGORIES} | {HARD_NAME: tuple(sorted(HARD))}
    titles = {HARD_NAME: "C-Eval Hard"}
    return Comparison(
        _mean_row(OVERALL, "all shared questions", [[p for own in known.values() for p in own]]),
        [_mean_row(name, SUBJECTS[name].chinese, [own]) for name, own in known.items()],
        [
            _mean_row(name, titles.get(name, name), [known[subject] for subject in subjects])
            for name, subjects in groups.items()
            if all(subject in known for subject in subjects)
        ],
    )


def _mean_row(name: str, title: str, strata: Sequence[Sequence[_Pair]]) -> ModesRow:
    """The mean over `strata`, which weigh the same; the standard error is that of fixed strata."""
    moments = [_moments(pair.cot - pair.answer_only for pair in own) for own in strata]
    before, after = (
        math.fsum(_moments(pair[side] for pair in own).mean for own in strata) / len(strata)
        for side in (0, 1)
    )
    difference = after - before
    interval = _interval(difference, moments)
    return ModesRow(
        subject=name,
        title=title,
        n=sum(len(own) for own in strata),
        answer_only=before,
        cot=after,
        difference=difference,
        ci95=interval,
        apart=interval is not None and not interval.low <= 0 <= interval.high,
    )


def _moments(values: Iterable[float]) -> Moments:
    moments = Moments.of(values)
    assert moments is not None  # a subject without a shared question is not listed
    return moments


def _interval(difference: float, strata: Sequence[Moments]) -> Interval | None:
    if any(own.variance is None for own in strata) or not any(own.variance for own in strata):
        return None
    error = math.sqrt(sum((own.variance or 0.0) / own.n for own in strata)) / len(strata)
    half = error * student_t_quantile(0.975, sum(own.n - 1 for own in strata))
    return Interval(difference - half, difference + half)
