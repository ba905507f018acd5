"""Logs of Inspect, version 2: a ``.json`` file or an ``.eval`` archive for each exam and arm.

An answer that counts is graded ``C`` or ``I``, or has its value if it is between 0 and 1. Each
reader is one scorer. An answer without a grade has no score, and a reply that never came is an
error of its sample. ``metadata`` of samples and scores has Keju's outcome.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import ZIP_DEFLATED, ZipFile

import msgspec

from keju.errors import UsageError
from keju.files import make_file_name, whole_file
from keju.interop.imports.inspect_log import ARCHIVE, HEADER, SAMPLES, open_log
from keju.interop.imports.log import LogSource, nested, reasoning_of, row_errors, text_of
from keju.interop.logs.packing import KEY, PackedAnswer, RunMark, StoredText
from keju.interop.logs.restored import RestoredAnswer, RestoredLog
from keju.interop.logs.run_logs import (
    LoggedAnswer,
    LoggedMessage,
    RunLog,
    RunLogs,
    explain_reading,
    known_metrics,
)
from keju.results.schema import ACCURACY
from keju.types import UNSCORED, Reading, Usage

SUMMARIES, START = "summaries.json", "_journal/start.json"
SUFFIXES = (".json", ARCHIVE)
STOP_REASONS = {
    "stop": "stop",
    "length": "max_tokens",
    "content_filter": "content_filter",
    "tool_calls": "tool_calls",
}
"""Inspect's words for finish reasons; others are ``unknown``."""
CALL_ERRORS = {"timeout": "timeout", "bad_arguments": "parsing"}
"""Inspect's words for calls that did not end well; others are ``unknown``."""
ID_LENGTH = 22
LONGEST_SUMMARY = 1000
"""The characters of a question in the list of an archive."""
_encode = msgspec.json.Encoder(order=None).encode


def write_logs(logs: RunLogs, target: Path) -> tuple[list[Path], int]:
    """Write the logs, a file for each; return the files and the number of answers.

    `target` is a folder, or a file ending in ``.json`` or ``.eval`` if there is only one log.
    """
    is_file = target.suffix in SUFFIXES and not target.is_dir()
    if is_file and len(logs) > 1:
        folder = target.with_suffix("")
        raise UsageError("log_several", run=logs.run.id, logs=len(logs), folder=folder)
    paths, answer_count = [], 0
    for log in logs:
        path = target if is_file else target / _file_name(log)
        with whole_file(path) as stream:
            write = _write_archive if path.suffix == ARCHIVE else _write_document
            answer_count += write(log, stream)
        paths.append(path)
    return paths, answer_count


def _file_name(log: RunLog) -> str:
    """Return a name that Inspect lists: ``2026-01-01T12-00-00+00-00_demo_7f3a….json``."""
    task = make_file_name(log.title.replace("_", "-").replace("/", "-"))
    created = log.manifest.created.replace(":", "-")
    return f"{created}_{task}_{_ids(log)[1]}.json"


def _ids(log: RunLog) -> tuple[str, str]:
    """Return the ids of the log and of its task."""
    identity = f"{log.run}\0{log.title}\0{log.manifest.created}\0{log.manifest.model}"
    digest = hashlib.sha256(identity.encode()).hexdigest()
    return digest[:ID_LENGTH], digest[ID_LENGTH : 2 * ID_LENGTH]


def _write_document(log: RunLog, stream: BinaryIO) -> int:
    """Write the log as one JSON document; return the number of answers."""
    count = 0
    stream.write(_encode(_header(log))[:-1] + b',"samples":[')
    for count, answer in enumerate(log.answers, 1):
        stream.write((b",\n" if count > 1 else b"\n") + _encode(_sample(log, answer)))
    stream.write(b"\n]}\n")
    return count


def _write_archive(log: RunLog, stream: BinaryIO) -> int:
    """Write the log as a zip archive with one file for each answer; return their number."""
    count, header, summaries = 0, _header(log), []
    with ZipFile(stream, "w", ZIP_DEFLATED) as archive:
        start = {key: header[key] for key in ("version", "eval", "plan")}
        archive.writestr(START, _encode(start))
        for count, answer in enumerate(log.answers, 1):  # noqa: B007 (the last number is returned)
            sample = _sample(log, answer)
            name = f"{SAMPLES}{sample['id']}_epoch_{sample['epoch']}.json"
            archive.writestr(name, _encode(sample))
            summaries.append(_encode(_summary(sample)))
        archive.writestr(SUMMARIES, b"[" + b",".join(summaries) + b"]")
        archive.writestr(HEADER, _encode(header))
    return count


def _header(log: RunLog) -> dict[str, Any]:
    """Return the log without its samples."""
    manifest, exam = log.manifest, log.exam
    sampling = {
        "temperature": exam.sampling.get("temperature"),
        "top_p": exam.sampling.get("top_p"),
        "max_tokens": exam.sampling.get("max_tokens"),
        "stop_seqs": list(exam.sampling.get("stop") or ()) or None,
        "seed": exam.sampling.get("seed"),
    }
    config = {key: value for key, value in sampling.items() if value is not None}
    log_id, task_id = _ids(log)
    packages = (manifest.environment.get("packages") or {}).items()
    return {
        "version": 2,
        "status": "success" if manifest.complete else "cancelled",
        "eval": {
            "eval_id": log_id,
            "run_id": log.run,
            "created": manifest.created,
            "task": log.title,
            "task_id": task_id,
            "task_version": str(exam.protocol.version),
            "task_attribs": {},
            "task_args": exam.settings | {"protocol": exam.protocol.name},
            "dataset": {
                "name": exam.name,
                "location": log.repository or None,
                "samples": len(log.job.exam.samples),
                "shuffled": False,
            },
            "model": manifest.model,
            "model_generate_config": config,
            "model_args": {},
            "config": {"epochs": log.job.epochs, "epochs_reducer": ["mean"]},
            "packages": {name: str(version) for name, version in packages},
            "metadata": {"arm": log.arm or None, "tools": log.tools, KEY: log.mark},
            "scorers": [{"name": reader} for reader in log.readers],
        },
        "plan": {
            "name": "plan",
            "steps": [{"solver": "keju", "params": {"protocol": exam.protocol.name}}],
            "config": config,
        },
        "results": _results(log),
        "stats": {
            "started_at": manifest.created,
            "completed_at": _completion_time(log),
            "model_usage": _total_usage(log),
        },
    }


def _completion_time(log: RunLog) -> str:
    """Return when the last session ended, or the start of the run if no session is known."""
    sessions = log.manifest.sessions
    if not sessions or not sessions[-1].started:
        return log.manifest.created
    started = datetime.fromisoformat(sessions[-1].started)
    return (started + timedelta(seconds=sessions[-1].seconds)).isoformat()


def _results(log: RunLog) -> dict[str, Any]:
    """Return the metrics of each reader, and how many answers have a grade."""
    scores = []
    for entry in log.entries:
        graded = sum(n for outcome, n in entry.outcomes.items() if outcome not in UNSCORED)
        metrics: dict[str, Any] = {}
        for name, metric in known_metrics(entry).items():
            metrics[name] = {"name": name, "value": metric.value, "params": {}}
            if name == ACCURACY and isinstance(metric.se, float):
                metrics["stderr"] = {"name": "stderr", "value": metric.se, "params": {}}
        scores.append(
            {
                "name": entry.reader,
                "scorer": entry.reader,
                "scored_samples": graded,
                "unscored_samples": sum(entry.outcomes.values()) - graded,
                "params": {},
                "metrics": metrics,
                "metadata": {"outcomes": entry.outcomes, "warnings": list(entry.warnings)},
            }
        )
    counts = [sum(entry.outcomes.values()) for entry in log.entries[:1]]
    errors = sum(entry.outcomes.get("error", 0) for entry in log.entries[:1])
    expected_count = len(log.job.exam.samples) * log.job.epochs
    return {
        "total_samples": expected_count,
        "completed_samples": sum(counts) - errors,
        "scores": scores,
    }


def _total_usage(log: RunLog) -> dict[str, Any]:
    usage = log.entries[0].usage if log.entries else None
    if usage is None:
        return {}
    totals = Usage(
        usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.reasoning_tokens
    )
    return {log.manifest.model: _usage(totals)}


def _usage(usage: Usage) -> dict[str, int]:
    counts = {
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
    }
    if usage.cached:
        counts["input_tokens_cache_read"] = usage.cached
    if usage.reasoning:
        counts["reasoning_tokens"] = usage.reasoning
    return counts


def _sample(log: RunLog, answer: LoggedAnswer) -> dict[str, Any]:
    """Return an answer as a sample of the log."""
    sample, record = answer.sample, answer.record
    reply = record.reply
    readings = record.readings
    metadata = {
        "subset": sample.subset,
        "group": sample.group,
        "outcome": readings[0].score.outcome if readings else "ungraded",
        KEY: answer.pack(has_messages=True),
    }
    document = {
        "id": sample.id,
        "epoch": record.epoch + 1,
        "input": sample.text,
        "choices": list(sample.choices) or None,
        "target": record.target or sample.target,
        "messages": [_message(message) for message in answer.messages()],
        "output": _output(log, answer),
        "scores": {
            reading.reader: _score(reading)
            for reading in readings
            if reading.score.outcome not in UNSCORED
        },
        "metadata": {key: value for key, value in metadata.items() if value},
        "store": {},
        "events": [],
        "model_usage": {log.manifest.model: _usage(reply.usage)},
        "total_time": reply.seconds,
        "uuid": f"{record.hash[:20]}{record.epoch:02d}",
    }
    if error := answer.error:
        document["error"] = {"message": error, "traceback": "", "traceback_ansi": ""}
    return document


def _score(reading: Reading) -> dict[str, Any]:
    answer, score = reading.answer, reading.score
    facts = {
        "outcome": score.outcome,
        "tier": answer.tier,
        "reason": answer.reason,
        "rule": answer.rule,
        "grader": score.grader,
        "parts": score.parts,
    }
    return {
        "value": {1.0: "C", 0.0: "I"}.get(score.value, score.value),
        "answer": answer.value,
        "explanation": explain_reading(reading) or None,
        "metadata": {key: value for key, value in facts.items() if value},
    }


def _output(log: RunLog, answer: LoggedAnswer) -> dict[str, Any]:
    reply = answer.record.reply
    model = reply.model or log.manifest.model
    if reply.error is not None:
        return {"model": model, "choices": [], "error": answer.error}
    message = _message(LoggedMessage("assistant", reply.text, reply.reasoning))
    stop = STOP_REASONS.get(reply.finish or "stop", "unknown")
    return {
        "model": model,
        "choices": [{"message": message, "stop_reason": stop}],
        "usage": _usage(reply.usage),
        "time": reply.seconds,
    }


def _message(message: LoggedMessage) -> dict[str, Any]:
    """Return a message in Inspect's form."""
    content: Any = message.text
    if message.reasoning:
        content = [
            {"type": "reasoning", "reasoning": message.reasoning},
            {"type": "text", "text": message.text},
        ]
    document: dict[str, Any] = {"role": message.role, "content": content}
    if message.calls:
        document["tool_calls"] = [_tool_call(*call) for call in message.calls]
    if message.role == "tool":
        document |= {"tool_call_id": message.call, "function": message.tool}
        if message.failure:
            kind = CALL_ERRORS.get(message.failure, "unknown")
            text = message.text or message.failure
            document["error"] = {"type": kind, "message": text}
    return document


def _tool_call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    """Return a call. Arguments that are no JSON object are an error of the call."""
    document: dict[str, Any] = {"id": call_id, "function": name, "type": "function"}
    try:
        values = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        return document | {"arguments": {}, "parse_error": f"not a JSON object: {arguments}"}
    return document | {"arguments": values}


def _summary(sample: Mapping[str, Any]) -> dict[str, Any]:
    """Return the line of a sample in the list of an archive."""
    keys = ("id", "epoch", "choices", "target", "model_usage", "total_time", "uuid")
    summary = {key: sample[key] for key in keys}
    scores = {
        name: {"value": score["value"], "answer": score["answer"]}
        for name, score in sample["scores"].items()
    }
    metadata = {key: value for key, value in sample["metadata"].items() if key != KEY}
    summary |= {
        "input": sample["input"][:LONGEST_SUMMARY],
        "scores": scores,
        "metadata": metadata,
        "completed": True,
        "message_count": len(sample["messages"]),
    }
    if "error" in sample:
        summary["error"] = sample["error"]["message"]
    return summary


# Reading


def read_logs(source: LogSource, names: Iterable[str]) -> Iterator[RestoredLog]:
    """Yield the logs among `names` that Keju wrote."""
    for name in names:
        header, samples = open_log(source, name)
        document = nested(header, "eval", "metadata").get(KEY)
        if document:
            place = source.root / name
            mark = RunMark.read(document, place)
            yield RestoredLog(name, mark, _make_reader(place, mark, samples))


def _make_reader(
    place: Path, mark: RunMark, samples: Iterable[Mapping[str, Any]]
) -> Callable[[], Iterator[RestoredAnswer]]:
    def read() -> Iterator[RestoredAnswer]:
        for sample in samples:
            with row_errors(place):
                answer = _unpack_sample(f"{place}, sample {sample.get('id')}", mark, sample)
            yield answer

    return read


def _unpack_sample(where: str, mark: RunMark, sample: Mapping[str, Any]) -> RestoredAnswer:
    packed = PackedAnswer.read(nested(sample, "metadata").get(KEY), where)
    choices = nested(sample, "output").get("choices") or [{}]
    turns = [_texts(message) for message in (sample.get("messages") or ())[packed.prompt :]]
    record = packed.unpack(_texts(nested(choices[0], "message")), turns, where)
    score = nested(sample, "scores").get(next(iter(mark.readers), "")) or {}
    value = {"C": 1.0, "I": 0.0}.get(str(score.get("value")), score.get("value"))
    return RestoredAnswer(where, record, packed.verdicts, value, score.get("answer"))


def _texts(message: Mapping[str, Any]) -> StoredText:
    content = message.get("content")
    return StoredText(text_of(content), reasoning_of(content))
