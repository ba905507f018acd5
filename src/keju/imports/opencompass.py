"""OpenCompass: ``predictions/MODEL/DATASET.json`` (or JSON Lines) and ``results`` beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from keju.errors import DataError, UsageError
from keju.imports.log import Log, LogRow, Part
from keju.imports.replies import make_reply, number, prompt_of
from keju.imports.source import PREDICTIONS, Source
from keju.types import Reply

TOOL = "opencompass"
RESULTS = "results"
DETECTED_IN = 100
"""Bytes of a file in which its first entry begins."""

_ABBREVIATIONS = (
    ("bbh", re.compile(r"bbh[-_](.+)")),
    ("mmlu_pro", re.compile(r"mmlu_pro[-_](.+)")),
    ("ceval", re.compile(r"ceval-test-(?P<test>.+)|ceval[-_](.+)")),
)
READINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "bbh": ("evalscope", {"few_shot_num": 0}),
    "mmlu_pro": ("evalscope", {"few_shot_num": 0}),
    "ceval": ("opencompass", {}),
}
"""The protocol whose reader does what OpenCompass's postprocessors do, and its settings."""
LABEL = "label: "
"""What the log-likelihoods (as perplexities) of the options are filed under."""
SHARE_OF = 100
"""Figures are percentages."""


def find(source: Source) -> list[str]:
    """The files of predictions."""
    found = [name for name in source.names if PREDICTIONS in PurePosixPath(name).parts[:-1]]
    if source.single:
        found = list(source.names)
    return [name for name in found if _is_predictions(source, name)]


def _is_predictions(source: Source, name: str) -> bool:
    if name.endswith(".jsonl"):
        return {"idx", "prediction"} <= source.first(name).keys()
    if not name.endswith(".json"):
        return False
    return re.match(rb'\s*\{\s*"\d+"\s*:\s*\{', source.start(name, DETECTED_IN)) is not None


def read(source: Source, names: Sequence[str]) -> Log:
    """The log of one run."""
    models = {PurePosixPath(name).parent.name for name in names}
    if len(models) > 1:
        raise UsageError(f"{source.path} holds several models: {', '.join(sorted(models))}")
    parts: dict[tuple[str, bool], list[tuple[str, str]]] = {}
    unknown: list[Part] = []
    for name in names:
        abbreviation = PurePosixPath(name).stem
        benchmark, subset, test = _named(abbreviation)
        if benchmark:
            parts.setdefault((benchmark, test), []).append((name, subset))
        else:
            rows = list(_rows(source, name, ""))
            unknown.append(Part(benchmark="", task=abbreviation, rows=rows))
    known = [_part(source, *key, members) for key, members in parts.items()]
    model = models.pop() or "unknown"
    return Log(tool=TOOL, version="", model=model, parts=[*known, *unknown], files=source.hashes)


def _named(abbreviation: str) -> tuple[str, str, bool]:
    """The exam, the subset and whether it is C-Eval's test split."""
    for benchmark, pattern in _ABBREVIATIONS:
        if match := pattern.fullmatch(abbreviation):
            test = match.groupdict().get("test")
            return benchmark, test or match[match.lastindex or 1], test is not None
    return "", "", False


def _part(source: Source, benchmark: str, test: bool, members: Sequence[tuple[str, str]]) -> Part:
    protocol, args = READINGS[benchmark]
    rows: list[LogRow] = []
    figures: list[tuple[int, float]] = []
    for name, subset in members:
        listed = list(_rows(source, name, subset))
        rows += listed
        reported = _accuracy(_results(source, name))
        if reported is not None:
            figures.append((len(listed), reported))
    total = sum(weight for weight, _ in figures)
    whole = len(figures) == len(members) and total
    return Part(
        benchmark=benchmark,
        task=", ".join(PurePosixPath(name).stem for name, _ in members),
        rows=rows,
        protocol=protocol,
        args=args | ({"split": "test"} if test else {}),
        reported={"accuracy": sum(w * v for w, v in figures) / total} if whole else {},
    )


def _results(source: Source, name: str) -> dict[str, Any]:
    parts = [RESULTS if part == PREDICTIONS else part for part in PurePosixPath(name).parts]
    beside = str(PurePosixPath(*parts).with_suffix(".json"))
    return source.mapping(beside) if beside != name and source.has(beside) else {}


def _accuracy(results: Mapping[str, Any]) -> float | None:
    for metric in ("accuracy", "score"):
        value = number(results.get(metric))
        if value is not None:
            return value / SHARE_OF
    return None


def _rows(source: Source, name: str, subset: str) -> Iterator[LogRow]:
    details = _details(_results(source, name).get("details"))
    for where, key, row in _predictions(source, name):
        detail = details.get(key) or _chosen(row)
        read = detail.get("pred", detail.get("predictions"))
        read = read[0] if isinstance(read, list) and read else read
        yield LogRow(
            where=where,
            reply=_reply(row, f"{source.root / where}"),
            subset=subset,
            index=int(key) if key.isdecimal() else None,
            prompt=prompt_of(row.get("origin_prompt")),
            target=str(row.get("gold") or ""),
            answer=read if isinstance(read, str) else None,
            verdict=_verdict(detail.get("correct")),
        )


def _predictions(source: Source, name: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    if name.endswith(".jsonl"):
        for where, row in source.jsonl(name):
            yield where, str(row.get("idx")), row
        return
    for key, row in source.mapping(name).items():
        if not isinstance(row, dict) or "prediction" not in row:
            raise DataError(f"{source.root / name}, entry {key}: no prediction of {TOOL}")
        yield f"{name}, entry {key}", str(key), row


def _details(details: Any) -> dict[str, Mapping[str, Any]]:
    """What the evaluator says of each row, by its number."""
    listed = enumerate(details) if isinstance(details, list) else dict(details or {}).items()
    return {str(key): row for key, row in listed if isinstance(row, Mapping)}


def _chosen(row: Mapping[str, Any]) -> dict[str, Any]:
    """The verdict on an option chosen by perplexity: it is the gold one, or it is not."""
    if not any(key.startswith(LABEL) for key in row) or not row.get("gold"):
        return {}
    return {"pred": row["prediction"], "correct": row["prediction"] == row["gold"]}


def _verdict(correct: Any) -> float | None:
    first = correct[0] if isinstance(correct, list) and correct else correct
    return number(first)


def _reply(row: Mapping[str, Any], where: str) -> Reply:
    """The reply; perplexities of the options become log-probabilities of their labels."""
    options = {key[len(LABEL) :]: row[key] for key in row if key.startswith(LABEL)}
    if options:
        values = {label: number(option.get("PPL")) for label, option in options.items()}
        if any(value is None for value in values.values()):
            raise DataError(f"{where}: an option has no PPL")
        return Reply(label_logprobs={label: -(value or 0.0) for label, value in values.items()})
    said = row.get("prediction")
    return make_reply(said[-1] if isinstance(said, list) and said else said)
