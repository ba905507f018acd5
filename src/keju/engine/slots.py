"""Slots: how many may ask an endpoint at once, and whose turn it is."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from keju.engine.limits import Concurrency
from keju.engine.sharing import Admission
from keju.errors import KejuError


class Slots:
    """As many slots as the limit of the moment; whoever comes back from a wait is served first."""

    def __init__(self, most: int, admission: Admission | None = None) -> None:
        """`admission` is the way to an endpoint that other runs use too."""
        self._admission = admission
        self.concurrency = Concurrency(most) if admission is None else admission.concurrency
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
        if not self._returning and self._take():
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
        if self._admission is not None:
            self._admission.give()
        self._grant()

    def _take(self) -> bool:
        """Take a slot if there is one."""
        if self._admission is not None:
            free = self._admission.take(self._grant)
        else:
            free = self._slots_in_use < self.concurrency.limit
        self._slots_in_use += free
        return free

    def _hold(self) -> None:
        """Take a slot, free or not: its holder is about to give it back."""
        self._slots_in_use += 1
        if self._admission is not None:
            self._admission.force()

    @property
    def may_stay(self) -> bool:
        """Whether who has a slot may use it for the next request, without asking for one again."""
        return (
            not self._returning
            and self._slots_in_use <= self.concurrency.limit
            and self.stop_reason is None
            and (self._admission is None or self._admission.may_stay)
        )

    def _grant(self) -> None:
        while waiting := self._returning or self._newcomers:
            # Counted now, not when the other side runs: nobody slips in between.
            if not waiting[0].done() and not self._take():
                return
            turn = waiting.popleft()
            if not turn.done():
                turn.set_result(None)
        if self._admission is not None:
            self._admission.forget()

    def _dismiss(self, reason: KejuError) -> None:
        """Raise `reason` to everybody who waits for a slot."""
        for turn in (*self._returning, *self._newcomers):
            if not turn.done():
                turn.set_exception(reason)
        if self._admission is not None:
            self._admission.forget()
