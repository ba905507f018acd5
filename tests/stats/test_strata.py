"""Means over fixed strata."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keju.stats.distributions import Z95
from keju.stats.intervals import Cluster, Moments, clustered_mean, wilson
from keju.stats.strata import (
    Stratum,
    clustered_strata_se,
    micro_weights,
    stratified_mean,
)


def stratum(n: int, correct: int, population: int = 0) -> Stratum:
    """A stratum of `n` yes-or-no items."""
    moments = Moments.of_counts({1.0: correct, 0.0: n - correct})
    assert moments is not None
    return Stratum(moments, population)


def macro_weights(strata: Sequence[Stratum]) -> list[float]:
    return [1 / len(strata)] * len(strata)


THREE = [
    stratum(20, 12, 200),
    stratum(30, 24, 300),
    stratum(50, 20, 500),
]


def test_micro_vector() -> None:
    assert micro_weights(THREE) == [0.2, 0.3, 0.5]
    plain = stratified_mean(THREE, micro_weights(THREE), finite=False)
    assert plain.value == pytest.approx(0.56)
    assert plain.se == pytest.approx(0.0471837, rel=1e-6)
    drawn = stratified_mean(THREE, micro_weights(THREE))
    assert drawn.se == pytest.approx(0.0447624, rel=1e-6)


def test_macro_vector() -> None:
    plain = stratified_mean(THREE, macro_weights(THREE), finite=False)
    assert plain.value == pytest.approx(0.6)
    assert plain.se == pytest.approx(0.0506039, rel=1e-6)
    drawn = stratified_mean(THREE, macro_weights(THREE))
    assert drawn.se == pytest.approx(0.0480071, rel=1e-6)
    assert drawn.interval == pytest.approx((0.6 - Z95 * drawn.se, 0.6 + Z95 * drawn.se))
    assert drawn.by_wilson == 0


@pytest.mark.parametrize(("n", "correct"), [(1, 1), (1, 0), (10, 10), (10, 0)])
def test_stratum_without_spread_enters_with_wilson(n: int, correct: int) -> None:
    strata = [stratum(n, correct), stratum(20, 10)]
    mean = stratified_mean(strata, macro_weights(strata))
    low, high = wilson(correct / n, n)
    own = ((high - low) / (2 * Z95)) ** 2
    assert mean.by_wilson == 1
    assert mean.se == pytest.approx(math.sqrt(own / 4 + 0.25 / 19 / 4))


def test_all_right_everywhere_is_not_certain() -> None:
    strata = [stratum(10, 10)] * 27
    mean = stratified_mean(strata, macro_weights(strata))
    assert mean.value == pytest.approx(1)
    assert mean.se > 0
    assert mean.interval.low == pytest.approx(1 - (1 - 0.7224672) / math.sqrt(27), rel=1e-6)


def test_one_stratum_without_spread_has_wilsons_arms() -> None:
    mean = stratified_mean([stratum(10, 10)], [1.0])
    assert mean.interval == pytest.approx(wilson(1.0, 10))


@given(
    st.lists(
        st.integers(1, 40).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))), min_size=1
    )
)
def test_interval_always_has_width_around_the_value(pairs: list[tuple[int, int]]) -> None:
    strata = [stratum(n, correct) for n, correct in pairs]
    for weights in (micro_weights(strata), macro_weights(strata)):
        mean = stratified_mean(strata, weights)
        assert mean.interval.low <= mean.value <= mean.interval.high
        assert mean.interval.high - mean.interval.low > 0
        assert mean.se > 0


def test_clusters_inside_one_stratum_are_the_clustered_mean() -> None:
    clusters = {"a": Cluster(3, 3), "b": Cluster(3, 2), "c": Cluster(3, 0), "d": Cluster(3, 1)}
    moments = Moments.of_counts({1.0: 6, 0.0: 6})
    assert moments is not None
    expected = clustered_mean(list(clusters.values()), moments).se
    se, size = clustered_strata_se([clusters], [1.0])
    assert size == 4
    assert se == pytest.approx(expected)


def test_clusters_over_two_strata_add_before_squaring() -> None:
    one = {"a": Cluster(2, 2), "b": Cluster(2, 0)}
    apart = [one, {"c": Cluster(2, 2), "d": Cluster(2, 0)}]
    shared_se, shared = clustered_strata_se([one, one], [0.5, 0.5])
    apart_se, separate = clustered_strata_se(apart, [0.5, 0.5])
    assert (shared, separate) == (2, 4)
    assert shared_se == pytest.approx(math.sqrt(2 * 2 * 0.25**2))
    assert apart_se == pytest.approx(math.sqrt(4 / 3 * 4 * 0.125**2))


def test_a_single_cluster_has_no_standard_error() -> None:
    assert clustered_strata_se([{"a": Cluster(4, 2)}], [1.0]) == (None, 1)


def test_macro_interval_covers_as_stated() -> None:
    """Two thousand simulated exams of three subsets, one of them nearly always right."""
    chance = random.Random(20240611)
    truth = [(0.98, 20), (0.6, 40), (0.3, 30)]
    target = sum(p for p, _ in truth) / 3
    covered = 0
    for _ in range(2000):
        strata = [stratum(n, sum(chance.random() < p for _ in range(n))) for p, n in truth]
        low, high = stratified_mean(strata, macro_weights(strata)).interval
        covered += low <= target <= high
    assert 0.935 < covered / 2000 < 0.985
