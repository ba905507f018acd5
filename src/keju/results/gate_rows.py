"""What a gate finds of one exam, or of one arm of it."""

from __future__ import annotations

from typing import Any

import msgspec

from keju.errors import Notice
from keju.stats.estimate import MOST_UNGRADED
from keju.stats.gate import Verdict

NO_WORSE, AT_LEAST = "no worse", "at least"


class GateRow(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One exam before one gate."""

    exam: str
    arm: str = ""
    gate: str
    """``no worse`` than the baseline by more than a margin, or ``at least`` a score."""
    verdict: Verdict
    n: int
    left_out: int
    """Questions without a grade, which the gate knows nothing of."""
    score: float | None
    baseline: float | None = None
    value: float | None
    """The difference, or the score, that is gated."""
    limit: float
    """What it must be shown to be above: minus the margin, or the least score."""
    low: float
    high: float
    """Both one-sided bounds at level 0.05."""
    p: float
    """Of the test that passes; it is never below 1e-300."""
    p_fail: float
    p_log10: float | None = None
    """The logarithms of both."""
    p_fail_log10: float | None = None
    p_holm: float | None = None
    """Both adjusted, where several exams are gated."""
    p_fail_holm: float | None = None
    headline: str = ""
    """The metric of the exam's headline, where that is not the mean over questions tested here."""
    needed: int | None = None
    """How many questions would decide, where these do not."""
    planned: int | None = None
    """How many of them decide with a power of 0.8 if the true difference is the one seen."""

    whole: int = 0
    """How many questions there are of the subsets asked; 0 where that is not known."""

    @property
    def selected(self) -> bool:
        """Whether so many questions lack a grade that the others decide nothing."""
        return self.left_out > MOST_UNGRADED * (self.n + self.left_out)

    @property
    def conclusion(self) -> Notice:
        """What the gate says, in a sentence."""
        shown = ("value", "limit", "low", "high")
        scale = {name: 100 * (getattr(self, name) or 0.0) for name in shown}
        name = f"{self.exam} · {self.arm}" if self.arm else self.exam
        values: dict[str, Any] = {**scale, "exam": name, "n": self.n, "needed": self.needed}
        kind = "least" if self.gate == AT_LEAST else "worse"
        if not self.n:
            return Notice("gate_nothing", values)
        if self.selected:
            lost = {"part": self.left_out, "whole": self.n + self.left_out}
            return Notice("gate_selection", values | lost)
        if self.verdict != "inconclusive":
            return Notice(f"gate_{kind}_{self.verdict}", values)
        if self.needed is None:
            return Notice(f"gate_{kind}_open", values)
        if 0 < self.whole < self.needed:
            return Notice(f"gate_{kind}_beyond", values | {"whole": self.whole})
        return Notice(f"gate_{kind}_inconclusive", values)
