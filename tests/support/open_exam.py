"""A small exam with open answers, for what no rule decides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from keju.benchmarks.base import Benchmark, Exam, Protocol, Reader, by_name
from keju.benchmarks.kit import Question, Setup, reader
from keju.benchmarks.wording import Wording
from keju.config import JudgeConfig
from keju.types import Reading, Reply, Sample, Score

SIZE = 40
JUDGE: JudgeConfig | None = None
"""The judge that the exam names."""


@reader
def whole(text: str, _: Sample) -> str:
    """Takes the whole reply for the answer."""
    return text.strip()


@dataclass(kw_only=True, eq=False)
class OpenExam(Exam):
    """Questions whose answers a rule decides only where they are the target's very text."""

    open_answers: bool = True

    def __post_init__(self) -> None:
        self.judge = JUDGE

    def grade(self, reply: Reply, sample: Sample, reader: Reader) -> Reading:
        reading = super().grade(reply, sample, reader)
        if reading.score.outcome != "incorrect":
            return reading
        return Reading(reading.reader, reading.answer, Score(0.0, "ungraded", "undecided"))


def questions(_: Setup) -> Iterator[Question]:
    for n in range(SIZE):
        yield Question(f"What follows {n}?", str(n + 1), id=f"open_{n}")


OPEN = Benchmark(
    name="open",
    title="Open answers",
    about="for tests",
    readers=by_name(whole),
    questions=questions,
    exam=OpenExam,
    averages=(),
    protocols=by_name(
        Protocol(
            name="text",
            version="1",
            reader="whole",
            about="free text",
            wording=Wording(question="{question}"),
        )
    ),
)
