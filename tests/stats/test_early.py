"""A tenth of `python -m perf.early`: rules that stop early err as rarely as they promise."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest
from perf.early import MODELS, POINTS, Known, coverage_of, decided, known_grid, made_up, mixed

from keju.stats.power import cautious_mean

pytestmark = pytest.mark.slow

TENTH = 50
SMALL = [exam for exam in known_grid() if exam.size < 2000][::3]


@pytest.mark.parametrize("points", POINTS)
def test_mixed_replies_are_decided_early_and_rarely_wrongly(points: float, data_dir: Path) -> None:
    assert (data_dir / "golden" / "mmlu_pro").is_dir()
    pair = mixed(points)
    assert pair.difference == pytest.approx(points, abs=0.0002)
    found = decided(pair, TENTH)
    assert found.wrong <= 0.05
    if points:
        assert found.asked_share <= 0.3
        assert found.decided == 1
    else:
        assert found.decided <= 0.05


def test_pairs_that_differ_on_many_questions_are_decided_within_sixty_percent() -> None:
    found = decided(made_up(0.03), 20)
    assert found.asked_share <= 0.6
    assert found.wrong <= 0.05


@pytest.mark.parametrize("exam", SMALL, ids=lambda exam: f"{exam.name}, {exam.half}")
def test_until_ci_misses_rarely(exam: Known) -> None:
    asked, miss = coverage_of(exam, 20)
    assert asked <= 1
    assert miss <= 0.1


@pytest.mark.parametrize("model", MODELS)
def test_forecasts_from_thirty_replies_hold_what_the_whole_exam_takes(
    model: str, data_dir: Path
) -> None:
    path = data_dir / "golden" / "mmlu_pro" / f"{model}_predictions.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as rows:
        lengths = [len(json.loads(row)["output"]) / 4 for row in rows]
    truth, chance = sum(lengths) / len(lengths), random.Random(8)
    held = 0
    for _ in range(400):
        _, low, high = cautious_mean(chance.sample(lengths, 30), max(lengths))
        held += low <= truth <= high
    assert held >= 0.95 * 400
