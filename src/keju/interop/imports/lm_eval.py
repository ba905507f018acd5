"""lm-evaluation-harness 0.4: ``samples_TASK_TIME.jsonl`` with ``results_TIME.json``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from keju.errors import DataError, UsageError
from keju.interop.imports.log import (
    Log,
    LogRow,
    Part,
    Source,
    make_reply,
    malformed,
    naming,
    number,
)
from keju.types import LABELS, Reply

TOOL = "lm-eval"
MOST_SHOTS = 5
"""The most worked examples that MMLU-Pro and C-Eval have."""

_SAMPLES = re.compile(r"samples_(?P<task>.+?)(?:_(?P<time>\d{4}-\d\d-\d\dT[\d.-]+))?\.jsonl$")
_RESULTS = re.compile(r"results_(?P<time>\d{4}-\d\d-\d\dT[\d.-]+)\.json$")


@dataclass(frozen=True)
class _Family:
    """Tasks of one name pattern, and the reading of Keju that is theirs."""

    pattern: re.Pattern[str]
    benchmark: str
    protocol: str
    reader: str = ""
    args: Mapping[str, Any] = field(default_factory=dict)
    shots: bool = False
    """Whether the number of worked examples is a setting of the protocol."""


_FAMILIES = (
    _Family(re.compile(r"bbh_cot_fewshot_(.+)"), "bbh", "paper"),
    _Family(re.compile(r"bbh_fewshot_(.+)"), "bbh", "answer-only"),
    _Family(
        re.compile(r"bbh_(?:cot_)?zeroshot_(.+)"), "bbh", "evalscope", "robust", {"few_shot_num": 0}
    ),
    _Family(re.compile(r"mmlu_pro_(.+)"), "mmlu_pro", "official", "l1", shots=True),
    _Family(re.compile(r"ceval-valid_(.+)"), "ceval", "lm-eval", args={"split": "val"}, shots=True),
)


def find(source: Source) -> list[str]:
    """The files of samples; for a file of results those of the same run."""
    if source.single and (named := _RESULTS.search(source.names[0])):
        return source.siblings(source.names[0], f"samples_*_{named['time']}.jsonl")
    found = [name for name in source.names if _SAMPLES.search(name)]
    return [name for name in found if {"doc_id", "resps"} <= source.first(name).keys()]


def read(source: Source, names: Sequence[str]) -> Log:
    """The log of one run."""
    _refuse_repeated_tasks(names)
    results = {name: _results(source, name) for name in names}
    models = {str(r["model_name"]) for r in results.values() if r.get("model_name")}
    source.refuse_several(models)
    parts: dict[str, list[tuple[str, str, _Family]]] = {}
    unknown: list[Part] = []
    for name in names:
        task = _task(name)
        family, subset = _family(task)
        if family is None:
            rows = list(_rows(source, name, ""))
            unknown.append(Part(benchmark="", task=task, rows=rows))
        else:
            key = f"{family.benchmark} {family.protocol} {family.reader}"
            parts.setdefault(key, []).append((name, subset, family))
    known = [_part(source, members, results) for members in parts.values()]
    versions = [str(r["lm_eval_version"]) for r in results.values() if "lm_eval_version" in r]
    return Log(
        tool=TOOL,
        version=versions[0] if versions else "",
        model=models.pop() if models else (source.root / names[0]).parent.name,
        parts=[*known, *unknown],
        files=source.hashes,
    )


def _refuse_repeated_tasks(names: Sequence[str]) -> None:
    seen: dict[str, str] = {}
    for name in names:
        task = _task(name)
        if task in seen:
            raise UsageError(
                f"{seen[task]} and {name} are both of task '{task}': give the results_TIME.json "
                "of the run that is meant"
            )
        seen[task] = name


def _task(name: str) -> str:
    match = _SAMPLES.search(name)
    assert match is not None
    return match["task"]


def _family(task: str) -> tuple[_Family | None, str]:
    for family in _FAMILIES:
        if match := family.pattern.fullmatch(task):
            return family, match[1]
    return None, ""


def _results(source: Source, name: str) -> dict[str, Any]:
    match = _SAMPLES.search(name)
    time = match["time"] if match else None
    beside = str(PurePosixPath(name).with_name(f"results_{time}.json"))
    return source.mapping(beside) if time and source.has(beside) else {}


def _part(
    source: Source,
    members: Sequence[tuple[str, str, _Family]],
    results: Mapping[str, Mapping[str, Any]],
) -> Part:
    family = members[0][2]
    rows: list[LogRow] = []
    figures: list[tuple[float, Mapping[str, Any]]] = []
    configs: list[Mapping[str, Any]] = []
    for name, subset, _ in members:
        read_rows = list(_rows(source, name, subset))
        rows += read_rows
        figures.append((len(read_rows), results[name].get("results", {}).get(_task(name), {})))
        configs.append(results[name].get("configs", {}).get(_task(name), {}))
    args = dict(family.args)
    shots = configs[0].get("num_fewshot")
    if family.shots and isinstance(shots, int):
        args["few_shot_num"] = min(shots, MOST_SHOTS)
    return Part(
        benchmark=family.benchmark,
        task=", ".join(_task(name) for name, _, _ in members),
        rows=rows,
        protocol=family.protocol,
        reader=family.reader,
        args=args,
        reported=_reported(figures),
        sampling=configs[0].get("generation_kwargs") or {},
    )


def _reported(figures: Sequence[tuple[float, Mapping[str, Any]]]) -> dict[str, float]:
    """The figures that all tasks have, as means over their rows."""
    names = [
        name
        for name in figures[0][1]
        if "," in name and "stderr" not in name and all(name in f for _, f in figures)
    ]
    means: dict[str, float] = {}
    for name in names:
        values = [(weight, number(figure[name])) for weight, figure in figures]
        total = sum(weight for weight, value in values if value is not None)
        if total:
            means[name] = sum(w * v for w, v in values if v is not None) / total
    return means


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
    filtered = row.get("filtered_resps") or [None]
    replies = _stored(row["resps"])
    read = _likeliest(replies[0]) if replies[0].label_logprobs else filtered[0]
    for epoch, reply in enumerate(replies):
        yield LogRow(
            where=where,
            reply=reply,
            keys=_keys(doc, subset),
            subset=subset,
            index=row["doc_id"],
            question=str(doc.get("question") or doc.get("input") or ""),
            choices=_choices(doc),
            target=str(doc.get("answer") or doc.get("target") or row.get("target") or ""),
            answer=read if isinstance(read, str) and not (epoch or reply.error) else None,
            verdict=None if epoch or reply.error else number(row.get(metric)),
            epoch=epoch,
        )


def _keys(doc: Mapping[str, Any], subset: str) -> dict[str, Any]:
    if "question_id" in doc:
        return {"question_id": doc["question_id"]}
    return {"subject": subset, "id": doc["id"]} if isinstance(doc.get("id"), int) else {}


def _choices(doc: Mapping[str, Any]) -> tuple[str, ...]:
    if isinstance(doc.get("options"), list):
        return tuple(map(str, doc["options"]))
    letters = [doc[label] for label in "ABCD" if label in doc]
    return tuple(map(str, letters)) if len(letters) == len("ABCD") else ()


def _stored(resps: Any) -> list[Reply]:
    """The replies of a sample; one that is an error where the request failed and none is there."""
    first = resps[0] if isinstance(resps, list) and resps else None
    if isinstance(first, list) and first and isinstance(first[0], list):
        return [_scored(resps)]
    texts = first if isinstance(first, list) else [first]
    replies = [malformed(resps) if text is None else make_reply(str(text)) for text in texts]
    return replies or [malformed(resps)]


def _scored(resps: Sequence[Any]) -> Reply:
    """The recorded log-likelihood of each option, ``[[[value, is_greedy]], …]``, as its label's."""
    try:
        values = [float(option[0][0]) for option in resps]
    except (IndexError, KeyError, TypeError, ValueError):
        return malformed(resps)
    return Reply(label_logprobs=dict(zip(LABELS, values, strict=False)))


def _likeliest(reply: Reply) -> str:
    values = reply.label_logprobs or {}
    return max(values, key=values.__getitem__)
