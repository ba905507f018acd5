"""Answer-only and chain of thought, question by question."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest

from keju.benchmarks.ceval.facts import MODES, SUBJECTS
from keju.errors import UsageError
from keju.results.modes import compare_modes
from keju.stats.distributions import student_t_quantile


def scores(**subjects: str) -> dict[str, float]:
    """Scores by sample id, written as digits; a full stop is a question without a grade."""
    return {
        f"ceval_{subject}_val_{index}": float(digit)
        for subject, digits in subjects.items()
        for index, digit in enumerate(digits)
        if digit != "."
    }


def test_shared_questions_are_compared_one_by_one_in_published_order() -> None:
    direct = scores(law="1111", logic="0010.1", physician="1")
    reasoned = scores(logic="1110111", law="1011", marxism="1")
    found = compare_modes(MODES, direct, reasoned)
    logic, law = found.subjects
    assert (logic.subject, logic.title, logic.n) == ("logic", "逻辑学", 5)
    assert [logic.answer_only, logic.cot] == pytest.approx([0.4, 0.8])
    assert [law.n, law.difference] == pytest.approx([4, -0.25])
    assert found.overall.n == 9
    assert found.overall.difference == pytest.approx((2 - 1) / 9)
    assert found.categories == []


def test_the_interval_is_that_of_the_differences_of_single_questions() -> None:
    (row,) = compare_modes(MODES, scores(law="00001111"), scores(law="11111110")).subjects
    differences = [1.0, 1, 1, 1, 0, 0, 0, -1]
    mean = sum(differences) / 8
    error = math.sqrt(sum((d - mean) ** 2 for d in differences) / 7 / 8)
    half = error * student_t_quantile(0.975, 7)
    assert row.ci95 == pytest.approx((mean - half, mean + half))
    assert row.apart is (mean - half > 0)


def test_differences_without_spread_have_no_interval() -> None:
    for direct, reasoned in (("0", "1"), ("00", "11")):
        (row,) = compare_modes(MODES, scores(law=direct), scores(law=reasoned)).subjects
        assert (row.difference, row.ci95, row.apart) == (1, None, False)


def test_categories_are_means_over_their_subjects() -> None:
    def sat(digits: Mapping[str, str]) -> dict[str, float]:
        return scores(**{name: digits.get(name, "10") for name in SUBJECTS})

    found = compare_modes(MODES, sat({}), sat({"law": "1111", "logic": "01"}))
    humanities = next(row for row in found.categories if row.subject == "Humanities")
    assert [row.subject for row in found.categories][-1] == "hard"
    assert humanities.difference == pytest.approx(0.5 / 11)
    assert humanities.n == 22


def test_nothing_in_common_is_refused() -> None:
    with pytest.raises(UsageError, match="no graded question in common"):
        compare_modes(MODES, scores(law="1"), scores(logic="1"))
