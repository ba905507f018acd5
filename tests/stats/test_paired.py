"""Two scores on the same items: published vectors, scipy, and properties."""

from __future__ import annotations

import math
import random
from itertools import islice, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as oracle  # type: ignore[import-untyped]

from keju.stats import paired, power
from keju.stats.intervals import normal_survival, normal_survival_log10
from keju.stats.paired import (
    benjamini_hochberg,
    bonett_price,
    holm,
    mcnemar,
    paired_difference,
    sign_flip,
)
from keju.stats.power import (
    items_needed,
    items_needed_exactly,
    minimal_detectable_effect,
    planned_items,
)


@pytest.mark.parametrize(
    ("first", "second", "p", "mid_p"),
    [
        (15, 5, 0.0413895, 0.0266037),
        (20, 5, 0.0040773, 0.0024939),
        (3, 0, 0.25, 0.125),
        (7, 7, 1, 1),
        (30, 12, 0.0079159, 0.0054016),
        (600, 500, 0.0028195, 0.0025648),
        (0, 0, 1, 1),
    ],
)
def test_mcnemar_vectors(first: int, second: int, p: float, mid_p: float) -> None:
    test = mcnemar(first, second)
    assert (test.p, test.mid_p) == pytest.approx((p, mid_p), abs=6e-8)
    assert mcnemar(second, first)[2:] == test[2:]


@settings(deadline=None)
@given(st.integers(0, 20_000), st.integers(0, 20_000))
def test_mcnemar_is_scipys_binomial_test(first: int, second: int) -> None:
    expected = oracle.binomtest(first, first + second).pvalue if first + second else 1.0
    assert mcnemar(first, second).p == pytest.approx(expected, rel=1e-7, abs=1e-200)


def test_bonett_price_vector() -> None:
    low, high = bonett_price(15, 5, 100)
    assert (low, high) == pytest.approx((0.0099424, 0.1861360), rel=1e-5)
    assert ((low + high) / 2, (high - low) / 2) == pytest.approx((0.0980392, 0.0880968), abs=6e-8)


FIRST = [float(c) for c in "110110101101"]
SECOND = [float(c) for c in "100100111001"]
PAIRS = list(zip(FIRST, SECOND, strict=True))


def test_paired_difference_vector() -> None:
    plain = paired_difference(PAIRS)
    assert plain is not None
    assert (plain.value, plain.se) == pytest.approx((1 / 6, 1 / 6))
    assert (plain.first_only, plain.second_only, plain.n) == (3, 1, 12)
    assert plain.p == mcnemar(3, 1).p
    assert plain.interval == bonett_price(3, 1, 12)
    clustered = paired_difference(PAIRS, [place // 3 for place in range(12)])
    assert clustered is not None
    assert clustered.se == pytest.approx(1 / 6)
    assert clustered.clusters == 4
    assert clustered.p == sign_flip([1, 1, -1, 1])[0]


def test_nothing_and_one_cluster_have_no_interval() -> None:
    assert paired_difference([]) is None
    one = paired_difference(PAIRS, ["a"] * 12)
    assert one is not None
    assert (one.se, one.interval, one.is_significant) == (None, None, False)


@given(st.lists(st.tuples(*[st.sampled_from([0.0, 0.25, 0.5, 1.0])] * 2), min_size=1))
def test_differences_stay_in_their_range(pairs: list[tuple[float, float]]) -> None:
    difference = paired_difference(pairs)
    assert difference is not None
    if difference.interval is not None:
        assert -1 <= difference.interval.low <= difference.interval.high <= 1


@pytest.mark.parametrize(
    ("sums", "p"), [([2, 1, 0, -1, 3, 1], 0.25), ([1, 1, -1, 1], 0.625), ([], 1), ([0, 0], 1)]
)
def test_sign_flip_vectors(sums: list[float], p: float) -> None:
    assert sign_flip(sums)[0] == p


@given(st.lists(st.sampled_from([-1.5, -1.0, -0.5, 0.0, 0.25, 1.0]), min_size=1, max_size=9))
def test_sign_flip_goes_through_all_signs(sums: list[float]) -> None:
    flips = [
        abs(sum(s * d for s, d in zip(signs, sums, strict=True))) >= abs(sum(sums)) - 1e-9
        for signs in product((1, -1), repeat=len(sums))
    ]
    assert sign_flip(sums)[0] == pytest.approx(sum(flips) / len(flips))


def test_too_many_sums_are_drawn_by_a_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(3)
    sums = [chance.uniform(-0.7, 1) for _ in range(15)]
    exact = sign_flip(sums)[0]
    monkeypatch.setattr(paired, "ALL_SIGNS", 10)
    monkeypatch.setattr(paired, "MOST_SUMS", 100)
    drawn = sign_flip(sums, seed=8)[0]
    assert drawn == sign_flip(sums, seed=8)[0]
    assert drawn == pytest.approx(exact, abs=0.01)
    monkeypatch.setattr(paired, "MANY_SIGNS", 10)
    assert sign_flip(sums)[0] == pytest.approx(exact, abs=0.03)


TEN = [0.001, 0.008, 0.039, 0.041, 0.042, 0.06, 0.074, 0.205, 0.212, 0.216]


def test_many_tests_vectors() -> None:
    adjusted = benjamini_hochberg(TEN)
    expected = [0.01, 0.04, 0.084, 0.084, 0.084, 0.1, 0.1057143, 0.216, 0.216, 0.216]
    assert adjusted == pytest.approx(expected, rel=1e-6)
    assert sum(p <= 0.05 for p in holm(TEN)) == 1
    five = [0.012, 0.018, 0.029, 0.038, 0.6]
    assert sum(p <= 0.05 for p in benjamini_hochberg(five)) == 4
    assert not any(p <= 0.05 for p in holm(five))
    assert benjamini_hochberg([]) == holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_benjamini_hochberg_is_scipys(ps: list[float]) -> None:
    assert benjamini_hochberg(ps) == pytest.approx(list(oracle.false_discovery_control(ps)))
    pairs = zip(holm(ps), benjamini_hochberg(ps), strict=True)
    assert all(strict >= own - 1e-12 for strict, own in pairs)


@pytest.mark.parametrize(
    ("n", "discordance", "effect"),
    [
        (100, 0.28, 0.1427496),
        (205, 0.28, 0.1016125),
        (500, 0.28, 0.0657833),
        (1319, 0.05, 0.0171980),
        (1346, 0.28, 0.0402900),
        (6511, 0.28, 0.0183610),
        (12032, 0.28, 0.0135105),
    ],
)
def test_minimal_detectable_effects(n: int, discordance: float, effect: float) -> None:
    assert minimal_detectable_effect(n, discordance) == pytest.approx(effect, rel=4e-6)
    assert items_needed(minimal_detectable_effect(n, discordance), discordance) == n


def test_items_needed_vectors() -> None:
    assert items_needed(0.03, 0.28) == 2435
    assert items_needed(0.03, 0.28, population=12032) == 2025
    assert planned_items(0.03, 0.2 + 0.1 / 4 + 0.1 / 4) == 2181
    assert items_needed(0.03, 0.28, deff=2) == 4869
    with pytest.raises(ValueError, match="nothing"):
        items_needed(0)


def mcnemar_power(n: int, first_only: float, second_only: float) -> float:
    """The probability that McNemar's exact test of `n` items finds the difference."""
    discordance = min(1.0, first_only + second_only)
    chances = power._detection_chances(max(first_only, second_only) / discordance)
    return power._average_power(n, discordance, list(islice(chances, n + 1)))


@pytest.mark.parametrize(
    ("n", "first", "second"), [(12, 0.6, 0.0), (30, 0.35, 0.05), (25, 0.1, 0.4), (10, 0.7, 0.3)]
)
def test_the_power_of_the_exact_test_is_that_of_all_tables(
    n: int, first: float, second: float
) -> None:
    rest = max(0.0, 1 - first - second)
    found = sum(
        oracle.multinomial.pmf([one, two, n - one - two], n, [first, second, rest])
        for one in range(n + 1)
        for two in range(n + 1 - one)
        if mcnemar(one, two).p < 0.05
    )
    assert mcnemar_power(n, first, second) == pytest.approx(found, abs=1e-9)


def test_items_needed_by_the_exact_test() -> None:
    """Six discordant items are the fewest: 12 items have them with a chance of 0.84, 11 of 0.75."""
    assert items_needed(0.6, 0.6) == 6
    assert items_needed_exactly(0.6, 0.0) == items_needed_exactly(0.0, 0.6) == 12
    assert items_needed_exactly(1.0, 0.0) == 6
    for first, second in ((0.35, 0.05), (0.3, 0.2), (0.05, 0.01)):
        n = items_needed_exactly(first, second)
        assert mcnemar_power(n - 1, first, second) < 0.8 <= mcnemar_power(n, first, second)


@pytest.mark.parametrize(
    ("effect", "discordance"), [(0.03, 0.28), (0.05, 0.28), (0.01, 0.05), (0.02, 0.08)]
)
def test_planned_items_have_the_power_under_the_test_of_compare(
    effect: float, discordance: float
) -> None:
    """The normal approximation's number has 0.77 to 0.79."""
    first, second = (discordance + effect) / 2, (discordance - effect) / 2
    n = items_needed_exactly(first, second)
    assert mcnemar_power(n, first, second) >= 0.8 > mcnemar_power(n - 1, first, second)
    approximate = items_needed(effect, discordance)
    assert mcnemar_power(approximate, first, second) < 0.79
    assert approximate < n < approximate + 3 / effect


@pytest.mark.parametrize(("first", "second"), [(3000, 10), (900, 100), (600, 500), (20, 5), (3, 0)])
def test_a_p_is_never_zero_and_has_its_logarithm_beside_it(first: int, second: int) -> None:
    total = first + second
    tail = sum(math.comb(total, k) for k in range(second + 1))
    expected = math.log10(2 * tail) - total * math.log10(2)
    pairs = [(1.0, 0.0)] * first + [(0.0, 1.0)] * second
    found = paired_difference(pairs)
    assert found is not None
    assert found.p_log10 == pytest.approx(expected, abs=1e-8)
    assert found.p == pytest.approx(max(1e-300, 10**expected), rel=1e-8)
    graded = paired_difference([(a, 0.5 * b) for a, b in pairs])
    assert graded is not None
    assert 0 < graded.p <= 1
    assert graded.p_log10 <= 0


def test_the_logarithm_of_the_normal_tail_goes_on_where_floats_end() -> None:
    for z in (29.9, 30.0, 30.1, 37.0):
        assert normal_survival_log10(z) == pytest.approx(math.log10(normal_survival(z)), rel=1e-10)
    assert normal_survival(60) == 0.0
    assert normal_survival_log10(60) == pytest.approx(-783.9, abs=0.1)
