"""One-sided decisions: against scipy, and their errors as promised."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest
from scipy import stats  # type: ignore[import-untyped]

from keju.stats.gate import decide_at_least, decide_no_worse
from keju.stats.intervals import binomial_at_least, student_t_survival
from keju.stats.paired import PairedDifference, paired_difference

pytestmark = pytest.mark.slow


def apart(b: int, c: int, n: int) -> PairedDifference:
    pairs = [(1.0, 0.0)] * b + [(0.0, 1.0)] * c + [(1.0, 1.0)] * (n - b - c)
    found = paired_difference(pairs)
    assert found is not None
    return found


def own(scores: Sequence[float], groups: Sequence[str] | None = None) -> PairedDifference:
    found = paired_difference([(score, 0.0) for score in scores], groups)
    assert found is not None
    return found


def test_tails_are_those_of_scipy() -> None:
    for t in (-3.0, -0.2, 0.0, 1.5, 9.0):
        assert student_t_survival(t, 7) == pytest.approx(stats.t.sf(t, 7), rel=1e-9)
    for right, n, share in ((0, 5, 0.3), (3, 5, 0.3), (5, 5, 0.3), (700, 1000, 0.72), (1, 9, 0.0)):
        expected = stats.binom.sf(right - 1, n, share)
        assert binomial_at_least(right, n, share) == pytest.approx(expected, rel=1e-9)


def test_bounds_and_p_agree() -> None:
    for b, c, n, margin in (
        (0, 0, 400, 0.01),
        (3, 9, 300, 0.02),
        (20, 60, 500, 0.02),
        (2, 0, 9, 0.3),
    ):
        found = decide_no_worse(apart(b, c, n), margin, binary=True)
        assert (found.low > -margin) == (found.p < 0.05) == (found.verdict == "pass")
        assert (found.high < -margin) == (found.p_fail < 0.05) == (found.verdict == "fail")


def test_no_difference_on_few_items_shows_nothing() -> None:
    """Nobody differs on 50 items: a true loss of 5 points would do that in 8 % of cases."""
    few, many = (decide_no_worse(apart(0, 0, n), 0.05, binary=True) for n in (50, 100))
    assert few.verdict == "inconclusive"
    assert many.verdict == "pass"


def test_a_score_has_the_exact_bound() -> None:
    """All of 50 right: 0.05^(1/50)."""
    found = decide_at_least(own([1.0] * 50), 0.94, binary=True)
    assert found.low == pytest.approx(0.9418449, rel=1e-6)
    assert found.verdict == "pass"
    found = decide_at_least(own([1.0] * 60 + [0.0] * 40), 0.7, binary=True)
    low, high = (stats.beta.ppf(q, a, b) for q, a, b in ((0.05, 60, 41), (0.95, 61, 40)))
    assert (found.low, found.high) == pytest.approx((low, high), rel=1e-6)
    assert found.verdict == "fail"


def test_what_is_open_names_the_items_that_would_decide() -> None:
    """n (1.645 SE / |d + m|)², as for a published rule of thumb."""
    seen = apart(60, 69, 500)
    found = decide_no_worse(seen, 0.03, binary=True)
    assert found.verdict == "inconclusive"
    assert seen.se is not None
    expected = 500 * (1.644854 * seen.se / abs(seen.value + 0.03)) ** 2
    assert found.needed == pytest.approx(expected, abs=1)
    assert decide_no_worse(apart(0, 10, 100), 0.1, binary=True).needed is None


def test_graded_scores_and_clusters_have_students_t() -> None:
    pairs = [(0.5, 0.25), (0.75, 0.5), (1.0, 0.5), (0.0, 0.25), (0.5, 0.5), (0.25, 0.0)]
    seen = paired_difference(pairs)
    assert seen is not None
    found = decide_no_worse(seen, 0.1, binary=False)
    expected = stats.ttest_1samp([one - two for one, two in pairs], -0.1, alternative="greater")
    assert found.p == pytest.approx(expected.pvalue, rel=1e-6)
    groups = [f"g{i // 10}" for i in range(50)]
    alike = paired_difference([(1.0, 1.0)] * 50, groups)
    assert alike is not None
    # Five contexts in which nothing differs are five items: 1 - 0.05^(1/5) is 45 %.
    assert decide_no_worse(alike, 0.2, binary=True).verdict == "inconclusive"
    one = paired_difference([(1.0, 1.0)] * 9, ["g"] * 9)
    assert one is not None
    assert decide_no_worse(one, 0.2, binary=True).verdict == "inconclusive"


@pytest.mark.parametrize(
    ("n", "discordance", "margin"), [(60, 0.1, 0.05), (300, 0.03, 0.02), (300, 0.28, 0.05)]
)
def test_a_run_at_the_margin_passes_and_fails_as_rarely_as_promised(
    n: int, discordance: float, margin: float
) -> None:
    """All outcomes of a seeded tenth: binomial numbers of wins and losses, 1,000 draws."""
    chance = random.Random(n)
    win, loss = (discordance - margin) / 2, (discordance + margin) / 2
    passed = failed = 0
    draws = 1000
    for _ in range(draws):
        seen = [chance.random() for _ in range(n)]
        b, c = sum(x < win for x in seen), sum(win <= x < win + loss for x in seen)
        verdict = decide_no_worse(apart(b, c, n), margin, binary=True).verdict
        passed += verdict == "pass"
        failed += verdict == "fail"
    slack = 3 * math.sqrt(0.05 * 0.95 / draws)
    assert passed / draws <= 0.055 + slack
    assert failed / draws <= 0.055 + slack


def test_a_clustered_run_at_the_margin_passes_as_rarely_as_promised() -> None:
    """40 contexts of five questions that fail together."""
    chance, passed, draws = random.Random(5), 0, 300
    groups = [f"g{i // 5}" for i in range(200)]
    for _ in range(draws):
        pairs: list[tuple[float, float]] = []
        for _ in range(40):
            kind = chance.random()
            worse = 0.1 if kind < 0.8 else 0.9 if kind < 0.9 else 0.0
            for _ in range(5):
                x = chance.random()
                pairs.append((0.0, 1.0) if x < worse * 0.6 else (1.0, 1.0))
        mean = (0.8 * 0.1 + 0.1 * 0.9) * 0.6
        seen = paired_difference(pairs, groups)
        assert seen is not None
        passed += decide_no_worse(seen, mean, binary=True).verdict == "pass"
    assert passed / draws <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / draws)
