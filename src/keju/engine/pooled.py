"""The loop of a session with several endpoints.

Each endpoint has workers of its own, as many as it has slots, and they take work as fast as it
answers. A unit that its endpoint does not answer goes back, and another endpoint gets it: it has
one record in the end, and no fault of an endpoint is an attempt of the unit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from keju.engine.channel import Channel
from keju.engine.company import Moved
from keju.engine.loop import MOST_WAITING, Engine
from keju.engine.pool import Pool
from keju.engine.queue import Held, Unit
from keju.engine.shares import Shares
from keju.engine.watching import WORK, Follower
from keju.errors import KejuError
from keju.runs.journal import Journal

LOOK_EVERY = 0.2
"""Seconds after which idle endpoints look for work again: others may have fallen behind."""


class PoolEngine(Engine):
    """Has every unit solved once, by one endpoint or another."""

    channel: Pool
    _queue: Shares

    def __init__(
        self,
        pool: Pool,
        shares: Iterable[Shares],
        journal: Journal,
        *,
        on_progress: Callable[[], None] = lambda: None,
        on_session: Callable[[], None] = lambda: None,
        follower: Follower | None = None,
    ) -> None:
        super().__init__(
            pool,
            shares,
            journal,
            on_progress=on_progress,
            on_session=on_session,
            follower=follower,
        )
        self._waits = [False] * len(pool.channels)
        """Whether an endpoint has a worker that waits for a slot."""

    async def run(self) -> KejuError | None:
        """Work until all is done; return what stopped it early, if anything did."""
        self.channel.on_change = self._look_around
        looking = asyncio.get_running_loop().create_task(self._look_often())
        try:
            return await super().run()
        finally:
            self.channel.on_change = lambda: None
            looking.cancel()

    def _start_worker(self) -> None:
        """More work is there: all endpoints that answer begin."""
        self._look_around()

    async def _look_often(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY)
            self._look_around()

    def _look_around(self) -> None:
        """What waits for endpoints that are down goes to others; those that are idle look again."""
        pool, shares = self.channel, self._queue
        for place in range(len(pool.channels)):
            if not pool.works(place):
                shares.leave(place)
        if shares.left and pool.stop_reason is None and self._crash is None:
            for place in range(len(pool.channels)):
                if pool.works(place):
                    self._start_at(place)
        self._see_whether_done()

    def _start_at(self, place: int) -> None:
        """Start a worker of an endpoint, unless one waits for a slot already."""
        if self._waits[place]:
            return
        self._waits[place] = True
        self._employ(self._work_at(place, next(self._lanes)))

    def _see_whether_done(self) -> None:
        """All is done when nobody works and nothing is left that somebody could do."""
        over = self._crash is not None or self.channel.stop_reason is not None
        if not self._workers and (over or not self._queue.left):
            self._all_done.set()

    async def _work_at(self, place: int, lane: int) -> None:
        """Solve unit after unit at one endpoint, as long as this worker's slot is its own."""
        channel, shares = self.channel.channels[place], self._queue
        try:
            await channel.enter()
        except KejuError:
            return  # the endpoint was lost before this worker had a slot
        finally:
            self._waits[place] = False
        try:
            while (unit := shares.take(place, lane)) is not None:
                if isinstance(unit, Held):
                    try:
                        with channel.while_open():
                            await shares.changed(place, unit)
                    except KejuError:
                        return  # the endpoint was lost meanwhile
                    continue
                if shares.left_at(place) and channel.waiting < MOST_WAITING:
                    self._start_at(place)
                if not await self._solve(channel, place, unit) or not channel.may_stay:
                    return  # somebody else needs the slot
        finally:
            channel.leave()

    async def _solve(self, channel: Channel, place: int, unit: Unit) -> bool:
        """Have a unit solved and written down; whether its endpoint could."""
        job = unit.job
        if self._follower is not None:
            WORK.set(job)
        request, (sample, epoch) = job.request(unit.number), job.place(unit.number)
        try:
            exchange = await job.solver(request, channel, sample, epoch)
        except Moved as moved:
            self.channel.carried[request.hash] = moved.carried
            self._give_back(channel, place, unit)
            return False
        except KejuError as error:
            if error is not channel.stop_reason:
                raise
            self._give_back(channel, place, unit)
            return False
        exchange = await self._read_aside(unit, exchange)
        await self._written([(unit, request, exchange._replace(endpoint=channel.address))])
        return True

    def _give_back(self, channel: Channel, place: int, unit: Unit) -> None:
        """Another endpoint gets the unit; where the run stops it has no record, and is asked when
        the run is resumed."""
        if self.channel.stop_reason is None:
            channel.moved += 1
            self._queue.give_back(unit, place)
            self._loop.call_soon(self._look_around)
