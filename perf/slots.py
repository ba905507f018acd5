"""Whether slots are refilled at once: mixed loads against the best that their order allows."""

from __future__ import annotations

import asyncio
import heapq
import random
import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from perf.measure import Row, in_child

ROUNDS = 3


class Load(NamedTuple):
    """Requests of known durations on some slots."""

    requests: int
    slots: int
    words: str
    limit: float
    """The most time, as a multiple of the ideal."""
    draw: Callable[[random.Random], float]


LOADS = (
    Load(320, 16, "0.1 s and 0.9 s", 1.08, lambda chance: 0.9 if chance.random() < 0.1 else 0.1),
    Load(810, 64, "0.3 s to 1.2 s", 1.06, lambda chance: chance.uniform(0.3, 1.2)),
    Load(108, 16, "0.3 s to 1.2 s", 1.10, lambda chance: chance.uniform(0.3, 1.2)),
)


def measure() -> Iterator[Row]:
    """Time from the first request to the last reply against the ideal schedule."""
    for number, load in enumerate(LOADS):
        for cached in (0, 100):
            rounds = [
                in_child(mixed_load, seed=seed, number=number, cached=cached).value
                for seed in range(ROUNDS)
            ]
            ratio = statistics.median(timing["seconds"] / timing["ideal"] for timing in rounds)
            seconds, ideal = (statistics.median(t[key] for t in rounds) for key in rounds[0])
            reported = "with" if cached else "without"
            yield Row(
                f"slots: {load.requests} requests of {load.words} on {load.slots} slots, "
                f"{reported} cached tokens",
                f"{seconds:.2f} s",
                f"{load.limit:g}x of {ideal:.2f} s ideal",
                ratio,
                ratio <= load.limit,
            )


def latencies(load: Load, seed: int) -> list[float]:
    """How long each request takes, in the order in which they are sent."""
    chance = random.Random(seed)
    return [load.draw(chance) for _ in range(load.requests)]


def ideal_seconds(times: Sequence[float], slots: int) -> float:
    """When the last ends if each starts on the first slot that is free, at no cost."""
    free = [0.0] * slots
    for time in times:
        heapq.heapreplace(free, free[0] + time)
    return max(free)


def mixed_load(seed: int, number: int, cached: int) -> dict[str, float]:
    """Run an exam with a model that sleeps; the clock runs around the engine."""
    from keju.benchmarks.demo.questions import KINDS
    from keju.config import TaskConfig
    from keju.engine.channel import Channel, ChannelLimits
    from keju.engine.job import make_jobs
    from keju.engine.loop import Engine
    from keju.engine.queue import UnitQueue
    from keju.models.base import Model
    from keju.runs.journal import Journal
    from keju.types import Reply, Request, Usage

    load = LOADS[number]
    times = latencies(load, seed)

    class Sleeper(Model):
        name = "sleeper"
        requests_seen = 0

        async def ask(self, request: Request, *, timeout: float) -> Reply:
            self.requests_seen += 1
            await asyncio.sleep(times[self.requests_seen - 1])
            usage = Usage(input=200, output=10, cached=cached)
            return Reply("So the answer is (A).", finish="stop", usage=usage)

    subsets = 4 if load.requests % 4 == 0 else 3
    parts = {"size": load.requests // subsets, "subset_list": list(KINDS)[:subsets]}
    config = TaskConfig(model="scripted", datasets=["demo"], dataset_args={"demo": parts})
    jobs = make_jobs(config)
    with tempfile.TemporaryDirectory() as folder, Journal(Path(folder)) as journal:
        limits = ChannelLimits(concurrency=load.slots, timeout=30, attempts=1, give_up_after=30)
        channel = Channel(Sleeper(), limits)
        queue = UnitQueue(
            jobs,
            [bytearray(job.units) for job in jobs],
            seed=seed,
            ahead=load.slots,
            caching=lambda: channel.shares_prefixes,
        )
        engine = Engine(channel, [queue], journal)
        started = perf_counter()
        asyncio.run(engine.run())
        timings = perf_counter() - started
    return {"seconds": timings, "ideal": ideal_seconds(times, load.slots)}
