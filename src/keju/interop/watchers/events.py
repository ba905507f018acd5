"""``--events FILE``: the events of a run as JSON lines, one object for each event.

The structs below are the schema, version 1. Within a version, keys are never renamed or removed and
never change their meaning. Keys and events may be added. No event contains a secret, or the text of
a question, a prompt, a reply or an endpoint's message.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib import metadata
from time import time

import msgspec

from keju.errors import KejuError, Notice, UsageError
from keju.interop.watchers.stream import LineStream
from keju.progress.display import Pause, Progress
from keju.progress.watching import Follower, HeadlineScore, RequestAttempt, SessionOutline, Watcher
from keju.scores.exam_scores import ExamScores
from keju.types import FaultKind, Outcome, Record

VERSION = 1
PROGRESS_EVERY = 1.0
"""Seconds between two events of progress."""


def _event_tag(name: str) -> str:
    """Return ``session_started`` for ``SessionStarted``."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


class Event(msgspec.Struct, kw_only=True, tag_field="event", tag=_event_tag, gc=False):
    """The keys of every line, in addition to ``event``."""

    v: int = VERSION
    at: float
    """Seconds since 1970."""
    run: str
    """The id of the run, or of the matrix in events of a matrix."""


class ExamWork(msgspec.Struct, frozen=True, kw_only=True):
    """The work of one exam in one arm."""

    exam: str
    arm: str
    units: int
    """The number of answers: questions times repeats."""


class SessionStarted(Event):
    """A session starts to ask a model or a judge for missing replies."""

    stage: str
    """``exam`` or ``judge``."""
    model: str
    endpoints: tuple[str, ...]
    """Addresses without credentials; empty for models in the process."""
    exams: tuple[ExamWork, ...]
    total: int
    known: int
    """The number of answers in `total` that already exist."""
    keju: str
    pid: int


class SampleAnswered(Event, tag="sample"):
    """A question has an answer in the journal."""

    stage: str
    exam: str
    arm: str
    id: str
    epoch: int
    subset: str
    outcome: Outcome
    score: float
    """The score by the headline's reader, like the outcome. Judges may grade it later."""
    seconds: float
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    requests: int
    """The number of requests for it, including failed ones."""
    faults: tuple[FaultKind, ...]
    """Faults of the attempts that were repeated."""
    error: FaultKind | None
    """Why there is no answer."""


class AttemptFailed(Event, tag="fault"):
    """An attempt failed; another one may follow."""

    stage: str
    exam: str
    arm: str
    endpoint: str
    kind: FaultKind
    status: int
    """The HTTP status; 0 without one."""
    seconds: float
    attempt: int
    """1 for the first attempt of its request."""
    retry_after: float | None


class ExamProgressEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of one exam."""

    exam: str
    """With its arm, if it has one: ``demo/calculator``."""
    graded: int
    score: float | None
    """The mean so far; None while nothing is graded."""


class ProgressMade(Event, tag="progress"):
    """The progress of the session; at most once a second, and at its end."""

    stage: str
    done: int
    total: int
    correct: int
    unparsed: int
    truncated: int
    refused: int
    errors: int
    exams: tuple[ExamProgressEntry, ...]
    requests: int
    """This and the following numbers are of the current session."""
    retries: int
    input_tokens: int
    output_tokens: int
    cost: float | None
    elapsed: float
    in_flight: int
    limit: int
    """The current limit of requests in flight."""


class Paused(Event):
    """Requests are held back: ``down``, ``stopping``, ``overload``, ``rate`` or ``retry``."""

    stage: str
    why: Pause


class Resumed(Event):
    """Requests are no longer held back."""

    stage: str


class SessionEnded(Event):
    """The session is over."""

    stage: str
    done: int
    total: int
    stop: str | None
    """The code of the error that ended it early."""
    exit_code: int


class RunFinished(Event):
    """The run has its results."""

    complete: bool
    stop: str | None
    exit_code: int
    headlines: tuple[HeadlineScore, ...]


class MatrixStarted(Event, tag="plan_started"):
    """The runs of a matrix are about to begin; `run` is the matrix's name."""

    runs: tuple[str, ...]


class MatrixFinished(Event, tag="plan_finished"):
    """All runs of the matrix are over."""

    stop: str | None
    exit_code: int


class LinesDropped(Event, tag="dropped"):
    """The number of lines that were lost because the reader was too slow."""

    lines: int


EVENTS = (
    SessionStarted
    | SampleAnswered
    | AttemptFailed
    | ProgressMade
    | Paused
    | Resumed
    | SessionEnded
    | RunFinished
    | MatrixStarted
    | MatrixFinished
    | LinesDropped
)


def code_of(stop: KejuError | None) -> str | None:
    """Return the code of an error that ended something; the class name for a plug-in's sentence."""
    if stop is None:
        return None
    return stop.code if stop.code.isidentifier() else type(stop).__name__


class EventStream(Watcher):
    """Writes the events of all runs of this process."""

    name = "--events"

    def __init__(self, path: str, say: Callable[[Notice], None]) -> None:
        """Raise UsageError if `path` cannot be written. Later failures are reported to `say`."""
        if path == "-":
            raise UsageError("events_stdout")
        self._say: Callable[[Notice], None] | None = say
        self._encode = msgspec.json.Encoder().encode
        self._stream = LineStream(path, self._encode_dropped)

    def follow(self, session: SessionOutline) -> Follower:
        """Return the follower of a session."""
        return _EventFollower(self, session)

    def finished(
        self, run: str, headlines: Sequence[HeadlineScore], complete: bool, stop: KejuError | None
    ) -> None:
        """Write a run's results."""
        code = stop.exit_code if stop is not None else 0
        self.write(
            RunFinished(
                at=_now(),
                run=run,
                complete=complete,
                stop=code_of(stop),
                exit_code=code,
                headlines=tuple(headlines),
            )
        )
        self.flush()

    def matrix_started(self, matrix: str, runs: Sequence[str]) -> None:
        """Write the start of a matrix."""
        self.write(MatrixStarted(at=_now(), run=matrix, runs=tuple(runs)))
        self.flush()

    def matrix_finished(self, matrix: str, stop: KejuError | None) -> None:
        """Write the end of a matrix."""
        code = stop.exit_code if stop is not None else 0
        self.write(MatrixFinished(at=_now(), run=matrix, stop=code_of(stop), exit_code=code))
        self.flush()

    def write(self, event: Event) -> None:
        """Take an event; `flush` writes it."""
        self._stream.write(self._encode(event) + b"\n")

    def flush(self) -> None:
        """Write the events so far."""
        self._stream.flush()
        if self._stream.problem is not None:
            self._complain()

    def close(self) -> None:
        """Write the remaining events."""
        self._stream.close()
        if self._stream.problem is not None:
            self._complain()

    def _complain(self) -> None:
        say, self._say = self._say, None
        if say is not None:
            values = {"place": self._stream.path, "problem": self._stream.problem}
            say(Notice("events_lost", values))

    def _encode_dropped(self, lines: int) -> bytes:
        return self._encode(LinesDropped(at=_now(), run="", lines=lines)) + b"\n"


def _now() -> float:
    return round(time(), 3)


class _EventFollower(Follower):
    """The events of one session."""

    def __init__(self, stream: EventStream, session: SessionOutline) -> None:
        self._stream = stream
        self._run, self._stage = session.run, session.stage
        self._pause: Pause | None = None
        self._next_progress = 0.0
        self._last_progress: Progress | None = None
        self._known_count, self._total = session.reused, session.total
        stream.write(
            SessionStarted(
                at=_now(),
                run=self._run,
                stage=self._stage,
                model=session.model,
                endpoints=session.endpoints,
                exams=tuple(
                    ExamWork(exam=job.exam.benchmark, arm=job.arm, units=job.units)
                    for job in session.jobs
                ),
                total=session.total,
                known=session.reused,
                keju=metadata.version("keju"),
                pid=os.getpid(),
            )
        )
        stream.flush()

    def attempted(self, attempt: RequestAttempt) -> None:
        fault = attempt.reply.error
        if fault is None:
            return
        self._stream.write(
            AttemptFailed(
                at=_now(),
                run=self._run,
                stage=self._stage,
                exam=attempt.job.exam.benchmark if attempt.job is not None else "",
                arm=attempt.job.arm if attempt.job is not None else "",
                endpoint=attempt.endpoint,
                kind=fault.kind,
                status=fault.status,
                seconds=round(attempt.seconds, 4),
                attempt=attempt.number,
                retry_after=fault.retry_after,
            )
        )

    def answered(self, job: ExamScores, unit: int, record: Record) -> None:
        reply, score = record.reply, record.readings[0].score
        fault = reply.fault
        self._stream.write(
            SampleAnswered(
                at=_now(),
                run=self._run,
                stage=self._stage,
                exam=record.bench,
                arm=record.arm,
                id=record.id,
                epoch=record.epoch,
                subset=job.exam.samples[unit // job.epochs].subset,
                outcome=score.outcome,
                score=score.value,
                seconds=round(reply.seconds, 4),
                input_tokens=reply.usage.input,
                output_tokens=reply.usage.output,
                cached_tokens=reply.usage.cached,
                requests=reply.requests + sum(attempt.sent for attempt in record.faults),
                faults=tuple([attempt.kind for attempt in record.faults]),
                error=None if fault is None else fault.kind,
            )
        )

    def progressed(self, progress: Progress) -> None:
        self._last_progress = progress
        if progress.pause != self._pause:
            self._pause = progress.pause
            self._stream.write(
                Resumed(at=_now(), run=self._run, stage=self._stage)
                if progress.pause is None
                else Paused(at=_now(), run=self._run, stage=self._stage, why=progress.pause)
            )
        if progress.elapsed >= self._next_progress:
            self._next_progress = progress.elapsed + PROGRESS_EVERY
            self._write_progress(progress)
        self._stream.flush()

    def _write_progress(self, progress: Progress) -> None:
        exams = tuple(
            ExamProgressEntry(
                exam=exam.exam,
                graded=exam.graded,
                score=exam.score / exam.graded if exam.graded else None,
            )
            for exam in progress.exams
        )
        self._stream.write(
            ProgressMade(
                at=_now(),
                run=self._run,
                stage=self._stage,
                done=progress.done,
                total=progress.total,
                correct=progress.right,
                unparsed=progress.unparsed,
                truncated=progress.truncated,
                refused=progress.refused,
                errors=progress.errors,
                exams=exams,
                requests=progress.requests,
                retries=progress.retries,
                input_tokens=progress.input_tokens,
                output_tokens=progress.output_tokens,
                cost=progress.cost,
                elapsed=round(progress.elapsed, 3),
                in_flight=progress.in_flight,
                limit=progress.limit,
            )
        )

    def ended(self, stop: KejuError | None) -> None:
        if self._last_progress is not None:
            self._write_progress(self._last_progress)
        self._stream.write(
            SessionEnded(
                at=_now(),
                run=self._run,
                stage=self._stage,
                done=self._last_progress.done
                if self._last_progress is not None
                else self._known_count,
                total=self._total,
                stop=code_of(stop),
                exit_code=stop.exit_code if stop is not None else 0,
            )
        )
        self._stream.flush()
