"""One entry of ``results.json``: everything an exam's tally says, with its uncertainty.

Errors of infrastructure and answers without a grade leave the denominator of every score, are
counted beside it, and the worst and best they could have made of it are shown.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from keju.benchmarks.base import Mean
from keju.engine.tally import CODE, PENDING
from keju.results.cells import Cell, cluster_of, join, read_items, read_subset
from keju.results.estimates import Gathered, Metric, ends
from keju.results.means import Scored, mean_metric, whole_set_metric
from keju.results.repeats import repeat_metrics, spread_of_repeats
from keju.stats.intervals import FEW_CLUSTERS, wilson

if TYPE_CHECKING:
    from keju.benchmarks.base import Exam
    from keju.engine.tally import Tally
    from keju.stats.estimate import Estimate

SCHEMA = 1
MACRO = "macro_accuracy"
WORST, BEST = "accuracy_worst", "accuracy_best"
SUBMITTED = ("ceval",)
"""Exams whose makers score answers to questions that are published without gold answers."""
WARN_ABOVE = 0.01
"""Share of truncated or unparsed replies above which a result carries a warning."""
CHANCE_SAMPLES = 20_000
"""The most samples looked at for the chance level; evenly spaced in a larger exam."""
_BLOCK = 65_536


def results_document(run: str, model: str, entries: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The whole of ``results.json``."""
    return {"schema": SCHEMA, "run": run, "model": model, "benchmarks": list(entries)}


def summarise(
    exam: Exam, tally: Tally, *, reader: str, usage: dict[str, Any], timing: dict[str, Any]
) -> dict[str, Any]:
    """The entry of one exam under one reader.

    Units without a record are not counted anywhere, so a run can be summarised while it goes on.
    Memory does not grow with the number of samples unless they are clustered.
    """
    cells = {subset.name: read_subset(exam, tally, subset) for subset in exam.subsets}
    overall = join(cells.values(), clustered=exam.clustered)
    chances = _chances(exam)
    metrics = _metrics(exam, tally, cells, overall, chances)
    goldless = _goldless(exam, overall)
    if goldless:
        for bound in (WORST, BEST):
            metrics.pop(bound, None)
    entry: dict[str, Any] = {
        "name": exam.benchmark,
        "protocol": exam.protocol.name,
        "protocol_version": exam.protocol.version,
        "reader": reader,
        "headline": exam.protocol.headline,
        "n": overall.items,
        "metrics": metrics,
        "outcomes": overall.outcome_counts(),
        "subsets": _subset_entries(exam, cells, chances),
        "groups": _group_entries(exam, cells, metrics),
        "reference": _references(exam),
        "warnings": [
            *_warnings(exam, overall, metrics["accuracy"]),
            *(w.text() for w in exam.warnings),
        ],
        "usage": usage,
        "timing": timing,
    }
    if goldless:
        entry["gold"] = "none"
    if tally.epochs > 1:
        entry["repeats"] = tally.epochs
    return entry | _errata(exam, tally, overall, metrics)


def _metrics(
    exam: Exam,
    tally: Tally,
    cells: dict[str, Cell],
    overall: Cell,
    chances: dict[str, _Chance],
) -> dict[str, Metric]:
    metrics = {"accuracy": overall.shares().metric()}
    if overall.outcomes["error"] or overall.outcomes["ungraded"]:
        metrics |= _bounds(overall, metrics["accuracy"])
    metrics |= _mean_metrics(exam, cells)
    if tally.epochs > 1:
        metrics["accuracy"] |= spread_of_repeats(overall)
        metrics |= repeat_metrics(exam, tally, overall)
    metrics |= _overall_chance(chances)
    if _has_partial_scores(tally):
        metrics["mean_score"] = _mean_score(exam, tally)
    return metrics | {name: plain(own) for name, own in exam.extra_metrics(tally).items()}


def plain(estimate: Estimate) -> Metric:
    """An estimate in the shape of ``results.json``."""
    metric: Metric = msgspec.json.decode(msgspec.json.encode(estimate))
    details: Metric = metric.pop("details", {})
    return metric | details


def _bounds(overall: Cell, accuracy: Metric) -> dict[str, Metric]:
    """Accuracy if everything without a grade were wrong, and if it were right."""
    deff = max(accuracy.get("deff") or 1.0, 1.0)
    bounds: dict[str, Metric] = {}
    for name, gathered in (
        (WORST, overall.gather(lambda state: state.worst)),
        (BEST, overall.gather(lambda state: state.best)),
    ):
        moments = gathered.moments()
        if moments is None:
            continue
        interval = wilson(moments.mean, moments.n / deff)
        bounds[name] = {"value": moments.mean, "ci95": ends(interval), "n": moments.n}
    return bounds


def _mean_metrics(exam: Exam, cells: dict[str, Cell]) -> dict[str, Metric]:
    populations = {subset.name: subset.population for subset in exam.subsets}
    subsets = {name: Scored(cell.shares(), populations[name]) for name, cell in cells.items()}
    metrics: dict[str, Metric] = {}
    for place, mean in enumerate(exam.means()):
        metric = mean_metric(mean, subsets, main=place == 0)
        if metric is not None:
            metrics[mean.name] = metric
    if MACRO not in metrics:
        every = Mean(MACRO, "mean over subsets", tuple((name,) for name in subsets))
        macro = mean_metric(every, subsets, main=True)
        partial = any(metric.get("partial") for metric in metrics.values())
        if macro is not None:
            metrics = {MACRO: macro | ({"partial": True} if partial else {})} | metrics
    whole = whole_set_metric(subsets)
    return metrics if whole is None else metrics | {"accuracy_whole_set": whole}


def _subset_entries(
    exam: Exam, cells: dict[str, Cell], chances: dict[str, _Chance]
) -> list[dict[str, Any]]:
    entries = []
    for subset in exam.subsets:
        cell = cells[subset.name]
        metric = cell.shares().metric()
        entry: dict[str, Any] = {
            "name": subset.name,
            "n": cell.items,
            "accuracy": metric["value"],
            "ci95": metric["ci95"],
            "outcomes": cell.outcome_counts(),
        }
        if subset.name in chances:
            entry["chance"] = chances[subset.name].metric()["value"]
        if subset.title:
            entry["title"] = subset.title
        if subset.population:
            entry["population"] = subset.population
        entries.append(entry)
    return entries


def _group_entries(
    exam: Exam, cells: dict[str, Cell], metrics: dict[str, Metric]
) -> list[dict[str, Any]]:
    """The means that are also categories; the micro accuracy of their rows stands beside."""
    entries = []
    for mean in exam.means():
        if not mean.group or mean.name not in metrics:
            continue
        names = dict.fromkeys(name for task in mean.tasks for name in task if name in cells)
        cell = join((cells[name] for name in names), clustered=exam.clustered)
        micro = cell.shares().metric()
        metric = metrics[mean.name]
        entry: dict[str, Any] = {
            "name": mean.name,
            "title": mean.title,
            "n": cell.items,
            "accuracy": metric["value"],
            "ci95": metric["ci95"],
            "micro_accuracy": micro["value"],
            "micro_ci95": micro["ci95"],
            "outcomes": cell.outcome_counts(),
            "subsets": list(names),
        }
        entries.append(entry | ({"partial": True} if metric.get("partial") else {}))
    return entries


def _references(exam: Exam) -> list[dict[str, Any]]:
    return [
        {"name": ref.name, "overall": dict(ref.overall), "subsets": dict(ref.subsets)}
        for ref in exam.references
    ]


def _goldless(exam: Exam, overall: Cell) -> bool:
    """Whether nothing could be scored because no question has a gold answer."""
    decided = overall.units - overall.outcomes["error"] - overall.outcomes["ungraded"]
    return (
        bool(overall.outcomes["ungraded"])
        and not decided
        and not any(sample.target for sample in exam.samples)
    )


def _warnings(exam: Exam, overall: Cell, accuracy: Metric) -> list[str]:
    units, warnings = overall.units, []
    lost = overall.outcomes["error"] + overall.outcomes["ungraded"]
    if _goldless(exam, overall):
        submission = "; export the submission with keju export RUN --format submission"
        takes = submission if exam.benchmark in SUBMITTED else ""
        warnings.append(f"no gold answers: nothing is scored{takes}")
    elif units and lost == units:
        warnings.append(f"nothing was graded: all {units} replies are errors or have no grade")
    elif lost:
        warnings.append(f"{_share(lost, units)} have no grade and are left out of the scores")
    if overall.outcomes["truncated"] > WARN_ABOVE * units:
        cut = _share(overall.outcomes["truncated"], units)
        warnings.append(f"{cut} were cut off before an answer: raise max_tokens")
    if overall.outcomes["unparsed"] > WARN_ABOVE * units:
        unread = _share(overall.outcomes["unparsed"], units)
        warnings.append(f"{unread} hold no answer that the reader can find: compare readers")
    clusters = accuracy.get("clusters")
    if clusters == 1:
        warnings.append("all questions share one context: no interval can be given")
    elif clusters is not None and clusters < FEW_CLUSTERS:
        warnings.append(f"only {clusters} clusters: the interval is itself unsure")
    return warnings


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole} replies ({part / whole:.1%})"


def _errata(
    exam: Exam, tally: Tally, overall: Cell, metrics: dict[str, Metric]
) -> dict[str, dict[str, int]]:
    """Count the samples that are known to be wrong, and score the others."""
    if not exam.errata:
        return {}
    known = [item for item, sample in enumerate(exam.samples) if sample.id in exam.errata]
    if not known:
        return {}
    without = overall.minus(read_items(exam, tally, known))
    metrics["accuracy_without_errata"] = without.shares().metric()
    return {"errata": {"n": len(known)}}


class _Chance(NamedTuple):
    """The scores of a blind guess over the samples for which they are defined."""

    total: float
    n: int

    def metric(self) -> Metric:
        return {"value": self.total / self.n, "ci95": None, "n": self.n}


def _chances(exam: Exam) -> dict[str, _Chance]:
    """The chance level of each subset that has one."""
    stride = max(1, -(-len(exam.samples) // CHANCE_SAMPLES))
    chances: dict[str, _Chance] = {}
    for subset in exam.subsets:
        samples = (exam.samples[item] for item in range(subset.start, subset.stop, stride))
        levels = [level for s in samples if (level := exam.chance(s)) is not None]
        if levels:
            chances[subset.name] = _Chance(sum(levels), len(levels))
    return chances


def _overall_chance(chances: dict[str, _Chance]) -> dict[str, Metric]:
    if not chances:
        return {}
    total = _Chance(sum(c.total for c in chances.values()), sum(c.n for c in chances.values()))
    return {"chance": total.metric()}


def _has_partial_scores(tally: Tally) -> bool:
    """Whether some answers are worth something between 0 and 1."""
    values: array[float] = tally.values
    return any(
        not set(values[low : low + _BLOCK]) <= {0.0, 1.0} for low in range(0, len(values), _BLOCK)
    )


def _mean_score(exam: Exam, tally: Tally) -> Metric:
    """The mean of graded values, where answers may be partly right."""
    left_out = {PENDING, CODE["error"], CODE["ungraded"]}
    gathered = Gathered(clustered=exam.clustered)
    for item in range(tally.samples):
        units = range(item * tally.epochs, (item + 1) * tally.epochs)
        values = [_decimal(tally.values[u]) for u in units if tally.outcomes[u] not in left_out]
        if values:
            group = cluster_of(exam.samples[item]) if exam.clustered else ""
            gathered.add(sum(values) / len(values), group, draws=0)
    return gathered.metric()


def _decimal(value: float) -> float:
    """A value of the tally as it was before it was stored in single precision."""
    return float(f"{value:.7g}")
