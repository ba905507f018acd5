"""Looking early and totals: vectors, scipy, properties, error rates."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, special  # type: ignore[import-untyped]
from scipy import stats as oracle

from keju.stats.intervals import (
    Moments,
    normal_quantile,
)
from keju.stats.power import estimate_total
from keju.stats.sequential import (
    LIKELY,
    always_valid_p,
    anytime_factor,
    anytime_stretch,
    e_value,
    graded_e_value,
    tightest_item_count,
    tuning_parameter,
)


@pytest.mark.parametrize(
    ("wins", "losses", "expected"),
    [
        (0, 0, 1),
        (1, 0, 1),
        (10, 10, 0.1761971),
        (15, 5, 2.4044609),
        (20, 5, 19.4852808),
        (21, 5, 30.7267889),
        (6, 0, 14.4375),
        (7, 0, 26.8125),
    ],
)
def test_e_value_vectors(wins: int, losses: int, expected: float) -> None:
    assert e_value(wins, losses) == pytest.approx(expected, rel=1e-6)
    assert e_value(losses, wins) == e_value(wins, losses)


@given(st.integers(0, 400), st.integers(0, 400), st.sampled_from([0.5, LIKELY, 20.0]))
def test_e_value_is_scipys_beta_function(wins: int, losses: int, prior: float) -> None:
    log = special.betaln(wins + prior, losses + prior) - special.betaln(prior, prior)
    assert e_value(wins, losses, prior) == pytest.approx(
        math.exp(log + (wins + losses) * math.log(2)), rel=1e-9
    )


@given(st.integers(0, 200), st.sampled_from([0.5, LIKELY]))
def test_e_values_of_a_fair_coin_are_1_on_average(tosses: int, prior: float) -> None:
    mean = math.fsum(
        math.comb(tosses, wins) * e_value(wins, tosses - wins, prior) / 2**tosses
        for wins in range(tosses + 1)
    )
    assert mean == pytest.approx(1)


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 60), st.sampled_from([0.5, LIKELY]))
def test_graded_e_values_of_yes_or_no_are_the_plain_ones(
    wins: int, losses: int, ties: int, prior: float
) -> None:
    counts = {1.0: wins, -1.0: losses, 0.0: ties}
    assert graded_e_value(counts, prior) == pytest.approx(e_value(wins, losses, prior), rel=1e-9)


def test_graded_e_value_is_the_integral_over_bets() -> None:
    counts = {0.5: 9, -0.25: 4, 1.0: 2}

    def stake(share: float) -> float:
        bet = 2 * share - 1
        grown = math.prod((1 + bet * d) ** many for d, many in counts.items())
        return grown * float(oracle.beta.pdf(share, LIKELY, LIKELY))

    assert graded_e_value(counts, LIKELY) == pytest.approx(integrate.quad(stake, 0, 1)[0], rel=1e-8)


@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.25, 1.0]), max_size=4))
def test_graded_e_values_grow_on_no_average_of_nothing(seen: list[float]) -> None:
    """One item more, whose differences have the mean 0, leaves the e-value as it is on average."""
    after = [(1.0, 0.2), (0.25, 0.4), (-0.5, 0.6)]
    assert math.fsum(d * chance for d, chance in after) == pytest.approx(0)
    mean = math.fsum(
        chance * graded_e_value(Counter([*seen, d]), LIKELY) for d, chance in after
    ) / math.fsum(chance for _, chance in after)
    assert mean == pytest.approx(graded_e_value(Counter(seen), LIKELY))


def test_extreme_evidence_is_a_number() -> None:
    assert 1e300 < e_value(100_000, 0) < math.inf
    assert e_value(100_000, 100_000) > 0


def test_p_may_be_read_after_any_look() -> None:
    assert always_valid_p([]) == 1
    assert always_valid_p([0.5, 0.9]) == 1
    assert always_valid_p([2, 25, 3]) == 0.04


def test_confidence_sequence_vectors() -> None:
    assert tuning_parameter(500) == pytest.approx(0.0158723, abs=6e-8)
    for items, half in ((100, 0.1681944), (500, 0.0678693), (2000, 0.0349622)):
        se = 0.5 / math.sqrt(items)
        assert anytime_factor(items, 500) * se == pytest.approx(half, rel=2e-6)
    fixed = 0.5 * normal_quantile(0.975) / math.sqrt(500)
    assert fixed == pytest.approx(0.0438261, abs=6e-8)
    assert anytime_stretch(500, 500) * fixed == pytest.approx(0.0678693, rel=2e-6)


def test_sequence_is_tightest_where_it_is_to_be() -> None:
    """Of all that are tuned otherwise none is narrower there, but for their rule of thumb."""
    at_500 = {tuned: anytime_factor(500, tuned) for tuned in (100, 300, 400, 600, 900, 4000)}
    assert anytime_factor(500, 500) <= min(at_500.values()) + 1e-3


@pytest.mark.parametrize("half", [0.01, 0.02, 0.05])
def test_sequence_for_a_half_width_reaches_it_there(half: float) -> None:
    items = tightest_item_count(half)
    assert anytime_factor(items, items) * 0.5 / math.sqrt(items) == pytest.approx(half)


def test_sequence_of_a_coin_holds_at_all_looks() -> None:
    chance, missed = random.Random(3), 0
    for _ in range(300):
        right = 0
        for items in range(1, 2001):
            right += chance.random() < 0.3
            if items >= 50 and items % 25 == 0:
                share = right / items
                half = anytime_factor(items, 500) * math.sqrt(share * (1 - share) / items)
                if abs(share - 0.3) > half:
                    missed += 1
                    break
    assert missed <= 0.05 * 300


@pytest.mark.parametrize("prior", [0.5, LIKELY])
def test_equal_systems_looked_at_every_50_items_are_rarely_told_apart(prior: float) -> None:
    chance, alarms = random.Random(4), 0
    for _ in range(400):
        wins = losses = 0
        for _ in range(40):
            drawn = Counter(chance.choices("=<>", (0.72, 0.14, 0.14), k=50))
            wins, losses = wins + drawn[">"], losses + drawn["<"]
            if e_value(wins, losses, prior) >= 20:
                alarms += 1
                break
    assert alarms <= 0.05 * 400


def test_total_vector() -> None:
    total = estimate_total(812, 410, 30, 6511)
    assert (total.value, total.half) == pytest.approx((5_286_932, 996_811), abs=0.5)
    assert estimate_total(812, 0, 1, 10) == (8120, None)


def test_paired_standard_errors_vector() -> None:
    first, second = ([float(digit) for digit in own] for own in ("110110101101", "100100111001"))
    one, other = Moments.of(first), Moments.of(second)
    apart = Moments.of(a - b for a, b in zip(first, second, strict=True))
    assert one is not None
    assert other is not None
    assert apart is not None
    assert None not in (one.se, other.se, apart.se)
    a, b, d = one.se or 0, other.se or 0, apart.se or 0
    assert (a, b, d) == pytest.approx((0.1421338, 0.1507557, 0.1666667), abs=6e-8)
    assert (a * a + b * b - d * d) / (2 * a * b) == pytest.approx(0.3535534, abs=6e-8)
    assert math.hypot(a, b) == pytest.approx(0.2071939, abs=6e-8)
