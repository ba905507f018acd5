"""Connections of browsers: how many there may be, and how long one may stay silent."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import Any, Final, cast

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CLIENTS: Final = 256
"""Connections at a time; one more ends the one that has been silent for the longest time."""
SILENCE: Final = 20.0
"""Seconds in which a client must have sent a whole request."""


class Client(H11Protocol):
    """A connection whose requests have a bounded size, number and duration."""

    _since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection."""
        self._since = monotonic()
        others = [cast("Client", each) for each in self.connections]
        super().connection_made(transport)
        silent = [each for each in others if each.is_silent]
        if len(others) >= MOST_CLIENTS:
            oldest = min(silent, key=lambda each: each._since, default=self)
            oldest.transport.abort()
        self.loop.call_later(SILENCE, self._look)

    def data_received(self, data: bytes) -> None:
        """Read a part of a request."""
        if self.cycle is not None and self.cycle.response_complete and not self._begun:
            self._since = monotonic()
        super().data_received(data)

    @property
    def _begun(self) -> bool:
        """Whether a further request has been sent in part."""
        return bool(self.conn.trailing_data[0])

    @property
    def is_silent(self) -> bool:
        """Whether no request of the client is being answered."""
        cycle: Any = self.cycle
        return cycle is None or bool(cycle.response_complete)

    def _look(self) -> None:
        """End the connection of a client that sends no whole request."""
        if self.transport.is_closing():
            return
        if self.is_silent and monotonic() - self._since >= SILENCE:
            self.transport.abort()
        else:
            self.loop.call_later(SILENCE, self._look)
