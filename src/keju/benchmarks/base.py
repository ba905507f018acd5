"""What an exam is made of: a benchmark, its protocols and readers, and the exam made ready to sit.

    Benchmark   everything that is known about an exam, as data: an instance, not a class
      layout      where its files lie, the hubs that carry them, rows and checksums as published
      protocols   the published ways to put its questions and to read the answers
      readers     how answers are read out of replies; any reader fits any stored run
      questions   a function that makes its samples out of a data folder
      golden      what ``keju verify`` compares; submission, judge, names in other tools' logs
    Exam        a benchmark with its data loaded and its protocol fixed, ready to sit

`Benchmark.prepare` turns the user's settings and a data folder into an `Exam` and refuses whatever
cannot be carried out before any call to a model. From then on everything is a pure function:
`Exam.render`, `Exam.grade`, `Exam.means`. The order of that preparation is in
`keju.benchmarks.prepare`, its steps in `keju.benchmarks.kit`, the prompts in
`keju.benchmarks.wording`, the rules from a reply to an outcome in `keju.benchmarks.grading`. An
exam that is peculiar beyond its data gives a subclass of `Exam` as `Benchmark.exam`, or makes the
exam by itself with `Benchmark.make`.

No other room names an exam: whoever needs a fact of one asks the `Benchmark` for it.
"""

from __future__ import annotations

import hashlib
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from keju.answers.reader import Reader as Reader
from keju.benchmarks.choices import as_recorded
from keju.benchmarks.grading import GRADED, LOST, grade
from keju.config import DatasetArgs, JudgeConfig
from keju.errors import DataError, Notice
from keju.stats.estimate import Estimate, Repeats, mean_of_items
from keju.types import Decode, Form, Outcome, Prompt, Reading, Reply, Sample

if TYPE_CHECKING:
    from keju.benchmarks.facts import GoldenCheck, Modes, NotebookTask, Submit
    from keju.benchmarks.kit import Questions, Setup
    from keju.benchmarks.wording import Prompts, Wording
    from keju.sources.folder import DataFolder, Layout


class Named(typing.Protocol):
    """Something with a name."""

    @property
    def name(self) -> str: ...


_Named = TypeVar("_Named", bound=Named)


def by_name(*things: _Named) -> dict[str, _Named]:
    """Protocols or readers by their names."""
    return {thing.name: thing for thing in things}


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
    temperature: float | None = None
    """As published; None where Keju's default of 0 holds."""
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    """Used in completion form only: chat replies are cut on our side."""
    label: str = ""
    """What the publication puts before a label whose log-probability it compares: a space where
    that label is ``" A"``, nothing where it is ``"A"``."""
    wording: Wording | None = None
    """How the questions are put; None where the exam writes its prompts by itself."""
    shots: int = 0
    """Worked examples before the question, as published."""
    shot_choices: Collection[int] | None = None
    """The numbers of worked examples that can be asked for; None for as many as there are."""
    templates: bool = True
    """Whether the user may replace the templates of the prompt."""
    readers: Mapping[str, Reader] | None = None
    """The readers as they read replies to these prompts; the benchmark's by default."""


@dataclass(frozen=True)
class Mean:
    """A named mean over tasks, each the mean of its subsets."""

    name: str
    title: str
    tasks: tuple[tuple[str, ...], ...]
    group: bool = False
    """Also listed under ``groups`` of the results, e.g. a category."""


def mean_over(names: Iterable[str]) -> Mean:
    """The mean over all subsets of an exam that declares none; over some of them it is partial."""
    return Mean("macro_accuracy", "mean over subsets", tuple((name,) for name in names))


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


@dataclass(frozen=True, kw_only=True)
class ToolTask:
    """What another tool's logs call an exam, and the reading of Keju that is the tool's."""

    tool: str
    name: str
    """A pattern for the whole name; its first group, where it has one, is the subset."""
    protocol: str = ""
    reader: str = ""
    """The equivalent reader where it is not the protocol's own."""
    args: Mapping[str, Any] = field(default_factory=dict)
    shots: int = 0
    """The most worked examples that are taken over from a log; 0 where they are no setting."""
    settings: tuple[str, ...] = ()
    """Further settings that are taken over from a log under the same name."""
    rules: Mapping[str, str] = field(default_factory=dict)
    """By subset, or under an empty name for all: how the tool decides, where its logs may lack
    its verdicts."""


@dataclass(frozen=True)
class Reference:
    """Published figures to print beside the scores, in [0, 1]."""

    name: str
    overall: Mapping[str, float] = field(default_factory=dict)
    """By metric name."""
    subsets: Mapping[str, float] = field(default_factory=dict)


class Scores(typing.Protocol):
    """What one reader made of an exam so far, as an exam's own metrics may look at it.

    A unit is one sample in one epoch, numbered ``sample * epochs + epoch``.
    """

    @property
    def samples(self) -> int: ...
    @property
    def epochs(self) -> int: ...
    @property
    def outcomes(self) -> Sequence[int]:
        """By unit: the place of its outcome in `ALL_OUTCOMES`; a larger number without a record."""

    @property
    def values(self) -> Sequence[float]:
        """By unit: its score."""

    @property
    def answers(self) -> Sequence[str | None] | None:
        """By unit: what was read, where the exam keeps answers."""

    @property
    def parts(self) -> Mapping[str, Sequence[float]]:
        """By name: what units are worth in the several numbers of a grader, by unit."""

    def outcome_counts(self) -> Mapping[Outcome, int]:
        """Counts by outcome, over all units."""


def graded_values(scores: Scores, values: Sequence[float], item: int) -> tuple[list[float], int]:
    """What the graded repeats of an item are worth by `values`, and how many lack a grade."""
    units = range(item * scores.epochs, (item + 1) * scores.epochs)
    graded = [values[unit] for unit in units if scores.outcomes[unit] in GRADED]
    return graded, sum(scores.outcomes[unit] in LOST for unit in units)


@dataclass(kw_only=True, eq=False)
class Exam:
    """A benchmark with its data loaded and its protocol fixed, ready to sit."""

    benchmark: str
    protocol: Protocol
    samples: Sequence[Sample]
    """In subset order; may be generated on access, so iterate rather than copy."""
    subsets: Sequence[Subset]
    readers: Mapping[str, Reader]
    data: DataFacts = DataFacts({})
    prompts: Prompts | None = None
    """The prompts, unless a subclass has a `render` of its own."""
    averages: Sequence[Mean] = ()
    undrawn: Collection[str] = ()
    """Subsets of which the draw of ``total`` questions took none."""
    errata: Mapping[str, str] = field(default_factory=dict)
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
    grader: str = ""
    """What decides the open answers that no rule does; a judge where it is empty."""
    warnings: Sequence[Notice] = ()
    """What every result of this exam has to say about itself."""
    hints: Sequence[Notice] = ()
    """What is said before anybody is asked, and of no interest in results."""
    keeps_answers: bool = False
    """Whether `extra_metrics` needs what was read, not only what it was worth."""
    rotations: int = 1
    """Under how many rotations of its options each question is asked, one after the other."""
    submitted: bool = False
    """Whether the exam's makers score answers to questions published without gold answers."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The effective settings that shaped the prompts, for the manifest."""
    notebook: NotebookTask | None = None
    """How its questions are worked on in a notebook, where they are not answered at once."""
    difficulty: float | None = None
    """How hard its questions are, where that can be chosen; 1 is as published."""
    varied: Mapping[str, Collection[str]] = field(default_factory=dict)
    """Settings that give the same questions in another form, so that they may well be compared,
    with the conditions that change along: a language with its prompts."""
    arm: str = ""
    """The arm that it is sat in, where its own settings ask for several exams at once."""

    def __post_init__(self) -> None:
        if self.prompts is not None:
            shown = self.prompts.shown
            self.readers = {name: each.facing(shown) for name, each in self.readers.items()}

    def render(self, sample: Sample) -> Prompt:
        """Return the prompt of one question; the `Prefix` object is shared inside a subset."""
        assert self.prompts is not None  # or a subclass renders
        return self.prompts.render(sample)

    @property
    def other_headline(self) -> str:
        """The metric of the headline, where that is not the mean over questions; else empty."""
        headline = self.protocol.headline
        return headline if headline != "accuracy" else ""

    def means(self) -> Sequence[Mean]:
        """The macro means of this exam over all its published subsets, the main one first."""
        return self.averages

    def grade(self, reply: Reply, sample: Sample, reader: Reader) -> Reading:
        """Read and score one reply. Exams with open answers extend this."""
        return grade(reply, sample, reader)

    def chance(self, sample: Sample) -> float | None:
        """The expected score of a blind guess, where that is defined."""
        return 1 / len(sample.choices) if sample.choices else None

    def extra_metrics(self, scores: Scores) -> Mapping[str, Estimate]:
        """Metrics peculiar to this exam, by name."""
        return {}

    def metrics(self, scores: Scores) -> Mapping[str, Estimate]:
        """All metrics beyond accuracy and means: a grader's numbers, the exam's own, rotations'."""
        from keju.benchmarks.rotation import rotation_metrics

        metrics: dict[str, Estimate] = {}
        for name, values in scores.parts.items():
            items = (
                Repeats(sample.group or sample.id, *graded_values(scores, values, item))
                for item, sample in enumerate(self.samples)
            )
            mean = mean_of_items(items, clustered=self.clustered)
            metrics[name] = msgspec.structs.replace(mean, title=f"mean of {name}")
        metrics |= self.extra_metrics(scores)
        return rotation_metrics(self, scores, metrics) if self.rotations > 1 else metrics

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
        messages = []
        for message in self.render(sample).messages:
            digest = hashlib.sha256(f"{message.role}\0{message.content}".encode()).hexdigest()[:8]
            role = {} if message.role == "user" else {"role": message.role}
            messages.append(role | {"id": digest, "content": message.content})
        choices = {"choices": list(sample.choices)} if sample.choices else {}
        return (
            {"input": messages}
            | choices
            | {
                "target": sample.target,
                "id": sample.index,
                "group_id": sample.index,
                "subset_key": sample.subset,
                "metadata": sample.metadata,
            }
        )

    def as_recorded(self, sample: Sample, row: Mapping[str, Any], *, gold: bool) -> Sample:
        """`sample` as a row of a predictions file has it: its options and, if `gold`, target.

        DataError where what the row carries cannot have been an option or a gold answer.
        """
        return as_recorded(sample, row, gold=gold)

    def carries_gold(self, row: Mapping[str, Any]) -> bool:
        """Whether a row of a predictions file is scored with its own gold unless users say else."""
        return row.get("choices") is not None

    def locate(self, row: Mapping[str, Any]) -> str:
        """The sample id that a row of a predictions file is about; KeyError names a lacking key.

        DataError where a key is of no use.
        """
        if "id" in row and isinstance(row["id"], str):
            return row["id"]
        subset = self.subset_named(row["subset"]) or row["subset"]
        return f"{self.benchmark}_{subset}_{row['index']}"

    def subset_named(self, name: Any) -> str | None:
        """The subset that a row calls `name`, in any case; None for an unknown one."""
        names = {fold(subset.name): subset.name for subset in self.subsets}
        return names.get(fold(name)) if isinstance(name, str) else None

    def check_keys(self, row: Mapping[str, Any], sample: Sample) -> None:
        """DataError where a row of a predictions file names its question in two ways that differ.

        For example ``{"subject": "law", "id": "ceval_logic_val_0"}``.
        """
        places = [key for key in ("subset", "subject", "category") if isinstance(row.get(key), str)]
        for key in places:
            if self.subset_named(row[key]) != sample.subset:
                raise DataError("row_contradiction", id=sample.id, key=key, value=row[key])
        if places and row.get("index", sample.index) != sample.index:
            raise DataError("row_contradiction", id=sample.id, key="index", value=row["index"])


@dataclass(frozen=True, kw_only=True, eq=False)
class Benchmark:
    """A published benchmark: what is known about it, and how it is made ready."""

    name: str
    title: str
    about: str
    """One line for ``keju list benchmarks``."""
    protocols: Mapping[str, Protocol]
    readers: Mapping[str, Reader]
    default_protocol: str = ""
    """The first one by default."""
    aliases: tuple[str, ...] = ()
    """Other names by which users may ask for it."""
    alias_protocols: Mapping[str, str] = field(default_factory=dict)
    """The protocol that an alias means where none is named: another tool's name for the exam means
    that tool's way to put it."""
    questions: Callable[[Setup], Iterable[Any] | Questions] | None = None
    """Makes the questions: any number of `keju.Question` or `keju.Sample`."""
    examples: Callable[[Setup], Iterable[Any] | Mapping[str, str]] | None = None
    """Makes the pool of worked examples in the same way, or their text for each subset."""
    shot_key: str = "{seed}:{name}:{subset}:shots"
    """What a random draw of worked examples is seeded with."""
    layout: Layout | None = None
    """Its files; None where the questions are generated or come with the code."""
    rows: Mapping[str, int] = field(default_factory=dict)
    """Rows of each subset as published."""
    count_note: str = "{name}: {rows} rows, {published} published"
    """What the manifest says of a subset with another number of rows."""
    subset_names: tuple[str, ...] = ()
    """In published order; empty where the questions tell."""
    subset_about: Mapping[str, str] = field(default_factory=dict)
    """What a subset asks, in one line for ``keju list subsets``."""
    subset_aliases: Mapping[str, str] = field(default_factory=dict)
    """Other names of subsets, in any case, to their own."""
    averages: Sequence[Mean] | None = None
    """The macro means; by default the mean over all subsets."""
    references: Sequence[Reference] = ()
    faults: Callable[[Sample], str | None] | None = None
    """What is known to be wrong with a published row."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Settings that have no effect here, and why."""
    settings: Callable[[Setup, Wording], Mapping[str, Any]] | None = None
    """What shaped the prompts, for the manifest; the usual settings by default."""
    grows: str = ""
    """The setting that says how many questions of each subset are generated."""
    fresh_of: str = ""
    """The benchmark whose kinds of questions it draws anew."""
    tool_tasks: Sequence[ToolTask] = ()
    """Its names in the logs of other tools."""
    golden: GoldenCheck | None = None
    """What ``keju verify`` compares."""
    submission: Submit | None = None
    """Makes the file for the site of the exam's makers, out of a run's answers."""
    prediction_files: Callable[[Exam, Mapping[str, str | None]], Mapping[str, Any]] | None = None
    """Makes the exam's own files with a column of predictions: rows of cells by file name."""
    modes: Modes | None = None
    """The two modes whose runs ``keju modes`` compares."""
    exam: type[Exam] = Exam
    Args: type[DatasetArgs] = DatasetArgs
    """The settings it takes in ``dataset_args``: `DatasetArgs` and its own."""
    make: Callable[[DatasetArgs, DataFolder, int], Exam] | None = None
    """Makes the exam out of settings, folder and seed, where the usual steps do not fit."""

    def __post_init__(self) -> None:
        if not self.default_protocol:
            object.__setattr__(self, "default_protocol", next(iter(self.protocols)))
        for protocol in self.protocols.values():
            if protocol.reader not in (protocol.readers or self.readers):
                raise ValueError(
                    f"protocol '{protocol.name}' of {self.name} reads with '{protocol.reader}', "
                    f"which is none of its readers ({', '.join(protocol.readers or self.readers)})"
                )

    @property
    def reader_names(self) -> tuple[str, ...]:
        """The names of its readers."""
        return tuple(self.readers)

    def subset_name(self, name: str) -> str | None:
        """The subset that a user calls `name`, in any case; None for an unknown name."""
        names = {subset: subset for subset in self.subset_names} | dict(self.subset_aliases)
        return {fold(other): subset for other, subset in names.items()}.get(fold(name))

    def prepare(self, args: DatasetArgs, folder: DataFolder, *, seed: int) -> Exam:
        """Load the data and fix the protocol; raise ConfigError or DataError on anything wrong."""
        from keju.benchmarks.prepare import prepare

        exam = self.make(args, folder, seed) if self.make else prepare(self, args, folder, seed)
        exam.submitted = self.submission is not None
        return exam


def fold(name: str) -> str:
    """A name without what users vary in it: `` Dyck-Languages`` is as good as dyck_languages."""
    return " ".join(name.casefold().replace("_", " ").replace("-", " ").split())
