"""Inspect: ``.eval`` files (zip archives of JSON) and ``.json`` logs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from keju.errors import DataError
from keju.files import LOG, parse_json
from keju.interop.imports.log import (
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
    text_of,
    text_or_none,
    to_number,
)
from keju.sources.archive import ZipEntries
from keju.types import Reply

TOOL = "inspect"
ARCHIVE = ".eval"
DETECTED_IN = 2000
"""The fields that identify a log are within this number of bytes."""
HEADER, SAMPLES = "header.json", "samples/"

GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
"""Inspect's letters: correct, incorrect, partial, no answer."""

HEADLINES = ("accuracy", "all", "mean")
"""Scorers' names of the figure over all samples, the plainest first."""
SUBSET_KEYS = ("dataset_name", "subset", "subject", "category")
"""Keys of a sample's metadata in which tasks store the subset."""


def find(source: LogSource) -> list[str]:
    """Return the log files."""
    archives = [name for name in source.names if name.endswith(ARCHIVE)]
    starts = {n: source.start(n, DETECTED_IN) for n in source.names if n.endswith(".json")}
    marks = (b'"eval"', b'"status"', b'"task')
    return archives + [n for n, start in starts.items() if all(mark in start for mark in marks)]


def read(source: LogSource, names: Sequence[str]) -> ModelLog:
    """Return the logs of one model, with a part for each."""
    logs = [open_log(source, name) for name in names]
    models = {str(nested(log, "eval").get("model") or "unknown") for log, _ in logs}
    source.refuse_several_models(models)
    packages = [nested(log, "eval", "packages") for log, _ in logs]
    parts = [_read_part(name, *opened) for name, opened in zip(names, logs, strict=True)]
    version = next((str(p["inspect_ai"]) for p in packages if "inspect_ai" in p), "")
    return ModelLog(
        tool=TOOL, version=version, model=models.pop(), parts=parts, files=source.hashes
    )


def open_log(source: LogSource, name: str) -> tuple[dict[str, Any], Iterable[Mapping[str, Any]]]:
    """Return a log without its samples, and its samples, which are read one by one."""
    if not name.endswith(ARCHIVE):
        log = source.mapping(name)
        return log, log.pop("samples", None) or ()
    with source.open(name):
        archive = ZipEntries(source.root / name)
    if HEADER not in archive.entries:
        raise DataError("import_unfinished", path=source.root / name, entry=HEADER)

    def read_entry(entry: str) -> dict[str, Any]:
        """Return the JSON object in an entry."""
        where, content = f"{source.root / name}, {entry}", archive.read(entry)
        try:
            document = parse_json(content, LOG)
        except DataError as error:
            raise DataError("file_not_json", where=where, problem=error) from None
        if not isinstance(document, dict):
            raise DataError("file_no_object", where=where)
        return document

    samples = (read_entry(entry) for entry in archive.entries if entry.startswith(SAMPLES))
    return read_entry(HEADER), samples


def _read_part(name: str, log: Mapping[str, Any], samples: Iterable[Mapping[str, Any]]) -> LogPart:
    facts, results = nested(log, "eval"), nested(log, "results")
    scorers, completed = results.get("scores") or (), results.get("completed_samples")
    task = str(facts.get("task") or "")
    part = LogPart(
        task=task,
        rows=LogRows(_read_rows(name, log, samples)),
        reported=dict(sorted(_read_figures(scorers), key=_rank_figure)),
        n=next((s["scored_samples"] for s in scorers if "scored_samples" in s), completed),
        written_count=results.get("total_samples"),
        sampling=facts.get("model_generate_config") or {},
    )
    return part.read_as(find_task(TOOL, task.rpartition("/")[2].replace("-", "_").lower()))


def _read_figures(scorers: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, float]]:
    """Yield the figures of all scorers with their names: ``choice accuracy``."""
    for scorer in scorers:
        for metric, figure in nested(scorer, "metrics").items():
            value = to_number((figure or {}).get("value"))
            if metric != "stderr" and value is not None:
                yield f"{scorer.get('name')} {metric}", value


def _rank_figure(figure: tuple[str, float]) -> int:
    """Put the overall accuracy first. For grouped metrics its name is ``all``."""
    metric_name = figure[0].rpartition(" ")[2]
    return HEADLINES.index(metric_name) if metric_name in HEADLINES else len(HEADLINES)


def _read_rows(
    name: str, log: Mapping[str, Any], samples: Iterable[Mapping[str, Any]]
) -> Iterator[LogRow]:
    scorer = next((s.get("name") for s in nested(log, "results").get("scores") or ()), None)
    for sample in samples:
        metadata = nested(sample, "metadata")
        scores = nested(sample, "scores")
        score = scores.get(scorer) or next(iter(scores.values()), None) or {}
        grade = score.get("value")
        yield LogRow(
            where=f"{name}, sample {sample.get('id')}",
            reply=_read_reply(sample),
            keys={"question_id": sample.get("id")},
            subset=next((str(metadata[k]) for k in SUBSET_KEYS if metadata.get(k)), ""),
            question=_read_question(sample.get("input")),
            prompt=prompt_of(sample.get("messages")),
            choices=tuple(map(str, sample.get("choices") or ())),
            target=_read_target(sample.get("target")),
            answer=text_or_none(score.get("answer")),
            verdict=GRADES.get(grade) if isinstance(grade, str) else to_number(grade),
            epoch=int(sample.get("epoch") or 1) - 1,
        )


def _read_question(sample_input: Any) -> str:
    """Return the question: the input, or its last message of the user."""
    if isinstance(sample_input, str):
        return sample_input
    turns = [turn for turn in sample_input or () if isinstance(turn, Mapping)]
    users = [turn for turn in turns if turn.get("role") == "user"]
    return text_of(users[-1].get("content")) if users else ""


def _read_target(target: Any) -> str:
    """Return the gold answer. Some tasks store it as a line in the requested form."""
    target = target[0] if isinstance(target, list) and target else target
    return str(target or "").removeprefix("ANSWER: ")


def _read_reply(sample: Mapping[str, Any]) -> Reply:
    error = sample.get("error")
    output = sample.get("output") or {}
    error = error or output.get("error")
    if error:
        return failed_reply(error.get("message") if isinstance(error, Mapping) else error)
    choice: dict[str, Any] = next(iter(output.get("choices") or ()), {})
    return make_reply(
        nested(choice, "message").get("content"),
        finish=choice.get("stop_reason"),
        usage=output.get("usage"),
        seconds=output.get("time"),
        model=output.get("model"),
    )
