"""Work on many items by all cores of the processor, in the order of the items.

Whoever reads a stored run anew spends nearly all time in readers, one reply after the other. Here
the replies go to processes that are forked, so that they have the exams as they are and nothing of
them is sent; only replies go there, and what was read comes back.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

Item = TypeVar("Item")
Sent = TypeVar("Sent")
Result = TypeVar("Result")

FEW = 2_000
"""Items that this process works on before it asks for help: a fork takes longer than these."""
PIECE = 250
"""Items that are sent at once."""
THREADS = Path("/proc/self/task")
"""Where Linux lists the threads of this process; elsewhere nothing is forked."""
CORES = "KEJU_CORES"
"""The variable that says how many processes may work; by default one a core."""

PARENT_DEATH = 1
"""The number of prctl for a signal at the death of the parent."""

_work: Callable[[Any], Any] | None = None
"""What a forked process does with each item; it is set before the fork, so that it need not be
sent and may hold anything."""


def on_all_cores(
    work: Callable[[Sent], Result],
    items: Iterable[Item],
    send: Callable[[Item], Sent],
    *,
    few: int = FEW,
    piece: int = PIECE,
) -> Iterator[tuple[Item, Result]]:
    """Each item with what `work` makes of ``send(item)``, in their order.

    `work` must depend on what it is given alone, and change nothing. What it raises is raised here,
    at the item's turn. Processes that are killed cost nothing but time: this one does their work.
    """
    remaining = iter(items)
    for item in islice(remaining, few):
        yield item, work(send(item))
    first = list(islice(remaining, piece))
    if not first:
        return
    count = usable_cores()
    if count < 2:
        yield from ((item, work(send(item))) for item in first)
        yield from ((item, work(send(item))) for item in remaining)
        return
    yield from _by_pool(work, first, remaining, send, piece, count)


def usable_cores() -> int:
    """How many processes can share the work: 1 where this one must not be forked.

    A fork takes one thread alone along, and leaves the locks of the others closed for ever; so
    threads are counted where the system counts them, those of compiled parts too.
    """
    if not THREADS.is_dir() or len(list(THREADS.iterdir())) > 1:
        return 1
    asked = os.environ.get(CORES, "")
    return max(1, int(asked)) if asked.isdecimal() else len(os.sched_getaffinity(0))


def _by_pool(
    work: Callable[[Sent], Result],
    first: list[Item],
    remaining: Iterator[Item],
    send: Callable[[Item], Sent],
    piece: int,
    count: int,
) -> Iterator[tuple[Item, Result]]:
    global _work
    _work = work
    pool = ProcessPoolExecutor(count, get_context("fork"), initializer=_join)
    waiting: deque[tuple[list[Item], Future[list[Any]] | None]] = deque()
    broken = False

    def submit(items: list[Item]) -> None:
        nonlocal broken
        future = None
        if not broken:
            try:
                future = pool.submit(_piece, [send(item) for item in items])
            except BrokenProcessPool:
                broken = True
        waiting.append((items, future))

    try:
        submit(first)
        _work = None
        while waiting:
            # Two pieces for each process: one that it works on, one that lies ready.
            while len(waiting) < 2 * count and (items := list(islice(remaining, piece))):
                submit(items)
            items, future = waiting.popleft()
            try:
                found = future.result() if future is not None else None
            except BrokenProcessPool:
                broken, found = True, None
            if found is None:
                found = [work(send(item)) for item in items]
            yield from zip(items, found, strict=True)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _piece(sent: list[Any]) -> list[Any]:
    assert _work is not None
    return [_work(each) for each in sent]


def _join() -> None:
    """Leave Ctrl-C to the process that asked, and end with it, however it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with suppress(OSError, AttributeError):  # not Linux
        ctypes.CDLL(None).prctl(PARENT_DEATH, signal.SIGKILL, 0, 0, 0)
