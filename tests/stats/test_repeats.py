"""Several samples of each item."""

from __future__ import annotations

import math
import random
from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keju.stats.estimate import Stratum, stratified_mean
from keju.stats.intervals import Moments
from keju.stats.repeats import pass_all_k, pass_at_k, reported_ks, variance_parts
from keju.stats.votes import majority_vote


@pytest.mark.parametrize(
    ("n", "correct", "k", "expected"),
    [(10, 3, 1, 0.3), (10, 3, 5, 0.9166667), (5, 2, 3, 0.9), (5, 0, 5, 0), (5, 1, 5, 1)],
)
def test_pass_at_k_vectors(n: int, correct: int, k: int, expected: float) -> None:
    assert pass_at_k(n, correct, k) == pytest.approx(expected, rel=1e-6)


samples = st.lists(st.sampled_from("ABC-"), min_size=1, max_size=7)


@given(samples, st.data())
def test_pass_at_k_and_pass_all_k_are_means_over_subsets(
    drawn: list[str], data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, len(drawn)))
    right = [one == "A" for one in drawn]
    subsets = list(combinations(right, k))
    n, c = len(drawn), sum(right)
    assert pass_at_k(n, c, k) == pytest.approx(sum(map(any, subsets)) / len(subsets))
    assert pass_all_k(n, c, k) == pytest.approx(sum(map(all, subsets)) / len(subsets))


def test_impossible_k_is_refused() -> None:
    with pytest.raises(ValueError, match="k=3"):
        pass_at_k(2, 1, 3)
    with pytest.raises(ValueError, match="5 correct"):
        pass_all_k(4, 5, 1)
    with pytest.raises(ValueError, match="3 of 2"):
        majority_vote([1], [1], k=3)


def vote(drawn: tuple[str, ...]) -> float:
    """A vote counted the plain way; A is right and ``-`` abstains."""
    votes = Counter(one for one in drawn if one != "-")
    winners = [one for one, count in votes.items() if count == max(votes.values())]
    return 1 / len(winners) if "A" in winners else 0.0


@settings(deadline=None)
@given(samples, st.data())
def test_majority_is_the_exact_mean_over_subsets(drawn: list[str], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(drawn)))
    votes = Counter(drawn)
    subsets = list(combinations(drawn, k))
    exact = sum(map(vote, subsets)) / len(subsets)
    got = majority_vote([votes["A"]], [votes["B"], votes["C"]], votes["-"], k)
    assert got == pytest.approx(exact)


def test_majority_ties_and_abstentions() -> None:
    assert majority_vote([2], [2, 1]) == 0.5
    assert majority_vote([1], [1, 1]) == pytest.approx(1 / 3)
    assert majority_vote([1], [], abstained=9) == 1
    assert majority_vote([], [], abstained=4) == 0
    assert majority_vote([2, 2], [2]) == pytest.approx(2 / 3)


def test_a_vote_has_more_ways_than_a_float_holds() -> None:
    assert majority_vote([500_000], [500_000], k=81) == 0.5


@pytest.mark.parametrize(
    ("repeats", "rungs"),
    [(1, [1]), (2, [1, 2]), (3, [1, 2, 3]), (8, [1, 2, 4, 8]), (10, [1, 2, 4, 8, 10])],
)
def test_ladder(repeats: int, rungs: list[int]) -> None:
    assert reported_ks(repeats) == rungs


def test_variance_parts_vector() -> None:
    parts = variance_parts((4, correct, 1) for correct in (3, 1, 4, 2, 0))
    assert parts is not None
    assert parts.within == pytest.approx(0.1666667, rel=1e-6)
    assert parts.between == pytest.approx(0.1145833, rel=1e-6)
    total = parts.between + parts.within / 4
    assert math.sqrt(total / 5) == pytest.approx(0.1767767, rel=1e-6)


def test_variance_parts_need_two_items_with_repeats() -> None:
    assert variance_parts([(1, 1, 50), (4, 2, 1)]) is None


ITEMS, REPEATS, EXAMS = 60, 6, 1500


@pytest.mark.slow
def test_intervals_of_simulated_models_cover_as_stated() -> None:
    """Items are drawn from a known law of difficulty; 95 % intervals hold the truth 95 % of times.

    An item's chance of success is a + (b - a) u**2, u uniform, so that E of any polynomial in it
    is known to as many digits as wanted.
    """
    chance = random.Random(5)
    easiest, hardest = 0.97, 0.05

    def ability(u: float) -> float:
        return hardest + (easiest - hardest) * u * u

    grid = [ability((i + 0.5) / 20_000) for i in range(20_000)]
    truth = {k: math.fsum(1 - (1 - p) ** k for p in grid) / len(grid) for k in (1, 2, 4, 6)}
    covered: Counter[int] = Counter()
    total = dict.fromkeys(truth, 0.0)
    for _ in range(EXAMS):
        correct = []
        for _ in range(ITEMS):
            p = ability(chance.random())
            correct.append(sum(chance.random() < p for _ in range(REPEATS)))
        for k, target in truth.items():
            moments = Moments.of([pass_at_k(REPEATS, c, k) for c in correct])
            assert moments is not None
            mean = stratified_mean([Stratum(moments, draws=ITEMS * REPEATS)])
            assert mean.interval is not None
            covered[k] += mean.interval.low <= target <= mean.interval.high
            total[k] += mean.value
    for k, target in truth.items():
        assert 0.935 <= covered[k] / EXAMS <= 0.97, (k, covered[k] / EXAMS)
        assert total[k] / EXAMS == pytest.approx(target, abs=0.005)
