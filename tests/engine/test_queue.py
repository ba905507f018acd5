"""The order of the work."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from keju.benchmarks import registry
from keju.engine.job import Job
from keju.engine.queue import Queue, Unit
from keju.sources.folder import DataFolder
from keju.types import Sampling


def make_job(size: int = 5, epochs: int = 1) -> Job:
    demo = registry.get("demo")
    args = demo.Args(protocol="text", size=size)  # type: ignore[call-arg]
    exam = demo.prepare(args, DataFolder(Path()), seed=1)
    readers = [exam.readers["marker"]]
    return Job(exam, Sampling(), readers, model="m", epochs=epochs)


def drain(queue: Queue, workers: int = 1) -> list[Unit]:
    tasks = []
    while queue.left:
        for worker in range(workers):
            task = queue.take(worker)
            if task is not None:
                tasks.append(task)
    return tasks


def subset_of(unit: Unit) -> str:
    return unit.job.exam.samples[unit.number // unit.job.epochs].subset


def test_every_unit_is_given_out_once_and_equal_prefixes_run_together() -> None:
    job = make_job(size=7, epochs=2)
    tasks = drain(Queue([job], [bytearray(job.units)], seed=3))
    assert sorted(task.number for task in tasks) == list(range(job.units))
    assert len(list(groupby(tasks, subset_of))) == len(job.exam.subsets)


def test_the_order_is_seeded_and_not_the_order_of_the_data() -> None:
    def order(seed: int) -> list[int]:
        job = make_job(size=30)
        return [task.number for task in drain(Queue([job], [bytearray(job.units)], seed=seed))]

    assert order(1) == order(1)
    assert order(1) != order(2)
    assert order(1) != sorted(order(1))


def test_the_order_of_subsets_is_seeded_too() -> None:
    def order(seed: int) -> list[str]:
        job = make_job(size=3)
        tasks = drain(Queue([job], [bytearray(job.units)], seed=seed))
        return [subset for subset, _ in groupby(tasks, subset_of)]

    assert order(7) == order(7)
    assert len({tuple(order(seed)) for seed in range(5)}) > 1


def test_what_is_done_is_not_given_out() -> None:
    job = make_job()
    done = bytearray(job.units)
    done[3] = done[11] = 1
    units = {task.number for task in drain(Queue([job], [done], seed=0))}
    assert units == set(range(job.units)) - {3, 11}


def test_jobs_come_one_after_the_other() -> None:
    first, second = make_job(), make_job()
    tasks = drain(Queue([first, second], [bytearray(first.units)] * 2, seed=5))
    assert [task.job is first for task in tasks] == [True] * first.units + [False] * second.units


def test_with_lanes_each_worker_stays_on_a_prefix_of_its_own() -> None:
    job = make_job(size=20)
    queue = Queue([job], [bytearray(job.units)], seed=0, lanes=True)
    seen: dict[int, list[str]] = {0: [], 1: []}
    while queue.left:
        for worker, subsets in seen.items():
            task = queue.take(worker)
            if task is not None:
                subsets.append(subset_of(task))
    changes = sum(len(list(groupby(subsets))) for subsets in seen.values())
    assert changes == len(job.exam.subsets)


def test_lanes_share_the_last_group_so_that_no_slot_idles() -> None:
    job = make_job(size=20)
    queue = Queue([job], [bytearray(job.units)], seed=0, lanes=True)
    counts = [0, 0, 0, 0]
    while queue.left:
        for worker in range(4):
            counts[worker] += queue.take(worker) is not None
    assert max(counts) - min(counts) <= 1
