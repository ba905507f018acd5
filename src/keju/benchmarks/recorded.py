"""A question as a row of a predictions file has it, checked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from keju.benchmarks.choices import check_choices
from keju.errors import DataError
from keju.types import LABELS, Sample

_BRACKETED = re.compile(r"\(([A-Z])\)")
"""How BBH writes the label of an option."""


def recorded_gold(row: Mapping[str, Any]) -> tuple[str, Any]:
    """The gold answer that a row carries, and the key it stands under; None if it has none."""
    key = "target" if row.get("target") is not None else "answer"
    return key, row.get(key)


def as_recorded(sample: Sample, row: Mapping[str, Any], *, gold: bool) -> Sample:
    """`sample` with the options of `row` and, if `gold`, its target; DataError if they are none.

    Where a row shows the same options in another order, the current gold moves with its option.
    """
    labelled = bool(sample.choices) and _label(sample.target) in LABELS
    choices = row.get("choices")
    if choices is not None:
        if not isinstance(choices, list) or not all(isinstance(each, str) for each in choices):
            raise DataError("'choices' should be a list of texts")
        shown = tuple(choices)
        target = _moved(sample, shown) if labelled else sample.target
        sample = msgspec.structs.replace(sample, choices=shown, order=(), target=target)
    key, recorded = recorded_gold(row)
    if recorded is not None:
        if labelled and not (isinstance(recorded, str) and _fits(recorded, sample)):
            raise DataError(f"'{key}' is {recorded!r}, which is no label of {sample.labels}")
        if gold:
            sample = msgspec.structs.replace(sample, target=str(recorded))
    if labelled and choices is not None:
        check_choices(sample.choices, _label(sample.target), "'choices'")
    return sample


def _label(target: str) -> str:
    bracketed = _BRACKETED.fullmatch(target)
    return bracketed[1] if bracketed else target


def _fits(target: str, sample: Sample) -> bool:
    label = _label(target)
    return not label or (len(label) == 1 and label in sample.labels)


def _moved(sample: Sample, shown: tuple[str, ...]) -> str:
    """The current target's label among the options as shown, if they are the same ones."""
    label = _label(sample.target)
    now, then = ([choice.strip() for choice in choices] for choices in (sample.choices, shown))
    if not label or sorted(now) != sorted(then) or len(set(now)) < len(now):
        return sample.target
    place = then.index(now[sample.labels.index(label)])
    return sample.target.replace(label, LABELS[place])
