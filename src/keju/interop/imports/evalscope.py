"""EvalScope 1.x: ``predictions/MODEL/EXAM_SUBSET.jsonl`` and the reviews and reports beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from keju.errors import DataError
from keju.interop.imports.log import (
    Log,
    LogRow,
    Part,
    Source,
    failed,
    make_reply,
    number,
    prompt_of,
)
from keju.types import Reply

TOOL = "evalscope"
REVIEWS, REPORTS, CONFIGS = "reviews", "reports", "configs"
EXAMS = ("bbh", "mmlu_pro", "ceval")
"""The exams that Keju has, each with a protocol and a reader called ``evalscope``."""


def find(source: Source) -> list[str]:
    """The files of predictions."""
    found = [name for name in source.names if name.endswith(".jsonl")]
    return [name for name in found if {"index", "model_output"} <= source.first(name).keys()]


def read(source: Source, names: Sequence[str]) -> Log:
    """The log of one run."""
    exams: dict[str, list[tuple[str, str]]] = {}
    models: set[str] = set()
    rows: dict[str, list[LogRow]] = {}
    for name in names:
        exam, subset = _exam_and_subset(PurePosixPath(name).stem)
        exams.setdefault(exam, []).append((name, subset))
        rows[name] = list(_rows(source, name, subset, models))
    source.refuse_several(models)
    task_config = _task_config(source, names[0])
    parts = [
        Part(
            benchmark=exam if exam in EXAMS else "",
            task=exam,
            rows=[row for name, _ in members for row in rows[name]],
            protocol=TOOL,
            args=_args(exam, task_config),
            reported=_reported(source, members, exam),
            sampling=_sampling(task_config),
        )
        for exam, members in exams.items()
    ]
    version = str(task_config.get("evalscope_version") or "")
    model = next(iter(models), "") or PurePosixPath(names[0]).parent.name or "unknown"
    return Log(tool=TOOL, version=version, model=model, parts=parts, files=source.hashes)


def _exam_and_subset(stem: str) -> tuple[str, str]:
    for exam in EXAMS:
        if stem == exam or stem.startswith(f"{exam}_"):
            return exam, stem[len(exam) + 1 :]
    return stem, ""


def _beside(name: str, folder: str, file: str) -> str:
    """The file of the same model in another folder of the run."""
    path = PurePosixPath(name)
    return str(path.parents[min(2, len(path.parents) - 1)] / folder / path.parent.name / file)


def _task_config(source: Source, name: str) -> Mapping[str, Any]:
    run = PurePosixPath(_beside(name, CONFIGS, "")).parents[1]
    found = source.siblings(str(run / CONFIGS / "task_config.yaml"), "task_config*.yaml")
    return source.yaml(found[0]) if found else {}


def _args(exam: str, task_config: Mapping[str, Any]) -> dict[str, Any]:
    given = (task_config.get("dataset_args") or {}).get(exam) or {}
    resolved = (task_config.get("resolved_benchmarks") or {}).get(exam) or {}
    shots = given.get("few_shot_num", resolved.get("few_shot_num"))
    args: dict[str, Any] = {} if shots is None else {"few_shot_num": shots}
    if exam == "ceval" and resolved.get("eval_split") == "test":
        args["split"] = "test"
    return args


def _sampling(task_config: Mapping[str, Any]) -> dict[str, Any]:
    config = task_config.get("generation_config") or {}
    return {k: v for k, v in config.items() if k != "batch_size" and v is not None}


def _reported(source: Source, members: Sequence[tuple[str, str]], exam: str) -> dict[str, float]:
    """The report's figures, over the subsets of the log where the report has more."""
    report = _beside(members[0][0], REPORTS, f"{exam}.json")
    if not source.has(report):
        return {}
    document = source.mapping(report)
    figures: dict[str, float] = {}
    for metric in document.get("metrics") or ():
        label = str(metric.get("name") or (metric.get("identity") or {}).get("name") or "score")
        value = _figure(metric, {subset for _, subset in members})
        if value is not None:
            figures[label] = value
    return figures


def _figure(metric: Mapping[str, Any], asked: set[str]) -> float | None:
    listed = [
        subset
        for category in metric.get("categories") or ()
        for subset in category.get("subsets") or ()
        if not subset.get("is_aggregate")
    ]
    chosen = [subset for subset in listed if subset.get("name") in asked]
    total = sum(subset.get("num") or 0 for subset in chosen)
    if len(chosen) == len(listed) or not total:
        return number(metric.get("score"))
    return float(sum(subset["num"] * subset["score"] for subset in chosen) / total)


def _rows(source: Source, name: str, subset: str, models: set[str]) -> Iterator[LogRow]:
    reviews = _reviews(source, name)
    for where, row in source.jsonl(name):
        output = row.get("model_output")
        if not isinstance(output, Mapping):
            raise DataError(f"{source.root / where}: no prediction of {TOOL} (model_output)")
        models.add(str(row.get("model") or output.get("model") or ""))
        index = row.get("index")
        metadata = row.get("metadata") or {}
        review = reviews.get(index, {})
        score = (review.get("sample_score") or {}).get("score") or {}
        epoch = (review.get("sample_score") or {}).get("generation_index") or 0
        sample = (review.get("sample_score") or {}).get("group_id", index)
        yield LogRow(
            where=where,
            reply=_reply(output),
            keys=_keys(metadata, subset),
            subset=subset or str(metadata.get("subject") or ""),
            index=sample if isinstance(sample, int) else None,
            prompt=prompt_of(row.get("messages") or row.get("input")),
            target=_target(review.get("target")),
            answer=score.get("extracted_prediction"),
            verdict=_verdict(score),
            epoch=int(epoch),
        )


def _reviews(source: Source, name: str) -> dict[Any, dict[str, Any]]:
    beside = _beside(name, REVIEWS, PurePosixPath(name).name)
    if not source.has(beside):
        return {}
    return {row.get("index"): row for _, row in source.jsonl(beside)}


def _keys(metadata: Mapping[str, Any], subset: str) -> dict[str, Any]:
    if "question_id" in metadata:
        return {"question_id": metadata["question_id"]}
    number_ = metadata.get("id")
    return {"subject": subset, "id": number_} if isinstance(number_, int) else {}


def _target(target: Any) -> str:
    listed = target if isinstance(target, list) else [target]
    return str(listed[0]) if listed and listed[0] is not None else ""


def _verdict(score: Mapping[str, Any]) -> float | None:
    values = score.get("value") or {}
    if not isinstance(values, Mapping):
        return number(values)
    return number(values.get(score.get("main_score_name"), next(iter(values.values()), None)))


def _reply(output: Mapping[str, Any]) -> Reply:
    if output.get("error"):
        return failed(output["error"])
    choices = output.get("choices") or [{}]
    message = choices[0].get("message") or {}
    return make_reply(
        message.get("content"),
        reasoning=message.get("reasoning_content"),
        finish=choices[0].get("stop_reason"),
        usage=output.get("usage"),
        seconds=output.get("time"),
        model=output.get("model"),
    )
