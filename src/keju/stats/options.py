"""Does a model favour an option for its letter rather than for its content?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from keju.stats.distributions import chi_squared_survival


class ChiSquared(NamedTuple):
    """Pearson's test of counts against expected counts."""

    statistic: float
    df: int
    p: float


def option_bias(predicted: Sequence[float], gold: Sequence[float]) -> ChiSquared:
    """Test the counts of predicted letters against those of the gold letters.

    The gold counts are scaled to as many predictions as there are. Letters that are neither
    predicted nor gold are left out; a letter that is never gold cannot be tested and is refused.
    """
    pairs = [(p, g) for p, g in zip(predicted, gold, strict=True) if p or g]
    if len(pairs) < 2 or any(g <= 0 for _, g in pairs) or sum(predicted) <= 0:
        raise ValueError("option bias needs predictions and at least two letters that are gold")
    scale = math.fsum(predicted) / math.fsum(gold)
    statistic = math.fsum((p - g * scale) ** 2 / (g * scale) for p, g in pairs)
    df = len(pairs) - 1
    return ChiSquared(statistic, df, chi_squared_survival(statistic, df))


def recall_spread(recalls: Sequence[float]) -> float:
    """RStd: population standard deviation of the recall of each letter (Zheng et al. 2024)."""
    mean = math.fsum(recalls) / len(recalls)
    return math.sqrt(math.fsum((r - mean) ** 2 for r in recalls) / len(recalls))


def letter_prior(rotations: Sequence[Sequence[float]]) -> list[float]:
    """PriDe: a model's prior over letters, from their probabilities under option rotations."""
    logs = [
        math.fsum(math.log(p) for p in letter) / len(rotations)
        for letter in zip(*rotations, strict=True)
    ]
    return _normalised([math.exp(value) for value in logs])


def without_prior(observed: Sequence[float], prior: Sequence[float]) -> list[float]:
    """PriDe: observed letter probabilities with the prior divided out."""
    return _normalised([p / q for p, q in zip(observed, prior, strict=True)])


def _normalised(weights: Sequence[float]) -> list[float]:
    total = math.fsum(weights)
    return [weight / total for weight in weights]
