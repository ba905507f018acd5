"""In which order a log shows the options of a question."""

from __future__ import annotations

from collections.abc import Sequence

from keju.interop.imports.log import LogRow
from keju.types import LABELS, Sample

SEPARATORS = (") ", ". ", ": ", "、", "．", " ")
"""What stands between a label and its option; before the label an opening bracket may stand."""


def squeezed(text: str) -> str:
    """`text` with every run of white space as one blank."""
    return " ".join(text.split())


def order_of(row: LogRow, sample: Sample) -> tuple[int, ...] | None:
    """The permutation behind the options as `row` shows them, in terms of the data.

    As in `Sample.order`; empty where nothing was permuted. None where the options shown are not
    those of `sample`.
    """
    if not sample.choices or _holds_its_options(sample):
        return sample.order
    choices = [squeezed(choice) for choice in sample.choices]
    if row.choices:
        found = _matched([squeezed(choice) for choice in row.choices], choices)
    else:
        found = _read_off(row.prompt, squeezed(sample.text), choices)
    if found is None:
        return None
    before = sample.order or tuple(range(len(choices)))
    order = tuple(before[i] for i in found)
    return order if order != tuple(range(len(order))) else sample.order and order


def _holds_its_options(sample: Sample) -> bool:
    """Whether the options stand in the question, so that no order of them is free."""
    return f"({LABELS[0]}) {sample.choices[0]}" in sample.text


def _matched(shown: Sequence[str], choices: Sequence[str]) -> tuple[int, ...] | None:
    """For each option shown its place among `choices`; equal options keep their order."""
    if sorted(shown) != sorted(choices):
        return None
    left = list(range(len(choices)))
    found: list[int] = []
    for option in shown:
        place = next(i for i in left if choices[i] == option)
        left.remove(place)
        found.append(place)
    return tuple(found)


def _read_off(prompt: str, question: str, choices: Sequence[str]) -> tuple[int, ...] | None:
    """The order of the labelled options after the question; that of the data if none is shown."""
    tail = squeezed(prompt)
    tail = f" {tail[tail.rfind(question) + len(question) :]} " if question in tail else f" {tail} "
    found = [_shown_as(label, tail, choices) for label in LABELS[: len(choices)]]
    if all(place is None for place in found):
        return tuple(range(len(choices)))
    places = [place for place in found if place is not None]
    shown = [choices[place] for place in places]
    return _matched(shown, choices) if len(places) == len(choices) else None


def _shown_as(label: str, tail: str, choices: Sequence[str]) -> int | None:
    """Which option `tail` shows under `label`: the longest, since one may begin like another."""
    fitting = [
        place
        for place, choice in enumerate(choices)
        for separator in SEPARATORS
        for opening in (" ", " (")
        if f"{opening}{label}{separator}{choice} " in tail
    ]
    return max(fitting, key=lambda place: len(choices[place]), default=None)
