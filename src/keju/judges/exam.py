"""Answers that a judge is asked about, and their grading as an exam like any other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from keju.answers.thinking import split_thinking
from keju.benchmarks.base import Exam, Reader, Subset
from keju.benchmarks.choices import as_shown
from keju.benchmarks.grading import UNDECIDED
from keju.engine.job import Job
from keju.judges import earlier
from keju.judges.prompts import ANSWER, EVAL_MODE, PROTOCOLS, Kind, render
from keju.judges.verdicts import GRADER, VerdictReader, read_verdict, reading_of, score_of
from keju.types import Answer, Prompt, Reading, Record, Reply, Sample, Score

PREFIX = "judge:"


class Submission(NamedTuple):
    """An answer of the candidate that is handed to a judge."""

    unit: int
    """Of the candidate's job."""
    hash: str
    question: Sample
    """What the judge is asked: the question as the candidate saw it, with target and answer."""
    readings: tuple[Reading, ...]
    """What the rules made of the answer."""
    judged: tuple[bool, ...]
    """Which of these readings the judge decides."""

    def decided(self, verdict: str | None) -> tuple[Reading, ...]:
        """The readings with the judge's word; a reply that was cut off stays one."""
        score = cut_off = score_of(verdict)
        if score.outcome != "ungraded":
            cut_off = Score(score.value, "truncated", GRADER)
        return tuple(
            replace(reading, score=cut_off if reading.score.outcome == "truncated" else score)
            if judged
            else reading
            for reading, judged in zip(self.readings, self.judged, strict=True)
        )


def submit(job: Job, unit: int, record: Record, strategy: str) -> Submission | None:
    """The answer in a graded record as it is handed in; None if the judge has nothing to decide.

    The judge sees what was read as an open answer, and else what the readers were given. Errors
    and empty replies are not answers, and the likeliest label needs no interpreter.
    """
    readings, is_open = record.readings, job.exam.open_answers
    judged = tuple(wants_judge(each.score, strategy, open_answers=is_open) for each in readings)
    reply = record.reply
    if not any(judged) or reply.error is not None or reply.label_logprobs is not None:
        return None
    index, epoch = divmod(unit, job.epochs)
    sample = as_shown(job.exam.samples[index], record.order)
    text = readings[0].answer.value if is_open else None
    if text is None:
        text = split_thinking(job.filtered(reply).text).text
    if not text.strip() or not sample.target:
        return None
    return Submission(unit, record.hash, handed_in(sample, text, unit, epoch), readings, judged)


def wants_judge(score: Score, strategy: str, *, open_answers: bool) -> bool:
    """Whether the judge decides about an answer to which the rule gave `score`.

    What the rules of an exam with open answers decide is final, on both sides: a judge can neither
    lower the share that they find right nor raise it. ``llm_recall`` hands in what they left
    undecided and, of exams with closed answers, what the reader missed.
    """
    if strategy == "rule" or score.outcome in ("error", "refused"):
        return False
    if score.outcome == "ungraded":
        return score.grader == UNDECIDED
    if open_answers and score.outcome in ("correct", "incorrect"):
        return False
    if strategy == "llm":
        return True
    return score.outcome in ("incorrect", "unparsed") and not open_answers


def handed_in(sample: Sample, text: str, index: int = 0, epoch: int = 0) -> Sample:
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

    def __init__(
        self,
        name: str,
        samples: Sequence[Sample],
        kind: Kind,
        write: Callable[[Sample, Kind], Prompt] = render,
    ) -> None:
        super().__init__(
            benchmark=PREFIX + name,
            protocol=PROTOCOLS[kind],
            samples=samples,
            subsets=(Subset(name, 0, len(samples)),),
            readers={VerdictReader.name: VerdictReader(kind)},
        )
        self.kind = kind
        self._write = write

    def earlier(self) -> JudgeExam:
        """The same answers as version 0.1 asked about them."""
        return JudgeExam(
            self.benchmark.removeprefix(PREFIX), self.samples, self.kind, earlier.render
        )

    def render(self, sample: Sample) -> Prompt:
        return self._write(sample, self.kind)

    def grade(self, reply: Reply, sample: Sample, reader: Reader) -> Reading:
        """Read the verdict; a failed attempt has none, and says why."""
        if reply.error is not None and not reply.text:
            return Reading(reader.name, Answer(reason=reply.error.kind), Score(0.0, "error"))
        shown = self.render(sample).tail
        verdict = reading_of(read_verdict(reply.text, shown, self.kind, reply.finish))
        failed = reply.error is not None
        return replace(verdict, score=Score(0.0, "error")) if failed else verdict
