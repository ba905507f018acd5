"""Slots: how many requests an endpoint gets at once, and in which order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from keju.engine.limits import ConcurrencyLimit
from keju.engine.run_sharing import SlotClaim
from keju.errors import KejuError


class Slots:
    """As many slots as the current limit. Requests that return from a wait go first."""

    def __init__(self, slots: int, claim: SlotClaim | None = None) -> None:
        """Create slots. `claim` is the access to an endpoint that other runs use too."""
        self._claim = claim
        self.concurrency = ConcurrencyLimit(slots) if claim is None else claim.concurrency
        self.stop_reason: KejuError | None = None
        """The reason why nothing more is sent."""
        self._slots_in_use = 0
        self._returning: deque[asyncio.Future[None]] = deque()
        self._newcomers: deque[asyncio.Future[None]] = deque()

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Hold a slot for as long as the block lasts."""
        await self.enter()
        try:
            yield
        finally:
            self.leave()

    async def enter(self, *, returning: bool = False) -> None:
        """Take a slot. A request that gave its slot back for a wait is `returning` and goes before
        new work."""
        if self.stop_reason is not None:
            raise self.stop_reason
        if not self._returning and self._take():
            return
        grant = asyncio.get_running_loop().create_future()
        (self._returning if returning else self._newcomers).append(grant)
        try:
            await grant
        except asyncio.CancelledError:
            if grant.done() and not grant.cancelled() and grant.exception() is None:
                self.leave()  # the slot was granted at the moment of the cancellation
            raise

    def leave(self) -> None:
        """Give a slot back."""
        self._slots_in_use -= 1
        if self._claim is not None:
            self._claim.release()
        self._grant()

    def _take(self) -> bool:
        """Take a slot if there is one."""
        if self._claim is not None:
            has_slot = self._claim.take(self._grant)
        else:
            has_slot = self._slots_in_use < self.concurrency.limit
        self._slots_in_use += has_slot
        return has_slot

    def _hold(self) -> None:
        """Take a slot, free or not, because its holder is about to give it back."""
        self._slots_in_use += 1
        if self._claim is not None:
            self._claim.force()

    @property
    def may_stay(self) -> bool:
        """Whether the holder of a slot may use it for the next request without asking for one
        again."""
        return (
            not self._returning
            and self._slots_in_use <= self.concurrency.limit
            and self.stop_reason is None
            and (self._claim is None or self._claim.may_stay)
        )

    def _grant(self) -> None:
        while waiters := self._returning or self._newcomers:
            # The slot is counted now, before the other task runs, so that no request gets in
            # between.
            if not waiters[0].done() and not self._take():
                return
            waiter = waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
        if self._claim is not None:
            self._claim.stop_waiting()

    def _fail_waiters(self, reason: KejuError) -> None:
        """Raise `reason` in all tasks that wait for a slot."""
        for waiter in (*self._returning, *self._newcomers):
            if not waiter.done():
                waiter.set_exception(reason)
        if self._claim is not None:
            self._claim.stop_waiting()
