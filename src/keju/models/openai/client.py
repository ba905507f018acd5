"""A model behind an OpenAI-compatible endpoint, and HTTP as it needs it.

Everything that knows the HTTP client is here, so that another could stand in. There are no
retries and no redirects: the channel alone decides on another attempt, and a key never follows a
``Location`` header to another host. Proxies come from the environment (HTTP_PROXY, HTTPS_PROXY,
ALL_PROXY, NO_PROXY).
"""

from __future__ import annotations

import asyncio
import re
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

import msgspec
from pyreqwest.client import Client, ClientBuilder
from pyreqwest.exceptions import BuilderError, PyreqwestError
from pyreqwest.request import RequestBuilder
from pyreqwest.response import Response

from keju.config import TaskConfig
from keju.config.address import PATHS, Address, parse_address
from keju.config.providers import OPENAI
from keju.errors import ConfigError
from keju.models.base import Model
from keju.models.faults import Redactor, refusal
from keju.models.openai.wire import BodyBuilder, check_extra, normalise
from keju.types import Fault, Reply, Request, Sampling

LONGEST_REPLY = 16 << 20
"""Bytes of a reply's body, after decompression: more than any answer has, so what is longer is
damage. Reading stops there, since 64 endless replies at once must fit into memory."""
CONNECT_SECONDS = 30.0
"""An address that does not even answer the handshake by then is down."""
KEEP_ALIVE_SECONDS = 60.0
"""After so long without a byte a sign of life is sent: networks cut what is silent for minutes."""
IDLE_CONNECTIONS = 4096
"""More than any run has in flight: no connection is closed to be opened again."""
PREFLIGHT_SECONDS = 60.0
"""A server that loads its weights on the first call may need that long."""
SETTLE_SECONDS = 0.05
"""The client's own thread may still be handing over its last result: an interpreter that ends
in that moment would be aborted (exit code 134 instead of the command's)."""
SEPARATORS = ':"(),/;<=>?@[\\]{}'
"""Characters that cannot stand in the name of a header."""
KEY_HEADERS = ("authorization", "x-api-key")
"""Headers that carry the key of an endpoint."""
CREDENTIAL = re.compile("auth|key|token|secret|password|cookie", re.IGNORECASE)
"""What the names of headers have that carry a key: ``Authorization``, ``api-key``, ``Cookie``."""
_CERTIFICATE = b"-----BEGIN CERTIFICATE-----"
_NOT_REACHED = "client error (Connect)"
"""Stands among the causes of a failure before a connection was made."""
_SERVES_A_CA = "CaUsedAsEndEntity"
_OF_NO_KNOWN_CA = ("UnknownIssuer", "BadSignature")
"""Reasons why a certificate is not trusted, as in "invalid peer certificate: UnknownIssuer"."""


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


class Transport:
    """A pool of keep-alive connections that sends the same headers with every request."""

    def __init__(
        self,
        headers: Mapping[str, str] | None = None,
        ca_file: str | None = None,
        *,
        proxies: bool = True,
    ) -> None:
        """Without `proxies` those of the environment are passed by: for this very process."""
        self._proxies = proxies
        self._headers = dict(headers or {})
        self._ca: bytes | None = None
        self._ca_file = ca_file
        self._client: Client | None = None
        # What cannot stand in a header is refused without showing the value, which is a secret.
        for name, value in self._headers.items():
            if not name.isascii() or not name or any(c <= " " or c in SEPARATORS for c in name):
                raise ConfigError("header_name", name=name)
            if any(ord(c) < 32 or ord(c) == 127 for c in value):
                raise ConfigError("header_value", name=name)
        if ca_file is not None:
            try:
                self._ca = Path(ca_file).expanduser().read_bytes()
            except OSError as error:
                raise ConfigError("ca_unreadable", file=ca_file, problem=error.strerror) from None
            if _CERTIFICATE not in self._ca:
                raise ConfigError("ca_no_certificate", file=ca_file)

    def open(self) -> Client:
        """Make the pool ready; ConfigError if the certificate file cannot be used."""
        if self._client is not None:
            return self._client
        builder = (
            ClientBuilder()
            .user_agent("keju")
            .default_headers(self._headers)
            .follow_redirects(False)
            .referer(False)
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .connect_timeout(timedelta(seconds=CONNECT_SECONDS))
            .tcp_keepalive(timedelta(seconds=KEEP_ALIVE_SECONDS))
        )
        if not self._proxies:
            builder = builder.no_proxy()
        try:
            if self._ca is not None:
                builder = builder.add_root_certificate_pem(self._ca)
            self._client = builder.build()
        except BuilderError as error:
            raise ConfigError("ca_refused", file=self._ca_file, problem=_cause(error)) from None
        return self._client

    async def post(
        self, url: str, body: bytes, timeout: float, *, headers: Mapping[str, str] | None = None
    ) -> HttpReply:
        """Send `body`, with further `headers` if any; return the reply or raise TransportError."""
        request = self.open().post(url).body_bytes(body)
        return await self._send(request.headers(headers) if headers else request, timeout)

    async def get(self, url: str, timeout: float) -> HttpReply:
        """Return the reply to a GET, or raise TransportError."""
        return await self._send(self.open().get(url), timeout)

    async def close(self) -> None:
        """Close all connections; what is in flight fails."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()
            await asyncio.sleep(SETTLE_SECONDS)

    async def _send(self, request: RequestBuilder, timeout: float) -> HttpReply:
        try:
            async with request.timeout(timedelta(seconds=timeout)).build_streamed() as response:
                read = await response.body_reader.read(LONGEST_REPLY + 1)
        except PyreqwestError as error:
            raise _failure(error, timeout, has_ca=self._ca is not None) from None
        body = read.to_bytes() if read is not None else b""
        if len(body) > LONGEST_REPLY:
            problem = f"the reply is longer than {LONGEST_REPLY >> 20} MiB"
            raise TransportError("malformed", problem, reached=True)
        return HttpReply(response.status, body, partial(_header, response))


def _header(response: Response, name: str) -> str | None:
    try:
        return response.get_header(name)
    except ValueError:  # bytes beyond ASCII
        return None


def _failure(error: PyreqwestError, timeout: float, *, has_ca: bool) -> TransportError:
    """Sort a failure by its causes: the client calls every one of them a connect error."""
    reached = _NOT_REACHED not in _causes(error)
    if isinstance(error, TimeoutError) and reached:
        return TransportError("timeout", f"no reply within {timeout:g} s", reached=True)
    if isinstance(error, TimeoutError):
        return TransportError("connection", "no answer to the handshake", reached=False)
    cause = _cause(error)
    distrusted = "certificate" in cause.lower()
    if distrusted and _SERVES_A_CA in cause:
        cause += (
            ": the server shows the certificate of an authority (CA:TRUE) as its own; make it "
            "again with basicConstraints=CA:FALSE and name it with ca_file"
        )
    elif distrusted and any(reason in cause for reason in _OF_NO_KNOWN_CA):
        cause += (
            ": the certificate in ca_file is not the one that signed the server's"
            if has_ca
            else ": a private certificate authority is named with ca_file"
        )
    return TransportError("connection", cause, reached=reached, distrusted=distrusted)


def _causes(error: PyreqwestError) -> list[str]:
    """What the client says of an error, from the outside inwards."""
    details = getattr(error, "details", None) or {}
    return [cause["message"] for cause in details.get("causes") or []]


def _cause(error: PyreqwestError) -> str:
    """The innermost cause: "connection refused" of "Connection refused (os error 111)"."""
    causes = _causes(error)
    message = causes[-1] if causes else str(error.message)
    message = message.partition(" (os error")[0].strip()
    return message[:1].lower() + message[1:]


class HttpModel(Model):
    """A model behind an address.

    The key and the values of all further headers are secrets: they are in no message, repr or
    fact.
    """

    provider = OPENAI

    def __init__(
        self,
        name: str,
        address: Address,
        own_headers: Mapping[str, str],
        headers: Mapping[str, str] | None = None,
        ca_file: str | None = None,
        preflight_timeout: float = PREFLIGHT_SECONDS,
    ) -> None:
        """`own_headers` are the API's, the key among them; `headers` are the user's."""
        self.name = name
        self.address = address
        self.preflight_timeout = preflight_timeout
        sent = {"Content-Type": "application/json"} | dict(own_headers) | dict(headers or {})
        keys = [v for n, v in sent.items() if CREDENTIAL.search(n)] + [*self.address.secrets]
        self.has_key = any(n.lower() in KEY_HEADERS for n in sent)
        self.redact = Redactor([*keys, *(headers or {}).values()], keys)
        self.transport = Transport(sent, ca_file)
        self._facts: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, api_url={self.address.shown!r})"

    async def start(self) -> None:
        """Open the connection pool."""
        self.transport.open()

    async def close(self) -> None:
        """Close all connections."""
        await self.transport.close()

    async def attempt(self, sending: Awaitable[HttpReply], request: Request) -> Reply:
        """One attempt; where no whole reply came, that is its fault."""
        started = perf_counter()
        try:
            reply = await sending
        except TransportError as error:
            fault = Fault(error.kind, self.redact(error.message), sent=error.reached)
            return Reply(seconds=perf_counter() - started, error=fault)
        return self.read(reply, request, perf_counter() - started)

    def read(self, reply: HttpReply, request: Request, seconds: float = 0.0) -> Reply:
        """What an endpoint said; whatever cannot be made out of it is a fault of this attempt."""
        try:
            if not 200 <= reply.status < 300:
                return Reply(seconds=seconds, error=self.refusal(reply))
            return self.redact.reply(self.normalise(reply, request, seconds))
        except Exception as error:  # nothing that an endpoint may send ends a run
            problem = f"the reply cannot be read ({type(error).__name__})"
            return Reply(seconds=seconds, error=Fault("malformed", problem, reply.status))

    def refusal(self, reply: HttpReply) -> Fault:
        """The fault behind a reply whose status is not a success."""
        return refusal(reply.status, reply.body, reply.header, self.redact)

    @abstractmethod
    def normalise(self, reply: HttpReply, request: Request, seconds: float) -> Reply:
        """The reply in the body of a successful call."""

    def facts(self) -> dict[str, Any]:
        """The endpoint without credentials, and what the preflight learnt of it."""
        return {"name": self.name, "endpoint": self.address.shown} | self._facts


class OpenAIModel(HttpModel):
    """Chat completions and completions, one attempt a call.

    The form of a request's sampling decides which route it takes.
    """

    acts = True

    def __init__(
        self,
        name: str,
        *,
        api_url: str,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        ca_file: str | None = None,
        preflight_timeout: float = PREFLIGHT_SECONDS,
    ) -> None:
        key = (api_key or "").strip()
        credentials = {"Authorization": f"Bearer {key}"} if key else {}
        address = parse_address(api_url)
        super().__init__(name, address, credentials, headers, ca_file, preflight_timeout)
        self.bodies = BodyBuilder(name)
        self.spaces = False
        """Whether the server is known to write the space before a token; seen in the preflight."""
        self._routes = {form: self.address.route(form) for form in PATHS}

    async def preflight(self, sampling: Sampling) -> None:
        """Find a wrong address, key, model or parameter before the run, in one line."""
        from keju.models.openai.preflight import preflight

        check_extra(sampling)
        routes = {*self._facts.get("routes", ()), sampling.form}
        self._facts |= await preflight(self, sampling) | {"routes": sorted(routes)}

    async def ask(self, request: Request, *, timeout: float) -> Reply:
        """Make one attempt; where no label was among the likeliest tokens, look further down."""
        reply = await self._attempt(request, timeout)
        for top in self.bodies.further_looks if request.sampling.form == "completion" else ():
            if reply.error is not None or reply.label_logprobs != {}:
                break
            further = await self._attempt(request, timeout, top)
            if further.error is not None and further.error.kind == "bad_request":
                self.bodies.further_looks = ()
                break
            reply = further
        return reply

    async def _attempt(self, request: Request, timeout: float, top: int = 0) -> Reply:
        return await self.attempt(self.send(request, timeout, top), request)

    def normalise(self, reply: HttpReply, request: Request, seconds: float) -> Reply:
        """The reply in the body of a successful call."""
        return normalise(reply.body, request, seconds, self.redact, spaces=self.spaces)

    async def send(self, request: Request, timeout: float, top: int = 0) -> HttpReply:
        """Send one request as it is, for `ask` and the preflight."""
        route = self._routes[request.sampling.form]
        return await self.transport.post(route, self.bodies.build(request, top), timeout)


def make(config: TaskConfig) -> OpenAIModel:
    """The model at the endpoint that `config` names."""
    if not config.api_url:
        raise ConfigError("no_endpoint", model=config.model.strip())
    return OpenAIModel(
        config.model.strip(),
        api_url=config.api_url,
        api_key=config.api_key.get_secret_value() if config.api_key is not None else None,
        headers=config.headers | config.generation_config.extra_headers,
        ca_file=config.ca_file,
        preflight_timeout=min(config.timeout, PREFLIGHT_SECONDS),
    )
