"""verifiers: 0.3's ``results.jsonl`` with ``metadata.json``, and 0.4's ``traces.jsonl``."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from keju.benchmarks.samples import DigestTable, text_digest
from keju.errors import DataError
from keju.interop.imports.log import (
    LogPart,
    LogRow,
    LogRows,
    LogSource,
    LogTask,
    ModelLog,
    RunningMean,
    failed_reply,
    find_task,
    make_reply,
    malformed_reply,
    nested,
    prompt_of,
    row_errors,
    to_number,
)
from keju.types import Reply

TOOL = "verifiers"
RESULTS, METADATA, TRACES = "results.jsonl", "metadata.json", "traces.jsonl"


def find(source: LogSource) -> list[str]:
    """Return the files of rollouts."""
    results = [
        name
        for name in source.matching_names(RESULTS)
        if source.has(str(PurePosixPath(name).with_name(METADATA)))
        and {"completion", "reward"} <= source.first_object(name).keys()
    ]
    traces = [
        name for name in source.matching_names(TRACES) if "traces" in source.first_object(name)
    ]
    return results + traces


def read(source: LogSource, names: Sequence[str]) -> ModelLog:
    """Return the logs of one model, with a part for each file."""
    logs = [
        _read_traces(source, n) if n.endswith(TRACES) else _read_results(source, n) for n in names
    ]
    models = {log.model for log in logs}
    source.refuse_several_models(models)
    return ModelLog(
        tool=TOOL,
        version=logs[0].version,
        model=models.pop(),
        parts=[part for log in logs for part in log.parts],
        files=source.hashes,
    )


def _find_exam_task(environment: str) -> LogTask:
    """Return the exam of an environment's id: ``OWNER/keju-NAME@0.1.2`` gives ``NAME``."""
    name = environment.rpartition("/")[2].partition("@")[0]
    name = name[len("keju-") :] if name.startswith(("keju-", "keju_")) else name
    return find_task(TOOL, name.replace("-", "_").lower())


class _EpochCounter:
    """Counts the occurrences of each question in a log: each row is one more rollout."""

    def __init__(self) -> None:
        self._table = DigestTable()
        self._counts = array("I")

    def next_epoch(self, question: Any) -> int:
        """Return the epoch of the next row of a question; TypeError if it is not hashable, as a
        list."""
        hash(question)
        number = self._table.add(text_digest(repr(question)))
        if number == len(self._counts):
            self._counts.append(0)
        self._counts[number] += 1
        return self._counts[number] - 1


# --- 0.3 -------------------------------------------------------------------------------------


def _read_results(source: LogSource, name: str) -> ModelLog:
    facts = source.mapping(str(PurePosixPath(name).with_name(METADATA)))
    environment = str(facts.get("env_id") or "")
    settings = facts.get("env_args") or {}
    sampling = facts.get("sampling_args") or {}
    reward = to_number(facts.get("avg_reward"))
    part = LogPart(
        task=environment,
        rows=LogRows(_read_rollouts(source, name)),
        protocol=str(settings.get("protocol") or ""),
        reported={} if reward is None else {"avg_reward": reward},
        n=_count_rollouts(facts),
        sampling={key: value for key, value in sampling.items() if value not in ({}, None)},
    )
    return ModelLog(
        tool=TOOL,
        version=str(nested(facts, "version_info").get("vf_version") or ""),
        model=str(facts.get("model") or "unknown"),
        parts=[part.read_as(_find_exam_task(environment), settings)],
        files={},
    )


def _count_rollouts(facts: Mapping[str, Any]) -> int | None:
    """Return the number of rollouts of the run."""
    examples, rollouts = facts.get("num_examples"), facts.get("rollouts_per_example")
    if not isinstance(examples, int) or not isinstance(rollouts, int) or examples < 1:
        return None
    return examples * rollouts


def _read_rollouts(source: LogSource, name: str) -> Iterator[LogRow]:
    epochs = _EpochCounter()
    for where, row in source.jsonl(name):
        if not {"completion", "reward"} <= row.keys():
            raise DataError("import_no_prediction", where=source.root / where, tool=TOOL)
        with row_errors(source.root / where):
            info = row["info"] if isinstance(row.get("info"), Mapping) else {}
            example = row.get("example_id")
            reply = _read_reply(row)
            rollout = LogRow(
                where=where,
                reply=reply,
                keys=_sample_keys(info),
                subset=str(info.get("subset") or ""),
                index=example if isinstance(example, int) else None,
                prompt=prompt_of(row.get("prompt")),
                choices=tuple(map(str, info.get("choices") or ())),
                target=str(row.get("answer") or ""),
                verdict=None if reply.error else to_number(row.get("reward")),
                epoch=epochs.next_epoch(example),
            )
        yield rollout


def _sample_keys(info: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ids in a row's own facts. Keju's environments store the id of the sample."""
    ids = {key: info[key] for key in ("question_id", "capsule_uuid", "id") if info.get(key)}
    if "id" not in ids and isinstance(info.get("sample_id"), str):
        ids["id"] = info["sample_id"]
    return ids


def _read_reply(row: Mapping[str, Any]) -> Reply:
    if row.get("error"):
        return failed_reply(row["error"])
    completion = row["completion"]
    if isinstance(completion, str):
        return make_reply(completion)
    last_answer = _find_last_answer(completion)
    if last_answer is None:
        return malformed_reply(completion)
    return make_reply(
        last_answer.get("content"),
        reasoning=last_answer.get("reasoning_content"),
        finish="length" if row.get("is_truncated") else "",
        usage=row.get("token_usage"),
        seconds=nested(row, "timing", "generation").get("duration"),
    )


def _find_last_answer(completion: Any) -> Mapping[str, Any] | None:
    """Return the last message of the model; None if the completion is not a list of messages."""
    turns = completion if isinstance(completion, list) else []
    if not all(isinstance(turn, Mapping) for turn in turns):
        return None
    return next((turn for turn in reversed(turns) if turn.get("role") == "assistant"), None)


# --- 0.4 -------------------------------------------------------------------------------------


def _read_traces(source: LogSource, name: str) -> ModelLog:
    rows, rewards, epochs = LogRows(), RunningMean(), _EpochCounter()
    header = _TraceHeader()
    for where, episode in source.jsonl(name):
        with row_errors(source.root / where):
            trace: dict[str, Any] = next(iter(episode.get("traces") or ()), {})
            data = (episode.get("task") or trace.get("task") or {}).get("data") or {}
            header.add(episode, trace, data)
            epoch = epochs.next_epoch(data.get("id", data.get("idx")))
            row = _read_trace(where, episode, trace, data, epoch)
            rows.append(row)
            if row.verdict is not None:
                rewards.add(row.verdict)
    part = _make_traces_part(header, rows, rewards.value)
    model = header.model or "unknown"
    return ModelLog(tool=TOOL, version=header.version, model=model, parts=[part], files={})


@dataclass
class _TraceHeader:
    """The facts about a whole log: the first that any of its rows has."""

    environment: str = ""
    version: str = ""
    model: str = ""
    exam: Mapping[str, Any] = field(default_factory=dict)

    def add(
        self, episode: Mapping[str, Any], trace: Mapping[str, Any], data: Mapping[str, Any]
    ) -> None:
        """Take the facts that are still missing from a row."""
        self.environment = self.environment or str(nested(episode, "env").get("id") or "")
        self.version = self.version or str(nested(trace, "verifiers").get("version") or "")
        self.model = self.model or str(nested(trace, "agent", "config").get("model") or "")
        self.exam = self.exam or nested(data, "exam")


def _make_traces_part(header: _TraceHeader, rows: LogRows, mean: float | None) -> LogPart:
    """Return the rows as a part, read as the exam that the environment asked."""
    exam = header.exam
    settings = dict(nested(exam, "settings"))
    part = LogPart(
        task=header.environment,
        rows=rows,
        protocol=str(exam.get("protocol") or settings.get("protocol") or ""),
        reported={} if mean is None else {"mean reward of these rows": mean},
    )
    settings |= {"seed": settings.get("seed", exam.get("seed"))}
    task = _find_exam_task(str(exam.get("benchmark") or "") or header.environment)
    return part.read_as(task, settings)


def _read_trace(
    where: str,
    episode: Mapping[str, Any],
    trace: Mapping[str, Any],
    data: Mapping[str, Any],
    epoch: int,
) -> LogRow:
    nodes = [node for node in trace.get("nodes") or () if isinstance(node.get("message"), dict)]
    prompt_messages = [node["message"] for node in nodes if not node.get("sampled")]
    answers = [node["message"] for node in nodes if node.get("sampled")]
    index = data.get("idx")
    return LogRow(
        where=where,
        reply=_read_trace_reply(episode, trace, answers),
        keys=_sample_keys(data),
        subset=str(data.get("subset") or ""),
        index=index if isinstance(index, int) else None,
        prompt=prompt_of(prompt_messages) or str(data.get("prompt") or ""),
        target=str(data.get("target") or data.get("answer") or ""),
        verdict=_sum_rewards(trace),
        epoch=epoch,
    )


def _sum_rewards(trace: Mapping[str, Any]) -> float | None:
    """Return the weighted sum of the rewards; None if scoring did not run."""
    rewards = list(nested(trace, "rewards").values())
    if not rewards or None in rewards:
        return None
    return float(sum(r.get("score", 0.0) * r.get("weight", 1.0) for r in rewards))


def _read_trace_reply(
    episode: Mapping[str, Any], trace: Mapping[str, Any], answers: Sequence[Mapping[str, Any]]
) -> Reply:
    errors = trace.get("errors") or episode.get("errors")
    if errors and not (trace.get("ok") and answers):
        last_error = errors[-1]
        return failed_reply(
            last_error.get("message") if isinstance(last_error, Mapping) else last_error
        )
    call = (trace.get("calls") or [{}])[-1]
    message = answers[-1] if answers else {}
    time = call.get("time") or {}
    return make_reply(
        message.get("content"),
        reasoning=message.get("reasoning_content"),
        finish=call.get("finish_reason"),
        usage=call.get("usage"),
        seconds=time.get("end", 0.0) - time.get("start", 0.0) if time else 0.0,
        model=call.get("model"),
    )
