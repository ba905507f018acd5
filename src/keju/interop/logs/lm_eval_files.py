"""Logs of lm-evaluation-harness 0.4: ``results_TIME.json`` and ``samples_TASK_TIME.jsonl``.

Each exam is a task and each reader a filter. Each arm has a folder, as each model has in lm-eval. A
line has all repeats of a question: ``resps`` is a list with the text of each, and the metric is
their mean. An answer without a grade has no value, instead of zero.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from keju.benchmarks.samples import DigestTable, text_digest
from keju.files import make_file_name, whole_file, write_json
from keju.interop.imports.lm_eval import SAMPLES_NAME
from keju.interop.imports.log import LogSource, nested, row_errors
from keju.interop.logs.packing import KEY, PackedAnswer, RunMark, StoredText
from keju.interop.logs.restored import RestoredAnswer, RestoredLog
from keju.interop.logs.run_logs import LoggedAnswer, RunLog, RunLogs, known_metrics
from keju.results.schema import ACCURACY, ResultEntry
from keju.types import UNSCORED, Reading

NOT_KNOWN = "N/A"
# `org/model:tag`: characters that lm-eval replaces in the name of a model
_SEPARATORS = re.compile(r'["<>:/|\\?*\[\]]+')


def write_logs(logs: RunLogs, target: Path) -> tuple[list[Path], int]:
    """Write the samples of each log and the results of each arm; return the files and the number
    of answers."""
    paths: list[Path] = []
    count = 0
    by_arm: dict[str, list[tuple[RunLog, str]]] = defaultdict(list)
    for log in logs:
        path = _folder(log, target) / f"samples_{_task(log)}_{_time(log)}.jsonl"
        answers, digest = _write_samples(log, path)
        count += answers
        paths.append(path)
        by_arm[log.arm].append((log, digest))
    for members in by_arm.values():
        first_log = members[0][0]
        path = _folder(first_log, target) / f"results_{_time(first_log)}.json"
        write_json(path, _results(members))
        paths.append(path)
    return paths, count


def _folder(log: RunLog, target: Path) -> Path:
    name = _SEPARATORS.sub("__", log.manifest.model)
    return target / make_file_name(f"{name}__{log.arm}" if log.arm else name)


def _task(log: RunLog) -> str:
    """Return the exam as the name of a task, without characters that file names cannot have."""
    return make_file_name(log.exam.name.replace("/", "_"))


def _time(log: RunLog) -> str:
    """Return the start of the run as lm-eval writes it: ``2026-01-01T12-00-00.000000``."""
    return log.manifest.created[:19].replace(":", "-") + ".000000"


# The results


def _results(members: Sequence[tuple[RunLog, str]]) -> dict[str, Any]:
    """Return the results of the exams of one arm."""
    log = members[0][0]
    manifest = log.manifest
    tasks = {_task(log): log for log, _ in members}
    seconds = sum(session.seconds for session in manifest.sessions)
    return {
        "results": {task: {"alias": task} | _figures(log) for task, log in tasks.items()},
        "group_subtasks": {task: [] for task in tasks},
        "configs": {task: _config(task, log) for task, log in tasks.items()},
        "versions": {task: str(log.exam.protocol.version) for task, log in tasks.items()},
        "n-shot": {task: log.exam.settings.get("few_shot_num") or 0 for task, log in tasks.items()},
        "higher_is_better": {task: {_metric(log): True} for task, log in tasks.items()},
        "n-samples": {
            task: {"original": len(log.job.exam.samples), "effective": len(log.job.exam.samples)}
            for task, log in tasks.items()
        },
        "config": {
            "model": "keju",
            "model_args": f"model={manifest.model}" + (f",arm={log.arm}" if log.arm else ""),
            "batch_size": None,
            "limit": manifest.config.get("limit"),
            "random_seed": manifest.config.get("seed"),
        },
        "date": manifest.created,
        "lm_eval_version": None,
        "task_hashes": {_task(log): digest for log, digest in members},
        "model_source": "keju",
        "model_name": manifest.model,
        "model_name_sanitized": _SEPARATORS.sub("__", manifest.model),
        "total_evaluation_time_seconds": str(seconds),
        KEY: {task: log.mark for task, log in tasks.items()},
    }


COMPARED = ("labels", "continuations")
"""The ways of decoding whose log-probabilities are compared."""


def _metric(log: RunLog) -> str:
    """Return lm-eval's name of the metric of single answers."""
    return "acc" if log.exam.sampling.get("decode") in COMPARED else "exact_match"


def _figures(log: RunLog) -> dict[str, Any]:
    """Return the metrics of all readers by lm-eval's names: ``exact_match,READER``."""
    figures: dict[str, Any] = {}
    for entry in log.entries:
        for name, metric in known_metrics(entry).items():
            title = _metric(log) if name == ACCURACY else name
            figures[f"{title},{entry.reader}"] = metric.value
            has_error = isinstance(metric.se, float)
            figures[f"{title}_stderr,{entry.reader}"] = metric.se if has_error else NOT_KNOWN
    return figures


def _config(task: str, log: RunLog) -> dict[str, Any]:
    exam = log.exam
    is_choice = _metric(log) == "acc"
    config = {
        "task": task,
        "dataset_path": log.repository or exam.name,
        "output_type": "multiple_choice" if is_choice else "generate_until",
        "num_fewshot": exam.settings.get("few_shot_num") or 0,
        "repeats": log.job.epochs,
        "metric_list": [{"metric": _metric(log), "aggregation": "mean", "higher_is_better": True}],
        "filter_list": [
            {"name": reader, "filter": [{"function": f"keju {reader}"}]} for reader in log.readers
        ],
        "metadata": {
            "version": str(exam.protocol.version),
            "protocol": exam.protocol.name,
            "outcomes": {entry.reader: entry.outcomes for entry in log.entries},
            "warnings": _warnings(log.entries),
        },
    }
    return config if is_choice else config | {"generation_kwargs": _generation(log)}


def _warnings(entries: Iterable[ResultEntry]) -> list[str]:
    return list(dict.fromkeys(warning for entry in entries for warning in entry.warnings))


def _generation(log: RunLog) -> dict[str, Any]:
    sampling = log.exam.sampling
    settings = {
        "temperature": sampling.get("temperature"),
        "top_p": sampling.get("top_p"),
        "max_gen_toks": sampling.get("max_tokens"),
        "until": list(sampling.get("stop") or ()) or None,
    }
    return {name: value for name, value in settings.items() if value is not None}


# The answers


def _write_samples(log: RunLog, path: Path) -> tuple[int, str]:
    """Write a line for each question and reader; return the number of answers and a hash."""
    count, hashes = 0, hashlib.sha256()
    ids = (text_digest(sample.id) for sample in log.job.exam.samples)
    numbers = DigestTable(ids, size=len(log.job.exam.samples))
    with whole_file(path) as stream:
        for sample_id, members in groupby(log.answers, key=lambda answer: answer.record.id):
            answers = list(members)
            count += len(answers)
            for row in _rows(log, numbers.find(text_digest(sample_id)), answers):
                hashes.update((row["doc_hash"] + row["prompt_hash"] + row["target_hash"]).encode())
                stream.write(msgspec.json.encode(row) + b"\n")
    return count, hashes.hexdigest()


def _rows(log: RunLog, number: int, answers: Sequence[LoggedAnswer]) -> Iterator[dict[str, Any]]:
    """Yield a line for each reader. The first has Keju's own part."""
    answer = answers[0]
    sample = answer.sample
    doc = {
        "id": sample.id,
        "subset": sample.subset,
        "index": sample.index,
        "question": sample.text,
        "options": list(sample.choices),
    }
    target = answer.record.target or sample.target
    metric = _metric(log)
    base = {
        "doc_id": number,
        "doc": doc,
        "target": target,
        "arguments": _arguments(log, answer),
        "resps": _responses(answers),
        "metrics": [metric],
        "doc_hash": _hash(json.dumps(doc, indent=2, ensure_ascii=False)),
        "prompt_hash": _hash(answer.prompt_text),
        "target_hash": _hash(target),
    }
    packed = {KEY: [repeat.pack(has_messages=False) for repeat in answers]}
    for place in range(len(answer.record.readings)):
        readings = [repeat.record.readings[place] for repeat in answers]
        yield (
            base
            | {
                "filtered_resps": _filtered(answers, readings),
                "filter": readings[0].reader,
                metric: _mean_score(readings),
                "outcomes": [reading.score.outcome for reading in readings],
            }
            | packed
        )
        packed = {}


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _arguments(log: RunLog, answer: LoggedAnswer) -> dict[str, dict[str, Any]]:
    """Return the prompt with the settings of the request, or with each text to compare."""
    if _metric(log) == "acc":
        lead = log.exam.sampling.get("label_lead") or ""
        has_texts = log.exam.sampling.get("decode") == "continuations"
        texts = answer.sample.choices if has_texts else answer.sample.labels
        return {
            f"gen_args_{n}": {"arg_0": answer.prompt_text, "arg_1": f"{lead}{text}"}
            for n, text in enumerate(texts)
        }
    return {"gen_args_0": {"arg_0": answer.prompt_text, "arg_1": _generation(log)}}


def _responses(answers: Sequence[LoggedAnswer]) -> list[Any]:
    """Return the texts of all repeats, or the log-probability of each label."""
    likelihoods = _likelihoods(answers[0])
    if likelihoods:
        return [[likelihood] for likelihood in likelihoods]
    return [[answer.record.reply.text for answer in answers]]


def _likelihoods(answer: LoggedAnswer) -> list[list[Any]]:
    """Return each label's log-probability and whether it is the highest, or each continuation's and
    whether it is greedy; empty for a text."""
    if scores := answer.record.reply.continuations:
        return [[score.logprob, score.greedy] for score in scores]
    values = answer.record.reply.label_logprobs
    labels = answer.sample.labels
    if not values or not set(labels) <= values.keys():
        return []
    highest = max(values.values())
    return [[values[label], values[label] == highest] for label in labels]


def _filtered(answers: Sequence[LoggedAnswer], readings: Sequence[Reading]) -> list[Any]:
    """Return what the reader extracted; lm-eval writes ``[invalid]`` where there is nothing."""
    likelihoods = _likelihoods(answers[0])
    if likelihoods:
        return likelihoods
    return [
        "[invalid]" if reading.answer.value is None else reading.answer.value
        for reading in readings
    ]


def _mean_score(readings: Sequence[Reading]) -> float | None:
    values = [reading.score.value for reading in readings if reading.score.outcome not in UNSCORED]
    return sum(values) / len(values) if values else None


# Reading


def read_logs(source: LogSource, names: Iterable[str]) -> Iterator[RestoredLog]:
    """Yield the logs among the files of samples that Keju wrote."""
    for name in names:
        match = SAMPLES_NAME.search(name)
        results_file = PurePosixPath(name).with_name(
            f"results_{match['time']}.json" if match else ""
        )
        if match is None or not source.has(str(results_file)):
            continue
        marks = source.mapping(str(results_file)).get(KEY) or {}
        if document := nested(marks, match["task"]):
            mark = RunMark.read(document, source.root / results_file)
            yield RestoredLog(name, mark, _make_reader(source, name, mark))


def _make_reader(
    source: LogSource, name: str, mark: RunMark
) -> Callable[[], Iterator[RestoredAnswer]]:
    reader = next(iter(mark.readers), "")

    def read() -> Iterator[RestoredAnswer]:
        for where, row in source.jsonl(name):
            if row.get("filter") == reader:
                with row_errors(source.root / where):
                    answers = list(_unpack_row(source.root / where, row))
                yield from answers

    return read


def _unpack_row(place: Path, row: Mapping[str, Any]) -> Iterator[RestoredAnswer]:
    """Yield the repeats of a line. Score and answer are known only if there is a single repeat."""
    replies = row.get("resps") or [[]]
    packed_answers = row.get(KEY) or []
    is_single = len(packed_answers) == 1
    metric = next(iter(row.get("metrics") or ()), "")
    filtered = (row.get("filtered_resps") or [None])[0]
    for number, document in enumerate(packed_answers):
        packed = PackedAnswer.read(document, place)
        texts = replies[0] if isinstance(replies[0], list) else []
        text = texts[number] if number < len(texts) and isinstance(texts[number], str) else ""
        record = packed.unpack(StoredText(text), [], place)
        has_answer = is_single and isinstance(filtered, str) and filtered != "[invalid]"
        yield RestoredAnswer(
            str(place),
            record,
            packed.verdicts,
            row.get(metric) if is_single else None,
            filtered if has_answer else None,
        )
