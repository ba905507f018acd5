"""Compare a score with the chance level."""

from __future__ import annotations

from typing import Literal

from keju.reporting.format import GUESSING, Labels, display_metrics, percent
from keju.results.schema import NO_GOLD, ResultEntry

Standing = Literal["above", "like", "below"]

ASYMMETRY_RATIO = 1.25
"""Both sides of an interval are shown if one is longer than the other by this factor."""


def compare_with_chance(entry: ResultEntry, labels: Labels) -> Standing | None:
    """Return how the headline compares with guessing, including its interval and bounds.

    Returns None if this is unknown or if guessing scores zero.
    """
    metric, chance = display_metrics(entry, labels)[0].metric, _chance(entry)
    is_share = metric.ci95 is not None and entry.gold != NO_GOLD and not metric.unit
    if metric.value is None or metric.ci95 is None or not is_share or not chance:
        return None
    ends = [*metric.ci95, *(metric.bounds or ())]
    return "above" if min(ends) > chance else "below" if max(ends) < chance else "like"


def _chance(entry: ResultEntry) -> float | None:
    metric = entry.metrics.get("chance")
    return metric.value if metric else None


def remark_on_chance(entry: ResultEntry, run: str, labels: Labels) -> str:
    """Return a note for a score that is not above the chance level; otherwise empty."""
    level = compare_with_chance(entry, labels)
    if level in (None, "above"):
        return ""
    remark = labels(f"remark.{level}_chance", chance=percent(_chance(entry)))
    # Only a file of predictions has a choice of gold answers, and it is not a run.
    hint = labels("remark.look", run=run) if level == "below" and run and not entry.gold else ""
    return remark + hint


def describe_chance(entry: ResultEntry, labels: Labels) -> str:
    """Return the chance level in one line.

    It names the questions it refers to if a published chance level exists or answers are missing.
    """
    chance = entry.metrics.get("chance")
    if chance is None:
        return ""
    has_other_levels = any(
        reference.name == GUESSING and reference.overall for reference in entry.reference
    )
    has_other_levels |= any(notice.code == "replies_missing" for notice in entry.notices)
    title = labels("chance_level_asked" if has_other_levels else "chance_level")
    return f"{title} {percent(chance.value)}"
