"""What an exam declares so that ``keju verify`` can score recorded outputs whose scores are known.

A recorded set is a file of what a model said and a golden file with the figures it must give. The
exam says how such a set was made (`GoldenCheck.settings`) and which figures are compared
(`GoldenCheck.figures`); results grades the rows and hands them over as `Recorded`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from keju.benchmarks.base import Exam
from keju.types import Outcome, Reading, Sample

COUNT = 0.0
"""Tolerance of whole numbers."""


class Figure(NamedTuple):
    """One figure of a recorded set."""

    what: str
    expected: float
    got: float | None
    tolerance: float = COUNT
    part: bool = False
    """Whether it is about a subset, so that it may be summed up while it is as known."""

    @property
    def ok(self) -> bool:
        """Whether the figure is the known one, as far as that is printed."""
        return self.got is not None and math.isclose(
            self.got, self.expected, rel_tol=0.0, abs_tol=self.tolerance
        )


class Sitting(NamedTuple):
    """How a recorded set was made."""

    args: Mapping[str, Any]
    protocol: str | None = None
    readers: Sequence[str] | None = None


class Part(NamedTuple):
    """The scores of the whole set, of a subset or of a group of subsets."""

    n: int | None = None
    outcomes: Mapping[Outcome, int] = {}
    accuracy: float | None = None
    """Of a group: the mean of its subsets."""
    micro_accuracy: float | None = None


class Answered(NamedTuple):
    """One row of a recorded set, graded."""

    row: Mapping[str, Any]
    sample: Sample
    """The question as the data has it now."""
    shown: Sample
    """The question as the row recorded it."""
    readings: Mapping[str, Reading]
    """By reader."""


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """A recorded set, graded; scores are those of the first reader."""

    exam: Exam
    rows: Sequence[Answered]
    """In the order of the file."""
    data: Path
    """The exam's folder."""
    whole: Part
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    subsets: Mapping[str, Part] = field(default_factory=dict)
    groups: Mapping[str, Part] = field(default_factory=dict)


Golden = Mapping[str, Any]
"""The content of a golden file."""


@dataclass(frozen=True, kw_only=True)
class GoldenCheck:
    """How the recorded sets of an exam are verified."""

    settings: Callable[[Golden, Sequence[Mapping[str, Any]]], Sitting]
    figures: Callable[[Golden, Recorded], Iterable[Figure]]
    letter: str = ""
    """The key of a row that holds the letter which was read, where no text was kept."""
    recorded_gold: bool = True
    """Whether the gold answers of the rows count, or those of the data."""
