"""The answers of a log that Keju wrote, as they come back from any format."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from keju.interop.logs.packing import RunMark
from keju.types import Record


class RestoredAnswer(NamedTuple):
    """One answer of a log, with the score that the log has."""

    where: str
    record: Record
    verdicts: Sequence[Record]
    score: float | None
    """The score by the headline's reader; None if the answer has no grade."""
    answer: str | None
    """The answer that this reader extracted."""


class RestoredLog(NamedTuple):
    """One exam of a run in one arm."""

    name: str
    """The file."""
    mark: RunMark
    read_answers: Callable[[], Iterator[RestoredAnswer]]
    """Yields the answers, once."""
