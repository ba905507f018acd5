"""From the user's settings to exams that are ready to sit; everything wrong is refused here."""

from __future__ import annotations

from typing import Any, Literal

from keju.benchmarks import registry
from keju.benchmarks.base import Exam, Protocol, Reader
from keju.benchmarks.kit import choose_protocol
from keju.benchmarks.rotation import rotated
from keju.benchmarks.selection import select
from keju.config import DatasetArgs, TaskConfig
from keju.errors import ConfigError, Notice, did_you_mean
from keju.sources.locate import locate
from keju.types import Sampling


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
    try:
        settings = benchmark.Args(**(args or {}))
    except ConfigError as error:
        raise ConfigError(f"dataset_args.{name}: {error}") from None
    given = settings.model_fields_set
    if judged:
        settings = settings.under_judge()
    replaced = sorted(given - settings.model_fields_set)
    chosen = choose_protocol(benchmark, settings.protocol or protocol).name
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
    if replaced:
        notice = Notice("judge_of_task", {"settings": ", ".join(replaced)})
        exam.warnings = (*exam.warnings, notice)
    return exam, settings


def prepare_exams(config: TaskConfig) -> list[tuple[Exam, DatasetArgs]]:
    """Load all exams of a run, with the user's limit applied."""
    prepared: list[tuple[Exam, DatasetArgs]] = []
    for name in config.datasets:
        exam, args = prepare_exam(
            name,
            config.dataset_args.get(name),
            data_dir=config.data_dir,
            protocol=config.protocol,
            seed=config.seed,
            hub=config.dataset_hub,
            offline=config.offline,
            judged=config.judge is not None and config.judge.strategy != "rule",
        )
        chosen = select(
            exam, config.limit, how=config.sample, shuffle=args.shuffle, seed=config.seed
        )
        if any(chosen.benchmark == other.benchmark for other, _ in prepared):
            raise ConfigError(f"datasets: '{chosen.benchmark}' is named twice, once as '{name}'")
        prepared.append((rotated(chosen, config.rotate_options), args))
    return prepared


def choose_readers(exam: Exam, asked: list[str] | None) -> list[Reader]:
    """The readers that were asked for; else the protocol's own and the one beside it."""
    if asked is None:
        own = exam.readers[exam.protocol.reader]
        beside = exam.readers.get(exam.beside)
        return [own] if beside is None or beside is own else [own, beside]
    for name in asked:
        if name not in exam.readers:
            hint = did_you_mean(name, exam.readers)
            raise ConfigError(f"{exam.benchmark} has no reader '{name}'{hint}")
    return [exam.readers[name] for name in dict.fromkeys(asked)]


def resolve_sampling(protocol: Protocol, config: TaskConfig) -> Sampling:
    """How the model decodes: the user's word per key, else the protocol's, else the default."""
    asked = config.generation_config
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
    )
