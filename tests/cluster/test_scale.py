"""Rounds of ``make soak PARTS=scale`` with actors: some are killed, and nodes, and the driver."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from perf.soak.rounds import Place
from perf.soak.scale import opened, play

from tests.cluster.conftest import Raylets

pytestmark = pytest.mark.slow

SIZE = 240


@pytest.fixture(scope="module")
def place(python: str, raylets: Raylets) -> Iterator[Place]:
    with opened(Path(python), raylets) as place:
        yield place


@pytest.mark.parametrize("seed", ["1", "2"])
def test_no_lost_actor_loses_doubles_or_scores_anything(seed: str, place: Place) -> None:
    report = play(place, "ray", seed, size=SIZE, real=False)
    assert report.violations == []
    assert report.questions == SIZE
    assert report.signals["actor"] + report.signals["node"] > 0
    assert report.faults.total() > 0
    assert report.records == SIZE + report.errors
