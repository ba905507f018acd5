"""Answers to be graded, as an exam for the judge: the engine asks it like any other."""

from __future__ import annotations

from collections.abc import Sequence

from keju.benchmarks.base import DataFacts, Exam, Mean, Reader, Subset
from keju.judges.prompts import ANSWER, EVAL_MODE, PROTOCOLS, Kind, render
from keju.judges.verdicts import VerdictReader, score_of
from keju.types import Answer, Prompt, Reading, Reply, Sample, Score

PREFIX = "judge:"


def handed_in(sample: Sample, text: str, *, index: int, epoch: int = 0) -> Sample:
    """The answer `text` to `sample` as a question for the judge.

    Its id is the sample's own; the repeats of an answer after the first carry their number.
    """
    mode = sample.metadata.get(EVAL_MODE)
    return Sample(
        id=f"{sample.id}#{epoch}" if epoch else sample.id,
        subset=sample.subset,
        index=index,
        text=sample.text,
        target=sample.target,
        choices=sample.choices,
        metadata={ANSWER: text} | ({} if mode is None else {EVAL_MODE: mode}),
    )


class JudgeExam(Exam):
    """The answers of one exam, to be graded one by one."""

    data = DataFacts({})

    def __init__(self, name: str, samples: Sequence[Sample], kind: Kind) -> None:
        self.benchmark = PREFIX + name
        self.protocol = PROTOCOLS[kind]
        self.samples = samples
        self.subsets = (Subset(name, 0, len(samples)),)
        self.readers: dict[str, Reader] = {
            VerdictReader.name: VerdictReader(kind, lambda sample: self.render(sample).tail)
        }
        self._kind = kind

    def render(self, sample: Sample) -> Prompt:
        return render(sample, self._kind)

    def means(self) -> Sequence[Mean]:
        return ()

    def grade(self, reply: Reply, sample: Sample, reader: Reader) -> Reading:
        """Read the verdict; what the judge could not be asked has none."""
        if reply.error is not None:
            return Reading(reader.name, Answer(reason=reply.error.kind), Score(0.0, "error"))
        answer = reader.read(reply.text, sample)
        return Reading(reader.name, answer, score_of(answer.value))
