"""Jupyter's messages over ZeroMQ's wire protocol, as far as a client of one kernel needs it.

The other side may be untrusted code, which can send endless frames; the usual library reads all of
them into memory. Here a frame is measured before it is read, and frames that are too large are
skipped. Sockets are never reconnected, because the path of a socket may have become a link.

The protocol (ZMTP 3.0) is small. Both sides greet and name their type of socket; then come frames::

    ff 00×8 7f  03 00  "NULL"+0×16  00  0×31          the greeting, 64 bytes
    04 len "\x05READY" "\x0bSocket-Type" 0000 0006 "DEALER"
    flags length body                                flags: 1 more frames, 2 long length, 4 command

A message of Jupyter is ``[topic…] <IDS|MSG> signature header parent metadata content [buffers…]``.
"""

from __future__ import annotations

import asyncio
import hmac
import socket
import struct
import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from keju.solvers.sandbox.folders import socket_path

GREETING = b"\xff" + bytes(8) + b"\x7f" + b"\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
DELIMITER = b"<IDS|MSG>"
MORE, LONG, COMMAND = 1, 2, 4
MOST = 16 * 2**20
"""Bytes of a message that are kept."""
KEPT = 12
"""Number of frames of a message that are kept: a topic, the delimiter, five parts, and some
more."""


class KernelMessage(NamedTuple):
    """A message of a kernel; `content` is empty if it was too large, see `left_out`."""

    kind: str
    parent: str
    content: dict[str, Any]
    left_out: int = 0
    """Bytes that were not kept."""


Text = str | list[str] | None


class _MessageHeader(msgspec.Struct):
    msg_type: str


class _ParentHeader(msgspec.Struct):
    msg_id: str = "None"


class _DisplayContent(msgspec.Struct, omit_defaults=True):
    plain: Text = msgspec.field(default=None, name="text/plain")
    png: Text = msgspec.field(default=None, name="image/png")


class _MessageContent(msgspec.Struct, omit_defaults=True):
    """The fields that are read of a message; other fields could be of any type and size."""

    text: Text = None
    data: _DisplayContent | None = None
    traceback: list[str] | None = None
    ename: str | None = None
    evalue: str | None = None
    execution_state: str | None = None


class KernelSocket:
    """One socket of a kernel."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, key: bytes
    ) -> None:
        self._reader, self._writer, self._key = reader, writer, key
        self.heard = 0
        """Bytes received so far."""

    @classmethod
    async def connect(cls, path: Path, kind: Literal["DEALER", "SUB"], key: bytes) -> KernelSocket:
        """Connect to a kernel's socket; raise OSError if no kernel listens there, or it is a link.

        Raises BlockingIOError if the kernel accepts no connection at the moment.
        """
        end = socket.socket(socket.AF_UNIX)
        try:
            end.setblocking(False)
            with socket_path(path.parent, path.name) as socket_name:
                end.connect(socket_name)
            reader, writer = await asyncio.open_unix_connection(sock=end)
        except BaseException:
            end.close()
            raise
        channel = cls(reader, writer, key)
        ready = b"\x05READY\x0bSocket-Type" + struct.pack(">I", len(kind)) + kind.encode()
        try:
            writer.write(GREETING + _frame(ready, COMMAND))
            await reader.readexactly(len(GREETING))
            while not (await channel._read_frame(MOST))[0] & COMMAND:
                pass
        except BaseException:  # also if an episode is cancelled while its kernel starts
            channel.close()
            raise
        if kind == "SUB":
            writer.write(_frame(b"\x01"))  # subscribes to everything
        return channel

    def send(self, kind: str, content: dict[str, Any]) -> str:
        """Send a message and return its id; nothing is sent if the kernel has closed the socket."""
        number = uuid.uuid4().hex
        header = {
            **{"msg_id": number, "msg_type": kind, "session": "keju", "username": "keju"},
            **{"date": "2026-01-01T00:00:00Z", "version": "5.4"},
        }
        parts = [msgspec.json.encode(part) for part in (header, {}, {}, content)]
        frames = [DELIMITER, self._signature(parts), *parts]
        for index, frame in enumerate(frames, 1):
            if self._writer.is_closing():
                break
            self._writer.write(_frame(frame, MORE if index < len(frames) else 0))
        return number

    async def receive(self) -> KernelMessage:
        """Return the next message with a valid signature; raise EOFError or OSError if the kernel
        is gone."""
        while True:
            frames: list[bytes] = []
            left_out, has_more = 0, True
            room = MOST
            while has_more:
                flags, body, dropped = await self._read_frame(room if len(frames) < KEPT else 0)
                if flags & COMMAND:
                    continue
                has_more = bool(flags & MORE)
                left_out += dropped
                room -= len(body)
                if len(frames) < KEPT:
                    frames.append(body)
            if (message := self._parse(frames, left_out)) is not None:
                return message

    def close(self) -> None:
        """Close the socket at once: a kernel that has ended reads nothing more."""
        self._writer.transport.abort()

    def _signature(self, parts: Sequence[bytes]) -> bytes:
        return hmac.new(self._key, b"".join(parts), "sha256").hexdigest().encode()

    async def _read_frame(self, limit: int) -> tuple[int, bytes, int]:
        """Return flags and body of the next frame, and the number of bytes that were too many."""
        (flags,) = await self._reader.readexactly(1)
        size = int.from_bytes(await self._reader.readexactly(8 if flags & LONG else 1))
        self.heard += size
        if size <= limit:
            return flags, await self._reader.readexactly(size), 0
        remaining = size
        while remaining:
            chunk = await self._reader.read(min(remaining, 2**20))
            if not chunk:
                raise asyncio.IncompleteReadError(b"", remaining)
            remaining -= len(chunk)
        return flags, b"", size

    def _parse(self, frames: list[bytes], left_out: int) -> KernelMessage | None:
        """Return the message in these frames; None if there is none."""
        with suppress(msgspec.DecodeError, RecursionError, ValueError, KeyError, TypeError):
            start = frames.index(DELIMITER) + 1
            signature, *parts = frames[start : start + 5]
            # The signature of a shortened message cannot be checked, so its content is not used.
            if left_out == 0 and not hmac.compare_digest(signature, self._signature(parts)):
                return None
            header, parent, _, content = parts
            kind = msgspec.json.decode(header, type=_MessageHeader).msg_type
            parsed = _MessageContent()
            if not left_out:
                parsed = msgspec.json.decode(content, type=_MessageContent)
            parent_id = msgspec.json.decode(parent or b"{}", type=_ParentHeader).msg_id
            return KernelMessage(kind, parent_id, msgspec.to_builtins(parsed), left_out)
        return None


def _frame(body: bytes, flags: int = 0) -> bytes:
    if len(body) > 255:
        return struct.pack(">BQ", flags | LONG, len(body)) + body
    return struct.pack(">BB", flags, len(body)) + body
