"""Knowledge or reasoning? The tutorial's question, asked of two runs of the same model.

A subject that gains from a chain of thought is one of reasoning; one that does not, or loses, is
one of knowledge. Single subjects have 12 to 55 val rows, so both intervals stand beside the
difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from keju.benchmarks.ceval.subjects import SUBJECTS
from keju.errors import UsageError

Interval = tuple[float, float]


class SubjectModes(NamedTuple):
    """One subject, or one category, sat in both modes; shares in [0, 1]."""

    subject: str
    title: str
    """The Chinese name of a subject; what a category is called."""
    answer_only: float | None
    answer_only_ci95: Interval | None
    cot: float | None
    cot_ci95: Interval | None
    difference: float | None
    """Chain of thought minus answer-only; None where one of them has no score."""
    apart: bool
    """Whether the two intervals do not overlap, so that the difference is more than noise."""


def side_by_side(
    answer_only_entry: Mapping[str, Any], cot_entry: Mapping[str, Any]
) -> list[SubjectModes]:
    """Line up two entries of ``benchmarks`` of a results document, subject by subject.

    Only subjects that both runs sat are listed, in the published order.
    """
    for entry in (answer_only_entry, cot_entry):
        if entry.get("name") != "ceval":
            raise UsageError(f"modes are compared on ceval, this entry is {entry.get('name')!r}")
    direct = {subset["name"]: subset for subset in answer_only_entry["subsets"]}
    reasoned = {subset["name"]: subset for subset in cot_entry["subsets"]}
    shared = [name for name in SUBJECTS if name in direct and name in reasoned]
    if not shared:
        raise UsageError("the two runs have no subject in common: nothing to compare")
    return [_row(name, SUBJECTS[name].chinese, direct[name], reasoned[name]) for name in shared]


def groups_side_by_side(
    answer_only_entry: Mapping[str, Any], cot_entry: Mapping[str, Any]
) -> list[SubjectModes]:
    """The same for the categories and C-Eval Hard: means over their subjects.

    Only what both runs sat in full is listed.
    """
    direct = {group["name"]: group for group in answer_only_entry["groups"]}
    reasoned = {group["name"]: group for group in cot_entry["groups"]}
    return [
        _row(name, str(direct[name]["title"]), direct[name], reasoned[name])
        for name in direct
        if name in reasoned
    ]


def _row(
    name: str, title: str, direct: Mapping[str, Any], reasoned: Mapping[str, Any]
) -> SubjectModes:
    before, after = direct["accuracy"], reasoned["accuracy"]
    low, high = _interval(direct), _interval(reasoned)
    both = before is not None and after is not None
    return SubjectModes(
        subject=name,
        title=title,
        answer_only=before,
        answer_only_ci95=low,
        cot=after,
        cot_ci95=high,
        difference=after - before if both else None,
        apart=bool(low and high and (low[1] < high[0] or high[1] < low[0])),
    )


def _interval(subset: Mapping[str, Any]) -> Interval | None:
    bounds = subset.get("ci95")
    return (bounds[0], bounds[1]) if bounds and None not in bounds else None
