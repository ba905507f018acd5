"""Slots in simulated time: none is idle while there is work, pilots or not."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest
from perf.slots import LOADS, Load, ideal_seconds, latencies

from keju import Model, Reply, Request, run_task
from keju.types import Usage
from tests.support.virtual_time import use_virtual_time

MAKE_MODEL = "keju.task.make_model"


class Sleeper(Model):
    """Takes a known time for each request, in the order in which they come."""

    name = "m"

    def __init__(self, times: list[float], cached: int) -> None:
        self.times = iter(times)
        self.cached = cached
        self.first_request = self.last_reply = 0.0

    async def ask(self, request: Request, *, timeout: float) -> Reply:
        now = asyncio.get_running_loop().time
        self.first_request = self.first_request or now()
        await asyncio.sleep(next(self.times))
        self.last_reply = now()
        usage = Usage(input=200, output=10, cached=self.cached)
        return Reply("So the answer is (A).", finish="stop", usage=usage)


def seconds(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    load: Load,
    times: list[float],
    cached: int,
) -> float:
    use_virtual_time(monkeypatch)
    model = Sleeper(times, cached)
    monkeypatch.setattr(MAKE_MODEL, lambda _: model)
    kinds = ["boolean_expressions", "object_counting", "word_sorting"]
    kinds += ["dyck_languages"] if load.requests % 4 == 0 else []
    size = load.requests // len(kinds)
    run_task(
        {
            "model": "m",
            "datasets": ["demo"],
            "dataset_args": {"demo": {"size": size, "subset_list": kinds}},
            "work_dir": str(folder),
            "eval_batch_size": load.slots,
        }
    )
    return model.last_reply - model.first_request


@pytest.mark.parametrize("cached", [0, 100])
@pytest.mark.parametrize("load", LOADS, ids=lambda load: f"{load.requests}-{load.slots}")
def test_slots_are_never_idle_for_a_pilot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, load: Load, cached: int
) -> None:
    times = latencies(load, 0)
    run_seconds = seconds(tmp_path, monkeypatch, load, times, cached)
    assert run_seconds <= load.limit * ideal_seconds(times, load.slots)
    assert run_seconds <= 1.02 * ideal_seconds(times, load.slots) + 0.3


def test_a_pilot_that_takes_a_minute_holds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The replies of a reasoning model take long, and the prefill of a prompt does not."""
    load, chance = LOADS[0], random.Random(3)
    times = [60.0 + chance.random() for _ in range(load.requests)]
    run_seconds = seconds(tmp_path, monkeypatch, load, times, 100)
    assert run_seconds <= 1.01 * ideal_seconds(times, load.slots)
