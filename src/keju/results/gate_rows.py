"""The result of a gate for one exam or one arm."""

from __future__ import annotations

from typing import Any

import msgspec

from keju.errors import Notice
from keju.results.schema import AssertionChange
from keju.stats.estimate import MOST_UNGRADED
from keju.stats.gate import Verdict

NO_WORSE, AT_LEAST = "no worse", "at least"


class GateRow(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One exam and one gate."""

    exam: str
    arm: str = ""
    gate: str
    """``no worse`` than the baseline by more than a margin, or ``at least`` a score."""
    verdict: Verdict
    n: int
    left_out: int
    """The number of questions without a grade, which the gate cannot use."""
    score: float | None
    baseline: float | None = None
    value: float | None
    """The difference or the score that is tested."""
    limit: float
    """The value must be shown to be above this limit: minus the margin, or the required score."""
    low: float
    high: float
    """The two one-sided bounds at level 0.05."""
    p: float
    """The p of the test for passing; never below 1e-300."""
    p_fail: float
    p_log10: float | None = None
    """The base-10 logarithms of both p."""
    p_fail_log10: float | None = None
    p_holm: float | None = None
    """Both p adjusted for the number of tests, if there are several."""
    p_fail_holm: float | None = None
    headline: str = ""
    """The exam's headline metric, if it is not the mean over questions that is tested here."""
    needed: int | None = None
    """The number of questions that would decide, if these do not."""
    planned: int | None = None
    """The number of questions that decide with a power of 0.8 if the true difference is the
    observed one."""

    sure_of: int | None = None
    """The number of questions to be asked, if both runs stopped before the last of them because the
    verdict of all of them was sure."""
    whole: int = 0
    """The number of questions in the subsets that were asked; 0 if unknown."""
    assertions: tuple[AssertionChange, ...] = ()
    """The scores of assertions about tools or state. They do not decide."""

    @property
    def selected(self) -> bool:
        """Whether too many questions lack a grade for the remaining ones to decide."""
        return self.left_out > MOST_UNGRADED * (self.n + self.left_out)

    @property
    def conclusion(self) -> Notice:
        """A sentence that states the result of the gate."""
        percent_fields = ("value", "limit", "low", "high")
        scale = {name: 100 * (getattr(self, name) or 0.0) for name in percent_fields}
        name = f"{self.exam} · {self.arm}" if self.arm else self.exam
        values: dict[str, Any] = {**scale, "exam": name, "n": self.n, "needed": self.needed}
        kind = "least" if self.gate == AT_LEAST else "worse"
        if not self.n:
            return Notice("gate_nothing", values)
        if self.selected:
            left_out_values = {"part": self.left_out, "whole": self.n + self.left_out}
            return Notice("gate_selection", values | left_out_values)
        if self.sure_of is not None:
            return Notice(f"gate_sure_{self.verdict}", values | {"whole": self.sure_of})
        if self.verdict != "inconclusive":
            return Notice(f"gate_{kind}_{self.verdict}", values)
        if self.needed is None:
            return Notice(f"gate_{kind}_open", values)
        if 0 < self.whole < self.needed:
            return Notice(f"gate_{kind}_beyond", values | {"whole": self.whole})
        return Notice(f"gate_{kind}_inconclusive", values)
