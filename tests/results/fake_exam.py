"""Small exams made for the tests of `keju.results`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from keju.answers.kinds import Choice
from keju.answers.robust import RobustReader
from keju.answers.wordings import ANSWER_COLON
from keju.benchmarks.base import DataSource, Exam, Mean, Protocol, Reference, Subset
from keju.engine.job import Job
from keju.results.gate_rows import NO_WORSE, GateRow
from keju.results.schema import SCHEMA, ResultEntry, Results, Timing, UsageTotals, to_document
from keju.results.scored_exam import ScoredExam
from keju.results.summarise import summarise
from keju.scores.tally import Tally
from keju.types import (
    Answer,
    Outcome,
    Prefix,
    Prompt,
    Reading,
    Reply,
    Sample,
    Sampling,
    Score,
    Usage,
)

PROTOCOL = Protocol(name="plain", version="1", reader="robust", about="made for tests")

OUTCOME_OF: dict[str, Outcome] = {
    "1": "correct", "0": "incorrect", "u": "unparsed", "t": "truncated",
    "r": "refused", "g": "ungraded", "e": "error", "n": "unlabelled",
}  # fmt: skip
"""The letters in which the tests write outcomes; a full stop is a unit without a record."""


class FakeExam(Exam):
    """An exam of given samples, without prompts."""

    benchmark = "fake"
    protocol = PROTOCOL
    readers: Mapping[str, Any] = {}
    data = DataSource({})

    def __init__(
        self, samples: Sequence[Sample], subsets: Sequence[Subset], means: Sequence[Mean] = ()
    ) -> None:
        self.samples = samples
        self.subsets = subsets
        self._means = means
        self.errata, self.settings, self.varied = {}, {}, {}

    def render(self, sample: Sample) -> Prompt:
        """Never sent: the tests start from scores."""
        return Prompt(Prefix(), sample.text)

    def means(self) -> Sequence[Mean]:
        """The means that the test asked for."""
        return self._means


class LazySamples(Sequence[Sample]):
    """Samples generated on access, none of them kept."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: Any) -> Any:
        return make_sample("a", index)


def make_sample(
    subset: str, index: int, *, choices: int = 4, group: str = "", order: tuple[int, ...] = ()
) -> Sample:
    """A question with `choices` options."""
    return Sample(
        id=f"fake_{subset}_{index}",
        subset=subset,
        index=index,
        text="?",
        target="A",
        choices=tuple(f"option {i}" for i in range(choices)),
        group=group,
        order=order,
    )


def make_exam(sizes: Mapping[str, int], means: Sequence[Mean] = (), **attributes: Any) -> FakeExam:
    """An exam with subsets of the given sizes; `more` sets attributes of the exam."""
    samples: list[Sample] = []
    subsets: list[Subset] = []
    for name, size in sizes.items():
        subsets.append(Subset(name, len(samples), len(samples) + size))
        samples += [make_sample(name, index) for index in range(size)]
    exam = FakeExam(samples, subsets, means)
    for attribute, value in attributes.items():
        setattr(exam, attribute, value)
    return exam


def make_tally(
    outcomes: str, *, epochs: int = 1, answers: Iterable[str | None] | None = None
) -> Tally:
    """A tally of outcomes written as letters, e.g. ``110e.``, unit by unit."""
    tally = Tally(len(outcomes) // epochs, epochs, keep_answers=answers is not None)
    texts = list(answers) if answers is not None else [None] * len(outcomes)
    for unit, (letter, answer) in enumerate(zip(outcomes, texts, strict=True)):
        if letter != ".":
            score = Score(float(letter == "1"), OUTCOME_OF[letter])
            tally.add(unit, Reading("robust", Answer(answer), score))
    return tally


def entry_of(exam: Exam, tally: Tally, reader: str = "robust") -> dict[str, Any]:
    """The entry of the document, with nothing spent."""
    entry = summarise(exam, tally, reader=reader, usage=UsageTotals(), timing=Timing(0.0))
    first_entry: dict[str, Any] = document_of(entry)["benchmarks"][0]
    return first_entry


def document_of(*entries: ResultEntry) -> dict[str, Any]:
    """The document of some entries."""
    return to_document(Results(schema=SCHEMA, run="r1", model="m", benchmarks=entries))


REFERENCE = Reference("paper", {"accuracy": 0.5}, {"a": 0.4})


def make_job(outcomes: str, *, arm: str = "", epochs: int = 1, **attributes: Any) -> Job:
    """An exam with one subset, with outcomes written as letters and ten tokens more per unit."""
    exam = make_exam({"all": len(outcomes) // epochs}, **attributes)
    reader = RobustReader(Choice(), strict=ANSWER_COLON)
    job = Job(exam, Sampling(), [reader], model="m", arm=arm, epochs=epochs)
    for unit, letter in enumerate(outcomes):
        if letter != ".":
            score = Score(float(letter == "1"), OUTCOME_OF[letter])
            reply = Reply("A", usage=Usage(100 + 10 * unit, 10), seconds=1.0 + unit)
            job.enter_readings(unit, reply, (), (Reading("robust", Answer("A"), score),))
    return job


def make_scored(outcomes: str, name: str = "r1", **settings: Any) -> ScoredExam:
    """A scored exam of the run `name`; `settings` are those of `make_job`."""
    facts = {key: settings.pop(key) for key in ("conditions", "circumstances") if key in settings}
    job = make_job(outcomes, **settings)
    return ScoredExam(name=name, model=f"model-{name}", job=job, command=name, **facts)


def make_row(**changes: Any) -> GateRow:
    """An undecided gate of 100 questions; `changes` are its other fields."""
    values: dict[str, Any] = {
        "exam": "demo", "gate": NO_WORSE, "verdict": "inconclusive", "n": 100, "left_out": 0,
        "score": 0.8, "value": -0.01, "limit": -0.02, "low": -0.05, "high": 0.03, "p": 0.2,
        "p_fail": 0.6, "whole": 400,
    }  # fmt: skip
    return GateRow(**values | changes)
