"""Answer-only and chain of thought, question by question."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from keju.benchmarks.ceval.metadata import MODES, SUBJECTS
from keju.errors import UsageError
from keju.results.modes import compare_modes
from keju.stats.paired import bonett_price


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
    comparison = compare_modes(MODES, direct, reasoned)
    logic, law = comparison.subjects
    assert (logic.subject, logic.title, logic.n) == ("logic", "逻辑学", 5)
    assert [logic.answer_only, logic.cot] == pytest.approx([0.4, 0.8])
    assert [law.n, law.difference] == pytest.approx([4, -0.25])
    assert comparison.overall.n == 9
    assert comparison.overall.difference == pytest.approx((2 - 1) / 9)
    assert comparison.categories == []


def test_the_interval_is_that_of_the_differences_of_single_questions() -> None:
    (row,) = compare_modes(MODES, scores(law="00001111"), scores(law="11111110")).subjects
    assert row.ci95 == bonett_price(4, 1, 8)
    assert not row.apart


def test_intervals_stay_in_the_range_of_differences() -> None:
    (row,) = compare_modes(MODES, scores(law="0"), scores(law="1")).subjects
    assert (row.difference, row.ci95, row.apart) == (1, None, False)
    for direct, reasoned in (("00", "11"), ("01", "10"), ("11", "00"), ("110", "011")):
        (row,) = compare_modes(MODES, scores(law=direct), scores(law=reasoned)).subjects
        assert row.ci95 is not None
        assert -1 <= row.ci95.low <= row.difference <= row.ci95.high <= 1


def test_a_difference_that_the_robust_reader_does_not_see_is_one_of_format() -> None:
    direct, missed, read = "1" * 30, "1" * 12 + "0" * 18, "1" * 29 + "0"
    by_protocol = compare_modes(MODES, scores(law=direct), scores(law=missed))
    with_robust = by_protocol.with_robust(
        compare_modes(MODES, scores(law=direct), scores(law=read))
    )
    assert with_robust.overall.apart
    assert with_robust.overall.is_due_to_format
    assert [notice.code for notice in with_robust.notices()] == ["modes_by_format"]
    assert not by_protocol.notices()
    assert not by_protocol.with_robust(by_protocol).overall.is_due_to_format


def test_categories_are_means_over_their_subjects() -> None:
    def scores_with(digits: Mapping[str, str]) -> dict[str, float]:
        return scores(**{name: digits.get(name, "10") for name in SUBJECTS})

    comparison = compare_modes(MODES, scores_with({}), scores_with({"law": "1111", "logic": "01"}))
    humanities = next(row for row in comparison.categories if row.subject == "Humanities")
    assert [row.subject for row in comparison.categories][-1] == "hard"
    assert humanities.difference == pytest.approx(0.5 / 11)
    assert humanities.n == 22


def test_nothing_in_common_is_refused() -> None:
    with pytest.raises(UsageError, match="no graded question in common"):
        compare_modes(MODES, scores(law="1"), scores(logic="1"))
