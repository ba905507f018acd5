"""From a reply to an outcome, where no exam differs."""

from __future__ import annotations

import pytest

from keju.benchmarks.base import Reader
from keju.benchmarks.grading import grade
from keju.types import Answer, Fault, Reply, Sample

SAMPLE = Sample(id="1", subset="s", index=0, text="?", target="B", choices=("x", "y"))


class Letter(Reader):
    """Reads the last of A and B."""

    name = "letter"

    def read(self, text: str, sample: Sample) -> Answer:
        letters = [letter for letter in text if letter in sample.labels]
        return Answer(letters[-1], "strict") if letters else Answer(reason="no_marker")

    def matches(self, value: str, sample: Sample) -> bool:
        return value == sample.target


@pytest.mark.parametrize(
    ("reply", "outcome", "reason"),
    [
        (Reply(text="B", finish="stop"), "correct", ""),
        (Reply(text="A", finish="stop"), "incorrect", ""),
        (Reply(text="?", finish="stop"), "unparsed", "no_marker"),
        (Reply(text="?", finish="length"), "truncated", "no_marker"),
        (Reply(text="B", finish="content_filter"), "correct", ""),
        (Reply(text="A", finish="content_filter"), "incorrect", ""),
        (Reply(text="I th", finish="content_filter"), "error", "content_filter"),
        (Reply(label_logprobs={}, finish="content_filter"), "error", "content_filter"),
        (Reply(error=Fault("server", "down")), "error", "server"),
    ],
)
def test_outcome(reply: Reply, outcome: str, reason: str) -> None:
    reading = grade(reply, SAMPLE, Letter())
    assert (reading.score.outcome, reading.answer.reason) == (outcome, reason)
