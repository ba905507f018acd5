"""Ask each question under several rotations of its options.

A model that favours a letter scores differently depending on the position of the right option.
Rotations put every option in every position. Keju averages the accuracy over them, with the
question as the cluster, and measures the effects of position (Zheng et al. 2024).
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import msgspec

from keju.benchmarks.base import Exam, Scores
from keju.benchmarks.choices import move_refusal, permute, rotate_order
from keju.benchmarks.grading import GRADED, LOST, PASS
from keju.benchmarks.samples import LazySamples
from keju.errors import ConfigError, Notice
from keju.stats.estimate import BoundedValues, Estimate
from keju.stats.options import place_bias, recall_spread
from keju.types import LABELS, Sample


def rotate_exam(exam: Exam, rotations: int) -> Exam:
    """Return `exam` with each question asked under the first `rotations` cyclic orders of options.

    An exam without questions is returned unchanged. ConfigError if Keju cannot arrange the options,
    or if no question has as many options as there are rotations.
    """
    if not exam.samples:
        return exam
    name = f"rotate_options: {exam.benchmark}"
    max_options = short_question_count = 0
    for sample in exam.samples:
        if not sample.choices:
            raise ConfigError("rotation_no_options", name=name, id=sample.id)
        max_options = max(max_options, len(sample.choices))
        short_question_count += len(sample.choices) < rotations
    if rotations > max_options:
        raise ConfigError("rotation_most", name=name, most=max_options)
    first_sample = exam.samples[0]
    rotated_sample = msgspec.structs.replace(
        first_sample, choices=(*first_sample.choices[1:], first_sample.choices[0])
    )
    if exam.render(first_sample).text == exam.render(rotated_sample).text:
        raise ConfigError("rotation_in_text", name=name)
    rotated_exam = copy.copy(exam)
    rotated_exam.rotations = rotations
    rotated_exam.clustered = rotated_exam.keeps_answers = True
    rotated_exam.samples = RotatedSamples(exam.samples, rotations)
    rotated_exam.subsets = tuple(
        replace(
            subset,
            start=subset.start * rotations,
            stop=subset.stop * rotations,
            population=subset.population * rotations,
        )
        for subset in exam.subsets
    )
    rotated_exam.errata = {
        rotation_id(sample_id, turn): fault
        for sample_id, fault in exam.errata.items()
        for turn in range(rotations)
    }
    rotated_exam.settings = dict(exam.settings) | {"rotate_options": rotations}
    if short_question_count:
        notice = Notice(
            "repeated_orders", {"questions": short_question_count, "rotations": rotations}
        )
        rotated_exam.warnings = (*exam.warnings, notice)
        rotated_exam.data = replace(exam.data, notes=(*exam.data.notes, notice.text()))
    return rotated_exam


class RotatedSamples(LazySamples):
    """Every question in each of its rotations, in sequence."""

    def __init__(self, samples: Sequence[Sample], rotations: int) -> None:
        self._samples = samples
        self._rotations = rotations

    def __len__(self) -> int:
        return len(self._samples) * self._rotations

    def make(self, index: int) -> Sample:
        """Return one rotation with its own id; the first rotation keeps the question's id."""
        question_index, turn = divmod(index, self._rotations)
        sample = self._samples[question_index]
        group, sample_id = sample.group or sample.id, rotation_id(sample.id, turn)
        if turn:
            order = rotate_order(len(sample.choices), turn)
            sample = move_refusal(permute(sample, order), order)
        return msgspec.structs.replace(sample, id=sample_id, group=group)


def rotation_id(sample_id: str, turn: int) -> str:
    """Return the id of a question's rotation, e.g. ``sums_70#rot2``."""
    return f"{sample_id}#rot{turn}" if turn else sample_id


def add_rotation_metrics(
    exam: Exam, scores: Scores, metrics: Mapping[str, Estimate]
) -> Mapping[str, Estimate]:
    """Return the exam's `metrics` and the metrics of its rotations.

    Intervals of the exam that treat rotations as independent questions are removed.
    """
    exam_metrics = {
        name: estimate
        if estimate.method == "clustered"
        else msgspec.structs.replace(estimate, ci95=None)
        for name, estimate in metrics.items()
    }
    rotations: dict[str, Estimate | None] = {
        "rotation_consistency": _estimate_consistency(scores, exam.rotations),
        "position_rstd": _estimate_spread(exam.samples, scores, exam.rotations),
        "position_bias": _estimate_bias(exam.samples, scores, exam.rotations),
    }
    return exam_metrics | {name: metric for name, metric in rotations.items() if metric is not None}


def _estimate_consistency(scores: Scores, rotations: int) -> Estimate | None:
    """Return the share of questions that are right in all rotations, and accuracy by rotation."""
    turn_units = rotations * scores.epochs
    consistency = BoundedValues(clustered=False)
    right, graded = [0] * rotations, [0] * rotations
    for first_unit in range(0, scores.samples * scores.epochs, turn_units):
        outcomes = scores.outcomes[first_unit : first_unit + turn_units]
        values = scores.values[first_unit : first_unit + turn_units]
        for unit, outcome in enumerate(outcomes):
            right[unit // scores.epochs] += outcome in GRADED and values[unit] >= PASS
            graded[unit // scores.epochs] += outcome in GRADED
        if all(outcome in GRADED or outcome in LOST for outcome in outcomes):
            graded_scores = [
                value for o, value in zip(outcomes, values, strict=True) if o in GRADED
            ]
            best = float(min(graded_scores, default=1.0) >= PASS)
            worst = best if len(graded_scores) == turn_units else 0.0
            consistency.add(best if worst == best else None, (worst, best))
    if not consistency.best.counts:
        return None
    by_rotation = [r / g if g else None for r, g in zip(right, graded, strict=True)]
    title = f"right in all {rotations} rotations"
    return consistency.estimate(title=title, details={"by_rotation": by_rotation})


def _estimate_spread(samples: Sequence[Sample], scores: Scores, rotations: int) -> Estimate | None:
    """Return the recall by position of the right option, and its spread.

    A rotation that repeats an earlier order, because the question has few options, is skipped.
    """
    gold: Counter[str] = Counter()
    right: Counter[str] = Counter()
    for sample_index, sample in enumerate(samples):
        if sample_index % rotations >= len(sample.choices):
            continue
        for unit in range(sample_index * scores.epochs, (sample_index + 1) * scores.epochs):
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


def _estimate_bias(samples: Sequence[Sample], scores: Scores, rotations: int) -> Estimate | None:
    """Return how far the chosen letters differ from the positions of the chosen options."""
    tables = list(_places_of_choices(samples, scores, rotations))
    if all(len(table) < 2 for table in tables):
        return None
    test = place_bias(tables, len(LABELS))
    total = sum(test.choices)
    moved_share = (
        sum(abs(c - e) for c, e in zip(test.choices, test.expected, strict=True)) / 2 / total
    )
    places = [i for i in range(len(LABELS)) if test.choices[i] or test.expected[i]]
    return Estimate(
        moved_share,
        None,
        total,
        title="letters chosen beyond where the same options stood over the orders asked "
        f"(chi-squared {test.statistic:.1f}, df {test.df}, p {test.p:.2g})",
        details={
            "chi_squared": test.statistic,
            "df": test.df,
            "p": test.p,
            "chosen": {LABELS[i]: test.choices[i] for i in places},
            "expected": {LABELS[i]: test.expected[i] for i in places},
        },
    )


def _places_of_choices(
    samples: Sequence[Sample], scores: Scores, rotations: int
) -> Iterator[list[list[int]]]:
    """Yield, for each question and repeat, the positions of each chosen option in all orders."""
    answers = scores.answers or ()
    for first_index in range(0, len(samples), rotations):
        rotated_samples = samples[first_index : first_index + rotations]
        for epoch in range(scores.epochs):
            options = len(rotated_samples[0].choices)
            option_by_turn: dict[int, int] = {}
            for turn, sample in enumerate(rotated_samples[:options]):
                unit = (first_index + turn) * scores.epochs + epoch
                letter = answers[unit]
                if scores.outcomes[unit] in GRADED and letter and letter in sample.labels:
                    option_by_turn[turn] = (LABELS.index(letter) + turn) % options
            if option_by_turn:
                yield [
                    [(o - turn) % options for turn in option_by_turn]
                    for o in option_by_turn.values()
                ]
