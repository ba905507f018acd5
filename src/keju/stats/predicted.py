"""A mean of all items from scores of a few of them and predictions for all."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from keju.stats.describe import mean
from keju.stats.intervals import Moments


class Predicted(NamedTuple):
    """A mean and its standard error, which counts only items without a score as unsure."""

    value: float
    se: float | None
    """None for a single score."""


def difference_estimate(predictions: Sequence[float], scores: Mapping[int, float]) -> Predicted:
    """The mean of the predictions, corrected by what they miss on a random sample of items.

    `scores` are the scores of the sample by position. Bad predictions widen the interval and do
    not make it wrong.
    """
    missed = Moments.of(score - predictions[place] for place, score in scores.items())
    if missed is None:
        raise ValueError("a mean cannot be corrected without a single score")
    value = (mean(predictions) or 0.0) + missed.mean
    unseen = 1 - missed.n / len(predictions)
    return Predicted(value, None if missed.se is None else math.sqrt(unseen) * missed.se)
