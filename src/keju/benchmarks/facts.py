"""What an exam declares for single commands: golden checks, a comparison of modes, a submission;
and about questions that are worked on in a notebook, which solvers interpret.

``keju verify`` scores recorded sets whose scores are known. Such a set is a file of what a model
said and a golden file with the figures it must give. The exam says how a set was made
(`GoldenCheck.settings`) and which figures are compared (`GoldenCheck.figures`); results grades the
rows and hands them over as `Recorded`. ``keju modes`` compares two runs as `Modes` says, and ``keju
export --format submission`` writes the file that a `Submit` makes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from keju.types import Outcome, Reading, Sample

if TYPE_CHECKING:
    from keju.benchmarks.base import Exam


COUNT = 0.0
"""Tolerance of whole numbers."""


class Figure(NamedTuple):
    """One figure of a recorded set."""

    what: str
    expected: float
    got: float | None
    tolerance: float = COUNT
    part: bool = False
    """Whether it is about a subset, so that it may be summed up while it is as known."""

    @property
    def ok(self) -> bool:
        """Whether the figure is the known one, as far as that is printed."""
        return self.got is not None and math.isclose(
            self.got, self.expected, rel_tol=0.0, abs_tol=self.tolerance
        )


class Sitting(NamedTuple):
    """How a recorded set was made."""

    args: Mapping[str, Any]
    protocol: str | None = None
    readers: Sequence[str] | None = None


class Part(NamedTuple):
    """The scores of the whole set, of a subset or of a group of subsets."""

    n: int | None = None
    outcomes: Mapping[Outcome, int] = {}
    accuracy: float | None = None
    """Of a group: the mean of its subsets."""
    micro_accuracy: float | None = None


class Answered(NamedTuple):
    """One row of a recorded set, graded."""

    row: Mapping[str, Any]
    sample: Sample
    """The question as the data has it now."""
    shown: Sample
    """The question as the row recorded it."""
    readings: Mapping[str, Reading]
    """By reader."""


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """A recorded set, graded; scores are those of the first reader."""

    exam: Exam
    rows: Sequence[Answered]
    """In the order of the file."""
    data: Path
    """The exam's folder."""
    whole: Part
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    subsets: Mapping[str, Part] = field(default_factory=dict)
    groups: Mapping[str, Part] = field(default_factory=dict)


Golden = Mapping[str, Any]
"""The content of a golden file."""


@dataclass(frozen=True, kw_only=True)
class GoldenCheck:
    """How the recorded sets of an exam are verified."""

    settings: Callable[[Golden, Sequence[Mapping[str, Any]]], Sitting]
    figures: Callable[[Golden, Recorded], Iterable[Figure]]
    letter: str = ""
    """The key of a row that holds the letter which was read, where no text was kept."""
    recorded_gold: bool = True
    """Whether the gold answers of the rows count, or those of the data."""


class Modes(NamedTuple):
    """An exam that can be sat with and without a chain of thought, as ``keju modes`` compares it.

    The setting ``mode`` of a run says which one it was.
    """

    direct: str
    """The mode that answers at once."""
    reasoned: str
    """The mode with a chain of thought."""
    subjects: Mapping[str, str]
    """The subsets in published order, and their titles."""
    subject_of: Callable[[str], str | None]
    """The subset of a sample's id."""
    groups: Mapping[str, tuple[str, ...]]
    """Groups of subsets whose means are compared too."""
    titles: Mapping[str, str]
    """Titles of groups that are not called by their name."""
    differ: tuple[str, ...] = ("mode", "decode")
    """Settings in which the two runs may differ."""


class Submission(NamedTuple):
    """The document, and the samples that have no answer of the model's own."""

    document: Mapping[str, Any]
    missing: list[str]


class Submit(Protocol):
    """Arranges answers for submission; `Benchmark.submission` is one."""

    def __call__(
        self,
        exam: Exam,
        answers: Mapping[str, str | None],
        fill: str | None = None,
        *,
        partial: bool = False,
    ) -> Submission:
        """Arrange `answers`, which are by sample id and as labels of the options shown.

        None stands for an answer that was not understood, and becomes `fill`. Without `partial`
        every question must have been asked.
        """


@dataclass(frozen=True, kw_only=True)
class NotebookTask:
    """A question with a folder of data, a notebook to analyse it in, and an answer to submit."""

    check: Callable[[Iterable[Sample]], None]
    """Refuses, before the first question, a run that lacks the data of one; ConfigError."""
    prepare: Callable[[Sample, Path], Mapping[str, Any]]
    """Puts a question's data into an empty folder; what it says of that stands in the record."""
    objection: Callable[[Sample, str], str | None]
    """What is wrong with a submitted answer, told to the model once; None if nothing is."""
    answer_form: str
    """What `submit_answer` wants, for its description."""
    max_turns: int
    cell_timeout: float | None = None
    """Seconds for one cell, where the exam's settings name them; else the sandbox's own."""
    image: str = ""
    """The image of the container to work in; empty for the local sandbox."""
    image_named: bool = False
    """Whether the exam's settings name the image; else it is the published one."""
    images: bool = False
    """Whether the model is shown the pictures that cells draw."""
    rerun_all: bool = False
    """Run the whole notebook after each edit, as upstream does, not the edited cell alone."""
    language: Literal["python", "r"] = "python"
