"""Rate limits in simulated time: no question is lost, and nearly all that is allowed is used."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keju import Model, Reply, Request, run_task
from keju.errors import RunIncomplete
from keju.types import Fault, Sampling
from tests.support.virtual_time import use_virtual_time

MAKE_MODEL = "keju.task.make_model"
"""What turns the name of a model into the model."""
STORM_SECONDS = 60.0
RETRY_AFTER: dict[str, float | None] = {"none": None, "0": 0.0, "1": 1.0, "5": 5.0, "1e9": 1e9}
"""Waits that an endpoint asks for; a date in the past is read as 0."""


class Limited(Model):
    """A model whose endpoint refuses requests."""

    name = "m"

    def __init__(self, allows: Callable[[float], bool], retry_after: float | None = None) -> None:
        """`allows` decides at a time whether a request is accepted."""
        self.allows = allows
        self.retry_after = retry_after
        self.latency = 0.5
        self.accepted: list[float] = []
        self.refused: list[float] = []

    def facts(self) -> dict[str, Any]:
        return {"name": self.name, "endpoint": "http://limited"}

    async def preflight(self, sampling: Sampling) -> None:
        """Start without a question."""

    async def ask(self, request: Request, *, timeout: float) -> Reply:
        now = asyncio.get_running_loop().time()
        if not self.allows(now):
            self.refused.append(now)
            await asyncio.sleep(0.01)
            return Reply(error=Fault("rate_limit", "too many requests", 429, self.retry_after))
        self.accepted.append(now)
        await asyncio.sleep(self.latency)
        return Reply(text="So the answer is (A).", finish="stop")


class Storm:
    """Refuses every request for a time, which begins with the request of a number."""

    def __init__(self, seconds: float = STORM_SECONDS, after: int = 20) -> None:
        self.seconds = seconds
        self.after = after
        self.count = 0
        self.start = 0.0

    def __call__(self, now: float) -> bool:
        self.count += 1
        if self.count <= self.after:
            return True
        self.start = self.start or now
        return now >= self.start + self.seconds


class Window:
    """Accepts a number of requests in each minute."""

    def __init__(self, limit: int = 60) -> None:
        self.limit = limit
        self.counts: dict[int, int] = {}

    def __call__(self, now: float) -> bool:
        minute = int(now // 60)
        self.counts[minute] = count = self.counts.get(minute, 0) + 1
        return count <= self.limit


class Bucket:
    """Accepts as many requests as there are tokens, of which some come back each second."""

    def __init__(self, rate: float, size: float) -> None:
        self.rate = rate
        self.size = self.tokens = size
        self.at = 0.0

    def __call__(self, now: float) -> bool:
        self.tokens = min(self.size, self.tokens + (now - self.at) * self.rate)
        self.at = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


def run(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    model: Limited,
    questions: int,
    **extra_settings: Any,
) -> dict[str, Any]:
    """Run the demo exam with a model in simulated time."""
    use_virtual_time(monkeypatch)
    monkeypatch.setattr(MAKE_MODEL, lambda _: model)
    subsets = ["boolean_expressions", "object_counting"]
    settings: dict[str, Any] = {
        "model": "m",
        "datasets": ["demo"],
        "dataset_args": {"demo": {"size": questions // 2, "subset_list": subsets}},
        "work_dir": str(folder),
    }
    return run_task(settings | extra_settings)


def errors(results: dict[str, Any]) -> int:
    return int(results["benchmarks"][0]["outcomes"]["error"])


@pytest.mark.parametrize("in_flight", [1, 8, 32, 128])
@pytest.mark.parametrize("retry_after", RETRY_AFTER)
def test_a_minute_of_refusals_costs_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, retry_after: str, in_flight: int
) -> None:
    storm = Storm()
    model = Limited(storm, RETRY_AFTER[retry_after])
    results = run(tmp_path, monkeypatch, model, 160, eval_batch_size=in_flight, attempts=2)
    assert errors(results) == 0
    assert results["complete"]
    # New work starts only when the storm is over, and few requests look whether it is.
    over = storm.start + STORM_SECONDS
    assert len([at for at in model.refused if at < over]) <= in_flight + 70
    assert max(Counter(int(at) for at in model.refused if at > storm.start + 20).values()) <= 2
    late = [at for at in model.accepted if at >= over]
    assert late[0] - over <= 7.0
    assert late[-1] - late[0] <= 1.1 * len(late) * model.latency / in_flight + 4.0
    notices = {notice["code"] for notice in results["benchmarks"][0]["notices"]}
    assert ("endpoint_odd_wait" in notices) == (retry_after == "1e9")


@pytest.mark.parametrize("in_flight", [1, 8, 32, 128])
def test_nearly_all_of_a_window_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_flight: int
) -> None:
    model = Limited(Window())
    results = run(tmp_path, monkeypatch, model, 240, eval_batch_size=in_flight, attempts=2)
    assert errors(results) == 0
    minutes = Counter(int(at // 60) for at in model.accepted)
    full_minutes = sorted(minutes)[1:-1]
    assert all(minutes[minute] >= 0.9 * 60 for minute in full_minutes)
    assert len(model.refused) <= 300


@pytest.mark.parametrize("in_flight", [8, 32, 128])
@pytest.mark.parametrize("size", [1.0, 4.0])
def test_nearly_all_of_a_bucket_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_flight: int, size: float
) -> None:
    model = Limited(Bucket(4.0, size))
    results = run(tmp_path, monkeypatch, model, 400, eval_batch_size=in_flight, attempts=2)
    assert errors(results) == 0
    late = model.accepted[100:]
    assert len(late) / (late[-1] - late[0]) >= 0.9 * 4.0
    assert len(model.refused) <= 100 + in_flight


@pytest.mark.parametrize("size", [1.0, 4.0])
@pytest.mark.parametrize("latency", [0.02, 0.1, 0.2])
def test_one_request_at_a_time_uses_nearly_all_of_a_bucket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, latency: float, size: float
) -> None:
    """A refused request waits for its turn only: no other request uses the bucket meanwhile."""
    model = Limited(Bucket(4.0, size))
    model.latency = latency
    results = run(tmp_path, monkeypatch, model, 400, eval_batch_size=1, attempts=2)
    assert errors(results) == 0
    late = model.accepted[60:]
    rate = len(late) / (late[-1] - late[0])
    assert rate >= 0.9 * 4.0
    assert len(model.refused) <= 160


@pytest.mark.parametrize(("share", "factor"), [(0.02, 2.0), (0.1, 1.5), (0.5, 6.0)])
def test_a_slower_rate_is_not_tried_for_long_where_it_does_not_help(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: float, factor: float
) -> None:
    """Refusals at random do not depend on the rate."""
    chance = random.Random(5)
    model = Limited(lambda _: chance.random() >= share)
    results = run(tmp_path, monkeypatch, model, 800, eval_batch_size=16)
    assert errors(results) == 0
    seconds = model.accepted[-1] - model.accepted[0]
    assert seconds <= factor * 800 * model.latency / 16


@pytest.mark.parametrize("seed", range(3))
def test_random_refusals_of_four_in_five_cost_time_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance = random.Random(seed)
    model = Limited(lambda _: chance.random() < 0.2, 1.0)
    results = run(tmp_path, monkeypatch, model, 108, eval_batch_size=16, attempts=2)
    assert errors(results) == 0
    assert model.accepted[-1] - min(model.accepted[0], model.refused[0]) <= 300


def test_a_slow_model_recovers_before_its_first_reply(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request that is not refused at once counts as accepted."""
    storm = Storm(after=0)
    model = Limited(storm)
    model.latency = 120.0
    results = run(tmp_path, monkeypatch, model, 64, eval_batch_size=64)
    assert errors(results) == 0
    assert max(model.accepted) < storm.start + STORM_SECONDS + 20


def test_endless_refusals_stop_the_run_and_it_can_be_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storm = Storm(seconds=1e9)
    model = Limited(storm)
    settings: dict[str, Any] = {"eval_batch_size": 8, "give_up_after": 90, "run_id": "r"}
    with pytest.raises(RunIncomplete) as stopped:
        run(tmp_path, monkeypatch, model, 60, **settings)
    assert "refused every request for more than 90 s" in str(stopped.value)
    assert stopped.value.exit_code == 4
    assert 85 <= max(model.refused) - storm.start <= 95
    records = (tmp_path / "r" / "records.jsonl").read_text().splitlines()
    assert len(records) == 20
    model.allows = lambda _: True
    results = run(tmp_path, monkeypatch, model, 60, resume=True, **settings)
    assert errors(results) == 0
    assert len(model.accepted) == 60


def test_a_server_error_keeps_its_attempts_in_a_storm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refusals between two server errors do not count, and the errors do."""

    class Broken(Limited):
        async def ask(self, request: Request, *, timeout: float) -> Reply:
            reply = await super().ask(request, timeout=timeout)
            return reply if reply.error else Reply(error=Fault("server", "broken", 500))

    chance = random.Random(1)
    model = Broken(lambda _: chance.random() < 0.5)
    with pytest.raises(Exception, match="error"):
        run(tmp_path, monkeypatch, model, 4, attempts=3, run_id="r")
    lines = (tmp_path / "r" / "records.jsonl").read_text().splitlines()
    for line in map(json.loads, lines):
        kinds = [fault["kind"] for fault in line.get("faults", ())]
        assert kinds.count("server") + (line["reply"]["error"]["kind"] == "server") == 3
    assert len(lines) == 4
    assert len(model.accepted) == 12
