"""The loop of a session with several endpoints.

Each endpoint has as many workers as it has slots, and they take work as fast as it answers. A unit
that its endpoint does not answer goes back, and another endpoint gets it. The unit has one record
in the end, and a fault of an endpoint is not an attempt of the unit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Unpack

from keju.engine.channel import Channel
from keju.engine.endpoint_group import Rerouted
from keju.engine.loop import MAX_WAITING, Engine, EngineCallbacks
from keju.engine.pool import EndpointPool
from keju.engine.queue import Unit, WaitForPrefix
from keju.engine.routing import EndpointQueues
from keju.errors import KejuError
from keju.progress.watching import WORK
from keju.runs.journal import Journal

LOOK_EVERY = 0.2
"""Seconds after which idle endpoints look for work again, since others may be slower now."""


class PoolEngine(Engine):
    """Has every unit solved once, by any of the endpoints."""

    channel: EndpointPool
    _queue: EndpointQueues

    def __init__(
        self,
        pool: EndpointPool,
        shares: Iterable[EndpointQueues],
        journal: Journal,
        **callbacks: Unpack[EngineCallbacks],
    ) -> None:
        super().__init__(pool, shares, journal, **callbacks)
        self._has_waiting_worker = [False] * len(pool.channels)
        """By place: whether a worker of the endpoint waits for a slot."""

    async def run(self) -> KejuError | None:
        """Work until all is done. Return the reason that stopped it early, if there is one."""
        self.channel.on_change = self._assign_work
        checking = asyncio.get_running_loop().create_task(self._check_often())
        try:
            return await super().run()
        finally:
            self.channel.on_change = lambda: None
            checking.cancel()

    def _start_worker(self) -> None:
        """Start the endpoints that answer, because there is more work."""
        self._assign_work()

    async def _check_often(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY)
            self._assign_work()

    def _assign_work(self) -> None:
        """Move the work of endpoints that are down to others, and start idle endpoints."""
        pool, shares = self.channel, self._queue
        for place in range(len(pool.channels)):
            if not pool.accepts_work(place):
                shares.leave(place)
        if shares.remaining and pool.stop_reason is None and self._crash is None:
            for place in range(len(pool.channels)):
                if pool.accepts_work(place):
                    self._start_at(place)
        self._check_done()

    def _start_at(self, place: int) -> None:
        """Start a worker of an endpoint, unless one already waits for a slot."""
        if self._has_waiting_worker[place]:
            return
        self._has_waiting_worker[place] = True
        self._start_task(self._work_at(place, next(self._lanes)))

    def _check_done(self) -> None:
        """Note that all is done when no worker is left and no remaining work can be done."""
        is_stopped = self._crash is not None or self.channel.stop_reason is not None
        if not self._workers and (is_stopped or not self._queue.remaining):
            self._all_done.set()

    async def _work_at(self, place: int, lane: int) -> None:
        """Solve unit after unit at one endpoint, as long as this worker may keep its slot."""
        channel, shares = self.channel.channels[place], self._queue
        try:
            await channel.enter()
        except KejuError:
            return  # the endpoint was lost before this worker had a slot
        finally:
            self._has_waiting_worker[place] = False
        try:
            while (unit := shares.take(place, lane)) is not None:
                if isinstance(unit, WaitForPrefix):
                    try:
                        with channel.while_open():
                            await shares.wait_for_change(place, unit)
                    except KejuError:
                        return  # the endpoint was lost meanwhile
                    continue
                if shares.remaining_at(place) and channel.waiting < MAX_WAITING:
                    self._start_at(place)
                if not await self._solve(channel, place, unit) or not channel.may_stay:
                    return  # another request needs the slot
        finally:
            channel.leave()

    async def _solve(self, channel: Channel, place: int, unit: Unit) -> bool:
        """Have a unit solved and written. Return whether its endpoint answered."""
        job = unit.job
        if self._follower is not None:
            WORK.set(job)
        request, (sample, epoch) = job.request(unit.number), job.locate(unit.number)
        try:
            exchange = await job.solver(request, channel, sample, epoch)
        except Rerouted as reroute:
            self.channel.histories[request.hash] = reroute.history
            self._give_back(channel, place, unit)
            return False
        except KejuError as error:
            if error is not channel.stop_reason:
                raise
            self._give_back(channel, place, unit)
            return False
        exchange = await self._read_long_reply(unit, exchange)
        await self._write_soon([(unit, request, exchange._replace(endpoint=channel.address))])
        return True

    def _give_back(self, channel: Channel, place: int, unit: Unit) -> None:
        """Give the unit to another endpoint.

        If the run stops, the unit has no record and a resumed run asks it.
        """
        if self.channel.stop_reason is None:
            channel.moved_count += 1
            self._queue.give_back(unit, place)
            self._loop.call_soon(self._assign_work)
