"""Whether slots are refilled at once: a mixed load against the best that its order allows."""

from __future__ import annotations

import asyncio
import heapq
import random
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter

from perf.measure import Row, in_child

REQUESTS, SLOTS = 320, 16
FAST, SLOW, SLOW_SHARE = 0.1, 0.9, 0.1
ROUNDS = 3
LIMIT = 1.15


def measure() -> Iterator[Row]:
    """Time from the first request to the last reply against the ideal schedule."""
    rounds = [in_child(mixed_load, seed=seed).value for seed in range(ROUNDS)]
    ratio = statistics.median(taken["seconds"] / taken["ideal"] for taken in rounds)
    seconds, ideal = (statistics.median(taken[key] for taken in rounds) for key in rounds[0])
    yield Row(
        f"slots: {REQUESTS} requests of {FAST} s and {SLOW} s on {SLOTS} slots",
        f"{seconds:.2f} s",
        f"{LIMIT:g}x of {ideal:.2f} s ideal",
        ratio,
        ratio <= LIMIT,
    )


def latencies(seed: int) -> list[float]:
    """How long each request takes, in the order in which they are sent."""
    slow = round(REQUESTS * SLOW_SHARE)
    drawn = [SLOW] * slow + [FAST] * (REQUESTS - slow)
    random.Random(seed).shuffle(drawn)
    return drawn


def ideal_seconds(times: Sequence[float], slots: int) -> float:
    """When the last ends if each starts on the first slot that is free, at no cost."""
    free = [0.0] * slots
    for time in times:
        heapq.heapreplace(free, free[0] + time)
    return max(free)


def mixed_load(seed: int) -> dict[str, float]:
    """Run an exam with a model that sleeps; the clock runs around the engine."""
    from keju.benchmarks.demo.questions import KINDS
    from keju.config import TaskConfig
    from keju.engine.channel import Channel, Limits
    from keju.engine.job import make_jobs
    from keju.engine.loop import Engine
    from keju.engine.queue import Queue
    from keju.models.scripted import ScriptedModel
    from keju.runs.journal import Journal
    from keju.types import Reply, Request

    times = latencies(seed)

    class Sleeper(ScriptedModel):
        asked = 0

        async def ask(self, request: Request, *, timeout: float) -> Reply:
            self.asked += 1
            await asyncio.sleep(times[self.asked - 1])
            return await super().ask(request, timeout=timeout)

    four = {"size": REQUESTS // 4, "subset_list": list(KINDS)[:4]}
    config = TaskConfig(model="scripted", datasets=["demo"], dataset_args={"demo": four})
    jobs = make_jobs(config)
    with tempfile.TemporaryDirectory() as folder, Journal(Path(folder)) as journal:
        queue = Queue(jobs, [bytearray(job.units) for job in jobs], seed=seed)
        limits = Limits(concurrency=SLOTS, timeout=30, attempts=1, give_up_after=30)
        engine = Engine(Channel(Sleeper(), limits), [queue], journal)
        started = perf_counter()
        asyncio.run(engine.run())
        taken = perf_counter() - started
    return {"seconds": taken, "ideal": ideal_seconds(times, SLOTS)}
