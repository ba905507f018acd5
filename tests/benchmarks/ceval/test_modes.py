"""Answer-only and chain of thought, side by side."""

from __future__ import annotations

from typing import Any

import pytest

from keju.benchmarks.ceval.modes import side_by_side
from keju.errors import UsageError


def entry(
    *subsets: tuple[str, float | None, list[float] | None], name: str = "ceval"
) -> dict[str, Any]:
    return {
        "name": name,
        "subsets": [{"name": n, "n": 20, "accuracy": a, "ci95": ci} for n, a, ci in subsets],
    }


def test_subjects_stand_side_by_side_in_published_order() -> None:
    direct = entry(("law", 0.8, [0.6, 0.9]), ("logic", 0.25, [0.1, 0.4]), ("physician", 0.5, None))
    reasoned = entry(("logic", 0.75, [0.5, 0.9]), ("law", 0.7, [0.5, 0.85]), ("marxism", 0.1, None))
    logic, law = side_by_side(direct, reasoned)
    assert (logic.subject, logic.title) == ("logic", "逻辑学")
    assert (logic.answer_only, logic.cot, logic.difference) == (0.25, 0.75, 0.5)
    assert (logic.answer_only_ci95, logic.cot_ci95) == ((0.1, 0.4), (0.5, 0.9))
    assert logic.apart
    assert law.difference == pytest.approx(-0.1)
    assert not law.apart


def test_a_subject_without_a_score_has_no_difference() -> None:
    (row,) = side_by_side(entry(("law", None, None)), entry(("law", 0.5, [0.3, 0.7])))
    assert row.difference is None
    assert row.answer_only_ci95 is None
    assert not row.apart


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(UsageError, match="ceval"):
        side_by_side(entry(("law", 0.5, None), name="bbh"), entry(("law", 0.5, None)))
    with pytest.raises(UsageError, match="no subject in common"):
        side_by_side(entry(("law", 0.5, None)), entry(("logic", 0.5, None)))
