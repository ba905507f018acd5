"""A seeded tenth of every part of ``make soak``."""

from __future__ import annotations

from pathlib import Path

import pytest
from perf.soak.case import PARTS, cases_of, problems

pytestmark = pytest.mark.slow

SHARES = {"faults": 0.1, "inputs": 0.03, "kills": 0.1, "episodes": 0.1, "hostile": 0.008}
"""Of some there are many more than of the others, and each of ``hostile`` takes longer. One case of
``outbreaks`` starts a whole sandbox; `tests.solvers.sandbox` has the quick ones."""
SEED = 6


@pytest.mark.parametrize("part", SHARES)
def test_a_tenth_of_the_soak_goes_well(part: str, tmp_path: Path) -> None:
    assert list(problems(cases_of(part, SHARES[part], SEED), tmp_path)) == []


@pytest.mark.parametrize("part", PARTS)
def test_every_case_of_a_part_has_a_name_of_its_own(part: str) -> None:
    names = [case.name for case in cases_of(part)]
    assert len(names) == len(set(names))
