"""The answers of a run as logs: one log for each exam, and for each of its arms."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from itertools import groupby
from typing import Any, NamedTuple

import msgspec

from keju.benchmarks import registry
from keju.errors import UsageError
from keju.interop.logs.packing import PackedAnswer, RunMark, public_manifest
from keju.results.samples import exported_answers
from keju.results.schema import ACCURACY, BEST, WORST, Metric, ResultEntry, Results
from keju.results.score import current_results, score_run
from keju.runs.journal import VERDICTS, Records
from keju.runs.manifest import Manifest, StoredExam
from keju.runs.run import Run
from keju.scores.exam_scores import ExamScores
from keju.scores.stored_replies import ExamRequests, load_requests
from keju.types import Message, Outcome, Reading, Record, Sample, Turn

CHANCE = "chance"
"""The metric of an exam that guessing would reach."""
OUTCOME_TEXTS: Mapping[Outcome, str] = {
    "unparsed": "No answer was read from the reply.",
    "truncated": "The reply was cut off before an answer.",
    "refused": "The model refused to answer.",
    "ungraded": "The answer has no grade.",
    "unlabelled": "The question has no published answer.",
    "error": "No usable reply came.",
}
"""The meaning of outcomes other than right and wrong, for readers of a log."""


class LoggedMessage(NamedTuple):
    """A message of a conversation. The ids of its calls occur only once in the conversation."""

    role: str
    text: str
    reasoning: str = ""
    calls: tuple[tuple[str, str, str], ...] = ()
    """Id, name and arguments of the tools that the model called."""
    call: str = ""
    """The id of the call that a tool answers."""
    tool: str = ""
    """The name of that tool."""
    failure: str = ""
    """How the call ended, if it did not end well."""


class LoggedAnswer(NamedTuple):
    """An answer with its question, as a log shows it."""

    sample: Sample
    record: Record
    prompt: tuple[Message, ...]
    """The messages that were sent; of an imported run only the question is known."""
    verdicts: list[Record]

    @property
    def has_prompt(self) -> bool:
        """Whether the prompt is more than the question itself."""
        return [message.content for message in self.prompt] != [self.sample.text]

    @property
    def prompt_text(self) -> str:
        """The prompt as one text."""
        return "\n\n".join(message.content for message in self.prompt)

    @property
    def error(self) -> str:
        """Why the model gave no usable reply, in words; empty if it did."""
        fault = self.record.reply.fault
        if fault is not None:
            return f"{fault.kind}: {fault.message}"
        is_error = any(reading.score.outcome == "error" for reading in self.record.readings[:1])
        return OUTCOME_TEXTS["error"] if is_error else ""

    def messages(self) -> list[LoggedMessage]:
        """Return the conversation: the prompt, then the reply or the turns of its episode."""
        prompt = [LoggedMessage(message.role, message.content) for message in self.prompt]
        reply = self.record.reply
        if reply.episode is not None:
            return [*prompt, *_conversation(reply.episode.turns)]
        if reply.error is not None:
            return prompt
        return [*prompt, LoggedMessage("assistant", reply.text, reply.reasoning)]

    def pack(self, *, has_messages: bool) -> dict[str, Any]:
        """Return the part of the answer that only Keju needs."""
        packed = PackedAnswer.pack(
            self.record, len(self.prompt), self.verdicts, has_messages=has_messages
        )
        document: dict[str, Any] = msgspec.to_builtins(packed)
        return document


def _conversation(turns: Iterable[Turn]) -> Iterator[LoggedMessage]:
    """Yield the turns of an episode. Calls with an id that occurred before get a number."""
    counts: dict[str, int] = {}
    last_calls: dict[str, tuple[str, str]] = {}
    for turn in turns:
        calls = []
        for call in turn.calls:
            counts[call.id] = number = counts.get(call.id, 0) + 1
            unique_id = call.id if number == 1 else f"{call.id}_{number}"
            last_calls[call.id] = unique_id, call.name
            calls.append((unique_id, call.name, call.arguments))
        call_id, tool = last_calls.get(turn.call, (turn.call, ""))
        failure = "" if turn.kind == "ok" else turn.kind
        yield LoggedMessage(
            turn.role, turn.text, turn.reasoning, tuple(calls), call_id, tool, failure
        )


@dataclass(frozen=True, kw_only=True)
class RunLog:
    """One exam of a run in one arm, with its results and its answers."""

    run: str
    manifest: Manifest
    exam: StoredExam
    arm: str
    entries: Sequence[ResultEntry]
    """The results of the readers, the headline's first."""
    job: ExamScores
    answers: Iterator[LoggedAnswer]
    """The answers in the order of the exam. Read them once, before the answers of the next log."""
    leftover_verdicts: list[Record]

    @property
    def title(self) -> str:
        """The exam, and the arm if there is one: ``demo-calc``."""
        return f"{self.exam.name}-{self.arm}" if self.arm else self.exam.name

    @property
    def readers(self) -> list[str]:
        """The names of the readers, the headline's first."""
        return [reader.name for reader in self.job.readers]

    @property
    def repository(self) -> str:
        """The data set of the exam on Hugging Face's hub; empty if there is none."""
        is_registered = self.exam.name in registry.names()
        layout = registry.get(self.exam.name).layout if is_registered else None
        repository = layout.hubs.get("huggingface") if layout is not None else None
        return repository.repo if repository is not None else ""

    @property
    def tools(self) -> list[str]:
        """The names of the tools of the arm."""
        arms = self.manifest.arms or {}
        return list((arms.get(self.arm) or {}).get("tools") or ())

    @cached_property
    def mark(self) -> dict[str, Any]:
        """Keju's own description of the run."""
        mark = RunMark(
            version=metadata.version("keju"),
            exam=self.exam.name,
            arm=self.arm,
            readers=self.readers,
            manifest=public_manifest(self.manifest),
            verdicts=self.leftover_verdicts,
        )
        document: dict[str, Any] = msgspec.to_builtins(mark)
        return document


class RunLogs:
    """The logs of a run, one for each exam and arm."""

    def __init__(self, run: Run, data_dir: str | None = None) -> None:
        """Load the exams. Raise UsageError if their data is missing."""
        self.run = run
        self._data_dir = data_dir
        self._requests = load_requests(run, data_dir)

    def __len__(self) -> int:
        """Return the number of exams and arms. Those without answers have no log."""
        return len(self._requests.jobs)

    def __iter__(self) -> Iterator[RunLog]:
        """Yield the logs. Raise UsageError if the run has no answers."""
        run, requests = self.run, self._requests
        exams = {exam.name: exam for exam in run.manifest.benchmarks}
        jobs = {(job.exam.benchmark, job.arm): job for job in requests.jobs}
        entries = [
            entry
            for exam in exams.values()
            for entry in _read_entries(run, exam, requests, self._data_dir)
        ]
        verdicts = _VerdictTable(run, requests)
        leftover = verdicts.leftover()
        is_empty = True
        for (name, arm), answers in groupby(_join_questions(run, requests), key=_log_key):
            is_empty = False
            job = jobs[name, arm]
            yield RunLog(
                run=run.id,
                manifest=run.manifest,
                exam=exams[name],
                arm=arm,
                entries=[entry for entry in entries if (entry.name, entry.arm) == (name, arm)],
                job=job,
                answers=_iter_logged(run, job, answers, verdicts),
                leftover_verdicts=leftover,
            )
        if is_empty:
            raise UsageError("export_nothing", run=run.id)


def _join_questions(run: Run, requests: ExamRequests) -> Iterator[tuple[Sample, Record]]:
    for sample, record in exported_answers(run, requests):
        assert sample is not None
        yield sample, record


def _log_key(answer: tuple[Sample, Record]) -> tuple[str, str]:
    return answer[1].bench, answer[1].arm


def _iter_logged(
    run: Run, job: ExamScores, answers: Iterable[tuple[Sample, Record]], verdicts: _VerdictTable
) -> Iterator[LoggedAnswer]:
    """Yield the answers of a log. The first answer to a question has its verdicts."""
    is_asked_by_keju = run.manifest.imported is not True
    previous_id = ""
    for sample, record in answers:
        prompt = _find_prompt(job, sample) if is_asked_by_keju else (Message("user", sample.text),)
        is_first = record.id != previous_id
        previous_id = record.id
        yield LoggedAnswer(sample, record, prompt, verdicts.find(record.id) if is_first else [])


def _find_prompt(job: ExamScores, sample: Sample) -> tuple[Message, ...]:
    """Return the messages of a question as Keju sends them."""
    prompt = job.exam.render(sample)
    if job.sampling.form == "completion":
        return (Message("user", prompt.text),)
    return tuple(prompt.cued_messages)


def _read_entries(
    run: Run, exam: StoredExam, requests: ExamRequests, data_dir: str | None
) -> Sequence[ResultEntry]:
    """Return the results of an exam, with one entry for each reader and arm."""
    job = next(job for job in requests.jobs if job.exam.benchmark == exam.name)
    readers = [reader.name for reader in job.readers]
    results: Results = (
        score_run(run, readers=readers, data_dir=data_dir, exam=exam.name)
        if len(readers) > 1
        else current_results(run, data_dir)
    )
    return [entry for entry in results.benchmarks if entry.name == exam.name]


class _VerdictTable:
    """The replies of a run's judges by the question that they are about."""

    def __init__(self, run: Run, requests: ExamRequests) -> None:
        self._positions: dict[str, array[int]] = {}
        self._records: Records | None = None
        self._requests = requests
        if (run.folder / VERDICTS).is_file():
            self._records = Records(run.folder, VERDICTS)
            for start, record in self._records.iter_with_positions():
                self._positions.setdefault(record.id, array("q")).append(start)

    def find(self, sample_id: str) -> list[Record]:
        """Return the verdicts about one question."""
        positions = self._positions.get(sample_id)
        return list(self._records.at(positions)) if positions and self._records else []

    def leftover(self) -> list[Record]:
        """Return the verdicts about none of the run's questions."""
        if self._records is None:
            return []
        ids = {sample.id for job in self._requests.jobs for sample in job.exam.samples}
        return [record for record in self._records if record.id not in ids]


def headline_metric(entry: ResultEntry) -> tuple[str, Metric] | None:
    """Return the metric of which the scores of single answers are the items, if it has a value."""
    for name in (ACCURACY, entry.headline):
        metric = entry.metrics.get(name)
        if metric is not None and metric.value is not None:
            return name, metric
    return None


def known_metrics(entry: ResultEntry) -> dict[str, Metric]:
    """Return the metrics of the model that have a value. Chance is a fact about the exam."""
    return {
        name: metric
        for name, metric in entry.metrics.items()
        if metric.value is not None and name not in (CHANCE, WORST, BEST)
    }


def explain_reading(reading: Reading) -> str:
    """Return how an answer was read and graded, in words."""
    answer, score = reading.answer, reading.score
    parts = [OUTCOME_TEXTS.get(score.outcome, ""), answer.reason]
    if answer.passage:
        parts.append(f"Read from: {answer.passage}")
    if score.grader:
        parts.append(f"Graded by: {score.grader}")
    return "\n".join(filter(None, parts))
