"""A model behind an address, and the one behind an OpenAI-compatible endpoint."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Awaitable, Mapping
from time import perf_counter
from typing import Any

from keju.config import TaskConfig
from keju.config.address import PATHS, Address, parse_address
from keju.config.providers import OPENAI
from keju.errors import ConfigError
from keju.models.base import Model
from keju.models.faults import Redactor, refusal
from keju.models.openai.wire import BodyBuilder, check_extra, normalise
from keju.models.transport import HttpReply, Transport, TransportError
from keju.types import Fault, Reply, Request, Sampling

PREFLIGHT_SECONDS = 60.0
"""A server that loads its weights on the first call may need that long."""
KEY_HEADERS = ("authorization", "x-api-key")
"""Headers that carry the key of an endpoint."""
CREDENTIAL = re.compile("auth|key|token|secret|password|cookie", re.IGNORECASE)
"""What the names of headers have that carry a key: ``Authorization``, ``api-key``, ``Cookie``."""


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
