"""The kit of which exams are made: Keju's own and those of plug-ins.

An exam is a `Benchmark` with a function that makes its questions, protocols that put them into
words, and readers:

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

`keju.benchmarks.prepare.prepare` makes such an exam ready out of the steps below. An exam that
needs other steps calls them in its own order.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from keju.benchmarks.base import Benchmark, Protocol, Reader, Subset, fold
from keju.benchmarks.choices import check_choices
from keju.benchmarks.wording import Wording
from keju.config import DatasetArgs
from keju.errors import ConfigError, DataError, Hint, Notice, did_you_mean
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
    """Whatever else readers and prompts need."""


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What the user asked for, checked, and the folder to read."""

    benchmark: Benchmark
    protocol: Protocol
    args: DatasetArgs
    folder: DataFolder
    subsets: Sequence[str]
    """The subsets that were chosen, in published order; empty for whatever there is."""
    shots: int
    """Worked examples before each question."""
    seed: int


@dataclass(kw_only=True)
class Questions:
    """The questions of an exam, and what is to be said about them."""

    samples: Sequence[Sample]
    subsets: Sequence[Subset]
    errata: Mapping[str, str] = field(default_factory=dict)
    """Sample id to what is known to be wrong with it."""
    version: str = ""
    """Which data it is, for the manifest."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Where questions are made and not read: what stands for their files, with its SHA-256."""
    notes: Sequence[str] = ()
    """What loading changed or left out, each in one line."""
    warnings: Sequence[Notice] = ()
    """What every result has to say."""
    clustered: bool = False
    """Whether samples share groups, so that standard errors must be clustered."""


Made = Question | Sample
EVERYTHING = "all"


def as_sample(name: str, question: Made, index: int, subset: str) -> Sample:
    """A question as the sample at position `index` of `subset`."""
    if isinstance(question, Sample):
        return question
    if question.choices:
        where = Hint("place_question", name=name, n=index + 1, subset=subset)
        check_choices(question.choices, question.target, where)
    own = {"explanation": question.explanation} if question.explanation else {}
    return Sample(
        id=question.id or f"{name}_{subset}_{index}",
        subset=subset,
        index=index,
        text=question.text,
        target=question.target,
        choices=tuple(question.choices),
        group=question.group,
        metadata={**question.metadata, **own},
    )


def arrange(name: str, questions: Iterable[Made], subsets: Sequence[str] = ()) -> Questions:
    """The questions one subset after the other: those of `subsets` in that order, or all.

    DataError where two of them have the same id.
    """
    members: dict[str, list[Sample]] = {subset: [] for subset in subsets}
    for question in questions:
        subset = question.subset or EVERYTHING
        if subset in members or not subsets:
            own = members.setdefault(subset, [])
            own.append(as_sample(name, question, len(own), subset))
    samples: list[Sample] = []
    ranges: list[Subset] = []
    for subset, own in members.items():
        ranges.append(Subset(subset, len(samples), len(samples) + len(own)))
        samples += own
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


def refuse(args: DatasetArgs, refused: Mapping[str, str], benchmark: str) -> None:
    """Raise ConfigError for a setting that was given and has no effect.

    `refused` are such settings and why; an empty reason says that there is no such thing.
    """
    for name, reason in refused.items():
        if getattr(args, name) != type(args).model_fields[name].default:
            message = f"{name} refused: {reason}" if reason else f"there is no '{name}' here"
            raise ConfigError("kit_refused", benchmark=benchmark, problem=message)


def choose_protocol(benchmark: Benchmark, name: str | None) -> Protocol:
    """The protocol called `name`, or the default one."""
    name = name or benchmark.default_protocol
    if name not in benchmark.protocols:
        hint = did_you_mean(name, benchmark.protocols)
        raise ConfigError("kit_no_protocol", benchmark=benchmark.name, name=name, hint=hint)
    return benchmark.protocols[name]


def choose_subsets(
    name: str,
    wanted: Sequence[str] | None,
    names: Sequence[str],
    aliases: Mapping[str, str] | None = None,
) -> list[str]:
    """The subsets asked for, in the order of `names`; letter case, ``-`` and ``_`` do not matter.

    `aliases` are further names to those in `names`; `name` is the benchmark's, for messages.
    """
    if wanted is None:
        return list(names)
    if not wanted:
        raise ConfigError("kit_subset_list_empty", name=name)
    every = {each: each for each in names} | dict(aliases or {})
    by_any_name = {fold(each): own for each, own in every.items()}
    chosen = set()
    for subset in wanted:
        own = every.get(subset) or by_any_name.get(fold(subset))
        if own is None:
            raise ConfigError(
                "kit_no_subset", name=name, subset=subset, hint=did_you_mean(subset, every)
            )
        chosen.add(own)
    return [each for each in names if each in chosen]


def choose_shot_count(benchmark: str, protocol: Protocol, args: DatasetArgs) -> int:
    """How many worked examples stand before a question."""
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


def refuse_templates(benchmark: Benchmark, protocol: Protocol, args: DatasetArgs) -> None:
    """Refuse templates and a system message that the protocol cannot honour."""
    if protocol.form == "completion" and args.system_prompt:
        raise ConfigError("kit_no_system_message", protocol=protocol.name)
    able = [each.name for each in benchmark.protocols.values() if each.templates]
    for setting in TEMPLATES:
        if getattr(args, setting) is not None and not protocol.templates:
            values = {"setting": setting, "protocol": protocol.name, "other": next(iter(able), "")}
            code = "kit_fixed_prompt_other" if able else "kit_fixed_prompt"
            raise ConfigError(code, **values)


def usual_settings(setup: Setup, _: Wording) -> dict[str, Any]:
    """What shaped the prompts, for the manifest."""
    args = setup.args
    return {
        "few_shot_num": setup.shots,
        "few_shot_random": args.few_shot_random,
        "shuffle_choices": args.shuffle_choices,
    } | {n: getattr(args, n) for n in (*TEMPLATES, "system_prompt") if getattr(args, n)}


# --- questions ---------------------------------------------------------------------------------

SHOWN = 5
"""How many differences a warning names."""


class Count(NamedTuple):
    """Rows of one table or subset."""

    name: str
    rows: int
    published: int

    @property
    def differs(self) -> bool:
        return self.rows != self.published


def count_rows(subsets: Iterable[Subset], published: Mapping[str, int]) -> list[Count]:
    """Rows of each subset beside the published number, where that is known."""
    return [Count(s.name, len(s), published[s.name]) for s in subsets if s.name in published]


def count_warnings(counts: Sequence[Count]) -> tuple[Notice, ...]:
    """One warning for the results where any number of rows is not the published one."""
    different = [f"{c.name} has {c.rows} of {c.published}" for c in counts if c.differs]
    if not different:
        return ()
    shown = first_of(different, SHOWN)
    rows, more = ", ".join(shown), len(different) - len(shown)
    if more:
        return (Notice("not_published_rows_more", {"rows": rows, "more": more}),)
    return (Notice("not_published_rows", {"rows": rows}),)


def fingerprint(text: str, target: str) -> str:
    """A short hash of a row, by which an erratum recognises the row that it is about."""
    return hashlib.sha256(f"{text}\0{target}".encode()).hexdigest()[:12]


class Erratum(NamedTuple):
    """What is wrong with a published row."""

    row: str
    """The row's `fingerprint`: edited data does not inherit the fault."""
    fault: str


def listed_faults(errata: Mapping[str, Erratum]) -> Callable[[Sample], str | None]:
    """What a list of errata, by sample id, says about a sample."""

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
    """The worked examples of each subset: the first `count`, or a draw with `seed`.

    Examples that name no subset of their own stand before the questions of all; without a `count`
    all are taken. `key` is what the draw is seeded with: published runs depend on it.
    """
    named = any(shot.subset for shot in pool)
    shots: dict[str, list[Sample]] = {}
    for subset in subsets:
        own = [shot for shot in pool if shot.subset == subset] if named else list(pool)
        taken = len(own) if count is None else count
        if taken > len(own):
            values = {"name": name, "asked": taken, "where": where, "n": len(own)}
            code = "kit_too_many_shots_of" if named else "kit_too_many_shots"
            raise ConfigError(code, subset=subset, **values)
        if seed is not None:
            own = random.Random(key.format(seed=seed, name=name, subset=subset)).sample(own, taken)
        shots[subset] = own[:taken]
    return shots


# --- readers out of functions ------------------------------------------------------------------

Read = Callable[[str, Sample], "str | Answer | None"]
Match = Callable[[str, Sample], bool]
Worth = Callable[[str, Sample], "float | Mapping[str, float] | None"]


def _is_target(value: str, sample: Sample) -> bool:
    return value == sample.target


class FunctionReader(Reader):
    """A reader made of functions: what is read, and what it is worth."""

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
        """The function itself, for its tests."""
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
