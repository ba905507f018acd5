"""The metrics of lm-eval's tasks: aggregated by lm-eval's own functions, with Keju's intervals.

A mean over questions gets the interval of every other mean of Keju. Other aggregations, such as F1,
perplexity or BLEU, get the items of all questions; their interval is a bootstrap over questions
with Keju's seed. A group's value is what lm-eval's own group makes of the values of its tasks.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from keju.stats.estimate import (
    Estimate,
    ItemValues,
    QuestionRepeats,
    Stratum,
    estimate,
    mean_of_items,
)

if TYPE_CHECKING:
    from keju.benchmarks.base import Exam, Scores
    from keju.benchmarks.lm_eval_tasks.pipelines import PipelineReader

NUMBER = "number"
"""The unit of metrics that are not shares."""
BOOTSTRAP, FEWER = "bootstrap", frozenset({"bleu", "chrf", "ter", "chrf++"})
"""The method of an interval; metrics that take long, which get fewer resamples."""
RESAMPLES, FEWER_RESAMPLES = 1000, 100
LEAST_ITEMS = 10
"""The fewest questions for an interval by bootstrap."""


class Item(NamedTuple):
    """The results of one reply, for the metrics."""

    reader: str
    metrics: Mapping[str, Any] | None
    """The results of the task for this reply; empty for a reply that counts as wrong."""
    responses: Sequence[Any] | None
    """The reply in lm-eval's form, where a filter compares the repeats of a question."""


class TaskMetric(NamedTuple):
    """One metric of a task."""

    estimate: Estimate
    stratum: Stratum | None = None
    """The questions behind a mean, for the interval of a group."""


class QuestionItems(NamedTuple):
    """The items of one question."""

    group: str
    metrics: list[Mapping[str, Any]]
    """The results of its graded repeats."""
    ungraded: int


def as_number(value: Any) -> float | None:
    """Return a number of Python or numpy; None for anything else."""
    if not isinstance(value, bool | int | float | str | list | tuple) and hasattr(value, "item"):
        with suppress(ValueError):
            value = value.item()
    return float(value) if isinstance(value, bool | int | float) else None


def is_mean(task: Any, name: str) -> bool:
    """Whether a task reports the mean of a metric; lm-eval's default for metrics it lacks."""
    from lm_eval.api.metrics import mean

    return task.aggregation().get(name, mean) is mean


def scalar_metrics(metrics: Mapping[str, Any]) -> dict[str, float]:
    """Return the metrics of a reply that are shares."""
    numbers = {name: as_number(value) for name, value in metrics.items()}
    return {n: value for n, value in numbers.items() if value is not None and 0 <= value <= 1}


class ExamMetrics:
    """Computes the metrics of an exam."""

    def __init__(
        self,
        exam_name: str,
        tasks: Mapping[str, Any],
        groups: Mapping[str, Any],
        readers: Mapping[str, PipelineReader],
        seed: int,
    ) -> None:
        self._exam_name, self._seed = exam_name, seed
        self._tasks, self._groups, self._readers = tasks, groups, readers

    def compute(
        self, exam: Exam, scores: Scores, graded_codes: Collection[int]
    ) -> dict[str, Estimate]:
        """Return the metrics under lm-eval's names; in groups those of tasks as ``TASK/METRIC``."""
        items = scores.items
        reader = next((item.reader for item in items.values() if item is not None), None)
        if reader is None:
            return {}
        by_task: dict[str, dict[str, TaskMetric]] = {}
        for subset in exam.subsets:
            positions = range(subset.start, subset.stop)
            questions = [*self._questions(exam, scores, positions, reader, subset.name)]
            by_task[subset.name] = self._task_metrics(subset.name, questions)
        if not self._groups and len(by_task) == 1:
            (metrics,) = by_task.values()
            return {name: metric.estimate for name, metric in metrics.items()}
        single = {
            f"{task}/{name}": metric.estimate
            for task, metrics in by_task.items()
            for name, metric in metrics.items()
        }
        return self._group_metrics(by_task, reader) | single

    def _questions(
        self, exam: Exam, scores: Scores, positions: range, reader: str, task: str
    ) -> Iterator[QuestionItems]:
        for position in positions:
            sample = exam.samples[position]
            units = range(position * scores.epochs, (position + 1) * scores.epochs)
            items = [scores.items[unit] for unit in units if unit in scores.items]
            graded = [item for item in items if item is not None]
            if not items:
                continue
            voted = [item.responses for item in graded if item.responses is not None]
            if voted:
                metrics = self._vote(exam, sample, reader, task, voted)
            else:
                metrics = [item.metrics for item in graded if item.metrics is not None]
            yield QuestionItems(sample.id, metrics, len(items) - len(graded))

    def _vote(
        self, exam: Any, sample: Any, reader: str, task: str, replies: Sequence[Sequence[Any]]
    ) -> list[Mapping[str, Any]]:
        """Return the results of all repeats together; none while there are too few."""
        document = exam.document_of(sample).document
        by_request = [list(request) for request in zip(*replies, strict=True)]
        try:
            filtered = self._readers[reader].filter(by_request, document, task)
        except AssertionError:  # lm-eval's filter wants more repeats than there are
            return []
        return [self._tasks[task].process_results(document, filtered)]

    def _task_metrics(self, name: str, questions: Sequence[QuestionItems]) -> dict[str, TaskMetric]:
        task = self._tasks[name]
        names = dict.fromkeys(
            metric for question in questions for result in question.metrics for metric in result
        )
        return {metric: self._metric(task, name, metric, questions) for metric in names}

    def _metric(
        self, task: Any, task_name: str, metric: str, questions: Sequence[QuestionItems]
    ) -> TaskMetric:
        title = f"lm-eval: {metric}"
        if is_mean(task, metric):
            numbers = [
                [as_number(result.get(metric, 0.0)) for result in question.metrics]
                for question in questions
            ]
            plain = [value for values in numbers for value in values if value is not None]
            if len(plain) == sum(map(len, numbers)) and all(0 <= value <= 1 for value in plain):
                repeats = [
                    QuestionRepeats(question.group, plain_values(values), question.ungraded)
                    for question, values in zip(questions, numbers, strict=True)
                ]
                mean_score = replace(mean_of_items(repeats, clustered=False), title=title)
                return TaskMetric(mean_score, _make_stratum(repeats))
        from lm_eval.api.metrics import mean

        aggregate = task.aggregation().get(metric, mean)
        items = [
            [result[metric] for result in question.metrics if metric in result]
            for question in questions
        ]
        items = [values for values in items if values]
        value = as_number(aggregate([value for values in items for value in values]))
        ungraded = sum(question.ungraded for question in questions)
        aggregated = Estimate(
            None if value is None or math.isnan(value) else value,
            self._resample(aggregate, items, f"{task_name}:{metric}", metric),
            len(items),
            method=BOOTSTRAP,
            title=title,
            details={"ungraded": ungraded} if ungraded else {},
            unit=NUMBER,
        )
        return TaskMetric(aggregated)

    def _resample(
        self,
        aggregate: Callable[[list[Any]], Any],
        items: Sequence[Sequence[Any]],
        key: str,
        metric: str,
    ) -> tuple[float, float] | None:
        """Return the middle 95 % of the aggregations of questions drawn with replacement."""
        if len(items) < LEAST_ITEMS:
            return None
        draw = random.Random(f"{self._seed}:{self._exam_name}:{key}")
        values: list[float] = []
        for _ in range(FEWER_RESAMPLES if metric in FEWER else RESAMPLES):
            drawn = draw.choices(items, k=len(items))
            # A draw may lack what an aggregation needs, such as a second class.
            with suppress(ArithmeticError, ValueError):
                value = as_number(aggregate([item for question in drawn for item in question]))
                if value is not None and not math.isnan(value):
                    values.append(value)
        if len(values) < LEAST_ITEMS:
            return None
        values.sort()
        tail = math.floor(0.025 * len(values))
        return values[tail], values[-1 - tail]

    def _group_metrics(
        self, by_task: Mapping[str, Mapping[str, TaskMetric]], reader: str
    ) -> dict[str, Estimate]:
        """Return what lm-eval's groups make of the values of their tasks."""
        table: dict[str, dict[str, Any]] = {}
        for task, metrics in by_task.items():
            values = {n: m.estimate for n, m in metrics.items() if m.estimate.value is not None}
            table[task] = {f"{name},{reader}": metric.value for name, metric in values.items()}
            table[task]["sample_len"] = max((metric.n for metric in values.values()), default=0)
        group_metrics: dict[str, Estimate] = {}
        for group_name, group in self._groups.items():
            names = [task.task_name for task in group.get_all_tasks()]
            for key, value in group.aggregate(table).items():
                metric_name, _, filter_name = key.rpartition(",")
                if filter_name != reader or metric_name.endswith("_stderr"):
                    continue
                members = [
                    by_task[name][metric_name]
                    for name in names
                    if metric_name in by_task.get(name, {})
                ]
                name = metric_name if len(self._groups) == 1 else f"{group_name}/{metric_name}"
                pooled = _pool(members, float(value), f"lm-eval: {name}")
                partial = any(task not in table for task in names)
                group_metrics[name] = replace(pooled, partial=partial)
        return group_metrics


def plain_values(values: Sequence[float | None]) -> list[float]:
    """Return the values that are numbers."""
    return [value for value in values if value is not None]


def _make_stratum(questions: Sequence[QuestionRepeats]) -> Stratum | None:
    values = ItemValues(clustered=False)
    for question in questions:
        if question.values:
            mean = math.fsum(question.values) / len(question.values)
            values.add(mean, draws=len(question.values))
    return values.stratum()


def _pool(members: Sequence[TaskMetric], value: float, title: str) -> Estimate:
    """Return a group's value with the interval of its tasks' means, weighted as lm-eval does."""
    sizes = [member.estimate.n for member in members]
    strata = [member.stratum for member in members if member.stratum is not None]
    if len(strata) < len(members):
        return Estimate(value, None, sum(sizes), title=title, unit=NUMBER)
    values = [member.estimate.value or 0.0 for member in members]
    by_size = [size / sum(sizes) for size in sizes]
    pooled = math.fsum(map(math.prod, zip(by_size, values, strict=True)))
    is_by_size = math.isclose(pooled, value, rel_tol=1e-9, abs_tol=1e-12)
    weights = by_size if is_by_size else [1 / len(members)] * len(members)
    return replace(estimate(strata, weights, title=title), value=value)
