"""The answers of one exam that are handed to a judge, and what becomes of their readings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from keju.answers.thinking import split_thinking
from keju.benchmarks.choices import as_shown
from keju.engine.job import Job
from keju.engine.tally import CODE
from keju.judges.exam import JudgeExam, handed_in
from keju.judges.prompts import Kind
from keju.judges.quality import Part
from keju.judges.selection import Strategy, can_be_judged, wants_judge
from keju.judges.verdicts import GRADER, score_of
from keju.runs.judged import Grade
from keju.types import Reading, Record, Sample, Score


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
