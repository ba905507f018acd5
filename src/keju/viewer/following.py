"""``keju watch``: runs that go on, in this process or in another, as lines of a board.

Everything is read from the runs' folders: answers and scores from the journal, of which only what
was written since the last look is read, and what a session takes from the manifest, which is
written once a second. Nothing is written, and no lock is taken.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from keju.errors import KejuError, UsageError
from keju.report.board import OVER, Line, State
from keju.runs.journal import FILE, is_locked
from keju.runs.manifest import MANIFEST, StoredSession
from keju.runs.plan import LOCK, StoredPlan, find_plan
from keju.runs.run import find_run
from keju.viewer.index import Part
from keju.viewer.shelf import Stored
from keju.viewer.summary import estimate, kinds_by_part, outcomes_of, total_of

WINDOW = 15.0
"""Seconds over which the speed is measured."""


class Followed(NamedTuple):
    """A run that may be followed."""

    folder: Path
    model: str = ""
    exam: str = ""
    """As a plan calls them; empty where there is none."""


class Pace:
    """Answers a second over the last looks."""

    def __init__(self) -> None:
        self._looks: deque[tuple[float, int]] = deque()

    def saw(self, done: int) -> float | None:
        """Note how many answers there are; return the speed, if it is known."""
        now = monotonic()
        self._looks.append((now, done))
        while len(self._looks) > 2 and self._looks[1][0] <= now - WINDOW:
            self._looks.popleft()
        (began, first), (ended, last) = self._looks[0], self._looks[-1]
        return (last - first) / (ended - began) if ended > began else None


class Following:
    """Runs that are followed: a plan, one run, or all that go on in a folder."""

    def __init__(self, name: str | None, work_dir: str) -> None:
        """UsageError if there is nothing of this name."""
        self.title = name or work_dir
        self._plan = find_plan(name, work_dir) if name is not None else None
        self._run: Path | None = None
        self._folder = Path(name or work_dir)
        if self._plan is None and name is not None:
            with suppress(UsageError):
                self._run = find_run(name, work_dir)
            if self._run is None and not self._folder.is_dir():
                raise UsageError("watch_nothing", name=name, work_dir=work_dir)
        self._stored: dict[Path, Stored] = {}
        self._paces: dict[Path, Pace] = {}
        self._met: set[Path] = set()
        """Runs of a folder that were seen going on."""

    @property
    def goes_on(self) -> bool:
        """Whether more is to come, beside the runs that go on."""
        return self._plan is not None and is_locked(self._plan / LOCK)

    def look(self) -> list[Line]:
        """How the runs stand now."""
        return [line for followed in self._followed() for line in self._lines(followed)]

    def _followed(self) -> Iterator[Followed]:
        if self._plan is not None:
            for planned in StoredPlan.read(self._plan).runs:
                folder = self._plan.parent / planned.run
                yield Followed(folder, planned.model, planned.exam)
        elif self._run is not None:
            yield Followed(self._run)
        else:
            for path in sorted(self._folder.glob(f"*/{MANIFEST}")):
                if self._known(path.parent).state == "running" or is_locked(path.parent / FILE):
                    self._met.add(path.parent)
                if path.parent in self._met:
                    yield Followed(path.parent)

    def _known(self, folder: Path) -> Stored:
        return self._stored.setdefault(folder, Stored(folder, None))

    def _lines(self, followed: Followed) -> Iterator[Line]:
        """A run: a line for each of its exams and arms."""
        folder, held = followed.folder, is_locked(followed.folder / FILE)
        named = Line(folder.name, followed.model, followed.exam, "waiting")
        stored = self._known(folder)
        try:
            manifest, state = stored.manifest, stored.state
            stored.index.refresh()
        except (KejuError, OSError):  # it is about to begin
            yield named._replace(state="running" if held else "waiting")
            return
        shown: State = "complete" if state in ("complete", "imported") else "incomplete"
        session = manifest.sessions[-1] if manifest.sessions else StoredSession()
        if held or state == "running":
            judged = session.ended and not manifest.complete and len(stored.index) >= stored.total
            shown = "judging" if judged else "running"
        speed = self._paces.setdefault(folder, Pace()).saw(len(stored.index))
        if speed is None and session.seconds and shown == "running":
            answered = session.requests - session.retries - session.in_flight
            speed = max(0, answered) / session.seconds
        counts = kinds_by_part(stored.index.counts())
        parts = dict.fromkeys(counts)
        parts |= dict.fromkeys(Part(exam.name) for exam in manifest.benchmarks if not stored.arms)
        left = (stored.total - len(stored.index)) / speed if speed else None
        for number, part in enumerate(parts or [Part("")]):
            kinds = counts.get(part, Counter())
            metric, outcomes = estimate(kinds), outcomes_of(kinds)
            line = named._replace(
                model=followed.model or manifest.model,
                exam=followed.exam or part.name,
                state=shown,
                done=sum(outcomes.values()),
                total=max(sum(outcomes.values()), total_of(stored, part)),
                score=metric.value,
                ends=metric.ci95,
                errors=outcomes.get("error", 0),
                part=part.name if len(parts) > 1 else "",
            )
            # What is of the whole run stands in its first line.
            yield line if number else _taken(line, session, speed, left)


def _taken(line: Line, session: StoredSession, speed: float | None, left: float | None) -> Line:
    """A run's line with what its present session takes."""
    alive = line.state not in OVER
    return line._replace(
        in_flight=session.in_flight if alive else 0,
        requests=session.requests,
        tokens=session.input_tokens + session.output_tokens,
        cost=session.cost if isinstance(session.cost, float) else None,
        retries=session.retries,
        speed=speed if alive else None,
        left=left if alive else None,
    )
