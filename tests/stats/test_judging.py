"""Agreement, judges and options."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as oracle  # type: ignore[import-untyped]

from keju.errors import UsageError
from keju.stats.agreement import (
    JudgeQuality,
    cohens_kappa,
    kappa_of_labels,
    rogan_gladen,
    self_consistency,
)
from keju.stats.intervals import wilson
from keju.stats.options import option_bias, recall_spread


def test_kappa_vector() -> None:
    kappa = cohens_kappa([[40, 15], [10, 35]])
    assert kappa == pytest.approx((0.75, 0.5, 0.5))


def test_kappa_is_undefined_not_one_where_chance_explains_all() -> None:
    assert cohens_kappa([[7, 0], [0, 0]]).value is None
    assert kappa_of_labels("AAAA", "AAAA").value is None


def test_kappa_of_labels_builds_the_table() -> None:
    first = "R" * 55 + "W" * 45
    second = "R" * 40 + "W" * 15 + "R" * 10 + "W" * 35
    assert kappa_of_labels(first, second).value == pytest.approx(0.5)


def test_kappa_refuses_a_broken_table() -> None:
    with pytest.raises(ValueError, match="square"):
        cohens_kappa([[1, 2, 3], [1, 2, 3]])


def test_self_consistency() -> None:
    assert self_consistency([4]) == 1
    assert self_consistency([2, 2]) == pytest.approx(1 / 3)
    assert self_consistency([1, 1, 1]) == 0
    assert self_consistency([1]) is None


JUDGE = JudgeQuality(sensitivity=0.92, specificity=0.88, positives=60, negatives=40)


def test_rogan_gladen_vector() -> None:
    corrected = rogan_gladen(0.62, 500, JUDGE)
    assert corrected.value == pytest.approx(0.625)
    assert corrected.se == pytest.approx(0.0454426, rel=1e-6)


def test_a_faultless_judge_leaves_wilsons_interval() -> None:
    judge = JudgeQuality(1.0, 1.0, 10**9, 10**9)
    assert rogan_gladen(0.3, 100, judge).interval == pytest.approx(wilson(0.3, 100), abs=1e-6)


def test_a_rare_share_is_covered_though_the_judge_errs() -> None:
    """At a true share of 3 % the value plus and minus 1.96 standard errors covered 80 to 91 %."""
    chance, share, draws = random.Random(11), 0.03, 1500
    covered = 0
    for _ in range(draws):
        hits, passed, right = (
            sum(chance.random() < p for _ in range(n))
            for p, n in ((0.92, 60), (0.88, 40), (share * 0.92 + (1 - share) * 0.12, 100))
        )
        judge = JudgeQuality(hits / 60, passed / 40, 60, 40)
        low, high = rogan_gladen(right / 100, 100, judge).interval
        covered += low <= share <= high
    assert 0.94 < covered / draws < 0.98


def test_rogan_gladen_is_clipped() -> None:
    assert rogan_gladen(0.05, 500, JUDGE).value == 0
    assert rogan_gladen(0.99, 500, JUDGE).value == 1


def test_a_judge_no_better_than_chance_is_refused() -> None:
    with pytest.raises(UsageError, match="no better than chance"):
        rogan_gladen(0.6, 100, JUDGE._replace(sensitivity=0.5, specificity=0.5))
    with pytest.raises(UsageError, match="both kinds"):
        rogan_gladen(0.6, 100, JUDGE._replace(negatives=0))


@given(st.floats(0, 1), st.floats(0.55, 1), st.floats(0.55, 1))
def test_rogan_gladen_inverts_the_judge(true: float, se: float, sp: float) -> None:
    judged = true * se + (1 - true) * (1 - sp)
    corrected = rogan_gladen(judged, 100, JudgeQuality(se, sp, 50, 50))
    assert corrected.value == pytest.approx(true, abs=1e-9)


def test_option_bias_vector() -> None:
    test = option_bias([340, 220, 230, 210], [250] * 4)
    assert test.statistic == pytest.approx(44.0)
    assert test.df == 3
    assert test.p == pytest.approx(1.509e-9, rel=5e-4)


@given(st.lists(st.integers(1, 500), min_size=2, max_size=10), st.integers(0, 10**6))
def test_option_bias_is_scipys(predicted: list[int], seed: int) -> None:
    gold = [random.Random(seed + i).randint(1, 500) for i in range(len(predicted))]
    scale = sum(predicted) / sum(gold)
    expected = oracle.chisquare(predicted, [g * scale for g in gold])
    test = option_bias(predicted, gold)
    assert test.statistic == pytest.approx(float(expected.statistic), rel=1e-9, abs=1e-12)
    assert test.p == pytest.approx(float(expected.pvalue), rel=1e-7, abs=1e-13)


def test_option_bias_refuses_a_letter_that_is_never_gold() -> None:
    with pytest.raises(ValueError, match="gold"):
        option_bias([5, 5], [10, 0])


def test_recall_spread_vector() -> None:
    assert recall_spread([0.72, 0.60, 0.63, 0.55]) == pytest.approx(0.0618466, rel=1e-6)
