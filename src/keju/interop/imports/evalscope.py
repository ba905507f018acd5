"""EvalScope 1.x: ``predictions/MODEL/EXAM_SUBSET.jsonl`` with its reviews and reports."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, NamedTuple, cast

from keju.benchmarks.samples import DigestTable, text_digest
from keju.errors import DataError
from keju.files import SpooledSequence
from keju.interop.imports.log import (
    LARGEST,
    LogPart,
    LogRow,
    LogRows,
    LogSource,
    ModelLog,
    failed_reply,
    find_task,
    make_reply,
    nested,
    prompt_of,
    question_keys,
    text_or_none,
    to_number,
)
from keju.types import Reply

TOOL = "evalscope"
REVIEWS, REPORTS, CONFIGS = "reviews", "reports", "configs"


def find(source: LogSource) -> list[str]:
    """Return the files of predictions."""
    files = [name for name in source.names if name.endswith(".jsonl")]
    return [name for name in files if {"index", "model_output"} <= source.first_object(name).keys()]


def read(source: LogSource, names: Sequence[str]) -> ModelLog:
    """Return the log of one run."""
    members: dict[str, list[tuple[str, str]]] = {}
    models: set[str] = set()
    rows: dict[str, LogRows] = defaultdict(LogRows)
    for name in names:
        stem = PurePosixPath(name).stem
        task = find_task(TOOL, stem)
        # EXAM_SUBSET is a subset of EXAM. A task that Keju does not have is identified by its stem.
        exam = stem.removesuffix(f"_{task.subset}") if task.subset else stem
        members.setdefault(exam, []).append((name, task.subset))
        for row in _read_rows(source, name, task.subset, models):
            rows[exam].append(row)
    source.refuse_several_models(models)
    run = PurePosixPath(_sibling_path(names[0], CONFIGS, "")).parents[1]
    configs = source.siblings(str(run / CONFIGS / "task_config.yaml"), "task_config*.yaml")
    config = source.yaml(configs[0]) if configs else {}
    parts = [
        _make_part(config, exam, rows[exam], *_read_report(source, files, exam))
        for exam, files in members.items()
    ]
    return ModelLog(
        tool=TOOL,
        version=str(config.get("evalscope_version") or ""),
        model=next(iter(models), "") or PurePosixPath(names[0]).parent.name or "unknown",
        parts=parts,
        files=source.hashes,
    )


def _make_part(
    config: Mapping[str, Any], exam: str, rows: LogRows, figures: dict[str, float], n: int | None
) -> LogPart:
    """Return the rows of an exam as a part, with the settings of the run's configuration."""
    resolved = nested(config, "resolved_benchmarks", exam)
    args = nested(config, "dataset_args", exam)
    sampling = nested(config, "generation_config")
    settings = {
        "few_shot_num": args.get("few_shot_num", resolved.get("few_shot_num")),
        "split": resolved.get("eval_split"),
    }
    part = LogPart(
        task=exam,
        rows=rows,
        reported=figures,
        n=n,
        sampling={k: v for k, v in sampling.items() if k != "batch_size" and v is not None},
    )
    return part.read_as(find_task(TOOL, exam), settings)


def _sibling_path(name: str, folder: str, file: str) -> str:
    """Return the path of the same model's file in another folder of the run."""
    path = PurePosixPath(name)
    return str(path.parents[min(2, len(path.parents) - 1)] / folder / path.parent.name / file)


def _read_report(
    source: LogSource, files: Sequence[tuple[str, str]], exam: str
) -> tuple[dict[str, float], int | None]:
    """Return the figures of the report, and the number of their rows.

    For a single file, return the report's figures for its subset.
    """
    report = _sibling_path(files[0][0], REPORTS, f"{exam}.json")
    requested_subsets = {subset for _, subset in files} if source.is_single else set()
    figures: dict[str, float] = {}
    n: int | None = None
    for metric in source.mapping(report).get("metrics") or () if source.has(report) else ():
        scored = _find_subset_score(metric, requested_subsets) or metric
        label = metric.get("name") or nested(metric, "identity").get("name") or "score"
        if (value := to_number(scored.get("score"))) is not None:
            figures[str(label)] = value
            n = n or scored.get("num")
    return figures, n


def _find_subset_score(metric: Mapping[str, Any], names: set[str]) -> Mapping[str, Any] | None:
    """Return a metric's entry of the first subset with one of `names`."""
    for category in metric.get("categories") or ():
        for subset in category.get("subsets") or ():
            if subset.get("name") in names:
                return cast(Mapping[str, Any], subset)
    return None


class _EvalScopeReview(NamedTuple):
    """EvalScope's verdict on a prediction."""

    target: str = ""
    answer: str | None = None
    verdict: float | None = None
    group: int | None = None
    """The question's position; None if the review does not have it."""
    epoch: int = 0

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> _EvalScopeReview:
        """Parse a row of the reviews file."""
        sample_score = nested(row, "sample_score")
        score = nested(sample_score, "score")
        values = nested(score, "value")
        if isinstance(values, Mapping):
            values = values.get(score.get("main_score_name"), next(iter(values.values()), None))
        target = row.get("target")
        target = (target or [None])[0] if isinstance(target, list) else target
        group = sample_score.get("group_id")
        return cls(
            target="" if target is None else str(target),
            answer=text_or_none(score.get("extracted_prediction")),
            verdict=to_number(values),
            group=group if isinstance(group, int) and abs(group) < LARGEST else None,
            epoch=min(LARGEST, int(sample_score.get("generation_index") or 0)),
        )


class _Reviews:
    """The reviews of a file by the index of their prediction; the last of several wins."""

    def __init__(self, source: LogSource, name: str) -> None:
        self._stored: SpooledSequence[_EvalScopeReview] = SpooledSequence(_EvalScopeReview)
        self._table = DigestTable()
        self._places = array("I")
        for _, row in source.jsonl(name) if source.has(name) else ():
            number = self._table.add(text_digest(repr(row.get("index"))))
            self._places[number : number + 1] = array("I", [len(self._stored)])
            self._stored.append(_EvalScopeReview.of(row))

    def get(self, index: Any) -> _EvalScopeReview:
        """Return the review of a prediction, or an empty one."""
        number = self._table.find(text_digest(repr(index)))
        return self._stored[self._places[number]] if number >= 0 else _EvalScopeReview()


def _read_rows(source: LogSource, name: str, subset: str, models: set[str]) -> Iterator[LogRow]:
    reviews = _Reviews(source, _sibling_path(name, REVIEWS, PurePosixPath(name).name))
    for where, row in source.jsonl(name):
        output = row.get("model_output")
        if not isinstance(output, Mapping):
            raise DataError("import_no_prediction", where=source.root / where, tool=TOOL)
        models.add(str(row.get("model") or output.get("model") or ""))
        metadata = row.get("metadata") or {}
        review = reviews.get(row.get("index"))
        place = row.get("index") if review.group is None else review.group
        yield LogRow(
            where=where,
            reply=_read_reply(output),
            keys=question_keys(metadata, subset),
            subset=subset or str(metadata.get("subject") or ""),
            index=place if isinstance(place, int) else None,
            prompt=prompt_of(row.get("messages") or row.get("input")),
            target=review.target,
            answer=review.answer,
            verdict=review.verdict,
            epoch=review.epoch,
        )


def _read_reply(output: Mapping[str, Any]) -> Reply:
    if output.get("error"):
        return failed_reply(output["error"])
    choice = (output.get("choices") or [{}])[0]
    message = choice.get("message") or {}
    return make_reply(
        message.get("content"),
        reasoning=message.get("reasoning_content"),
        finish=choice.get("stop_reason"),
        usage=output.get("usage"),
        seconds=output.get("time"),
        model=output.get("model"),
    )
