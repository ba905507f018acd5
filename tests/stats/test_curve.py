"""Accuracy against difficulty: the trend against scipy, the halfway point by hand and by chance."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats  # type: ignore[import-untyped]

from keju.stats.curve import DifficultyScore, HalfPoint, half_point, trend

pytestmark = pytest.mark.slow


def levels_of(rows: list[tuple[int, int]], chance: float = 0.0) -> list[DifficultyScore]:
    """Right answers and questions at 1/2, 1, 2, ... times the published size."""
    return [
        DifficultyScore(place - 1.0, n, right / n, chance)
        for place, (right, n) in enumerate(rows)
        if n > 0
    ]


ROWS = st.lists(
    st.integers(1, 30).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
    min_size=2,
    max_size=5,
)


@given(ROWS)
def test_the_trend_is_that_of_scipy_s_correlation(rows: list[tuple[int, int]]) -> None:
    """Armitage's z is the correlation of place and score times the root of N - 1."""
    levels = levels_of(rows)
    places = np.repeat([level.place for level in levels], [n for _, n in rows])
    scores = np.concatenate([[1.0] * right + [0.0] * (n - right) for right, n in rows])
    found = trend([levels])
    if scores.min() == scores.max():
        assert found is None
        return
    assume(len(scores) > 2)
    r = stats.pearsonr(places, scores).statistic
    assert found is not None
    assert found.z == pytest.approx(r * math.sqrt(len(scores) - 1), abs=1e-9)
    assert found.p == pytest.approx(2 * stats.norm.sf(abs(found.z)))
    assert found.slope == pytest.approx(stats.linregress(places, scores).slope, abs=1e-12)


def test_strata_are_compared_with_themselves_alone() -> None:
    """Two subsets of which neither falls, asked in other numbers: together they would fall."""
    easy, hard = levels_of([(90, 100), (9, 10)]), levels_of([(1, 10), (10, 100)])
    pooled = trend([levels_of([(91, 110), (19, 110)])])
    found = trend([easy, hard])
    assert found is not None
    assert pooled is not None
    assert found.p == pytest.approx(1.0)
    assert pooled.p < 1e-10


def test_the_stratified_p_is_that_of_permutations_within_strata() -> None:
    strata = [levels_of([(14, 20), (11, 20), (9, 20)]), levels_of([(8, 15), (7, 15), (4, 15)])]
    found = trend(strata)
    assert found is not None
    draw = np.random.default_rng(5)
    observed, dealt = 0.0, np.zeros(20_000)
    for levels in strata:
        places = np.repeat([level.place for level in levels], [level.n for level in levels])
        right = round(sum(level.n * level.rate for level in levels))
        scores = np.array([1.0] * right + [0.0] * (len(places) - right))
        observed += sum(level.place * level.n * level.rate for level in levels)
        observed -= places.mean() * right
        for number in range(len(dealt)):
            dealt[number] += (draw.permutation(scores) * (places - places.mean())).sum()
    assert found.p == pytest.approx((abs(dealt) >= abs(observed) - 1e-9).mean(), abs=0.02)


def test_the_halfway_point_is_between_the_first_skill_and_chance() -> None:
    """0.9 and 0.5 above a chance of 0.1: halfway is 0.5, which the third level has."""
    found = half_point(levels_of([(90, 100), (70, 100), (50, 100), (30, 100)], chance=0.1))
    assert found.reached == "reached"
    assert found.place == pytest.approx(1.0)
    assert found.low is not None
    assert found.high is not None
    assert 0.4 < found.low < 1.0 < found.high < 1.6


def test_a_model_that_does_not_fall_is_not_halfway() -> None:
    found = half_point(levels_of([(90, 100)] * 3))
    assert found == HalfPoint("beyond", None, None)


def test_a_slow_fall_leaves_the_upper_end_open() -> None:
    found = half_point(levels_of([(18, 20), (14, 20), (10, 20)]))
    assert found.reached == "beyond"
    assert found.low is not None
    steeper = half_point(levels_of([(18, 20), (14, 20), (8, 20)]))
    assert steeper.reached == "reached"
    assert steeper.high is None


def test_a_model_at_chance_has_nothing_to_lose() -> None:
    assert half_point(levels_of([(55, 100), (50, 100)], chance=0.5)).reached == "at_chance"


def test_a_level_that_rises_is_pooled_with_the_one_before() -> None:
    rising = half_point(levels_of([(50, 100), (90, 100), (20, 100)]))
    assert rising.place is not None
    assert rising.place > 0


@pytest.mark.parametrize(
    ("rates", "chance", "n"),
    [((0.9, 0.8, 0.6, 0.4), 0.25, 60), ((0.8, 0.5, 0.3, 0.2), 0.0, 40)],
)
def test_the_interval_of_the_halfway_point_holds_the_truth(
    rates: tuple[float, ...], chance: float, n: int
) -> None:
    exact = half_point([DifficultyScore(p, 10**9, rate, chance) for p, rate in enumerate(rates)])
    assert exact.place is not None
    draw, held, times = random.Random(11), 0, 300
    for _ in range(times):
        drawn = [sum(draw.random() < rate for _ in range(n)) / n for rate in rates]
        found = half_point([DifficultyScore(p, n, rate, chance) for p, rate in enumerate(drawn)])
        low = -1.0 if found.low is None else found.low
        held += low <= exact.place <= (math.inf if found.high is None else found.high)
    assert 0.92 <= held / times <= 1.0
