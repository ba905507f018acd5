"""The figures peculiar to BixBench: precision, coverage, reward, and shares by kind of question.

Questions about one capsule are not independent, so every interval allows for clusters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from keju.benchmarks.bixbench.open_answers import EVAL_MODE
from keju.stats.intervals import Interval, Moments, bounded_mean, clustered_mean, gather_clusters
from keju.types import OUTCOMES, Outcome, Sample

if TYPE_CHECKING:
    from keju.engine.tally import Tally

NO_GRADE: tuple[Outcome, ...] = ("error", "ungraded")
Metric = dict[str, Any]


class Unit(NamedTuple):
    """One graded answer."""

    item: int
    group: str
    outcome: Outcome
    value: float


def extra_metrics(samples: Sequence[Sample], tally: Tally) -> dict[str, Metric]:
    """Precision, coverage and reward of all answers, then accuracy by category and eval_mode.

    A kind that all questions share is left out: it would repeat the accuracy.
    """
    units = list(_units(samples, tally))
    sure = [unit for unit in units if unit.outcome != "refused"]
    metrics = {
        "precision": _mean(sure, _right, "correct among answers that are no refusal"),
        "coverage": _mean(units, _is_sure, "answers that are no refusal"),
        "reward": _mean(units, _value, "mean score of all answers") | _spread(units, tally),
    }
    for kind, of in (("category", _categories), ("eval_mode", _eval_modes)):
        kinds = _kinds(samples, of)
        for name, items in kinds.items() if len(kinds) > 1 else ():
            chosen = [unit for unit in units if unit.item in items]
            title = f"accuracy, {kind.replace('_', ' ')} {name}"
            metrics[f"accuracy[{kind}={name}]"] = _mean(chosen, _right, title)
    return metrics


def _units(samples: Sequence[Sample], tally: Tally) -> Iterator[Unit]:
    for number, code in enumerate(tally.outcomes):
        if code >= len(OUTCOMES) or OUTCOMES[code] in NO_GRADE:
            continue
        item = number // tally.epochs
        value = float(f"{tally.values[number]:.7g}")
        yield Unit(item, samples[item].group or samples[item].id, OUTCOMES[code], value)


def _right(unit: Unit) -> float:
    return float(unit.outcome == "correct")


def _is_sure(unit: Unit) -> float:
    return float(unit.outcome != "refused")


def _value(unit: Unit) -> float:
    return unit.value


def _spread(units: Sequence[Unit], tally: Tally) -> Metric:
    """How far single scores lie apart, how many there are, and how many answers have none."""
    values = [unit.value for unit in units]
    std = None
    if values:
        mean = math.fsum(values) / len(values)
        std = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))
    counts = tally.outcome_counts()
    return {"std": std, "answers": len(values)} | {outcome: counts[outcome] for outcome in NO_GRADE}


def _mean(units: Sequence[Unit], worth: Callable[[Unit], float], title: str) -> Metric:
    """The mean over questions, each of them the mean of its repeats."""
    repeats: dict[int, list[Unit]] = {}
    for unit in units:
        repeats.setdefault(unit.item, []).append(unit)
    values = [math.fsum(map(worth, own)) / len(own) for own in repeats.values()]
    return _metric(values, [own[0].group for own in repeats.values()], title, draws=len(units))


def _metric(values: Sequence[float], groups: Sequence[str], title: str, *, draws: int) -> Metric:
    moments = Moments.of(values)
    if moments is None:
        return {"value": None, "ci95": None, "n": 0, "title": title}
    clusters = gather_clusters(values, groups)
    interval: Interval | None
    if len(clusters) == len(values):
        interval, method = bounded_mean(moments, draws=draws).interval, "wilson"
    else:
        mean = clustered_mean(clusters, moments, draws=draws)
        interval, method = mean.interval, "clustered"
    return {
        "value": moments.mean,
        "ci95": None if interval is None else list(interval.clipped()),
        "n": moments.n,
        "title": title,
        "method": method,
    }


def _kinds(samples: Sequence[Sample], of: Callable[[Sample], Iterable[str]]) -> dict[str, set[int]]:
    """The positions of the samples of each kind, kinds in order of their name."""
    found: dict[str, set[int]] = {}
    for position, sample in enumerate(samples):
        for name in of(sample):
            found.setdefault(name, set()).add(position)
    return dict(sorted(found.items()))


def _categories(sample: Sample) -> Iterable[str]:
    categories: list[str] = sample.metadata["categories"]
    return categories


def _eval_modes(sample: Sample) -> Iterable[str]:
    return [sample.metadata[EVAL_MODE]] if EVAL_MODE in sample.metadata else []
