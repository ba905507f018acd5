"""The interface between a session and its followers: events, metrics, traces.

The engine calls followers and never waits for them. Where there is no follower (`WATCHER` is not
set) a reply costs one comparison with None. Followers get requests and replies unchanged. Each
watcher decides which data leaves the process, and these never include texts or secrets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from keju.types import Notice, Record, Reply, Request

if TYPE_CHECKING:
    from keju.config import Price
    from keju.errors import KejuError
    from keju.progress.display import Progress
    from keju.scores.exam_scores import ExamScores


class RequestAttempt(NamedTuple):
    """One request that was sent, and its outcome."""

    endpoint: str
    """Its address without credentials; empty for a model in this process."""
    model: str
    request: Request
    reply: Reply
    began: float
    """Seconds since 1970."""
    seconds: float
    number: int
    """1 for the first attempt of its request."""
    job: ExamScores | None
    """The job of the request; None if it does not ask a question of an exam."""


class HeadlineScore(msgspec.Struct, frozen=True):
    """The main result of one exam of a run."""

    exam: str
    arm: str
    reader: str
    metric: str
    value: float | None
    ci95: tuple[float, float] | None
    n: int


class SessionOutline(NamedTuple):
    """Facts about a session that is about to begin."""

    run: str
    stage: str
    """``exam``, or ``judge`` where a judge grades the answers."""
    model: str
    endpoints: tuple[str, ...]
    """Their addresses; an empty one is a model in this process."""
    jobs: Sequence[ExamScores]
    total: int
    reused: int
    """Answers of `total` that need not be asked."""
    price: Price | None
    in_flight: Callable[[], Mapping[str, int]]
    """The requests in flight now, by the address of the endpoint. Any thread may call it."""


class Follower:
    """Follows one session. This base class does nothing. No call may block."""

    def attempted(self, attempt: RequestAttempt) -> None:
        """Called when a request has ended. Another attempt may follow."""

    def answered(self, job: ExamScores, unit: int, record: Record) -> None:
        """Called when the record of a unit is on disk."""

    def progressed(self, progress: Progress) -> None:
        """Called a few times per second."""

    def ended(self, stop: KejuError | None) -> None:
        """Called when the session is over. `stop` is the reason that ended it early."""


class Watcher:
    """Follows the runs of a process. This base class follows nothing.

    One watcher may follow several sessions at once, each in its own thread.
    """

    name = ""
    """The flag that created it, such as ``--events``, for the message that it failed."""

    def follow(self, session: SessionOutline) -> Follower:
        """Follow one session from its beginning."""
        return Follower()

    def finished(
        self, run: str, headlines: Sequence[HeadlineScore], complete: bool, stop: KejuError | None
    ) -> None:
        """Called when a run has its results."""

    def matrix_started(self, matrix: str, runs: Sequence[str]) -> None:
        """Called before the runs of a matrix begin."""

    def matrix_finished(self, matrix: str, stop: KejuError | None) -> None:
        """Called when all runs of a matrix are over. `stop` is set if not all are complete."""

    def close(self) -> None:
        """Close files, ports and threads. Called once."""


class Watchers(Watcher):
    """Several watchers as one. If a watcher fails, Keju reports it once and stops calling it; the
    run goes on."""

    def __init__(self, watchers: Sequence[Watcher], say: Callable[[Notice], None]) -> None:
        """Create the group. `say` shows a notice to the user."""
        self._watchers = list(watchers)
        self._say = say

    def follow(self, session: SessionOutline) -> Follower:
        """Let all watchers follow the session."""
        followers: list[tuple[Watcher, Follower]] = []
        for watcher in [*self._watchers]:
            try:
                followers.append((watcher, watcher.follow(session)))
            except Exception as error:
                self.drop(watcher, error)
        return _Followers(self, followers)

    def finished(
        self, run: str, headlines: Sequence[HeadlineScore], complete: bool, stop: KejuError | None
    ) -> None:
        """Call all watchers."""
        self._tell(lambda watcher: watcher.finished(run, headlines, complete, stop))

    def matrix_started(self, matrix: str, runs: Sequence[str]) -> None:
        """Call all watchers."""
        self._tell(lambda watcher: watcher.matrix_started(matrix, runs))

    def matrix_finished(self, matrix: str, stop: KejuError | None) -> None:
        """Call all watchers."""
        self._tell(lambda watcher: watcher.matrix_finished(matrix, stop))

    def close(self) -> None:
        """Close all watchers."""
        self._tell(lambda watcher: watcher.close())

    def _tell(self, notify: Callable[[Watcher], None]) -> None:
        for watcher in [*self._watchers]:
            try:
                notify(watcher)
            except Exception as error:
                self.drop(watcher, error)

    def drop(self, watcher: Watcher, error: Exception) -> None:
        """Stop calling a watcher and report its error."""
        if watcher in self._watchers:
            self._watchers.remove(watcher)
            problem = f"{type(error).__name__}: {error}"
            self._say(Notice("watcher_failed", {"name": watcher.name, "problem": problem}))

    def __contains__(self, watcher: Watcher) -> bool:
        return watcher in self._watchers


class _Followers(Follower):
    """Several followers as one."""

    def __init__(self, watchers: Watchers, followers: Sequence[tuple[Watcher, Follower]]) -> None:
        self._watchers = watchers
        self._followers = followers

    def _tell(self, notify: Callable[[Follower], None]) -> None:
        for watcher, follower in self._followers:
            if watcher in self._watchers:
                try:
                    notify(follower)
                except Exception as error:
                    self._watchers.drop(watcher, error)

    def attempted(self, attempt: RequestAttempt) -> None:
        self._tell(lambda follower: follower.attempted(attempt))

    def answered(self, job: ExamScores, unit: int, record: Record) -> None:
        self._tell(lambda follower: follower.answered(job, unit, record))

    def progressed(self, progress: Progress) -> None:
        self._tell(lambda follower: follower.progressed(progress))

    def ended(self, stop: KejuError | None) -> None:
        self._tell(lambda follower: follower.ended(stop))


WATCHER: ContextVar[Watcher | None] = ContextVar("keju_watcher", default=None)
"""The watcher of the sessions of this context."""
WORK: ContextVar[ExamScores | None] = ContextVar("keju_work", default=None)
"""The job of the requests of this context. Set only while there is a follower."""


def follow(session: SessionOutline) -> Follower | None:
    """Return the follower of a session, or None if there is no watcher."""
    watcher = WATCHER.get()
    return None if watcher is None else watcher.follow(session)
