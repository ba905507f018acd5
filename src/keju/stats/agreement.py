"""How far two raters, or the repeats of one, agree; what a judge that errs really saw."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

from keju.errors import UsageError
from keju.stats.intervals import Z95, Interval


class Kappa(NamedTuple):
    """Agreement beyond chance (Cohen 1960)."""

    observed: float
    expected: float
    """Agreement of two raters with these margins who look at nothing."""
    value: float | None
    """None where chance alone gives full agreement, so that nothing can be said."""


def cohens_kappa(table: Sequence[Sequence[int]]) -> Kappa:
    """Kappa of a square table of counts, first rater by row, second by column."""
    total = sum(map(sum, table))
    if total == 0 or any(len(row) != len(table) for row in table):
        raise ValueError("kappa needs a square table with at least one count")
    agreed = sum(table[i][i] for i in range(len(table)))
    columns = [sum(column) for column in zip(*table, strict=True)]
    by_chance = sum(sum(row) * column for row, column in zip(table, columns, strict=True))
    observed, expected = agreed / total, by_chance / total**2
    if by_chance == total**2:
        return Kappa(observed, expected, None)
    return Kappa(observed, expected, (observed - expected) / (1 - expected))


def kappa_of_labels(first_labels: Sequence[Hashable], second_labels: Sequence[Hashable]) -> Kappa:
    """Kappa of two raters' labels of the same items."""
    names = list(dict.fromkeys([*first_labels, *second_labels]))
    pairs = Counter(zip(first_labels, second_labels, strict=True))
    return cohens_kappa([[pairs[a, b] for b in names] for a in names])


def self_consistency(votes: Iterable[int]) -> float | None:
    """Chance that two of an item's answers are the same, from the votes of each answer.

    None for fewer than two answers.
    """
    counts = list(votes)
    pairs = math.comb(sum(counts), 2)
    return sum(math.comb(count, 2) for count in counts) / pairs if pairs else None


class JudgeQuality(NamedTuple):
    """A judge measured on labelled answers."""

    sensitivity: float
    """Share of the right answers that it calls right."""
    specificity: float
    """Share of the wrong answers that it calls wrong."""
    positives: int
    """Labelled right answers behind `sensitivity`."""
    negatives: int
    """Labelled wrong answers behind `specificity`."""


class Corrected(NamedTuple):
    """A share corrected for the judge's errors."""

    value: float
    se: float
    interval: Interval


def rogan_gladen(share: float, n: float, judge: JudgeQuality) -> Corrected:
    """The true share behind a judged one (Rogan and Gladen 1978), clipped to [0, 1].

    `n` may be an effective size. A judge no better than chance cannot be corrected and is
    refused.
    """
    gain = judge.sensitivity + judge.specificity - 1
    if gain <= 0:
        raise UsageError("judge_no_better", total=judge.sensitivity + judge.specificity)
    if n <= 0 or judge.positives < 1 or judge.negatives < 1:
        labelled = {"positives": judge.positives, "negatives": judge.negatives}
        raise UsageError("judge_needs_labels", n=n, **labelled)
    true = min(1.0, max(0.0, (share + judge.specificity - 1) / gain))
    sampling_variance = share * (1 - share) / n
    sensitivity_variance = true**2 * judge.sensitivity * (1 - judge.sensitivity) / judge.positives
    specificity_variance = (1 - true) ** 2 * judge.specificity * (1 - judge.specificity) / judge.negatives
    low, high = _score_interval(share, n, judge)
    interval = Interval(min(low, true), max(high, true))
    return Corrected(true, math.sqrt(sampling_variance + sensitivity_variance + specificity_variance) / gain, interval)


def _score_interval(share: float, n: float, judge: JudgeQuality) -> Interval:
    """The true shares that the judged one does not contradict.

    A true share foretells what the judge would call right. It is kept if the judged share lies
    within 1.96 standard errors of that, the errors being those of the true share at hand, as in
    Wilson's interval. The judge's rates are measured with one more answer of each kind on both
    sides: 40 of 40 is not never wrong.
    """
    rights, wrongs = judge.positives + 2, judge.negatives + 2
    hit_rate = (judge.sensitivity * judge.positives + 1) / rights
    false_positive_rate = 1 - (judge.specificity * judge.negatives + 1) / wrongs

    def standard_errors_above(true: float) -> float:
        """By how many standard errors the judged share lies above what `true` foretells."""
        called = true * hit_rate + (1 - true) * false_positive_rate
        variance = called * (1 - called) / n
        variance += true**2 * hit_rate * (1 - hit_rate) / rights
        variance += (1 - true) ** 2 * false_positive_rate * (1 - false_positive_rate) / wrongs
        return (share - called) / math.sqrt(variance)

    def find_root(errors: float) -> float:
        low, high = 0.0, 1.0
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if standard_errors_above(middle) > errors else (low, middle)
        return (low + high) / 2

    low = 0.0 if standard_errors_above(0.0) <= Z95 else find_root(Z95)
    high = 1.0 if standard_errors_above(1.0) >= -Z95 else find_root(-Z95)
    return Interval(low, high)
