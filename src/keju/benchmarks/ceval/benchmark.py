"""The benchmark: its settings, and how they and a data folder become an exam."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from keju.benchmarks.base import Benchmark, DataFacts, Subset
from keju.benchmarks.ceval import data
from keju.benchmarks.ceval.exam import CEvalExam, sample_id
from keju.benchmarks.ceval.facts import LAYOUT, SUBJECT_ALIASES
from keju.benchmarks.ceval.modes import MODES
from keju.benchmarks.ceval.prompts import (
    EVALSCOPE_EXAMPLES,
    FEW_SHOT_FIELDS,
    QUESTION_FIELDS,
    Question,
    Voice,
    Writer,
    writer_for,
)
from keju.benchmarks.ceval.protocols import (
    PROTOCOLS,
    PUBLISHED,
    DecodeChoice,
    Mode,
    PromptForm,
    Setting,
    resolve,
)
from keju.benchmarks.ceval.readers import READER_NAMES, readers_for
from keju.benchmarks.ceval.subjects import SUBJECTS, Split, Subject, select
from keju.benchmarks.ceval.tools import TOOL_TASKS
from keju.benchmarks.choices import permuted, shuffle_order
from keju.benchmarks.kit import Count, count_warnings
from keju.benchmarks.wording import check_template
from keju.config import DatasetArgs
from keju.errors import ConfigError, did_you_mean
from keju.types import Sample

if TYPE_CHECKING:
    from keju.benchmarks.base import Exam
    from keju.sources.folder import DataFolder


class CEvalArgs(DatasetArgs):
    """Settings of C-Eval."""

    split: Literal["val", "test", "dev"] = "val"
    """Which questions: val has labels, test may not; dev holds the worked examples."""
    mode: Mode | None = None
    """``answer-only`` or ``cot``; the protocol's own by default."""
    form: PromptForm | None = None
    """``base`` (a text to continue) or ``chat``; the protocol's own by default."""
    decode: DecodeChoice = "auto"
    """``labels``: the likeliest of A to D; ``generate``: free text."""
    system_role: bool = True
    """False for a model without a system role: its text opens the first user message."""


def prepare(args: DatasetArgs, folder: DataFolder, seed: int) -> Exam:
    """Load one split under one protocol; refuse what cannot be carried out."""
    if not isinstance(args, CEvalArgs):
        args = CEvalArgs(**args.model_dump(exclude_unset=True))
    split = _checked_split(args.split)
    setting = _setting(args)
    template = _template(args, setting)
    voice = _voice(args, setting)
    subjects = select(args.subset_list)
    data.check_names(folder)
    writer = writer_for(setting, voice, template)
    _check_system_role(voice, writer, setting)
    shots = _shots(folder, subjects, setting, seed if args.few_shot_random else None)
    rows = {subject.name: data.read_rows(folder, subject, split) for subject in subjects}
    counts = data.counts_of(rows, subjects, split)
    prefixes = {s.name: writer.prefix(s.chinese, shots[s.name]) for s in subjects}
    samples, subsets = _samples(rows, subjects, split, seed if args.shuffle_choices else None)
    return CEvalExam(
        setting=setting,
        split=split,
        writer=writer,
        prefixes=prefixes,
        samples=samples,
        subsets=subsets,
        readers=readers_for(setting),
        data=_facts(folder, rows, counts, split),
        errata=_errata(rows, split),
        settings=_settings(args, setting, split),
        warnings=count_warnings(counts),
    )


def _checked_split(split: Split) -> Split:
    if split == "dev":
        raise ConfigError("split 'dev' holds the worked examples and is not asked: val or test")
    return split


def _setting(args: CEvalArgs) -> Setting:
    name = args.protocol or "evalscope"
    if name not in PUBLISHED:
        raise ConfigError(f"ceval has no protocol '{name}'{did_you_mean(name, PUBLISHED)}")
    return resolve(
        name, mode=args.mode, form=args.form, decode=args.decode, shots=args.few_shot_num
    )


def _template(args: CEvalArgs, setting: Setting) -> str | None:
    """The user's message template, where it can really be used."""
    names = ("prompt_template", "few_shot_prompt_template")
    given = [name for name in names if getattr(args, name) is not None]
    if not given:
        return None
    if not PUBLISHED[setting.protocol.name].templates:
        raise ConfigError(
            f"{given[0]}: the texts of protocol '{setting.protocol.name}' are fixed; "
            "take protocol evalscope"
        )
    if len(given) == 2:
        raise ConfigError(
            "prompt_template and few_shot_prompt_template: only one of them would be used"
        )
    required = ("question", "choices")
    if args.prompt_template is not None:
        check_template(
            args.prompt_template,
            known=QUESTION_FIELDS,
            required=required,
            setting="prompt_template",
        )
        return (EVALSCOPE_EXAMPLES if setting.shots else "") + args.prompt_template
    if not setting.shots:
        raise ConfigError("few_shot_prompt_template has no effect with few_shot_num 0")
    few_shot = args.few_shot_prompt_template or ""
    check_template(
        few_shot,
        known=FEW_SHOT_FIELDS,
        required=("fewshot", *required),
        setting="few_shot_prompt_template",
    )
    return few_shot


def _voice(args: CEvalArgs, setting: Setting) -> Voice:
    if setting.form == "base" and args.system_prompt:
        raise ConfigError("system_prompt needs form 'chat': a text to continue has no system role")
    if setting.form == "base" and not args.system_role:
        raise ConfigError("system_role has no effect in form 'base': leave it out")
    return Voice(args.system_prompt, args.system_role)


def _check_system_role(voice: Voice, writer: Writer, setting: Setting) -> None:
    """Refuse to do without a system role where nothing would be said in it."""
    own = writer.system("") if voice.system is None else voice.system
    if not voice.system_role and not own:
        raise ConfigError(
            "system_role has no effect: there is no system message in protocol "
            f"'{setting.protocol.name}' unless system_prompt gives one; leave it out"
        )


def _shots(
    folder: DataFolder, subjects: Sequence[Subject], setting: Setting, seed: int | None
) -> Mapping[str, list[Question]]:
    """The worked examples by subject: the first ones, or drawn with `seed`."""
    if not setting.shots:
        if seed is not None:
            raise ConfigError("few_shot_random has no effect with few_shot_num 0")
        return {subject.name: [] for subject in subjects}
    shots: dict[str, list[Question]] = {}
    for subject in subjects:
        pool = data.read_rows(folder, subject, "dev")
        if len(pool) < setting.shots:
            raise ConfigError(
                f"few_shot_num {setting.shots}: '{subject.name}' has {len(pool)} worked examples"
            )
        if seed is not None:
            pool = random.Random(f"{seed}:ceval:{subject.name}:shots").sample(pool, setting.shots)
        shots[subject.name] = [
            Question(row.question, row.options, row.answer, row.explanation)
            for row in pool[: setting.shots]
        ]
    return shots


def _samples(
    rows: Mapping[str, list[data.Row]],
    subjects: Sequence[Subject],
    split: Split,
    seed: int | None,
) -> tuple[tuple[Sample, ...], tuple[Subset, ...]]:
    """All questions in subject order; options permuted if there is a `seed`."""
    samples: list[Sample] = []
    subsets: list[Subset] = []
    for subject in subjects:
        start = len(samples)
        for row in rows[subject.name]:
            sample = _sample(row, subject.name, split)
            if seed is not None:
                sample = permuted(sample, shuffle_order(len(row.options), seed, sample.id))
            samples.append(sample)
        subsets.append(Subset(subject.name, start, len(samples), subject.chinese))
    return tuple(samples), tuple(subsets)


def _sample(row: data.Row, subject: str, split: Split) -> Sample:
    return Sample(
        id=sample_id(subject, split, row.id),
        subset=subject,
        index=row.id,
        text=row.question,
        target=row.answer,
        choices=row.options,
        metadata={"id": row.id, "explanation": row.explanation, "subject": subject},
    )


def _facts(
    folder: DataFolder,
    rows: Mapping[str, list[data.Row]],
    counts: Sequence[Count],
    split: Split,
) -> DataFacts:
    notes = data.count_notes(counts, split)
    unlabelled = sum(not row.answer for subject in rows.values() for row in subject)
    if unlabelled:
        notes.append(data.unlabelled_note(unlabelled, sum(map(len, rows.values()))))
    return DataFacts(dict(folder.hashes), split, (*notes, *folder.notes))


def _errata(rows: Mapping[str, list[data.Row]], split: Split) -> Mapping[str, str]:
    return {
        sample_id(subject, split, row.id): fault
        for subject, listed in rows.items()
        for row in listed
        if (fault := data.fault_of(row))
    }


def _settings(args: CEvalArgs, setting: Setting, split: Split) -> Mapping[str, Any]:
    """What shaped the prompts, for the manifest."""
    effective: dict[str, Any] = {
        "split": split,
        "mode": setting.mode,
        "form": setting.form,
        "decode": setting.decode,
        "few_shot_num": setting.shots,
        "few_shot_random": args.few_shot_random,
        "shuffle_choices": args.shuffle_choices,
        "system_role": args.system_role,
    }
    for name in ("system_prompt", "prompt_template", "few_shot_prompt_template"):
        if (value := getattr(args, name)) is not None:
            effective[name] = value
    return effective


CEVAL = Benchmark(
    name="ceval",
    title="C-Eval",
    about="52 subjects of Chinese examinations, four options (val 1,346, test 12,342 questions)",
    aliases=("c-eval",),
    layout=LAYOUT,
    tool_tasks=TOOL_TASKS,
    protocols=PROTOCOLS,
    readers=dict.fromkeys(READER_NAMES),  # type: ignore[arg-type]
    subset_names=tuple(SUBJECTS),
    subset_aliases=SUBJECT_ALIASES,
    modes=MODES,
    Args=CEvalArgs,
    make=prepare,
)
"""C-Eval: 13,948 questions of 52 Chinese examinations."""
