"""Means over fixed strata."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keju.stats.estimate import Stratum, micro_weights, stratified_mean
from keju.stats.intervals import Cluster, Moments, wilson


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


WHOLE = [each._replace(population=0) for each in THREE]


def test_micro_vector() -> None:
    weights = micro_weights(THREE)
    assert weights == [0.2, 0.3, 0.5]
    plain = stratified_mean(WHOLE, weights)
    assert plain.value == pytest.approx(0.56)
    assert plain.se == pytest.approx(0.0471837, rel=1e-6)
    assert not plain.finite
    drawn = stratified_mean(THREE, weights)
    assert drawn.se == pytest.approx(0.0447624, rel=1e-6)
    assert drawn.finite


def test_macro_vector() -> None:
    plain = stratified_mean(WHOLE, macro_weights(THREE))
    assert plain.value == pytest.approx(0.6)
    assert plain.se == pytest.approx(0.0506039, rel=1e-6)
    drawn = stratified_mean(THREE, macro_weights(THREE))
    assert drawn.se == pytest.approx(0.0480071, rel=1e-6)
    assert drawn.without_spread == 0
    assert drawn.interval is not None
    assert drawn.interval.high == pytest.approx(wilson(0.6, drawn.n_eff).high, abs=1e-4)
    assert drawn.interval.low == pytest.approx(wilson(0.6, drawn.n_eff).low, abs=5e-4)
    assert drawn.n_eff == pytest.approx(0.24 / 0.0480071**2, rel=0.03)


def test_subsets_of_one_item_are_one_pot() -> None:
    """Nothing can be seen of the spread within a subset of one: the whole exam's stands in."""
    strata = [stratum(1, int(place < 20)) for place in range(27)]
    mean = stratified_mean(strata, macro_weights(strata))
    assert mean.n_eff == pytest.approx(27)
    assert mean.interval == pytest.approx(wilson(20 / 27, 27))
    assert mean.without_spread == 27


def test_subsets_that_differ_leave_the_mean_surer_than_one_pot() -> None:
    strata = [stratum(10, 10), stratum(10, 0)] * 10
    mean = stratified_mean(strata, macro_weights(strata))
    assert mean.n_eff > 1000


def test_small_subsets_that_are_nearly_always_right_are_no_wider_than_one_pot() -> None:
    strata = [stratum(10, 10)] * 24 + [stratum(10, 9)] * 3
    low, high = stratified_mean(strata, macro_weights(strata)).interval or (0, 1)
    pot = wilson(267 / 270, 270)
    assert high - low == pytest.approx(pot.high - pot.low, rel=0.05)


def test_all_right_everywhere_is_not_certain() -> None:
    strata = [stratum(10, 10)] * 27
    mean = stratified_mean(strata, macro_weights(strata))
    assert mean.value == pytest.approx(1)
    assert mean.interval == pytest.approx(wilson(1.0, 270))


def test_one_stratum_is_wilsons() -> None:
    assert stratified_mean([stratum(10, 10)]).interval == wilson(1.0, 10)
    assert stratified_mean([stratum(10, 7)]).interval == pytest.approx(wilson(0.7, 10))


@given(
    st.lists(
        st.integers(1, 40).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))), min_size=5
    )
)
def test_interval_always_has_width_around_the_value(pairs: list[tuple[int, int]]) -> None:
    strata = [stratum(n, correct) for n, correct in pairs]
    for weights in (micro_weights(strata), macro_weights(strata)):
        mean = stratified_mean(strata, weights)
        assert mean.interval is not None
        assert 0 <= mean.interval.low <= mean.value <= mean.interval.high <= 1
        assert mean.interval.high - mean.interval.low > 0


def clustered(**clusters: Cluster) -> Stratum:
    """A stratum of yes-or-no items in clusters."""
    n, right = (sum(own[side] for own in clusters.values()) for side in (0, 1))
    return stratum(int(n), int(right))._replace(clusters=clusters)


def test_clusters_over_two_strata_add_before_squaring() -> None:
    one = clustered(a=Cluster(2, 2), b=Cluster(2, 0))
    other = clustered(c=Cluster(2, 2), d=Cluster(2, 0))
    shared, apart = (stratified_mean([one, each], [0.5, 0.5]) for each in (one, other))
    assert (shared.clusters, apart.clusters) == (2, 4)
    assert shared.se == pytest.approx(math.sqrt(2 * 2 * 0.25**2))
    assert apart.se == pytest.approx(math.sqrt(4 / 3 * 4 * 0.125**2))


def test_a_single_cluster_has_no_interval() -> None:
    mean = stratified_mean([clustered(a=Cluster(4, 2))])
    assert (mean.clusters, mean.se, mean.interval) == (1, None, None)


def test_macro_interval_covers_as_stated() -> None:
    """Two thousand simulated exams of three subsets, one of them nearly always right."""
    chance = random.Random(20240611)
    truth = [(0.98, 20), (0.6, 40), (0.3, 30)]
    target = sum(p for p, _ in truth) / 3
    covered = 0
    for _ in range(2000):
        strata = [stratum(n, sum(chance.random() < p for _ in range(n))) for p, n in truth]
        low, high = stratified_mean(strata, macro_weights(strata)).interval or (1, 0)
        covered += low <= target <= high
    assert 0.935 < covered / 2000 < 0.985
