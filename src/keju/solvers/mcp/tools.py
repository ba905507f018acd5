"""The tools of one MCP server as a source of an arm."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from mcp import MCPError
from mcp_types import CallToolResult

from keju.config.address import strip_credentials
from keju.config.arms import WORKDIR, Server
from keju.errors import ConfigError, Notice, did_you_mean
from keju.solvers.mcp.connection import Connection, Ways
from keju.solvers.mcp.launch import Launch, launch_of
from keju.solvers.mcp.shared import SharedServer
from keju.solvers.mcp.wording import (
    kind_of_error,
    kind_of_result,
    offered_tools,
    text_of_result,
)
from keju.solvers.sandbox.folders import remove
from keju.solvers.toolbox import StubBox, Toolbox, ToolResult, ToolsLost, ToolSource
from keju.types import Sample

if TYPE_CHECKING:
    from mcp_types import Tool as ListedTool

    from keju.solvers.sandbox.supervisor import Supervisor
    from keju.types import Tool

LONGEST_INSTRUCTIONS = 4000
"""Characters of a server's instructions that the manifest keeps."""


class ServerTools(ToolSource):
    """One server of an arm, in as many processes as its scope says."""

    def __init__(
        self,
        server: Server,
        supervisor: Supervisor,
        environ: Mapping[str, str],
        *,
        listed_only: bool = False,
    ) -> None:
        self.server = server
        self.listed: dict[str, ListedTool] = {}
        """What the server lists, as far as it is offered, by its own names."""
        self.offered: dict[str, Tool] = {}
        """The same as the model gets it."""
        self._supervisor, self._environ, self._listed_only = supervisor, environ, listed_only
        self._ways = Ways()
        self._running: list[SharedServer] = []
        self._folders: set[str] = set()
        self._first: Connection | None = None
        self._start_seconds: list[float] = []
        self._restarts = 0
        self._noise = 0
        self._drift: dict[str, list[str]] = {}
        self._tail = ""

    async def open(self) -> None:
        """Start the server and list its tools."""
        first = self._shared()
        await first.open()
        self._running.append(first)
        self._first = first.connection
        assert self._first is not None
        self.listed = {tool.name: tool for tool in self._chosen(self._first.tools)}
        self.offered = offered_tools(self.server.name, tuple(self.listed.values()))
        self.tools = tuple(self.offered.values())
        if self._listed_only or self.server.scope == "sample":
            await self._end(first)
        elif self.server.scope == "worker":
            others = [self._shared() for _ in range(self.server.workers - 1)]
            self._running += others
            await asyncio.gather(*(each.open() for each in others))

    async def close(self) -> None:
        """End all processes and remove their folders."""
        await asyncio.gather(*(self._end(each) for each in list(self._running)))
        await asyncio.to_thread(remove, *self._folders)  # of servers that could not be started

    @asynccontextmanager
    async def episode(self, sample: Sample, epoch: int) -> AsyncIterator[Toolbox]:
        """The tools for one question."""
        if self._listed_only:
            yield StubBox(self.tools)
        elif self.server.scope != "sample":
            shared = min(self._running, key=lambda each: each.users)
            shared.users += 1
            try:
                yield ServerBox(self, shared)
            finally:
                shared.users -= 1
        else:
            own = self._shared(sample.id)
            self._running.append(own)
            try:
                try:
                    await own.open()
                except ConfigError as error:
                    raise ToolsLost("server_lost", str(error)) from None
                assert own.connection is not None
                self._compare(own.connection)
                yield ServerBox(self, own)
            finally:
                await self._end(own)

    def facts(self) -> dict[str, Any]:
        """Who the server is and what it offers."""
        server, first = self.server, self._first
        settings = server.model_dump(mode="json", exclude_defaults=True, exclude={"env", "url"})
        facts: dict[str, Any] = {"way": server.transport, "settings": settings}
        if server.url is not None:
            facts["url"] = strip_credentials(server.url)
        if first is not None:
            facts |= {"server": first.name, "version": first.version, "protocol": first.protocol}
            facts |= {"tools": sorted(self.listed), "tool_hash": first.tool_hash}
            if first.instructions:
                facts["instructions"] = first.instructions[:LONGEST_INSTRUCTIONS]
            facts["not_offered"] = sorted({t.name for t in first.tools} - self.listed.keys())
        return {server.name: facts}

    def statistics(self) -> dict[str, Any]:
        """What the processes of the server went through."""
        starts = self._start_seconds
        figures: dict[str, Any] = {
            "starts": len(starts),
            "start_seconds": round(max(starts), 3) if starts else None,
            "restarts": self._restarts,
            "noise_bytes": self._noise + sum(_noise(each) for each in self._running),
        }
        if self._drift:
            figures["drift"] = self._drift
        if tail := self._tail or (self._first.tail if self._first is not None else ""):
            figures["stderr"] = tail[-2000:]
        return {self.server.name: figures}

    @property
    def notices(self) -> list[Notice]:
        """What a reader of results must know of the server."""
        name, notices = self.server.name, []
        if self._first is not None and self._first.instructions:
            notices.append(Notice("server_instructions_untold", {"server": name}))
        if changed := {tool for tools in self._drift.values() for tool in tools}:
            values = {"server": name, "tools": ", ".join(sorted(changed))}
            notices.append(Notice("server_tools_drifted", values))
        return notices

    def hide(self, text: str) -> str:
        """What a tool answered, without the keys that the server was given."""
        return self._first.launch.hide(text, keys_only=True) if self._first is not None else text

    def _shared(self, instance: str = "") -> SharedServer:
        """A server that is started when it is opened, for one question or for many."""
        single = bool(instance)

        async def start() -> Connection:
            connection = Connection(
                self.server, self._launch(instance), self._supervisor, self._ways
            )
            await connection.open()
            self._start_seconds.append(connection.seconds)
            return connection

        def restarted(connection: Connection) -> None:
            self._restarts += 1
            self._compare(connection)

        most = 0 if single else self.server.max_restarts
        return SharedServer(self.server, start, max_restarts=most, restarted=restarted)

    def _launch(self, instance: str) -> Launch:
        """How a process is started, with a new folder where one is asked for."""
        texts = [*self.server.args, self.server.cwd or "", self.server.setup_command or ""]
        texts += [text or "" for text in self.server.env.values()]
        folder = ""
        if any(WORKDIR in text for text in texts):
            folder = str(self._supervisor.folder("mcp"))
            self._folders.add(folder)
        return launch_of(self.server, self._environ, folder, instance)

    async def _end(self, shared: SharedServer) -> None:
        await shared.close()
        self._noise += _noise(shared)
        if shared.connection is not None:
            self._tail = shared.connection.tail or self._tail
        if shared in self._running:
            self._running.remove(shared)

    def _chosen(self, listed: Sequence[ListedTool]) -> list[ListedTool]:
        """The tools that the settings allow; ConfigError where they name others or leave none."""
        names, choice = [tool.name for tool in listed], self.server.tools
        for setting, wanted in (("allow", choice.allow or []), ("deny", choice.deny)):
            for name in wanted:
                if name not in names:
                    hint = did_you_mean(name, names)
                    values = {"server": self.server.name, "setting": setting, "tool": name}
                    raise ConfigError("server_tool_unknown", hint=hint, **values)
        allowed = set(names if choice.allow is None else choice.allow) - set(choice.deny)
        if not allowed:
            raise ConfigError("server_no_tools", server=self.server.name, listed=len(names))
        return [tool for tool in listed if tool.name in allowed]

    def _compare(self, connection: Connection) -> None:
        """Note what a later start lists otherwise than the first; what is offered stays."""
        assert self._first is not None
        if connection.tool_hash == self._first.tool_hash:
            return
        before = {tool.name: tool for tool in self._first.tools}
        now = {tool.name: tool for tool in connection.tools}
        changed = {
            "lost": [name for name in before if name not in now],
            "new": [name for name in now if name not in before],
            "changed": [
                name
                for name in before.keys() & now.keys()
                if before[name].input_schema != now[name].input_schema
                or before[name].description != now[name].description
            ],
        }
        self._drift |= {kind: sorted(names) for kind, names in changed.items() if names}


def _noise(shared: SharedServer) -> int:
    connection = shared.connection
    return connection.pipes.noise if connection is not None and connection.pipes is not None else 0


class ServerBox(Toolbox):
    """The tools of one server in one episode."""

    def __init__(self, source: ServerTools, shared: SharedServer) -> None:
        self.tools = source.tools
        self._source, self._shared = source, shared
        self._own_names = {tool.name: name for name, tool in source.offered.items()}

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Call a tool of the server; whatever the server did is told to the model."""
        own, source = self._own_names[name], self._source
        called = await self._shared.call(own, arguments, again=self._repeatable(own))
        result, times = called.result, (called.seconds, called.queued)
        if isinstance(result, CallToolResult):
            kind = kind_of_result(result, arguments, source.offered[own])
            return ToolResult(source.hide(text_of_result(result)), kind, (), *times)
        if isinstance(result, MCPError):
            kind = kind_of_error(result, listed=self._listed(own))
            text = f"Error: {result.message}" if kind != "timeout" else _TIMEOUT
            return ToolResult(source.hide(text), kind, (), *times)
        if isinstance(result, TimeoutError):
            return ToolResult(_TIMEOUT, "timeout", (), *times)
        return ToolResult(_UNUSABLE, "invalid_output", (), *times)

    def _repeatable(self, tool: str) -> bool:
        """Whether a call that was interrupted may be made again."""
        retry, about = self._source.server.retry, self._source.listed[tool].annotations
        if retry != "read_only":
            return retry == "always"
        return about is not None and bool(about.read_only_hint or about.idempotent_hint)

    def _listed(self, tool: str) -> bool:
        """Whether the running server has the tool; after a restart it may have lost it."""
        connection = self._shared.connection
        return connection is not None and tool in {each.name for each in connection.tools}


_TIMEOUT = "Error: the tool did not answer in time."
_UNUSABLE = "Error: the tool's result is not valid."
