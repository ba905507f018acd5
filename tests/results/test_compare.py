"""Comparisons of scored exams made of structs, against figures computed by hand."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from scipy import stats  # type: ignore[import-untyped]

from keju.errors import UsageError
from keju.results.compare import compare_groups, compare_pair, match_exams
from tests.results.fake_exam import make_scored


def test_a_pair_counts_gains_and_losses_and_tests_them_exactly() -> None:
    base, arm = make_scored("1100000000"), make_scored("0111111110", "r2")
    pair = compare_pair(base, arm, "r1", "r2", detailed=True)
    assert (pair.n, pair.both, pair.arm_only, pair.base_only, pair.neither) == (10, 1, 7, 1, 1)
    assert pair.difference == pytest.approx(0.6)
    assert pair.p == pytest.approx(stats.binomtest(1, 8).pvalue)
    assert (pair.base_rate, pair.arm_rate) == (0.2, 0.8)
    assert [flip.id for flip in pair.flips if flip.arm < flip.base] == ["fake_all_0"]
    assert pair.lost == ("fake_all_0",)


def test_ungraded_and_missing_questions_are_left_out_and_counted() -> None:
    base, arm = make_scored("11g0."), make_scored("1e10.", "r2")
    pair = compare_pair(base, arm, "r1", "r2")
    assert (pair.n, pair.left_out, pair.left_out_why) == (2, 2, {"error": 1, "ungraded": 1})
    assert "compare_selection" in [notice.code for notice in pair.notices]
    # Of four questions, the second can lose a point and the third can gain one.
    assert pair.bounds == (-0.25, 0.25)


def test_different_conditions_are_an_obstacle_and_both_scores_stay() -> None:
    base = make_scored("10", conditions={"protocol": "plain"})
    arm = make_scored("11", "r2", conditions={"protocol": "other"})
    pair = compare_pair(base, arm, "r1", "r2")
    assert pair.obstacle is not None
    assert pair.obstacle.field == "protocol"
    assert (pair.n, pair.difference, pair.base_rate, pair.arm_rate) == (0, None, 0.5, 1.0)


def test_circumstances_may_differ_and_are_listed() -> None:
    base = make_scored("10", circumstances={"temperature": 0.0})
    arm = make_scored("11", "r2", circumstances={"temperature": 1.0})
    pair = compare_pair(base, arm, "r1", "r2")
    assert pair.obstacle is None
    assert "compare_otherwise" in [notice.code for notice in pair.notices]


def test_seconds_are_compared_on_the_questions_of_both() -> None:
    base, arm = make_scored("10."), make_scored(".11", "r2")
    pair = compare_pair(base, arm, "r1", "r2")
    assert pair.seconds is not None
    assert (pair.seconds.base, pair.seconds.arm, pair.seconds.difference) == (2.0, 2.0, 0.0)
    assert (pair.only_in_base, pair.only_in_arm, pair.cost) == (1, 1, None)


def test_three_sources_are_compared_in_pairs_and_adjusted_together() -> None:
    outcomes = ("0" * 12, "1" * 8 + "0" * 4, "1" * 12)
    groups = [[make_scored(text, f"r{n}")] for n, text in enumerate(outcomes)]
    compared = compare_groups(groups, ["a", "b", "c"])
    names = [(pair.base, pair.arm) for pair in compared.comparisons]
    assert names == [("r0", "r1"), ("r0", "r2"), ("r1", "r2")]
    p = sorted(pair.p or 0.0 for pair in compared.comparisons)
    adjusted = sorted(pair.p_holm or 0.0 for pair in compared.comparisons)
    assert adjusted[0] == pytest.approx(3 * p[0])
    assert adjusted[1] == pytest.approx(2 * p[1])
    assert compared.document["comparable"] is True


def test_arms_match_by_name_and_single_arms_always() -> None:
    plain, tools = make_scored("1", arm="plain"), make_scored("1", arm="tools")
    other_tools = make_scored("0", "r2", arm="tools")
    pairs, unmatched = match_exams([plain, tools], [other_tools])
    assert [(base.arm, arm.arm) for base, arm in pairs] == [("tools", "tools")]
    assert unmatched == ["fake"]
    pairs, unmatched = match_exams([plain], [other_tools])
    assert [(base.arm, arm.arm) for base, arm in pairs] == [("plain", "tools")]


def test_a_document_has_no_texts_of_questions() -> None:
    base, arm = make_scored("10"), make_scored("11", "r2")
    compared = compare_groups([[base], [arm]], ["r1", "r2"])
    pair = replace(compared.comparisons[0], base_is_first=True)
    assert pair.gained == ("fake_all_1",)
    (entry,) = compared.document["comparisons"]
    (flip,) = entry["flips"]
    assert flip["id"] == "fake_all_1"
    assert "question" not in flip


def test_nothing_to_compare_is_an_error() -> None:
    from keju.results.compare import compare

    with pytest.raises(UsageError, match="compare"):
        compare()
