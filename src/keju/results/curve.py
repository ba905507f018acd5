"""The structs of accuracy against difficulty, a part of ``results.json``."""

from __future__ import annotations

from typing import Literal

import msgspec

from keju.errors import Notice
from keju.stats.estimate import Ends
from keju.stats.paired import SIGNIFICANT


class CurvePoint(msgspec.Struct, frozen=True, kw_only=True):
    """The score at one difficulty."""

    difficulty: float
    arm: str
    n: int
    accuracy: float | None
    ci95: Ends | None
    chance: float | None
    """The expected score of a blind guess; None if guessing is not defined."""


class HalvingPoint(msgspec.Struct, frozen=True, kw_only=True):
    """The difficulty at which the accuracy has fallen halfway to chance.

    The fall is measured from the easiest difficulty of the curve.
    """

    reached: Literal["reached", "beyond", "at_chance"]
    """``beyond``: harder than the hardest difficulty. ``at_chance``: the score at the easiest
    difficulty is not above chance, so it cannot fall."""
    difficulty: float | None
    ci95: tuple[float | None, float | None] | None
    """An end that is None is beyond the hardest difficulty."""


class Curve(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Accuracy against difficulty, for an exam under one reader or for one of its subsets."""

    exam: str
    protocol: str
    reader: str
    subset: str = ""
    """Empty for the whole exam."""
    points: tuple[CurvePoint, ...]
    """The easiest comes first."""
    half: HalvingPoint | None
    slope: float | None
    """The change of the accuracy for each doubling of the difficulty."""
    p: float | None
    """The p of a two-sided test for a trend; for the whole exam, the trend within its subsets."""
    p_adjusted: float | None = None
    """For a subset: `p` adjusted for all subsets (rate of false discoveries)."""
    subsets: tuple[Curve, ...] = ()

    @property
    def verdict(self) -> Literal["falls", "rises", "flat", "nothing"]:
        """Whether the accuracy shows a trend."""
        p = self.p if self.p_adjusted is None else self.p_adjusted
        if p is None or self.slope is None:
            return "nothing"
        if p >= SIGNIFICANT:
            return "flat"
        return "falls" if self.slope < 0 else "rises"

    @property
    def conclusions(self) -> tuple[Notice, ...]:
        """Sentences that say whether the accuracy falls and where it is halfway to chance."""
        name = self.subset or self.exam
        notices = [Notice("curve_nothing", {"name": name})]
        if self.verdict != "nothing":
            p = self.p if self.p_adjusted is None else self.p_adjusted
            points = 100 * (self.slope or 0.0)
            values = {"name": name, "points": points, "size": abs(points), "p": p}
            notices = [Notice(f"curve_{self.verdict}", values)]
        if self.half is not None:
            notices.append(self._describe_halfway(self.half))
        return tuple(notices)

    def _describe_halfway(self, half: HalvingPoint) -> Notice:
        low, high = half.ci95 or (None, None)
        values = {"least": self.points[0].difficulty, "most": self.points[-1].difficulty}
        values |= {"value": half.difficulty or 0.0, "low": low or 0.0, "high": high or 0.0}
        if half.reached == "at_chance":
            return Notice("curve_at_chance", values)
        if half.reached == "beyond":
            return Notice("curve_half_beyond" if low is None else "curve_half_beyond_from", values)
        return Notice("curve_half" if high is not None else "curve_half_open", values)
