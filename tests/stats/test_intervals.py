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

from keju.stats.estimate import ItemValues, StratifiedMean, stratified_mean
from keju.stats.intervals import (
    FEARED_CORRELATION,
    Z95,
    Interval,
    Moments,
    bunched_wilson,
    student_t_quantile,
    wilson,
)


def plain_se(values: Sequence[float]) -> float | None:
    moments = Moments.of(values)
    return moments.se if moments else None


def mean_of(
    values: Sequence[float], groups: Sequence[Hashable] | None = None, *, draws: int = 1
) -> StratifiedMean:
    """The mean of items, in clusters where `groups` names them, each of `draws` answers."""
    gathered = ItemValues(clustered=groups is not None)
    for value, group in zip(values, groups or [""] * len(values), strict=True):
        gathered.add(float(value), str(group), draws=draws)
    stratum = gathered.stratum()
    assert stratum is not None
    return stratified_mean([stratum])


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
    rarest = -math.log(0.95) / n  # where one item is right, or wrong
    assert low == pytest.approx(rarest if correct == 1 else expected.low, rel=1e-9, abs=1e-12)
    wrong = n - correct
    assert high == pytest.approx(1 - rarest if wrong == 1 else expected.high, rel=1e-9, abs=1e-12)
    assert 0 <= low <= correct / n <= high <= 1
    assert low < high


def test_wilson_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing"):
        wilson(0.5, 0)


def test_one_rare_item_in_thirty_does_not_leave_out_a_rare_truth() -> None:
    share = 0.0058
    covered = sum(
        math.comb(30, right) * share**right * (1 - share) ** (30 - right)
        for right in range(31)
        if wilson(right / 30, 30).low <= share <= wilson(right / 30, 30).high
    )
    assert covered > 0.95  # Wilson's own interval: 0.84


def test_an_effective_size_between_one_and_two_items_has_an_end_between_theirs() -> None:
    ends = [wilson(items / 30, 30).low * 30 for items in (0.5, 1, 1.25, 1.5, 1.75, 2)]
    assert all(low < high for low, high in pairwise(ends))


def test_clustered_vector() -> None:
    groups = [name for name in "abcde" for _ in range(3)]
    mean = mean_of(FIVE_CLUSTERS, groups)
    assert plain_se(FIVE_CLUSTERS) == pytest.approx(0.1309307, rel=1e-6)
    assert mean.value == pytest.approx(0.6)
    assert mean.clusters == 5
    assert mean.se == pytest.approx(0.1943651, rel=1e-6)
    assert mean.deff == pytest.approx(2.2037037, rel=1e-6)
    assert mean.n_eff == pytest.approx(6.8067227, rel=1e-6)
    assert mean.t_interval == pytest.approx((0.0603561, 1.1396439), rel=1e-6)
    assert wilson(0.6, mean.n_eff) == pytest.approx((0.2674708, 0.8603768), rel=1e-6)
    assert mean.t_interval is not None
    assert mean.t_interval.clip() == Interval(mean.t_interval.low, 1.0)


def test_few_clusters_that_differ_have_students_t() -> None:
    mean = mean_of(FIVE_CLUSTERS, [place // 3 for place in range(15)])
    assert mean.interval is not None
    assert mean.deff is not None
    t = student_t_quantile(0.975, 4)
    reach = Z95 + (t - Z95) * (1 - mean.deff**-2)
    assert mean.interval == pytest.approx(
        bunched_wilson(mean.value, 15, 5, mean.deff, reach), rel=1e-9
    )
    wide, narrow = wilson(0.6, mean.n_eff, reach), wilson(0.6, mean.n_eff)
    assert narrow.high < mean.interval.high < wide.high
    assert mean.interval.low < wide.low


def test_noise_in_the_design_effect_hardly_widens_an_interval() -> None:
    """Half of five clusters of eight are right: Student's t comes in by and by, and not at once
    where the effect passes 1."""
    widths = []
    for totals in ((2, 6, 4, 4, 4), (2, 6, 3, 5, 4)):  # effects of 0.98 and of 1.22
        values = [float(place < total) for total in totals for place in range(8)]
        mean = mean_of(values, [place // 8 for place in range(40)])
        assert mean.interval is not None
        widths.append(mean.interval.high - mean.interval.low)
    assert 1.1 < widths[1] / widths[0] < 1.3  # Student's t of 4 is 1.42 times the normal's quantile


def test_design_effect_below_one_never_adds_items() -> None:
    scores = [1, 0] * 9 + [1, 1]
    mean = mean_of(scores, [i // 2 for i in range(20)])
    assert mean.deff is not None
    assert 0 < mean.deff < 1
    assert mean.n_eff == pytest.approx(20)
    assert mean.interval is not None
    assert mean.interval.high == pytest.approx(wilson(0.55, 20).high, abs=0.001)


def test_one_rare_answer_cannot_show_that_clusters_hold_nothing_together() -> None:
    """One wrong of a thousand in five clusters: the others may hide in bunches, or may not."""
    mean = mean_of([0.0] + [1.0] * 999, [i % 5 for i in range(1000)])
    assert mean.deff == pytest.approx(1, abs=1e-3)
    assert mean.interval is not None
    assert mean.interval.high == pytest.approx(wilson(0.999, 1000).high)
    assert mean.interval.low < 0.9 < wilson(0.999, 1000).low


def test_clusters_keep_what_repeats_gain() -> None:
    """A hundred repeats of each item make the mean sure, in clusters as without them."""
    chance = random.Random(5)
    values = [sum(chance.random() < 0.5 for _ in range(100)) / 100 for _ in range(100)]
    groups = [i // 5 for i in range(100)]
    free, capped = mean_of(values, groups, draws=0), mean_of(values, groups, draws=20)
    assert free.se is not None
    assert free.deff is not None
    assert free.interval is not None
    assert free.n_eff == pytest.approx(mean_of(values, draws=0).n_eff / max(free.deff, 1.0))
    reach = student_t_quantile(0.975, 19 if free.deff > 1 else 99)
    half = reach * max(free.se, plain_se(values) or 0.0)
    assert (free.interval.high - free.interval.low) / 2 == pytest.approx(half, rel=0.05)
    assert capped.n_eff == pytest.approx(2000 / max(free.deff, 1.0))


def test_one_cluster_gives_no_interval_and_says_why() -> None:
    mean = mean_of([1, 0, 1, 1, 0], ["a"] * 5)
    assert (mean.se, mean.interval, mean.t_interval) == (None, None, None)
    gathered = ItemValues(clustered=True)
    gathered.add(1.0, "a", count=7)
    assert gathered.estimate().ci95 is None
    assert gathered.estimate().withheld == "one_cluster"


def test_all_right_in_clusters_is_as_unsure_as_a_feared_correlation_leaves_it() -> None:
    mean = mean_of([1.0] * 12, [i % 4 for i in range(12)])
    assert mean.deff is None
    assert mean.interval == wilson(1.0, 12 / (1 + 2 * FEARED_CORRELATION))


@pytest.mark.parametrize("clustered", [False, True])
def test_fewer_than_five_items_have_no_interval_and_say_why(clustered: bool) -> None:
    gathered = ItemValues(clustered=clustered)
    for place in range(4):
        gathered.add(float(place % 2), str(place // 2))
    few = gathered.estimate()
    assert (few.value, few.ci95, few.withheld) == (0.5, None, "few_questions")
    gathered.add(1.0, "2")
    assert gathered.estimate().ci95 is not None
    assert gathered.estimate().withheld == ""


@given(st.lists(st.sampled_from([0.0, 1.0]), min_size=2, max_size=60))
def test_clusters_of_one_change_nothing(scores: list[float]) -> None:
    assert mean_of(scores, range(len(scores))) == mean_of(scores)


@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=2, max_size=60), st.integers(1, 9))
def test_right_and_wrong_are_treated_alike(scores: list[float], clusters: int) -> None:
    groups = [place % clusters for place in range(len(scores))]
    one = mean_of(scores, groups, draws=4).interval
    other = mean_of([1 - score for score in scores], groups, draws=4).interval
    if one is None or other is None:
        assert one is other
    elif sum(scores) * 2 != len(scores):
        assert one == pytest.approx((1 - other.high, 1 - other.low), abs=1e-9)


def test_mean_of_binary_values_is_wilson() -> None:
    mean = mean_of([1.0] * 8 + [0.0] * 2)
    assert mean.n_eff == pytest.approx(10)
    assert mean.interval == pytest.approx(wilson(0.8, 10))


def test_mean_of_few_items_uses_students_t() -> None:
    mean = mean_of([0.75, 0.25, 1.0, 0.5, 0.0], draws=4)
    assert mean.n_eff == pytest.approx(5 * (0.25 * 5 / 4) / 0.15625)
    assert mean.interval is not None
    t = student_t_quantile(0.975, 4)
    assert mean.interval.low == pytest.approx(wilson(0.5, mean.n_eff, t).low)


def test_mean_of_equal_values_is_never_certain() -> None:
    mean = mean_of([0.5] * 30, draws=4)
    assert mean.n_eff == 120
    assert mean.interval is not None
    assert mean.interval.high - mean.interval.low > 0.15


@given(st.lists(st.integers(0, 8), min_size=5, max_size=50))
def test_the_mean_lies_inside_its_interval(correct: list[int]) -> None:
    mean = mean_of([c / 8 for c in correct], draws=8)
    assert mean.interval is not None
    assert 0 <= mean.interval.low <= mean.value + 1e-12
    assert mean.value - 1e-12 <= mean.interval.high <= 1
    assert len(correct) * (1 - 1e-9) <= mean.n_eff <= 8 * len(correct) * (1 + 1e-9)


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
