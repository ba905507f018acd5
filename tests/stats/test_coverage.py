"""A seeded tenth of the grid of `make simulate`: 95 % intervals hold the truth as often as that."""

from __future__ import annotations

import random

import pytest
from perf.simulate import Judged, SimulatedExam, coverage, grid

pytestmark = pytest.mark.slow

TENTH = random.Random(6).sample(list(grid()), k=len(list(grid())) // 10)
DRAWS = 400
NOISE = 0.012
"""Three standard errors of a mean over the seven to eleven true shares of a window."""


@pytest.mark.parametrize("exam", TENTH, ids=lambda exam: exam.name)
def test_intervals_cover_as_stated(exam: SimulatedExam | Judged) -> None:
    found = coverage(exam, draws=DRAWS)
    least = 0.94 if exam.n >= 30 else 0.93
    assert min(found.windows) > least - NOISE
    assert sum(found.at) / len(found.at) > least
    if exam.n >= 30:
        assert sum(found.at) / len(found.at) < 0.98


@pytest.mark.parametrize("n", [10, 30, 100, 250, 1000])
def test_one_subset_is_exact(n: int) -> None:
    found = coverage(SimulatedExam(n), draws=0)
    assert min(found.at) > 0.89
    assert min(found.windows) > 0.94
    assert max(found.windows) < 0.975
