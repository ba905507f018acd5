"""Early verdicts of gates: as sure as they say, on recorded verdicts and in simulations."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from perf.early_gate import shorten

from keju.stats.curtail import FullVerdict, sure_verdict_of_graded
from keju.stats.gate import decide_counts, decide_no_worse
from keju.stats.paired import paired_difference


@pytest.mark.parametrize("size", [2, 20, 59, 298, 299, 500])
def test_the_fast_verdict_is_the_gates_own(size: int) -> None:
    chance = random.Random(size)
    for _ in range(25):
        wins = chance.randint(0, min(size, chance.choice((0, 1, 3, 20))))
        losses = chance.randint(0, min(size - wins, chance.choice((0, 1, 3, 20))))
        pairs = [(1.0, 0.0)] * wins + [(0.0, 1.0)] * losses + [(1.0, 1.0)] * (size - wins - losses)
        difference = paired_difference(pairs)
        assert difference is not None
        for margin in (0.01, 0.05):
            for level in (0.05, 0.025):
                slow = decide_no_worse(difference, margin, binary=True, level=level)
                assert decide_counts(wins, losses, size, margin, level) == slow.verdict


@pytest.mark.parametrize(
    ("candidate", "baseline", "most_asked"),
    [
        ("405B at SambaNova", "8B", 0.2),
        ("8B", "405B Turbo", 0.35),
        ("405B at SambaNova", "gpt-4o-mini", 0.85),
        ("gpt-4o-mini", "405B at SambaNova", 1.0),
        ("405B Turbo", "405B at SambaNova", 1.0),
    ],
)
def test_recorded_verdicts_stop_early_where_all_questions_are_clear(
    candidate: str, baseline: str, most_asked: float, data_dir: Path
) -> None:
    assert (data_dir / "recorded" / "gsm8k").is_dir()
    found = shorten((candidate, baseline), 0.01, orders=10)
    assert found.opposite_count == 0
    assert found.asked_share <= most_asked
    if found.is_clear:
        assert found.early[found.full] == 10
    else:
        assert most_asked == 1.0


def test_a_set_that_nearly_passes_is_seldom_called_a_pass() -> None:
    """The counts are those with one win too few: the worst case."""
    size, losses, margin = 400, 20, 0.03
    full = FullVerdict(size, margin)
    wins = max(n for n in range(200) if full.verdict(n, losses) != "pass")
    items = [1] * wins + [-1] * losses + [0] * (size - wins - losses)
    wrong = 0
    for seed in range(100):
        order = random.Random(seed).sample(items, size)
        looks = range(50, size, 25)
        wrong += any(
            full.sure_verdict(order[:n].count(1), order[:n].count(-1), n) == "pass" for n in looks
        )
    assert wrong <= 4, "one of a hundred is expected at most"


def test_few_questions_that_do_not_differ_are_not_sure() -> None:
    assert FullVerdict(1000, 0.01).sure_verdict(0, 0, 50) is None
    assert FullVerdict(1000, 0.2).sure_verdict(0, 0, 200) == "pass"
    assert sure_verdict_of_graded([0.0] * 50, 1000, 0.01) is None
    assert sure_verdict_of_graded([0.0] * 900, 1000, 0.05) == "pass"
    assert sure_verdict_of_graded([-0.5, -0.25] * 50, 1000, 0.05) == "fail"
    assert sure_verdict_of_graded([0.5], 1000, 0.05) is None
