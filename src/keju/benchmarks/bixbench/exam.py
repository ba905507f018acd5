"""BixBench made ready to sit: from rows to samples in the view that the settings ask for."""

from __future__ import annotations

import hashlib
import math
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from keju import messages
from keju.answers.segments import split_any_thinking
from keju.benchmarks.base import Benchmark, DataFacts, Exam, Reader, Scores, Subset
from keju.benchmarks.bixbench import agentic, open_answers, readers
from keju.benchmarks.bixbench.args import AGENTIC_SETTINGS, BixBenchArgs
from keju.benchmarks.bixbench.data import (
    ERRATA,
    GOLDEN,
    HYPOTHESIS,
    LAYOUT,
    REFERENCES,
    TOOL_TASKS,
    VERSIONS,
    Capsule,
    Table,
    read_table,
)
from keju.benchmarks.bixbench.open_answers import EVAL_MODE
from keju.benchmarks.bixbench.protocols import AGENTIC, PROTOCOLS, BixBenchProtocol
from keju.benchmarks.choices import recorded_gold, shuffle_order
from keju.benchmarks.grading import EXACT, GRADED, LOST, REFUSAL
from keju.benchmarks.kit import Questions, choose_protocol, count_warnings, fingerprint
from keju.config import DatasetArgs
from keju.errors import ConfigError, DataError, Notice
from keju.stats.estimate import Estimate, Repeats, mean_of_items
from keju.types import ALL_OUTCOMES, LABELS, UNGRADED, Outcome, Reading, Reply, Sample

if TYPE_CHECKING:
    from keju.sources.folder import DataFolder

RECORDED_SETTINGS = (
    "mode", "answer_mode", "question_source", "add_tf_legend", "max_episodes", "seed",
    "shuffle_options", "with_refusal", "use_think", "all_questions", "compat_shuffle", "no_judge",
)  # fmt: skip
AGENTIC_RECORDED = tuple(name for name in AGENTIC_SETTINGS if name != "capsule_dir")  # fmt: skip
TRUTHS = ("True", "False")
EXACT_WARNING = Notice("bixbench.exact")
# The label that recorded runs put before an option: `(A) text`.
_LABEL_PREFIX = re.compile(r"\(([A-Z])\) ?")


@dataclass(kw_only=True, eq=False)
class BixBenchExam(Exam):
    """One view of one version under one protocol."""

    any_thinking: bool = False
    """Also cut reasoning in tags other than ``<think>``."""

    def grade(self, reply: Reply, sample: Sample, reader: Reader) -> Reading:
        if self.any_thinking and reply.error is None:
            thought = split_any_thinking(reply.text)
            if thought.reasoning:
                raw = reply.raw or reply.text
                reply = msgspec.structs.replace(
                    reply, text=thought.text, reasoning=thought.reasoning, raw=raw
                )
        if self.open_answers:
            return open_answers.grade_open(reply, sample, reader, exact=self.grader == EXACT)
        return super().grade(reply, sample, reader)

    def chance(self, sample: Sample) -> float | None:
        """One over the options; a half for an open answer of true or false."""
        return 0.5 if self.open_answers and sample.subset == HYPOTHESIS else super().chance(sample)

    def extra_metrics(self, scores: Scores) -> Mapping[str, Estimate]:
        return answer_metrics(self.samples, scores)

    def locate(self, row: Mapping[str, Any]) -> str:
        hypothesis = self.subsets[0].name == HYPOTHESIS
        keys = ("capsule_uuid" if hypothesis else "question_id", "id")
        for key in keys:
            if isinstance(row.get(key), str):
                return sample_id(row[key])
        raise KeyError(keys[0])

    def carries_gold(self, row: Mapping[str, Any]) -> bool:
        """Also where a letter is recorded without options: their order then is not Keju's."""
        return super().carries_gold(row) or self._is_of_unknown_order(row)

    def _is_of_unknown_order(self, row: Mapping[str, Any]) -> bool:
        lettered = not self.open_answers and row.get("choices") is None
        return lettered and recorded_gold(row)[1] is not None

    def as_recorded(self, sample: Sample, row: Mapping[str, Any], *, gold: bool) -> Sample:
        """With the options as they were shown: their labels, and which of them was a refusal.

        Options that were not recorded have labels and no text; only the row's own letter says
        which of them was right.
        """
        recorded = dict(row)
        if self._is_of_unknown_order(row):
            if not gold:
                raise DataError("bixbench.unknown_order", key=recorded_gold(row)[0])
            letters = f"{recorded_gold(row)[1]}{row.get('unsure') or ''}"
            shown = max([len(sample.choices), *(LABELS.find(each) + 1 for each in letters)])
            sample = msgspec.structs.replace(sample, choices=("",) * shown)
        choices = row.get("choices")
        if isinstance(choices, list):
            recorded["choices"] = [
                _LABEL_PREFIX.sub("", choice, count=1) if isinstance(choice, str) else choice
                for choice in choices
            ]
        if gold and ("choices" in row or "target" in row):
            metadata = {k: v for k, v in sample.metadata.items() if k != REFUSAL}
            if row.get("unsure"):
                metadata[REFUSAL] = str(row["unsure"])
            sample = msgspec.structs.replace(sample, metadata=metadata, order=())
        return super().as_recorded(sample, recorded, gold=gold)


def sample_id(name: str) -> str:
    """The id of the sample that a question id or, for hypotheses, a capsule's uuid names."""
    return f"bixbench_{name.strip().lower().removeprefix('bixbench_')}"


def make(args: DatasetArgs, folder: DataFolder, seed: int) -> BixBenchExam:
    """Load one version; its own setting ``seed`` outranks the task's."""
    own = args
    if not isinstance(own, BixBenchArgs):
        own = BixBenchArgs(**args.model_dump(exclude_unset=True))
    if "seed" not in own.model_fields_set:
        own = own.model_copy(update={"seed": seed})
    acts = own.mode == AGENTIC
    protocol = choose_protocol(BIXBENCH, own.protocol or own.implied_protocol)
    assert isinstance(protocol, BixBenchProtocol)
    if acts != (protocol.name == AGENTIC):
        raise ConfigError("bixbench.mode_of_protocol", protocol=protocol.name, mode=own.mode)
    wording = protocol.word(own)
    table = read_table(folder, own.data_version)
    if own.all_questions and table.version == "1.5":
        raise ConfigError("bixbench.all_questions")
    questions = make_questions(table, own, protocol)
    (subset,) = questions.subsets
    for name in own.subset_list or ():
        if name.strip().lower() not in (subset.name, subset.name.removeprefix("v")):
            raise ConfigError("bixbench.subset_not_asked", name=name, subset=subset.name)
    if own.subset_list == []:
        raise ConfigError("bixbench.subset_list_empty")
    mcq = own.answer_mode == "mcq"
    same_view = mcq and own.question_source == "mcq" and not own.with_refusal
    every = table.version == "1.5" or own.all_questions
    return BixBenchExam(
        benchmark="bixbench",
        protocol=protocol if mcq else replace(protocol, reader="native"),
        samples=questions.samples,
        subsets=questions.subsets,
        readers=readers.readers()
        if mcq
        else open_answers.readers(
            hypothesis=own.question_source == "hypothesis", tags_required=protocol.tags_required
        ),
        data=DataFacts(dict(folder.hashes), table.version, (*questions.notes, *folder.notes)),
        prompts=wording.prompts([subset.name]),
        errata=questions.errata,
        clustered=True,
        references=REFERENCES[table.version] if same_view and every else (),
        beside="robust" if mcq else "tolerant",
        judge=own.judge() if own.names_a_judge else None,
        open_answers=not mcq,
        grader=EXACT if own.exact else "",
        warnings=(*questions.warnings, *([EXACT_WARNING] if own.exact else [])),
        settings={
            name: getattr(own, name)
            for name in RECORDED_SETTINGS + (AGENTIC_RECORDED if acts else ())
        }
        | {"prompt_template": wording.question, "system_prompt": wording.system_prompt},
        any_thinking=own.use_think,
        notebook=agentic.notebook_task(own, folder.path) if acts else None,
    )


class Item(NamedTuple):
    """What a row asks, whichever view it is asked in."""

    name: str
    """Question id, or uuid of the capsule; the permutation depends on it."""
    text: str
    options: tuple[str, ...]
    gold: int
    """Which option is right."""
    capsule: Capsule
    metadata: dict[str, Any]


def make_questions(table: Table, args: BixBenchArgs, protocol: BixBenchProtocol) -> Questions:
    """The samples that `args` ask for, in the order of the file."""
    hypothesis = args.question_source == "hypothesis"
    if hypothesis:
        name, notes = HYPOTHESIS, [*table.notes]
        capsules = [c for c in table.capsules if c.answer is not None and c.hypothesis.strip()]
        left_out = sorted({c.short_id for c in table.capsules} - {c.short_id for c in capsules})
        if left_out:
            names = ", ".join(left_out)
            notes.append(f"hypotheses left out, as their truth is not recorded: {names}")
        items = [Item(c.uuid, c.hypothesis, TRUTHS, int(not c.answer), c, {}) for c in capsules]
    else:
        name, notes = f"v{table.version}", []
        every = table.version == "1.5" or args.all_questions
        chosen = [question for question in table.questions if every or question.first]
        if len(chosen) < len(table.questions):
            notes.append(
                f"{len(chosen)} of {len(table.questions)} questions, the first of each capsule:"
                " all_questions true asks them all"
            )
        items = [
            Item(
                q.id,
                q.text,
                (q.ideal, *q.distractors),
                0,
                q.capsule,
                {"question_id": q.id, EVAL_MODE: q.eval_mode},
            )
            for q in chosen
        ]
    if not items:
        raise DataError("bixbench.nothing_of_view")
    kept = items[: args.max_episodes]
    samples = [make_sample(item, name, index, args, protocol) for index, item in enumerate(kept)]
    errata: dict[str, str] = {}
    for item, sample in zip(kept, samples, strict=True) if not hypothesis else ():
        erratum = ERRATA[table.version].get(item.name)
        if erratum and erratum.row == fingerprint(item.text, item.options[item.gold]):
            errata[sample.id] = erratum.fault
        elif len({choice.strip() for choice in sample.choices}) < len(sample.choices):
            errata[sample.id] = "two of its options are the same"
    if args.answer_mode == "mcq":
        # Where the right answers stand, so that a stuck permutation is seen before the run.
        letters = Counter(sample.target for sample in samples)
        shown = ", ".join(f"{label} {letters[label]}" for label in sorted(letters))
        notes.append(f"gold letters: {shown}")
    count = table.rows
    if count.differs:
        notes.append(f"{count.name}: {count.rows} rows, published are {count.published}")
    population = len(items) if len(samples) < len(items) else 0
    return Questions(
        samples=tuple(samples),
        subsets=(Subset(name, 0, len(samples), population=population),),
        errata=errata,
        notes=notes,
        warnings=count_warnings([count]),
    )


def make_sample(
    item: Item, subset: str, index: int, args: BixBenchArgs, protocol: BixBenchProtocol
) -> Sample:
    """One sample; with options in their shown order unless the answer is open."""
    capsule, n = item.capsule, len(item.options)
    metadata = item.metadata | {
        "capsule_uuid": capsule.uuid,
        "short_id": capsule.short_id,
        "categories": list(capsule.categories),
    }
    order: tuple[int, ...] = ()
    target, choices = item.options[item.gold], item.options
    if args.answer_mode == "mcq":
        key = item.name
        if args.compat_shuffle:
            key = key.removeprefix(f"{capsule.short_id}-")
        if not args.with_refusal:
            order = shown_order(n, key, args)
        elif protocol.refusal.last and not args.compat_shuffle:
            order = (*shown_order(n, key, args), n)
        else:
            order = shown_order(n + 1, key, args)
        target = LABELS[order.index(item.gold)]
    if args.with_refusal:
        choices = (*choices, protocol.refusal.text)
        metadata[REFUSAL] = LABELS[order.index(n)]
    return Sample(
        id=sample_id(item.name),
        subset=subset,
        index=index,
        text=item.text,
        target=target,
        choices=tuple(choices[i] for i in order),
        order=order,
        group=capsule.short_id,
        metadata=metadata,
    )


def shown_order(n: int, key: str, args: BixBenchArgs) -> tuple[int, ...]:
    """The permutation of `n` options of the question `key`; see `keju.types.Sample.order`."""
    if not args.shuffle_options:
        return tuple(range(n))
    if not args.compat_shuffle:
        return shuffle_order(n, args.seed, key)
    order = list(range(n))
    digest = hashlib.md5(key.encode(), usedforsecurity=False).hexdigest()
    random.Random(args.seed + int(digest, 16)).shuffle(order)
    return tuple(order)


# --- metrics -----------------------------------------------------------------------------------


class Unit(NamedTuple):
    """One answer, graded or not."""

    item: int
    group: str
    outcome: Outcome
    value: float


def answer_metrics(samples: Sequence[Sample], scores: Scores) -> dict[str, Estimate]:
    """Precision, coverage and reward of all answers, then accuracy by category and eval_mode.

    Questions about one capsule are not independent, so every interval allows for clusters.
    A kind that all questions share is left out: it would repeat the accuracy.
    """
    units: list[Unit] = []
    for number, code in enumerate(scores.outcomes):
        if code in GRADED or code in LOST:
            item = number // scores.epochs
            group, value = samples[item].group or samples[item].id, scores.values[number]
            units.append(Unit(item, group, ALL_OUTCOMES[code], float(f"{value:.7g}")))
    sure = [unit for unit in units if unit.outcome != "refused"]
    reward = _mean(units, lambda unit: unit.value, "mean score of all answers")
    counts = scores.outcome_counts()
    # How far single scores lie apart; None if there are none.
    values = [unit.value for unit in units if unit.outcome not in UNGRADED]
    mean = math.fsum(values) / len(values) if values else 0.0
    squares = math.fsum((value - mean) ** 2 for value in values)
    deviation = math.sqrt(squares / len(values)) if values else None
    spread = {"std": deviation, "answers": len(values)}
    metrics = {
        "precision": _mean(sure, _right, "correct among answers that are no refusal"),
        "coverage": _mean(
            units, lambda unit: float(unit.outcome != "refused"), "answers that are no refusal"
        ),
        "reward": msgspec.structs.replace(
            reward, details=spread | {outcome: counts[outcome] for outcome in UNGRADED}
        ),
    }
    for kind, key in (("category", "categories"), ("eval_mode", EVAL_MODE)):
        items_of: dict[str, set[int]] = {}
        for position, sample in enumerate(samples):
            names = sample.metadata.get(key, [])
            for name in [names] if isinstance(names, str) else names:
                items_of.setdefault(name, set()).add(position)
        for name, items in sorted(items_of.items()) if len(items_of) > 1 else ():
            chosen = [unit for unit in units if unit.item in items]
            title = f"accuracy, {kind.replace('_', ' ')} {name}"
            metrics[f"accuracy[{kind}={name}]"] = _mean(chosen, _right, title)
    return metrics


def _right(unit: Unit) -> float:
    return unit.value


def _mean(units: Sequence[Unit], worth: Callable[[Unit], float], title: str) -> Estimate:
    """The mean over questions, each of them the mean of its repeats, within its bounds."""
    repeats: dict[int, list[Unit]] = {}
    for unit in units:
        repeats.setdefault(unit.item, []).append(unit)
    items = []
    for own in repeats.values():
        worths = [worth(unit) for unit in own if unit.outcome not in UNGRADED]
        items.append(Repeats(own[0].group, worths, len(own) - len(worths)))
    mean = mean_of_items(items, clustered=True, draws=True)
    return Estimate(mean.value, mean.ci95, mean.n, mean.method, title=title, bounds=mean.bounds)


messages.add_folder(Path(__file__).parent / "texts")

BIXBENCH = Benchmark(
    name="bixbench",
    title="BixBench",
    about=messages.text_of("about_exam_bixbench", {}),
    layout=LAYOUT,
    tool_tasks=TOOL_TASKS,
    golden=GOLDEN,
    protocols=PROTOCOLS,
    readers=readers.readers() | open_answers.readers(hypothesis=False, tags_required=False),
    subset_names=(*(f"v{version}" for version in VERSIONS), HYPOTHESIS),
    exam=BixBenchExam,
    Args=BixBenchArgs,
    make=make,
)
"""BixBench (Mitchener et al. 2025): computational biology, versions 1.5 and 1.0."""
