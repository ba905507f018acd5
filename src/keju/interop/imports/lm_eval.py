"""lm-evaluation-harness 0.4: ``samples_TASK_TIME.jsonl`` with ``results_TIME.json``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from keju.errors import DataError, UsageError
from keju.interop.imports.log import (
    Log,
    LogRow,
    Part,
    Source,
    Task,
    find_task,
    make_reply,
    malformed_reply,
    naming,
    number,
)
from keju.types import LABELS, Reply

TOOL = "lm-eval"

_SAMPLES = re.compile(r"samples_(?P<task>.+?)(?:_(?P<time>\d{4}-\d\d-\d\dT[\d.-]+))?\.jsonl$")
"""``samples_TASK_2026-01-01T12-00-00.123.jsonl``"""
_RESULTS = re.compile(r"results_(?P<time>\d{4}-\d\d-\d\dT[\d.-]+)\.json$")
"""``results_2026-01-01T12-00-00.123.json``"""


class _File(NamedTuple):
    """The samples of one task, with what the results beside them say of it."""

    name: str
    task: str
    rows: list[LogRow]
    figures: Mapping[str, Any]
    config: Mapping[str, Any]


def find(source: Source) -> list[str]:
    """The files of samples; for a file of results those of the same run."""
    if source.single and (match := _RESULTS.search(source.names[0])):
        return source.siblings(source.names[0], f"samples_*_{match['time']}.jsonl")
    files = [name for name in source.names if _SAMPLES.search(name)]
    return [name for name in files if {"doc_id", "resps"} <= source.first(name).keys()]


def read(source: Source, names: Sequence[str]) -> Log:
    """The log of one run."""
    seen: dict[str, str] = {}
    models: set[str] = set()
    version = ""
    groups: dict[Any, tuple[Task, list[_File]]] = {}
    for name in names:
        match = _SAMPLES.search(name)
        assert match is not None
        title = match["task"]
        if title in seen:
            raise UsageError(
                f"{seen[title]} and {name} are both of task '{title}': give the "
                "results_TIME.json of the run that is meant"
            )
        seen[title] = name
        beside = str(PurePosixPath(name).with_name(f"results_{match['time']}.json"))
        results = source.mapping(beside) if match["time"] and source.has(beside) else {}
        models |= {str(results["model_name"])} if results.get("model_name") else set()
        version = version or str(results.get("lm_eval_version", ""))
        task = find_task(TOOL, title)
        figures = results.get("results", {}).get(title, {})
        config = results.get("configs", {}).get(title, {})
        file = _File(name, title, list(_rows(source, name, task.subset)), figures, config)
        # Tasks that are read in the same way are one part; a task that Keju has not is its own.
        key = (task.benchmark, task.facts.protocol, task.facts.reader) if task.facts else name
        groups.setdefault(key, (task, []))[1].append(file)
    source.refuse_several(models)
    parts = [_part(task, files) for task, files in groups.values()]
    return Log(
        tool=TOOL,
        version=version,
        model=models.pop() if models else (source.root / names[0]).parent.name,
        parts=sorted(parts, key=lambda part: not part.benchmark),
        files=source.hashes,
    )


def _part(task: Task, files: Sequence[_File]) -> Part:
    """Files of one reading; figures that all of them have, as means over their rows."""
    reported: dict[str, float] = {}
    for name in files[0].figures:
        if "," not in name or "stderr" in name or not all(name in f.figures for f in files):
            continue
        values = [(len(file.rows), number(file.figures[name])) for file in files]
        total = sum(weight for weight, value in values if value is not None)
        if total:
            reported[name] = sum(w * v for w, v in values if v is not None) / total
    part = Part(
        task=", ".join(file.task for file in files),
        rows=[row for file in files for row in file.rows],
        reported=reported if task.facts else {},
        sampling=(files[0].config.get("generation_kwargs") or {}) if task.facts else {},
    )
    return part.read_as(task, {"few_shot_num": files[0].config.get("num_fewshot")})


def _rows(source: Source, name: str, subset: str) -> Iterator[LogRow]:
    """The rows of the first filter; a further filter repeats the same replies."""
    chosen: str | None = None
    for where, row in source.jsonl(name):
        if not {"doc_id", "doc", "resps"} <= row.keys():
            raise DataError(f"{source.root / where}: no sample of {TOOL} (doc_id, doc, resps)")
        chosen = row.get("filter") if chosen is None else chosen
        if row.get("filter") == chosen:
            with naming(source.root / where):
                rows = list(_replies(where, row, subset))
            yield from rows


def _replies(where: str, row: Mapping[str, Any], subset: str) -> Iterator[LogRow]:
    doc = row["doc"] if isinstance(row["doc"], Mapping) else {}
    metric = next(iter(row.get("metrics") or ()), "")
    replies = _stored(row["resps"])
    answer = (row.get("filtered_resps") or [None])[0]
    if values := replies[0].label_logprobs:
        answer = max(values, key=values.__getitem__)
    keys: dict[str, Any] = {}
    if "question_id" in doc:
        keys = {"question_id": doc["question_id"]}
    elif isinstance(doc.get("id"), int):
        keys = {"subject": subset, "id": doc["id"]}
    choices = doc.get("options")
    if not isinstance(choices, list):
        letters = [doc[label] for label in "ABCD" if label in doc]
        choices = letters if len(letters) == len("ABCD") else []
    for epoch, reply in enumerate(replies):
        yield LogRow(
            where=where,
            reply=reply,
            keys=keys,
            subset=subset,
            index=row["doc_id"],
            question=str(doc.get("question") or doc.get("input") or ""),
            choices=tuple(map(str, choices)),
            target=str(doc.get("answer") or doc.get("target") or row.get("target") or ""),
            answer=answer if isinstance(answer, str) and not (epoch or reply.error) else None,
            verdict=None if epoch or reply.error else number(row.get(metric)),
            epoch=epoch,
        )


def _stored(resps: Any) -> list[Reply]:
    """The replies of a sample; one that is an error where the request failed and none is there.

    Log-likelihoods, ``[[[value, is_greedy]], …]`` by option, are those of the options' labels.
    """
    first = resps[0] if isinstance(resps, list) and resps else None
    if isinstance(first, list) and first and isinstance(first[0], list):
        try:
            values = [float(option[0][0]) for option in resps]
        except (IndexError, KeyError, TypeError, ValueError):
            return [malformed_reply(resps)]
        return [Reply(label_logprobs=dict(zip(LABELS, values, strict=False)))]
    texts = first if isinstance(first, list) else [first]
    replies = [malformed_reply(resps) if text is None else make_reply(str(text)) for text in texts]
    return replies or [malformed_reply(resps)]
