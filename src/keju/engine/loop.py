"""The loop of the engine: every unit is solved once, and every reply is on disk.

Workers take units from the queue, have them solved, and hand replies to the journal. There is
always one worker in waiting while there is work, so a slot is refilled as soon as it frees: by the
worker that held it, or, where that waits to repeat a failed attempt, by the one in waiting.
Replies that arrive within a millisecond are scored and written together, and their slots send
again after that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from itertools import count
from typing import Any, cast

from keju.engine.channel import Channel, Exchange
from keju.engine.pool import Pool
from keju.engine.queue import Held, Queue, Unit
from keju.engine.shares import Shares
from keju.engine.watching import WORK, Follower
from keju.errors import KejuError, WriteError
from keju.runs.journal import Journal
from keju.signals import aside
from keju.types import Request

SYNC_EVERY, PROGRESS_EVERY = 1.0, 0.2
GATHER = 0.001
"""Seconds for which replies are gathered before they are scored and written together."""
LONG_TEXT = 100_000
"""Characters of a reply that is read beside the loop, which goes on and hears Ctrl-C meanwhile."""
MOST_WAITING = 4096
"""Units that may wait for another attempt before no new ones are begun, so memory stays flat."""

Line = Channel | Pool
"""Who is asked: one endpoint, or several as one."""
Answered = tuple[Unit, Request, Exchange]
"""A unit with what was asked and what came back."""


class Engine:
    """Has every unit of the queues solved once, and journals every reply.

    A queue is taken only when every unit of the one before has its record.
    """

    def __init__(
        self,
        channel: Line,
        queues: Iterable[Queue | Shares],
        journal: Journal,
        *,
        on_progress: Callable[[], None] = lambda: None,
        on_session: Callable[[], None] = lambda: None,
        follower: Follower | None = None,
    ) -> None:
        """`on_progress` is called often, for the eye; `on_session` once a second, for the books.

        `follower` is told of every attempt and every record.
        """
        self.channel = channel
        self._queues = queues
        self._journal = journal
        self._on_progress = on_progress
        self._on_session = on_session
        self._follower = channel.follower = follower
        self._workers: set[asyncio.Task[None]] = set()
        self._lanes = count()
        self._in_waiting = False
        self._crash: BaseException | None = None
        self._replies: list[Answered] = []

    async def run(self) -> KejuError | None:
        """Work until all queues are empty; return what stopped it early, if anything did."""
        self._loop = asyncio.get_running_loop()
        self._on_disk: asyncio.Future[None] = self._loop.create_future()
        self._all_done = asyncio.Event()
        background = [
            self._loop.create_task(self._sync_often()),
            self._loop.create_task(self._show_often()),
        ]
        for queue in self._queues:
            self._queue = queue
            self._all_done.clear()
            self._start_worker()
            await self._all_done.wait()
            if self._crash is not None or self.channel.stop_reason is not None:
                break
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)
        self._flush()  # what workers that were cancelled had no time to wait for
        try:
            self._journal.check()
        except KejuError as error:
            self.channel.stop(error)
        if self._crash is not None:
            raise self._crash
        self._on_progress()
        return self.channel.stop_reason

    @property
    def unasked(self) -> int | None:
        """Units of the present queue that nobody has taken; None before there is one."""
        return self._queue.left if hasattr(self, "_queue") else None

    def abort(self) -> None:
        """Stop now; what is in flight is lost and will be asked again on resume."""
        for worker in self._workers:
            worker.cancel()

    def _start_worker(self) -> None:
        self._in_waiting = True
        self._employ(self._work(next(self._lanes)))

    def _employ(self, work: Coroutine[Any, Any, None]) -> None:
        """Let a worker begin; what it raises ends the session."""
        worker = self._loop.create_task(work)
        self._workers.add(worker)
        worker.add_done_callback(self._worker_left)

    def _worker_left(self, worker: asyncio.Task[None]) -> None:
        self._workers.discard(worker)
        if not worker.cancelled() and self._crash is None:
            self._crash = worker.exception()
        self._see_whether_done()

    def _see_whether_done(self) -> None:
        """All is done when nobody works: whoever leaves with work left has another begin first."""
        if not self._workers:
            self._all_done.set()

    async def _work(self, lane: int) -> None:
        """Solve unit after unit, as long as this worker's slot is its own."""
        channel, queue = cast(Channel, self.channel), cast(Queue, self._queue)
        try:
            await channel.enter()
        except KejuError:
            return  # the channel was stopped before this worker had a slot
        finally:
            self._in_waiting = False
        try:
            while (unit := queue.take(lane)) is not None:
                if isinstance(unit, Held):
                    try:
                        with channel.while_open():
                            await queue.changed(unit)
                    except KejuError:
                        return  # the channel was stopped meanwhile
                    continue
                if queue.left and not self._in_waiting and channel.waiting < MOST_WAITING:
                    self._start_worker()
                job = unit.job
                if self._follower is not None:
                    WORK.set(job)
                request, (sample, epoch) = job.request(unit.number), job.place(unit.number)
                try:
                    exchange = await job.solver(request, channel, sample, epoch)
                except KejuError as error:
                    if error is channel.stop_reason:
                        return  # the unit has no record, so that a resumed run asks it
                    raise
                exchange = await self._read_aside(unit, exchange)
                # Its record is there before the slot sends again.
                await self._written([(unit, request, exchange)])
                if not channel.may_stay:
                    return  # somebody else needs the slot, and there is a worker in waiting
        finally:
            channel.leave()

    async def _read_aside(self, unit: Unit, exchange: Exchange) -> Exchange:
        """`exchange`, read where its reply is long; a short one is read when it is written."""
        if len(exchange.reply.text) <= LONG_TEXT or exchange.readings:
            return exchange
        grade = partial(unit.job.grade, unit.number // unit.job.epochs, exchange.reply)
        return exchange._replace(readings=await aside(grade))

    def _written(self, replies: Iterable[Answered]) -> asyncio.Future[None]:
        """Done when these replies are on disk; those that come at the same time go together."""
        if not self._replies:
            self._on_disk = self._loop.create_future()
            if self.channel.in_flight:
                self._loop.call_later(GATHER, self._flush)
            else:
                self._loop.call_soon(self._flush)
        self._replies += replies
        return self._on_disk

    def _flush(self) -> None:
        """Score what has come in; write it; only then enter it on the scoreboards."""
        on_disk, replies, self._replies = self._on_disk, self._replies, []
        try:
            if replies:
                records = [
                    unit.job.record(unit.number, request, exchange)
                    for unit, request, exchange in replies
                ]
                self._journal.append(records)
                for (unit, _, _), record in zip(replies, records, strict=True):
                    unit.job.enter(unit.number, record)
                    self._queue.landed(unit)
                    if self._follower is not None:
                        self._follower.answered(unit.job, unit.number, record)
        except Exception as error:
            self._break_off(error)
        if not on_disk.done():
            on_disk.set_result(None)

    def _break_off(self, error: Exception) -> None:
        """Nothing can be saved any more: stop now, and say why."""
        if isinstance(error, KejuError):
            self.channel.stop(error.incomplete() if isinstance(error, WriteError) else error)
        elif self._crash is None:
            self._crash = error
        self.abort()

    async def _sync_often(self) -> None:
        while True:
            await asyncio.sleep(SYNC_EVERY)
            try:
                await asyncio.to_thread(self._journal.sync)
                self._on_session()
            except KejuError as error:
                self._break_off(error)

    async def _show_often(self) -> None:
        while True:
            self._on_progress()
            await asyncio.sleep(PROGRESS_EVERY)
