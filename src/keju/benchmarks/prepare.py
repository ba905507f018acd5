"""Turn the user's settings into exams that are ready to run, and reject invalid settings.

prepare_exams   all exams of a task: each is prepared, limited, and its options are rotated
prepare_exam    one exam: validate its settings, choose the protocol, locate the data folder
prepare         the steps for an exam that is described by its data
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import replace
from functools import wraps
from itertools import chain
from traceback import extract_tb
from typing import Any, Literal, ParamSpec

import msgspec

from keju.answers.reader import RAW
from keju.benchmarks import registry
from keju.benchmarks.base import Benchmark, DataSource, Exam, Protocol, Reader, mean_over
from keju.benchmarks.data_checks import check_samples
from keju.benchmarks.kit import (
    DRAWN,
    MOST_SHOWN,
    SHOT_SETTINGS,
    Questions,
    Setup,
    add_drawn_shots,
    arrange,
    as_sample,
    choose_protocol,
    choose_shot_count,
    choose_shots,
    choose_subsets,
    count_rows,
    default_settings,
    make_count_warnings,
    reject_settings,
    reject_templates,
)
from keju.benchmarks.samples import ShuffledSamples, restrict, restrict_to_ids, select
from keju.config import DatasetArgs, GenerationConfig, TaskConfig
from keju.config.exams import LM_EVAL, setting_names
from keju.errors import (
    ConfigError,
    DataError,
    FileLine,
    KejuError,
    Notice,
    TranslatableText,
    did_you_mean,
)
from keju.messages import first_of
from keju.sources.folder import DataFolder, locate
from keju.types import Sample, Sampling

Prepare = ParamSpec("Prepare")
PreparedExam = tuple[Exam, DatasetArgs]
_prepared: ContextVar[dict[str, PreparedExam] | None] = ContextVar("prepared", default=None)


@contextmanager
def share_prepared_exams() -> Iterator[None]:
    """Load an exam once, even if several runs need it. Its data must not change meanwhile."""
    token = _prepared.set({} if (outer := _prepared.get()) is None else outer)
    try:
        yield
    finally:
        _prepared.reset(token)


def _load_once(load: Callable[Prepare, PreparedExam]) -> Callable[Prepare, PreparedExam]:
    """Return `load` with the memory of `share_prepared_exams`."""

    @wraps(load)
    def load_or_recall(*args: Prepare.args, **options: Prepare.kwargs) -> PreparedExam:
        prepared = _prepared.get()
        if prepared is None:
            return load(*args, **options)
        key = repr((args, sorted(options.items())))
        if key not in prepared:
            prepared[key] = load(*args, **options)
        exam, settings = prepared[key]
        return copy(exam), settings

    return load_or_recall


@_load_once
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
    args = {**benchmark.alias_settings.get(name, {}), **(args or {})}
    given_settings = settings = _parse_settings(name, args)
    if judged:
        settings = settings.without_own_judge()
    replaced = _list_changed_settings(given_settings, settings)
    requested_protocols = (
        settings.protocol,
        protocol,
        benchmark.alias_protocols.get(name),
        settings.implied_protocol,
    )
    requested_protocol = next(filter(None, requested_protocols), None)
    protocol_name = choose_protocol(benchmark, requested_protocol).name
    settings = settings.model_copy(update={"protocol": protocol_name})
    if benchmark.find_folder is not None:
        folder = benchmark.find_folder(benchmark.name, settings, data_dir, offline)
    else:
        layout = benchmark.layout_for(settings)
        folder = locate(
            benchmark.name,
            layout,
            local_path=settings.local_path if layout else None,
            data_dir=data_dir,
            hub=hub,
            offline=offline,
        )
    exam = benchmark.prepare(settings, folder, seed=seed)
    if folder.edited:
        exam.warnings = (*exam.warnings, _make_edited_notice(folder.edited))
        notes = (*exam.data.notes, *(f"{name} is not the published file" for name in folder.edited))
        exam.data = replace(exam.data, notes=notes)
    if replaced:
        notice = Notice("judge_of_task", {"settings": ", ".join(replaced)})
        exam.warnings = (*exam.warnings, notice)
    return exam, settings


def _list_changed_settings(given: DatasetArgs, settings: DatasetArgs) -> list[str]:
    """Return the given settings that `settings` no longer has, or has with another value."""
    return [
        name
        for name in sorted(given.model_fields_set)
        if name not in settings.model_fields_set or getattr(settings, name) != getattr(given, name)
    ]


def _make_edited_notice(files: Sequence[str]) -> Notice:
    shown_files = first_of(files, MOST_SHOWN)
    listing, hidden_count = ", ".join(shown_files), len(files) - len(shown_files)
    if hidden_count:
        return Notice("data_edited_more", {"files": listing, "more": hidden_count})
    return Notice("data_edited", {"files": listing})


def prepare_exams(config: TaskConfig) -> list[tuple[Exam, DatasetArgs]]:
    """Load all exams of a run, with the user's limit applied."""
    prepared: list[tuple[Exam, DatasetArgs]] = []
    if config.include_path and not any(name.startswith(LM_EVAL) for name in config.datasets):
        raise ConfigError("lm_eval_include_unused")
    requested_ids = None if config.ids is None else frozenset(config.ids)
    unmatched_ids = set(requested_ids or ())
    for name, arm, exam_settings in _requested_exams(config):
        exam, args = prepare_exam(
            name,
            exam_settings,
            data_dir=config.data_dir,
            protocol=config.protocol,
            seed=config.seed,
            hub=config.dataset_hub,
            offline=config.offline,
            judged=config.judge is not None and config.judge.strategy != "rule",
        )
        selected_exam = _apply_limit(exam, args, config)
        if requested_ids is not None:
            selected_exam = restrict_to_ids(selected_exam, requested_ids)
            unmatched_ids -= {sample.id for sample in selected_exam.samples}
            notice = Notice("chosen_questions", {"n": len(selected_exam.samples)})
            selected_exam.warnings = (*selected_exam.warnings, notice)
        if config.part is not None:
            selected_exam = _select_part(selected_exam, *config.part)
        selected_exam.arm = arm
        if (exam.benchmark, arm) in {(ready.benchmark, ready.arm) for ready, _ in prepared}:
            raise ConfigError("prepare_twice", benchmark=exam.benchmark, name=name)
        if config.rotate_options > 1:
            from keju.benchmarks.rotation import rotate_exam

            selected_exam = rotate_exam(selected_exam, config.rotate_options)
        prepared.append((selected_exam, args))
    if unmatched_ids:
        names = [exam.benchmark for exam, _ in prepared]
        raise ConfigError("unknown_ids", id=min(unmatched_ids), n=len(unmatched_ids), names=names)
    return prepared


def _apply_limit(exam: Exam, args: DatasetArgs, config: TaskConfig) -> Exam:
    """Return the exam with the questions that the limits of the exam or of the task select."""
    limit, total = (config.limit, config.total) if args.limit is None else (args.limit, None)
    selected_exam = select(
        exam,
        limit,
        total=total,
        method=config.sample,
        shuffle=args.shuffle,
        seed=config.seed,
    )
    selected_exam.hints = (*selected_exam.hints, *_size_hints(exam, args, limit, config.total))
    return selected_exam


def _select_part(exam: Exam, part: int, parts: int) -> Exam:
    """Return every question of an exam that belongs to one of several parts of a run."""
    selected_exam = restrict(exam, range(part, len(exam.samples), parts))
    values = {"part": part + 1, "parts": parts, "n": len(selected_exam.samples)}
    selected_exam.warnings = (*selected_exam.warnings, Notice("shard_of_questions", values))
    return selected_exam


def _size_hints(
    exam: Exam, args: DatasetArgs, limit: int | float | None, total: int | None
) -> Iterator[Notice]:
    """Yield a hint if the user asked for more questions than were generated and more are possible.

    For other exams, a limit above the number of questions means all of them, so there is nothing to
    say.
    """
    question_count, subsets = len(exam.samples), len(exam.subsets)
    requested_count = limit if limit is not None else math.ceil((total or 0) / max(1, subsets))
    if (
        args.size_setting
        and isinstance(requested_count, int)
        and requested_count * subsets > question_count
    ):
        values = {"exam": exam.benchmark, "setting": args.size_setting, "whole": question_count}
        yield Notice(
            "limit_beyond_made",
            {**values, "each": question_count // subsets, "wanted": requested_count},
        )


def _requested_exams(config: TaskConfig) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield each requested exam: its name, the arm from its settings, and its settings.

    ConfigError if both the task and the exam's settings name arms.
    """
    for name in config.datasets:
        exam_settings = _settings_with_folders(config, name)
        exams = _parse_settings(name, exam_settings).exams(exam_settings)
        if config.arms and any(exams):
            raise ConfigError("prepare_arms_twice", name=name, arms=[*exams])
        for arm, arm_settings in exams.items():
            yield name, arm, arm_settings


def _parse_settings(name: str, exam_settings: Mapping[str, Any]) -> DatasetArgs:
    benchmark = registry.get(name)
    try:
        return benchmark.Args(**exam_settings)
    except ConfigError as error:
        raise ConfigError("prepare_args", name=setting_names([name])[0], problem=error) from None


def _settings_with_folders(config: TaskConfig, name: str) -> dict[str, Any]:
    """Return an exam's settings, with the folders of capsules and of more tasks if the task names
    them."""
    exam_settings = config.dataset_args.get(name) or {}
    takes_tasks = config.include_path is not None and name.startswith(LM_EVAL)
    if takes_tasks and "include_path" not in exam_settings:
        exam_settings = {**exam_settings, "include_path": config.include_path}
    if config.capsules is None or "capsule_dir" in exam_settings:
        return exam_settings
    if "capsule_dir" not in registry.get(name).Args.model_fields:
        raise ConfigError("capsules_unused", name=name)
    return {**exam_settings, "capsule_dir": config.capsules}


def prepare(
    benchmark: Benchmark,
    args: DatasetArgs,
    folder: DataFolder,
    seed: int,
    protocol: Protocol | None = None,
) -> Exam:
    """Prepare a benchmark that is described by its data.

    The order is: reject settings without effect, choose the subsets and the number of worked
    examples, check the templates, read the data and compare it with the published counts, shuffle
    options, draw worked examples, and write the prompts. An exam that adapts the requested protocol
    passes the adapted one as `protocol`.
    """
    name, protocol = benchmark.name, protocol or choose_protocol(benchmark, args.protocol)
    setup = _check_setup(benchmark, protocol, args, folder, seed)
    assert protocol.wording is not None  # otherwise the benchmark defines `make`
    wording = protocol.wording.adapted(args, bool(setup.shots))
    questions, published = read_questions(setup)
    names = [subset.name for subset in questions.subsets]
    samples = _shuffle_choices(name, questions.samples, seed if args.shuffle_choices else None)
    drawn_pool = read_drawn_pool(setup)
    shots, texts = ({}, {}) if drawn_pool else read_examples(setup, names)
    if drawn_pool and protocol.draw_shots is not None:
        places = protocol.draw_shots(len(drawn_pool), setup.shots, len(samples))
        samples = add_drawn_shots(samples, places)
    counts = count_rows(questions.subsets, benchmark.rows)
    notes = [benchmark.count_note.format_map(c._asdict()) for c in counts if c.differs]
    titles = {subset.name: subset.title or subset.name for subset in questions.subsets}
    shot_samples = chain.from_iterable(shots.values())
    is_plugin = _is_plugin(benchmark)
    faults = check_samples(name, questions.samples, shot_samples) if is_plugin else []
    return benchmark.exam(
        benchmark=name,
        protocol=protocol,
        samples=samples,
        subsets=questions.subsets,
        readers=protocol.readers or benchmark.readers,
        data=DataSource(
            {**folder.hashes, **questions.files},
            questions.version,
            (*questions.notes, *notes, *folder.notes),
        ),
        prompts=wording.drawn_prompts(names, drawn_pool, DRAWN)
        if drawn_pool
        else wording.prompts(names, shots, examples=texts, titles=titles),
        averages=(mean_over(published),) if benchmark.averages is None else benchmark.averages,
        errata={**questions.errata, **_find_faults(benchmark, questions.samples)},
        clustered=questions.clustered,
        references=benchmark.references,
        warnings=(*questions.warnings, *make_count_warnings(counts), *faults),
        hints=tuple(faults),
        settings=(benchmark.settings or default_settings)(setup, wording),
    )


def _check_setup(
    benchmark: Benchmark, protocol: Protocol, args: DatasetArgs, folder: DataFolder, seed: int
) -> Setup:
    """Return the settings of an exam with its subsets and number of worked examples.

    ConfigError for settings and templates that are invalid or would do nothing.
    """
    name = benchmark.name
    reject_settings(args, benchmark.refused, name)
    if benchmark.examples is None:
        reject_settings(args, dict.fromkeys(SHOT_SETTINGS, "there are no worked examples"), name)
    subsets: Sequence[str] = ()
    if benchmark.subset_names:
        subsets = choose_subsets(
            name, args.subset_list, benchmark.subset_names, benchmark.subset_aliases
        )
    shot_count = choose_shot_count(name, protocol, args)
    reject_templates(benchmark, protocol, args)
    if protocol.wording is not None:
        place = TranslatableText("place_protocol", name=name, protocol=protocol.name)
        protocol.wording.check(place)
    return Setup(
        benchmark=benchmark,
        protocol=protocol,
        args=args,
        folder=folder,
        subsets=subsets,
        shots=shot_count,
        seed=seed,
    )


def _shuffle_choices(name: str, samples: Sequence[Sample], seed: int | None) -> Sequence[Sample]:
    """Return the questions with their options shuffled; unchanged if `seed` is None."""
    if seed is None:
        return samples
    if not all(sample.choices for sample in samples):
        raise ConfigError("prepare_no_options", name=name)
    return ShuffledSamples(samples, seed)


def _find_faults(benchmark: Benchmark, samples: Sequence[Sample]) -> dict[str, str]:
    """Return the faulty questions that the benchmark recognises, by sample id."""
    if benchmark.faults is None:
        return {}
    return {sample.id: fault for sample in samples if (fault := benchmark.faults(sample))}


def _is_plugin(benchmark: Benchmark) -> bool:
    """Whether a plug-in makes the questions. Keju has no list of errors in such questions."""
    module = getattr(benchmark.questions, "__module__", "")
    return module.partition(".")[0] != "keju"


def read_questions(setup: Setup) -> tuple[Questions, Sequence[str]]:
    """Return the questions of the selected subsets, and the names of all available subsets.

    DataError if a selected subset has no questions.
    """
    name, requested_subsets = setup.benchmark.name, setup.args.subset_list
    assert setup.benchmark.questions is not None  # otherwise the benchmark defines `make`
    with _locate_errors(name, setup.benchmark.questions):
        result = setup.benchmark.questions(setup)
        questions = (
            result if isinstance(result, Questions) else arrange(name, result, setup.subsets)
        )
    published = setup.benchmark.subset_names or [subset.name for subset in questions.subsets]
    if requested_subsets is not None and not setup.benchmark.subset_names:
        subsets = choose_subsets(name, requested_subsets, published)
        questions = arrange(name, questions.samples, subsets)
    if empty := [subset.name for subset in questions.subsets if not len(subset)]:
        raise DataError("prepare_empty_subsets", path=setup.folder.path, names=empty)
    return questions, published


@contextmanager
def _locate_errors(exam: str, function: Callable[..., Any]) -> Iterator[None]:
    """Report the line at which a function of a plug-in's exam failed."""
    try:
        yield
    except Exception as error:
        if isinstance(error, KejuError) or function.__module__.partition(".")[0] == "keju":
            raise
        code = function.__code__
        lines = [
            f.lineno for f in extract_tb(error.__traceback__) if f.filename == code.co_filename
        ]
        where = FileLine(code.co_filename, lines[-1] if lines else code.co_firstlineno)
        problem = f"{type(error).__name__}: {error}"
        values = {"exam": exam, "function": function.__name__, "where": where}
        raise DataError("exam_broke_down", problem=problem, **values) from error


def read_examples(
    setup: Setup, subsets: Sequence[str]
) -> tuple[Mapping[str, Sequence[Sample]], Mapping[str, str]]:
    """Return the worked examples of each subset: as samples, or as text if published as text."""
    benchmark = setup.benchmark
    if not setup.shots or benchmark.examples is None:
        return {}, {}
    with _locate_errors(benchmark.name, benchmark.examples):
        pool = benchmark.examples(setup)
        pool = pool if isinstance(pool, Mapping) else list(pool)
    if isinstance(pool, Mapping):
        return {}, pool
    shots = choose_shots(
        benchmark.name,
        [
            as_sample(benchmark.name, question, i, question.subset)
            for i, question in enumerate(pool)
        ],
        subsets,
        setup.shots,
        seed=setup.seed if setup.args.few_shot_random else None,
        key=benchmark.shot_key,
    )
    return shots, {}


def read_drawn_pool(setup: Setup) -> Sequence[Sample]:
    """Return the pool from which each question draws its own worked examples; usually empty."""
    is_drawn = setup.protocol.draw_shots is not None and not setup.args.few_shot_random
    if not is_drawn or not setup.shots or setup.benchmark.examples is None:
        return ()
    name = setup.benchmark.name
    pool = [as_sample(name, q, i, "") for i, q in enumerate(setup.benchmark.examples(setup))]
    if setup.shots > len(pool):
        values = {"name": name, "asked": setup.shots, "where": setup.folder.path, "n": len(pool)}
        raise ConfigError("kit_too_many_shots", **values)
    return pool


def make_option_readers() -> list[Reader]:
    """Return the readers for any question with options: Keju's reader and published ones."""
    from keju.answers.kinds import Choice
    from keju.answers.reader import EvalScopeChoiceReader, InspectChoiceReader
    from keju.answers.robust import RobustReader
    from keju.answers.wordings import ANSWER_IS

    robust = RobustReader(Choice(), strict=ANSWER_IS)
    return [robust, EvalScopeChoiceReader(), InspectChoiceReader()]


def make_plain_readers(measure: Reader) -> list[Reader]:
    """Return the readers for any question; they know no wording, and `measure` grades their
    answers."""
    from keju.answers.reader import LastLineReader, WholeReplyReader

    return [LastLineReader(measure), WholeReplyReader(measure)]


def available_readers(exam: Exam) -> dict[str, Reader]:
    """Return all readers for an exam's replies: the exam's readers, then the shared ones.

    The shared ones are those for options, unless the exam has a reader of that name, and the plain
    ones.
    """
    has_options = exam.samples and exam.samples[0].choices and not exam.open_answers
    rules = make_option_readers() if has_options else []
    readers_by_name = {rule.name: rule for rule in rules} | dict(exam.readers)
    rules += make_plain_readers(
        readers_by_name.get(exam.beside, exam.readers[exam.protocol.reader])
    )
    if exam.prompts is not None:
        rules = [rule.facing(exam.prompts.prefix_text) for rule in rules]
    return dict(exam.readers) | {rule.name: rule for rule in rules if rule.name not in exam.readers}


def choose_readers(exam: Exam, requested_names: list[str] | None) -> list[Reader]:
    """Return the requested readers, by default the protocol's reader.

    ``l1@raw`` is the reader ``l1`` applied to replies with their think blocks. If only one reader
    is requested, the exam's second reader is added, so that users see how far the score depends on
    the reader.
    """
    own_names = list(exam.readers) if exam.reads_all else [exam.protocol.reader]
    names = list(dict.fromkeys(requested_names or own_names))
    plain_names = {name: name.removesuffix(RAW) for name in names}
    readers_by_name: Mapping[str, Reader] = exam.readers
    if not set(plain_names.values()) <= readers_by_name.keys():
        readers_by_name = available_readers(exam)
    for name in plain_names.values():
        if name not in readers_by_name:
            hint = did_you_mean(name, readers_by_name)
            raise ConfigError("prepare_no_reader", benchmark=exam.benchmark, name=name, hint=hint)
    readers = [
        readers_by_name[name] if name == full else readers_by_name[name].with_thinking()
        for full, name in plain_names.items()
    ]
    if len(names) == 1 and exam.beside in exam.readers and exam.beside not in names:
        readers.append(readers_by_name[exam.beside])
    return readers


def merge_generation(config: TaskConfig, exam_config: GenerationConfig | None) -> GenerationConfig:
    """Return the user's generation settings: the exam's settings override the task's."""
    fields = (
        {key: getattr(exam_config, key) for key in exam_config.model_fields_set}
        if exam_config
        else {}
    )
    return config.generation_config.model_copy(update=fields)


def resolve_sampling(
    protocol: Protocol, config: TaskConfig, exam_config: GenerationConfig | None = None
) -> Sampling:
    """Return the sampling settings: for each key the user's value, else the protocol's, else none.

    If the temperature is not set, the kind of model decides.
    """
    generation = merge_generation(config, exam_config)
    form = protocol.form
    if config.api != "auto":
        form = "chat" if config.api == "chat" else "completion"
    stop = (
        generation.stop
        if generation.stop is not None
        else protocol.stop
        if form == "completion"
        else ()
    )
    return Sampling(
        form=form,
        decode=protocol.decode,
        temperature=generation.temperature
        if generation.temperature is not None
        else protocol.temperature,
        top_p=generation.top_p,
        max_tokens=generation.max_tokens or protocol.max_tokens,
        stop=tuple(stop),
        seed=generation.seed,
        extra=generation.body(),
        label_lead=protocol.label
        if protocol.label and protocol.decode != "generate"
        else msgspec.UNSET,
    )
