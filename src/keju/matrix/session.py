"""One process working on a matrix: each of its runs has a thread.

Runs at the same endpoint form a queue in the order of the matrix. Different endpoints have separate
queues, and so do models in this process. The next run of a queue starts when the run before it has
asked all its questions: it gets the slots that the last replies of that run leave free
(`keju.engine.run_sharing`). Models in this process never work at the same time.

An error that ends one run does not end the others. A complete run with unchanged settings is not
opened again.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

import msgspec

from keju.config import TaskConfig
from keju.config.matrix import MatrixConfig, MatrixPair
from keju.engine.limits import RateLimits as PaceRates
from keju.engine.limits import SpentAmounts
from keju.engine.run_sharing import SHARE, RunSharing, SharedBudget, SharedSlots
from keju.errors import DataError, Interrupted, KejuError, RunIncomplete
from keju.messages import label_text
from keju.models.registry import endpoint_tasks, is_local, make_model, model_name
from keju.progress.display import Display, Progress
from keju.progress.watching import WATCHER
from keju.reporting.board import Board, RunLine, State, score_interval
from keju.reporting.throughput import ProgressThroughput
from keju.runs.manifest import MANIFEST, Manifest, describe_environment, make_storable
from keju.runs.run import Run
from keju.signals import REMOTE, ThreadInterrupter, call_between_steps
from keju.task import FinishedTask, run_exams

MOST_AT_ONCE = 4
"""The number of runs of one queue that may be active: one that asks, and the ends of earlier
ones."""
PULSE = 0.2
"""Seconds between two looks at the runs."""
KEPT_PACE = 5.0
"""Seconds between two records of the matrix's duration."""
LOCAL = "local"
"""The queue of models in this process."""


@dataclass(eq=False)
class MatrixRun:
    """One run of a matrix and its state."""

    pair: MatrixPair
    rank: int
    queue: str
    """The queue in which it waits."""
    state: State = "waiting"
    progress: Progress | None = None
    asked_all: bool = False
    """Whether every question that it may ask has been sent at least once."""
    answer_counts: tuple[int, int] | None = None
    """The number of its answers in total and of those reused, once it is known."""
    rates: ProgressThroughput = field(default_factory=ProgressThroughput)
    finished: FinishedTask | None = None
    error: KejuError | None = None
    """Why it ended early."""
    was_complete: bool = False
    """Whether it was complete before the session."""
    remote: ThreadInterrupter = field(default_factory=ThreadInterrupter)
    thread: threading.Thread | None = None
    crash: BaseException | None = None

    @property
    def under_way(self) -> bool:
        """Whether its thread is working."""
        return self.state in ("running", "judging")

    @property
    def board_line(self) -> RunLine:
        """The run as a line of the board."""
        pair, error = self.pair, self.error
        line = RunLine(
            run=pair.run,
            model=pair.model,
            exam=pair.exam,
            state=self.state,
            why="" if error is None else error.message,
            was_complete=self.was_complete,
        )
        total, reused_count = self.answer_counts or (0, 0)
        progress = self.progress
        if progress is None:
            return line._replace(done=reused_count, total=total)
        score = graded = 0.0
        for standing in progress.exams:
            score, graded = score + standing.score, graded + standing.graded
        repeats = progress.exams[0].repeats if progress.exams else 1
        mean = score / graded if graded else None
        return line._replace(
            done=progress.done,
            total=progress.total,
            score=mean,
            ends=None if mean is None else score_interval(mean, int(graded), repeats),
            errors=progress.errors,
            in_flight=progress.in_flight,
            oldest=progress.oldest,
            requests=progress.requests,
            tokens=progress.input_tokens + progress.output_tokens,
            cost=progress.cost,
            retries=progress.retries,
            speed=self.rates.pace(),
            left=self.rates.seconds_remaining(progress.total),
            pause=progress.pause,
        )


class _BoardDisplay(Display):
    """Passes the progress of a run on to the board."""

    def __init__(self, work: MatrixRun, board: Board) -> None:
        self._work, self._board = work, board

    def start(self, total: int, reused: int, benchmarks: Sequence[str]) -> None:
        if self._work.answer_counts is None:
            self._work.answer_counts = total, reused
        else:  # The second stage is the judge's.
            self._work.state = "judging"

    def update(self, snapshot: Progress) -> None:
        work = self._work
        if work.state == "judging":
            return
        work.asked_all |= snapshot.unasked == 0
        work.progress = snapshot
        work.rates.add(snapshot)

    def note(self, line: str) -> None:
        self._board.note(label_text("named", name=self._work.pair.run, text=line))

    def warn(self, line: str) -> None:
        self._board.warn(label_text("named", name=self._work.pair.run, text=line))


class MatrixSession:
    """All runs of a matrix, from the first to the last."""

    def __init__(
        self,
        config: MatrixConfig,
        board: Board,
        *,
        report: bool,
        seconds: float = 0.0,
        on_pace: Callable[[float], None] = lambda _: None,
    ) -> None:
        """Create a session; `seconds` is the duration of earlier sessions.

        `on_pace` is called from time to time with the duration of all sessions.
        """
        self.config, self._board, self._report = config, board, report
        self.works = [
            MatrixRun(pair, rank, self._name_queue(pair)) for rank, pair in enumerate(config.pairs)
        ]
        self._queues: dict[str, deque[MatrixRun]] = {}
        for work in self.works:
            self._queues.setdefault(work.queue, deque()).append(work)
        self._started = monotonic()
        self._earlier_seconds, self._on_pace = seconds, on_pace
        self._shared_slots = shared_slots_of(config)
        self._rates = {
            model: PaceRates(pace.rpm, pace.tpm) for model, pace in config.own_pace.items()
        }
        self._budget = SharedBudget(config.budget, spent_before(config), self._count_seconds)
        self._interrupts = self._handled_interrupts = 0

    @property
    def interrupted(self) -> bool:
        """Whether the user interrupted it."""
        return self._interrupts > 0

    @property
    def _title(self) -> str:
        size = {"models": len(self.config.models), "exams": len(self.config.exams)}
        return label_text("matrix.title", plan=self.config.name, **size)

    def _name_queue(self, pair: MatrixPair) -> str:
        """Return the queue of a run. Its runs work one after the other."""
        return queue_of(pair.config)

    def _count_seconds(self) -> float:
        return self._earlier_seconds + monotonic() - self._started

    def run(self) -> None:
        """Work until every run has ended or may not start."""
        self._board.start(self._title, self._build_board_lines())
        last_note = monotonic()
        ended = threading.Event()
        try:
            with call_between_steps(self._interrupt):
                while self._step(ended):
                    ended.wait(PULSE)
                    ended.clear()
                    self._board.update(self._build_board_lines(), monotonic() - self._started)
                    if monotonic() - last_note > KEPT_PACE:
                        last_note = monotonic()
                        self._on_pace(self._count_seconds())
        finally:
            self._board.finish(self._build_board_lines(), monotonic() - self._started)
            self._on_pace(self._count_seconds())
        crash = next((work.crash for work in self.works if work.crash is not None), None)
        if crash is not None:
            raise crash

    def _build_board_lines(self) -> list[RunLine]:
        return [work.board_line for work in self.works]

    def _interrupt(self) -> None:
        """Note an interrupt: the first waits for requests in flight, the second stops at once."""
        self._interrupts += 1

    def _step(self, ended: threading.Event) -> bool:
        """Pass on interrupts and start runs; return whether any run is active."""
        while self._handled_interrupts < self._interrupts:
            self._handled_interrupts += 1
            for work in self.works:
                if work.under_way:
                    work.remote.interrupt()
        for queue in self._queues.values():
            while queue and self._may_begin(queue[0]):
                self._begin(queue.popleft(), ended)
        return any(work.under_way for work in self.works)

    def _may_begin(self, work: MatrixRun) -> bool:
        if self._interrupts:
            return False
        active_works = [
            other_work
            for other_work in self.works
            if other_work.queue == work.queue and other_work.under_way
        ]
        if not active_works:
            return True
        if work.queue == LOCAL or len(active_works) >= MOST_AT_ONCE:
            return False
        return all(earlier_work.asked_all for earlier_work in active_works)

    def _begin(self, work: MatrixRun, ended: threading.Event) -> None:
        if (answer_count := self._find_reusable(work)) is not None:
            work.state, work.was_complete = "complete", True
            work.answer_counts = answer_count, answer_count
            return
        if (error := self._budget.exhausted()) is not None:
            work.state, work.error = "incomplete", error
            return
        pair, watcher, share = work.pair, WATCHER.get(), self._share_with(work)

        def evaluate() -> None:
            SHARE.set(share)
            REMOTE.set(work.remote)
            WATCHER.set(watcher)
            try:
                display = _BoardDisplay(work, self._board)
                work.finished = run_exams(pair.config, display=display, report=self._report)
                work.error = work.finished.error
                work.state = "complete" if work.error is None else "incomplete"
            except KejuError as error:
                work.error, work.state = error, "failed"
            except BaseException as error:
                work.crash, work.state = error, "failed"
            finally:
                self._note_end(work)
                ended.set()

        work.state = "running"
        work.thread = threading.Thread(target=evaluate, daemon=True, name=pair.run)
        work.thread.start()

    def _find_reusable(self, work: MatrixRun) -> int | None:
        """Return the number of answers of a run that need not be opened; None for any other run."""
        return reusable_count(work.pair.config)

    def _share_with(self, work: MatrixRun) -> RunSharing:
        """Return what a run shares with the others."""
        return RunSharing(
            run=work.pair.run,
            rank=work.rank,
            model=model_name(work.pair.config),
            gates=self._shared_slots,
            rates=self._rates[work.pair.model],
            shared_budget=self._budget if self._budget.limited else None,
        )

    def _note_end(self, work: MatrixRun) -> None:
        """Note that the thread of a run has ended."""


def queue_of(config: TaskConfig) -> str:
    """Return the queue of a run: its endpoints, or the one for models in this process."""
    if is_local(config.model):
        return LOCAL
    return " ".join(sorted(set(_find_addresses(config))))


def _find_addresses(config: TaskConfig) -> Iterable[str]:
    """Yield the addresses of a model, without credentials."""
    for task in endpoint_tasks(config):
        yield str(make_model(task).facts().get("endpoint", ""))


def shared_slots_of(matrix: MatrixConfig) -> dict[str, SharedSlots]:
    """Return the endpoints of a matrix, each with the largest number of slots of its models."""
    slot_limits: dict[str, int] = {}
    for pair in matrix.pairs:
        config = pair.config
        if is_local(config.model):
            continue
        endpoint_slots = [endpoint.concurrency for endpoint in config.endpoints] or [None]
        for place, slots in zip(_find_addresses(config), endpoint_slots, strict=True):
            slot_limits[place] = max(slots or config.eval_batch_size, slot_limits.get(place, 0))
    pace = matrix.pace
    return {
        place: SharedSlots(slots, PaceRates(pace.rpm, pace.tpm))
        for place, slots in slot_limits.items()
    }


def spent_before(config: MatrixConfig) -> dict[str, SpentAmounts]:
    """Return the amounts that earlier sessions of the runs used, by run."""
    amounts_by_run = {}
    for pair in config.pairs:
        folder = Path(pair.config.work_dir) / pair.run
        if not (folder / MANIFEST).is_file():
            continue
        sessions = Manifest.read(folder).sessions
        tokens = sum(session.input_tokens + session.output_tokens for session in sessions)
        cost = sum(session.cost or 0.0 for session in sessions)
        amounts_by_run[pair.run] = SpentAmounts(
            sum(session.requests for session in sessions), tokens, cost
        )
    return amounts_by_run


def reusable_count(config: TaskConfig) -> int | None:
    """Return the number of answers of a run that is complete, with this version and these settings.

    None for any other run, which must be opened and may have to be resumed.
    """
    folder = Path(config.work_dir) / (config.run_id or "")
    if not (folder / MANIFEST).is_file():
        return None
    run = Run(folder)
    try:
        stored = run.manifest
    except DataError:
        return None
    versions = stored.environment.get("packages", {}).get("keju")
    requested_config = msgspec.json.decode(msgspec.json.encode(make_storable(config, run.id)))
    complete = stored.complete and run.results_are_current and stored.config == requested_config
    is_same_version = versions == describe_environment()["packages"].get("keju")
    return stored.expected_replies if complete and is_same_version else None


def stop_of(session: MatrixSession) -> KejuError | None:
    """Return the error that a matrix ends with: none, an interrupt, or that runs are incomplete.

    If all runs failed with the same exit code, return the first error.
    """
    if session.interrupted:
        return Interrupted("interrupted")
    incomplete_works = [work for work in session.works if work.state != "complete"]
    if not incomplete_works:
        return None
    errors = [work.error for work in incomplete_works if work.error is not None]
    if (
        len(incomplete_works) == len(session.works)
        and len({error.exit_code for error in errors}) == 1
    ):
        return errors[0]
    return RunIncomplete("plan_incomplete", part=len(incomplete_works), whole=len(session.works))
