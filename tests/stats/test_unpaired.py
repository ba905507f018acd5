"""Two groups of different items: against scipy, published vectors, and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from perf.contamination import simulate
from scipy import stats  # type: ignore[import-untyped]

from keju.stats.unpaired import ScoreGroup, group_difference, stratified_difference


def right(many: int, n: int) -> ScoreGroup:
    return ScoreGroup.of([1.0] * many + [0.0] * (n - many))


SHARES = st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(SHARES, SHARES)
def test_the_p_of_a_subset_is_fishers_exact(
    first: tuple[int, int], second: tuple[int, int]
) -> None:
    found = group_difference(right(*first), right(*second))
    table = [[first[0], first[1] - first[0]], [second[0], second[1] - second[0]]]
    assert found is not None
    assert found.p == pytest.approx(stats.fisher_exact(table, "greater").pvalue, abs=1e-9)


def test_the_interval_is_newcombes_tenth() -> None:
    """Newcombe 1998, table II, example (a)."""
    found = group_difference(right(56, 70), right(48, 80))
    assert found is not None
    assert (round(found.interval.low, 4), round(found.interval.high, 4)) == (0.0524, 0.3339)


def test_graded_scores_are_dealt_out() -> None:
    """The p of scores that are neither right nor wrong is that of a permutation test."""
    draw = np.random.default_rng(2)
    first, second = draw.beta(3, 2, 40), draw.beta(2.2, 2, 50)
    found = group_difference(ScoreGroup.of(first), ScoreGroup.of(second))
    oracle = stats.permutation_test(
        (first, second), lambda a, b, axis: a.mean(axis) - b.mean(axis), vectorized=True,
        alternative="greater", n_resamples=20_000, rng=3,
    )  # fmt: skip
    assert found is not None
    assert found.p == pytest.approx(oracle.pvalue, abs=0.02)


def test_strata_are_compared_with_their_own_counterparts() -> None:
    """Easy questions are most of the one side and hard ones of the other: no difference."""
    strata = [(right(90, 100), right(9, 10)), (right(1, 10), right(10, 100))]
    found = stratified_difference(strata)
    assert found is not None
    assert found.value == pytest.approx(0.0)
    assert found.p == pytest.approx(0.5)


def test_the_p_over_strata_is_that_of_dealing_within_them() -> None:
    strata = [(right(30, 40), right(22, 40)), (right(12, 25), right(15, 40))]
    found = stratified_difference(strata)
    draw = np.random.default_rng(4)
    dealt = np.zeros(100_000)
    for one, two in strata:
        many = round(one.total + two.total)
        dealt += draw.hypergeometric(many, one.n + two.n - many, one.n, len(dealt))
    observed = sum(one.total for one, _ in strata)
    assert found is not None
    assert found.p == pytest.approx((dealt >= observed).mean(), abs=0.005)


def test_nothing_to_compare() -> None:
    assert group_difference(right(0, 0), right(1, 2)) is None
    assert stratified_difference([]) is None
    same = stratified_difference([(right(5, 5), right(5, 5))])
    assert same is not None
    assert same.p == 0.5


@pytest.mark.slow
@pytest.mark.parametrize("accuracy", [0.3, 0.5, 0.7])
def test_a_model_that_learnt_rows_by_heart_is_found_and_no_other(accuracy: float) -> None:
    """A tenth of ``make simulate``: 250 published rows a subset, 500 fresh questions."""
    found = simulate(accuracy, 0.3, 500, draws=60)
    assert found.exam >= 0.9
    assert found.subset >= 0.6
    innocent = simulate(accuracy, 0.0, 500, draws=200)
    assert innocent.exam <= 0.08
    assert innocent.any_subset <= 0.08
