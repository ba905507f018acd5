"""Asking each question under several rotations of its options.

A model that favours a letter scores by where the right option happens to stand. Under rotations
every option takes its turn in every place: the accuracy is averaged over them, with the question
as the cluster, and what depends on the place can be measured (Zheng et al. 2024).
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import msgspec

from keju.benchmarks.base import Exam, Scores
from keju.benchmarks.choices import moved_refusal, permuted, rotate_order
from keju.benchmarks.grading import GRADED, LOST, PASS
from keju.benchmarks.samples import LazySamples
from keju.errors import ConfigError, Notice
from keju.stats.estimate import Bounded, Estimate
from keju.stats.options import place_bias, recall_spread
from keju.types import LABELS, Sample


def rotated(exam: Exam, rotations: int) -> Exam:
    """`exam` with each question asked under the first `rotations` cyclic orders of its options.

    With nothing to ask it is the exam itself. ConfigError where the options are not
    Keju's to arrange, or where no question has as many options as rotations are asked for.
    """
    if not exam.samples:
        return exam
    name = f"rotate_options: {exam.benchmark}"
    most = fewer = 0
    for sample in exam.samples:
        if not sample.choices:
            raise ConfigError("rotation_no_options", name=name, id=sample.id)
        most = max(most, len(sample.choices))
        fewer += len(sample.choices) < rotations
    if rotations > most:
        raise ConfigError("rotation_most", name=name, most=most)
    first = exam.samples[0]
    other = msgspec.structs.replace(first, choices=(*first.choices[1:], first.choices[0]))
    if exam.render(first).text == exam.render(other).text:
        raise ConfigError("rotation_in_text", name=name)
    turned = copy.copy(exam)
    turned.rotations = rotations
    turned.clustered = turned.keeps_answers = True
    turned.samples = Rotations(exam.samples, rotations)
    turned.subsets = tuple(
        replace(
            subset,
            start=subset.start * rotations,
            stop=subset.stop * rotations,
            population=subset.population * rotations,
        )
        for subset in exam.subsets
    )
    turned.errata = {
        rotation_id(sample_id, turn): fault
        for sample_id, fault in exam.errata.items()
        for turn in range(rotations)
    }
    turned.settings = dict(exam.settings) | {"rotate_options": rotations}
    if fewer:
        notice = Notice("repeated_orders", {"questions": fewer, "rotations": rotations})
        turned.warnings = (*exam.warnings, notice)
        turned.data = replace(exam.data, notes=(*exam.data.notes, notice.text()))
    return turned


class Rotations(LazySamples):
    """Every question in each of its rotations, one after the other."""

    def __init__(self, samples: Sequence[Sample], rotations: int) -> None:
        self._samples = samples
        self._rotations = rotations

    def __len__(self) -> int:
        return len(self._samples) * self._rotations

    def make(self, index: int) -> Sample:
        """One rotation with an id of its own; the first keeps the question's."""
        item, turn = divmod(index, self._rotations)
        sample = self._samples[item]
        group, own_id = sample.group or sample.id, rotation_id(sample.id, turn)
        if turn:
            order = rotate_order(len(sample.choices), turn)
            sample = moved_refusal(permuted(sample, order), order)
        return msgspec.structs.replace(sample, id=own_id, group=group)


def rotation_id(sample_id: str, turn: int) -> str:
    """The id of a question's rotation, e.g. ``sums_70#rot2``."""
    return f"{sample_id}#rot{turn}" if turn else sample_id


def rotation_metrics(
    exam: Exam, scores: Scores, metrics: Mapping[str, Estimate]
) -> Mapping[str, Estimate]:
    """An exam's own `metrics`, and what its rotations tell about it.

    An interval of the exam's own that takes rotations for questions is left out.
    """
    joined = {
        name: own if own.method == "clustered" else msgspec.structs.replace(own, ci95=None)
        for name, own in metrics.items()
    }
    rotations: dict[str, Estimate | None] = {
        "rotation_consistency": _consistency(scores, exam.rotations),
        "position_rstd": _spread(exam.samples, scores, exam.rotations),
        "position_bias": _bias(exam.samples, scores, exam.rotations),
    }
    return joined | {name: metric for name, metric in rotations.items() if metric is not None}


def _consistency(scores: Scores, rotations: int) -> Estimate | None:
    """The share of questions that are right in all their rotations, and accuracy by rotation."""
    turn_units = rotations * scores.epochs
    whole = Bounded(clustered=False)
    right, graded = [0] * rotations, [0] * rotations
    for first in range(0, scores.samples * scores.epochs, turn_units):
        outcomes = scores.outcomes[first : first + turn_units]
        values = scores.values[first : first + turn_units]
        for unit, outcome in enumerate(outcomes):
            right[unit // scores.epochs] += outcome in GRADED and values[unit] >= PASS
            graded[unit // scores.epochs] += outcome in GRADED
        if all(outcome in GRADED or outcome in LOST for outcome in outcomes):
            seen = [value for o, value in zip(outcomes, values, strict=True) if o in GRADED]
            best = float(min(seen, default=1.0) >= PASS)
            worst = best if len(seen) == turn_units else 0.0
            whole.add(best if worst == best else None, (worst, best))
    if not whole.best.counts:
        return None
    by_rotation = [r / g if g else None for r, g in zip(right, graded, strict=True)]
    title = f"right in all {rotations} rotations"
    return whole.estimate(title=title, details={"by_rotation": by_rotation})


def _spread(samples: Sequence[Sample], scores: Scores, rotations: int) -> Estimate | None:
    """Recall by the place of the right option, and its spread.

    A rotation that repeats an order of a question with few options is no further evidence.
    """
    gold: Counter[str] = Counter()
    right: Counter[str] = Counter()
    for item, sample in enumerate(samples):
        if item % rotations >= len(sample.choices):
            continue
        for unit in range(item * scores.epochs, (item + 1) * scores.epochs):
            if scores.outcomes[unit] not in GRADED:
                continue
            gold[sample.target] += 1
            right[sample.target] += scores.values[unit] >= PASS
    if not gold:
        return None
    letters = sorted(gold)
    recalls = [right[letter] / gold[letter] for letter in letters]
    return Estimate(
        recall_spread(recalls),
        None,
        gold.total(),
        title="spread of recall over positions (RStd)",
        details={"recalls": dict(zip(letters, recalls, strict=True))},
    )


def _bias(samples: Sequence[Sample], scores: Scores, rotations: int) -> Estimate | None:
    """How far the letters chosen are from where the same options stood over the orders asked."""
    tables = list(_places_of_choices(samples, scores, rotations))
    if all(len(table) < 2 for table in tables):
        return None
    test = place_bias(tables, len(LABELS))
    total = sum(test.choices)
    moved = sum(abs(c - e) for c, e in zip(test.choices, test.expected, strict=True)) / 2 / total
    seen = [i for i in range(len(LABELS)) if test.choices[i] or test.expected[i]]
    return Estimate(
        moved,
        None,
        total,
        title="letters chosen beyond where the same options stood over the orders asked "
        f"(chi-squared {test.statistic:.1f}, df {test.df}, p {test.p:.2g})",
        details={
            "chi_squared": test.statistic,
            "df": test.df,
            "p": test.p,
            "chosen": {LABELS[i]: test.choices[i] for i in seen},
            "expected": {LABELS[i]: test.expected[i] for i in seen},
        },
    )


def _places_of_choices(
    samples: Sequence[Sample], scores: Scores, rotations: int
) -> Iterator[list[list[int]]]:
    """For each question and repeat: where each chosen option stands in each order answered."""
    answers = scores.answers or ()
    for first in range(0, len(samples), rotations):
        turned = samples[first : first + rotations]
        for epoch in range(scores.epochs):
            options = len(turned[0].choices)
            chosen: dict[int, int] = {}
            for turn, sample in enumerate(turned[:options]):
                unit = (first + turn) * scores.epochs + epoch
                letter = answers[unit]
                if scores.outcomes[unit] in GRADED and letter and letter in sample.labels:
                    chosen[turn] = (LABELS.index(letter) + turn) % options
            if chosen:
                yield [[(o - turn) % options for turn in chosen] for o in chosen.values()]
