"""The types that describe an exam: a benchmark, its protocols and readers, and the loaded exam.

    Benchmark   all facts about an exam as data: an instance, not a subclass
      layout      the paths of its files, the hubs that host them, published rows and checksums
      protocols   the published ways to ask its questions and to read the answers
      readers     the ways to read answers out of replies; any reader can read any stored run
      questions   a function that makes the samples from a data folder
      golden      the figures that ``keju verify`` compares; submission, judge, names in other logs
    Exam        a benchmark with loaded data and a fixed protocol, ready to run

`Benchmark.prepare` makes an `Exam` from the user's settings and a data folder. It rejects every
setting that cannot be carried out before any call to a model. After that, `Exam.render`,
`Exam.grade` and `Exam.means` are pure functions. `keju.benchmarks.prepare` defines the order of
the preparation, `keju.benchmarks.kit` its steps, `keju.benchmarks.wording` the prompts, and
`keju.benchmarks.grading` the rules from a reply to an outcome. An exam with special behaviour
sets `Benchmark.exam` to a subclass of `Exam`, or makes the exam itself with `Benchmark.make`.

No other package names an exam: code that needs a fact about one asks its `Benchmark`.
"""

from __future__ import annotations

import hashlib
import math
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from keju.answers.reader import Reader as Reader
from keju.benchmarks.choices import as_recorded
from keju.benchmarks.expectations import PART_NAMES
from keju.benchmarks.grading import GRADED, LOST, grade
from keju.config import DatasetArgs, JudgeConfig
from keju.errors import DataError, Notice
from keju.stats.estimate import Estimate, QuestionRepeats, mean_of_items
from keju.types import Continuation, Decode, Form, Outcome, Prompt, Reading, Reply, Sample

if TYPE_CHECKING:
    from keju.benchmarks.kit import Questions, Setup, ShotDraw
    from keju.benchmarks.metadata import GoldenCheck, NotebookTask, SubmissionBuilder, ThinkingModes
    from keju.benchmarks.programs import ProgramTests
    from keju.benchmarks.wording import PromptMaker, Wording
    from keju.sources.folder import DataFolder, Layout


WHOLE = "all"
"""The only subset of an exam without subsets."""


class HasName(typing.Protocol):
    """An object with a name."""

    @property
    def name(self) -> str: ...


_Named = TypeVar("_Named", bound=HasName)


def by_name(*things: _Named) -> dict[str, _Named]:
    """Protocols or readers by their names."""
    return {thing.name: thing for thing in things}


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """A published way to put the questions and read the answers; part of every result."""

    name: str
    version: str
    reader: str
    """The reader of the headline score; the report lists the other readers next to it."""
    about: str
    """One line for ``keju list protocols``."""
    headline: str = "accuracy"
    """The metric that the publication reports."""
    decode: Decode = "generate"
    form: Form = "chat"
    repeats: int = 1
    """How many times each question is asked, if the user does not say so."""
    temperature: float | None = None
    """As published; None where Keju's default of 0 holds."""
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    """Used in completion form only: chat replies are cut on our side."""
    label: str = ""
    """The text before a label or an option whose log-probability is compared, as published: a space
    if the label is ``" A"``, nothing if it is ``"A"``."""
    wording: Wording | None = None
    """The templates of the prompts; None if the exam writes its prompts itself."""
    shots: int = 0
    """Worked examples before the question, as published."""
    shot_choices: Collection[int] | None = None
    """The numbers of worked examples that users may choose; None for any number in the pool."""
    draw_shots: ShotDraw | None = None
    """Draws worked examples for each question, as published; None if all questions of a subset
    share theirs."""
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
    """Return the mean over all subsets; it is partial if only some of them were asked."""
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
class DataSource:
    """The origin of the questions, for the manifest."""

    files: Mapping[str, str]
    """SHA-256 of each file read, by relative path."""
    version: str = ""
    notes: tuple[str, ...] = ()
    """The changes and omissions made while loading, one line each."""


@dataclass(frozen=True, kw_only=True)
class ToolTask:
    """The name of an exam in another tool's logs, and the Keju reader that matches that tool."""

    tool: str
    name: str
    """A pattern that matches the full name; its first group, if any, is the subset."""
    protocol: str = ""
    reader: str = ""
    """The equivalent reader, if it differs from the protocol's reader."""
    args: Mapping[str, Any] = field(default_factory=dict)
    shots: int = 0
    """The maximum number of worked examples to copy from a log; 0 if the log's setting is ignored.
    """
    settings: tuple[str, ...] = ()
    """Other settings that are copied from a log under the same name."""
    rules: Mapping[str, str] = field(default_factory=dict)
    """How the tool decides, by subset (an empty name means all); used where a log has no verdict.
    """


@dataclass(frozen=True)
class Reference:
    """Published figures to print next to the scores, in [0, 1]."""

    name: str
    overall: Mapping[str, float] = field(default_factory=dict)
    """By metric name."""
    subsets: Mapping[str, float] = field(default_factory=dict)


class Scores(typing.Protocol):
    """The results of one reader on an exam so far, as the exam's own metrics see them.

    A unit is one sample in one epoch, numbered ``sample * epochs + epoch``.
    """

    @property
    def samples(self) -> int: ...
    @property
    def epochs(self) -> int: ...
    @property
    def outcomes(self) -> Sequence[int]:
        """By unit: the outcome's index in `ALL_OUTCOMES`; a larger number without a record."""

    @property
    def values(self) -> Sequence[float]:
        """By unit: the score."""

    @property
    def answers(self) -> Sequence[str | None] | None:
        """By unit: the answer that was read; None if the exam does not keep answers."""

    @property
    def parts(self) -> Mapping[str, Sequence[float]]:
        """By name of a grader's number: its value for each unit."""

    @property
    def items(self) -> Mapping[int, Any]:
        """By unit: what `Exam.item` returned, if the exam keeps items."""

    def outcome_counts(self) -> Mapping[Outcome, int]:
        """Return the number of units with each outcome."""


def graded_values(
    scores: Scores, values: Sequence[float], sample_index: int
) -> tuple[list[float], int]:
    """Return the `values` of a sample's graded repeats, and the number of ungraded repeats."""
    units = range(sample_index * scores.epochs, (sample_index + 1) * scores.epochs)
    graded = [values[unit] for unit in units if scores.outcomes[unit] in GRADED]
    return graded, sum(scores.outcomes[unit] in LOST for unit in units)


def asserted_values(
    scores: Scores, values: Sequence[float], sample_index: int
) -> tuple[list[float], int]:
    """Return the values of an assertion in the repeats of a sample; none if it does not apply.

    An assertion may have a score in a repeat whose answer has no grade.
    """
    units = range(sample_index * scores.epochs, (sample_index + 1) * scores.epochs)
    return [values[unit] for unit in units if not math.isnan(values[unit])], 0


ALL_CHANGES = "all"
"""The name of all changes of an exam's rules together."""


class RuleChange(NamedTuple):
    """A published change of an exam's grading rules that accepts more answers."""

    name: str
    about: str
    """The code of a sentence about it; empty for all changes together."""
    accepts: Callable[[str, Sample], bool]
    """Whether the change makes an answer right, whatever the rules themselves say."""


@dataclass(kw_only=True, eq=False)
class Exam:
    """A benchmark with its data loaded and its protocol fixed, ready to run."""

    benchmark: str
    protocol: Protocol
    samples: Sequence[Sample]
    """In subset order; may be generated on access, so iterate rather than copy."""
    subsets: Sequence[Subset]
    readers: Mapping[str, Reader]
    data: DataSource = DataSource({})
    prompts: PromptMaker | None = None
    """The prompts, unless a subclass overrides `render`."""
    averages: Sequence[Mean] = ()
    undrawn: Collection[str] = ()
    """Subsets without a question among the ``total`` drawn ones."""
    errata: Mapping[str, str] = field(default_factory=dict)
    """The known error of a sample, by its id. Faulty samples are shown and never dropped."""
    clustered: bool = False
    """Whether samples share groups, so that standard errors must be clustered."""
    references: Sequence[Reference] = ()
    reads_all: bool = False
    """Whether all readers are applied if the user names none."""
    keeps_items: bool = False
    """Whether its metrics need more of each reply than its scores; see `item`."""
    beside: str = "robust"
    """The secondary reader: its accuracy is shown next to the headline score."""
    judge: JudgeConfig | None = None
    """The judge that the exam's own settings name, for tasks that name none."""
    open_answers: bool = False
    """Whether answers are free text. A decision by rules is final; a grader decides the others."""
    grader: str = ""
    """The grader of open answers that no rule decides; a judge if empty."""
    programs: Callable[[Sample], ProgramTests] | None = None
    """Returns the tests of a question whose answer is a program; None for other exams."""
    warnings: Sequence[Notice] = ()
    """Notices for every result of this exam."""
    hints: Sequence[Notice] = ()
    """Notices to show before the first request; results do not include them."""
    keeps_answers: bool = False
    """Whether `extra_metrics` needs the extracted answers and not only their scores."""
    rotations: int = 1
    """The number of rotations of its options under which each question is asked."""
    submitted: bool = False
    """Whether the exam's makers score answers to questions published without gold answers."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The effective settings that shaped the prompts, for the manifest."""
    notebook: NotebookTask | None = None
    """How the model works on the questions in a notebook; None for exams without notebooks."""
    turns: int = 1
    """The number of replies in a row to each question, without tools; the last one counts."""
    difficulty: float | None = None
    """The difficulty of the questions, if it can be chosen; 1 is as published."""
    varied: Mapping[str, Collection[str]] = field(default_factory=dict)
    """Settings that change only the form of the questions, so their scores are comparable, and the
    conditions that change with each setting: a language changes the prompts."""
    arm: str = ""
    """The arm of this exam, if the settings of one benchmark make several exams."""
    private: bool = False
    """Whether reports leave out the questions."""
    asserted: bool = False
    """Whether questions have assertions about tools or about the state after an episode."""
    state_checks: Path | None = None
    """The folder of the programs that check the state after an episode; None if none does."""

    def __post_init__(self) -> None:
        if self.prompts is not None:
            prefix_text = self.prompts.prefix_text
            self.readers = {
                name: reader.facing(prefix_text) for name, reader in self.readers.items()
            }

    def render(self, sample: Sample) -> Prompt:
        """Return the prompt of one question; the `Prefix` object is shared inside a subset."""
        assert self.prompts is not None  # or a subclass renders
        return self.prompts.render(sample)

    def continuations(self, sample: Sample) -> tuple[Continuation, ...]:
        """Return the texts to score after the prompt where ``decode`` is ``continuations``; by
        default the options."""
        context, lead = self.render(sample).text, self.protocol.label
        return tuple([Continuation(context, lead + choice) for choice in sample.choices])

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

    def item(self, reply: Reply, sample: Sample, reader: Reader) -> Any:
        """Return what `metrics` needs of a reply, if `keeps_items` is set; never written to disk.
        None for a reply without a grade."""
        return None

    def rule_changes(self) -> Sequence[RuleChange]:
        """Return the published changes of the grading rules, for an audit of their effect."""
        return ()

    def rules_of(self, reader: Reader) -> str:
        """Return the name of the rules by which a reader decides; usually the reader's own."""
        return reader.name

    def repeat_hints(self, repeats: int) -> Sequence[Notice]:
        """Return notices to show before the first request, if each question is asked `repeats`
        times."""
        return ()

    def chance(self, sample: Sample) -> float | None:
        """The expected score of a blind guess, where that is defined."""
        return 1 / len(sample.choices) if sample.choices else None

    def extra_metrics(self, scores: Scores) -> Mapping[str, Estimate]:
        """Metrics peculiar to this exam, by name."""
        return {}

    def metrics(self, scores: Scores) -> Mapping[str, Estimate]:
        """All metrics beyond accuracy and means: a grader's numbers, the exam's own, rotations'."""
        from keju.benchmarks.rotation import add_rotation_metrics

        metrics: dict[str, Estimate] = {}
        for name, values in scores.parts.items():
            is_assertion = name in PART_NAMES
            values_of = asserted_values if is_assertion else graded_values
            repeats = (
                QuestionRepeats(sample.group or sample.id, *values_of(scores, values, sample_index))
                for sample_index, sample in enumerate(self.samples)
            )
            mean = mean_of_items(repeats, clustered=self.clustered, draws=is_assertion)
            metrics[name] = msgspec.structs.replace(mean, title=f"mean of {name}")
        metrics |= self.extra_metrics(scores)
        return add_rotation_metrics(self, scores, metrics) if self.rotations > 1 else metrics

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
        if "subset" not in row and [subset.name for subset in self.subsets] == [WHOLE]:
            return f"{self.benchmark}_{WHOLE}_{row['index']}"
        subset = self.subset_named(row["subset"]) or row["subset"]
        return f"{self.benchmark}_{subset}_{row['index']}"

    def subset_named(self, name: Any) -> str | None:
        """The subset that a row calls `name`, in any case; None for an unknown one."""
        names = {normalize_name(subset.name): subset.name for subset in self.subsets}
        return names.get(normalize_name(name)) if isinstance(name, str) else None

    def check_keys(self, row: Mapping[str, Any], sample: Sample) -> None:
        """DataError where a row of a predictions file names its question in two ways that differ.

        For example ``{"subject": "law", "id": "NAME_logic_0"}``.
        """
        places = [key for key in ("subset", "subject", "category") if isinstance(row.get(key), str)]
        for key in places:
            if self.subset_named(row[key]) != sample.subset:
                raise DataError("row_contradiction", id=sample.id, key=key, value=row[key])
        if places and row.get("index", sample.index) != sample.index:
            raise DataError("row_contradiction", id=sample.id, key="index", value=row["index"])


@dataclass(frozen=True, kw_only=True, eq=False)
class Benchmark:
    """A published benchmark: its metadata and the functions that load it."""

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
    """The default protocol of an alias: another tool's name for the exam selects that tool's
    protocol."""
    alias_settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The settings of an alias that names a part of the exam; settings of the user replace them."""
    questions: Callable[[Setup], Iterable[Any] | Questions] | None = None
    """Makes the questions: any number of `keju.Question` or `keju.Sample`."""
    examples: Callable[[Setup], Iterable[Any] | Mapping[str, str]] | None = None
    """Makes the pool of worked examples in the same way, or their text for each subset."""
    shot_key: str = "{seed}:{name}:{subset}:shots"
    """The template of the seed for a random draw of worked examples."""
    layout: Layout | None = None
    """Its files; None if the questions are generated or part of the code."""
    other_layouts: Mapping[tuple[str, str], Layout] = field(default_factory=dict)
    """The files of a version that has a separate data set, by the setting that selects it and its
    value."""
    rows: Mapping[str, int] = field(default_factory=dict)
    """Rows of each subset as published."""
    count_note: str = "{name}: {rows} rows, {published} published"
    """The template of the manifest's note on a subset with another number of rows."""
    subset_names: tuple[str, ...] = ()
    """In published order; empty if the questions name their subsets."""
    subset_about: Mapping[str, str] = field(default_factory=dict)
    """One line about each subset, for ``keju list subsets``."""
    subset_aliases: Mapping[str, str] = field(default_factory=dict)
    """The subset of each alias; upper and lower case are equal."""
    averages: Sequence[Mean] | None = None
    """The macro means; by default the mean over all subsets."""
    references: Sequence[Reference] = ()
    faults: Callable[[Sample], str | None] | None = None
    """Returns the known error of a published row, or None."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Settings that have no effect here, and why."""
    settings: Callable[[Setup, Wording], Mapping[str, Any]] | None = None
    """Returns the settings that shaped the prompts, for the manifest; the usual ones by default."""
    programs: Callable[[Sample], ProgramTests] | None = None
    """Returns the tests of a question whose answer is a program."""
    grows: str = ""
    """The setting that says how many questions of each subset are generated."""
    fresh_of: str = ""
    """The benchmark of which this one generates new questions."""
    private: bool = False
    """Whether reports leave out the questions, because the authors ask not to publish them."""
    tool_tasks: Sequence[ToolTask] = ()
    """Its names in the logs of other tools."""
    golden: GoldenCheck | None = None
    """The recorded outputs that ``keju verify`` scores."""
    submission: SubmissionBuilder | None = None
    """Makes the file to submit to the authors of the exam, from the answers of a run."""
    prediction_files: Callable[[Exam, Mapping[str, str | None]], Mapping[str, Any]] | None = None
    """Makes the exam's own files with a column of predictions: rows of cells by file name."""
    modes: ThinkingModes | None = None
    """The two modes whose runs ``keju modes`` compares."""
    exam: type[Exam] = Exam
    Args: type[DatasetArgs] = DatasetArgs
    """The settings it takes in ``dataset_args``: `DatasetArgs` and its own."""
    make: Callable[[DatasetArgs, DataFolder, int], Exam] | None = None
    """Makes the exam from settings, folder and seed, if the usual steps do not fit."""
    find_folder: Callable[[str, DatasetArgs, str | None, bool], DataFolder] | None = None
    """Returns the data folder for a name, settings, data directory, and whether only stored data
    may be used, if the usual search does not fit."""

    def __post_init__(self) -> None:
        if not self.default_protocol:
            object.__setattr__(self, "default_protocol", next(iter(self.protocols)))
        for protocol in self.protocols.values():
            if protocol.reader not in (protocol.readers or self.readers):
                raise ValueError(
                    f"protocol '{protocol.name}' of {self.name} reads with '{protocol.reader}', "
                    f"which is none of its readers ({', '.join(protocol.readers or self.readers)})"
                )

    def layout_for(self, settings: DatasetArgs) -> Layout | None:
        """Return the files that hold the questions which these settings ask for."""
        for (name, value), layout in self.other_layouts.items():
            if getattr(settings, name) == value:
                return layout
        return self.layout

    @property
    def reader_names(self) -> tuple[str, ...]:
        """The names of its readers."""
        return tuple(self.readers)

    def subset_name(self, name: str) -> str | None:
        """The subset that a user calls `name`, in any case; None for an unknown name."""
        names = {subset: subset for subset in self.subset_names} | dict(self.subset_aliases)
        return {normalize_name(alias): subset for alias, subset in names.items()}.get(
            normalize_name(name)
        )

    def prepare(self, args: DatasetArgs, folder: DataFolder, *, seed: int) -> Exam:
        """Load the data and fix the protocol; raise ConfigError or DataError on anything wrong."""
        from keju.benchmarks.prepare import prepare

        exam = self.make(args, folder, seed) if self.make else prepare(self, args, folder, seed)
        exam.submitted, exam.programs = self.submission is not None, self.programs
        exam.private = self.private
        return exam


def normalize_name(name: str) -> str:
    """Return a name in lower case with spaces: `` Dyck-Languages`` and dyck_languages are equal."""
    return " ".join(name.casefold().replace("_", " ").replace("-", " ").split())
