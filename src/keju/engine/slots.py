"""Slots: how many may ask an endpoint at once, and whose turn it is."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from keju.engine.limits import Concurrency
from keju.errors import KejuError


class Slots:
    """As many slots as the limit of the moment; whoever comes back from a wait is served first."""

    def __init__(self, most: int) -> None:
        self.concurrency = Concurrency(most)
        self.stop_reason: KejuError | None = None
        """Why nothing more is sent."""
        self._slots_in_use = 0
        self._returning: deque[asyncio.Future[None]] = deque()
        self._newcomers: deque[asyncio.Future[None]] = deque()

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """A slot for as long as the block lasts."""
        await self.enter()
        try:
            yield
        finally:
            self.leave()

    async def enter(self, *, returning: bool = False) -> None:
        """Take a slot; one that was given back for a wait is `returning`, before new work."""
        if self.stop_reason is not None:
            raise self.stop_reason
        if self._slots_in_use < self.concurrency.limit and not self._returning:
            self._slots_in_use += 1
            return
        turn = asyncio.get_running_loop().create_future()
        (self._returning if returning else self._newcomers).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self.leave()  # the slot was granted in the very moment of the cancellation
            raise

    def leave(self) -> None:
        """Give a slot back."""
        self._slots_in_use -= 1
        self._grant()

    @property
    def may_stay(self) -> bool:
        """Whether who has a slot may use it for the next request, without asking for one again."""
        return (
            not self._returning
            and self._slots_in_use <= self.concurrency.limit
            and self.stop_reason is None
        )

    def _grant(self) -> None:
        while self._slots_in_use < self.concurrency.limit:
            waiting = self._returning or self._newcomers
            if not waiting:
                return
            turn = waiting.popleft()
            if not turn.done():
                # Counted now, not when the other side runs: nobody slips in between.
                self._slots_in_use += 1
                turn.set_result(None)

    def _dismiss(self, reason: KejuError) -> None:
        """Raise `reason` to everybody who waits for a slot."""
        for turn in (*self._returning, *self._newcomers):
            if not turn.done():
                turn.set_exception(reason)
