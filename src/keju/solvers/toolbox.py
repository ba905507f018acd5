"""The interface of tools for the tool loop; MCP servers, notebooks and tests implement it.

source = …                                   the tools of one arm, for a whole session
await source.open()                          before any model is asked
async with source.episode(sample, 0) as box: the tools of one episode
    await box.call("add", {"a": 1, "b": 2})
await source.close()                         in every case
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from keju.errors import ConfigError, Notice
from keju.types import CallKind, Sample, Stop, Tool


class ToolResult(NamedTuple):
    """The result of a call, as the model receives it."""

    text: str
    kind: CallKind = "ok"
    images: tuple[bytes, ...] = ()
    seconds: float = 0.0
    """Seconds of the call itself; the loop measures it if this is 0."""
    queued: float = 0.0
    """Seconds that it waited for its turn before that."""
    final: str | None = None
    """The answer that ends the episode, if the call submitted one."""


class ToolsLost(Exception):
    """The episode cannot continue because its tools broke down. The sample becomes an error.

    The message is one line for people without secrets.
    """

    def __init__(self, stop: Stop, message: str) -> None:
        super().__init__(message)
        self.stop: Stop = stop
        self.message = message


class Toolbox:
    """The tools of one episode. Calls of one turn may run at the same time."""

    tools: tuple[Tool, ...] = ()
    """The same from the first turn to the last."""
    submits = False
    """Whether a tool submits the answer, rather than the last reply."""
    reminder = ""
    """The user's message after a reply without a call, if the answer has to be submitted."""
    closing = ""
    """The user's message before the last request without tools; usually empty."""
    folder: Path | None = None
    """The folder of this episode alone, which the tools may change; None if there is none."""

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Call a tool by its name in `tools`.

        Every outcome of the tool is a result. ToolsLost is only raised if the episode must end.
        """
        raise NotImplementedError

    def note(self) -> str | None:
        """Return the user's message after the results of a turn (a notebook's state); usually
        None."""
        return None

    def facts(self) -> dict[str, Any]:
        """Return the facts of the episode for its transcript; called once, after its end."""
        return {}


class ToolSource:
    """The tools of one arm for a session."""

    tools: tuple[Tool, ...] = ()
    """The tools of every episode; set by `open`."""

    async def open(self) -> None:
        """Start the shared parts and list the tools; raise UsageError or ConfigError on failure."""

    def episode(self, sample: Sample, epoch: int) -> AbstractAsyncContextManager[Toolbox]:
        """Return a context manager with the tools of one episode; entering it raises ToolsLost."""
        raise NotImplementedError

    async def close(self) -> None:
        """Stop everything; called once, also if `open` failed."""

    def facts(self) -> dict[str, Any]:
        """Return the facts about the tools for the manifest: names, versions, hashes, never a
        secret."""
        return {}

    def statistics(self) -> dict[str, Any]:
        """Return session statistics that are in no transcript: restarts, start times."""
        return {}

    @property
    def notices(self) -> list[Notice]:
        """Notices about the session for readers of the results."""
        return []


NOT_AVAILABLE: Final = "This tool is not available."


class StubTools(ToolSource):
    """A placebo: tools that are listed and refuse every call in the same way."""

    def __init__(self, tools: tuple[Tool, ...]) -> None:
        self.tools = tools

    @asynccontextmanager
    async def episode(self, sample: Sample, epoch: int) -> AsyncIterator[Toolbox]:
        """Yield the same tools for every episode."""
        yield StubToolbox(self.tools)


class StubToolbox(Toolbox):
    """The tools of a placebo."""

    def __init__(self, tools: tuple[Tool, ...]) -> None:
        self.tools = tools

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Return that the tool is not available."""
        return ToolResult(NOT_AVAILABLE, "tool_error")


class CombinedTools(ToolSource):
    """Several sources combined into one; the names of all their tools differ."""

    def __init__(self, sources: Sequence[ToolSource]) -> None:
        self.sources = sources

    async def open(self) -> None:
        """Open the sources one after the other."""
        for source in self.sources:
            await source.open()
        self.tools = tuple(tool for source in self.sources for tool in source.tools)
        names = [tool.name for tool in self.tools]
        for name in names:
            if names.count(name) > 1:
                raise ConfigError("tool_named_twice", name=name)

    @asynccontextmanager
    async def episode(self, sample: Sample, epoch: int) -> AsyncIterator[Toolbox]:
        """Yield the tools of all sources."""
        async with AsyncExitStack() as stack:
            boxes = [
                await stack.enter_async_context(source.episode(sample, epoch))
                for source in self.sources
            ]
            yield _CombinedToolbox(boxes)

    async def close(self) -> None:
        """Close all sources, even if closing one of them fails."""
        async with AsyncExitStack() as stack:
            for source in self.sources:
                stack.push_async_callback(source.close)

    def facts(self) -> dict[str, Any]:
        """Return the facts of all sources."""
        return {name: fact for source in self.sources for name, fact in source.facts().items()}

    def statistics(self) -> dict[str, Any]:
        """Return the statistics of all sources."""
        return {name: n for source in self.sources for name, n in source.statistics().items()}

    @property
    def notices(self) -> list[Notice]:
        """The notices of all sources."""
        return [notice for source in self.sources for notice in source.notices]


class _CombinedToolbox(Toolbox):
    def __init__(self, boxes: Sequence[Toolbox]) -> None:
        self._boxes = boxes
        self._owners = {tool.name: box for box in boxes for tool in box.tools}
        self.tools = tuple(tool for box in boxes for tool in box.tools)
        self.submits = any(box.submits for box in boxes)
        self.closing = "\n\n".join(filter(None, (box.closing for box in boxes)))
        self.reminder = "\n\n".join(filter(None, (box.reminder for box in boxes)))
        self.folder = next((box.folder for box in boxes if box.folder is not None), None)

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        return await self._owners[name].call(name, arguments)

    def note(self) -> str | None:
        return "\n\n".join(filter(None, (box.note() for box in self._boxes))) or None

    def facts(self) -> dict[str, Any]:
        return {name: fact for box in self._boxes for name, fact in box.facts().items()}
