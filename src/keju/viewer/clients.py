"""Limit the number of browser connections and the time for which they may be idle."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import Any, Final, cast

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CLIENTS: Final = 256
"""The number of connections at a time; a further one ends the one that was idle for longest."""
IDLE_SECONDS: Final = 20.0
"""Seconds in which a client must have sent a whole request."""


class BoundedConnection(H11Protocol):
    """A connection whose requests have a bounded size, number and duration."""

    _active_since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection."""
        self._active_since = monotonic()
        other_clients = [cast("BoundedConnection", connection) for connection in self.connections]
        super().connection_made(transport)
        silent = [client for client in other_clients if client.is_silent]
        if len(other_clients) >= MOST_CLIENTS:
            oldest = min(silent, key=lambda client: client._active_since, default=self)
            oldest.transport.abort()
        self.loop.call_later(IDLE_SECONDS, self._close_if_silent)

    def data_received(self, data: bytes) -> None:
        """Read a part of a request."""
        if (
            self.cycle is not None
            and self.cycle.response_complete
            and not self._has_partial_request
        ):
            self._active_since = monotonic()
        super().data_received(data)

    @property
    def _has_partial_request(self) -> bool:
        """Whether a further request has been sent in part."""
        return bool(self.conn.trailing_data[0])

    @property
    def is_silent(self) -> bool:
        """Whether the client has no request that is being answered."""
        cycle: Any = self.cycle
        return cycle is None or bool(cycle.response_complete)

    def _close_if_silent(self) -> None:
        """Close the connection if the client has sent no whole request in time."""
        if self.transport.is_closing():
            return
        if self.is_silent and monotonic() - self._active_since >= IDLE_SECONDS:
            self.transport.abort()
        else:
            self.loop.call_later(IDLE_SECONDS, self._close_if_silent)
