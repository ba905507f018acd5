"""HTTP/1.1 on the loop's own thread: connections that are kept, one request at a time on each.

httptools (the parser of Node.js and uvicorn) takes replies apart; what it refuses is damage. A
reply counts only when it is whole: of its announced length, closed by its last chunk, or, where it
announces neither, ended by the server.
"""

from __future__ import annotations

import asyncio
import base64
import os
import re
import select
import socket
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple, cast
from urllib.parse import unquote, urlsplit

import httptools
import msgspec

from keju import bounds
from keju.bounds import ENCODINGS

BODILESS = (204, 304)
"""Statuses of replies that end with their head; some servers send a body all the same."""
CONNECT_SECONDS = 30.0
"""An address that does not even answer the handshake by then is down."""
KEEP_ALIVE_SECONDS = 60
"""After so long without a byte a sign of life is sent: networks cut what is silent for minutes."""
NO_HANDSHAKE = "no answer to the handshake"


class HttpReply(msgspec.Struct, frozen=True):
    """A whole reply, whatever its status."""

    status: int
    body: bytes
    header: Callable[[str], str | None]
    """Looks a header up, in any case."""


class TransportError(Exception):
    """No whole reply came. The message is one line and holds neither address nor headers."""

    def __init__(
        self,
        kind: Literal["timeout", "connection", "malformed"],
        message: str,
        *,
        reached: bool,
        distrusted: bool = False,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.reached = reached
        """Whether a connection had been made."""
        self.distrusted = distrusted
        """A server is there, but its certificate is not trusted."""


def timed_out(seconds: float) -> TransportError:
    """What became of a request that had no reply in time."""
    return TransportError("timeout", f"no reply within {seconds:g} s", reached=True)


def damaged(problem: str) -> TransportError:
    """What became of a reply that cannot be used."""
    return TransportError("malformed", problem, reached=True)


def too_long() -> TransportError:
    """What became of a reply without an end."""
    return damaged(f"the reply is longer than {bounds.LONGEST_REPLY // bounds.MIB} MiB")


class Target(NamedTuple):
    """Where a request goes, and the lines that begin it."""

    host: str
    port: int
    head: bytes
    """Everything after the method: the path, the host, the credentials of the address."""
    authorized: bool
    """Whether the address brings credentials of its own, which go before those of the headers."""


def plain_target(url: str) -> Target | None:
    """The target of an address that this module can serve; None for any other."""
    parts = urlsplit(url)
    if parts.scheme != "http" or not url.isascii() or not parts.hostname or set(url) & set(" \t"):
        return None
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    host = parts.netloc.rpartition("@")[2]
    lines = f"{path} HTTP/1.1\r\nhost: {host}\r\n"
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        lines += f"authorization: Basic {base64.b64encode(pair.encode()).decode()}\r\n"
    named = parts.username is not None
    return Target(parts.hostname, parts.port or 80, lines.encode(), named)


class PlainPool:
    """The connections of one client; they belong to the loop on which they were made."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        own = {name.lower(): value for name, value in headers.items()}
        own = {"user-agent": "keju", "accept": "*/*", "accept-encoding": ENCODINGS} | own
        self._lines = _lines(own)
        self._lines_without_key = _lines({n: v for n, v in own.items() if n != "authorization"})
        self._heads: dict[Target, bytes] = {}
        self._idle: dict[tuple[str, int], list[_Connection]] = {}
        self._busy: set[_Connection] = set()
        self._outbox: _Outbox = []
        self._loop: asyncio.AbstractEventLoop | None = None

    async def send(
        self,
        method: Literal["GET", "POST"],
        target: Target,
        body: bytes,
        timeout: float,
        headers: Mapping[str, str] | None = None,
    ) -> HttpReply:
        """Send one request; return its whole reply or raise TransportError."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop, self._idle, self._busy, self._outbox = loop, {}, set(), []
        started = loop.time()
        connection = self._kept(target) or await self._connect(loop, target, timeout)
        self._busy.add(connection)
        head = self._heads.get(target)
        if head is None:
            lines = self._lines_without_key if target.authorized else self._lines
            head = self._heads[target] = target.head + lines
        if headers:
            head += _lines({name.lower(): value for name, value in headers.items()})
        sent = b"%s %scontent-length: %d\r\n\r\n%s" % (method.encode(), head, len(body), body)
        try:
            return await connection.ask(sent, started + timeout, timeout)
        except asyncio.CancelledError:
            connection.abort()
            raise
        finally:
            self._busy.discard(connection)
            if connection.usable:
                self._idle.setdefault(target[:2], []).append(connection)

    def _kept(self, target: Target) -> _Connection | None:
        """A connection that is open and free, the one that was used last."""
        idle = self._idle.get(target[:2])
        while idle:
            connection = idle.pop()
            if connection.usable and not connection.ended():
                return connection
            connection.abort()
        return None

    async def _connect(
        self, loop: asyncio.AbstractEventLoop, target: Target, timeout: float
    ) -> _Connection:
        try:
            async with asyncio.timeout(min(CONNECT_SECONDS, timeout)):
                made = _Connection(self._outbox)
                await loop.create_connection(lambda: made, target.host, target.port)
        except TimeoutError:
            raise TransportError("connection", NO_HANDSHAKE, reached=False) from None
        except OSError as error:
            raise TransportError("connection", _cause(error), reached=False) from None
        return made

    def close(self) -> None:
        """Close all connections; what is in flight fails."""
        for idle in self._idle.values():
            for connection in idle:
                connection.abort()
        for connection in tuple(self._busy):
            connection.fail(TransportError("connection", "the client was closed", reached=True))
        self._idle = {}


def _lines(headers: Mapping[str, str]) -> bytes:
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode()


# Where all of several addresses failed: `Multiple exceptions: [Errno 111] Connect call failed …`.
_NUMBER = re.compile(r"\[Errno (\d+)\]")


def _cause(error: OSError) -> str:
    """Why no connection was made, without the address: "connection refused"."""
    if isinstance(error, socket.gaierror):
        return f"the host is not known ({error.strerror})"
    found = _NUMBER.search(str(error))
    number = error.errno or (int(found[1]) if found else 0)
    text = os.strerror(number) if number else "no connection could be made"
    return text[:1].lower() + text[1:]


_Outbox = list[tuple[asyncio.Transport, bytes]]
"""Requests that are about to be sent."""


def _send_all(outbox: _Outbox) -> None:
    requests = outbox.copy()
    outbox.clear()
    for transport, request in requests:
        # One that was closed since has told its request so; the others must still be sent.
        if not transport.is_closing():
            transport.write(request)  # in one piece: each write is a call of the system


class _Connection(asyncio.Protocol):
    """One connection. httptools calls the ``on_…`` methods while it reads what has come."""

    def __init__(self, outbox: _Outbox) -> None:
        self._outbox = outbox
        self._transport: asyncio.Transport | None = None
        self._waiting: asyncio.Future[HttpReply] | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    # --- asking ---------------------------------------------------------------------------------

    def ask(self, request: bytes, due: float, patience: float) -> asyncio.Future[HttpReply]:
        """Send a request; the reply to it comes by the future.

        Without one it fails when the loop's clock shows `due`, after `patience` seconds.
        """
        assert self._transport is not None
        assert self._waiting is None
        self._waiting = waiting = self._loop.create_future()
        self._due, self._patience = due, patience
        # A timer is set once for many requests: one that rings too early is set again.
        if self._timer is None or self._timer.when() > due:
            self._set_timer()
        self._status = self._head_size = self._wire_size = self._header_count = 0
        self._headers: dict[bytes, bytes] = {}
        self._body = bytearray()
        self._whole = False
        # What is sent at the same moment goes out together: a server that falls asleep between
        # two requests costs more to wake than the request itself.
        if not self._outbox:
            self._loop.call_soon(_send_all, self._outbox)
        self._outbox.append((self._transport, request))
        return waiting

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(self._due, self._ring)

    def _ring(self) -> None:
        """The timer of this request, or of an earlier one on this connection, is over."""
        self._timer = None
        if self._waiting is None:
            return
        if self._loop.time() < self._due:
            self._set_timer()
        else:
            self.fail(timed_out(self._patience))

    @property
    def usable(self) -> bool:
        """Whether another request may be sent."""
        open_ = self._transport is not None and not self._transport.is_closing()
        return open_ and self._waiting is None

    def ended(self) -> bool:
        """Whether the server has ended a connection on which nothing was asked.

        The loop may not have seen it yet. A request that is sent then is lost, and looks as if
        the server had broken off its reply.
        """
        return bool(self._poll.poll(0))

    def fail(self, error: TransportError) -> None:
        """There is no reply; the connection is of no more use."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_exception(error)
        self.abort()

    def abort(self) -> None:
        """Let go of the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    # --- what comes -----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        plug = transport.get_extra_info("socket")
        self._poll = select.poll()
        self._poll.register(plug.fileno(), select.POLLIN)
        plug.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if hasattr(socket, "TCP_KEEPIDLE"):
            plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEP_ALIVE_SECONDS)

    def data_received(self, data: bytes) -> None:
        if self._waiting is None:
            return self.abort()  # nobody asked for this
        self._wire_size += len(data)
        before = len(self._body)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            return self.fail(
                TransportError("malformed", "the server changed the protocol", reached=True)
            )
        except httptools.HttpParserError:
            if not (self._whole and self._status in BODILESS):
                return self.fail(TransportError("malformed", "the reply is no HTTP", reached=True))
            self._kept = False  # what is wrong came after the reply
        if len(self._body) == before:  # headers, trailers, or framing without data
            self._head_size += len(data)
        if self._is_too_long:
            return self.fail(too_long())
        if self._whole:
            self._deliver()
        return None

    @property
    def _is_too_long(self) -> bool:
        return (
            len(self._body) > bounds.LONGEST_REPLY
            or self._head_size > bounds.LONGEST_HEAD
            or self._header_count > bounds.MOST_HEADERS
            or self._wire_size > bounds.LONGEST_WIRE
        )

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._timer is not None:
            self._timer.cancel()
        if self._waiting is None:
            return None
        ended = b"content-length" not in self._headers and b"transfer-encoding" not in self._headers
        if self._status and ended and exc is None:
            return self._deliver()  # such a reply ends where the server ends it
        told = "connection reset by the server" if exc else "the server closed the connection"
        self.fail(TransportError("connection", f"{told} before its reply was whole", reached=True))
        return None

    def on_header(self, name: bytes, value: bytes) -> None:
        self._header_count += 1
        if not self._status and self._header_count <= bounds.MOST_HEADERS:  # trailers are not kept
            self._headers.setdefault(name.lower(), value)

    def on_headers_complete(self) -> None:
        self._status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        if len(self._body) <= bounds.LONGEST_REPLY:
            self._body += body

    def on_message_complete(self) -> None:
        if self._status < 200:  # "100 Continue": the reply itself is still to come
            self._status, self._headers = 0, {}
        else:
            self._whole = True
            self._kept = self._parser.should_keep_alive()

    def _deliver(self) -> None:
        """Hand the whole reply over."""
        waiting, self._waiting = self._waiting, None
        if self._transport is not None and not self._kept:
            self._transport.close()
        if waiting is None or waiting.done():
            return
        body, headers = bytes(self._body), self._headers
        try:
            body = decoded(body, headers.get(b"content-encoding", b""))
        except TransportError as error:
            waiting.set_exception(error)
            return

        def header(name: str) -> str | None:
            value = headers.get(name.lower().encode())
            return value.decode() if value is not None and value.isascii() else None

        waiting.set_result(HttpReply(self._status, body, header))


def decoded(body: bytes, encoding: bytes) -> bytes:
    """A body as it was before the server packed it; TransportError where that cannot be known."""
    try:
        return bounds.unpack_body(body, encoding.decode("latin-1"))
    except bounds.TooLong:
        raise too_long() from None
    except bounds.Damaged as error:
        raise damaged(str(error)) from None
