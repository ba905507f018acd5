"""Majority votes among a part of many samples."""

from __future__ import annotations

import math
import random
from time import process_time

import pytest

from keju.stats import votes
from keju.stats.repeats import MOST_EXACT, pass_all_k, pass_at_k, reported_ks
from keju.stats.votes import MOST_COUNTED, majority_vote


def test_large_votes_are_those_that_whole_numbers_give() -> None:
    chance = random.Random(7)
    for _ in range(150):
        right = [chance.randint(1, 12) for _ in range(chance.randint(1, 3))]
        wrong = [chance.randint(1, 12) for _ in range(chance.randint(0, 6))]
        abstained = chance.randint(0, 20)
        total = sum(right) + sum(wrong) + abstained
        k = chance.randint(1, max(1, total - 1))
        if k == total:
            continue
        ballot = tuple(sorted(right)), tuple(sorted(wrong)), abstained, k
        assert votes._approximate_vote(*ballot) == pytest.approx(
            votes._exact_vote(*ballot), abs=1e-12
        )


def test_many_options_with_one_vote_each_share_every_tie() -> None:
    assert majority_vote([1], [1] * (4 * MOST_COUNTED - 1), k=32) == pytest.approx(
        1 / (4 * MOST_COUNTED)
    )
    assert majority_vote([300], [], 700, k=512) == 1
    assert majority_vote([], [300], 700, k=512) == 0


def test_clear_votes_of_many_samples_are_certain_and_equal_ones_are_even() -> None:
    assert majority_vote([40_000], [10_000], k=32_768) == 1
    assert majority_vote([10_000], [40_000], k=32_768) == 0
    assert majority_vote([10_000], [10_000, 10_000], 100, k=8192) == pytest.approx(1 / 3, abs=1e-12)


def seconds_of_votes(samples: int) -> float:
    """Processor time of all votes of one item with five options that are almost alike."""
    sizes = [samples // 6 + shift for shift in range(5)]
    began = process_time()
    for k in reported_ks(samples):
        majority_vote(sizes[:1], sizes[1:], samples - sum(sizes), k)
    return process_time() - began


def test_time_of_votes_grows_with_the_samples_alone() -> None:
    few = min(seconds_of_votes(500 + round) for round in range(3))
    many = min(seconds_of_votes(4 * 500 + round) for round in range(2))
    assert many < 3 * 4 * few


@pytest.mark.parametrize(("right", "k"), [(3, 1), (40, 16), (700, 2), (1100, 512), (1, 1025)])
def test_chances_of_many_samples_are_those_of_whole_numbers(right: int, k: int) -> None:
    n = MOST_EXACT + 200
    none = math.comb(n - right, k) / math.comb(n, k)
    assert pass_at_k(n, right, k) == pytest.approx(1 - none, abs=1e-13)
    every = math.comb(right, k) / math.comb(n, k)
    assert pass_all_k(n, right, k) == pytest.approx(every, rel=1e-11)
