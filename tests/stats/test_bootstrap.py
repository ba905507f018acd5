"""The BCa bootstrap."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as oracle  # type: ignore[import-untyped]

from keju.stats.bootstrap import acceleration, bca_levels, bootstrap
from keju.stats.distributions import normal_quantile

SKEWED = [1.0, 2.0, 2.0, 3.0, 10.0]


def test_acceleration_and_levels_vector() -> None:
    left_out = [fmean(SKEWED[:i] + SKEWED[i + 1 :]) for i in range(5)]
    skew = acceleration(left_out)
    assert skew == pytest.approx(0.1014350, rel=1e-6)
    bias = normal_quantile(0.54)
    assert bias == pytest.approx(0.1004337, rel=1e-6)
    assert bca_levels(bias, skew) == pytest.approx((0.0715957, 0.9965871), rel=1e-6)


def test_same_seed_same_interval() -> None:
    first = bootstrap(SKEWED, fmean, seed=7, draws=2000)
    assert first == bootstrap(SKEWED, fmean, seed=7, draws=2000)
    assert first != bootstrap(SKEWED, fmean, seed=8, draws=2000)
    assert first.method == "bca"


def test_agrees_with_scipy() -> None:
    values = [0.0, 0.1, 0.2, 0.2, 0.4, 0.5, 0.5, 0.7, 0.9, 1.0, 1.0, 0.05, 0.3, 0.35, 0.95]
    ours = bootstrap(values, fmean, seed=1)
    theirs = oracle.bootstrap(
        (values,), lambda x, axis: x.mean(axis=axis), n_resamples=10_000, method="BCa", rng=3
    ).confidence_interval
    assert ours.interval == pytest.approx((theirs.low, theirs.high), abs=0.01)


def test_whole_clusters_are_drawn() -> None:
    clusters = [(1.0,) * 5, (0.0,) * 5] * 4

    def mean(drawn: Sequence[tuple[float, ...]]) -> float:
        return fmean(value for cluster in drawn for value in cluster)

    by_cluster = bootstrap(clusters, mean, seed=1, draws=2000).interval
    by_item = bootstrap([v for c in clusters for v in c], fmean, seed=1, draws=2000).interval
    assert by_cluster.high - by_cluster.low > 1.8 * (by_item.high - by_item.low)


def test_falls_back_to_percentile_and_says_so() -> None:
    flat = bootstrap([1.0, 1.0, 1.0], fmean, seed=1, draws=100)
    assert flat.method == "percentile"
    assert flat.bias is None
    assert flat.interval == (1.0, 1.0)


def test_one_cluster_is_refused() -> None:
    with pytest.raises(ValueError, match="two clusters"):
        bootstrap([1.0], fmean, seed=1)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.floats(0, 1), min_size=3, max_size=12), st.integers(0, 99))
def test_interval_stays_inside_the_data(values: list[float], seed: int) -> None:
    low, high = bootstrap(values, fmean, seed=seed, draws=200).interval
    assert min(values) - 1e-9 <= low <= high <= max(values) + 1e-9
