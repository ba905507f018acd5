"""From rows to samples: the views of a data set, and the order in which options are shown."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from keju.benchmarks.bixbench.args import BixBenchArgs
from keju.benchmarks.bixbench.data import Capsule, Question, Table
from keju.benchmarks.bixbench.facts import ERRATA, HYPOTHESIS
from keju.benchmarks.bixbench.open_answers import EVAL_MODE
from keju.benchmarks.choices import shuffle_order
from keju.benchmarks.grading import REFUSAL
from keju.benchmarks.kit import count_warnings, fingerprint
from keju.errors import DataError, Notice
from keju.types import LABELS, Sample

TRUTHS = ("True", "False")


class Refusal(NamedTuple):
    """The option of not knowing, where it is offered."""

    text: str
    last: bool
    """It stays behind the shuffled options; otherwise it is shuffled among them."""


class Questions(NamedTuple):
    """The samples of a view, and what is to be said about them."""

    subset: str
    samples: tuple[Sample, ...]
    population: int
    """How many there are without ``max_episodes``."""
    notes: tuple[str, ...]
    errata: dict[str, str]
    warnings: tuple[Notice, ...] = ()


def make_questions(table: Table, args: BixBenchArgs, refusal: Refusal | None) -> Questions:
    """The samples that `args` ask for, in the order of the file."""
    if args.question_source == "hypothesis":
        subset, notes = HYPOTHESIS, [*table.notes]
        capsules = [c for c in table.capsules if c.answer is not None and c.hypothesis.strip()]
        left_out = sorted({c.short_id for c in table.capsules} - {c.short_id for c in capsules})
        if left_out:
            names = ", ".join(left_out)
            notes.append(f"hypotheses left out, as their truth is not recorded: {names}")
        items = [_hypothesis(capsule) for capsule in capsules]
    else:
        subset, notes = f"v{table.version}", []
        every = table.version == "1.5" or args.all_questions
        chosen = [question for question in table.questions if every or question.first]
        if len(chosen) < len(table.questions):
            notes.append(
                f"{len(chosen)} of {len(table.questions)} questions, the first of each capsule:"
                " all_questions true asks them all"
            )
        items = [_question(question) for question in chosen]
    if not items:
        raise DataError("BixBench: the data holds no question of this view")
    kept = tuple(
        _sample(item, subset, index, args, refusal)
        for index, item in enumerate(items[: args.max_episodes])
    )
    if args.answer_mode == "mcq":
        notes.append(_gold_letters(kept))
    count = table.rows
    if count.differs:
        notes.append(f"{count.name}: {count.rows} rows, published are {count.published}")
    warnings = count_warnings([count])
    return Questions(subset, kept, len(items), tuple(notes), _errata(table, kept), warnings)


def sample_id(name: str) -> str:
    """The id of the sample that a question id or, for hypotheses, a capsule's uuid names."""
    return f"bixbench_{name.strip().lower().removeprefix('bixbench_')}"


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


class _Item(NamedTuple):
    """What a row asks, whichever view it is asked in."""

    name: str
    """Question id, or uuid of the capsule; the permutation depends on it."""
    text: str
    options: tuple[str, ...]
    gold: int
    """Which option is right."""
    capsule: Capsule
    metadata: dict[str, Any]


def _question(question: Question) -> _Item:
    known = {"question_id": question.id, EVAL_MODE: question.eval_mode}
    options = (question.ideal, *question.distractors)
    return _Item(question.id, question.text, options, 0, question.capsule, known)


def _hypothesis(capsule: Capsule) -> _Item:
    gold = 0 if capsule.answer else 1
    return _Item(capsule.uuid, capsule.hypothesis, TRUTHS, gold, capsule, {})


def _sample(
    item: _Item, subset: str, index: int, args: BixBenchArgs, refusal: Refusal | None
) -> Sample:
    """One sample; with options in their shown order unless the answer is open."""
    capsule = item.capsule
    metadata = item.metadata | {
        "capsule_uuid": capsule.uuid,
        "short_id": capsule.short_id,
        "categories": list(capsule.categories),
    }
    order: tuple[int, ...] = ()
    target = item.options[item.gold]
    choices = (*item.options, *([refusal.text] if refusal else []))
    if args.answer_mode == "mcq":
        order = _order(len(item.options), item, args, refusal)
        target = LABELS[order.index(item.gold)]
    if refusal:
        metadata[REFUSAL] = LABELS[order.index(len(item.options))]
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


def _order(n: int, item: _Item, args: BixBenchArgs, refusal: Refusal | None) -> tuple[int, ...]:
    key = item.name
    if args.compat_shuffle:
        key = key.removeprefix(f"{item.capsule.short_id}-")
    if refusal is None:
        return shown_order(n, key, args)
    if refusal.last and not args.compat_shuffle:
        return (*shown_order(n, key, args), n)
    return shown_order(n + 1, key, args)


def _gold_letters(samples: Sequence[Sample]) -> str:
    """Where the right answers stand, so that a stuck permutation is seen before the run."""
    counts = Counter(sample.target for sample in samples)
    return "gold letters: " + ", ".join(f"{label} {counts[label]}" for label in sorted(counts))


def _errata(table: Table, samples: Sequence[Sample]) -> dict[str, str]:
    """What is wrong with these samples: known faults, and options that are the same text."""
    known = ERRATA[table.version]
    if samples[0].subset == HYPOTHESIS:
        return {}
    keys = {sample_id(question.id): question for question in table.questions}
    found: dict[str, str] = {}
    for sample in samples:
        question = keys[sample.id]
        erratum = known.get(question.id)
        if erratum and erratum.row == fingerprint(question.text, question.ideal):
            found[sample.id] = erratum.fault
        elif len({choice.strip() for choice in sample.choices}) < len(sample.choices):
            found[sample.id] = "two of its options are the same"
    return found
