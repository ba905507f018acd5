"""MCP's messages over the pipes of a process: one JSON text per line.

Many servers also print other text to their standard output by accident. Such lines are skipped and
counted. A server that prints endlessly is given up, so it cannot use up Keju's memory or time.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import dropwhile
from typing import TYPE_CHECKING, Final

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from keju import bounds

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

    from keju.solvers.sandbox.supervisor import SupervisedProcess

CHUNK: Final = 256 * 1024
LONGEST_TAIL: Final = 4000
"""Characters of standard error that are shown and stored."""
KEPT_TAIL: Final = 4 * LONGEST_TAIL
"""Bytes of standard error that are kept, so that no secret is cut before it is hidden."""


MOST_WORDS: Final = 500
"""Characters of standard error that an error quotes."""
_OF_GROUP = re.compile(r"^ *(?:\| ?|\+-.*)", re.MULTILINE)
"""The frame that Python draws around the exceptions of a group."""
_FRAME = re.compile(r'^ +File ".*", line \d+', re.MULTILINE)


def last_words(tail: str) -> str:
    """Return the end of a server's standard error in one line. For a Python traceback, return only
    the exception, because the lines of its frames are unreadable when joined."""
    text = _OF_GROUP.sub("", tail)
    frames = list(_FRAME.finditer(text))
    lines = text[frames[-1].end() :].splitlines() if frames else []
    exception_lines = list(dropwhile(lambda line: not line or line[0].isspace(), lines[1:]))
    if exception_lines:
        return " ".join(" ".join(exception_lines).split())[:MOST_WORDS]
    return " ".join(tail.split())[-MOST_WORDS:]


class ProcessOutput:
    """The output of a process: its messages, other lines, and its standard error."""

    def __init__(self, process: SupervisedProcess) -> None:
        self.process = process
        self.ended = asyncio.Event()
        """Set when no further message can come."""
        self.noise = 0
        """Bytes of standard output that were not messages."""
        self.flooded = False
        self._tail = bytearray()

    @property
    def tail(self) -> str:
        """The end of its standard error."""
        return self._tail.decode("utf-8", "replace").strip()

    async def listen(self) -> None:
        """Read standard error to its end, so that the server never waits for a reader."""
        stream = self.process.stderr
        while stream is not None and (chunk := await stream.read(CHUNK)):
            self._tail += chunk
            del self._tail[:-KEPT_TAIL]

    async def lines(self) -> AsyncIterator[bytes]:
        """Yield the lines of standard output that may be messages."""
        pending = bytearray()
        stream = self.process.stdout
        while stream is not None and (chunk := await stream.read(CHUNK)):
            pending += chunk
            if b"\n" in chunk:
                *lines, open_line = bytes(pending).split(b"\n")
                pending = bytearray(open_line)
                for line in lines:
                    if not line.lstrip().startswith(b"{"):
                        self.noise += len(line) + 1
                    elif bounds.has_many_values(line, bounds.MOST_MESSAGE_VALUES):
                        self.flooded = True
                        return
                    else:
                        yield line
            if len(pending) > bounds.LONGEST_MESSAGE or self.noise > bounds.MOST_NOISE:
                self.flooded = True
                return
            await asyncio.sleep(0)  # let other tasks run, even if a server prints endlessly


@asynccontextmanager
async def pipe_transport(pipes: ProcessOutput) -> AsyncIterator[TransportStreams]:
    """Yield a transport of `mcp` over a running process; its owner ends the process."""
    inbox, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, outbox = anyio.create_memory_object_stream[SessionMessage](0)
    closed_errors = (anyio.ClosedResourceError, anyio.BrokenResourceError)

    async def read_messages() -> None:
        async with inbox:
            try:
                async for line in pipes.lines():
                    try:
                        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                    except ValueError:
                        pipes.noise += len(line)
                        continue
                    await inbox.send(SessionMessage(message))
            except (*closed_errors, OSError):
                pass
            finally:
                pipes.ended.set()

    async def write_messages() -> None:
        stream = pipes.process.stdin
        assert stream is not None
        async with outbox:
            try:
                async for message in outbox:
                    text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                    stream.write(text.encode("utf-8", "replace") + b"\n")
                    await stream.drain()
            except (*closed_errors, OSError, RuntimeError):  # uvloop's error for a closed pipe
                await inbox.aclose()  # there is no reader left: pending requests must fail
                pipes.ended.set()

    async with incoming, write, anyio.create_task_group() as group:
        group.start_soon(read_messages)
        group.start_soon(write_messages)
        group.start_soon(pipes.listen)
        try:
            yield incoming, write
        finally:
            group.cancel_scope.cancel()
