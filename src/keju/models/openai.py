"""A model behind an OpenAI-compatible endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import Any

from keju.config.address import parse_address
from keju.models.base import Model
from keju.models.bodies import BodyBuilder, check_extra
from keju.models.faults import Redactor, refused
from keju.models.normalise import normalise
from keju.models.preflight import Preflight
from keju.models.transport import HttpReply, Transport, TransportError
from keju.types import Fault, Form, Reply, Request, Sampling

PREFLIGHT_SECONDS = 60.0
"""A server that loads its weights on the first call may need that long."""


class OpenAIModel(Model):
    """Chat completions and completions, one attempt a call.

    The key and the values of all further headers are secrets: they are in no message, repr or
    fact. The form of a request's sampling decides which route it takes.
    """

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
        self.name = name
        self.address = parse_address(api_url)
        self.bodies = BodyBuilder(name)
        self.preflight_timeout = preflight_timeout
        key = (api_key or "").strip()
        self.has_key = bool(key) or any(n.lower() == "authorization" for n in headers or {})
        sent = {"Content-Type": "application/json"}
        if key:
            sent["Authorization"] = f"Bearer {key}"
        sent |= headers or {}
        self.redact = Redactor([key, *(headers or {}).values(), *self.address.secrets])
        self.transport = Transport(sent, ca_file)
        self._routes: dict[Form, str] = {
            "chat": self.address.route("chat"),
            "completion": self.address.route("completion"),
        }
        self._facts: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"OpenAIModel({self.name!r}, api_url={self.address.shown!r})"

    async def start(self) -> None:
        """Open the connection pool."""
        self.transport.open()

    async def close(self) -> None:
        """Close all connections."""
        await self.transport.close()

    async def preflight(self, sampling: Sampling) -> None:
        """Find a wrong address, key, model or parameter before the run, in one line."""
        check_extra(sampling)
        self._facts |= await Preflight(self, sampling).run()
        routes = {*self._facts.get("routes", ()), sampling.form}
        self._facts["routes"] = sorted(routes)

    async def ask(self, request: Request, *, timeout: float) -> Reply:
        """Make one attempt."""
        started = perf_counter()
        try:
            reply = await self.send(request, timeout)
        except TransportError as error:
            fault = Fault(error.kind, self.redact(error.message), sent=error.reached)
            return Reply(seconds=perf_counter() - started, error=fault)
        seconds = perf_counter() - started
        if not 200 <= reply.status < 300:
            fault = refused(reply.status, reply.body, reply.header, self.redact)
            return Reply(seconds=seconds, error=fault)
        return normalise(reply.body, request, seconds, self.redact)

    async def send(self, request: Request, timeout: float) -> HttpReply:
        """Send one request as it is, for `ask` and the preflight."""
        route = self._routes[request.sampling.form]
        return await self.transport.post(route, self.bodies.build(request), timeout)

    def facts(self) -> dict[str, Any]:
        """The endpoint without credentials, and what the preflight learnt of it."""
        return {"name": self.name, "endpoint": self.address.shown} | self._facts
