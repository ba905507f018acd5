"""The building blocks of exams, for Keju's own exams and for plug-ins.

An exam is a `Benchmark` with a function that makes its questions, protocols that write them as
prompts, and readers:

    @reader
    def last_number(text, sample):
        numbers = re.findall(r"-?\\d+", text)
        return numbers[-1] if numbers else None

    def questions(setup):
        for row in setup.folder.rows("test"):
            yield Question(row["question"], row["answer"])

    SUMS = Benchmark(
        name="sums", title="Sums", about="additions",
        layout=Layout(tables=("test",)),
        questions=questions,
        readers=by_name(last_number),
        protocols=by_name(
            Protocol(name="plain", version="1", about="zero-shot", reader="last_number",
                     wording=Wording(question="{question}"))
        ),
    )

`keju.benchmarks.prepare.prepare` prepares such an exam with the steps below. An exam that needs
another order calls the steps itself.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import msgspec

from keju.benchmarks.base import WHOLE, Benchmark, Protocol, Reader, Subset, normalize_name
from keju.benchmarks.choices import check_choices
from keju.benchmarks.wording import Wording
from keju.config import DatasetArgs
from keju.errors import ConfigError, DataError, Notice, TranslatableText, did_you_mean
from keju.messages import first_of
from keju.types import Answer, Sample

if TYPE_CHECKING:
    from keju.sources.folder import DataFolder

# --- what an exam is made of -------------------------------------------------------------------


class Question(NamedTuple):
    """One question as an exam's author writes it; the kit numbers it and makes a `Sample` of it."""

    text: str
    target: str = ""
    """The gold answer: a label where there are `choices`; empty when it is not known."""
    choices: Sequence[str] = ()
    subset: str = ""
    """An exam without subsets has one, ``all``. A worked example without one serves all of them."""
    explanation: str = ""
    """The reasoning of a worked example: ``{explanation}`` in templates."""
    id: str = ""
    """Unique inside the benchmark; made of its name, the subset and the row by default."""
    group: str = ""
    """Questions of one group share context, so their scores are not independent."""
    metadata: Mapping[str, Any] = {}
    """Other values that readers and prompts need."""


@dataclass(frozen=True, kw_only=True)
class Setup:
    """The checked settings of the user and the folder to read."""

    benchmark: Benchmark
    protocol: Protocol
    args: DatasetArgs
    folder: DataFolder
    subsets: Sequence[str]
    """The selected subsets, in published order; empty for all subsets of the data."""
    shots: int
    """Worked examples before each question."""
    seed: int


@dataclass(kw_only=True)
class Questions:
    """The questions of an exam and the notices about them."""

    samples: Sequence[Sample]
    subsets: Sequence[Subset]
    errata: Mapping[str, str] = field(default_factory=dict)
    """The known error of a sample, by its id."""
    version: str = ""
    """The version of the data, for the manifest."""
    files: Mapping[str, str] = field(default_factory=dict)
    """For generated questions: the name of their source in place of files, with its SHA-256."""
    notes: Sequence[str] = ()
    """Changes and omissions while loading, each in one line."""
    warnings: Sequence[Notice] = ()
    """Notices for every result."""
    clustered: bool = False
    """Whether samples share groups, so that standard errors must be clustered."""


AnyQuestion = Question | Sample
DEFAULT_SUBSET = WHOLE


def as_sample(name: str, question: AnyQuestion, index: int, subset: str) -> Sample:
    """Return a question as the sample at position `index` of `subset`."""
    if isinstance(question, Sample):
        return question
    if question.choices:
        where = TranslatableText("place_question", name=name, n=index + 1, subset=subset)
        check_choices(question.choices, question.target, where)
    shot_metadata = {"explanation": question.explanation} if question.explanation else {}
    return Sample(
        id=question.id or f"{name}_{subset}_{index}",
        subset=subset,
        index=index,
        text=question.text,
        target=question.target,
        choices=tuple(question.choices),
        group=question.group,
        metadata={**question.metadata, **shot_metadata},
    )


def arrange(name: str, questions: Iterable[AnyQuestion], subsets: Sequence[str] = ()) -> Questions:
    """Group questions by subset: the given `subsets` in that order, or all.

    DataError if two questions have the same id.
    """
    members: dict[str, list[Sample]] = {subset: [] for subset in subsets}
    for question in questions:
        subset = question.subset or DEFAULT_SUBSET
        if subset in members or not subsets:
            subset_samples = members.setdefault(subset, [])
            subset_samples.append(as_sample(name, question, len(subset_samples), subset))
    samples: list[Sample] = []
    ranges: list[Subset] = []
    for subset, subset_samples in members.items():
        ranges.append(Subset(subset, len(samples), len(samples) + len(subset_samples)))
        samples += subset_samples
    ids: set[str] = set()
    for sample in samples:
        if sample.id in ids:
            raise DataError("kit_id_twice", name=name, id=sample.id)
        ids.add(sample.id)
    clustered = any(sample.group for sample in samples)
    return Questions(samples=tuple(samples), subsets=tuple(ranges), clustered=clustered)


# --- settings ----------------------------------------------------------------------------------

SHOT_SETTINGS = ("few_shot_num", "few_shot_random", "few_shot_prompt_template")
TEMPLATES = ("prompt_template", "few_shot_prompt_template")


def reject_settings(args: DatasetArgs, refused: Mapping[str, str], benchmark: str) -> None:
    """Raise ConfigError for a setting that has no effect in this exam.

    `refused` maps such settings to the reason; an empty reason means that the setting does not
    exist.
    """
    for name, reason in refused.items():
        if getattr(args, name) != type(args).model_fields[name].default:
            if not reason:
                raise ConfigError("kit_no_setting", benchmark=benchmark, name=name)
            message = f"{name} refused: {reason}"
            raise ConfigError("kit_refused", benchmark=benchmark, problem=message)


def choose_protocol(benchmark: Benchmark, name: str | None) -> Protocol:
    """Return the protocol called `name`, or the default one."""
    name = name or benchmark.default_protocol
    if name not in benchmark.protocols:
        hint = did_you_mean(name, benchmark.protocols)
        raise ConfigError("kit_no_protocol", benchmark=benchmark.name, name=name, hint=hint)
    return benchmark.protocols[name]


def choose_subsets(
    name: str,
    requested_subsets: Sequence[str] | None,
    names: Sequence[str],
    aliases: Mapping[str, str] | None = None,
) -> list[str]:
    """Return the requested subsets in the order of `names`; case, ``-`` and ``_`` do not matter.

    `aliases` are additional names; `name` is the benchmark's name, for messages.
    """
    if requested_subsets is None:
        return list(names)
    if not requested_subsets:
        raise ConfigError("kit_subset_list_empty", name=name)
    names_by_alias = {subset_name: subset_name for subset_name in names} | dict(aliases or {})
    names_by_folded_alias = {
        normalize_name(alias): subset_name for alias, subset_name in names_by_alias.items()
    }
    chosen_subsets = set()
    for subset in requested_subsets:
        canonical_name = names_by_alias.get(subset) or names_by_folded_alias.get(
            normalize_name(subset)
        )
        if canonical_name is None:
            raise ConfigError(
                "kit_no_subset", name=name, subset=subset, hint=did_you_mean(subset, names_by_alias)
            )
        chosen_subsets.add(canonical_name)
    return [subset_name for subset_name in names if subset_name in chosen_subsets]


def choose_shot_count(benchmark: str, protocol: Protocol, args: DatasetArgs) -> int:
    """Return the number of worked examples before a question."""
    count = protocol.shots if args.few_shot_num is None else args.few_shot_num
    choices = protocol.shot_choices
    if choices is not None and count not in choices:
        numbers = " or ".join(map(str, sorted(choices)))
        if len(choices) > 2:
            numbers = f"{min(choices)} to {max(choices)}"
        raise ConfigError(
            "kit_shots_of_protocol",
            benchmark=benchmark,
            protocol=protocol.name,
            numbers=numbers,
            count=count,
        )
    if args.few_shot_random and not count:
        raise ConfigError("kit_no_shots_to_draw", benchmark=benchmark)
    return count


def reject_templates(benchmark: Benchmark, protocol: Protocol, args: DatasetArgs) -> None:
    """Reject templates and a system message that the protocol cannot use."""
    if protocol.form == "completion" and args.system_prompt:
        raise ConfigError("kit_no_system_message", protocol=protocol.name)
    template_protocols = [
        candidate.name for candidate in benchmark.protocols.values() if candidate.templates
    ]
    for setting in TEMPLATES:
        if getattr(args, setting) is not None and not protocol.templates:
            values = {
                "setting": setting,
                "protocol": protocol.name,
                "other": next(iter(template_protocols), ""),
            }
            code = "kit_fixed_prompt_other" if template_protocols else "kit_fixed_prompt"
            raise ConfigError(code, **values)


def default_settings(setup: Setup, _: Wording) -> dict[str, Any]:
    """Return the settings that shaped the prompts, for the manifest."""
    args = setup.args
    return {
        "few_shot_num": setup.shots,
        "few_shot_random": args.few_shot_random,
        "shuffle_choices": args.shuffle_choices,
    } | {n: getattr(args, n) for n in (*TEMPLATES, "system_prompt") if getattr(args, n)}


# --- questions ---------------------------------------------------------------------------------

MOST_SHOWN = 5
"""Maximum number of differences that a warning lists."""


class RowCount(NamedTuple):
    """The number of rows of one table or subset."""

    name: str
    rows: int
    published: int

    @property
    def differs(self) -> bool:
        return self.rows != self.published


def count_rows(subsets: Iterable[Subset], published: Mapping[str, int]) -> list[RowCount]:
    """Return the rows of each subset with the published number, if there is one."""
    return [RowCount(s.name, len(s), published[s.name]) for s in subsets if s.name in published]


def make_count_warnings(counts: Sequence[RowCount]) -> tuple[Notice, ...]:
    """Return one warning if the number of rows differs from the published one in any subset."""
    differences = [f"{c.name} has {c.rows} of {c.published}" for c in counts if c.differs]
    if not differences:
        return ()
    shown_differences = first_of(differences, MOST_SHOWN)
    rows, hidden_count = ", ".join(shown_differences), len(differences) - len(shown_differences)
    if hidden_count:
        return (Notice("not_published_rows_more", {"rows": rows, "more": hidden_count}),)
    return (Notice("not_published_rows", {"rows": rows}),)


def fingerprint(text: str, target: str) -> str:
    """Return a short hash of a row; an erratum uses it to recognise its row."""
    return hashlib.sha256(f"{text}\0{target}".encode()).hexdigest()[:12]


class Erratum(NamedTuple):
    """A known error of a published row."""

    row: str
    """The row's `fingerprint`, so that the erratum does not apply to edited data."""
    fault: str


def make_fault_finder(errata: Mapping[str, Erratum]) -> Callable[[Sample], str | None]:
    """Return a function that gives the known error of a sample, from a list by sample id."""

    def fault(sample: Sample) -> str | None:
        erratum = errata.get(sample.id)
        if erratum is None or erratum.row != fingerprint(sample.text, sample.target):
            return None
        return erratum.fault

    return fault


def choose_shots(
    name: str,
    pool: Sequence[Sample],
    subsets: Iterable[str],
    count: int | None,
    *,
    seed: int | None = None,
    key: str = "{seed}:{name}:{subset}:shots",
    where: str = "the pool",
) -> dict[str, list[Sample]]:
    """Return the worked examples of each subset: the first `count`, or a draw with `seed`.

    Examples without a subset are used for all subsets. Without a `count` all examples are used. The
    draw is seeded with `key`: published runs depend on it.
    """
    has_subsets = any(shot.subset for shot in pool)
    shots: dict[str, list[Sample]] = {}
    for subset in subsets:
        candidates = [shot for shot in pool if shot.subset == subset] if has_subsets else list(pool)
        shot_count = len(candidates) if count is None else count
        if shot_count > len(candidates):
            values = {"name": name, "asked": shot_count, "where": where, "n": len(candidates)}
            code = "kit_too_many_shots_of" if has_subsets else "kit_too_many_shots"
            raise ConfigError(code, subset=subset, **values)
        if seed is not None:
            candidates = random.Random(key.format(seed=seed, name=name, subset=subset)).sample(
                candidates, shot_count
            )
        shots[subset] = candidates[:shot_count]
    return shots


def read_text_field(row: Mapping[str, Any], names: Sequence[str], where: object) -> str:
    """Return the text of the first of several columns that `row` has; numbers become text.

    DataError if the row has none of them, or if the text is empty.
    """
    for name in names:
        value = row.get(name)
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            if (text := str(value)).strip():
                return text
            raise DataError("kit_empty_field", where=where, name=name)
    raise DataError("kit_no_field", where=where, names=list(names), columns=list(row))


# --- worked examples that differ from question to question -------------------------------------

DRAWN = "drawn_shots"
"""The key of `Sample.metadata` with the places of a question's worked examples in the pool."""

ShotDraw = Callable[[int, int, int], "list[tuple[int, ...]]"]
"""Draws worked examples: from the size of the pool, the number of worked examples and the number of
questions to the places in the pool, for each question."""


def draw_in_one_stream(seed: int) -> ShotDraw:
    """Return a draw for all questions from one stream of random numbers, as lm-eval does.

    The order of the questions matters, so the draw is made for the whole exam. Then a part of the
    exam has the same prompts as the whole.
    """

    def draw(pool_size: int, count: int, questions: int) -> list[tuple[int, ...]]:
        stream = random.Random(seed)
        return [tuple(stream.sample(range(pool_size), count)) for _ in range(questions)]

    return draw


def add_drawn_shots(
    samples: Iterable[Sample], places: Iterable[tuple[int, ...]]
) -> tuple[Sample, ...]:
    """Return the samples with the places of their worked examples in the pool."""
    return tuple(
        msgspec.structs.replace(sample, metadata={**sample.metadata, DRAWN: drawn})
        for sample, drawn in zip(samples, places, strict=True)
    )


# --- readers out of functions ------------------------------------------------------------------

Read = Callable[[str, Sample], "str | Answer | None"]
Match = Callable[[str, Sample], bool]
Worth = Callable[[str, Sample], "float | Mapping[str, float] | None"]


def _is_target(value: str, sample: Sample) -> bool:
    return value == sample.target


class FunctionReader(Reader):
    """A reader made of functions: one reads the answer, the others grade it."""

    marked = False

    def __init__(
        self, name: str, read: Read, *, match: Match, worth: Worth | None, version: int
    ) -> None:
        self.name = name
        self.version = version
        self._read = read
        self._match = match
        self._worth = worth

    def __call__(self, text: str, sample: Sample) -> Any:
        """Call the wrapped function, for its tests."""
        return (self._worth or self._read)(text, sample)

    def read(self, text: str, sample: Sample) -> Answer:
        answer = self._read(text, sample)
        if isinstance(answer, Answer):
            return answer
        return Answer(reason="no_marker") if answer is None else Answer(answer, "strict")

    def matches(self, value: str, sample: Sample) -> bool:
        return self._match(value, sample)

    def worth(self, value: str, sample: Sample) -> float | Mapping[str, float] | None:
        return self._worth(value, sample) if self._worth else float(self._match(value, sample))


@overload
def reader(function: Read, /) -> FunctionReader: ...
@overload
def reader(
    *, name: str | None = None, match: Match = _is_target, version: int = 1
) -> Callable[[Read], FunctionReader]: ...
def reader(
    function: Read | None = None,
    /,
    *,
    name: str | None = None,
    match: Match = _is_target,
    version: int = 1,
) -> FunctionReader | Callable[[Read], FunctionReader]:
    """Make a reader of a function from a reply's text and its sample to the answer, or None.

    `match` says whether an answer is right; by default it must equal the target. Raise `version`
    whenever a change moves scores.
    """

    def make(read: Read) -> FunctionReader:
        return FunctionReader(name or read.__name__, read, match=match, worth=None, version=version)

    return make if function is None else make(function)


def pattern_reader(
    name: str, pattern: str, *, match: Match = _is_target, version: int = 1
) -> FunctionReader:
    """A reader that takes the last match of a regular expression: its first group, or all of it."""
    compiled = re.compile(pattern)

    def read(text: str, _: Sample) -> str | None:
        value = None
        for match in compiled.finditer(text):
            value = match[1 if compiled.groups else 0]
        return value

    return FunctionReader(name, read, match=match, worth=None, version=version)


@overload
def grader(function: Worth, /) -> FunctionReader: ...
@overload
def grader(*, name: str | None = None, version: int = 1) -> Callable[[Worth], FunctionReader]: ...
def grader(
    function: Worth | None = None, /, *, name: str | None = None, version: int = 1
) -> FunctionReader | Callable[[Worth], FunctionReader]:
    """Make a reader of a function that grades: from text and sample to a number in [0, 1].

    It may return several numbers by name. The first is the score; all of them become metrics with
    intervals. None says that it cannot grade the text, which is then `ungraded`.
    """

    def make(worth: Worth) -> FunctionReader:
        return FunctionReader(
            name or worth.__name__,
            lambda text, _: text.strip(),
            match=lambda value, sample: bool(worth(value, sample)),
            worth=worth,
            version=version,
        )

    return make if function is None else make(function)
