"""Inspect's reader of labels, faults included."""

from __future__ import annotations

import pytest

from keju.answers.reader import InspectChoiceReader
from keju.types import Sample

SAMPLE = Sample(id="q", subset="s", index=0, text="?", target="A", choices=("a", "b", "c", "d"))


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("I add them up.\nANSWER: B", "B"),
        ("answer : b.", "B"),
        ("ANSWER: **C**", "C"),
        ("ANSWER: $D$", "D"),
        ("ANSWER: (B)\n", "B"),
        ("ANSWER: A,", "A"),
        ("ANSWER:\n\nB", "B"),
        ("ANSWER: A\nNo.\nANSWER: C", "C"),
        ("So ANSWER: B, I think", None),
        ("So ANSWER: B!", "B"),
        ("ANSWER: B\nso ANSWER: C!", "B"),
        ("ANSWER: A\nANSWER: B because", None),
        ("ANSWER: A and B", None),
        ("ANSWER: E", None),
        ("The answer is B.", None),
        ("B", None),
        ("DNA", None),
        ("", None),
    ],
)
def test_the_last_marker_decides_and_nothing_is_guessed(text: str, label: str | None) -> None:
    assert InspectChoiceReader().read(text, SAMPLE).value == label
