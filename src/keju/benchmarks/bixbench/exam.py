"""The BixBench exam: it makes samples from rows, in the view that the settings select."""

from __future__ import annotations

import hashlib
import math
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from keju import messages
from keju.answers.segments import split_any_thinking
from keju.benchmarks.base import (
    ALL_CHANGES,
    Benchmark,
    DataSource,
    Exam,
    Reader,
    Reference,
    RuleChange,
    Scores,
    Subset,
)
from keju.benchmarks.bixbench import agentic, open_answers, readers
from keju.benchmarks.bixbench.args import AGENTIC_SETTINGS, BixBenchArgs
from keju.benchmarks.bixbench.data import (
    ERRATA,
    GOLDEN,
    HYPOTHESIS,
    LAYOUT,
    REFERENCES,
    TOOL_TASKS,
    VERIFIED,
    VERIFIED_LAYOUT,
    VERSIONS,
    Capsule,
    QuestionTable,
    read_table,
    subset_name,
)
from keju.benchmarks.bixbench.protocols import AGENTIC, PROTOCOLS, BixBenchProtocol
from keju.benchmarks.bixbench.relaxations import EVAL_MODE, RELAXATIONS, RelaxedRules
from keju.benchmarks.choices import recorded_gold, shuffle_order
from keju.benchmarks.grading import EXACT, GRADED, LOST, REFUSAL
from keju.benchmarks.kit import Questions, choose_protocol, fingerprint, make_count_warnings
from keju.config import DatasetArgs
from keju.errors import ConfigError, DataError, Notice
from keju.stats.estimate import Estimate, QuestionRepeats, mean_of_items
from keju.types import ALL_OUTCOMES, LABELS, UNGRADED, Outcome, Reading, Reply, Sample

if TYPE_CHECKING:
    from keju.sources.folder import DataFolder

RECORDED_SETTINGS = (
    "mode", "answer_mode", "question_source", "add_tf_legend", "max_episodes", "seed",
    "shuffle_options", "with_refusal", "use_think", "all_questions", "compat_shuffle", "no_judge",
)  # fmt: skip
AGENTIC_RECORDED = tuple(n for n in AGENTIC_SETTINGS if n not in ("capsule_dir", "notebook"))
TRUTHS = ("True", "False")
EXACT_WARNING = Notice("bixbench.exact")
# The label before an option in recorded runs: `(A) text`.
_LABEL_PREFIX = re.compile(r"\(([A-Z])\) ?")


@dataclass(kw_only=True, eq=False)
class BixBenchExam(Exam):
    """One view of one version under one protocol."""

    any_thinking: bool = False
    """Also cut reasoning in tags other than ``<think>``."""
    leaves_to_judge: bool = False
    """Whether open answers that no rule decides wait for a judge."""
    distractors: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The wrong options of open questions, by sample id."""

    def rule_changes(self) -> Sequence[RuleChange]:
        """Return each relaxation of the rules for open answers, and all of them together."""
        if not self.open_answers or self.subsets[0].name == HYPOTHESIS:
            return ()
        switches = [(name,) for name in RELAXATIONS]
        return [
            RuleChange(
                name=ALL_CHANGES if len(names) > 1 else names[0],
                about="" if len(names) > 1 else f"bixbench.relaxation_{names[0]}",
                accepts=RelaxedRules(names, self.distractors).accepts,
            )
            for names in (*switches, RELAXATIONS)
        ]

    def rules_of(self, reader: Reader) -> str:
        return open_answers.STRICT if reader.name == open_answers.NATIVE else reader.name

    def grade(self, reply: Reply, sample: Sample, reader: Reader) -> Reading:
        if self.any_thinking and reply.error is None:
            thought = split_any_thinking(reply.text)
            if thought.reasoning:
                raw = reply.raw or reply.text
                reply = msgspec.structs.replace(
                    reply, text=thought.text, reasoning=thought.reasoning, raw=raw
                )
        if self.open_answers:
            return open_answers.grade_open(
                reply,
                sample,
                reader,
                exact=self.grader == EXACT,
                leaves_to_judge=self.leaves_to_judge,
            )
        return super().grade(reply, sample, reader)

    def chance(self, sample: Sample) -> float | None:
        """Return one divided by the number of options, or one half for an open answer of true or
        false."""
        return 0.5 if self.open_answers and sample.subset == HYPOTHESIS else super().chance(sample)

    def extra_metrics(self, scores: Scores) -> Mapping[str, Estimate]:
        return compute_answer_metrics(self.samples, scores)

    def locate(self, row: Mapping[str, Any]) -> str:
        hypothesis = self.subsets[0].name == HYPOTHESIS
        keys = ("capsule_uuid" if hypothesis else "question_id", "id")
        for key in keys:
            if isinstance(row.get(key), str):
                return sample_id(row[key])
        raise KeyError(keys[0])

    def carries_gold(self, row: Mapping[str, Any]) -> bool:
        """Whether the row's gold counts: also for a letter without options, whose order is not
        Keju's."""
        return super().carries_gold(row) or self._is_of_unknown_order(row)

    def _is_of_unknown_order(self, row: Mapping[str, Any]) -> bool:
        has_letter_only = not self.open_answers and row.get("choices") is None
        return has_letter_only and recorded_gold(row)[1] is not None

    def as_recorded(self, sample: Sample, row: Mapping[str, Any], *, gold: bool) -> Sample:
        """Return the sample with the options as displayed: their labels, and which was the refusal.

        If the options were not recorded, they have labels and no text. Only the row's letter tells
        which of them was right.
        """
        normalized_row = dict(row)
        if self._is_of_unknown_order(row):
            if not gold:
                raise DataError("bixbench.unknown_order", key=recorded_gold(row)[0])
            sample = _blank_options(sample, row)
        choices = row.get("choices")
        if isinstance(choices, list):
            normalized_row["choices"] = [
                _LABEL_PREFIX.sub("", choice, count=1) if isinstance(choice, str) else choice
                for choice in choices
            ]
        if gold and ("choices" in row or "target" in row):
            metadata = {k: v for k, v in sample.metadata.items() if k != REFUSAL}
            if row.get("unsure"):
                metadata[REFUSAL] = str(row["unsure"])
            sample = msgspec.structs.replace(sample, metadata=metadata, order=())
        return super().as_recorded(sample, normalized_row, gold=gold)


def _blank_options(sample: Sample, row: Mapping[str, Any]) -> Sample:
    """Return a sample with as many options without text as the letters of a row need."""
    letters = f"{recorded_gold(row)[1]}{row.get('unsure') or ''}"
    option_count = max([len(sample.choices), *(LABELS.find(letter) + 1 for letter in letters)])
    return msgspec.structs.replace(sample, choices=("",) * option_count)


def sample_id(name: str) -> str:
    """Return the sample id for a question id or, for hypotheses, a capsule's uuid."""
    return f"bixbench_{name.strip().lower().removeprefix('bixbench_')}"


def make(args: DatasetArgs, folder: DataFolder, seed: int) -> BixBenchExam:
    """Load one version; the exam's setting ``seed`` overrides the task's seed."""
    exam_args = _parse_args(args, seed)
    protocol = _choose_protocol(exam_args)
    wording = protocol.make_wording(exam_args)
    table = read_table(folder, exam_args.data_version)
    if exam_args.all_questions and table.version != "1.0":
        raise ConfigError("bixbench.all_questions")
    questions = make_questions(table, exam_args, protocol)
    (subset,) = questions.subsets
    _check_subset_list(exam_args.subset_list, subset.name)
    mcq = exam_args.answer_mode == "mcq"
    distractors = {} if mcq else _find_distractors(table)
    is_agentic = exam_args.uses_notebook
    has_turns = exam_args.mode == AGENTIC and not is_agentic
    return BixBenchExam(
        benchmark="bixbench",
        protocol=protocol if mcq else replace(protocol, reader=open_answers.NATIVE),
        samples=questions.samples,
        subsets=questions.subsets,
        readers=_make_readers(exam_args, protocol, distractors),
        distractors=distractors,
        data=DataSource(dict(folder.hashes), table.version, (*questions.notes, *folder.notes)),
        prompts=wording.prompts([subset.name]),
        errata=questions.errata,
        clustered=True,
        references=_find_references(exam_args, table.version),
        beside="robust" if mcq else open_answers.TOLERANT,
        judge=exam_args.judge() if exam_args.names_a_judge else None,
        open_answers=not mcq,
        grader=EXACT if exam_args.exact else "",
        warnings=(*questions.warnings, *([EXACT_WARNING] if exam_args.exact else [])),
        settings={
            name: getattr(exam_args, name)
            for name in (
                *RECORDED_SETTINGS,
                *(AGENTIC_RECORDED if is_agentic else ()),
                *(("notebook", "max_turns") if has_turns else ()),
            )
        }
        | ({} if exam_args.relaxations is None else {"relaxations": [*exam_args.tolerated]})
        | {"prompt_template": wording.question, "system_prompt": wording.system_prompt},
        any_thinking=exam_args.use_think,
        leaves_to_judge=exam_args.leaves_to_judge,
        turns=exam_args.max_turns if has_turns else 1,
        notebook=agentic.make_notebook_task(exam_args, folder.path) if is_agentic else None,
    )


def _parse_args(args: DatasetArgs, seed: int) -> BixBenchArgs:
    """Return the settings as those of this exam, with the task's seed if they name none."""
    exam_args = args
    if not isinstance(exam_args, BixBenchArgs):
        exam_args = BixBenchArgs(**args.model_dump(exclude_unset=True))
    if "seed" not in exam_args.model_fields_set:
        exam_args = exam_args.model_copy(update={"seed": seed})
    return exam_args


def _choose_protocol(args: BixBenchArgs) -> BixBenchProtocol:
    """Return the protocol of the settings; ConfigError if their mode belongs to another one."""
    protocol = choose_protocol(BIXBENCH, args.protocol or args.implied_protocol)
    assert isinstance(protocol, BixBenchProtocol)
    if args.uses_notebook != (protocol.name == AGENTIC):
        raise ConfigError("bixbench.mode_of_protocol", protocol=protocol.name, mode=args.mode)
    return protocol


def _check_subset_list(names: Sequence[str] | None, subset: str) -> None:
    """Raise ConfigError if the user asks for other subsets than the only one of this view."""
    if names is not None and not names:
        raise ConfigError("bixbench.subset_list_empty")
    for name in names or ():
        if name.strip().lower() not in (subset, subset.removeprefix("v")):
            raise ConfigError("bixbench.subset_not_asked", name=name, subset=subset)


def _find_distractors(table: QuestionTable) -> dict[str, Sequence[str]]:
    """Return the wrong options of each question, by sample id."""
    return {sample_id(question.id): question.distractors for question in table.questions}


def _make_readers(
    args: BixBenchArgs, protocol: BixBenchProtocol, distractors: Mapping[str, Sequence[str]]
) -> dict[str, Reader]:
    """Return the readers of the answer mode: of letters, or of open answers."""
    if args.answer_mode == "mcq":
        return readers.make_readers()
    return open_answers.make_readers(
        hypothesis=args.question_source == "hypothesis",
        tags_required=protocol.tags_required,
        relaxations=args.tolerated,
        distractors=distractors,
    )


def _has_all_questions(args: BixBenchArgs, version: str) -> bool:
    """Whether all questions are asked, and not only the first of each capsule."""
    return version != "1.0" or args.all_questions


def _find_references(args: BixBenchArgs, version: str) -> Sequence[Reference]:
    """Return the published figures; only one view has any."""
    is_published_view = args.answer_mode == args.question_source == "mcq" and not args.with_refusal
    is_published = is_published_view and _has_all_questions(args, version)
    return REFERENCES.get(version, ()) if is_published else ()


class ViewItem(NamedTuple):
    """A question as one row asks it, in either view."""

    name: str
    """Question id, or uuid of the capsule; it determines the permutation."""
    text: str
    options: tuple[str, ...]
    gold: int
    """The index of the right option."""
    capsule: Capsule
    metadata: dict[str, Any]


def make_questions(
    table: QuestionTable, args: BixBenchArgs, protocol: BixBenchProtocol
) -> Questions:
    """Return the samples for these settings, in the order of the file."""
    hypothesis = args.question_source == "hypothesis"
    name = HYPOTHESIS if hypothesis else subset_name(table.version)
    view_items, notes = _list_hypotheses(table) if hypothesis else _list_questions(table, args)
    if not view_items:
        raise DataError("bixbench.nothing_of_view")
    asked_items = view_items[: args.max_episodes]
    samples = [
        make_sample(view_item, name, index, args, protocol)
        for index, view_item in enumerate(asked_items)
    ]
    errata = {} if hypothesis else _find_errata(table.version, asked_items, samples)
    if args.answer_mode == "mcq":
        # The positions of the right answers, to show a permutation that does not vary before the
        # run.
        letters = Counter(sample.target for sample in samples)
        letter_counts = ", ".join(f"{label} {letters[label]}" for label in sorted(letters))
        notes.append(f"gold letters: {letter_counts}")
    count = table.rows
    if count.differs:
        notes.append(f"{count.name}: {count.rows} rows, published are {count.published}")
    population = len(view_items) if len(samples) < len(view_items) else 0
    return Questions(
        samples=tuple(samples),
        subsets=(Subset(name, 0, len(samples), population=population),),
        errata=errata,
        notes=notes,
        warnings=(*make_count_warnings([count]), *table.warnings),
    )


def _list_hypotheses(table: QuestionTable) -> tuple[list[ViewItem], list[str]]:
    """Return the hypotheses whose truth is recorded, and notes about the others."""
    notes = [*table.notes]
    capsules = [c for c in table.capsules if c.answer is not None and c.hypothesis.strip()]
    left_out = sorted({c.short_id for c in table.capsules} - {c.short_id for c in capsules})
    if left_out:
        names = ", ".join(left_out)
        notes.append(f"hypotheses left out, as their truth is not recorded: {names}")
    items = [ViewItem(c.uuid, c.hypothesis, TRUTHS, int(not c.answer), c, {}) for c in capsules]
    return items, notes


def _list_questions(table: QuestionTable, args: BixBenchArgs) -> tuple[list[ViewItem], list[str]]:
    """Return the questions with their options, and a note if only the first ones are asked."""
    has_all_questions = _has_all_questions(args, table.version)
    selection = [question for question in table.questions if has_all_questions or question.is_first]
    notes = []
    if len(selection) < len(table.questions):
        notes.append(
            f"{len(selection)} of {len(table.questions)} questions, the first of each capsule:"
            " all_questions true asks them all"
        )
    items = [
        ViewItem(
            name=question.id,
            text=question.text,
            options=(question.ideal, *question.distractors),
            gold=0,
            capsule=question.capsule,
            metadata={"question_id": question.id, EVAL_MODE: question.eval_mode},
        )
        for question in selection
    ]
    return items, notes


def _find_errata(
    version: str, view_items: Sequence[ViewItem], samples: Sequence[Sample]
) -> dict[str, str]:
    """Return the known errors of questions, and those with two equal options, by sample id."""
    errata: dict[str, str] = {}
    for view_item, sample in zip(view_items, samples, strict=True):
        erratum = ERRATA[version].get(view_item.name)
        right_option = view_item.options[view_item.gold]
        if erratum and erratum.row == fingerprint(view_item.text, right_option):
            errata[sample.id] = erratum.fault
        elif len({choice.strip() for choice in sample.choices}) < len(sample.choices):
            errata[sample.id] = "two of its options are the same"
    return errata


def make_sample(
    view_item: ViewItem, subset: str, index: int, args: BixBenchArgs, protocol: BixBenchProtocol
) -> Sample:
    """Return one sample; with its options in displayed order unless the answer is open."""
    capsule, n = view_item.capsule, len(view_item.options)
    metadata = view_item.metadata | {
        "capsule_uuid": capsule.uuid,
        "short_id": capsule.short_id,
        "categories": list(capsule.categories),
    }
    order: tuple[int, ...] = ()
    target, choices = view_item.options[view_item.gold], view_item.options
    if args.answer_mode == "mcq":
        key = view_item.name
        if args.compat_shuffle:
            key = key.removeprefix(f"{capsule.short_id}-")
        if not args.with_refusal:
            order = choose_option_order(n, key, args)
        elif protocol.refusal.is_last and not args.compat_shuffle:
            order = (*choose_option_order(n, key, args), n)
        else:
            order = choose_option_order(n + 1, key, args)
        target = LABELS[order.index(view_item.gold)]
    if args.with_refusal:
        choices = (*choices, protocol.refusal.text)
        metadata[REFUSAL] = LABELS[order.index(n)]
    return Sample(
        id=sample_id(view_item.name),
        subset=subset,
        index=index,
        text=view_item.text,
        target=target,
        choices=tuple(choices[i] for i in order),
        order=order,
        group=capsule.short_id,
        metadata=metadata,
    )


def choose_option_order(n: int, key: str, args: BixBenchArgs) -> tuple[int, ...]:
    """Return the permutation of the `n` options of a question; see `keju.types.Sample.order`."""
    if not args.shuffle_options:
        return tuple(range(n))
    if not args.compat_shuffle:
        return shuffle_order(n, args.seed, key)
    order = list(range(n))
    digest = hashlib.md5(key.encode(), usedforsecurity=False).hexdigest()
    random.Random(args.seed + int(digest, 16)).shuffle(order)
    return tuple(order)


# --- metrics -----------------------------------------------------------------------------------


class GradedAnswer(NamedTuple):
    """One answer, graded or not."""

    sample_index: int
    group: str
    outcome: Outcome
    value: float


def compute_answer_metrics(samples: Sequence[Sample], scores: Scores) -> dict[str, Estimate]:
    """Return precision, coverage and reward, then accuracy by category and eval_mode.

    Questions about one capsule are not independent, so every interval is clustered. Accuracy by a
    kind that all questions share is left out: it would repeat the accuracy.
    """
    units = list(_list_answers(samples, scores))
    answered_units = [unit for unit in units if unit.outcome != "refused"]
    reward = _mean_estimate(units, lambda unit: unit.value, "mean score of all answers")
    counts = scores.outcome_counts()
    values = [unit.value for unit in units if unit.outcome not in UNGRADED]
    deviation_details = {"std": _standard_deviation(values), "answers": len(values)}
    metrics = {
        "precision": _mean_estimate(
            answered_units, _right, "correct among answers that are no refusal"
        ),
        "coverage": _mean_estimate(
            units, lambda unit: float(unit.outcome != "refused"), "answers that are no refusal"
        ),
        "reward": msgspec.structs.replace(
            reward, details=deviation_details | {outcome: counts[outcome] for outcome in UNGRADED}
        ),
    }
    for kind, key in (("category", "categories"), ("eval_mode", EVAL_MODE)):
        for name, indexes in _group_samples(samples, key):
            kind_units = [unit for unit in units if unit.sample_index in indexes]
            title = f"accuracy, {kind.replace('_', ' ')} {name}"
            metrics[f"accuracy[{kind}={name}]"] = _mean_estimate(kind_units, _right, title)
    return metrics


def _list_answers(samples: Sequence[Sample], scores: Scores) -> Iterator[GradedAnswer]:
    """Yield all answers that are graded, or that still need a grade."""
    for number, code in enumerate(scores.outcomes):
        if code in GRADED or code in LOST:
            sample_index = number // scores.epochs
            group = samples[sample_index].group or samples[sample_index].id
            value = float(f"{scores.values[number]:.7g}")
            yield GradedAnswer(sample_index, group, ALL_OUTCOMES[code], value)


def _standard_deviation(values: Sequence[float]) -> float | None:
    """Return the standard deviation of single scores; None if there are none."""
    if not values:
        return None
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))


def _group_samples(samples: Sequence[Sample], key: str) -> list[tuple[str, set[int]]]:
    """Return the samples of each value of a metadata key; empty if all have the same value."""
    sample_indexes: dict[str, set[int]] = {}
    for position, sample in enumerate(samples):
        names = sample.metadata.get(key, [])
        for name in [names] if isinstance(names, str) else names:
            sample_indexes.setdefault(name, set()).add(position)
    return sorted(sample_indexes.items()) if len(sample_indexes) > 1 else []


def _right(unit: GradedAnswer) -> float:
    return unit.value


def _mean_estimate(
    units: Sequence[GradedAnswer], worth: Callable[[GradedAnswer], float], title: str
) -> Estimate:
    """Return the mean over questions, where each is the mean of its repeats, with its bounds."""
    repeats: dict[int, list[GradedAnswer]] = {}
    for unit in units:
        repeats.setdefault(unit.sample_index, []).append(unit)
    question_repeats = []
    for question_units in repeats.values():
        values = [worth(unit) for unit in question_units if unit.outcome not in UNGRADED]
        question_repeats.append(
            QuestionRepeats(question_units[0].group, values, len(question_units) - len(values))
        )
    mean = mean_of_items(question_repeats, clustered=True, draws=True)
    return Estimate(mean.value, mean.ci95, mean.n, mean.method, title=title, bounds=mean.bounds)


messages.add_folder(Path(__file__).parent / "texts")

BIXBENCH = Benchmark(
    name="bixbench",
    title="BixBench",
    about=messages.text_of("about_exam_bixbench", {}),
    aliases=("bixbench_verified_50",),
    alias_settings={"bixbench_verified_50": {"data_version": VERIFIED}},
    layout=LAYOUT,
    other_layouts={("data_version", VERIFIED): VERIFIED_LAYOUT},
    tool_tasks=TOOL_TASKS,
    golden=GOLDEN,
    protocols=PROTOCOLS,
    readers=readers.make_readers()
    | open_answers.make_readers(hypothesis=False, tags_required=False),
    subset_names=(*(f"v{version}" for version in VERSIONS), VERIFIED, HYPOTHESIS),
    exam=BixBenchExam,
    Args=BixBenchArgs,
    make=make,
)
"""BixBench (Mitchener et al. 2025): computational biology, versions 1.5, 1.0 and Verified-50."""
