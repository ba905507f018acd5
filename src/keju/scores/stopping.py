"""The interface of a rule that decides when enough questions were asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

from keju.runs.manifest import StoredStop
from keju.scores.exam_scores import ExamScores


class Pause(NamedTuple):
    """A wait between two blocks of questions: another run has to get as far as this one."""

    is_over: Callable[[], bool]
    """Raises a KejuError if it will never be over."""


LOOK_AGAIN = 0.02
"""Seconds after which a paused run looks whether the pause is over."""


class StoppingRule(Protocol):
    """A rule that decides when enough questions were asked."""

    def usable_samples(self, job: ExamScores) -> Sequence[int]:
        """Return the samples that the rule can use."""

    def looks(self, job: ExamScores, ends: list[int]) -> list[int]:
        """Return after how many samples the rule looks. `ends` are the usual ends of the blocks."""
        return ends

    def pauses(self, job: ExamScores, seen_samples: Sequence[int]) -> Iterable[Pause]:
        """Yield what to wait for before the samples seen so far can be evaluated."""
        return ()

    def evaluate(
        self, job: ExamScores, seen_samples: Sequence[int], total_samples: int, looks: int
    ) -> StoredStop:
        """Evaluate the samples seen so far. The rule ends the job if the result is `met`."""
