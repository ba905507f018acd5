"""From the user's settings to exams that are ready to sit; everything wrong is refused here.

prepare_exams   all exams of a task: each prepared, limited, its options rotated
prepare_exam    one exam: settings validated, protocol chosen, data folder located
prepare         the steps of an exam that is described by its data
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from traceback import extract_tb
from typing import Any, Literal

import msgspec

from keju.answers.reader import RAW
from keju.benchmarks import registry
from keju.benchmarks.base import Benchmark, DataFacts, Exam, Protocol, Reader, mean_over
from keju.benchmarks.data_checks import sample_notices
from keju.benchmarks.kit import (
    SHOT_SETTINGS,
    SHOWN,
    Questions,
    Setup,
    arrange,
    as_sample,
    choose_protocol,
    choose_shot_count,
    choose_shots,
    choose_subsets,
    count_rows,
    count_warnings,
    refuse,
    refuse_templates,
    usual_settings,
)
from keju.benchmarks.samples import ShuffledSamples, restrict, select, with_ids
from keju.config import DatasetArgs, GenerationConfig, TaskConfig
from keju.config.exams import setting_names
from keju.errors import ConfigError, DataError, Hint, KejuError, Notice, Place, did_you_mean
from keju.messages import first_of
from keju.sources.folder import DataFolder, locate
from keju.types import Sample, Sampling


def prepare_exam(
    name: str,
    args: dict[str, Any] | None = None,
    *,
    data_dir: str | None = None,
    protocol: str | None = None,
    seed: int = 42,
    hub: Literal["huggingface", "modelscope"] | None = None,
    offline: bool = False,
    judged: bool = False,
) -> tuple[Exam, DatasetArgs]:
    """Load one benchmark as its settings say; return it with those settings, validated.

    With `judged` the task names a judge, which takes the place of one that the settings name.
    """
    benchmark = registry.get(name)
    given = settings = _settings_of(name, args or {})
    if judged:
        settings = settings.without_own_judge()
    replaced = [
        name
        for name in sorted(given.model_fields_set)
        if name not in settings.model_fields_set or getattr(settings, name) != getattr(given, name)
    ]
    of_alias = benchmark.alias_protocols.get(name)
    asked = settings.protocol or protocol or of_alias or settings.implied_protocol
    chosen = choose_protocol(benchmark, asked).name
    settings = settings.model_copy(update={"protocol": chosen})
    folder = locate(
        benchmark.name,
        benchmark.layout,
        local_path=settings.local_path if benchmark.layout else None,
        data_dir=data_dir,
        hub=hub,
        offline=offline,
    )
    exam = benchmark.prepare(settings, folder, seed=seed)
    if folder.edited:
        exam.warnings = (*exam.warnings, _edited_notice(folder.edited))
        notes = (*exam.data.notes, *(f"{name} is not the published file" for name in folder.edited))
        exam.data = replace(exam.data, notes=notes)
    if replaced:
        notice = Notice("judge_of_task", {"settings": ", ".join(replaced)})
        exam.warnings = (*exam.warnings, notice)
    return exam, settings


def _edited_notice(files: Sequence[str]) -> Notice:
    shown = first_of(files, SHOWN)
    named, more = ", ".join(shown), len(files) - len(shown)
    if more:
        return Notice("data_edited_more", {"files": named, "more": more})
    return Notice("data_edited", {"files": named})


def prepare_exams(config: TaskConfig) -> list[tuple[Exam, DatasetArgs]]:
    """Load all exams of a run, with the user's limit applied."""
    prepared: list[tuple[Exam, DatasetArgs]] = []
    wanted = None if config.ids is None else frozenset(config.ids)
    unknown = set(wanted or ())
    for name, arm, given in _asked_for(config):
        exam, args = prepare_exam(
            name,
            given,
            data_dir=config.data_dir,
            protocol=config.protocol,
            seed=config.seed,
            hub=config.dataset_hub,
            offline=config.offline,
            judged=config.judge is not None and config.judge.strategy != "rule",
        )
        limit = config.limit if args.limit is None else args.limit
        chosen = select(
            exam,
            limit,
            total=config.total if args.limit is None else None,
            how=config.sample,
            shuffle=args.shuffle,
            seed=config.seed,
        )
        chosen.hints = (*chosen.hints, *_beyond(exam, args, limit, config.total))
        if wanted is not None:
            chosen = with_ids(chosen, wanted)
            unknown -= {sample.id for sample in chosen.samples}
            notice = Notice("chosen_questions", {"n": len(chosen.samples)})
            chosen.warnings = (*chosen.warnings, notice)
        if config.part is not None:
            part, parts = config.part
            chosen = restrict(chosen, range(part, len(chosen.samples), parts))
            values = {"part": part + 1, "parts": parts, "n": len(chosen.samples)}
            chosen.warnings = (*chosen.warnings, Notice("shard_of_questions", values))
        chosen.arm = arm
        own = (chosen.benchmark, arm)
        if any(own == (other.benchmark, other.arm) for other, _ in prepared):
            raise ConfigError("prepare_twice", benchmark=chosen.benchmark, name=name)
        if config.rotate_options > 1:
            from keju.benchmarks.rotation import rotated

            chosen = rotated(chosen, config.rotate_options)
        prepared.append((chosen, args))
    if unknown:
        names = [exam.benchmark for exam, _ in prepared]
        raise ConfigError("unknown_ids", id=min(unknown), n=len(unknown), names=names)
    return prepared


def _beyond(
    exam: Exam, args: DatasetArgs, limit: int | float | None, total: int | None
) -> Iterator[Notice]:
    """The hint that more questions are wanted than were made, where more can be made.

    Whoever limits another exam to more than it has means all of it.
    """
    whole, subsets = len(exam.samples), len(exam.subsets)
    wanted = limit if limit is not None else math.ceil((total or 0) / max(1, subsets))
    if args.size_setting and isinstance(wanted, int) and wanted * subsets > whole:
        values = {"exam": exam.benchmark, "setting": args.size_setting, "whole": whole}
        yield Notice("limit_beyond_made", {**values, "each": whole // subsets, "wanted": wanted})


def _asked_for(config: TaskConfig) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The exams of a run: name, arm of its own and settings.

    ConfigError where arms would multiply: those that a task names, and those of an exam.
    """
    for name in config.datasets:
        given = _given(config, name)
        exams = _settings_of(name, given).exams(given)
        if config.arms and any(exams):
            raise ConfigError("prepare_arms_twice", name=name, arms=[*exams])
        for arm, own in exams.items():
            yield name, arm, own


def _settings_of(name: str, given: Mapping[str, Any]) -> DatasetArgs:
    benchmark = registry.get(name)
    try:
        return benchmark.Args(**given)
    except ConfigError as error:
        raise ConfigError("prepare_args", name=setting_names([name])[0], problem=error) from None


def _given(config: TaskConfig, name: str) -> dict[str, Any]:
    """An exam's own settings, the folder of its capsules among them where the task names one."""
    own = config.dataset_args.get(name) or {}
    if config.capsules is None or "capsule_dir" in own:
        return own
    if "capsule_dir" not in registry.get(name).Args.model_fields:
        raise ConfigError("capsules_unused", name=name)
    return {**own, "capsule_dir": config.capsules}


def prepare(
    benchmark: Benchmark,
    args: DatasetArgs,
    folder: DataFolder,
    seed: int,
    protocol: Protocol | None = None,
) -> Exam:
    """Make a benchmark ready that is described by its data.

    In this order: settings without effect are refused, the subsets and the number of worked
    examples are chosen, the templates are checked, the data is read and compared with what was
    published, options are shuffled, worked examples are drawn, and the prompts are put into words.
    `protocol` stands in where the exam adapts the one that was asked for.
    """
    name, protocol = benchmark.name, protocol or choose_protocol(benchmark, args.protocol)
    assert protocol.wording is not None  # else the benchmark has a `make` of its own
    refuse(args, benchmark.refused, name)
    if benchmark.examples is None:
        refuse(args, dict.fromkeys(SHOT_SETTINGS, "there are no worked examples"), name)
    subsets: Sequence[str] = ()
    if benchmark.subset_names:
        subsets = choose_subsets(
            name, args.subset_list, benchmark.subset_names, benchmark.subset_aliases
        )
    shot_count = choose_shot_count(name, protocol, args)
    refuse_templates(benchmark, protocol, args)
    protocol.wording.check(Hint("place_protocol", name=name, protocol=protocol.name))
    wording = protocol.wording.adapted(args, bool(shot_count))
    setup = Setup(
        benchmark=benchmark,
        protocol=protocol,
        args=args,
        folder=folder,
        subsets=subsets,
        shots=shot_count,
        seed=seed,
    )
    questions, published = read_questions(setup)
    names = [subset.name for subset in questions.subsets]
    samples, errata = questions.samples, dict(questions.errata)
    if benchmark.faults is not None:
        errata |= {sample.id: fault for sample in samples if (fault := benchmark.faults(sample))}
    if args.shuffle_choices:
        if not all(sample.choices for sample in samples):
            raise ConfigError("prepare_no_options", name=name)
        samples = ShuffledSamples(samples, seed)
    shots, texts = read_examples(setup, names)
    counts = count_rows(questions.subsets, benchmark.rows)
    notes = [benchmark.count_note.format_map(c._asdict()) for c in counts if c.differs]
    titles = {subset.name: subset.title or subset.name for subset in questions.subsets}
    faults: list[Notice] = []
    if _is_plugin(benchmark):
        shown = (shot for pool in shots.values() for shot in pool)
        faults = sample_notices(name, questions.samples, shown)
    return benchmark.exam(
        benchmark=name,
        protocol=protocol,
        samples=samples,
        subsets=questions.subsets,
        readers=protocol.readers or benchmark.readers,
        data=DataFacts(
            {**folder.hashes, **questions.files},
            questions.version,
            (*questions.notes, *notes, *folder.notes),
        ),
        prompts=wording.prompts(names, shots, examples=texts, titles=titles),
        averages=(mean_over(published),) if benchmark.averages is None else benchmark.averages,
        errata=errata,
        clustered=questions.clustered,
        references=benchmark.references,
        warnings=(*questions.warnings, *count_warnings(counts), *faults),
        hints=tuple(faults),
        settings=(benchmark.settings or usual_settings)(setup, wording),
    )


def _is_plugin(benchmark: Benchmark) -> bool:
    """Whether the code of a plug-in makes the questions, so that no errors of it are published."""
    module = getattr(benchmark.questions, "__module__", "")
    return module.partition(".")[0] != "keju"


def read_questions(setup: Setup) -> tuple[Questions, Sequence[str]]:
    """The questions of the chosen subsets, and the names of all that there are to choose from.

    DataError where a chosen one has no questions.
    """
    name, wanted = setup.benchmark.name, setup.args.subset_list
    assert setup.benchmark.questions is not None  # else the benchmark has a `make` of its own
    with _blaming(name, setup.benchmark.questions):
        made = setup.benchmark.questions(setup)
        questions = made if isinstance(made, Questions) else arrange(name, made, setup.subsets)
    published = setup.benchmark.subset_names or [subset.name for subset in questions.subsets]
    if wanted is not None and not setup.benchmark.subset_names:
        subsets = choose_subsets(name, wanted, published)
        questions = arrange(name, questions.samples, subsets)
    if empty := [subset.name for subset in questions.subsets if not len(subset)]:
        raise DataError("prepare_empty_subsets", path=setup.folder.path, names=empty)
    return questions, published


@contextmanager
def _blaming(exam: str, function: Callable[..., Any]) -> Iterator[None]:
    """Say in one line where a function of somebody else's exam broke down."""
    try:
        yield
    except Exception as error:
        if isinstance(error, KejuError) or function.__module__.partition(".")[0] == "keju":
            raise
        code = function.__code__
        lines = [
            f.lineno for f in extract_tb(error.__traceback__) if f.filename == code.co_filename
        ]
        where = Place(code.co_filename, lines[-1] if lines else code.co_firstlineno)
        problem = f"{type(error).__name__}: {error}"
        values = {"exam": exam, "function": function.__name__, "where": where}
        raise DataError("exam_broke_down", problem=problem, **values) from error


def read_examples(
    setup: Setup, subsets: Sequence[str]
) -> tuple[Mapping[str, Sequence[Sample]], Mapping[str, str]]:
    """The worked examples of each subset: as samples or, where they are published so, as text."""
    benchmark = setup.benchmark
    if not setup.shots or benchmark.examples is None:
        return {}, {}
    with _blaming(benchmark.name, benchmark.examples):
        pool = benchmark.examples(setup)
        pool = pool if isinstance(pool, Mapping) else list(pool)
    if isinstance(pool, Mapping):
        return {}, pool
    shots = choose_shots(
        benchmark.name,
        [as_sample(benchmark.name, each, i, each.subset) for i, each in enumerate(pool)],
        subsets,
        setup.shots,
        seed=setup.seed if setup.args.few_shot_random else None,
        key=benchmark.shot_key,
    )
    return shots, {}


def option_rules() -> list[Reader]:
    """The readers of any question with options: Keju's own, and published ones."""
    from keju.answers.kinds import Choice
    from keju.answers.reader import EvalScopeChoiceReader, InspectChoiceReader
    from keju.answers.robust import RobustReader
    from keju.answers.wordings import ANSWER_IS

    robust = RobustReader(Choice(), strict=ANSWER_IS)
    return [robust, EvalScopeChoiceReader(), InspectChoiceReader()]


def plain_rules(measure: Reader) -> list[Reader]:
    """The readers of any question, which know no wording; `measure` says what is right."""
    from keju.answers.reader import LastLineReader, WholeReplyReader

    return [LastLineReader(measure), WholeReplyReader(measure)]


def readers_at_hand(exam: Exam) -> dict[str, Reader]:
    """All readers that an exam's replies can be read by: its own, then rules that several share.

    These are those for options, where the exam has none of that name, and the plain ones.
    """
    has_options = exam.samples and exam.samples[0].choices and not exam.open_answers
    rules = option_rules() if has_options else []
    found = {rule.name: rule for rule in rules} | dict(exam.readers)
    rules += plain_rules(found.get(exam.beside, exam.readers[exam.protocol.reader]))
    if exam.prompts is not None:
        rules = [rule.facing(exam.prompts.shown) for rule in rules]
    return dict(exam.readers) | {rule.name: rule for rule in rules if rule.name not in exam.readers}


def choose_readers(exam: Exam, asked: list[str] | None) -> list[Reader]:
    """The readers that were asked for, by default the protocol's own.

    ``l1@raw`` is the reader ``l1`` applied to replies with their think blocks.
    One alone has the exam's other reader beside it, so that a score that depends on its reader is
    never without a word.
    """
    names = list(dict.fromkeys(asked or [exam.protocol.reader]))
    bare = {name: name.removesuffix(RAW) for name in names}
    known: Mapping[str, Reader] = exam.readers
    if not set(bare.values()) <= known.keys():
        known = readers_at_hand(exam)
    for name in bare.values():
        if name not in known:
            hint = did_you_mean(name, known)
            raise ConfigError("prepare_no_reader", benchmark=exam.benchmark, name=name, hint=hint)
    readers = [
        known[name] if name == full else known[name].with_thinking() for full, name in bare.items()
    ]
    if len(names) == 1 and exam.beside in exam.readers and exam.beside not in names:
        readers.append(known[exam.beside])
    return readers


def generation_of(config: TaskConfig, own: GenerationConfig | None) -> GenerationConfig:
    """What the user says of sampling, what is said of one exam alone before what is said of all."""
    fields = {key: getattr(own, key) for key in own.model_fields_set} if own else {}
    return config.generation_config.model_copy(update=fields)


def resolve_sampling(
    protocol: Protocol, config: TaskConfig, own: GenerationConfig | None = None
) -> Sampling:
    """How the model is to decode: the user's word per key, else the protocol's, else none.

    What a model is sent where nobody says a temperature is decided by its kind.
    """
    asked = generation_of(config, own)
    form = protocol.form
    if config.api != "auto":
        form = "chat" if config.api == "chat" else "completion"
    stop = asked.stop if asked.stop is not None else protocol.stop if form == "completion" else ()
    return Sampling(
        form=form,
        decode=protocol.decode,
        temperature=asked.temperature if asked.temperature is not None else protocol.temperature,
        top_p=asked.top_p,
        max_tokens=asked.max_tokens or protocol.max_tokens,
        stop=tuple(stop),
        seed=asked.seed,
        extra=asked.body(),
        label_lead=protocol.label
        if protocol.label and protocol.decode == "labels"
        else msgspec.UNSET,
    )
