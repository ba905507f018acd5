"""Work on many items with all cores of the processor, in the order of the items.

Reading a stored run again spends nearly all time in readers, one reply after the other. This module
sends the replies to forked processes. They have a copy of the exams, so only replies are sent, and
only readings come back.
"""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

Item = TypeVar("Item")
Sent = TypeVar("Sent")
Result = TypeVar("Result")

DIRECT_ITEMS = 2_000
"""Items that this process works on before it forks. A fork takes longer than these."""
BATCH_SIZE = 250
"""Items that are sent together."""
THREADS = Path("/proc/self/task")
"""The folder in which Linux lists the threads of this process. Without it Keju does not fork."""
CORES = "KEJU_CORES"
"""The variable that sets the number of processes. The default is one per core."""

PARENT_DEATH = 1
"""The number of prctl for a signal at the death of the parent."""

_work: Callable[[Any], Any] | None = None
"""The function that a forked process calls for each item. It is set before the fork, so it is not
sent and may hold any object."""


def map_on_all_cores(
    work: Callable[[Sent], Result],
    items: Iterable[Item],
    send: Callable[[Item], Sent],
    *,
    direct_items: int = DIRECT_ITEMS,
    batch_size: int = BATCH_SIZE,
) -> Iterator[tuple[Item, Result]]:
    """Yield each item with the result of `work` on ``send(item)``, in their order.

    `work` must depend only on its argument and change nothing. An exception that it raises is
    raised here, at the item's turn. If processes are killed, this one does their work.
    """
    remaining = iter(items)
    for item in islice(remaining, direct_items):
        yield item, work(send(item))
    first_batch = list(islice(remaining, batch_size))
    if not first_batch:
        return
    count = count_usable_cores()
    if count < 2:
        yield from ((item, work(send(item))) for item in first_batch)
        yield from ((item, work(send(item))) for item in remaining)
        return
    yield from _map_with_pool(work, first_batch, remaining, send, batch_size, count)


def count_usable_cores() -> int:
    """Return how many processes can share the work, or 1 where this one must not be forked.

    A fork copies only one thread and leaves the locks of the others closed for ever. So threads are
    counted where the system lists them, including those of compiled extensions.
    """
    if not THREADS.is_dir() or len(list(THREADS.iterdir())) > 1:
        return 1
    setting = os.environ.get(CORES, "")
    return max(1, int(setting)) if setting.isdecimal() else len(os.sched_getaffinity(0))


def _map_with_pool(
    work: Callable[[Sent], Result],
    first_batch: list[Item],
    remaining: Iterator[Item],
    send: Callable[[Item], Sent],
    batch_size: int,
    count: int,
) -> Iterator[tuple[Item, Result]]:
    from concurrent.futures import Future, ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    global _work
    _work = work
    pool = ProcessPoolExecutor(count, get_context("fork"), initializer=_init_worker)
    waiting: deque[tuple[list[Item], Future[list[Any]] | None]] = deque()
    broken = False

    def submit(batch: list[Item]) -> None:
        nonlocal broken
        future = None
        if not broken:
            try:
                future = pool.submit(_work_on_batch, [send(item) for item in batch])
            except BrokenProcessPool:
                broken = True
        waiting.append((batch, future))

    try:
        submit(first_batch)
        _work = None
        while waiting:
            # Two batches for each process: one in work, one ready.
            while len(waiting) < 2 * count and (batch := list(islice(remaining, batch_size))):
                submit(batch)
            batch, future = waiting.popleft()
            try:
                results = future.result() if future is not None else None
            except BrokenProcessPool:
                broken, results = True, None
            if results is None:
                results = [work(send(item)) for item in batch]
            yield from zip(batch, results, strict=True)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _work_on_batch(arguments: list[Any]) -> list[Any]:
    assert _work is not None
    return [_work(argument) for argument in arguments]


def _init_worker() -> None:
    """Ignore Ctrl-C, which the parent handles, and end when the parent ends for any reason."""
    import ctypes

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with suppress(OSError, AttributeError):  # not Linux
        ctypes.CDLL(None).prctl(PARENT_DEATH, signal.SIGKILL, 0, 0, 0)
