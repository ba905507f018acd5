"""A server that many episodes call at once, and its restart after a crash.

A crash interrupts every call in flight, and one of them may have caused it. So the server is
started again once; its generation shows whether that has happened already. New calls wait, and the
interrupted calls are repeated one at a time. The call that crashes it again is marked as the error,
and all others get their results.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, nullcontext
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from keju.errors import ConfigError
from keju.solvers.mcp.connection import ServerConnection, ServerLost
from keju.solvers.mcp.transport import last_words
from keju.solvers.toolbox import ToolsLost
from keju.solvers.turn_clock import waiting_for_slot

if TYPE_CHECKING:
    from mcp_types import CallToolResult

    from keju.config.arms import ServerSettings


class CallResult(NamedTuple):
    """The result of a call, and its times."""

    result: CallToolResult | Exception
    """An exception is a fault of this call alone."""
    seconds: float
    queued: float


class SharedServer:
    """One running server for all its callers."""

    def __init__(
        self,
        server: ServerSettings,
        start: Callable[[], Awaitable[ServerConnection]],
        *,
        max_restarts: int,
        on_restart: Callable[[ServerConnection], None] = lambda _: None,
    ) -> None:
        self.server = server
        self.users = 0
        """Number of episodes that use it."""
        self.restarts = 0
        self.connection: ServerConnection | None = None
        self._start, self._on_restart, self._max_restarts = start, on_restart, max_restarts
        self._generation = 0
        self._failure = ""
        max_in_flight = server.max_in_flight
        self._slots = (
            asyncio.Semaphore(max_in_flight) if max_in_flight is not None else nullcontext()
        )
        self._interrupted = 0
        """Calls that wait for their repetition; new calls wait for them."""
        self._no_interruptions = asyncio.Event()
        self._no_interruptions.set()
        self._one_at_a_time = asyncio.Lock()

    async def open(self) -> None:
        """Start the server; raise ConfigError if it cannot be used."""
        self.connection = await self._start()

    async def close(self) -> None:
        """End the server."""
        if self.connection is not None:
            await self.connection.close()

    async def call(self, tool: str, arguments: dict[str, Any], *, may_repeat: bool) -> CallResult:
        """Call a tool; with `may_repeat` repeat a call that the server's end interrupted.

        Raises ToolsLost if the call was interrupted and has no result in the end.
        """
        started = monotonic()
        async with AsyncExitStack() as slot:
            with waiting_for_slot():
                await slot.enter_async_context(self._slots)
                while not self._no_interruptions.is_set():
                    await self._no_interruptions.wait()
            queued, generation = monotonic() - started, self._generation
            try:
                return await self._attempt(tool, arguments, queued)
            except ServerLost:
                self._interrupted += 1
                self._no_interruptions.clear()
        try:
            async with AsyncExitStack() as turn:
                with waiting_for_slot():
                    await turn.enter_async_context(self._one_at_a_time)
                    if self._generation == generation:
                        await self._restart()
                if not may_repeat:
                    raise self._lost_error(tool, "it is not repeated, as it may have had an effect")
                try:
                    return await self._attempt(tool, arguments, monotonic() - started)
                except ServerLost:
                    await self._restart()
                    raise self._lost_error(tool, "twice") from None
        finally:
            self._interrupted -= 1
            if not self._interrupted:
                self._no_interruptions.set()

    async def _attempt(self, tool: str, arguments: dict[str, Any], queued: float) -> CallResult:
        if self._failure or self.connection is None:
            raise ToolsLost("server_lost", self._failure)
        call_started = monotonic()
        try:
            result = await self.connection.call(tool, arguments)
        except ServerLost:
            raise
        except Exception as error:
            return CallResult(error, monotonic() - call_started, queued)
        return CallResult(result, monotonic() - call_started, queued)

    async def _restart(self) -> None:
        """Start the server again; raise ToolsLost, now and for all later calls, if that is not
        possible."""
        assert self.connection is not None
        ended_connection = self.connection
        if self.restarts >= self._max_restarts:
            self._give_up(
                f"the server '{self.server.name}' ended {self.restarts + 1} times", ended_connection
            )
        self.restarts += 1
        await ended_connection.close()
        try:
            self.connection = await self._start()
        except ConfigError as error:
            self._give_up(str(error), ended_connection)
        self._generation += 1
        self._on_restart(self.connection)

    def _give_up(self, problem: str, ended_connection: ServerConnection) -> None:
        tail = last_words(ended_connection.tail)
        self._failure = f"{problem}; its last words: {tail}" if tail else problem
        raise ToolsLost("server_lost", self._failure)

    def _lost_error(self, tool: str, why: str) -> ToolsLost:
        problem = f"the server '{self.server.name}' ended during a call of {tool} ({why})"
        return ToolsLost("server_lost", problem)
