"""Labelled options: write them, permute them, and read them from predictions files.

An order is a permutation: displayed option i is option ``order[i]`` of the data, as in
`keju.types.Sample.order`.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from keju.benchmarks.grading import REFUSAL
from keju.errors import DataError, TranslatableText
from keju.types import LABELS, Sample

LabelStyle = Literal["A) text", "A. text", "A: text", "(A) text", "A text"]
"""The form of a label and its option, named by an example."""

_LABEL_MARKS: dict[LabelStyle, tuple[str, str]] = {
    "A) text": ("", ") "),
    "A. text": ("", ". "),
    "A: text": ("", ": "),
    "(A) text": ("(", ") "),
    "A text": ("", " "),
}


# `(B)`: some exams write the label of an option like this.
_BRACKETED = re.compile(r"\(([A-Z])\)")


def format_choices(choices: Sequence[str], style: LabelStyle = "A) text") -> str:
    """Return the options with their labels, one per line, without a final line break."""
    before, after = _LABEL_MARKS[style]
    return "\n".join(
        f"{before}{label}{after}{choice}" for label, choice in zip(LABELS, choices, strict=False)
    )


def check_choices(choices: Sequence[str], target: str, where: str) -> None:
    """Raise DataError for options that cannot be labelled and for a target that is not a label.

    An empty target is allowed: some exams are published without answers.
    """
    if not 2 <= len(choices) <= len(LABELS):
        raise DataError("choices_count", where=where, n=len(choices), most=len(LABELS))
    if target and (len(target) != 1 or target not in LABELS[: len(choices)]):
        last_label = LABELS[len(choices) - 1]
        raise DataError("choices_no_label", where=where, target=target, last=last_label)


def shuffle_order(n: int, seed: int, key: str) -> tuple[int, ...]:
    """Return a random order of `n` options that depends only on `seed` and `key`.

    `key` identifies the question, so its order does not depend on which other questions are asked.
    """
    digest = hashlib.sha256(f"{seed}:{key}".encode()).digest()
    order = list(range(n))
    random.Random(int.from_bytes(digest[:8], "big")).shuffle(order)
    return tuple(order)


def rotate_order(n: int, k: int) -> tuple[int, ...]:
    """Return the order after moving every option `k` places up, the first ones to the end."""
    return tuple((i + k) % n for i in range(n))


def permute(sample: Sample, order: Sequence[int]) -> Sample:
    """Return `sample` with its displayed options in `order`; choices, order and target change
    together.

    `order` refers to the options as the sample displays them. The result's `order` refers to the
    data, so permutations can be chained.
    """
    if sorted(order) != list(range(len(sample.choices))):
        raise ValueError(f"{tuple(order)} is not an order of {len(sample.choices)} options")
    before = sample.order or tuple(range(len(sample.choices)))
    return msgspec.structs.replace(
        sample,
        choices=tuple(sample.choices[i] for i in order),
        order=tuple(before[i] for i in order),
        target=_move_label(sample.target, order),
    )


def restore_order(sample: Sample, order: Sequence[int]) -> Sample:
    """Return `sample` with its options in the recorded `order`, which refers to the data.

    An empty order, or one that does not fit the options, changes nothing. The label of a refusal
    option moves with its option.
    """
    current = sample.order or tuple(range(len(sample.choices)))
    if tuple(order) == current or sorted(order) != sorted(current):
        return sample
    steps = [current.index(origin) for origin in order]
    return move_refusal(permute(sample, steps), steps)


def move_refusal(sample: Sample, order: Sequence[int]) -> Sample:
    """Return `sample` with the label of its refusal option moved, after a permutation of its
    options."""
    refusal = sample.metadata.get(REFUSAL)
    if not refusal:
        return sample
    metadata = sample.metadata | {REFUSAL: _move_label(refusal, order)}
    return msgspec.structs.replace(sample, metadata=metadata)


def _move_label(target: str, order: Sequence[int]) -> str:
    return LABELS[list(order).index(LABELS.index(target))] if target else ""


def recorded_gold(row: Mapping[str, Any]) -> tuple[str, Any]:
    """Return the key of a row's gold answer and its value; the value is None if there is none."""
    key = "target" if row.get("target") is not None else "answer"
    return key, row.get(key)


def as_recorded(sample: Sample, row: Mapping[str, Any], *, gold: bool) -> Sample:
    """Return `sample` with the options of `row` and, if `gold`, its target.

    DataError if one is invalid. If the row has the same options in another order, the current gold
    label moves with its option.
    """
    labelled = bool(sample.choices) and _unbracket(sample.target) in LABELS
    choices = row.get("choices")
    if choices is not None:
        if not _are_texts(choices):
            raise DataError("choices_no_list")
        target = _find_moved_target(sample, choices) if labelled else sample.target
        sample = msgspec.structs.replace(sample, choices=tuple(choices), order=(), target=target)
    recorded = _check_recorded_gold(row, sample.labels if labelled else None)
    if gold and recorded is not None:
        sample = msgspec.structs.replace(sample, target=str(recorded))
    if labelled and choices is not None:
        check_choices(
            sample.choices, _unbracket(sample.target), TranslatableText("quoted", name="choices")
        )
    return sample


def _are_texts(choices: Any) -> bool:
    """Whether a row's options are a list of texts."""
    return isinstance(choices, list) and all(isinstance(choice, str) for choice in choices)


def _find_moved_target(sample: Sample, choices: Sequence[str]) -> str:
    """Return the gold label of a sample among `choices`, if they are its options in any order."""
    label = _unbracket(sample.target)
    sample_texts = [text.strip() for text in sample.choices]
    row_texts = [text.strip() for text in choices]
    is_permutation = sorted(sample_texts) == sorted(row_texts)
    if not label or not is_permutation or len(set(sample_texts)) < len(sample_texts):
        return sample.target
    place = row_texts.index(sample_texts[sample.labels.index(label)])
    return sample.target.replace(label, LABELS[place])


def _check_recorded_gold(row: Mapping[str, Any], labels: str | None) -> str | int | float | None:
    """Return a row's gold answer; DataError if it is not text, or not one of `labels`."""
    key, recorded = recorded_gold(row)
    if recorded is None:
        return None
    if isinstance(recorded, bool) or not isinstance(recorded, str | int | float):
        raise DataError("row_gold_not_text", key=key)
    is_label = isinstance(recorded, str) and _unbracket(recorded) in ("", *(labels or ""))
    if labels is not None and not is_label:
        raise DataError("choices_recorded", key=key, recorded=repr(recorded), labels=labels)
    return recorded


def _unbracket(target: str) -> str:
    """Return ``B`` for ``(B)`` and for ``B``."""
    bracketed = _BRACKETED.fullmatch(target)
    return bracketed[1] if bracketed else target
