"""What the tool loop needs of tools, whoever brings them: MCP servers, notebooks, a test.

source = …                                   the tools of one arm, for a whole session
await source.open()                          before any model is asked
async with source.episode(sample, 0) as box: the tools of one episode
    await box.call("add", {"a": 1, "b": 2})
await source.close()                         whatever happened
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, Final, NamedTuple

from keju.errors import ConfigError, Notice
from keju.types import CallKind, Sample, Stop, Tool


class ToolResult(NamedTuple):
    """What a call gave, as the model is told it."""

    text: str
    kind: CallKind = "ok"
    images: tuple[bytes, ...] = ()
    seconds: float = 0.0
    """How long the call itself took; the loop measures it where this is 0."""
    queued: float = 0.0
    """How long it waited for its turn before that."""
    final: str | None = None
    """The answer that ends the episode, where the call submitted one."""


class ToolsLost(Exception):
    """The episode cannot go on: what its tools need broke down. The sample becomes an error.

    Its message is one line for people and holds no secret.
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
    """Whether the answer is submitted by a tool, rather than said in the last reply."""
    reminder = ""
    """What the user says to a reply without a call, where the answer has to be submitted."""
    closing = ""
    """What the user says before the last answer is asked for without tools; usually nothing."""

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Call a tool by its name in `tools`.

        Whatever the tool did is a result; only what ends the episode is raised, as ToolsLost.
        """
        raise NotImplementedError

    def note(self) -> str | None:
        """What the user says after the results of a turn (a notebook's state); usually None."""
        return None

    def facts(self) -> dict[str, Any]:
        """What the transcript tells of the episode beside its turns; asked once, after its end."""
        return {}


class ToolSource:
    """The tools of one arm for a session."""

    tools: tuple[Tool, ...] = ()
    """What every episode is given; known after `open`."""

    async def open(self) -> None:
        """Start what the session shares and list the tools; UsageError or ConfigError if not."""

    def episode(self, sample: Sample, epoch: int) -> AbstractAsyncContextManager[Toolbox]:
        """The tools of one episode, for as long as the block lasts; entering raises ToolsLost."""
        raise NotImplementedError

    async def close(self) -> None:
        """Stop everything; called once, also where `open` failed half way."""

    def facts(self) -> dict[str, Any]:
        """What the tools are, for the manifest: names, versions, hashes, never a secret."""
        return {}

    def statistics(self) -> dict[str, Any]:
        """What happened in the session that no transcript tells: restarts, start times."""
        return {}

    @property
    def notices(self) -> list[Notice]:
        """What a reader of the results must know of the session."""
        return []


NOT_AVAILABLE: Final = "This tool is not available."


class Stub(ToolSource):
    """A placebo: tools that are listed and answer every call with the same refusal."""

    def __init__(self, tools: tuple[Tool, ...]) -> None:
        self.tools = tools

    @asynccontextmanager
    async def episode(self, sample: Sample, epoch: int) -> AsyncIterator[Toolbox]:
        """The same for every episode."""
        yield StubBox(self.tools)


class StubBox(Toolbox):
    """The tools of a placebo."""

    def __init__(self, tools: tuple[Tool, ...]) -> None:
        self.tools = tools

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Say that the tool is not available."""
        return ToolResult(NOT_AVAILABLE, "tool_error")


class Joined(ToolSource):
    """Several sources as one; the names of all their tools differ."""

    def __init__(self, sources: Sequence[ToolSource]) -> None:
        self.sources = sources

    async def open(self) -> None:
        """Open one after the other."""
        for source in self.sources:
            await source.open()
        self.tools = tuple(tool for source in self.sources for tool in source.tools)
        names = [tool.name for tool in self.tools]
        for name in names:
            if names.count(name) > 1:
                raise ConfigError("tool_named_twice", name=name)

    @asynccontextmanager
    async def episode(self, sample: Sample, epoch: int) -> AsyncIterator[Toolbox]:
        """The tools of all sources."""
        async with AsyncExitStack() as stack:
            boxes = [
                await stack.enter_async_context(source.episode(sample, epoch))
                for source in self.sources
            ]
            yield _JoinedBox(boxes)

    async def close(self) -> None:
        """Close all of them, also where one of them cannot be closed."""
        async with AsyncExitStack() as stack:
            for source in self.sources:
                stack.push_async_callback(source.close)

    def facts(self) -> dict[str, Any]:
        """What each of them says."""
        return {name: fact for source in self.sources for name, fact in source.facts().items()}

    def statistics(self) -> dict[str, Any]:
        """What each of them says."""
        return {name: n for source in self.sources for name, n in source.statistics().items()}

    @property
    def notices(self) -> list[Notice]:
        """What each of them says."""
        return [notice for source in self.sources for notice in source.notices]


class _JoinedBox(Toolbox):
    def __init__(self, boxes: Sequence[Toolbox]) -> None:
        self._boxes = boxes
        self._owners = {tool.name: box for box in boxes for tool in box.tools}
        self.tools = tuple(tool for box in boxes for tool in box.tools)
        self.submits = any(box.submits for box in boxes)
        self.closing = "\n\n".join(filter(None, (box.closing for box in boxes)))
        self.reminder = "\n\n".join(filter(None, (box.reminder for box in boxes)))

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        return await self._owners[name].call(name, arguments)

    def note(self) -> str | None:
        return "\n\n".join(filter(None, (box.note() for box in self._boxes))) or None

    def facts(self) -> dict[str, Any]:
        return {name: fact for box in self._boxes for name, fact in box.facts().items()}
