"""Follow runs for ``keju watch``, in this process or in another one, as lines of a board.

The data comes from the run folders. Answers and scores come from the journal; only the lines
written since the last look are read. The usage of a session comes from the manifest, which is
written once per second. This module writes no files and takes no locks.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from keju.errors import KejuError, UsageError
from keju.reporting.board import ENDED_STATES, RunLine, State
from keju.runs.journal import FILE, is_locked
from keju.runs.manifest import MANIFEST, StoredSession
from keju.runs.matrix import LOCK, StoredMatrix, find_matrix
from keju.runs.run import find_run
from keju.viewer.index import ExamArm, ReplyKind
from keju.viewer.run_index import IndexedRun
from keju.viewer.summary import estimate_mean, kinds_by_part, outcomes_of, total_of

WINDOW = 15.0
"""Seconds over which the speed is measured."""


class WatchedRun(NamedTuple):
    """A run to follow."""

    folder: Path
    model: str = ""
    exam: str = ""
    """The exam's name in a plan; empty without a plan."""


class AnswerRate:
    """The number of answers per second over the last looks."""

    def __init__(self) -> None:
        self._looks: deque[tuple[float, int]] = deque()

    def record(self, answered: int) -> float | None:
        """Record the number of answers and return the speed if it is known."""
        now = monotonic()
        self._looks.append((now, answered))
        while len(self._looks) > 2 and self._looks[1][0] <= now - WINDOW:
            self._looks.popleft()
        (first_time, first_count), (last_time, last_count) = self._looks[0], self._looks[-1]
        return (
            (last_count - first_count) / (last_time - first_time)
            if last_time > first_time
            else None
        )


class RunWatch:
    """The runs to follow: a plan, one run, or all runs of a folder that are going on."""

    def __init__(self, name: str | None, work_dir: str) -> None:
        """Raise UsageError if no plan, run or folder has this name."""
        self.title = name or work_dir
        self._plan = find_matrix(name, work_dir) if name is not None else None
        self._run: Path | None = None
        self._folder = Path(name or work_dir)
        if self._plan is None and name is not None:
            with suppress(UsageError):
                self._run = find_run(name, work_dir)
            if self._run is None and not self._folder.is_dir():
                raise UsageError("watch_nothing", name=name, work_dir=work_dir)
        self._stored: dict[Path, IndexedRun] = {}
        self._paces: dict[Path, AnswerRate] = {}
        self._seen_running: set[Path] = set()
        """Runs of the folder that were going on at some time."""

    @property
    def is_continuing(self) -> bool:
        """Whether further runs may start."""
        return self._plan is not None and is_locked(self._plan / LOCK)

    def read_lines(self) -> list[RunLine]:
        """Return the present state of the runs."""
        return [line for followed in self._followed() for line in self._lines(followed)]

    def _followed(self) -> Iterator[WatchedRun]:
        if self._plan is not None:
            for planned in StoredMatrix.read(self._plan).runs:
                folder = self._plan.parent / planned.run
                yield WatchedRun(folder, planned.model, planned.exam)
        elif self._run is not None:
            yield WatchedRun(self._run)
        else:
            for path in sorted(self._folder.glob(f"*/{MANIFEST}")):
                if self._stored_run(path.parent).state == "running" or is_locked(
                    path.parent / FILE
                ):
                    self._seen_running.add(path.parent)
                if path.parent in self._seen_running:
                    yield WatchedRun(path.parent)

    def _stored_run(self, folder: Path) -> IndexedRun:
        return self._stored.setdefault(folder, IndexedRun(folder, None))

    def _lines(self, followed: WatchedRun) -> Iterator[RunLine]:
        """Yield a line for each exam and arm of a run."""
        folder, is_running = followed.folder, is_locked(followed.folder / FILE)
        base_line = RunLine(folder.name, followed.model, followed.exam, "waiting")
        stored = self._stored_run(folder)
        try:
            manifest, state = stored.manifest, stored.state
            stored.index.refresh()
        except (KejuError, OSError):  # the run is about to start
            yield base_line._replace(state="running" if is_running else "waiting")
            return
        session = manifest.sessions[-1] if manifest.sessions else StoredSession()
        line_state = _line_state(stored, state, session, is_running)
        speed = self._speed(followed, stored, session, line_state)
        seconds_left = (stored.total - len(stored.index)) / speed if speed else None
        counts = kinds_by_part(stored.index.counts())
        parts = _parts_of(stored, counts)
        for number, part in enumerate(parts):
            line = base_line._replace(
                model=followed.model or manifest.model,
                exam=followed.exam or part.name,
                state=line_state,
                part=part.name if len(parts) > 1 else "",
            )
            line = _with_score(line, stored, part, counts.get(part, Counter()))
            # The first line contains the values of the whole run.
            yield line if number else _with_session_usage(line, session, speed, seconds_left)

    def _speed(
        self, followed: WatchedRun, stored: IndexedRun, session: StoredSession, line_state: State
    ) -> float | None:
        """Return the replies per second; in the first moments, the mean of the session."""
        speed = self._paces.setdefault(followed.folder, AnswerRate()).record(len(stored.index))
        if speed is None and session.seconds and line_state == "running":
            answered = session.requests - session.retries - session.in_flight
            speed = max(0, answered) / session.seconds
        return speed


def _parts_of(stored: IndexedRun, counts: Mapping[ExamArm, object]) -> list[ExamArm]:
    """Return the exams and arms of a run, also those without replies."""
    parts = dict.fromkeys(counts)
    if not stored.arms:
        parts |= dict.fromkeys(ExamArm(exam.name) for exam in stored.manifest.benchmarks)
    return list(parts) or [ExamArm("")]


def _line_state(stored: IndexedRun, state: str, session: StoredSession, is_running: bool) -> State:
    """Return the state of a run as its line shows it."""
    if is_running or state == "running":
        is_answered = len(stored.index) >= stored.total
        is_judging = session.ended and not stored.manifest.complete and is_answered
        return "judging" if is_judging else "running"
    return "complete" if state in ("complete", "imported") else "incomplete"


def _with_score(
    line: RunLine, stored: IndexedRun, part: ExamArm, kinds: Counter[ReplyKind]
) -> RunLine:
    """Add the progress and the score of an exam to a run's line."""
    metric, outcomes = estimate_mean(kinds), outcomes_of(kinds)
    done = sum(outcomes.values())
    return line._replace(
        done=done,
        total=max(done, total_of(stored, part)),
        score=metric.value,
        ends=metric.ci95,
        errors=outcomes.get("error", 0),
    )


def _with_session_usage(
    line: RunLine, session: StoredSession, speed: float | None, seconds_left: float | None
) -> RunLine:
    """Add the usage of the present session to a run's line."""
    is_active = line.state not in ENDED_STATES
    return line._replace(
        in_flight=session.in_flight if is_active else 0,
        requests=session.requests,
        tokens=session.input_tokens + session.output_tokens,
        cost=session.cost if isinstance(session.cost, float) else None,
        retries=session.retries,
        speed=speed if is_active else None,
        left=seconds_left if is_active else None,
    )
