"""The data that the engine gives to a display, and the interface of displays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

Pause = Literal["down", "stopping", "overload", "rate", "retry"]
"""The reason why no requests are sent: the endpoint is down, the run ends, fewer slots than
allowed, a rate limit, or a retry that is not due yet."""


class ArmStatus(NamedTuple):
    """The progress of one arm of an exam."""

    name: str
    done: int
    units: int
    calls: int
    """Calls of tools."""
    failed: int
    """Calls that failed."""
    errors: int
    """Answers that were lost to a fault."""
    cost: float | None


class ActorStatus(NamedTuple):
    """The progress of one actor of a cluster."""

    node: str
    """The node on which it works; empty while it has none."""
    answered: int
    """Answers of all actors that had its place."""


class ExamStatus(NamedTuple):
    """The progress of one exam."""

    exam: str
    score: float
    """The sum of the scores of the graded answers."""
    graded: int
    repeats: int = 1
    """Answers to one question, over its repeats and the rotations of its options."""
    arm: ArmStatus | None = None
    """The progress of the arm, where the exam has several arms."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a run: totals since its beginning. `done` includes reused answers."""

    done: int
    total: int
    right: int = 0
    """Answers that are correct."""
    exams: tuple[ExamStatus, ...] = ()
    unparsed: int = 0
    truncated: int = 0
    refused: int = 0
    errors: int = 0
    requests: int = 0
    """Attempts sent by this process."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    elapsed: float = 0.0
    """Seconds since this process began to ask."""
    in_flight: int = 0
    limit: int = 0
    """The most requests in flight at present."""
    oldest: float = 0.0
    """Seconds since the oldest request in flight was sent; 0 without one."""
    waiting: str = ""
    """The reason for waiting, e.g. ``rate limit``; empty if there is none."""
    pause: Pause | None = None
    """The same as a word that programs can read."""
    retries: int = 0
    actors: tuple[ActorStatus, ...] = ()
    """The actors, where a cluster works on the run."""
    unasked: int | None = None
    """Answers whose question has not been taken up, of those that may be asked now; None before the
    first."""
    left: float | None = None
    """Estimated seconds to the end, for callbacks, where they are known."""


class NotePrinter(Protocol):
    """Prints lines that remain visible."""

    def note(self, line: str) -> None:
        """Print a line about the progress."""

    def warn(self, line: str) -> None:
        """Print a line about a failure, even if the user wants to see no progress."""


class Display:
    """Shows a run while it goes on. This base class shows nothing.

    No call blocks or raises. `finish` may be called twice.
    """

    def start(self, total: int, reused: int, benchmarks: Sequence[str]) -> None:
        """Start the display: the run needs `total` answers and reuses `reused` of them."""

    def update(self, snapshot: Progress) -> None:
        """Store the state. It is drawn only as often as a person can read."""

    def note(self, line: str) -> None:
        """Print a line that remains visible."""

    def status(self, line: str) -> None:
        """Show what happens at the moment. The line need not remain visible."""
        self.note(line)

    def warn(self, line: str) -> None:
        """Print a line about a failure that remains visible, even without progress."""
        self.note(line)

    def finish(self) -> None:
        """Show the last state and release the terminal."""
