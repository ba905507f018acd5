"""One process working on a plan: its runs, each on a thread of its own.

Runs at one endpoint come one after the other, in the order of the plan; those at different
endpoints, and those of different models in this process, stand in lines of their own. The next run
of a line begins when the one before has nothing left to begin: it gets the slots that the end of
that one leaves free (`keju.engine.sharing`). Models in this process never work at the same time.

What ends a run early ends no other. A run that is complete, and whose settings are the same, is not
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
from keju.config.plan import Pair, PlanConfig
from keju.engine.display import Display, Progress
from keju.engine.limits import Amounts
from keju.engine.limits import Rates as PaceRates
from keju.engine.sharing import SHARE, Gate, Purse, Share
from keju.engine.watching import WATCHER
from keju.errors import DataError, Interrupted, KejuError, RunIncomplete
from keju.messages import said
from keju.models.registry import endpoint_tasks, is_local, make_model, model_name
from keju.report.board import Board, Line, State, score_interval
from keju.report.rates import Rates
from keju.runs.manifest import MANIFEST, Manifest, environment, storable
from keju.runs.run import Run
from keju.signals import REMOTE, Remote, handling
from keju.task import Finished, run_exams

MOST_AT_ONCE = 4
"""Runs of one line that may be under way: one that asks, and the ends of those before it."""
PULSE = 0.2
"""Seconds between two looks at the runs."""
KEPT_PACE = 5.0
"""Seconds between two notes of how long the plan takes."""
LOCAL = "local"
"""The line of models in this process."""


@dataclass(eq=False)
class PlannedWork:
    """One run of a plan, and how it stands."""

    pair: Pair
    rank: int
    line: str
    """What it waits for its turn at."""
    state: State = "waiting"
    progress: Progress | None = None
    asked_all: bool = False
    """Everything that it may ask was under way at least once."""
    opened: tuple[int, int] | None = None
    """Answers that it has in all, and those that were there, once it is known."""
    rates: Rates = field(default_factory=Rates)
    finished: Finished | None = None
    error: KejuError | None = None
    """Why it ended early."""
    kept: bool = False
    """It was complete already."""
    remote: Remote = field(default_factory=Remote)
    thread: threading.Thread | None = None
    crash: BaseException | None = None

    @property
    def under_way(self) -> bool:
        """Whether its thread works."""
        return self.state in ("running", "judging")

    @property
    def line_shown(self) -> Line:
        """The run as the board shows it."""
        pair, error = self.pair, self.error
        line = Line(
            run=pair.run,
            model=pair.model,
            exam=pair.exam,
            state=self.state,
            why="" if error is None else error.said,
            was_complete=self.kept,
        )
        total, known = self.opened or (0, 0)
        progress = self.progress
        if progress is None:
            return line._replace(done=known, total=total)
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


class _Line(Display):
    """What a run tells the board."""

    def __init__(self, work: PlannedWork, board: Board) -> None:
        self._work, self._board = work, board

    def start(self, total: int, reused: int, benchmarks: Sequence[str]) -> None:
        if self._work.opened is None:
            self._work.opened = total, reused
        else:  # a second stage is that of a judge
            self._work.state = "judging"

    def update(self, snapshot: Progress) -> None:
        work = self._work
        if work.state == "judging":
            return
        work.asked_all |= snapshot.unasked == 0
        work.progress = snapshot
        work.rates.add(snapshot)

    def note(self, line: str) -> None:
        self._board.note(said("named", name=self._work.pair.run, text=line))

    def warn(self, line: str) -> None:
        self._board.warn(said("named", name=self._work.pair.run, text=line))


class PlanSession:
    """The runs of a plan from the first to the last."""

    def __init__(
        self,
        plan: PlanConfig,
        board: Board,
        *,
        report: bool,
        seconds: float = 0.0,
        on_pace: Callable[[float], None] = lambda _: None,
    ) -> None:
        """`seconds` is how long earlier sessions took; `on_pace` is told now and then how long
        all have."""
        self.plan, self._board, self._report = plan, board, report
        self.works = [
            PlannedWork(pair, rank, line_of(pair.config)) for rank, pair in enumerate(plan.pairs)
        ]
        self._lines: dict[str, deque[PlannedWork]] = {}
        for work in self.works:
            self._lines.setdefault(work.line, deque()).append(work)
        self._started = monotonic()
        self._earlier, self._on_pace = seconds, on_pace
        self._gates = gates_of(plan)
        self._rates = {
            model: PaceRates(pace.rpm, pace.tpm) for model, pace in plan.own_pace.items()
        }
        self._purse = Purse(plan.budget, spent_before(plan), self._all_seconds)
        self._interrupts = self._heard = 0

    @property
    def interrupted(self) -> bool:
        """Whether the user ended it."""
        return self._interrupts > 0

    def _all_seconds(self) -> float:
        return self._earlier + monotonic() - self._started

    def run(self) -> None:
        """Work until every run is over, or may not begin."""
        size = {"models": len(self.plan.models), "exams": len(self.plan.exams)}
        self._board.start(said("matrix.title", plan=self.plan.name, **size), self._shown())
        noted = monotonic()
        ended = threading.Event()
        try:
            with handling(self._interrupt):
                while self._step(ended):
                    ended.wait(PULSE)
                    ended.clear()
                    self._board.update(self._shown(), monotonic() - self._started)
                    if monotonic() - noted > KEPT_PACE:
                        noted = monotonic()
                        self._on_pace(self._all_seconds())
        finally:
            self._board.finish(self._shown(), monotonic() - self._started)
            self._on_pace(self._all_seconds())
        crash = next((work.crash for work in self.works if work.crash is not None), None)
        if crash is not None:
            raise crash

    def _shown(self) -> list[Line]:
        return [work.line_shown for work in self.works]

    def _interrupt(self) -> None:
        """The first time what is in flight comes in, the second time all stops at once."""
        self._interrupts += 1

    def _step(self, ended: threading.Event) -> bool:
        """Pass interrupts on, begin what may begin; whether anything is under way."""
        while self._heard < self._interrupts:
            self._heard += 1
            for work in self.works:
                if work.under_way:
                    work.remote.interrupt()
        for line in self._lines.values():
            while line and self._may_begin(line[0]):
                self._begin(line.popleft(), ended)
        return any(work.under_way for work in self.works)

    def _may_begin(self, work: PlannedWork) -> bool:
        if self._interrupts:
            return False
        before = [w for w in self.works if w.line == work.line and w.under_way]
        if not before:
            return True
        if work.line == LOCAL or len(before) >= MOST_AT_ONCE:
            return False
        return all(each.asked_all for each in before)

    def _begin(self, work: PlannedWork, ended: threading.Event) -> None:
        if (wanted := kept(work.pair.config)) is not None:
            work.state, work.kept, work.opened = "complete", True, (wanted, wanted)
            return
        if (error := self._purse.exhausted()) is not None:
            work.state, work.error = "incomplete", error
            return
        pair, watcher = work.pair, WATCHER.get()
        share = Share(
            run=pair.run,
            rank=work.rank,
            model=model_name(pair.config),
            gates=self._gates,
            rates=self._rates[pair.model],
            purse=self._purse if self._purse.limited else None,
        )

        def sit() -> None:
            SHARE.set(share)
            REMOTE.set(work.remote)
            WATCHER.set(watcher)
            try:
                display = _Line(work, self._board)
                work.finished = run_exams(pair.config, display=display, report=self._report)
                work.error = work.finished.error
                work.state = "complete" if work.error is None else "incomplete"
            except KejuError as error:
                work.error, work.state = error, "failed"
            except BaseException as error:
                work.crash, work.state = error, "failed"
            finally:
                ended.set()

        work.state = "running"
        work.thread = threading.Thread(target=sit, daemon=True, name=pair.run)
        work.thread.start()


def line_of(config: TaskConfig) -> str:
    """Where a run waits for its turn: at its endpoints, or before the models in this process."""
    if is_local(config.model):
        return LOCAL
    return " ".join(sorted(set(_places(config))))


def _places(config: TaskConfig) -> Iterable[str]:
    """The addresses of a model, without credentials."""
    for task in endpoint_tasks(config):
        yield str(make_model(task).facts().get("endpoint", ""))


def gates_of(plan: PlanConfig) -> dict[str, Gate]:
    """The endpoints of a plan, each with as many slots as any of its models may use there."""
    most: dict[str, int] = {}
    for pair in plan.pairs:
        config = pair.config
        if is_local(config.model):
            continue
        own = [each.concurrency for each in config.endpoints] or [None]
        for place, slots in zip(_places(config), own, strict=True):
            most[place] = max(slots or config.eval_batch_size, most.get(place, 0))
    pace = plan.pace
    return {place: Gate(slots, PaceRates(pace.rpm, pace.tpm)) for place, slots in most.items()}


def spent_before(plan: PlanConfig) -> dict[str, Amounts]:
    """What earlier sessions of the runs have spent, by run."""
    spent = {}
    for pair in plan.pairs:
        folder = Path(pair.config.work_dir) / pair.run
        if not (folder / MANIFEST).is_file():
            continue
        sessions = Manifest.read(folder).sessions
        tokens = sum(each.input_tokens + each.output_tokens for each in sessions)
        cost = sum(each.cost or 0.0 for each in sessions)
        spent[pair.run] = Amounts(sum(each.requests for each in sessions), tokens, cost)
    return spent


def kept(config: TaskConfig) -> int | None:
    """The answers of a run that is complete, made by this version and with these settings.

    None for any other run, which is opened and may have to be gone on with.
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
    asked = msgspec.json.decode(msgspec.json.encode(storable(config, run.id)))
    complete = stored.complete and run.results_are_current and stored.config == asked
    same = versions == environment()["packages"].get("keju")
    return stored.wanted if complete and same else None


def stop_of(session: PlanSession) -> KejuError | None:
    """What a plan ended with as a whole: nothing, an interrupt, or that runs are incomplete.

    Where all runs failed alike, that is the reason.
    """
    if session.interrupted:
        return Interrupted("interrupted")
    lacking = [work for work in session.works if work.state != "complete"]
    if not lacking:
        return None
    errors = [work.error for work in lacking if work.error is not None]
    if len(lacking) == len(session.works) and len({e.exit_code for e in errors}) == 1:
        return errors[0]
    return RunIncomplete("plan_incomplete", part=len(lacking), whole=len(session.works))
