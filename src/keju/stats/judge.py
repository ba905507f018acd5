"""What a judge that errs at a known rate really saw."""

from __future__ import annotations

import math
from typing import NamedTuple

from keju.errors import UsageError


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


def rogan_gladen(share: float, n: int, judge: JudgeQuality) -> Corrected:
    """The true share behind a judged one (Rogan and Gladen 1978), clipped to [0, 1].

    A judge no better than chance cannot be corrected and is refused.
    """
    gain = judge.sensitivity + judge.specificity - 1
    if gain <= 0:
        raise UsageError(
            "the judge is no better than chance (sensitivity + specificity = "
            f"{judge.sensitivity + judge.specificity:.3f}): use another judge"
        )
    if n < 1 or judge.positives < 1 or judge.negatives < 1:
        raise UsageError(
            "correcting a judge needs graded answers and labelled ones of both kinds, "
            f"not n={n}, {judge.positives} right and {judge.negatives} wrong"
        )
    true = min(1.0, max(0.0, (share + judge.specificity - 1) / gain))
    own = share * (1 - share) / n
    missed = true**2 * judge.sensitivity * (1 - judge.sensitivity) / judge.positives
    passed = (1 - true) ** 2 * judge.specificity * (1 - judge.specificity) / judge.negatives
    return Corrected(true, math.sqrt(own + missed + passed) / gain)
