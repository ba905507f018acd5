"""The figures peculiar to BixBench: precision, coverage, reward, and shares by kind of question.

Questions about one capsule are not independent, so every interval allows for clusters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from keju.benchmarks.base import Scores
from keju.benchmarks.bixbench.open_answers import EVAL_MODE
from keju.stats.estimate import Estimate, Gathered
from keju.types import OUTCOMES, Outcome, Sample

NO_GRADE: tuple[Outcome, ...] = ("error", "ungraded")


class Unit(NamedTuple):
    """One graded answer."""

    item: int
    group: str
    outcome: Outcome
    value: float


def extra_metrics(samples: Sequence[Sample], scores: Scores) -> dict[str, Estimate]:
    """Precision, coverage and reward of all answers, then accuracy by category and eval_mode.

    A kind that all questions share is left out: it would repeat the accuracy.
    """
    units = list(_units(samples, scores))
    sure = [unit for unit in units if unit.outcome != "refused"]
    reward = _mean(units, lambda unit: unit.value, "mean score of all answers")
    counts = scores.outcome_counts()
    spread = {"std": _deviation([unit.value for unit in units]), "answers": len(units)}
    metrics = {
        "precision": _mean(sure, _right, "correct among answers that are no refusal"),
        "coverage": _mean(
            units, lambda unit: float(unit.outcome != "refused"), "answers that are no refusal"
        ),
        "reward": msgspec.structs.replace(
            reward, details=spread | {outcome: counts[outcome] for outcome in NO_GRADE}
        ),
    }
    for kind, of in (("category", _categories), ("eval_mode", _eval_modes)):
        items_of: dict[str, set[int]] = {}
        for position, sample in enumerate(samples):
            for name in of(sample):
                items_of.setdefault(name, set()).add(position)
        for name, items in sorted(items_of.items()) if len(items_of) > 1 else ():
            chosen = [unit for unit in units if unit.item in items]
            title = f"accuracy, {kind.replace('_', ' ')} {name}"
            metrics[f"accuracy[{kind}={name}]"] = _mean(chosen, _right, title)
    return metrics


def _units(samples: Sequence[Sample], scores: Scores) -> Iterator[Unit]:
    for number, code in enumerate(scores.outcomes):
        if code >= len(OUTCOMES) or OUTCOMES[code] in NO_GRADE:
            continue
        item = number // scores.epochs
        value = float(f"{scores.values[number]:.7g}")
        yield Unit(item, samples[item].group or samples[item].id, OUTCOMES[code], value)


def _right(unit: Unit) -> float:
    return float(unit.outcome == "correct")


def _deviation(values: Sequence[float]) -> float | None:
    """How far single scores lie apart; None if there are none."""
    if not values:
        return None
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))


def _mean(units: Sequence[Unit], worth: Callable[[Unit], float], title: str) -> Estimate:
    """The mean over questions, each of them the mean of its repeats."""
    repeats: dict[int, list[Unit]] = {}
    for unit in units:
        repeats.setdefault(unit.item, []).append(unit)
    gathered = Gathered(clustered=True)
    for own in repeats.values():
        value = math.fsum(map(worth, own)) / len(own)
        gathered.add(value, own[0].group, draws=len(own))
    mean = gathered.estimate()
    return Estimate(mean.value, mean.ci95, mean.n, mean.method, title=title)


def _categories(sample: Sample) -> Iterable[str]:
    categories: list[str] = sample.metadata["categories"]
    return categories


def _eval_modes(sample: Sample) -> Iterable[str]:
    return [sample.metadata[EVAL_MODE]] if EVAL_MODE in sample.metadata else []
