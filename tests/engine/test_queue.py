"""The order of the work."""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import groupby
from pathlib import Path

import pytest

from keju.benchmarks import registry
from keju.engine.job import Job
from keju.engine.queue import LONGEST_PREFILL, Unit, UnitQueue, WaitForPrefix, make_length_estimator
from keju.sources.folder import DataFolder
from keju.types import Sampling


def make_job(size: int = 5, epochs: int = 1) -> Job:
    demo = registry.get("demo")
    args = demo.Args(protocol="text", size=size)  # type: ignore[call-arg]
    exam = demo.prepare(args, DataFolder(Path()), seed=1)
    readers = [exam.readers["marker"]]
    return Job(exam, Sampling(), readers, model="m", epochs=epochs)


def drain(queue: UnitQueue, workers: int = 1) -> list[Unit]:
    """All units in their order; each is answered when the next one is taken."""
    tasks: list[Unit] = []
    while queue.remaining:
        for worker in range(workers):
            task = queue.take(worker)
            assert not isinstance(task, WaitForPrefix)
            if task is not None:
                tasks.append(task)
                queue.note_reply(task)
    return tasks


def subset_of(unit: Unit) -> str:
    return unit.job.exam.samples[unit.number // unit.job.epochs].subset


def test_every_unit_is_given_out_once_and_equal_prefixes_run_together() -> None:
    job = make_job(size=7, epochs=2)
    tasks = drain(UnitQueue([job], [bytearray(job.units)], seed=3))
    assert sorted(task.number for task in tasks) == list(range(job.units))
    assert len(list(groupby(tasks, subset_of))) == len(job.exam.subsets)


def test_the_order_is_seeded_and_not_the_order_of_the_data() -> None:
    def order(seed: int) -> list[int]:
        job = make_job(size=30)
        return [task.number for task in drain(UnitQueue([job], [bytearray(job.units)], seed=seed))]

    assert order(1) == order(1)
    assert order(1) != order(2)
    assert order(1) != sorted(order(1))


def test_the_order_of_subsets_is_seeded_too() -> None:
    def order(seed: int) -> list[str]:
        job = make_job(size=3)
        tasks = drain(UnitQueue([job], [bytearray(job.units)], seed=seed))
        return [subset for subset, _ in groupby(tasks, subset_of)]

    assert order(7) == order(7)
    assert len({tuple(order(seed)) for seed in range(5)}) > 1


def test_what_is_done_is_not_given_out() -> None:
    job = make_job()
    answered = bytearray(job.units)
    answered[3] = answered[11] = 1
    units = {task.number for task in drain(UnitQueue([job], [answered], seed=0))}
    assert units == set(range(job.units)) - {3, 11}


def test_jobs_come_one_after_the_other() -> None:
    first_job, second_job = make_job(), make_job()
    tasks = drain(UnitQueue([first_job, second_job], [bytearray(first_job.units)] * 2, seed=5))
    assert [task.job is first_job for task in tasks] == [True] * first_job.units + [
        False
    ] * second_job.units


def test_with_lanes_each_worker_stays_on_a_prefix_of_its_own() -> None:
    job = make_job(size=20)
    queue = UnitQueue([job], [bytearray(job.units)], seed=0, lanes=True)
    subsets_by_worker: dict[int, list[str]] = {0: [], 1: []}
    while queue.remaining:
        for worker, subsets in subsets_by_worker.items():
            task = queue.take(worker)
            if isinstance(task, Unit):
                subsets.append(subset_of(task))
    changes = sum(len(list(groupby(subsets))) for subsets in subsets_by_worker.values())
    assert changes == len(job.exam.subsets)


def test_lanes_share_the_last_group_so_that_no_slot_idles() -> None:
    job = make_job(size=20)
    queue = UnitQueue([job], [bytearray(job.units)], seed=0, lanes=True)
    counts = [0, 0, 0, 0]
    while queue.remaining:
        for worker in range(4):
            counts[worker] += queue.take(worker) is not None
    assert max(counts) - min(counts) <= 1


def test_pilots_go_ahead_of_their_subsets() -> None:
    job = make_job(size=30)
    tasks = drain(UnitQueue([job], [bytearray(job.units)], seed=3, ahead=4))
    assert sorted(task.number for task in tasks) == list(range(job.units))
    subsets = [subset_of(task) for task in tasks]
    for subset in dict.fromkeys(subsets):
        pilot, follower = [at for at, name in enumerate(subsets) if name == subset][:2]
        # Three rounds of four come between; before the first subset there is nothing.
        assert follower - pilot >= 12 or subset == subsets[0]


def test_where_tokens_come_from_a_cache_the_others_wait_for_a_prefill_alone() -> None:
    now = [0.0]
    job = make_job(size=30)
    answered = [bytearray(job.units)]
    queue = UnitQueue([job], answered, seed=3, ahead=1, clock=lambda: now[0], caching=lambda: True)
    pilot = queue.take(0)
    assert isinstance(pilot, Unit)
    assert queue.take(1) == WaitForPrefix(LONGEST_PREFILL)
    now[0] = 0.25
    queue.note_reply(pilot)
    requests_out = [queue.take(1) for _ in range(30)]
    units = [unit for unit in requests_out if isinstance(unit, Unit)]
    assert Counter(map(subset_of, units))[subset_of(pilot)] == 29
    # What the first pilot took bounds the wait for all later ones.
    now[0] = 0.3
    wait = queue.take(1)
    assert isinstance(wait, WaitForPrefix)
    assert wait.seconds == pytest.approx(0.2)
    now[0] = 0.5
    assert isinstance(queue.take(1), Unit)


def test_without_cached_tokens_nothing_waits_for_a_pilot() -> None:
    job = make_job(size=30)
    queue = UnitQueue([job], [bytearray(job.units)], seed=3, ahead=8, clock=lambda: 0.0)
    assert all(isinstance(queue.take(0), Unit) for _ in range(job.units))


def test_nothing_waits_for_a_pilot_at_the_end() -> None:
    job = make_job(size=4)
    answered = [bytearray(job.units)]
    ahead = job.units // 2
    queue = UnitQueue([job], answered, seed=3, ahead=ahead, clock=lambda: 0.0, caching=lambda: True)
    assert all(isinstance(queue.take(0), Unit) for _ in range(job.units))


def test_while_a_pilot_is_awaited_further_pilots_go_out() -> None:
    job = make_job(size=6)
    answered = [bytearray(job.units)]
    queue = UnitQueue([job], answered, seed=3, ahead=2, clock=lambda: 0.0, caching=lambda: True)
    units = [unit for _ in range(6) if isinstance(unit := queue.take(0), Unit)]
    assert len({subset_of(unit) for unit in units}) == len(units) >= 3


def test_a_known_prefix_needs_no_pilot() -> None:
    job = make_job(size=3)
    warm = {(id(job.exam), subset.name) for subset in job.exam.subsets}
    queue = UnitQueue([job], [bytearray(job.units)], seed=3, ahead=3, warm=warm, clock=lambda: 0.0)
    assert all(isinstance(queue.take(0), Unit) for _ in range(job.units))


def test_inside_a_subset_the_longest_come_first_and_the_shortest_is_the_pilot() -> None:
    job = make_job(size=12)
    earlier = {sample.id: float(sample.index + 1) for sample in job.exam.samples}
    queue = UnitQueue(
        [job], [bytearray(job.units)], seed=3, expected=make_length_estimator(earlier)
    )
    for _, units in groupby(drain(queue), subset_of):
        lengths = [unit.number % 12 for unit in units]
        assert lengths == [0, *range(11, 0, -1)]


def test_replies_are_expected_to_be_as_long_as_other_repeats_or_else_as_the_question() -> None:
    job = make_job(size=3, epochs=2)
    job.seconds[0], job.seconds[2] = 9.0, 1.0
    texts = [len(job.exam.samples[item].text) for item in range(3)]
    first_length, second_length, third = make_length_estimator({})(job, [1, 3, 5])
    assert first_length == 1.8
    assert second_length == 0.2
    assert third == texts[2] / (sum(texts) / 3)


def test_the_wait_for_a_pilot_ends_with_its_reply() -> None:
    job = make_job(size=30)
    answered = [bytearray(job.units)]
    queue = UnitQueue([job], answered, seed=3, ahead=1, clock=lambda: 0.0, caching=lambda: True)
    pilot = queue.take(0)
    assert isinstance(pilot, Unit)

    async def wait() -> None:
        wait_request = queue.take(1)
        assert isinstance(wait_request, WaitForPrefix)
        waiting = asyncio.create_task(queue.wait_for_change(WaitForPrefix(3600)))
        await asyncio.sleep(0)
        assert not waiting.done()
        queue.note_reply(pilot)
        await waiting

    asyncio.run(wait())
