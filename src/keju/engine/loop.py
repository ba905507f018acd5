"""The loop of the engine: every unit is solved once, and every reply is written to disk.

Workers take units from the queue, have them solved, and pass replies to the journal. While there is
work, one worker waits for a slot, so a slot is refilled as soon as it is free. The worker that held
the slot takes it again. If that worker waits to repeat a failed attempt, the waiting worker takes
it.

Replies that arrive within a millisecond are scored and written together. Their slots send again
after that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from itertools import count
from typing import Any, TypedDict, Unpack, cast

from keju.engine.channel import Channel, ReplyWithAttempts
from keju.engine.pool import EndpointPool
from keju.engine.queue import Unit, UnitQueue, WaitForPrefix
from keju.engine.routing import EndpointQueues
from keju.errors import KejuError, WriteError
from keju.progress.watching import WORK, Follower
from keju.runs.journal import Journal
from keju.scores.stopping import LOOK_AGAIN, Pause
from keju.signals import run_in_thread
from keju.types import Request

SYNC_EVERY, PROGRESS_EVERY = 1.0, 0.2
GATHER = 0.001
"""Seconds for which replies are gathered before they are scored and written together."""
LONG_TEXT = 100_000
"""Longer replies (in characters) are read in a thread, so that the loop goes on and Ctrl-C
works."""
MAX_WAITING = 4096
"""If more units wait for another attempt, no new ones are begun, so that memory stays flat."""

Line = Channel | EndpointPool
"""One endpoint, or several as one."""
Answered = tuple[Unit, Request, ReplyWithAttempts]
"""A unit with its request and the exchange that answered it."""


class EngineCallbacks(TypedDict, total=False):
    """Functions that an engine calls while it works."""

    on_progress: Callable[[], None]
    """Updates the display; called often."""
    on_session: Callable[[], None]
    """Updates the manifest; called once a second."""
    follower: Follower | None
    """Called with every attempt and every record."""


class Engine:
    """Has every unit of the queues solved once, and journals every reply.

    It takes a queue only when every unit of the previous one has its record.
    """

    def __init__(
        self,
        channel: Line,
        queues: Iterable[UnitQueue | EndpointQueues | Pause],
        journal: Journal,
        **callbacks: Unpack[EngineCallbacks],
    ) -> None:
        """Create an engine."""
        self.channel = channel
        self._queues = queues
        self._journal = journal
        self._on_progress = callbacks.get("on_progress", lambda: None)
        self._on_session = callbacks.get("on_session", lambda: None)
        self._follower = channel.follower = callbacks.get("follower")
        self._workers: set[asyncio.Task[None]] = set()
        self._lanes = count()
        self._has_spare_worker = False
        self._crash: BaseException | None = None
        self._replies: list[Answered] = []

    async def run(self) -> KejuError | None:
        """Work until all queues are empty. Return the reason that stopped it early, if there is
        one."""
        self._loop = asyncio.get_running_loop()
        self._on_disk: asyncio.Future[None] = self._loop.create_future()
        self._all_done = asyncio.Event()
        background = [
            self._loop.create_task(self._sync_often()),
            self._loop.create_task(self._show_often()),
        ]
        for queue in self._queues:
            if isinstance(queue, Pause):
                await self._wait_until_over(queue)
            else:
                self._queue = queue
                self._all_done.clear()
                self._start_worker()
                await self._all_done.wait()
            if self._crash is not None or self.channel.stop_reason is not None:
                break
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)
        self._flush()  # replies of cancelled workers that had no time to wait for it
        try:
            self._journal.check()
        except KejuError as error:
            self.channel.stop(error)
        if self._crash is not None:
            raise self._crash
        self._on_progress()
        return self.channel.stop_reason

    async def _wait_until_over(self, pause: Pause) -> None:
        """Wait until a pause is over, or the channel is stopped."""
        try:
            while self.channel.stop_reason is None and not pause.is_over():
                await asyncio.sleep(LOOK_AGAIN)
        except KejuError as error:
            self.channel.stop(error)

    @property
    def unasked_count(self) -> int | None:
        """The number of units in the present queue that no worker has taken, or None before the
        first queue."""
        return self._queue.remaining if hasattr(self, "_queue") else None

    def abort(self) -> None:
        """Stop now. Requests in flight are lost; a resumed run asks them again."""
        for worker in self._workers:
            worker.cancel()

    def _start_worker(self) -> None:
        self._has_spare_worker = True
        self._start_task(self._work(next(self._lanes)))

    def _start_task(self, work: Coroutine[Any, Any, None]) -> None:
        """Start a worker. An exception that it raises ends the session."""
        worker = self._loop.create_task(work)
        self._workers.add(worker)
        worker.add_done_callback(self._remove_worker)

    def _remove_worker(self, worker: asyncio.Task[None]) -> None:
        self._workers.discard(worker)
        if not worker.cancelled() and self._crash is None:
            self._crash = worker.exception()
        self._check_done()

    def _check_done(self) -> None:
        """Note that all is done when no worker is left. A worker that leaves while there is work
        starts another one first."""
        if not self._workers:
            self._all_done.set()

    async def _wait_for_prefix(self, unit: WaitForPrefix) -> bool:
        """Wait until the queue changes. Return False if the channel is stopped meanwhile."""
        try:
            with cast(Channel, self.channel).while_open():
                await cast(UnitQueue, self._queue).wait_for_change(unit)
        except KejuError:
            return False
        return True

    async def _work(self, lane: int) -> None:
        """Solve unit after unit, as long as this worker may keep its slot."""
        channel, queue = cast(Channel, self.channel), cast(UnitQueue, self._queue)
        try:
            await channel.enter()
        except KejuError:
            return  # the channel was stopped before this worker had a slot
        finally:
            self._has_spare_worker = False
        try:
            while (unit := queue.take(lane)) is not None:
                if isinstance(unit, WaitForPrefix):
                    if not await self._wait_for_prefix(unit):
                        return  # the channel was stopped meanwhile
                    continue
                if queue.remaining and not self._has_spare_worker and channel.waiting < MAX_WAITING:
                    self._start_worker()
                job = unit.job
                if self._follower is not None:
                    WORK.set(job)
                request, (sample, epoch) = job.request(unit.number), job.locate(unit.number)
                try:
                    exchange = await job.solver(request, channel, sample, epoch)
                except KejuError as error:
                    if error is channel.stop_reason:
                        return  # the unit has no record, so that a resumed run asks it
                    raise
                exchange = await self._read_long_reply(unit, exchange)
                # The record is on disk before the slot sends again.
                await self._write_soon([(unit, request, exchange)])
                if not channel.may_stay:
                    return  # another request needs the slot, and a worker is waiting
        finally:
            channel.leave()

    async def _read_long_reply(self, unit: Unit, exchange: ReplyWithAttempts) -> ReplyWithAttempts:
        """Return `exchange` with readings if its reply is long. A short reply is read when it is
        written."""
        if len(exchange.reply.text) <= LONG_TEXT or exchange.readings:
            return exchange
        grade = partial(unit.job.grade, unit.number // unit.job.epochs, exchange.reply)
        return exchange._replace(readings=await run_in_thread(grade))

    def _write_soon(self, replies: Iterable[Answered]) -> asyncio.Future[None]:
        """Return a future that is done when these replies are on disk. Replies that come together
        are written together."""
        if not self._replies:
            self._on_disk = self._loop.create_future()
            if self.channel.in_flight:
                self._loop.call_later(GATHER, self._flush)
            else:
                self._loop.call_soon(self._flush)
        self._replies += replies
        return self._on_disk

    def _flush(self) -> None:
        """Score the replies that have come in, write them, and only then enter them on the
        scoreboards."""
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
                    self._queue.note_reply(unit)
                    if self._follower is not None:
                        self._follower.answered(unit.job, unit.number, record)
        except Exception as error:
            self._break_off(error)
        if not on_disk.done():
            on_disk.set_result(None)

    def _break_off(self, error: Exception) -> None:
        """Stop now with an error, because nothing can be saved any more."""
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
