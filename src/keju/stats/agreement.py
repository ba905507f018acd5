"""Agreement of two raters, or of the repeats of one rater, and shares corrected for a judge's
errors."""

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
    """Expected agreement of two raters with these margins who choose at random."""
    value: float | None
    """None if chance alone gives full agreement, because kappa is then undefined."""


def cohens_kappa(table: Sequence[Sequence[int]]) -> Kappa:
    """Return kappa of a square table of counts: the first rater by row, the second by column."""
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
    """Return kappa of two raters' labels of the same questions."""
    names = list(dict.fromkeys([*first_labels, *second_labels]))
    pairs = Counter(zip(first_labels, second_labels, strict=True))
    return cohens_kappa([[pairs[a, b] for b in names] for a in names])


def self_consistency(votes: Iterable[int]) -> float | None:
    """Return the probability that two of a question's answers are equal, from the votes of each
    answer.

    None for fewer than two answers.
    """
    counts = list(votes)
    pairs = math.comb(sum(counts), 2)
    return sum(math.comb(count, 2) for count in counts) / pairs if pairs else None


class JudgeQuality(NamedTuple):
    """A judge measured on labelled answers."""

    sensitivity: float
    """Share of the right answers that the judge calls right."""
    specificity: float
    """Share of the wrong answers that the judge calls wrong."""
    positives: int
    """Number of labelled right answers behind `sensitivity`."""
    negatives: int
    """Number of labelled wrong answers behind `specificity`."""


class CorrectedShare(NamedTuple):
    """A share corrected for the judge's errors."""

    value: float
    se: float
    interval: Interval


def rogan_gladen(share: float, n: float, judge: JudgeQuality) -> CorrectedShare:
    """Return the true share behind a judged share (Rogan and Gladen 1978), clipped to [0, 1].

    `n` may be an effective size. Raises UsageError for a judge that is no better than chance.
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
    specificity_variance = (
        (1 - true) ** 2 * judge.specificity * (1 - judge.specificity) / judge.negatives
    )
    low, high = _score_interval(share, n, judge)
    interval = Interval(min(low, true), max(high, true))
    return CorrectedShare(
        true,
        math.sqrt(sampling_variance + sensitivity_variance + specificity_variance) / gain,
        interval,
    )


def _score_interval(share: float, n: float, judge: JudgeQuality) -> Interval:
    """Return the range of true shares that agree with the judged share.

    For each true share the expected share of answers that the judge calls right is computed. The
    true share is in the interval if the judged share is within 1.96 standard errors of that
    expectation. The standard errors are those at the true share, as in Wilson's interval. One more
    answer of each kind is added to the measured rates of the judge, so 40 of 40 does not count as
    never wrong.
    """
    rights, wrongs = judge.positives + 2, judge.negatives + 2
    hit_rate = (judge.sensitivity * judge.positives + 1) / rights
    false_positive_rate = 1 - (judge.specificity * judge.negatives + 1) / wrongs

    def standard_errors_above(true: float) -> float:
        """Return how many standard errors the judged share is above the expectation under
        `true`."""
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
