"""Plain descriptions of values: their mean, their quantiles."""

from __future__ import annotations

import math
from collections.abc import Sequence


def mean(values: Sequence[float]) -> float | None:
    """The mean; None of nothing."""
    return math.fsum(values) / len(values) if values else None


def quantile(ordered: Sequence[float], share: float) -> float | None:
    """The value below which `share` of the ordered values lie, between two of them by a line.

    The median of 1 and 3 is 2, as in most packages. None of nothing.
    """
    if not ordered:
        return None
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])
