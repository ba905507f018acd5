"""HTTP for MCP within limits: a server can neither fill the memory nor send endlessly.

`mcp` reads a whole JSON body at once and unpacks any compression. This client passes it unpacked
bodies, and stops a body, an event or a stream that is too long.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx2

from keju import bounds


class MessageTooLong(httpx2.StreamError):
    """A reply that is longer than a message may be, or that cannot be unpacked."""


class BoundedClient(httpx2.AsyncClient):
    """A client whose replies are read within the limits of `keju.bounds`."""

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request; the reply's body is unpacked and measured while it is read."""
        is_streamed = options.pop("stream", False)
        request.headers["accept-encoding"] = bounds.ENCODINGS
        response = await super().send(request, stream=True, **options)
        try:
            response.stream = _BoundedBody(response, endless=request.method == "GET")
            for name in ("content-encoding", "content-length"):
                response.headers.pop(name, None)
            if not is_streamed:
                await response.aread()
        except BaseException:
            await response.aclose()
            raise
        return response


class _BoundedBody(httpx2.AsyncByteStream):
    """The body of a reply: in one piece, or line by line if it is a stream of events."""

    def __init__(self, response: httpx2.Response, *, endless: bool) -> None:
        """An `endless` stream may stay open for the whole run; only its events are limited."""
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        self._stream = response.stream
        self._is_events = "text/event-stream" in response.headers.get("content-type", "").lower()
        self._limit = None if endless and self._is_events else bounds.MOST_STREAMED
        try:
            names = bounds.parse_encodings(response.headers.get("content-encoding", ""))
        except bounds.UnpackError as error:
            raise MessageTooLong(str(error)) from None
        self._unpackers = [bounds.Unpacker(name) for name in names]

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pending, event, total = bytearray(), _OpenEvent(), 0
        async for packed in self._stream:
            pending += (data := self._unpack(packed))
            total += max(len(data), len(packed))
            if self._limit is not None and total > self._limit:
                raise MessageTooLong(f"more than {self._limit // bounds.MIB} MiB")
            if self._is_events and (end := max(pending.rfind(b"\n"), pending.rfind(b"\r")) + 1):
                lines, pending = bytes(pending[:end]), pending[end:]
                self._check_values(has_many=event.add(lines) > bounds.MOST_MESSAGE_VALUES)
                yield lines
            self._check(event.size + len(pending))
        try:
            for unpacker in self._unpackers:
                unpacker.close()
        except bounds.UnpackError as error:
            raise MessageTooLong(str(error)) from None
        document = bytes(pending)
        self._check_values(has_many=bounds.has_many_values(document, bounds.MOST_MESSAGE_VALUES))
        yield document

    def _unpack(self, data: bytes) -> bytes:
        try:
            for unpacker in self._unpackers:
                data = unpacker.feed(data, bounds.LONGEST_MESSAGE)
        except (bounds.UnpackedTooLong, bounds.UnpackError) as error:
            raise MessageTooLong(str(error) or _too_long_message()) from None
        return data

    @staticmethod
    def _check(size: int) -> None:
        if size > bounds.LONGEST_MESSAGE:
            raise MessageTooLong(_too_long_message())

    @staticmethod
    def _check_values(*, has_many: bool) -> None:
        if has_many:
            limit = f"{bounds.MOST_MESSAGE_VALUES:,}"
            raise MessageTooLong(f"the message has more than {limit} values")

    async def aclose(self) -> None:
        """Close the connection's stream."""
        await self._stream.aclose()


def _too_long_message() -> str:
    return f"the message is longer than {bounds.LONGEST_MESSAGE // bounds.MIB} MiB"


class _OpenEvent:
    """Measures the open event of a stream; an empty line ends an event."""

    def __init__(self) -> None:
        self.size = 0
        self._brackets = 0
        self._is_after_return = False

    def add(self, lines: bytes) -> int:
        """Count whole lines; return the brackets of the open event and of the events that end in
        them."""
        text = lines[1:] if self._is_after_return and lines.startswith(b"\n") else lines
        self._is_after_return = lines.endswith(b"\r")
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        brackets = self._brackets + _brackets_of(text)
        end = (b"\n" + text).rfind(b"\n\n")
        if end < 0:
            self.size, self._brackets = self.size + len(text), brackets
        else:
            open_event = text[end + 1 :]
            self.size, self._brackets = len(open_event), _brackets_of(open_event)
        return brackets


def _brackets_of(text: bytes) -> int:
    return text.count(b"[") + text.count(b"{")
