"""The clock of one turn's calls: it runs while at least one of them is being executed.

A call that waits for a slot of its server stops the clock unless another call of the turn is being
executed. So waiting for a busy server does not use up the time of an arm with tools.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from time import monotonic


class TurnClock:
    """Measures the calls of a turn, and cancels them when `limit` seconds are used up."""

    def __init__(self, limit: float | None = None) -> None:
        self.limit = limit
        self._used = 0.0
        self._running = 0
        """Number of calls being executed."""
        self._since = 0.0
        self._timeouts: set[asyncio.Timeout] = set()

    @property
    def seconds(self) -> float:
        """Seconds in which a call was being executed."""
        return self._used + (monotonic() - self._since if self._running else 0.0)

    @asynccontextmanager
    async def call(self) -> AsyncIterator[asyncio.Timeout]:
        """Time one call; raise TimeoutError when the time of the turn is used up."""
        async with asyncio.timeout(None) as timeout:
            self._timeouts.add(timeout)
            token = _CLOCK.set(self)
            self._begin()
            try:
                yield timeout
            finally:
                _CLOCK.reset(token)
                self._timeouts.discard(timeout)
                self._pause()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Stop counting a call that waits for its slot."""
        self._pause()
        try:
            yield
        finally:
            self._begin()

    def _begin(self) -> None:
        if not self._running:
            self._since = monotonic()
        self._running += 1
        self._schedule()

    def _pause(self) -> None:
        self._running -= 1
        if not self._running:
            self._used += monotonic() - self._since
        self._schedule()

    def _schedule(self) -> None:
        """Set the deadline of all calls; without a deadline while the clock is stopped."""
        if self.limit is None:
            return
        remaining = max(0.0, self.limit - self.seconds)
        deadline = asyncio.get_running_loop().time() + remaining if self._running else None
        for timeout in self._timeouts:
            if not timeout.expired():
                timeout.reschedule(deadline)


_CLOCK: ContextVar[TurnClock | None] = ContextVar("turn_clock", default=None)


@contextmanager
def waiting_for_slot() -> Iterator[None]:
    """Stop the clock of the current call while it waits for its slot."""
    clock = _CLOCK.get()
    if clock is None:
        yield
        return
    with clock.waiting():
        yield
