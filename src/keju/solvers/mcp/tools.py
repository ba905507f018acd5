"""The tools of one MCP server as a source of an arm."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp import MCPError
from mcp_types import CallToolResult

from keju.config.address import strip_credentials
from keju.config.arms import WORKDIR, ServerSettings
from keju.errors import ConfigError, Notice, did_you_mean
from keju.solvers.mcp.connection import ServerConnection, WorkingHandshake
from keju.solvers.mcp.launch import ServerLaunch, make_launch
from keju.solvers.mcp.shared import SharedServer
from keju.solvers.mcp.wording import (
    kind_of_error,
    kind_of_result,
    make_offered_tools,
    text_of_result,
)
from keju.solvers.sandbox.folders import remove
from keju.solvers.toolbox import StubToolbox, Toolbox, ToolResult, ToolsLost, ToolSource
from keju.types import Sample

if TYPE_CHECKING:
    from mcp_types import Tool as ListedTool

    from keju.solvers.sandbox.supervisor import Supervisor
    from keju.types import Tool

LONGEST_INSTRUCTIONS = 4000
"""Characters of a server's instructions that the manifest keeps."""


class ServerTools(ToolSource):
    """One server of an arm, with a number of processes that depends on its scope."""

    def __init__(
        self,
        server: ServerSettings,
        supervisor: Supervisor,
        environ: Mapping[str, str],
        *,
        listed_only: bool = False,
    ) -> None:
        self.server = server
        self.listed: dict[str, ListedTool] = {}
        """The offered tools as the server lists them, by the server's names."""
        self.offered: dict[str, Tool] = {}
        """The offered tools as the model receives them, by the server's names."""
        self._supervisor, self._environ, self._listed_only = supervisor, environ, listed_only
        self._ways = WorkingHandshake()
        self._running: list[SharedServer] = []
        self._folders: set[str] = set()
        self._first: ServerConnection | None = None
        self._start_seconds: list[float] = []
        self._restarts = 0
        self._noise = 0
        self._drift: dict[str, list[str]] = {}
        self._tail = ""

    async def open(self) -> None:
        """Start the server and list its tools."""
        first_server = self._make_server()
        await first_server.open()
        self._running.append(first_server)
        self._first = first_server.connection
        assert self._first is not None
        self.listed = {tool.name: tool for tool in self._choose_tools(self._first.tools)}
        self.offered = make_offered_tools(self.server.name, tuple(self.listed.values()))
        self.tools = tuple(self.offered.values())
        if self._listed_only or self.server.scope == "sample":
            await self._end_server(first_server)
        elif self.server.scope == "worker":
            other_servers = [self._make_server() for _ in range(self.server.workers - 1)]
            self._running += other_servers
            await asyncio.gather(*(server.open() for server in other_servers))

    async def close(self) -> None:
        """End all processes and remove their folders."""
        await asyncio.gather(*(self._end_server(server) for server in list(self._running)))
        await asyncio.to_thread(remove, *self._folders)  # of servers that could not be started

    @asynccontextmanager
    async def episode(self, sample: Sample, epoch: int) -> AsyncIterator[Toolbox]:
        """Yield the tools for one question."""
        if self._listed_only:
            yield StubToolbox(self.tools)
        elif self.server.scope != "sample":
            shared = min(self._running, key=lambda server: server.users)
            shared.users += 1
            try:
                yield ServerToolbox(self, shared)
            finally:
                shared.users -= 1
        else:
            sample_server = self._make_server(sample.id)
            self._running.append(sample_server)
            try:
                try:
                    await sample_server.open()
                except ConfigError as error:
                    raise ToolsLost("server_lost", str(error)) from None
                assert sample_server.connection is not None
                self._note_drift(sample_server.connection)
                yield ServerToolbox(self, sample_server)
            finally:
                await self._end_server(sample_server)

    def facts(self) -> dict[str, Any]:
        """Return the server's identity and its tools."""
        server, first_connection = self.server, self._first
        settings = server.model_dump(mode="json", exclude_defaults=True, exclude={"env", "url"})
        facts: dict[str, Any] = {"way": server.transport, "settings": settings}
        if server.url is not None:
            facts["url"] = strip_credentials(server.url)
        if first_connection is not None:
            facts |= {
                "server": first_connection.name,
                "version": first_connection.version,
                "protocol": first_connection.protocol,
            }
            facts |= {"tools": sorted(self.listed), "tool_hash": first_connection.tool_hash}
            if first_connection.instructions:
                facts["instructions"] = first_connection.instructions[:LONGEST_INSTRUCTIONS]
            facts["not_offered"] = sorted(
                {t.name for t in first_connection.tools} - self.listed.keys()
            )
        return {server.name: facts}

    def statistics(self) -> dict[str, Any]:
        """Return the statistics of the server's processes."""
        starts = self._start_seconds
        figures: dict[str, Any] = {
            "starts": len(starts),
            "start_seconds": round(max(starts), 3) if starts else None,
            "restarts": self._restarts,
            "noise_bytes": self._noise + sum(_noise_bytes(server) for server in self._running),
        }
        if self._drift:
            figures["drift"] = self._drift
        if tail := self._tail or (self._first.tail if self._first is not None else ""):
            figures["stderr"] = tail[-2000:]
        return {self.server.name: figures}

    @property
    def notices(self) -> list[Notice]:
        """Notices about the server for readers of the results."""
        name, notices = self.server.name, []
        if self._first is not None and self._first.instructions:
            notices.append(Notice("server_instructions_untold", {"server": name}))
        if changed := {tool for tools in self._drift.values() for tool in tools}:
            values = {"server": name, "tools": ", ".join(sorted(changed))}
            notices.append(Notice("server_tools_drifted", values))
        return notices

    def hide(self, text: str) -> str:
        """Return a tool's answer without the keys that the server received."""
        return self._first.launch.hide(text, keys_only=True) if self._first is not None else text

    def _make_server(self, instance: str = "") -> SharedServer:
        """Return a server that starts when it is opened, for one question or for many."""
        is_for_sample = bool(instance)

        async def start_connection() -> ServerConnection:
            connection = ServerConnection(
                self.server, self._make_launch(instance), self._supervisor, self._ways
            )
            await connection.open()
            self._start_seconds.append(connection.seconds)
            return connection

        def on_restart(connection: ServerConnection) -> None:
            self._restarts += 1
            self._note_drift(connection)

        max_restarts = 0 if is_for_sample else self.server.max_restarts
        return SharedServer(
            self.server, start_connection, max_restarts=max_restarts, on_restart=on_restart
        )

    def _make_launch(self, instance: str) -> ServerLaunch:
        """Return how to start a process, with a new folder if the settings name one."""
        texts = [*self.server.args, self.server.cwd or "", self.server.setup_command or ""]
        texts += [text or "" for text in self.server.env.values()]
        folder = ""
        if any(WORKDIR in text for text in texts):
            folder = str(self._supervisor.folder("mcp"))
            self._folders.add(folder)
        return make_launch(self.server, self._environ, folder, instance)

    async def _end_server(self, shared: SharedServer) -> None:
        await shared.close()
        self._noise += _noise_bytes(shared)
        if shared.connection is not None:
            self._tail = shared.connection.tail or self._tail
        if shared in self._running:
            self._running.remove(shared)

    def _choose_tools(self, listed: Sequence[ListedTool]) -> list[ListedTool]:
        """Return the tools that the settings allow; raise ConfigError for unknown names or no
        tools."""
        names, choice = [tool.name for tool in listed], self.server.tools
        for setting, requested_names in (("allow", choice.allow or []), ("deny", choice.deny)):
            for name in requested_names:
                if name not in names:
                    hint = did_you_mean(name, names)
                    values = {"server": self.server.name, "setting": setting, "tool": name}
                    raise ConfigError("server_tool_unknown", hint=hint, **values)
        allowed = set(names if choice.allow is None else choice.allow) - set(choice.deny)
        if not allowed:
            raise ConfigError("server_no_tools", server=self.server.name, listed=len(names))
        return [tool for tool in listed if tool.name in allowed]

    def _note_drift(self, connection: ServerConnection) -> None:
        """Record differences between the tools of a later start and the first; the offered tools
        stay."""
        assert self._first is not None
        if connection.tool_hash == self._first.tool_hash:
            return
        tools_before = {tool.name: tool for tool in self._first.tools}
        now = {tool.name: tool for tool in connection.tools}
        changed = {
            "lost": [name for name in tools_before if name not in now],
            "new": [name for name in now if name not in tools_before],
            "changed": [
                name
                for name in tools_before.keys() & now.keys()
                if tools_before[name].input_schema != now[name].input_schema
                or tools_before[name].description != now[name].description
            ],
        }
        self._drift |= {kind: sorted(names) for kind, names in changed.items() if names}


def _noise_bytes(shared: SharedServer) -> int:
    connection = shared.connection
    return connection.pipes.noise if connection is not None and connection.pipes is not None else 0


class ServerToolbox(Toolbox):
    """The tools of one server in one episode."""

    def __init__(self, source: ServerTools, shared: SharedServer) -> None:
        self.tools = source.tools
        self._source, self._shared = source, shared
        connection = shared.connection
        if source.server.scope == "sample" and connection is not None and connection.launch.folder:
            self.folder = Path(connection.launch.folder)
        self._server_names = {tool.name: name for name, tool in source.offered.items()}

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Call a tool of the server; the model receives every outcome."""
        server_name, source = self._server_names[name], self._source
        called = await self._shared.call(
            server_name, arguments, may_repeat=self._may_repeat(server_name)
        )
        result, times = called.result, (called.seconds, called.queued)
        if isinstance(result, CallToolResult):
            kind = kind_of_result(result, arguments, source.offered[server_name])
            return ToolResult(source.hide(text_of_result(result)), kind, (), *times)
        if isinstance(result, MCPError):
            kind = kind_of_error(result, is_listed=self._is_listed(server_name))
            text = f"Error: {result.message}" if kind != "timeout" else _TIMEOUT
            return ToolResult(source.hide(text), kind, (), *times)
        if isinstance(result, TimeoutError):
            return ToolResult(_TIMEOUT, "timeout", (), *times)
        return ToolResult(_UNUSABLE, "invalid_output", (), *times)

    def _may_repeat(self, tool: str) -> bool:
        """Whether an interrupted call may be repeated."""
        retry, annotations = self._source.server.retry, self._source.listed[tool].annotations
        if retry != "read_only":
            return retry == "always"
        return annotations is not None and bool(
            annotations.read_only_hint or annotations.idempotent_hint
        )

    def _is_listed(self, tool: str) -> bool:
        """Whether the running server has the tool; a restarted server may lack it."""
        connection = self._shared.connection
        return connection is not None and tool in {listed.name for listed in connection.tools}


_TIMEOUT = "Error: the tool did not answer in time."
_UNUSABLE = "Error: the tool's result is not valid."
