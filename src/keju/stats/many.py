"""Many tests at once: which of them still count, and their adjusted p."""

from __future__ import annotations

from collections.abc import Sequence

SIGNIFICANT = 0.05
"""The p below which a difference or a trend is called more than noise."""


def benjamini_hochberg(ps: Sequence[float]) -> list[float]:
    """Adjusted p, in the order given: those at most q are false at a rate of at most q.

    For looking at many subsets. The test is step-up: a p above its own limit still counts if a
    larger one keeps its limit.
    """
    order = sorted(range(len(ps)), key=ps.__getitem__, reverse=True)
    adjusted, least = [1.0] * len(ps), 1.0
    for place, index in enumerate(order):
        least = min(least, ps[index] * len(ps) / (len(ps) - place))
        adjusted[index] = least
    return adjusted


def holm(ps: Sequence[float]) -> list[float]:
    """Adjusted p, in the order given: among those at most alpha any error at all is that rare.

    For gates.
    """
    order = sorted(range(len(ps)), key=ps.__getitem__)
    adjusted, most = [0.0] * len(ps), 0.0
    for place, index in enumerate(order):
        most = max(most, min(1.0, ps[index] * (len(ps) - place)))
        adjusted[index] = most
    return adjusted
