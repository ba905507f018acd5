"""HTTP/1.1 on the thread of the event loop: keep-alive connections with one request at a time on
each.

httptools (the parser of Node.js and uvicorn) parses replies. A reply that it refuses is damaged. A
reply only counts if it is complete: it has its announced length, ends with its last chunk, or (if
it announces neither) ends when the server closes the connection.
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
"""Statuses of replies that end with their head. Some servers send a body anyway."""
CONNECT_SECONDS = 30.0
"""Seconds after which an address that does not answer the handshake counts as down."""
KEEP_ALIVE_SECONDS = 60
"""Seconds without a byte after which a keep-alive probe is sent, because networks cut connections
that are silent for minutes."""
NO_HANDSHAKE = "no answer to the handshake"


class HttpReply(msgspec.Struct, frozen=True):
    """A complete reply with any status."""

    status: int
    body: bytes
    header: Callable[[str], str | None]
    """Return the value of a header; the name may be in any case."""


class TransportError(Exception):
    """The reply is missing or incomplete. The message is one line without addresses and headers."""

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
        """Whether a server answered with an untrusted certificate."""


def timeout_error(seconds: float) -> TransportError:
    """Return the error for a request without a reply in time."""
    return TransportError("timeout", f"no reply within {seconds:g} s", reached=True)


def damaged_reply(problem: str) -> TransportError:
    """Return the error for a reply that cannot be used."""
    return TransportError("malformed", problem, reached=True)


def too_long_reply() -> TransportError:
    """Return the error for a reply that is too long."""
    return damaged_reply(f"the reply is longer than {bounds.LONGEST_REPLY // bounds.MIB} MiB")


class HttpTarget(NamedTuple):
    """The address of a request, and its first lines."""

    host: str
    port: int
    head: bytes
    """Everything after the method: the path, the host, the credentials of the address."""
    authorized: bool
    """Whether the address has credentials, which take precedence over credentials in headers."""


def plain_target(url: str) -> HttpTarget | None:
    """Return the target of an address that this module can serve; None for any other."""
    parts = urlsplit(url)
    if parts.scheme != "http" or not url.isascii() or not parts.hostname or set(url) & set(" \t"):
        return None
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    host = parts.netloc.rpartition("@")[2]
    lines = f"{path} HTTP/1.1\r\nhost: {host}\r\n"
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        lines += f"authorization: Basic {base64.b64encode(pair.encode()).decode()}\r\n"
    has_credentials = parts.username is not None
    return HttpTarget(parts.hostname, parts.port or 80, lines.encode(), has_credentials)


class PlainPool:
    """The connections of one client; they belong to the loop on which they were made."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        default_headers = {name.lower(): value for name, value in headers.items()}
        default_headers = {
            "user-agent": "keju",
            "accept": "*/*",
            "accept-encoding": ENCODINGS,
        } | default_headers
        self._lines = _header_lines(default_headers)
        self._lines_without_key = _header_lines(
            {n: v for n, v in default_headers.items() if n != "authorization"}
        )
        self._heads: dict[HttpTarget, bytes] = {}
        self._idle: dict[tuple[str, int], list[_Connection]] = {}
        self._busy: set[_Connection] = set()
        self._outbox: _Outbox = []
        self._loop: asyncio.AbstractEventLoop | None = None

    async def send(
        self,
        method: Literal["GET", "POST"],
        target: HttpTarget,
        body: bytes,
        timeout: float,
        headers: Mapping[str, str] | None = None,
    ) -> HttpReply:
        """Send one request; return its complete reply or raise TransportError."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop, self._idle, self._busy, self._outbox = loop, {}, set(), []
        started = loop.time()
        connection = self._take_idle(target) or await self._connect(loop, target, timeout)
        self._busy.add(connection)
        head = self._heads.get(target)
        if head is None:
            lines = self._lines_without_key if target.authorized else self._lines
            head = self._heads[target] = target.head + lines
        if headers:
            head += _header_lines({name.lower(): value for name, value in headers.items()})
        message = b"%s %scontent-length: %d\r\n\r\n%s" % (method.encode(), head, len(body), body)
        try:
            return await connection.ask(message, started + timeout, timeout)
        except asyncio.CancelledError:
            connection.abort()
            raise
        finally:
            self._busy.discard(connection)
            if connection.usable:
                self._idle.setdefault(target[:2], []).append(connection)

    def _take_idle(self, target: HttpTarget) -> _Connection | None:
        """Return the open and free connection that was used last; None if there is none."""
        idle = self._idle.get(target[:2])
        while idle:
            connection = idle.pop()
            if connection.usable and not connection.is_ended_by_server():
                return connection
            connection.abort()
        return None

    async def _connect(
        self, loop: asyncio.AbstractEventLoop, target: HttpTarget, timeout: float
    ) -> _Connection:
        try:
            async with asyncio.timeout(min(CONNECT_SECONDS, timeout)):
                connection = _Connection(self._outbox)
                await loop.create_connection(lambda: connection, target.host, target.port)
        except TimeoutError:
            raise TransportError("connection", NO_HANDSHAKE, reached=False) from None
        except OSError as error:
            raise TransportError("connection", _describe_cause(error), reached=False) from None
        return connection

    def close(self) -> None:
        """Close all connections; requests in flight fail."""
        for idle in self._idle.values():
            for connection in idle:
                connection.abort()
        for connection in tuple(self._busy):
            connection.fail(TransportError("connection", "the client was closed", reached=True))
        self._idle = {}


def _header_lines(headers: Mapping[str, str]) -> bytes:
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode()


# All of several addresses failed: `Multiple exceptions: [Errno 111] Connect call failed …`.
_NUMBER = re.compile(r"\[Errno (\d+)\]")


def _describe_cause(error: OSError) -> str:
    """Return why no connection was made, without the address: "connection refused"."""
    if isinstance(error, socket.gaierror):
        return f"the host is not known ({error.strerror})"
    match = _NUMBER.search(str(error))
    number = error.errno or (int(match[1]) if match else 0)
    text = os.strerror(number) if number else "no connection could be made"
    return text[:1].lower() + text[1:]


_Outbox = list[tuple[asyncio.Transport, bytes]]
"""Requests that are about to be sent."""


def _send_all(outbox: _Outbox) -> None:
    requests = outbox.copy()
    outbox.clear()
    for transport, request in requests:
        # A closed transport has reported this to its request; the others must still be sent.
        if not transport.is_closing():
            transport.write(request)  # in one piece: each write is a system call


class _Connection(asyncio.Protocol):
    """One connection. httptools calls the ``on_…`` methods while it parses the data."""

    def __init__(self, outbox: _Outbox) -> None:
        self._outbox = outbox
        self._transport: asyncio.Transport | None = None
        self._waiting: asyncio.Future[HttpReply] | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    # --- asking ---------------------------------------------------------------------------------

    def ask(self, request: bytes, due: float, patience: float) -> asyncio.Future[HttpReply]:
        """Send a request; return the future of its reply.

        The future fails without a reply when the loop's clock shows `due`, after `patience`
        seconds.
        """
        assert self._transport is not None
        assert self._waiting is None
        self._waiting = waiting = self._loop.create_future()
        self._due, self._patience = due, patience
        # One timer serves many requests: if it fires too early, it is set again.
        if self._timer is None or self._timer.when() > due:
            self._set_timer()
        self._status = self._head_size = self._wire_size = self._header_count = 0
        self._headers: dict[bytes, bytes] = {}
        self._body = bytearray()
        self._is_complete = False
        # Requests of the same moment are sent together. Waking a server that sleeps between two
        # requests costs more than the request itself.
        if not self._outbox:
            self._loop.call_soon(_send_all, self._outbox)
        self._outbox.append((self._transport, request))
        return waiting

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(self._due, self._on_timer)

    def _on_timer(self) -> None:
        """Handle the timer of this request, or of an earlier one on this connection."""
        self._timer = None
        if self._waiting is None:
            return
        if self._loop.time() < self._due:
            self._set_timer()
        else:
            self.fail(timeout_error(self._patience))

    @property
    def usable(self) -> bool:
        """Whether another request may be sent."""
        open_ = self._transport is not None and not self._transport.is_closing()
        return open_ and self._waiting is None

    def is_ended_by_server(self) -> bool:
        """Whether the server has closed an idle connection.

        The loop may not have noticed it yet. A request that is sent then is lost, as if the server
        had broken off its reply.
        """
        return bool(self._poll.poll(0))

    def fail(self, error: TransportError) -> None:
        """Fail the request and drop the connection."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_exception(error)
        self.abort()

    def abort(self) -> None:
        """Drop the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    # --- what comes -----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        sock = transport.get_extra_info("socket")
        self._poll = select.poll()
        self._poll.register(sock.fileno(), select.POLLIN)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if hasattr(socket, "TCP_KEEPIDLE"):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEP_ALIVE_SECONDS)

    def data_received(self, data: bytes) -> None:
        if self._waiting is None:
            return self.abort()  # no request is pending
        self._wire_size += len(data)
        size_before = len(self._body)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            return self.fail(
                TransportError("malformed", "the server changed the protocol", reached=True)
            )
        except httptools.HttpParserError:
            if not (self._is_complete and self._status in BODILESS):
                return self.fail(TransportError("malformed", "the reply is no HTTP", reached=True))
            self._is_kept_alive = False  # the damage came after the reply
        if len(self._body) == size_before:  # headers, trailers, or framing without data
            self._head_size += len(data)
        if self._is_too_long:
            return self.fail(too_long_reply())
        if self._is_complete:
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
        ends_with_connection = (
            b"content-length" not in self._headers and b"transfer-encoding" not in self._headers
        )
        if self._status and ends_with_connection and exc is None:
            return self._deliver()  # such a reply ends when the server closes the connection
        problem = "connection reset by the server" if exc else "the server closed the connection"
        self.fail(
            TransportError("connection", f"{problem} before its reply was whole", reached=True)
        )
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
            self._is_complete = True
            self._is_kept_alive = self._parser.should_keep_alive()

    def _deliver(self) -> None:
        """Hand over the complete reply."""
        waiting, self._waiting = self._waiting, None
        if self._transport is not None and not self._is_kept_alive:
            self._transport.close()
        if waiting is None or waiting.done():
            return
        body, headers = bytes(self._body), self._headers
        try:
            body = decode_body(body, headers.get(b"content-encoding", b""))
        except TransportError as error:
            waiting.set_exception(error)
            return

        def header(name: str) -> str | None:
            value = headers.get(name.lower().encode())
            return value.decode() if value is not None and value.isascii() else None

        waiting.set_result(HttpReply(self._status, body, header))


def decode_body(body: bytes, encoding: bytes) -> bytes:
    """Return the unpacked body; raise TransportError if it cannot be unpacked."""
    try:
        return bounds.unpack_body(body, encoding.decode("latin-1"))
    except bounds.UnpackedTooLong:
        raise too_long_reply() from None
    except bounds.UnpackError as error:
        raise damaged_reply(str(error)) from None
