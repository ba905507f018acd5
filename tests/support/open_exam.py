"""A small exam with open answers, for what no rule decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from keju.benchmarks.base import Benchmark, DataFacts, Exam, Mean, Protocol, Reader, Subset
from keju.config import DatasetArgs
from keju.sources.folder import DataFolder
from keju.types import Answer, Prefix, Prompt, Reading, Reply, Sample, Score

SIZE = 40


class WholeText(Reader):
    """Takes the whole reply for the answer."""

    name = "whole"

    def read(self, text: str, sample: Sample) -> Answer:
        return Answer(text.strip(), "strict")

    def matches(self, value: str, sample: Sample) -> bool:
        return value == sample.target


class OpenExam(Exam):
    """Questions whose answers a rule decides only where they are the target's very text."""

    benchmark = "open"
    readers: Mapping[str, Reader] = {WholeText.name: WholeText()}
    data = DataFacts({}, version="1")
    open_answers = True

    def __init__(self, protocol: Protocol) -> None:
        self.protocol = protocol
        self.samples = [
            Sample(
                id=f"open_{n}",
                subset="all",
                index=n,
                text=f"What follows {n}?",
                target=str(n + 1),
            )
            for n in range(SIZE)
        ]
        self.subsets = (Subset("all", 0, SIZE),)

    def render(self, sample: Sample) -> Prompt:
        return Prompt(Prefix(), sample.text)

    def means(self) -> Sequence[Mean]:
        return ()

    def grade(self, reply: Reply, sample: Sample, reader: Reader) -> Reading:
        reading = super().grade(reply, sample, reader)
        if reading.score.outcome != "incorrect":
            return reading
        return Reading(reading.reader, reading.answer, Score(0.0, "ungraded", "undecided"))


class OpenBenchmark(Benchmark):
    """The benchmark around `OpenExam`."""

    name = "open"
    title = "Open answers"
    about = "for tests"
    protocols: ClassVar[Mapping[str, Protocol]] = {
        "text": Protocol(name="text", version="1", reader="whole", about="free text")
    }
    default_protocol = "text"
    reader_names = ("whole",)
    needs_data = False

    def prepare(self, args: DatasetArgs, folder: DataFolder, *, seed: int) -> Exam:
        return OpenExam(self.protocols["text"])
