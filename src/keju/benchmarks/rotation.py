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
from typing import TYPE_CHECKING, Any, overload

import msgspec

from keju.benchmarks.base import Exam, Mean, Reader, Subset
from keju.benchmarks.choices import permuted, rotate_order
from keju.benchmarks.grading import REFUSAL
from keju.errors import ConfigError
from keju.stats.intervals import Moments, bounded_mean
from keju.stats.options import place_bias, recall_spread
from keju.types import LABELS, OUTCOMES, Prompt, Reading, Reply, Sample

if TYPE_CHECKING:
    from keju.engine.tally import Tally

_CORRECT = OUTCOMES.index("correct")
_GRADED = frozenset(
    code for code, outcome in enumerate(OUTCOMES) if outcome not in ("error", "ungraded")
)

Metric = dict[str, Any]


def rotated(exam: Exam, rotations: int) -> Exam:
    """`exam` with each question asked under the first `rotations` cyclic orders of its options.

    With 1, or with nothing to ask, it is the exam itself. ConfigError where the options are not
    Keju's to arrange, or where no question has as many options as rotations are asked for.
    """
    if rotations == 1 or not exam.samples:
        return exam
    _check(exam, rotations)
    return RotatedExam(exam, rotations)


def _check(exam: Exam, rotations: int) -> None:
    name = f"rotate_options: {exam.benchmark}"
    most = 0
    for sample in exam.samples:
        if not sample.choices:
            raise ConfigError(f"{name} has questions without options, such as {sample.id}")
        most = max(most, len(sample.choices))
    if rotations > most:
        raise ConfigError(f"{name} has at most {most} options, so at most {most} rotations")
    first = exam.samples[0]
    other = msgspec.structs.replace(first, choices=(*first.choices[1:], first.choices[0]))
    if exam.render(first).text == exam.render(other).text:
        raise ConfigError(f"{name}: the options stand in the question's text and cannot be rotated")


def _rotate(sample: Sample, turn: int) -> Sample:
    """`sample` after `turn` rotations, with the label of a refusal option moved along."""
    order = rotate_order(len(sample.choices), turn)
    moved = permuted(sample, order)
    refusal = sample.metadata.get(REFUSAL)
    if not refusal:
        return moved
    label = LABELS[order.index(LABELS.index(refusal))]
    return msgspec.structs.replace(moved, metadata=sample.metadata | {REFUSAL: label})


class Rotations(Sequence[Sample]):
    """Every question in each of its rotations, one after the other; made when looked at."""

    def __init__(self, samples: Sequence[Sample], rotations: int) -> None:
        self._samples = samples
        self._rotations = rotations

    def __len__(self) -> int:
        return len(self._samples) * self._rotations

    @overload
    def __getitem__(self, index: int) -> Sample: ...
    @overload
    def __getitem__(self, index: slice) -> list[Sample]: ...
    def __getitem__(self, index: int | slice) -> Sample | list[Sample]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        item, turn = divmod(index, self._rotations)
        return _turned(self._samples[item], turn)

    def __iter__(self) -> Iterator[Sample]:
        for sample in self._samples:
            for turn in range(self._rotations):
                yield _turned(sample, turn)


def _turned(sample: Sample, turn: int) -> Sample:
    """One rotation with an id of its own; the first keeps the question's."""
    group = sample.group or sample.id
    if not turn:
        return msgspec.structs.replace(sample, group=group)
    return msgspec.structs.replace(
        _rotate(sample, turn), id=rotation_id(sample.id, turn), group=group
    )


def rotation_id(sample_id: str, turn: int) -> str:
    """The id of a question's rotation, e.g. ``mmlu_pro_70#rot2``."""
    return f"{sample_id}#rot{turn}" if turn else sample_id


class RotatedExam(Exam):
    """An exam whose every question is asked several times, its options rotated."""

    clustered = True
    keeps_answers = True

    def __init__(self, exam: Exam, rotations: int) -> None:
        self.rotations = rotations
        self.benchmark = exam.benchmark
        self.protocol = exam.protocol
        self.samples = Rotations(exam.samples, rotations)
        self.subsets = tuple(_stretched(subset, rotations) for subset in exam.subsets)
        self.readers = exam.readers
        self.errata = {
            rotation_id(known, turn): fault
            for known, fault in exam.errata.items()
            for turn in range(rotations)
        }
        self.references = exam.references
        self.beside = exam.beside
        self.judge = exam.judge
        self.settings = dict(exam.settings) | {"rotate_options": rotations}
        self.warnings, self.data = exam.warnings, exam.data
        fewer = sum(len(sample.choices) < rotations for sample in exam.samples)
        if fewer:
            note = (
                f"{fewer} questions have fewer than {rotations} options: "
                "some of their rotations repeat an order"
            )
            self.warnings = (*exam.warnings, note)
            self.data = replace(exam.data, notes=(*exam.data.notes, note))
        self._inner = copy.copy(exam)
        self._inner.samples, self._inner.subsets = self.samples, self.subsets

    def render(self, sample: Sample) -> Prompt:
        return self._inner.render(sample)

    def means(self) -> Sequence[Mean]:
        return self._inner.means()

    def grade(self, reply: Reply, sample: Sample, reader: Reader) -> Reading:
        return self._inner.grade(reply, sample, reader)

    def chance(self, sample: Sample) -> float | None:
        return self._inner.chance(sample)

    def describe(self, sample: Sample) -> dict[str, Any]:
        return self._inner.describe(sample)

    def as_recorded(self, sample: Sample, row: Mapping[str, Any], *, gold: bool) -> Sample:
        return self._inner.as_recorded(sample, row, gold=gold)

    def locate(self, row: Mapping[str, Any]) -> str:
        return self._inner.locate(row)

    def joint_metrics(
        self, answers: Mapping[str, Sequence[str | None]], targets: Sequence[str]
    ) -> Mapping[str, dict[str, Metric]]:
        return self._inner.joint_metrics(answers, targets)

    def extra_metrics(self, tally: Tally) -> dict[str, Metric]:
        """Those of the exam itself, and what the rotations tell about it."""
        metrics = {name: _clustered(own) for name, own in self._inner.extra_metrics(tally).items()}
        consistency = _consistency(tally, self.rotations)
        if consistency is not None:
            metrics["rotation_consistency"] = consistency
        return metrics | _position_metrics(self.samples, tally, self.rotations)


def _stretched(subset: Subset, rotations: int) -> Subset:
    return Subset(
        subset.name,
        subset.start * rotations,
        subset.stop * rotations,
        subset.title,
        subset.population * rotations,
    )


def _clustered(metric: Metric) -> Metric:
    """A metric of the exam's own; an interval that takes rotations for questions is left out."""
    return metric if metric.get("method") == "clustered" else metric | {"ci95": None}


def _consistency(tally: Tally, rotations: int) -> Metric | None:
    """The share of questions that are right in all their rotations, and accuracy by rotation."""
    turn_units = rotations * tally.epochs
    whole: list[float] = []
    right, graded = [0] * rotations, [0] * rotations
    for first in range(0, tally.samples * tally.epochs, turn_units):
        outcomes = tally.outcomes[first : first + turn_units]
        for unit, outcome in enumerate(outcomes):
            right[unit // tally.epochs] += outcome == _CORRECT
            graded[unit // tally.epochs] += outcome in _GRADED
        if all(outcome in _GRADED for outcome in outcomes):
            whole.append(float(all(outcome == _CORRECT for outcome in outcomes)))
    moments = Moments.of(whole)
    if moments is None:
        return None
    mean = bounded_mean(moments)
    return {
        "value": mean.value,
        "ci95": list(mean.interval),
        "n": mean.n,
        "title": f"right in all {rotations} rotations",
        "by_rotation": [r / g if g else None for r, g in zip(right, graded, strict=True)],
    }


def _position_metrics(samples: Sequence[Sample], tally: Tally, rotations: int) -> dict[str, Metric]:
    """Recall by the place of the right option, its spread, and the test for a favourite letter.

    A rotation that repeats an order of a question with few options is no further evidence.
    """
    gold: Counter[str] = Counter()
    right: Counter[str] = Counter()
    for item, sample in enumerate(samples):
        if item % rotations >= len(sample.choices):
            continue
        for unit in range(item * tally.epochs, (item + 1) * tally.epochs):
            if tally.outcomes[unit] not in _GRADED:
                continue
            gold[sample.target] += 1
            right[sample.target] += tally.outcomes[unit] == _CORRECT
    if not gold:
        return {}
    letters = sorted(gold)
    recalls = [right[letter] / gold[letter] for letter in letters]
    spread: Metric = {
        "value": recall_spread(recalls),
        "ci95": None,
        "n": gold.total(),
        "title": "spread of recall over positions (RStd)",
        "recalls": dict(zip(letters, recalls, strict=True)),
    }
    bias = _bias(samples, tally, rotations)
    return {"position_rstd": spread} | ({} if bias is None else {"position_bias": bias})


def _bias(samples: Sequence[Sample], tally: Tally, rotations: int) -> Metric | None:
    """How far the letters chosen are from where the same options stood over the orders asked."""
    tables = list(_places_of_choices(samples, tally, rotations))
    if all(len(table) < 2 for table in tables):
        return None
    test = place_bias(tables, len(LABELS))
    total = sum(test.chosen)
    moved = sum(abs(c - e) for c, e in zip(test.chosen, test.expected, strict=True)) / 2 / total
    seen = [i for i in range(len(LABELS)) if test.chosen[i] or test.expected[i]]
    return {
        "value": moved,
        "ci95": None,
        "n": total,
        "title": "letters chosen beyond where the same options stood over the orders asked "
        f"(chi-squared {test.statistic:.1f}, df {test.df}, p {test.p:.2g})",
        "chi_squared": test.statistic,
        "df": test.df,
        "p": test.p,
        "chosen": {LABELS[i]: test.chosen[i] for i in seen},
        "expected": {LABELS[i]: test.expected[i] for i in seen},
    }


def _places_of_choices(
    samples: Sequence[Sample], tally: Tally, rotations: int
) -> Iterator[list[list[int]]]:
    """For each question and repeat: where each chosen option stands in each order answered."""
    answers = tally.answers or ()
    for first in range(0, len(samples), rotations):
        turned = samples[first : first + rotations]
        for epoch in range(tally.epochs):
            options = len(turned[0].choices)
            chosen: dict[int, int] = {}
            for turn, sample in enumerate(turned[:options]):
                unit = (first + turn) * tally.epochs + epoch
                letter = answers[unit]
                if tally.outcomes[unit] in _GRADED and letter and letter in sample.labels:
                    chosen[turn] = (LABELS.index(letter) + turn) % options
            if chosen:
                yield [[(o - turn) % options for turn in chosen] for o in chosen.values()]
