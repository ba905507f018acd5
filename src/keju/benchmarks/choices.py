"""Labelled options: how they are written out, permuted, and read back from predictions files.

An order is the permutation behind what is shown: shown option i is option ``order[i]`` of the
data, as in `keju.types.Sample.order`.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from keju.benchmarks.grading import REFUSAL
from keju.errors import DataError, Hint
from keju.types import LABELS, Sample

LabelStyle = Literal["A) text", "A. text", "A: text", "(A) text", "A text"]
"""How a label and its option are written, named by an example."""

_FORMS: dict[LabelStyle, tuple[str, str]] = {
    "A) text": ("", ") "),
    "A. text": ("", ". "),
    "A: text": ("", ": "),
    "(A) text": ("(", ") "),
    "A text": ("", " "),
}


# `(B)`: how some exams write the label of an option.
_BRACKETED = re.compile(r"\(([A-Z])\)")


def label_lines(choices: Sequence[str], style: LabelStyle = "A) text") -> str:
    """The options, one a line, each with its label; no line end after the last."""
    before, after = _FORMS[style]
    return "\n".join(
        f"{before}{label}{after}{choice}" for label, choice in zip(LABELS, choices, strict=False)
    )


def check_choices(choices: Sequence[str], target: str, where: str) -> None:
    """Refuse options that cannot be labelled and a target that is no label of theirs.

    An empty target is allowed: some exams are published without their answers.
    """
    if not 2 <= len(choices) <= len(LABELS):
        raise DataError("choices_count", where=where, n=len(choices), most=len(LABELS))
    if target and (len(target) != 1 or target not in LABELS[: len(choices)]):
        last = LABELS[len(choices) - 1]
        raise DataError("choices_no_label", where=where, target=target, last=last)


def shuffle_order(n: int, seed: int, key: str) -> tuple[int, ...]:
    """A random order of `n` options that depends on nothing but `seed` and `key`.

    `key` names the question, so that each has its own order whichever others are asked.
    """
    digest = hashlib.sha256(f"{seed}:{key}".encode()).digest()
    order = list(range(n))
    random.Random(int.from_bytes(digest[:8], "big")).shuffle(order)
    return tuple(order)


def rotate_order(n: int, k: int) -> tuple[int, ...]:
    """The order after moving every option `k` places up, the first ones to the end."""
    return tuple((i + k) % n for i in range(n))


def permuted(sample: Sample, order: Sequence[int]) -> Sample:
    """`sample` with its shown options in `order`: choices, order and target label move together.

    `order` refers to the options as the sample shows them; the result's `order` refers to the data
    again, so that permutations can follow each other.
    """
    if sorted(order) != list(range(len(sample.choices))):
        raise ValueError(f"{tuple(order)} is no order of {len(sample.choices)} options")
    before = sample.order or tuple(range(len(sample.choices)))
    return msgspec.structs.replace(
        sample,
        choices=tuple(sample.choices[i] for i in order),
        order=tuple(before[i] for i in order),
        target=_moved(sample.target, order),
    )


def as_shown(sample: Sample, order: Sequence[int]) -> Sample:
    """`sample` with its options in the recorded `order`, which refers to the data.

    An empty order, or one that is not of these options, leaves it as it is. The label of a refusal
    option moves with its option.
    """
    current = sample.order or tuple(range(len(sample.choices)))
    if tuple(order) == current or sorted(order) != sorted(current):
        return sample
    steps = [current.index(origin) for origin in order]
    return moved_refusal(permuted(sample, steps), steps)


def moved_refusal(sample: Sample, order: Sequence[int]) -> Sample:
    """`sample`, whose options were just permuted, with the label of a refusal moved along."""
    refusal = sample.metadata.get(REFUSAL)
    if not refusal:
        return sample
    metadata = sample.metadata | {REFUSAL: _moved(refusal, order)}
    return msgspec.structs.replace(sample, metadata=metadata)


def _moved(target: str, order: Sequence[int]) -> str:
    return LABELS[list(order).index(LABELS.index(target))] if target else ""


def recorded_gold(row: Mapping[str, Any]) -> tuple[str, Any]:
    """The gold answer that a row carries, and the key it stands under; None if it has none."""
    key = "target" if row.get("target") is not None else "answer"
    return key, row.get(key)


def as_recorded(sample: Sample, row: Mapping[str, Any], *, gold: bool) -> Sample:
    """`sample` with the options of `row` and, if `gold`, its target; DataError if one is invalid.

    Where a row shows the same options in another order, the current gold moves with its option.
    """
    labelled = bool(sample.choices) and _label(sample.target) in LABELS
    choices = row.get("choices")
    if choices is not None:
        if not isinstance(choices, list) or not all(isinstance(each, str) for each in choices):
            raise DataError("choices_no_list")
        target, label = sample.target, _label(sample.target)
        now, then = ([each.strip() for each in own] for own in (sample.choices, choices))
        if labelled and label and sorted(now) == sorted(then) and len(set(now)) == len(now):
            place = then.index(now[sample.labels.index(label)])
            target = target.replace(label, LABELS[place])
        sample = msgspec.structs.replace(sample, choices=tuple(choices), order=(), target=target)
    key, recorded = recorded_gold(row)
    if recorded is not None:
        if isinstance(recorded, bool) or not isinstance(recorded, str | int | float):
            raise DataError("row_gold_not_text", key=key)
        if labelled and not (
            isinstance(recorded, str) and _label(recorded) in ("", *sample.labels)
        ):
            raise DataError(
                "choices_recorded", key=key, recorded=repr(recorded), labels=sample.labels
            )
        if gold:
            sample = msgspec.structs.replace(sample, target=str(recorded))
    if labelled and choices is not None:
        check_choices(sample.choices, _label(sample.target), Hint("quoted", name="choices"))
    return sample


def _label(target: str) -> str:
    """``B`` of ``(B)`` and of ``B``."""
    bracketed = _BRACKETED.fullmatch(target)
    return bracketed[1] if bracketed else target
