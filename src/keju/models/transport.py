"""HTTP with keep-alive connections: returns complete replies or a fault.

It never retries and never follows redirects. Only the channel decides on another attempt, and a
key never follows a ``Location`` header to another host.

Two clients share the work. Plain http uses `keju.models.plain_http` on the thread of the event
loop. A client with its own thread competes with the loop for the interpreter, which costs more than
the request itself. Everything else (https, and proxies from HTTP_PROXY, HTTPS_PROXY, ALL_PROXY,
NO_PROXY) uses reqwest.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Mapping
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from keju import bounds
from keju.errors import ConfigError
from keju.models import plain_http
from keju.models.plain_http import (
    NO_HANDSHAKE,
    HttpTarget,
    PlainPool,
    plain_target,
    timeout_error,
    too_long_reply,
)
from keju.models.plain_http import HttpReply as HttpReply
from keju.models.plain_http import TransportError as TransportError

if TYPE_CHECKING:
    from pyreqwest.client import Client
    from pyreqwest.exceptions import PyreqwestError
    from pyreqwest.request import RequestBuilder
    from pyreqwest.response import Response

IDLE_CONNECTIONS = 4096
"""More than the number of requests in flight of any run, so no connection is closed to be
reopened."""
SETTLE_SECONDS = 0.05
"""Seconds to wait after closing. The thread of reqwest may still be handing over its last result.
An interpreter that ends at that moment would be aborted (exit code 134 instead of the
command's)."""
SEPARATORS = ':"(),/;<=>?@[\\]{}'
"""Characters that are not allowed in the name of a header."""
PROXIES = ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")
"""Variables that may send plain http over a proxy."""
_CERTIFICATE = b"-----BEGIN CERTIFICATE-----"
_NOT_REACHED = "client error (Connect)"
"""Part of the causes of a failure before a connection was made."""
_SERVES_A_CA = "CaUsedAsEndEntity"
_OF_NO_KNOWN_CA = ("UnknownIssuer", "BadSignature")
"""Reasons why a certificate is not trusted, as in "invalid peer certificate: UnknownIssuer"."""


class Transport:
    """Keep-alive connections that send the same headers with every request."""

    def __init__(
        self,
        headers: Mapping[str, str] | None = None,
        ca_file: str | None = None,
        *,
        proxies: bool = True,
    ) -> None:
        """Without `proxies` the environment's proxies are ignored, for requests to this process."""
        self._proxies = proxies
        self._headers = dict(headers or {})
        self._ca: bytes | None = None
        self._ca_file = ca_file
        self._client: Client | None = None
        # Invalid headers are refused without showing the value, which is a secret.
        for name, value in self._headers.items():
            if not name.isascii() or not name or any(c <= " " or c in SEPARATORS for c in name):
                raise ConfigError("header_name", name=name)
            if any(ord(c) < 32 or ord(c) == 127 for c in value):
                raise ConfigError("header_value", name=name)
        if ca_file is not None:
            try:
                self._ca = bounds.read_file(Path(ca_file).expanduser())
            except OSError as error:
                raise ConfigError("ca_unreadable", file=ca_file, problem=error.strerror) from None
            if _CERTIFICATE not in self._ca:
                raise ConfigError("ca_no_certificate", file=ca_file)
        self._plain = PlainPool(self._headers)
        self._targets: dict[str, HttpTarget | None] = {}

    def open(self) -> None:
        """Raise ConfigError if the certificate file cannot be used."""
        if self._ca is not None:
            self._reqwest_client()

    def post(
        self, url: str, body: bytes, timeout: float, *, headers: Mapping[str, str] | None = None
    ) -> Awaitable[HttpReply]:
        """Send `body` with optional `headers`; return the reply or raise TransportError."""
        if (target := self._target(url)) is not None:
            return self._plain.send("POST", target, body, timeout, headers)
        request = self._reqwest_client().post(url).body_bytes(body)
        return self._send(request.headers(headers) if headers else request, timeout)

    def get(self, url: str, timeout: float) -> Awaitable[HttpReply]:
        """Return the reply to a GET, or raise TransportError."""
        if (target := self._target(url)) is not None:
            return self._plain.send("GET", target, b"", timeout)
        return self._send(self._reqwest_client().get(url), timeout)

    async def close(self) -> None:
        """Close all connections; requests in flight fail."""
        self._plain.close()
        client, self._client = self._client, None
        if client is not None:
            await client.close()
            await asyncio.sleep(SETTLE_SECONDS)

    def _target(self, url: str) -> HttpTarget | None:
        """Return the target of plain http; None if reqwest has to send the request."""
        if url not in self._targets:
            uses_proxy = self._proxies and any(os.environ.get(name) for name in PROXIES)
            self._targets[url] = None if uses_proxy else plain_target(url)
        return self._targets[url]

    def _reqwest_client(self) -> Client:
        """Return the client for https and proxies."""
        if self._client is not None:
            return self._client
        from pyreqwest.client import ClientBuilder
        from pyreqwest.exceptions import BuilderError

        builder = (
            ClientBuilder()
            .user_agent("keju")
            .default_headers(self._headers)
            .follow_redirects(False)
            .referer(False)
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .connect_timeout(timedelta(seconds=plain_http.CONNECT_SECONDS))
            .tcp_keepalive(timedelta(seconds=plain_http.KEEP_ALIVE_SECONDS))
        )
        if not self._proxies:
            builder = builder.no_proxy()
        try:
            if self._ca is not None:
                builder = builder.add_root_certificate_pem(self._ca)
            self._client = builder.build()
        except BuilderError as error:
            raise ConfigError(
                "ca_refused", file=self._ca_file, problem=_innermost_cause(error)
            ) from None
        return self._client

    async def _send(self, request: RequestBuilder, timeout: float) -> HttpReply:
        from pyreqwest.exceptions import PyreqwestError

        try:
            async with request.timeout(timedelta(seconds=timeout)).build_streamed() as response:
                content = await response.body_reader.read(bounds.LONGEST_REPLY + 1)
        except PyreqwestError as error:
            raise _transport_error(error, timeout, has_ca=self._ca is not None) from None
        body = content.to_bytes() if content is not None else b""
        if len(body) > bounds.LONGEST_REPLY:
            raise too_long_reply()
        return HttpReply(response.status, body, partial(_header, response))


def _header(response: Response, name: str) -> str | None:
    try:
        return response.get_header(name)
    except ValueError:  # bytes beyond ASCII
        return None


def _transport_error(error: PyreqwestError, timeout: float, *, has_ca: bool) -> TransportError:
    """Sort a failure by its causes, because the client reports each one as a connect error."""
    was_reached = _NOT_REACHED not in _cause_messages(error)
    if isinstance(error, TimeoutError) and was_reached:
        return timeout_error(timeout)
    if isinstance(error, TimeoutError):
        return TransportError("connection", NO_HANDSHAKE, reached=False)
    cause = _innermost_cause(error)
    is_distrusted = "certificate" in cause.lower()
    if is_distrusted and _SERVES_A_CA in cause:
        cause += (
            ": the server shows the certificate of an authority (CA:TRUE) as its own; make it "
            "again with basicConstraints=CA:FALSE and name it with ca_file"
        )
    elif is_distrusted and any(reason in cause for reason in _OF_NO_KNOWN_CA):
        cause += (
            ": the certificate in ca_file is not the one that signed the server's"
            if has_ca
            else ": a private certificate authority is named with ca_file"
        )
    return TransportError("connection", cause, reached=was_reached, distrusted=is_distrusted)


def _cause_messages(error: PyreqwestError) -> list[str]:
    """Return the client's messages about an error, from the outermost to the innermost."""
    details = getattr(error, "details", None) or {}
    return [cause["message"] for cause in details.get("causes") or []]


def _innermost_cause(error: PyreqwestError) -> str:
    """Return the innermost cause: "connection refused" of "Connection refused (os error 111)"."""
    causes = _cause_messages(error)
    message = causes[-1] if causes else str(error.message)
    message = message.partition(" (os error")[0].strip()
    return message[:1].lower() + message[1:]
