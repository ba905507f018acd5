"""Every Eval Ever 0.3: a file with the results of an exam, and one with a line for each answer.

The files lie where the public store of these logs has them:
``data/EXAM/DEVELOPER/MODEL/UUID.json`` and ``UUID_samples.jsonl``. Each metric of each reader is
one result. A line belongs to the result of one reader, so an answer has a line for each of them.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec

from keju.errors import DataError, UsageError
from keju.files import make_file_name, whole_file, write_json
from keju.interop.imports.log import LogSource, ModelLog, nested, row_errors
from keju.interop.logs.packing import KEY, PackedAnswer, RunMark, StoredText
from keju.interop.logs.restored import RestoredAnswer, RestoredLog
from keju.interop.logs.run_logs import (
    OUTCOME_TEXTS,
    LoggedAnswer,
    LoggedMessage,
    RunLog,
    RunLogs,
    headline_metric,
    known_metrics,
)
from keju.results.schema import Metric, ResultEntry
from keju.stats.estimate import Estimate
from keju.types import UNSCORED, Reading, Usage

TOOL = "eee"
VERSION = "0.3.0"
SAMPLES = "_samples.jsonl"
DETECTED_IN = 2000
"""The fields that identify a file are within this number of bytes."""
LOCAL_KINDS = ("hf:", "gguf:", "embedded", "llama:")
"""Kinds of models that run on the user's own machine."""


def write_logs(logs: RunLogs, target: Path) -> tuple[list[Path], int]:
    """Write two files for each log below `target`; return the files and the number of answers."""
    paths: list[Path] = []
    count = 0
    for log in logs:
        files = _Files(log, target)
        paths += [files.aggregate, files.samples]
        count += _write_log(log, files)
    return paths, count


class _Files:
    """Where the files of a log are, and its id."""

    def __init__(self, log: RunLog, target: Path) -> None:
        developer, _, name = log.manifest.model.rpartition("/")
        identity = f"{log.run}\0{log.title}\0{log.manifest.created}\0{log.manifest.model}"
        digest = hashlib.sha256(identity.encode()).digest()[:16]
        uuid = UUID(bytes=digest, version=4)
        folders = (log.exam.name, developer or "unknown", name)
        self.place = "/".join(("data", *map(_folder_name, folders), f"{uuid}"))
        self.aggregate = target / f"{self.place}.json"
        self.samples = target / f"{self.place}{SAMPLES}"
        self.created = str(int(time.time()))
        self.id = f"{log.title}/{log.manifest.model}/{self.created}"


def _folder_name(name: str) -> str:
    return make_file_name(name.replace("/", "_").replace(":", "_"))


def _write_log(log: RunLog, files: _Files) -> int:
    """Write the answers, and then the results with the checksum of the answers."""
    answers = lines = 0
    digest = hashlib.sha256()
    with whole_file(files.samples) as stream:
        for answer in log.answers:
            answers += 1
            for row in _rows(log, files, answer):
                line = msgspec.json.encode(row) + b"\n"
                digest.update(line)
                stream.write(line)
                lines += 1
    write_json(files.aggregate, _aggregate(log, files, lines, digest.hexdigest()))
    return answers


# The results


def _aggregate(log: RunLog, files: _Files, lines: int, checksum: str) -> dict[str, Any]:
    """Return the document with the results of an exam."""
    manifest = log.manifest
    packages = manifest.environment.get("packages") or {}
    return {
        "schema_version": VERSION,
        "evaluation_id": files.id,
        "evaluation_timestamp": manifest.created,
        "retrieved_timestamp": files.created,
        "eval_library": {
            "name": KEY,
            "version": str(packages.get("keju") or "unknown"),
            "additional_details": {KEY: _as_text(log.mark)},
        },
        "source_metadata": {
            "source_name": "Keju",
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "model_info": _model_info(manifest.model, manifest.endpoint),
        "evaluation_results": [
            _result(log, entry, name, metric)
            for entry in log.entries
            for name, metric in known_metrics(entry).items()
            if 0 <= (metric.value or 0.0) <= 1
        ],
        "detailed_evaluation_results": {
            "format": "jsonl",
            "file_path": f"{files.place}{SAMPLES}",
            "hash_algorithm": "sha256",
            "checksum": checksum,
            "total_rows": lines,
        },
    }


def _model_info(model: str, endpoint: Mapping[str, Any]) -> dict[str, Any]:
    is_local = model.startswith(LOCAL_KINDS)
    info: dict[str, Any] = {
        "name": model,
        "id": model,
        "additional_details": {
            "deployment_type": "self_deployed" if is_local else "unknown",
            "model_availability": "unknown",
        },
    }
    if server := endpoint.get("server"):
        info["inference_engine"] = {"name": str(server)}
    return info


def _result_id(log: RunLog, reader: str, metric: str) -> str:
    return f"{log.title}/{reader}/{metric}"


def _result(log: RunLog, entry: ResultEntry, name: str, metric: Metric) -> dict[str, Any]:
    """Return one metric of one reader."""
    exam = log.exam
    config: dict[str, Any] = {
        "evaluation_description": f"{entry.full_name}, protocol {entry.protocol} "
        f"{entry.protocol_version}, reader {entry.reader}",
        "metric_id": name if name == "accuracy" else f"{exam.name}.{name}",
        "metric_name": name,
        "metric_kind": "pass_rate" if name.startswith("pass@") else "accuracy",
        "metric_unit": "proportion",
        "lower_is_better": False,
        "score_type": "continuous",
        "min_score": 0.0,
        "max_score": 1.0,
        "additional_details": {
            "protocol": entry.protocol,
            "protocol_version": str(entry.protocol_version),
            "reader": entry.reader,
            "is_headline": _as_text(name == entry.headline),
        },
    }
    if entry.judge is not None:
        config["llm_scoring"] = {
            "judges": [{"model_info": _model_info(entry.judge.model, {})}],
            "input_prompt": f"Keju's prompt '{entry.judge.protocol}', version "
            f"{entry.judge.protocol_version}",
        }
    return {
        "evaluation_result_id": _result_id(log, entry.reader, name),
        "evaluation_name": log.title,
        "source_data": _source_data(log),
        "evaluation_timestamp": log.manifest.created,
        "metric_config": config,
        "score_details": _score_details(entry, metric),
        "generation_config": _generation_config(log),
    }


def _source_data(log: RunLog) -> dict[str, Any]:
    details = {"data_version": log.exam.data.version} if log.exam.data.version else {}
    document: dict[str, Any] = {
        "dataset_name": log.exam.name,
        "source_type": "hf_dataset" if log.repository else "other",
    }
    if log.repository:
        document |= {
            "hf_repo": log.repository,
            "samples_number": len(log.job.exam.samples),
        }
    return document | ({"additional_details": details} if details else {})


def _score_details(entry: ResultEntry, metric: Estimate) -> dict[str, Any]:
    uncertainty: dict[str, Any] = {"num_samples": metric.n}
    method = {"method": metric.method} if metric.method else {}
    if isinstance(metric.se, float):
        uncertainty["standard_error"] = {"value": metric.se, "method": "analytic"}
    if metric.ci95 is not None:
        low, high = metric.ci95
        uncertainty["confidence_interval"] = {
            "lower": low,
            "upper": high,
            "confidence_level": 0.95,
            **method,
        }
    details = {f"outcome_{name}": str(count) for name, count in entry.outcomes.items()}
    if metric.bounds is not None:
        details |= {"worst_case": str(metric.bounds[0]), "best_case": str(metric.bounds[1])}
    if entry.warnings:
        details["warnings"] = "\n".join(entry.warnings)
    return {"score": metric.value, "uncertainty": uncertainty, "details": details}


def _generation_config(log: RunLog) -> dict[str, Any]:
    sampling = log.exam.sampling
    arguments: dict[str, Any] = {
        "temperature": sampling.get("temperature"),
        "top_p": sampling.get("top_p"),
    }
    if limit := sampling.get("max_tokens"):
        arguments["max_tokens"] = limit
    if template := log.exam.settings.get("prompt_template"):
        arguments["prompt_template"] = str(template)
    if log.tools:
        arguments["agentic_eval_config"] = {
            "available_tools": [{"name": tool} for tool in log.tools]
        }
    details = {
        "decode": sampling.get("decode"),
        "stop": sampling.get("stop"),
        "epochs": log.job.epochs,
        "arm": log.arm,
    }
    return {
        "generation_args": arguments,
        "additional_details": {key: _as_text(value) for key, value in details.items() if value},
    }


# The answers


def _rows(log: RunLog, files: _Files, answer: LoggedAnswer) -> Iterator[dict[str, Any]]:
    """Yield a line for each reader of an answer. The first has Keju's own part."""
    results = {entry.reader: headline_metric(entry) for entry in log.entries}
    base = _question(log, files, answer) | _reply(answer)
    metadata = {
        "subset": answer.sample.subset,
        "epoch": str(answer.record.epoch),
        "arm": log.arm,
        "finish": answer.record.reply.finish,
    }
    packed = {KEY: _as_text(answer.pack(has_messages=True))}
    for reading in answer.record.readings:
        row = dict(base)
        if (headline := results.get(reading.reader)) is not None:
            row["evaluation_result_id"] = _result_id(log, reading.reader, headline[0])
        facts = metadata | _facts(reading) | packed
        yield row | {
            "answer_attribution": [_attribution(answer, reading)],
            "evaluation": _evaluation(answer, reading),
            "error": _error(answer, reading),
            "metadata": {key: value for key, value in facts.items() if value},
        }
        packed = {}


def _question(log: RunLog, files: _Files, answer: LoggedAnswer) -> dict[str, Any]:
    sample = answer.sample
    reference = [answer.record.target or sample.target]
    digest = hashlib.sha256((sample.text + "".join(reference)).encode("utf-8", "surrogatepass"))
    return {
        "schema_version": VERSION,
        "evaluation_id": files.id,
        "model_id": log.manifest.model,
        "evaluation_name": log.title,
        "sample_id": sample.id,
        "sample_hash": digest.hexdigest(),
        "input": {
            "raw": sample.text,
            "formatted": answer.prompt_text if answer.has_prompt else None,
            "reference": reference,
            "choices": list(sample.choices) or None,
        },
    }


def _reply(answer: LoggedAnswer) -> dict[str, Any]:
    """Return the reply: one text, or the messages of an episode."""
    reply = answer.record.reply
    document: dict[str, Any] = {
        "token_usage": _token_usage(reply.usage),
        "performance": {"latency_ms": max(0.0, 1000 * reply.seconds)},
    }
    if reply.episode is None:
        reasoning = [reply.reasoning] if reply.reasoning else None
        return document | {
            "interaction_type": "single_turn",
            "output": {"raw": [reply.text], "reasoning_trace": reasoning},
            "messages": None,
        }
    return document | {
        "interaction_type": "agentic",
        "output": None,
        "messages": [_message(*numbered) for numbered in enumerate(answer.messages())],
    }


def _token_usage(usage: Usage) -> dict[str, int | None]:
    return {
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "input_tokens_cache_read": usage.cached or None,
        "reasoning_tokens": usage.reasoning or None,
    }


def _message(number: int, message: LoggedMessage) -> dict[str, Any]:
    document: dict[str, Any] = {
        "turn_idx": number,
        "role": message.role,
        "content": message.text,
        "reasoning_trace": message.reasoning or None,
    }
    if message.calls:
        document["tool_calls"] = [
            {"id": call_id, "name": name, "arguments": _arguments(arguments)}
            for call_id, name, arguments in message.calls
        ]
    if message.role == "tool":
        document["tool_call_id"] = [message.call]
    return document


def _arguments(arguments: str) -> dict[str, str]:
    """Return the arguments of a call as texts by name."""
    try:
        values = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        return {"arguments": arguments}
    return {
        name: value if isinstance(value, str) else _as_text(value) for name, value in values.items()
    }


def _facts(reading: Reading) -> dict[str, str]:
    """Return how an answer was read and graded."""
    return {
        "outcome": reading.score.outcome,
        "tier": reading.answer.tier,
        "reason": reading.answer.reason,
        "rule": reading.answer.rule,
        "grader": reading.score.grader,
        "parts": _as_text(reading.score.parts) if reading.score.parts else "",
    }


def _attribution(answer: LoggedAnswer, reading: Reading) -> dict[str, Any]:
    """Return which reader extracted the answer, and from where."""
    is_episode = answer.record.reply.episode is not None
    turn = max(0, len(answer.messages()) - 1) if is_episode else 0
    return {
        "turn_idx": turn,
        "source": f"messages[{turn}].content" if is_episode else "output.raw",
        "extracted_value": reading.answer.value or "",
        "extraction_method": reading.reader,
        "is_terminal": True,
    }


def _evaluation(answer: LoggedAnswer, reading: Reading) -> dict[str, Any]:
    """Return the score. The format requires one, so an answer without a grade has 0 and an
    ``error``."""
    episode = answer.record.reply.episode
    is_graded = reading.score.outcome not in UNSCORED
    turns = episode.turns if episode else ()
    replies = sum(turn.role == "assistant" for turn in turns)
    return {
        "score": reading.score.value if is_graded else 0.0,
        "is_correct": reading.score.outcome == "correct",
        "num_turns": max(1, replies),
        "tool_calls_count": sum(len(turn.calls) for turn in turns),
    }


def _error(answer: LoggedAnswer, reading: Reading) -> str | None:
    outcome = reading.score.outcome
    if outcome not in UNSCORED:
        return None
    return answer.error or f"{outcome}: {OUTCOME_TEXTS[outcome]}"


def _as_text(value: Any) -> str:
    """Return a value as JSON; the format stores only texts in the objects for further facts."""
    return msgspec.json.encode(value).decode()


# Reading


def find(source: LogSource) -> list[str]:
    """Return the files with results; for a file of answers, the results next to it."""
    if source.is_single and source.names[0].endswith(SAMPLES):
        return source.siblings(source.names[0], f"{source.names[0][: -len(SAMPLES)]}.json")
    starts = {n: source.start(n, DETECTED_IN) for n in source.names if n.endswith(".json")}
    marks = (b'"schema_version"', b'"evaluation_id"', b'"retrieved_timestamp"')
    return [n for n, start in starts.items() if all(mark in start for mark in marks)]


def read(source: LogSource, names: Sequence[str]) -> ModelLog:
    """Raise UsageError: files of other tools do not say how their answers were read."""
    raise UsageError("import_foreign_eee", path=source.root / names[0])


def read_logs(source: LogSource, names: Iterable[str]) -> Iterator[RestoredLog]:
    """Yield the logs among `names` that Keju wrote."""
    for name in names:
        library = nested(source.mapping(name), "eval_library")
        details = nested(library, "additional_details").get(KEY)
        if library.get("name") == KEY and details:
            mark = RunMark.read(_parse(details, source.root / name), source.root / name)
            samples = f"{name.removesuffix('.json')}{SAMPLES}"
            yield RestoredLog(name, mark, _make_reader(source, samples, mark))


def _make_reader(
    source: LogSource, name: str, mark: RunMark
) -> Callable[[], Iterator[RestoredAnswer]]:
    def read() -> Iterator[RestoredAnswer]:
        for where, row in source.jsonl(name):
            with row_errors(source.root / where):
                answer = _unpack_row(source.root / where, mark, row)
            if answer is not None:
                yield answer

    return read


def _unpack_row(place: Path, mark: RunMark, row: Mapping[str, Any]) -> RestoredAnswer | None:
    """Return the answer of a line; None for the lines of further readers."""
    attribution: Mapping[str, Any] = next(iter(row.get("answer_attribution") or ()), {})
    text = nested(row, "metadata").get(KEY)
    if not text or attribution.get("extraction_method") not in mark.readers[:1]:
        return None
    packed = PackedAnswer.read(_parse(text, place), place)
    record = packed.unpack(*_texts(row, packed), place)
    score = None if row.get("error") else nested(row, "evaluation").get("score")
    answer = attribution.get("extracted_value") or None
    return RestoredAnswer(str(place), record, packed.verdicts, score, answer)


def _parse(text: str, place: object) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise DataError("log_mark_damaged", place=place, problem=error) from None


def _texts(row: Mapping[str, Any], packed: PackedAnswer) -> tuple[StoredText, list[StoredText]]:
    """Return the texts of the reply and of its turns."""
    output = nested(row, "output")
    texts, thoughts = output.get("raw") or [""], output.get("reasoning_trace") or [""]
    turns = [
        StoredText(message.get("content") or "", message.get("reasoning_trace") or "")
        for message in (row.get("messages") or ())[packed.prompt :]
    ]
    return StoredText(texts[0], thoughts[0]), turns
