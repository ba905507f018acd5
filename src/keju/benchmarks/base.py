"""What an exam is made of: a benchmark, its protocols and readers, and the exam made ready to sit.

A room of `keju.benchmarks` holds one `Benchmark` subclass. `prepare` turns the user's settings
and a data folder into an `Exam`, refusing whatever cannot be carried out before any call to a
model. From then on everything is a pure function: `render`, `grade`, `means`.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar
from typing import Protocol as Shape

from keju.answers.reader import Reader as Reader
from keju.benchmarks.grading import grade
from keju.benchmarks.modes import Modes
from keju.benchmarks.recorded import as_recorded
from keju.config import DatasetArgs, JudgeConfig
from keju.errors import Notice
from keju.stats.estimate import Estimate
from keju.types import Decode, Form, Message, Outcome, Prompt, Reading, Reply, Sample

if TYPE_CHECKING:
    from keju.sources.folder import DataFolder


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """A published way to put the questions and read the answers; part of every result."""

    name: str
    version: str
    reader: str
    """The reader behind the headline; the others stand beside it."""
    about: str
    """One line for ``keju list protocols``."""
    headline: str = "accuracy"
    """Which metric the publication reports."""
    decode: Decode = "generate"
    form: Form = "chat"
    temperature: float = 0.0
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    """Used in completion form only: chat replies are cut on our side."""


@dataclass(frozen=True)
class Mean:
    """A named mean over tasks, each the mean of its subsets."""

    name: str
    title: str
    tasks: tuple[tuple[str, ...], ...]
    group: bool = False
    """Also listed under ``groups`` of the results, e.g. a category."""


@dataclass(frozen=True)
class Subset:
    """A run of consecutive samples; a fixed stratum of the exam."""

    name: str
    start: int
    stop: int
    title: str = ""
    population: int = 0
    """Rows of the published subset, where fewer were drawn from it; 0 if all are asked."""

    def __len__(self) -> int:
        return self.stop - self.start


@dataclass(frozen=True)
class DataFacts:
    """Where the questions came from, for the manifest."""

    files: Mapping[str, str]
    """Relative path to SHA-256 of each file read."""
    version: str = ""
    notes: tuple[str, ...] = ()
    """What loading changed or left out, each in one line."""


@dataclass(frozen=True)
class Reference:
    """Published figures to print beside the scores, in [0, 1]."""

    name: str
    overall: Mapping[str, float] = field(default_factory=dict)
    """By metric name."""
    subsets: Mapping[str, float] = field(default_factory=dict)


class Scores(Shape):
    """What one reader made of an exam so far, as an exam's own metrics may look at it.

    A unit is one sample in one epoch, numbered ``sample * epochs + epoch``.
    """

    @property
    def samples(self) -> int: ...
    @property
    def epochs(self) -> int: ...
    @property
    def outcomes(self) -> Sequence[int]:
        """By unit: the place of its outcome in `OUTCOMES`; a larger number if it has no record."""

    @property
    def values(self) -> Sequence[float]:
        """By unit: its score."""

    @property
    def answers(self) -> Sequence[str | None] | None:
        """By unit: what was read, where the exam keeps answers."""

    def outcome_counts(self) -> Mapping[Outcome, int]:
        """Counts by outcome, over all units."""


class Exam(ABC):
    """A benchmark with its data loaded and its protocol fixed, ready to sit."""

    benchmark: str
    protocol: Protocol
    samples: Sequence[Sample]
    """In subset order; may be generated on access, so iterate rather than copy."""
    subsets: Sequence[Subset]
    readers: Mapping[str, Reader]
    data: DataFacts
    errata: Mapping[str, str] = {}
    """Sample id to what is known to be wrong with it; shown, never silently dropped."""
    clustered: bool = False
    """Whether samples share groups, so that standard errors must be clustered."""
    references: Sequence[Reference] = ()
    beside: str = "robust"
    """The reader whose accuracy stands beside the headline's."""
    judge: JudgeConfig | None = None
    """The judge that the exam's own settings name, for tasks that name none."""
    open_answers: bool = False
    """Answers are free text: what the rules decide is final, and they say what they cannot."""
    warnings: Sequence[Notice] = ()
    """What every result of this exam has to say about itself."""
    keeps_answers: bool = False
    """Whether `extra_metrics` needs what was read, not only what it was worth."""
    settings: Mapping[str, Any] = {}
    """The effective settings that shaped the prompts, for the manifest."""

    @abstractmethod
    def render(self, sample: Sample) -> Prompt:
        """Return the prompt of one question; the `Prefix` object is shared inside a subset."""

    @abstractmethod
    def means(self) -> Sequence[Mean]:
        """The macro means of this exam over all its published subsets, the main one first."""

    def grade(self, reply: Reply, sample: Sample, reader: Reader) -> Reading:
        """Read and score one reply. Exams with open answers extend this."""
        return grade(reply, sample, reader)

    def chance(self, sample: Sample) -> float | None:
        """The expected score of a blind guess, where that is defined."""
        return 1 / len(sample.choices) if sample.choices else None

    def extra_metrics(self, scores: Scores) -> Mapping[str, Estimate]:
        """Metrics peculiar to this exam, by name."""
        return {}

    def joint_metrics(
        self, answers: Mapping[str, Sequence[str | None]], targets: Sequence[str]
    ) -> Mapping[str, Mapping[str, Estimate]]:
        """Metrics by reader and name that depend on several readers of the same replies.

        `answers` holds what each reader read and `targets` the gold, in the order of the file or
        run that is scored.
        """
        return {}

    def describe(self, sample: Sample) -> dict[str, Any]:
        """The sample as the JSON that ``keju show`` prints."""
        prompt = self.render(sample)
        document: dict[str, Any] = {"input": [_shown(m) for m in prompt.messages]}
        if sample.choices:
            document["choices"] = list(sample.choices)
        return document | {
            "target": sample.target,
            "id": sample.index,
            "group_id": sample.index,
            "subset_key": sample.subset,
            "metadata": sample.metadata,
        }

    def as_recorded(self, sample: Sample, row: Mapping[str, Any], *, gold: bool) -> Sample:
        """`sample` as a row of a predictions file has it: its options and, if `gold`, target.

        DataError where what the row carries cannot have been an option or a gold answer.
        """
        return as_recorded(sample, row, gold=gold)

    def locate(self, row: Mapping[str, Any]) -> str:
        """The sample id that a row of a predictions file is about; KeyError names a lacking key."""
        if "id" in row and isinstance(row["id"], str):
            return row["id"]
        return f"{self.benchmark}_{row['subset']}_{row['index']}"


def _shown(message: Message) -> dict[str, str]:
    digest = hashlib.sha256(f"{message.role}\0{message.content}".encode()).hexdigest()[:8]
    shown = {"id": digest, "content": message.content}
    return shown if message.role == "user" else {"role": message.role} | shown


class Benchmark(ABC):
    """A published benchmark: what can be asked of it, and how to make it ready."""

    name: ClassVar[str]
    title: ClassVar[str]
    about: ClassVar[str]
    """One line for ``keju list benchmarks``."""
    aliases: ClassVar[tuple[str, ...]] = ()
    protocols: ClassVar[Mapping[str, Protocol]]
    default_protocol: ClassVar[str]
    reader_names: ClassVar[tuple[str, ...]]
    subset_names: ClassVar[tuple[str, ...]] = ()
    needs_data: ClassVar[bool] = True
    """False where the questions are generated; `prepare` then gets an empty folder."""
    modes: ClassVar[Modes | None] = None
    """The two modes whose runs ``keju modes`` compares."""
    Args: ClassVar[type[DatasetArgs]] = DatasetArgs
    """The settings it takes in ``dataset_args``: `DatasetArgs` and its own."""

    def subset_name(self, given: str) -> str | None:
        """The subset that a user calls `given`, in any case; None if it is none of the names."""
        folded = given.casefold()
        return next((name for name in self.subset_names if name.casefold() == folded), None)

    @abstractmethod
    def prepare(self, args: DatasetArgs, folder: DataFolder, *, seed: int) -> Exam:
        """Load the data and fix the protocol; raise ConfigError or DataError on anything wrong."""
