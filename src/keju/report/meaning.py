"""What to make of a score: whether it is more than guessing gives, and how sure it is."""

from __future__ import annotations

from typing import Literal

from keju.report.format import GUESSING, Labels, percent, shown_metrics
from keju.results.schema import NO_GOLD, Entry

Standing = Literal["above", "like", "below"]

LOPSIDED = 1.25
"""How much longer one side of an interval is than the other where both are told."""


def standing(entry: Entry, labels: Labels) -> Standing | None:
    """Where the headline stands against guessing, with all that it may be; None where that is
    not known, and where guessing gives nothing."""
    metric, chance = shown_metrics(entry, labels)[0].metric, _chance(entry)
    if metric.value is None or metric.ci95 is None or entry.gold == NO_GOLD or not chance:
        return None
    ends = [*metric.ci95, *(metric.bounds or ())]
    return "above" if min(ends) > chance else "below" if max(ends) < chance else "like"


def _chance(entry: Entry) -> float | None:
    known = entry.metrics.get("chance")
    return known.value if known else None


def remark(entry: Entry, run: str, labels: Labels) -> str:
    """What stands beside a score that is no more than guessing gives; empty beside another."""
    stands = standing(entry, labels)
    if stands in (None, "above"):
        return ""
    words = labels(f"remark.{stands}_chance", chance=percent(_chance(entry)))
    # A file of predictions, the only thing with a choice of golds, is no run.
    look = labels("remark.look", run=run) if stands == "below" and run and not entry.gold else ""
    return words + look


def meaning_words(entry: Entry, labels: Labels) -> list[str]:
    """What to make of the headline: whether it is more than guessing, and how sure it is."""
    metric = shown_metrics(entry, labels)[0].metric
    if metric.value is None or metric.ci95 is None or entry.gold == NO_GOLD:
        return []
    low, high = metric.ci95
    words = []
    if stands := standing(entry, labels):
        words.append(labels(f"meaning.{stands}_chance", chance=percent(_chance(entry))))
    below, above = (max(0.0, 100 * gap) for gap in (metric.value - low, high - metric.value))
    if max(below, above) > LOPSIDED * min(below, above):
        words.append(labels("meaning.sure_sides", below=f"{below:.1f}", above=f"{above:.1f}"))
    else:
        words.append(labels("meaning.sure", points=f"{50 * (high - low):.1f}"))
    words.append(labels("meaning.closer"))
    return words


def chance_words(entry: Entry, labels: Labels) -> str:
    """The chance level in one line; it says which questions it is of where there are others: in a
    run with answers to come, and beside a published one."""
    chance = entry.metrics.get("chance")
    if chance is None:
        return ""
    others = any(own.name == GUESSING and own.overall for own in entry.reference)
    others |= any(notice.code == "replies_missing" for notice in entry.notices)
    title = labels("chance_level_asked" if others else "chance_level")
    return f"{title} {percent(chance.value)}"
