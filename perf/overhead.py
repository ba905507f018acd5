"""What Keju costs beside the HTTP client: a whole session against a bare loop of requests."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from perf.exam import bbh
from perf.measure import Row, alternate, cpu, in_child
from perf.nginx import constant_endpoint

IN_FLIGHT = 64
ROUNDS = 7
LIMIT, LIMIT_UNREAD = 2.0, 3.0
WITH_OPTIONS = [
    "date_understanding",
    "disambiguation_qa",
    "geometric_shapes",
    "hyperbaton",
    "logical_deduction_five_objects",
    "logical_deduction_seven_objects",
    "logical_deduction_three_objects",
    "movie_recommendation",
    "penguins_in_a_table",
    "reasoning_about_colored_objects",
    "ruin_names",
    "salient_translation_error_detection",
    "snarks",
    "temporal_sequences",
    "tracking_shuffled_objects_five_objects",
    "tracking_shuffled_objects_seven_objects",
    "tracking_shuffled_objects_three_objects",
]
"""Subsets of BBH to which the constant reply, an option, is an answer. In the other ten it is
none, and a reply in which nothing can be read takes readers ten times as long as any other."""


def measure() -> Iterator[Row]:
    """CPU a sample of both sides, in turns: of replies that answer, and of all subsets."""
    exam = bbh()
    with constant_endpoint() as url:
        settings = exam.settings | {"model": "constant", "api_url": url}
        if "bbh" in exam.settings["datasets"]:
            option_settings = settings | {"dataset_args": {"bbh": {"subset_list": WITH_OPTIONS}}}
            yield from _in_turns(f"{exam.title}, questions with options", option_settings, LIMIT)
        yield from _in_turns(exam.title, settings, LIMIT_UNREAD)


def _in_turns(title: str, settings: dict[str, Any], limit: float) -> Iterator[Row]:
    process_seconds: list[float] = []

    def keju() -> float:
        usage = in_child(session, settings=settings)
        process_seconds.append(usage.cpu)
        return float(usage.value["seconds"] / usage.value["samples"])

    def bare() -> float:
        usage = in_child(bare_loop, settings=settings)
        return float(usage.value["seconds"] / usage.value["samples"])

    sides = alternate(ROUNDS, keju, bare)
    yield Row(
        f"overhead: CPU a sample, {title}, {IN_FLIGHT} in flight",
        f"{sides.keju * 1e6:.0f} µs",
        f"{limit:g}x of {sides.peer * 1e6:.0f} µs bare",
        sides.ratio,
        sides.ratio <= limit,
    )
    yield Row("overhead: CPU of the whole process", f"{statistics.median(process_seconds):.2f} s")


def bare_loop(settings: dict[str, Any]) -> dict[str, float]:
    """Send the bodies of the exam with the HTTP client alone, and read the replies."""
    import uvloop
    from pyreqwest.client import ClientBuilder

    from keju.config import TaskConfig
    from keju.engine.job import make_jobs
    from keju.models.openai.client import OpenAIModel

    config = TaskConfig(**settings)
    assert config.api_url is not None
    model = OpenAIModel(config.model, api_url=config.api_url)
    (job,) = make_jobs(config)
    bodies = [model.bodies.build(job.request(unit)) for unit in range(job.units)]
    route = model.address.route("chat")
    waiting = iter(bodies)

    async def loop() -> float:
        builder = ClientBuilder().default_headers({"Content-Type": "application/json"})
        client = builder.pool_max_idle_per_host(IN_FLIGHT).build()

        async def worker() -> None:
            for body in waiting:
                reply = await client.post(route).body_bytes(body).build().send()
                await reply.bytes()

        before = cpu()
        await asyncio.gather(*(worker() for _ in range(IN_FLIGHT)))
        seconds = cpu() - before
        await client.close()
        await asyncio.sleep(0.05)
        return seconds

    return {"seconds": uvloop.run(loop()), "samples": len(bodies)}


def session(settings: dict[str, Any]) -> dict[str, float]:
    """Run the exam with everything on disk; the clock runs from the start to the last record."""
    from keju import task
    from keju.config import TaskConfig

    with tempfile.TemporaryDirectory() as folder, clock_of_session() as timings:
        config = TaskConfig(**settings, work_dir=folder, eval_batch_size=IN_FLIGHT)
        finished = task.run_exams(config, report=False)
    assert finished.exit_code == 0, finished.message
    (entry,) = finished.document["benchmarks"]
    return {"seconds": timings[0], "samples": sum(entry["outcomes"].values())}


@contextmanager
def clock_of_session() -> Iterator[list[float]]:
    """While it is open, the list takes the processor time of every session."""
    from keju.engine.session import run_session

    timings: list[float] = []

    def timed(*arguments: Any, **options: Any) -> Any:
        before = cpu()
        try:
            return run_session(*arguments, **options)
        finally:
            timings.append(cpu() - before)

    with mock.patch("keju.task.run_session", timed):
        yield timings
