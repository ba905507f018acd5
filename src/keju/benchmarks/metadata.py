"""Declarations that an exam makes for single commands and for notebook work.

``keju verify`` scores recorded sets whose scores are known. A recorded set is a file of model
replies and a golden file with the expected figures. `GoldenCheck.settings` tells how the set was
made, and `GoldenCheck.figures` lists the figures to compare. `keju.results` grades the rows and
passes them to the exam as `GradedRecording`. ``keju modes`` compares two runs as `ThinkingModes`
describes. ``keju export --format submission`` writes the file that a `SubmissionBuilder` makes.
`NotebookTask` describes questions that a model answers in a notebook; solvers carry it out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeVar

import msgspec

from keju.types import Outcome, Reading, Sample

if TYPE_CHECKING:
    from keju.benchmarks.base import Exam


_Facts = TypeVar("_Facts", bound=msgspec.Struct)


def read_facts(module: str, facts_type: type[_Facts]) -> _Facts:
    """Return the content of ``facts.json`` next to `module`, the path of an exam's module."""
    content = Path(module).with_name("facts.json").read_bytes()
    return msgspec.json.decode(content, type=facts_type)


COUNT = 0.0
"""Tolerance for whole numbers."""


class RecordedFigure(NamedTuple):
    """One figure of a recorded set."""

    label: str
    expected: float
    actual: float | None
    tolerance: float = COUNT
    is_of_subset: bool = False
    """Whether the figure is about one subset: Keju may summarise such figures while they match."""

    @property
    def ok(self) -> bool:
        """Whether the figure equals the expected one within its tolerance."""
        return self.actual is not None and math.isclose(
            self.actual, self.expected, rel_tol=0.0, abs_tol=self.tolerance
        )


class RecordingSetup(NamedTuple):
    """The settings with which a recorded set was made."""

    args: Mapping[str, Any]
    protocol: str | None = None
    readers: Sequence[str] | None = None
    has_questions: bool = False
    """Whether the folder of the set also holds its questions, and not the questions of the exam."""


class RecordedScores(NamedTuple):
    """The scores of a full set, of a subset or of a group of subsets."""

    n: int | None = None
    outcomes: Mapping[Outcome, int] = {}
    accuracy: float | None = None
    """For a group: the mean of its subsets."""
    micro_accuracy: float | None = None


class GradedRow(NamedTuple):
    """One graded row of a recorded set."""

    row: Mapping[str, Any]
    sample: Sample
    """The question as the current data has it."""
    recorded_sample: Sample
    """The question as the row recorded it."""
    readings: Mapping[str, Reading]
    """By reader."""


@dataclass(frozen=True, kw_only=True)
class GradedRecording:
    """A graded recorded set, with the scores of the first reader."""

    exam: Exam
    rows: Sequence[GradedRow]
    """In the order of the file."""
    data: Path
    """The data folder of the exam."""
    overall: RecordedScores
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    subsets: Mapping[str, RecordedScores] = field(default_factory=dict)
    groups: Mapping[str, RecordedScores] = field(default_factory=dict)


Golden = Mapping[str, Any]
"""The content of a golden file."""


@dataclass(frozen=True, kw_only=True)
class GoldenCheck:
    """How to verify the recorded sets of an exam."""

    settings: Callable[[Golden, Sequence[Mapping[str, Any]]], RecordingSetup]
    figures: Callable[[Golden, GradedRecording], Iterable[RecordedFigure]]
    letter: str = ""
    """The key of a row that holds the extracted letter, for rows without the reply's text."""
    recorded_gold: bool = True
    """Whether rows are graded with the gold answers in the rows, not in the data."""


class ThinkingModes(NamedTuple):
    """The two modes of an exam, with and without a chain of thought, for ``keju modes``.

    The setting ``mode`` of a run names its mode.
    """

    direct: str
    """The mode that answers directly."""
    reasoned: str
    """The mode with a chain of thought."""
    subjects: Mapping[str, str]
    """Subset names in published order, with their titles."""
    subject_of: Callable[[str], str | None]
    """Returns the subset of a sample's id."""
    groups: Mapping[str, tuple[str, ...]]
    """Groups of subsets whose means are also compared."""
    titles: Mapping[str, str]
    """Titles of the groups whose title differs from their name."""
    differ: tuple[str, ...] = ("mode", "decode")
    """Settings in which the two runs may differ."""


class Submission(NamedTuple):
    """The document, and the samples without an answer from the model."""

    document: Mapping[str, Any]
    missing: list[str]


class SubmissionBuilder(Protocol):
    """Arranges answers for submission; `Benchmark.submission` has this type."""

    def __call__(
        self,
        exam: Exam,
        answers: Mapping[str, str | None],
        fill: str | None = None,
        *,
        partial: bool = False,
    ) -> Submission:
        """Arrange `answers`: labels of the displayed options, by sample id.

        None means that no answer was extracted; it becomes `fill`. Without `partial` every question
        must have been asked.
        """


@dataclass(frozen=True, kw_only=True)
class NotebookTask:
    """A question with a data folder, a notebook to analyse the data, and an answer to submit."""

    check: Callable[[Iterable[Sample]], None]
    """Raises ConfigError, before the first question, if the data of any question is missing."""
    prepare: Callable[[Sample, Path], Mapping[str, Any]]
    """Copies a question's data into an empty folder; the returned facts are stored in the record.
    """
    objection: Callable[[Sample, str], str | None]
    """Returns the problem with a submitted answer, which the model sees once; None if it is fine.
    """
    answer_form: str
    """The expected form of an answer, for the description of `submit_answer`."""
    max_turns: int
    cell_timeout: float | None = None
    """Seconds for one cell if the exam's settings give a limit; otherwise the sandbox's limit."""
    image: str = ""
    """The container image to work in; empty for the local sandbox."""
    image_named: bool = False
    """Whether the exam's settings name the image; otherwise it is the published one."""
    images: bool = False
    """Whether the model sees the images that cells draw."""
    rerun_all: bool = False
    """Run the full notebook after each edit, as upstream does, instead of only the edited cell."""
    language: Literal["python", "r"] = "python"
