"""What a session tells those who follow it: events, metrics, traces.

The engine tells and never waits. Where nobody follows (`WATCHER` is not set) a reply costs one
comparison with None. Requests and replies are handed over as they are; what leaves the process is
chosen by each watcher, and neither texts nor secrets are ever among it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple

from keju.types import Notice, Record, Reply, Request

if TYPE_CHECKING:
    from keju.config import Price
    from keju.engine.display import Progress
    from keju.engine.job import Job
    from keju.errors import KejuError


class Attempt(NamedTuple):
    """One request that was sent, and what came of it."""

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
    job: Job | None
    """What it was sent for; None where that is no question of an exam."""


class Headline(NamedTuple):
    """The number that one exam of a run comes to."""

    exam: str
    arm: str
    reader: str
    metric: str
    value: float | None
    ci95: tuple[float, float] | None
    n: int


class SessionFacts(NamedTuple):
    """What a session is about to do."""

    run: str
    stage: str
    """``exam``, or ``judge`` where a judge is asked about the answers."""
    model: str
    endpoints: tuple[str, ...]
    """Their addresses; an empty one is a model in this process."""
    jobs: Sequence[Job]
    total: int
    known: int
    """Answers of `total` that need not be asked."""
    price: Price | None
    in_flight: Callable[[], Mapping[str, int]]
    """Requests that wait for their reply now, by the address of the endpoint; for any thread."""


class Follower:
    """Follows one session; this one does nothing. No call may block."""

    def attempted(self, attempt: Attempt) -> None:
        """A request came to its end; another attempt may follow."""

    def answered(self, job: Job, unit: int, record: Record) -> None:
        """A unit has its record, which is on disk."""

    def progressed(self, progress: Progress) -> None:
        """Called a few times a second."""

    def ended(self, stop: KejuError | None) -> None:
        """The session is over; `stop` is what ended it early."""


class Watcher:
    """Follows the runs of a process; this one follows nothing.

    One watcher may follow several sessions at once, each on a thread of its own.
    """

    name = ""
    """What asked for it, for the message that it failed: ``--events``."""

    def follow(self, session: SessionFacts) -> Follower:
        """Follow one session from its beginning."""
        return Follower()

    def finished(
        self, run: str, headlines: Sequence[Headline], complete: bool, stop: KejuError | None
    ) -> None:
        """A run has its results."""

    def plan_started(self, plan: str, runs: Sequence[str]) -> None:
        """The runs of a plan are about to begin."""

    def plan_finished(self, plan: str, stop: KejuError | None) -> None:
        """All runs of a plan are over; `stop` says that not all are complete."""

    def close(self) -> None:
        """Let go of files, ports and threads; called once."""


class Watchers(Watcher):
    """Several watchers as one. One that fails is named once and told no more; the run goes on."""

    def __init__(self, watchers: Sequence[Watcher], say: Callable[[Notice], None]) -> None:
        """`say` tells the user."""
        self._watchers = list(watchers)
        self._say = say

    def follow(self, session: SessionFacts) -> Follower:
        """Have all of them follow the session."""
        followers: list[tuple[Watcher, Follower]] = []
        for watcher in [*self._watchers]:
            try:
                followers.append((watcher, watcher.follow(session)))
            except Exception as error:
                self.drop(watcher, error)
        return _Followers(self, followers)

    def finished(
        self, run: str, headlines: Sequence[Headline], complete: bool, stop: KejuError | None
    ) -> None:
        """Tell all of them."""
        self._tell(lambda watcher: watcher.finished(run, headlines, complete, stop))

    def plan_started(self, plan: str, runs: Sequence[str]) -> None:
        """Tell all of them."""
        self._tell(lambda watcher: watcher.plan_started(plan, runs))

    def plan_finished(self, plan: str, stop: KejuError | None) -> None:
        """Tell all of them."""
        self._tell(lambda watcher: watcher.plan_finished(plan, stop))

    def close(self) -> None:
        """Close all of them."""
        self._tell(lambda watcher: watcher.close())

    def _tell(self, call: Callable[[Watcher], None]) -> None:
        for watcher in [*self._watchers]:
            try:
                call(watcher)
            except Exception as error:
                self.drop(watcher, error)

    def drop(self, watcher: Watcher, error: Exception) -> None:
        """Tell a watcher nothing more, and say why."""
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

    def _tell(self, call: Callable[[Follower], None]) -> None:
        for watcher, follower in self._followers:
            if watcher in self._watchers:
                try:
                    call(follower)
                except Exception as error:
                    self._watchers.drop(watcher, error)

    def attempted(self, attempt: Attempt) -> None:
        self._tell(lambda follower: follower.attempted(attempt))

    def answered(self, job: Job, unit: int, record: Record) -> None:
        self._tell(lambda follower: follower.answered(job, unit, record))

    def progressed(self, progress: Progress) -> None:
        self._tell(lambda follower: follower.progressed(progress))

    def ended(self, stop: KejuError | None) -> None:
        self._tell(lambda follower: follower.ended(stop))


WATCHER: ContextVar[Watcher | None] = ContextVar("keju_watcher", default=None)
"""Who follows the sessions of this context."""
WORK: ContextVar[Job | None] = ContextVar("keju_work", default=None)
"""What the requests of this context are sent for; set only while somebody follows."""


def follow(session: SessionFacts) -> Follower | None:
    """Whoever follows a session; None where nobody does."""
    watcher = WATCHER.get()
    return None if watcher is None else watcher.follow(session)
