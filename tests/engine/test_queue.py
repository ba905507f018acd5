"""The order of the work."""

from __future__ import annotations

import asyncio
from itertools import groupby
from pathlib import Path

from keju.benchmarks import registry
from keju.engine.job import Job
from keju.engine.queue import LONGEST_HOLD, Held, Queue, Unit, expected_lengths
from keju.sources.folder import DataFolder
from keju.types import Sampling


def make_job(size: int = 5, epochs: int = 1) -> Job:
    demo = registry.get("demo")
    args = demo.Args(protocol="text", size=size)  # type: ignore[call-arg]
    exam = demo.prepare(args, DataFolder(Path()), seed=1)
    readers = [exam.readers["marker"]]
    return Job(exam, Sampling(), readers, model="m", epochs=epochs)


def drain(queue: Queue, workers: int = 1) -> list[Unit]:
    """All units in their order; each is answered when the next one is taken."""
    tasks: list[Unit] = []
    while queue.left:
        for worker in range(workers):
            task = queue.take(worker)
            assert not isinstance(task, Held)
            if task is not None:
                tasks.append(task)
                queue.landed(task)
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
            if isinstance(task, Unit):
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


def test_pilots_go_ahead_of_their_subsets() -> None:
    job = make_job(size=10)
    tasks = drain(Queue([job], [bytearray(job.units)], seed=3, ahead=10))
    assert sorted(task.number for task in tasks) == list(range(job.units))
    subsets = [subset_of(task) for task in tasks]
    for subset in dict.fromkeys(subsets):
        first, second = [at for at, name in enumerate(subsets) if name == subset][:2]
        # Of the subset before it all but the pilot come between; for the first there is none.
        assert second - first >= 9 or subset == subsets[0]


def test_the_others_wait_for_a_pilot_that_has_no_reply() -> None:
    now = [0.0]
    job = make_job(size=4)
    queue = Queue([job], [bytearray(job.units)], seed=3, ahead=1, clock=lambda: now[0])
    pilot = queue.take(0)
    assert isinstance(pilot, Unit)
    assert queue.take(1) == Held(LONGEST_HOLD[False])
    now[0] = LONGEST_HOLD[False] - 0.5
    assert queue.take(1) == Held(0.5)
    queue.landed(pilot)
    rest = [queue.take(lane) for lane in (1, 2)]
    assert all(isinstance(unit, Unit) and subset_of(unit) == subset_of(pilot) for unit in rest)


def test_a_pilot_that_takes_too_long_holds_nobody() -> None:
    now = [0.0]
    job = make_job(size=4)

    def queue(*, caching: bool) -> Queue:
        done = [bytearray(job.units)]
        return Queue([job], done, seed=3, ahead=1, clock=lambda: now[0], caching=lambda: caching)

    telling, silent = queue(caching=True), queue(caching=False)
    for each in (telling, silent):
        each.take(0)
    now[0] = LONGEST_HOLD[False]
    assert isinstance(silent.take(1), Unit)
    assert telling.take(1) == Held(LONGEST_HOLD[True] - LONGEST_HOLD[False])
    now[0] = LONGEST_HOLD[True]
    assert isinstance(telling.take(1), Unit)


def test_while_a_pilot_is_awaited_further_pilots_go_out() -> None:
    job = make_job(size=3)
    queue = Queue([job], [bytearray(job.units)], seed=3, ahead=3, clock=lambda: 0.0)
    units = [unit for _ in range(6) if isinstance(unit := queue.take(0), Unit)]
    assert len({subset_of(unit) for unit in units}) == len(units) == 4  # up to six units ahead


def test_a_known_prefix_needs_no_pilot() -> None:
    job = make_job(size=3)
    warm = {(id(job.exam), subset.name) for subset in job.exam.subsets}
    queue = Queue([job], [bytearray(job.units)], seed=3, ahead=3, warm=warm, clock=lambda: 0.0)
    assert all(isinstance(queue.take(0), Unit) for _ in range(job.units))


def test_inside_a_subset_the_longest_come_first_and_the_shortest_is_the_pilot() -> None:
    job = make_job(size=12)
    earlier = {sample.id: float(sample.index + 1) for sample in job.exam.samples}
    queue = Queue([job], [bytearray(job.units)], seed=3, expected=expected_lengths(earlier))
    for _, units in groupby(drain(queue), subset_of):
        lengths = [unit.number % 12 for unit in units]
        assert lengths == [0, *range(11, 0, -1)]


def test_replies_are_expected_to_be_as_long_as_other_repeats_or_else_as_the_question() -> None:
    job = make_job(size=3, epochs=2)
    job.seconds[0], job.seconds[2] = 9.0, 1.0
    texts = [len(job.exam.samples[item].text) for item in range(3)]
    first, second, third = expected_lengths({})(job, [1, 3, 5])
    assert first == 1.8
    assert second == 0.2
    assert third == texts[2] / (sum(texts) / 3)


def test_the_wait_for_a_pilot_ends_with_its_reply() -> None:
    job = make_job(size=4)
    queue = Queue([job], [bytearray(job.units)], seed=3, ahead=1, clock=lambda: 0.0)
    pilot = queue.take(0)
    assert isinstance(pilot, Unit)

    async def wait() -> None:
        held = queue.take(1)
        assert isinstance(held, Held)
        waiting = asyncio.create_task(queue.changed(Held(3600)))
        await asyncio.sleep(0)
        assert not waiting.done()
        queue.landed(pilot)
        await waiting

    asyncio.run(wait())
