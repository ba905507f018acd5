"""The part of ``results.json`` that tells of accuracy against difficulty, as structs."""

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
    """The score of a blind guess; None where that is not defined."""


class Half(msgspec.Struct, frozen=True, kw_only=True):
    """The difficulty at which a model has fallen to half of its way to chance.

    The way begins at the easiest difficulty of the curve.
    """

    reached: Literal["reached", "beyond", "at_chance"]
    """``beyond`` the hardest difficulty; ``at_chance`` where the easiest is not above chance, so
    that there is nothing to fall."""
    difficulty: float | None
    ci95: tuple[float | None, float | None] | None
    """An end that is None lies beyond the hardest difficulty."""


class Curve(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Accuracy against difficulty: of an exam under one reader, or of one subset of it."""

    exam: str
    protocol: str
    reader: str
    subset: str = ""
    """Empty for the whole exam."""
    points: tuple[CurvePoint, ...]
    """The easiest first."""
    half: Half | None
    slope: float | None
    """How the accuracy changes with each doubling of the difficulty."""
    p: float | None
    """Of the test for a trend, two-sided; for the whole exam within its subsets."""
    p_adjusted: float | None = None
    """Of a subset: with the rate of false discoveries over all subsets controlled."""
    subsets: tuple[Curve, ...] = ()

    @property
    def verdict(self) -> Literal["falls", "rises", "flat", "nothing"]:
        """Whether a trend is visible."""
        p = self.p if self.p_adjusted is None else self.p_adjusted
        if p is None or self.slope is None:
            return "nothing"
        if p >= SIGNIFICANT:
            return "flat"
        return "falls" if self.slope < 0 else "rises"

    @property
    def conclusions(self) -> tuple[Notice, ...]:
        """Whether a fall is visible, and where the model is halfway to chance, in words."""
        name = self.subset or self.exam
        found = [Notice("curve_nothing", {"name": name})]
        if self.verdict != "nothing":
            p = self.p if self.p_adjusted is None else self.p_adjusted
            points = 100 * (self.slope or 0.0)
            values = {"name": name, "points": points, "size": abs(points), "p": p}
            found = [Notice(f"curve_{self.verdict}", values)]
        if self.half is not None:
            found.append(self._halfway(self.half))
        return tuple(found)

    def _halfway(self, half: Half) -> Notice:
        low, high = half.ci95 or (None, None)
        values = {"least": self.points[0].difficulty, "most": self.points[-1].difficulty}
        values |= {"value": half.difficulty or 0.0, "low": low or 0.0, "high": high or 0.0}
        if half.reached == "at_chance":
            return Notice("curve_at_chance", values)
        if half.reached == "beyond":
            return Notice("curve_half_beyond" if low is None else "curve_half_beyond_from", values)
        return Notice("curve_half" if high is not None else "curve_half_open", values)
