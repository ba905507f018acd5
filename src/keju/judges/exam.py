"""Answers to be graded: which of them a judge is asked about, and as an exam that the engine asks
like any other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec

from keju.answers.thinking import split_thinking
from keju.benchmarks.base import DataFacts, Exam, Mean, Reader, Subset
from keju.benchmarks.choices import as_shown
from keju.engine.job import Job
from keju.engine.tally import CODE
from keju.judges.prompts import ANSWER, EVAL_MODE, PROTOCOLS, Kind, render
from keju.judges.verdicts import GRADER, VerdictReader, score_of
from keju.runs.judged import Grade
from keju.types import Answer, Prompt, Reading, Record, Reply, Sample, Score

Strategy = Literal["rule", "llm", "llm_recall"]
UNDECIDED = "undecided"
"""Grader of an answer that no rule of an exam with open answers decides."""


def can_be_judged(reply: Reply, sample: Sample) -> bool:
    """Whether there is a text to grade and a target to compare it with.

    Errors and empty replies are no answers, and the likeliest label needs no interpreter.
    """
    text = reply.error is None and bool(reply.text.strip())
    return text and bool(sample.target) and reply.label_logprobs is None


def wants_judge(score: Score, strategy: Strategy, *, open_answers: bool) -> bool:
    """Whether the judge decides about an answer to which the rule gave `score`.

    ``llm_recall`` hands in what the rules left undecided and, of exams with closed answers, what
    the reader missed; what the rules of an exam with open answers decide is final.
    """
    if strategy == "rule" or score.outcome in ("error", "refused"):
        return False
    if score.outcome == "ungraded":
        return score.grader == UNDECIDED
    if strategy == "llm":
        return True
    return score.outcome in ("incorrect", "unparsed") and not open_answers


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
        self.errata, self.settings = {}, {}
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


class Part(NamedTuple):
    """Graded answers of one exam that were decided in the same way."""

    n: int
    correct: int


class Handed(NamedTuple):
    """One answer that is handed to the judge."""

    unit: int
    """Of the candidate's job."""
    hash: str
    sample: Sample
    """With the options in the order in which the candidate saw them."""
    text: str
    readings: tuple[Reading, ...]
    """What the rules made of it."""
    wanted: tuple[bool, ...]
    """Which of these readings the judge decides."""


class Bundle:
    """All answers of one exam that are handed in."""

    def __init__(self, job: Job, strategy: Strategy) -> None:
        self.job = job
        self._strategy = strategy
        self._answers: dict[int, Handed] = {}

    def consider(self, unit: int, record: Record) -> None:
        """Take in a record if the judge is to decide about it; it replaces an earlier one.

        The judge sees what was read as an open answer, and else what the readers were given.
        """
        self._answers.pop(unit, None)
        index = unit // self.job.epochs
        sample = as_shown(self.job.exam.samples[index], record.order)
        readings = self.job.grade(index, record.reply, record.order)
        is_open = self.job.exam.open_answers
        read = readings[0].answer.value if is_open else None
        reply = self.job.filtered(record.reply)
        text = split_thinking(reply.text).text if read is None else read
        if not can_be_judged(msgspec.structs.replace(reply, text=text), sample):
            return
        wanted = tuple(
            wants_judge(reading.score, self._strategy, open_answers=is_open) for reading in readings
        )
        if any(wanted):
            self._answers[unit] = Handed(unit, record.hash, sample, text, readings, wanted)

    @property
    def answers(self) -> list[Handed]:
        """What was handed in, in the order of the exam."""
        return [self._answers[unit] for unit in sorted(self._answers)]

    def exam(self, kind: Kind) -> JudgeExam:
        """The answers as the judge's exam."""
        epochs = self.job.epochs
        questions = [
            handed_in(a.sample, a.text, index=index, epoch=a.unit % epochs)
            for index, a in enumerate(self.answers)
        ]
        return JudgeExam(self.job.exam.benchmark, questions, kind)

    def merge(self, verdicts: Sequence[str | None]) -> list[Grade]:
        """Enter the verdicts on the exam's scoreboards; return the readings that result."""
        grades = []
        for answer, verdict in zip(self.answers, verdicts, strict=True):
            readings = tuple(
                _decided(reading, verdict) if wanted else reading
                for reading, wanted in zip(answer.readings, answer.wanted, strict=True)
            )
            for tally, reading in zip(self.job.tallies, readings, strict=True):
                tally.add(answer.unit, reading)
            index, epoch = divmod(answer.unit, self.job.epochs)
            exam = self.job.exam
            sample_id = exam.samples[index].id
            grades.append(Grade(exam.benchmark, sample_id, answer.hash, readings, epoch))
        return grades

    def parts(self, reader: int, verdicts: Sequence[str | None]) -> tuple[Part, Part]:
        """The graded answers under one reader: those the judge decided, and all others."""
        tally = self.job.tallies[reader]
        units = [
            answer.unit
            for answer, verdict in zip(self.answers, verdicts, strict=True)
            if answer.wanted[reader] and verdict is not None
        ]
        right = CODE["correct"]
        judged = Part(len(units), sum(tally.outcomes[unit] == right for unit in units))
        return judged, Part(tally.graded - judged.n, tally.counts[right] - judged.correct)


def _decided(reading: Reading, verdict: str | None) -> Reading:
    """`reading` with the judge's word; that a reply was cut off stays said unless it is right."""
    score = score_of(verdict)
    if reading.score.outcome == "truncated" and score.outcome in ("incorrect", "refused"):
        score = Score(score.value, "truncated", GRADER)
    return msgspec.structs.replace(reading, score=score)
