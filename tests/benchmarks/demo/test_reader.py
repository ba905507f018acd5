"""The demo's own reader: the label after its marker, or the one that begins the last line."""

from __future__ import annotations

import pytest

from keju.benchmarks.demo import MarkerReader
from keju.types import Answer, Sample

SAMPLE = Sample(
    id="demo_0", subset="s", index=0, text="Q", target="B", choices=("one", "two", "three")
)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("So the answer is (B) two", Answer("B", "strict")),
        ("the answer is A\nNo, the answer is: B", Answer("B", "strict")),
        ("I think\n- B", Answer("B", "fallback")),
        ("Hm.\n(B) it is", Answer("B", "fallback")),
        ("A because it comes first", Answer("A", "fallback")),
        ("Because it comes first", Answer(reason="no_marker")),
        ("(B) three", Answer(reason="ambiguous")),
        ("the answer is B or C", Answer(reason="ambiguous")),
        ("the answer is unclear", Answer(reason="no_label")),
    ],
)
def test_a_label_after_the_marker_or_at_the_beginning_of_the_last_line(
    text: str, answer: Answer
) -> None:
    assert MarkerReader().read(text, SAMPLE) == answer
