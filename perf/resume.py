"""How long a long run needs to pick up where it stopped."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from perf.exam import bbh, demo
from perf.measure import Row, cpu, in_child, within

RECORDS = 100_000
LIMIT = 2.0


def measure() -> Iterator[Row]:
    """CPU from the start of the session to the moment at which the queue is ready."""
    exam = bbh()
    if exam.settings["datasets"] == ["bbh"]:
        repeated = exam.settings | {"model": "scripted", "repeats": -(-RECORDS // 6_511)}
        yield _picked_up(repeated, f"{exam.title}, repeated")
    yield _picked_up(demo(RECORDS), "generated questions")


def _picked_up(settings: dict[str, Any], title: str) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        stored = settings | {"work_dir": folder, "run_id": "stored"}
        in_child(store, settings=stored)
        measured = in_child(pick_up, settings=stored).value
    row_title = f"resume: {measured['known']:,} records, {title}"
    return within(row_title, measured["seconds"], LIMIT, "s")


def store(settings: dict[str, Any]) -> None:
    """Sit the exam, then cut off the last record, so that there is something left to ask."""
    from keju.config import TaskConfig
    from keju.task import run_exams

    finished = run_exams(TaskConfig(**settings), report=False)
    journal = Path(finished.folder, "records.jsonl")
    lines = journal.read_bytes()
    journal.write_bytes(lines[: lines.rstrip().rfind(b"\n") + 1])


def pick_up(settings: dict[str, Any]) -> dict[str, float]:
    """Resume; note the processor time at which the queue is there."""
    from keju.config import TaskConfig
    from keju.engine import session
    from keju.engine.queue import UnitQueue
    from keju.task import run_exams

    ready: list[float] = []

    def make_queue(*arguments: Any, **options: Any) -> UnitQueue:
        queue = UnitQueue(*arguments, **options)
        ready.append(cpu())
        return queue

    config = TaskConfig(**settings, resume=True)
    before = cpu()
    with mock.patch.object(session, "UnitQueue", make_queue):
        finished = run_exams(config, report=False)
    assert finished.document["complete"]
    (entry,) = finished.document["benchmarks"]
    return {"seconds": ready[0] - before, "known": sum(entry["outcomes"].values()) - 1}
