"""What the engine tells a display, and what a display promises the engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

Pause = Literal["down", "stopping", "overload", "rate", "retry"]
"""What holds requests back: nobody answers, the run comes to its end, fewer slots than allowed, a
rate limit, a repetition that is not due yet."""


class ArmStanding(NamedTuple):
    """How one arm of an exam stands."""

    name: str
    done: int
    units: int
    calls: int
    """Calls of tools."""
    failed: int
    """Calls that did not end well."""
    errors: int
    """Answers that were lost to a fault."""
    cost: float | None


class ActorStanding(NamedTuple):
    """How one actor of a cluster stands."""

    node: str
    """Where it works; empty while it does not."""
    answered: int
    """Answers of all actors that had its place."""


class Standing(NamedTuple):
    """How one exam stands."""

    exam: str
    score: float
    """Sum of the scores of the graded answers."""
    graded: int
    repeats: int = 1
    """Answers to one question: of its repeats and of the rotations of its options."""
    arm: ArmStanding | None = None
    """Where the exam is sat in several arms."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is: totals since its beginning, whatever was reused included in `done`."""

    done: int
    total: int
    right: int = 0
    """Answers that are correct."""
    exams: tuple[Standing, ...] = ()
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
    """What the engine waits for, e.g. ``rate limit``; empty when it does not."""
    pause: Pause | None = None
    """The same as a word that programs can read."""
    retries: int = 0
    actors: tuple[ActorStanding, ...] = ()
    """Where a cluster works on the run."""
    unasked: int | None = None
    """Answers that nobody has begun to ask for, of those that may be asked for now; None before
    the first."""
    left: float | None = None
    """Seconds to the end at the present pace, where a callback is told of it and it is known."""


class Notes(Protocol):
    """Who prints lines that stay."""

    def note(self, line: str) -> None:
        """Print a line of how things go."""

    def warn(self, line: str) -> None:
        """Print a line of what failed, also for those who want to see no progress."""


class Display:
    """Shows a run while it goes on; this one shows nothing.

    No call blocks or raises; `finish` may be called twice.
    """

    def start(self, total: int, reused: int, benchmarks: Sequence[str]) -> None:
        """The run begins: `total` answers are wanted, of which `reused` are at hand."""

    def update(self, snapshot: Progress) -> None:
        """Take note of the state; it is drawn only as often as a person can read."""

    def note(self, line: str) -> None:
        """Print a line that stays."""

    def warn(self, line: str) -> None:
        """Print a line of what failed; it stays, and is seen without progress too."""
        self.note(line)

    def finish(self) -> None:
        """Show the last state and let go of the terminal."""
