"""One started server: its process, its MCP session, and the one task that owns both.

The task that opens a session of `mcp` must also close it. So a separate task enters the session,
waits for the stop event, and leaves it. All other code only makes calls.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import signal
from collections.abc import Iterator
from contextlib import AsyncExitStack, suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import anyio
import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CONNECTION_CLOSED, CallToolResult, DiscoverResult, Tool
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from keju import bounds
from keju.config.address import strip_credentials
from keju.config.strict import NO_MAPPING, translate_report
from keju.errors import ConfigError, TranslatableText
from keju.solvers.mcp.http import BoundedClient
from keju.solvers.mcp.launch import ServerLaunch
from keju.solvers.mcp.transport import LONGEST_TAIL, ProcessOutput, last_words, pipe_transport
from keju.solvers.sandbox.supervisor import PIPE

if TYPE_CHECKING:
    from keju.config.arms import ServerSettings
    from keju.solvers.sandbox.supervisor import Supervisor

GRACE: Final = 1.0
"""Seconds in which a server may end by itself, and again after a request to end."""
BEYOND: Final = 5.0
"""Seconds after its time limit at which Keju cancels a call that `mcp` did not cancel."""
MOST_PAGES: Final = 100

# otherwise it writes between Keju's lines
logging.getLogger("mcp").addHandler(logging.NullHandler())


class ServerLost(Exception):
    """The server is gone, and with it the call."""


class WorkingHandshake:
    """How to talk to a server that has worked. Finding out again costs up to ten seconds per
    start."""

    mode = "auto"
    discovered: DiscoverResult | None = None


class ServerConnection:
    """A server from its start to its end; a restart is another connection."""

    def __init__(
        self,
        server: ServerSettings,
        launch: ServerLaunch,
        supervisor: Supervisor,
        ways: WorkingHandshake,
    ) -> None:
        self.server, self.launch = server, launch
        self.tools: tuple[Tool, ...] = ()
        self.name = self.version = self.protocol = ""
        self.instructions = ""
        """The server's instructions for the model, with secrets hidden."""
        self.seconds = 0.0
        """Seconds that the start took."""
        self.pipes: ProcessOutput | None = None
        self._supervisor, self._ways = supervisor, ways
        self._client: Client | None = None
        self._stop = asyncio.Event()
        self._owner: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Start the server and list its tools; raise ConfigError if it cannot be used."""
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        started = monotonic()
        self._owner = asyncio.create_task(self._run_session(ready))
        try:
            await ready
        except ConfigError:
            await self.close()
            raise
        except BaseException:
            self._owner.cancel()
            await self.close()
            raise
        self.seconds = monotonic() - started

    async def close(self) -> None:
        """End the session and the process, and wait until both are gone."""
        self._stop.set()
        if self._owner is not None:
            await asyncio.wait([self._owner])

    async def call(self, tool: str, arguments: dict[str, Any]) -> CallToolResult:
        """Call a tool; raise Lost, MCPError, TimeoutError, or the error of an unusable result."""
        if self._closed or self._client is None:
            raise ServerLost
        seconds = self.server.tool_timeout_ms / 1000
        try:
            async with asyncio.timeout(seconds + BEYOND):
                return await self._client.call_tool(tool, arguments, seconds)
        except Exception as error:
            if await self._is_loss(error):
                raise ServerLost from None
            raise

    @property
    def _closed(self) -> bool:
        return self._stop.is_set() or self._owner is None or self._owner.done()

    async def _is_loss(self, error: Exception) -> bool:
        """Whether a call failed because the server is gone.

        Some servers use the same error code for other purposes; their pipes stay open.
        """
        closed = isinstance(error, anyio.ClosedResourceError | anyio.BrokenResourceError)
        if self._closed or closed:
            return True
        if not isinstance(error, MCPError) or error.code != CONNECTION_CLOSED:
            return False
        if self.pipes is None:
            return True
        with suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                await self.pipes.ended.wait()
        return self.pipes.ended.is_set()

    @property
    def tail(self) -> str:
        """The end of the server's standard error, with secrets hidden."""
        return self.launch.hide(self.pipes.tail)[-LONGEST_TAIL:] if self.pipes is not None else ""

    @property
    def tool_hash(self) -> str:
        """A hash of the tools as the server lists them."""
        definitions = [[t.name, t.description, t.input_schema] for t in self.tools]
        text = json.dumps(sorted(definitions, key=lambda tool: str(tool[0])), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    async def _run_session(self, ready: asyncio.Future[None]) -> None:
        """Open the session, report that it is ready, wait for the stop event, and close it."""
        seconds = self.server.startup_timeout_ms / 1000
        try:
            if self.launch.setup is not None:
                await self._run_setup(self.launch.setup)
            async with asyncio.timeout(seconds) as deadline, AsyncExitStack() as stack:
                client = await self._open_client(stack, seconds)
                await self._read_server_info(client)
                deadline.reschedule(None)
                self._client = client
                if not ready.done():
                    ready.set_result(None)
                await self._stop.wait()
        except ConfigError as error:
            _report_error(ready, error)
        except Exception as error:  # a group of errors if tasks of `mcp` ended together
            _report_error(ready, self._start_error(error, seconds))
        finally:
            ready.cancel()
            if self.pipes is not None:
                self.pipes.ended.set()

    async def _open_client(self, stack: AsyncExitStack, seconds: float) -> Client:
        """Return a client whose process and connections end with `stack`."""
        launch = self.launch
        if launch.url:
            http = BoundedClient(
                headers=dict(launch.headers), timeout=httpx2.Timeout(seconds, read=None)
            )
            await stack.enter_async_context(http)
            transport = streamable_http_client(launch.url, http_client=http)
        else:
            process = await self._supervisor.start(
                launch.argv,
                env=launch.env,
                cwd=launch.cwd,
                stderr=PIPE,
                remove=[launch.folder] if launch.folder else [],
            )
            self.pipes = ProcessOutput(process)
            stack.push_async_callback(process.end, GRACE)
            transport = pipe_transport(self.pipes)
        client = Client(
            transport,
            read_timeout_seconds=seconds,
            mode=self._ways.mode,
            prior_discover=self._ways.discovered,
            cache=None,
        )
        return await stack.enter_async_context(client)

    async def _read_server_info(self, client: Client) -> None:
        """Read the server's name, version, instructions and tools."""
        self.protocol = client.protocol_version
        if client.server_info is not None:
            self.name, self.version = client.server_info.name, client.server_info.version
        self.instructions = self.launch.hide(client.instructions or "")
        tools: list[Tool] = []
        size, cursor = 0, None
        for _ in range(MOST_PAGES):
            page = await client.list_tools(cursor=cursor)
            tools += page.tools
            size += sum(len(tool.model_dump_json()) for tool in page.tools)
            if len(tools) > bounds.MOST_TOOLS or size > bounds.LONGEST_MESSAGE:
                raise self._error("server_many_tools", most=bounds.MOST_TOOLS)
            cursor = page.next_cursor
            if cursor is None:
                break
        self.tools = tuple(tools)
        modern = self.protocol in MODERN_PROTOCOL_VERSIONS
        self._ways.mode = self.protocol if modern else "legacy"
        self._ways.discovered = client.session.discover_result if modern else None

    async def _run_setup(self, command: str) -> None:
        """Run the server's setup command to its end."""
        launch, seconds = self.launch, self.server.setup_timeout_ms / 1000
        process = await self._supervisor.start(
            ["/bin/sh", "-c", command], env=launch.setup_env, cwd=launch.cwd, stderr=PIPE
        )
        pipes = self.pipes = ProcessOutput(process)
        try:
            async with asyncio.timeout(seconds):
                await asyncio.gather(pipes.listen(), _drain(pipes), process.wait())
        except TimeoutError:
            raise self._error("server_setup_slow", seconds=seconds) from None
        finally:
            code = await process.end()
        if code:
            raise self._error("server_setup_failed", exit=code)

    def _start_error(self, error: Exception, seconds: float) -> ConfigError:
        error_cause = next(_leaf_errors(error))
        if self.pipes is not None and self.pipes.flooded:
            return self._error("server_floods")
        if isinstance(error_cause, TimeoutError):
            return self._error("server_slow", seconds=seconds)
        if isinstance(error_cause, MCPError) and error_cause.code == CONNECTION_CLOSED:
            code = self.pipes.process.code if self.pipes is not None else None
            # it closed its output without failing
            if code in (None, -signal.SIGTERM, -signal.SIGKILL):
                return self._error("server_ended_at_once")
            return self._error("server_ended_with", exit=code)
        if isinstance(error_cause, OSError | httpx2.TransportError) and self.launch.url:
            return self._error("server_unreachable", url=strip_credentials(self.launch.url))
        if isinstance(error_cause, ValidationError):  # one line of it, with the place
            first_error = error_cause.errors(include_url=False, include_input=False)[0]
            location = self.launch.hide(".".join(map(str, first_error["loc"])))
            problem: object = translate_report(first_error, self.launch.hide(first_error["msg"]))
            if first_error["type"] in NO_MAPPING:
                problem = TranslatableText("server_no_object")
            invalid = ConfigError("config_invalid", path=location, problem=problem, more="")
            return self._error("server_not_mcp", problem=invalid)
        problem = self.launch.hide(
            f"{type(error_cause).__name__}: {error_cause}".removesuffix(": ")
        )
        return self._error("server_not_started", problem=problem)

    def _error(self, code: str, **values: Any) -> ConfigError:
        tail = last_words(self.tail)
        tail_hint = TranslatableText("server_tail", text=tail) if tail else ""
        values |= {"server": self.server.name, "tail": tail_hint}
        return ConfigError(code, **values)


def _report_error(ready: asyncio.Future[None], error: Exception) -> None:
    """Pass an error to the code that waits for the start; later errors belong to the callers."""
    if not ready.done():
        ready.set_exception(error)


def _leaf_errors(error: BaseException) -> Iterator[BaseException]:
    """Yield the errors in nested groups, the most informative first."""
    if not isinstance(error, BaseExceptionGroup):
        yield error
        return
    leaves = [leaf for member in error.exceptions for leaf in _leaf_errors(member)]
    yield from sorted(leaves, key=lambda leaf: isinstance(leaf, anyio.BrokenResourceError))


async def _drain(pipes: ProcessOutput) -> None:
    stream = pipes.process.stdout
    while stream is not None and await stream.read(2**16):
        pass
