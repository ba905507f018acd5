"""Standard errors and intervals of one score: published vectors, scipy, and properties."""

from __future__ import annotations

import math
import random
from collections.abc import Hashable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as oracle  # type: ignore[import-untyped]

from keju.stats.distributions import student_t_quantile
from keju.stats.intervals import (
    Cluster,
    Interval,
    Moments,
    bounded_mean,
    clustered_mean,
    wilson,
)


def plain_se(values: Sequence[float]) -> float | None:
    moments = Moments.of(values)
    return moments.se if moments else None


def gather_clusters(values: Sequence[float], groups: Sequence[Hashable]) -> list[Cluster]:
    """The scores summed by the group each belongs to."""
    own: dict[Hashable, list[float]] = {}
    for value, group in zip(values, groups, strict=True):
        own.setdefault(group, []).append(value)
    return [Cluster(len(scores), sum(scores)) for scores in own.values()]


FIVE_CLUSTERS = [1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 0, 0, 1, 1, 1]


def test_plain_standard_error() -> None:
    scores = [1, 0, 1, 1, 0, 1, 1, 1, 0, 1]
    moments = Moments.of(scores)
    assert moments is not None
    assert moments.mean == 0.7
    assert plain_se(scores) == pytest.approx(0.1527525, rel=1e-6)


def test_repeats_are_averaged_inside_the_item_first() -> None:
    items = ["1101", "0001", "1111", "0101", "0000"]
    means = [item.count("1") / 4 for item in items]
    assert plain_se(means) == pytest.approx(0.1767767, rel=1e-6)
    pooled = [float(c) for item in items for c in item]
    assert plain_se(pooled) == pytest.approx(0.1147079, rel=1e-6)


def test_one_value_has_no_standard_error() -> None:
    assert plain_se([1.0]) is None
    assert plain_se([]) is None


@pytest.mark.parametrize(
    ("correct", "n", "low", "high"),
    [
        (8, 10, 0.4901625, 0.9433178),
        (0, 10, 0, 0.2775328),
        (10, 10, 0.7224672, 1),
        (330, 1346, 0.2229355, 0.2688566),
        (95, 296, 0.2703492, 0.3761306),
        (4816, 6511, 0.7288735, 0.7501865),
    ],
)
def test_wilson_vectors(correct: int, n: int, low: float, high: float) -> None:
    assert wilson(correct / n, n) == pytest.approx((low, high), rel=1e-6)


@settings(deadline=None)
@given(st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_is_scipys(pair: tuple[int, int]) -> None:
    correct, n = pair
    expected = oracle.binomtest(correct, n).proportion_ci(method="wilson")
    low, high = wilson(correct / n, n)
    assert (low, high) == pytest.approx((expected.low, expected.high), rel=1e-9, abs=1e-12)
    assert 0 <= low <= correct / n <= high <= 1
    assert low < high


def test_wilson_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing"):
        wilson(0.5, 0)


def test_clustered_vector() -> None:
    groups = [name for name in "abcde" for _ in range(3)]
    moments = Moments.of(FIVE_CLUSTERS)
    assert moments is not None
    mean = clustered_mean(gather_clusters(FIVE_CLUSTERS, groups), moments)
    assert moments.se == pytest.approx(0.1309307, rel=1e-6)
    assert mean.value == pytest.approx(0.6)
    assert mean.clusters == 5
    assert mean.se == pytest.approx(0.1943651, rel=1e-6)
    assert mean.deff == pytest.approx(2.2037037, rel=1e-6)
    assert mean.n_eff == pytest.approx(6.8067227, rel=1e-6)
    assert mean.t_interval == pytest.approx((0.0603561, 1.1396439), rel=1e-6)
    assert mean.interval == pytest.approx((0.2674708, 0.8603768), rel=1e-6)
    assert mean.t_interval is not None
    assert mean.t_interval.clipped() == Interval(mean.t_interval.low, 1.0)


def test_design_effect_below_one_never_adds_items() -> None:
    scores = [1, 0] * 9 + [1, 1]
    moments = Moments.of(scores)
    assert moments is not None
    mean = clustered_mean(gather_clusters(scores, [i // 2 for i in range(20)]), moments)
    assert mean.deff is not None
    assert 0 < mean.deff < 1
    assert mean.n_eff == 20
    assert mean.interval == wilson(0.55, 20)


def test_clusters_keep_what_repeats_gain() -> None:
    """A hundred repeats of each item make the mean sure, in clusters as without them."""
    chance = random.Random(5)
    values = [sum(chance.random() < 0.5 for _ in range(100)) / 100 for _ in range(100)]
    moments = Moments.of(values)
    assert moments is not None
    mean = clustered_mean(gather_clusters(values, [i // 5 for i in range(100)]), moments)
    capped = clustered_mean(
        gather_clusters(values, [i // 5 for i in range(100)]), moments, draws=2000
    )
    assert mean.se is not None
    assert mean.deff is not None
    assert mean.interval is not None
    assert mean.n_eff == pytest.approx(bounded_mean(moments).n_eff / max(mean.deff, 1.0))
    half = student_t_quantile(0.975, 19) * max(mean.se, moments.se or 0.0)
    assert (mean.interval.high - mean.interval.low) / 2 == pytest.approx(half, rel=0.02)
    assert capped.n_eff == pytest.approx(2000 / max(mean.deff, 1.0))


def test_one_cluster_gives_no_interval() -> None:
    moments = Moments.of([1, 0, 1])
    assert moments is not None
    mean = clustered_mean(gather_clusters([1, 0, 1], ["a"] * 3), moments)
    assert (mean.se, mean.interval, mean.t_interval) == (None, None, None)


def test_all_right_in_clusters_counts_clusters_as_items() -> None:
    moments = Moments.of([1.0] * 12)
    assert moments is not None
    mean = clustered_mean(gather_clusters([1.0] * 12, [i % 4 for i in range(12)]), moments)
    assert mean.deff is None
    assert mean.interval == wilson(1.0, 4)


@given(st.lists(st.sampled_from([0.0, 1.0]), min_size=2, max_size=60))
def test_clusters_of_one_change_nothing(scores: list[float]) -> None:
    moments = Moments.of(scores)
    assert moments is not None
    mean = clustered_mean(gather_clusters(scores, range(len(scores))), moments)
    assert mean.se == pytest.approx(moments.se, abs=1e-12)


def test_bounded_mean_of_binary_values_is_wilson() -> None:
    moments = Moments.of_counts({1.0: 8, 0.0: 2})
    assert moments is not None
    assert bounded_mean(moments, draws=10).interval == wilson(0.8, 10)


def test_bounded_mean_of_few_items_uses_students_t() -> None:
    moments = Moments.of([0.75, 0.25, 1.0, 0.5, 0.0])
    assert moments is not None
    mean = bounded_mean(moments, draws=20)
    assert mean.n_eff == pytest.approx(5 * (0.25 * 5 / 4) / 0.15625)
    assert mean.interval == wilson(0.5, mean.n_eff, student_t_quantile(0.975, 4))


def test_bounded_mean_of_equal_values_is_never_certain() -> None:
    moments = Moments.of_counts({0.5: 30})
    assert moments is not None
    mean = bounded_mean(moments, draws=120)
    assert mean.n_eff == 120
    assert mean.interval.high - mean.interval.low > 0.15


@given(st.lists(st.integers(0, 8), min_size=2, max_size=50))
def test_bounded_mean_lies_inside_its_interval(correct: list[int]) -> None:
    moments = Moments.of([c / 8 for c in correct])
    assert moments is not None
    mean = bounded_mean(moments, draws=8 * len(correct))
    assert 0 <= mean.interval.low <= mean.value + 1e-12
    assert mean.value - 1e-12 <= mean.interval.high <= 1
    assert len(correct) * (1 - 1e-9) <= mean.n_eff <= 8 * len(correct)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=40), st.randoms(use_true_random=False))
def test_moments_do_not_depend_on_order(values: list[float], chance: random.Random) -> None:
    shuffled = list(values)
    chance.shuffle(shuffled)
    first, second = Moments.of(values), Moments.of(shuffled)
    assert first is not None
    assert second is not None
    assert first.mean == second.mean
    assert first.variance == pytest.approx(second.variance, abs=1e-15)


def test_more_items_never_widen_wilson() -> None:
    widths = [high - low for low, high in (wilson(0.3, n) for n in (10, 20, 50, 1000))]
    assert all(wide > narrow for wide, narrow in pairwise(widths))
    assert math.isclose(sum(wilson(0.5, 40)) / 2, 0.5)
