"""lm-evaluation-harness 0.4: ``samples_TASK_TIME.jsonl`` with ``results_TIME.json``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import msgspec

from keju.errors import DataError, UsageError
from keju.interop.imports.log import (
    LogPart,
    LogRow,
    LogRows,
    LogSource,
    LogTask,
    ModelLog,
    find_task,
    make_reply,
    malformed_reply,
    nested,
    question_keys,
    row_errors,
    to_number,
)
from keju.types import LABELS, Reply

TOOL = "lm-eval"

SAMPLES_NAME = re.compile(r"samples_(?P<task>.+?)(?:_(?P<time>\d{4}-\d\d-\d\dT[\d.-]+))?\.jsonl$")
"""``samples_TASK_2026-01-01T12-00-00.123.jsonl``"""
_RESULTS = re.compile(r"results_(?P<time>\d{4}-\d\d-\d\dT[\d.-]+)\.json$")
"""``results_2026-01-01T12-00-00.123.json``"""


class _SamplesFile(NamedTuple):
    """The samples of one task, and the results of the same run."""

    name: str
    task: str
    subset: str
    results: Mapping[str, Any]

    @property
    def config(self) -> Mapping[str, Any]:
        """The task's configuration."""
        config: Mapping[str, Any] = nested(self.results, "configs", self.task)
        return config


def find(source: LogSource) -> list[str]:
    """Return the files of samples; for a file of results, the sample files of the same run."""
    if source.is_single and (match := _RESULTS.search(source.names[0])):
        return source.siblings(source.names[0], f"samples_*_{match['time']}.jsonl")
    files = [name for name in source.names if SAMPLES_NAME.search(name)]
    return [name for name in files if {"doc_id", "resps"} <= source.first_object(name).keys()]


def read(source: LogSource, names: Sequence[str]) -> ModelLog:
    """Return the log of one run."""
    files_by_task: dict[str, str] = {}
    models: set[str] = set()
    version = ""
    groups: dict[Any, tuple[LogTask, list[_SamplesFile]]] = {}
    for name in names:
        match = SAMPLES_NAME.search(name)
        assert match is not None
        title = match["task"]
        if title in files_by_task:
            files = {"first": files_by_task[title], "second": name}
            raise UsageError("import_task_twice", task=title, **files)
        files_by_task[title] = name
        results_file = str(PurePosixPath(name).with_name(f"results_{match['time']}.json"))
        results = source.mapping(results_file) if match["time"] and source.has(results_file) else {}
        models |= {str(results["model_name"])} if results.get("model_name") else set()
        version = version or str(results.get("lm_eval_version", ""))
        task = find_task(TOOL, title)
        file = _SamplesFile(name, title, task.subset, results)
        groups.setdefault(_reading_key(task) or name, (task, []))[1].append(file)
    source.refuse_several_models(models)
    parts = [_read_part(source, task, files) for task, files in groups.values()]
    return ModelLog(
        tool=TOOL,
        version=version,
        model=models.pop() if models else (source.root / names[0]).parent.name,
        parts=sorted(parts, key=lambda part: not part.benchmark),
        files=source.hashes,
    )


def _reading_key(task: LogTask) -> tuple[str, ...]:
    """Return a key that is equal for tasks with the same reading; empty if Keju has no such exam.

    Tasks with the same key become one part.
    """
    return (task.benchmark, task.facts.protocol, task.facts.reader) if task.facts else ()


def _read_part(source: LogSource, task: LogTask, files: Sequence[_SamplesFile]) -> LogPart:
    """Return the files with one reading as a part, with the rows of the headline's filter."""
    reported, n = _read_figures(source, _reading_key(task), files) if task.facts else ({}, None)
    headline = next(iter(reported), "").partition(",")[2]
    rows = [_read_rows(source, file, headline) for file in files]
    for further_rows in rows[1:]:
        rows[0].extend(further_rows)
    part = LogPart(
        task=", ".join(file.task for file in files),
        rows=rows[0],
        reported=reported,
        n=n,
        sampling=(files[0].config.get("generation_kwargs") or {}) if task.facts else {},
    )
    return part.read_as(task, {"few_shot_num": files[0].config.get("num_fewshot")})


def _read_figures(
    source: LogSource, kind: tuple[str, ...], files: Sequence[_SamplesFile]
) -> tuple[dict[str, float], int | None]:
    """Return the tool's figures for all filters, and the number of their questions.

    They come from the group of the tasks. Without a group, or with another filter, they are the
    means over its tasks, weighted by number of questions. The group's filter comes first, because
    it is the tool's headline.
    """
    results = files[0].results
    by_task = nested(results, "results")
    tasks = {file.task for file in files}
    if not source.is_single:  # include tasks whose files no longer exist
        tasks |= {name for name in by_task if _reading_key(find_task(TOOL, name)) == kind}
    figures = _read_group_figures(results, tasks)
    sizes = {task: nested(results, "n-samples", task).get("effective") or 0 for task in tasks}
    for name in next((by_task[task] for task in sorted(tasks) if task in by_task), {}):
        if name in figures or not _is_figure(name, 0.0):
            continue
        values = {task: to_number(by_task.get(task, {}).get(name)) for task in tasks}
        if (mean := _weighted_mean(values, sizes)) is not None:
            figures[name] = mean
    return figures, sum(sizes.values()) or None


def _read_group_figures(results: Mapping[str, Any], tasks: set[str]) -> dict[str, float]:
    """Return the tool's figures of the first group that contains all tasks."""
    groups: Mapping[str, Any] = nested(results, "groups")
    group = next((name for name in groups if tasks <= _tasks_of_group(results, name)), "")
    figures = nested(groups, group)
    return {name: value for name, value in figures.items() if _is_figure(name, value)}


def _weighted_mean(values: Mapping[str, float | None], weights: Mapping[str, int]) -> float | None:
    """Return the weighted mean; None if a value or a weight is missing."""
    weighted_values = [
        weights[name] * value
        for name, value in values.items()
        if weights[name] and value is not None
    ]
    complete = len(weighted_values) == len(values)
    return sum(weighted_values) / sum(weights.values()) if complete else None


def _is_figure(name: str, value: Any) -> bool:
    """Whether this is a figure, such as ``exact_match,get-answer``, and not its standard error."""
    return "," in name and "stderr" not in name and to_number(value) is not None


def _tasks_of_group(results: Mapping[str, Any], group: str) -> set[str]:
    """Return the tasks of a group and of its subgroups."""
    members = (results.get("group_subtasks") or {}).get(group)
    return (
        set().union(*(_tasks_of_group(results, name) for name in members)) if members else {group}
    )


def _read_rows(source: LogSource, file: _SamplesFile, headline: str) -> LogRows:
    """Return the rows of the headline's filter, or else of the first. All filters have the same
    replies."""
    by_filter: dict[Any, LogRows] = {}
    for where, row in source.jsonl(file.name):
        if not {"doc_id", "doc", "resps"} <= row.keys():
            keys = "doc_id, doc, resps"
            raise DataError("import_no_sample", where=source.root / where, tool=TOOL, keys=keys)
        name = row.get("filter")
        if by_filter and name != headline and name not in by_filter:
            continue
        with row_errors(source.root / where):
            replies = list(_read_replies(where, row, file.subset))
        rows = by_filter.setdefault(name, LogRows())
        for reply in replies:
            rows.append(reply)
    return by_filter.get(headline) or next(iter(by_filter.values()), LogRows())


def _read_replies(where: str, row: Mapping[str, Any], subset: str) -> Iterator[LogRow]:
    """Yield the replies of a row. Only the first one has the tool's answer and verdict."""
    doc = row["doc"] if isinstance(row["doc"], Mapping) else {}
    replies = _parse_responses(row["resps"])
    question = LogRow(
        where=where,
        reply=replies[0],
        keys=question_keys(doc, subset),
        subset=subset,
        index=row["doc_id"] if isinstance(row["doc_id"], int) else None,
        question=str(doc.get("question") or doc.get("input") or ""),
        choices=_read_choices(doc),
        target=str(doc.get("answer") or doc.get("target") or row.get("target") or ""),
    )
    for epoch, reply in enumerate(replies):
        if epoch or reply.error:
            yield msgspec.structs.replace(question, reply=reply, epoch=epoch)
        else:
            metric = next(iter(row.get("metrics") or ()), "")
            answer, verdict = _read_answer(row, reply), to_number(row.get(metric))
            yield msgspec.structs.replace(question, answer=answer, verdict=verdict)


def _read_answer(row: Mapping[str, Any], reply: Reply) -> str | None:
    """Return the tool's answer: the likeliest label, or what its filter left of the reply."""
    if values := reply.label_logprobs:
        return max(values, key=values.__getitem__)
    answer = (row.get("filtered_resps") or [None])[0]
    return answer if isinstance(answer, str) else None


def _read_choices(doc: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the options: a list, or one field for each of the labels A to D."""
    choices = doc.get("options")
    if not isinstance(choices, list):
        choices = [doc[label] for label in "ABCD"] if set("ABCD") <= doc.keys() else []
    return tuple(map(str, choices))


def _parse_responses(resps: Any) -> list[Reply]:
    """Return the replies of a sample, or an error if the request failed.

    Log-likelihoods, ``[[[value, is_greedy]], …]`` by option, are assigned to the options' labels.
    """
    first_response = resps[0] if isinstance(resps, list) and resps else None
    texts = first_response if isinstance(first_response, list) else [first_response]
    if texts and isinstance(texts[0], list):
        try:
            values = [float(option[0][0]) for option in resps]
        except (IndexError, KeyError, TypeError, ValueError):
            return [malformed_reply(resps)]
        return [Reply(label_logprobs=dict(zip(LABELS, values, strict=False)))]
    replies = [malformed_reply(resps) if text is None else make_reply(str(text)) for text in texts]
    return replies or [malformed_reply(resps)]
