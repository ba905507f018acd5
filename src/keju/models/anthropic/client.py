"""A model behind Anthropic's Messages API: one attempt a call."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import msgspec

from keju.config import TaskConfig
from keju.config.address import ANTHROPIC, MESSAGES, SHORT_NAMES, messages_address
from keju.config.address import AS_OF as NAMES_AS_OF
from keju.errors import ConfigError, EndpointError, Notice, nearest
from keju.messages import first_of
from keju.models.anthropic.sampling import (
    AS_OF,
    NO_SAMPLING_SINCE,
    UNSTREAMED_TOKENS,
    Settings,
    settings_of,
)
from keju.models.anthropic.wire import PAUSED, Body, Unsendable, body_of, joined, normalise, say
from keju.models.base import BRIEF, NotReady, fault_text
from keju.models.openai.client import (
    LISTED_MODELS,
    PREFLIGHT_SECONDS,
    TRANSIENT,
    HttpModel,
    endpoint_error,
)
from keju.models.openai.wire import document_of
from keju.models.transport import HttpReply, TransportError
from keju.types import Fault, FaultKind, Prefix, Prompt, Reply, Request, Sampling

MOST_PAUSES: Final = 8
"""How often a reply that paused is sent back before it is given up."""
KEPT_PREFIXES: Final = 256
LONGEST_PREFILL: Final = 2.0
"""Seconds after which the service has surely computed a shared part."""
WORTH_A_WAIT: Final = 2000
"""Characters of a shared part from which on the service may keep it: 512 tokens and more."""
INFO: Final = ("display_name", "lifecycle", "deprecated_at", "retires_at", "max_input_tokens",
               "max_tokens")  # fmt: skip
"""What is kept of what the service says about a model."""
BY_CODE: Final[dict[str, FaultKind]] = {
    "enforced_spend_limit_reached": "auth",
    "ramp_limit_exceeded": "rate_limit",
    "overloaded_error": "rate_limit",
}
"""Codes and types of errors that say more than the status does."""
# "Your credit balance is too low", "You have reached your specified API usage limits": under 400,
# as if the request were to blame.
SPENT: Final = re.compile(r"credit balance|(usage|spend(ing)?) limits?\b", re.IGNORECASE)
PASSING: Final[tuple[FaultKind, ...]] = ("server", "timeout", "rate_limit")
REQUEST_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,128}")
PROMPT: Final = Prompt(Prefix(), "Answer with one letter, A or B.")


class AnthropicModel(HttpModel):
    """``POST /v1/messages``, without streaming.

    Where the service has reported cached tokens, the first request of each shared part goes ahead:
    what the service keeps of a prompt can be read once it has computed that part.
    """

    provider = ANTHROPIC
    api = "endpoint_of_anthropic"
    acts = True

    def __init__(
        self,
        settings: Settings,
        *,
        api_url: str | None = None,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        ca_file: str | None = None,
        preflight_timeout: float = PREFLIGHT_SECONDS,
    ) -> None:
        key = (api_key or "").strip()
        old = settings.version < NO_SAMPLING_SINCE
        credentials = {"x-api-key": key} if old else {"Authorization": f"Bearer {key}"}
        super().__init__(
            settings.id,
            messages_address(api_url or ANTHROPIC.home),
            {"anthropic-version": settings.version} | (credentials if key else {}),
            headers,
            ca_file,
            preflight_timeout,
        )
        self.settings = settings
        self._has_key = bool(key)
        self.fixed_history = settings.gate is None or settings.gate.bound
        self._info: dict[str, Any] | None = None
        self._kept: dict[tuple[int, bool], tuple[Prefix, asyncio.Event]] = {}
        self._reports_cache = False
        self._prefill = LONGEST_PREFILL
        """Seconds in which the service has computed a shared part, as far as is known."""

    def briefly(self, sampling: Sampling) -> Sampling:
        """`sampling` for a short reply, which has room for the thinking that is asked for."""
        budget = (sampling.extra.get("thinking") or {}).get("budget_tokens", 0)
        return msgspec.structs.replace(sampling, max_tokens=budget + BRIEF)

    def patience(self, sampling: Sampling, usual: float) -> float:
        """Seconds for one attempt: more than usual for a reply that may be longer than usual."""
        return usual * max(1.0, (sampling.max_tokens or 0) / UNSTREAMED_TOKENS)

    async def ask(self, request: Request, *, timeout: float) -> Reply:
        """Make one attempt; a reply that pauses is sent back until it ends."""
        try:
            body = body_of(self.name, request)
        except Unsendable as error:
            return Reply(error=Fault("bad_request", str(error), sent=False))
        async with self._in_turn(request) as is_first:
            reply = await self._attempt(body, request, timeout)
        if is_first and reply.error is None:
            self._prefill = min(self._prefill, reply.seconds)
        return reply

    async def _attempt(self, body: Body, request: Request, timeout: float) -> Reply:
        whole = reply = await self.attempt(self.post(body, timeout), request)
        for _ in range(MOST_PAUSES):
            if reply.finish != PAUSED or not reply.native:
                return whole
            say(body.turns, "assistant", *msgspec.json.decode(reply.native, type=list[msgspec.Raw]))
            reply = await self.attempt(self.post(body, timeout), request)
            whole = joined(whole, reply)
        problem = f"the reply paused {MOST_PAUSES} times and did not end"
        return Reply(usage=whole.usage, seconds=whole.seconds, error=Fault("server", problem))

    async def post(self, body: Body, timeout: float) -> HttpReply:
        """Send one request as it is."""
        return await self.transport.post(self.address.messages, body.encoded(), timeout)

    @asynccontextmanager
    async def _in_turn(self, request: Request) -> AsyncIterator[bool]:
        """Let the first request with a long shared part be computed before the others begin.

        They wait at most for the shortest reply to such a first request. Yields whether it is one.
        """
        prefix = request.prompt.prefix
        size = len(prefix.lead) + sum(len(message.content) for message in prefix.messages)
        if size < WORTH_A_WAIT:
            yield False
            return
        key = (id(prefix), bool(request.tools))  # tools stand before all else
        entry = self._kept.get(key)
        if entry is not None:
            if self._reports_cache:
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._prefill):
                        await entry[1].wait()
            yield False
            return
        if len(self._kept) >= KEPT_PREFIXES:
            del self._kept[next(iter(self._kept))]
        # The prefix is kept beside its event, so that no other object gets its id.
        ended = asyncio.Event()
        self._kept[key] = (prefix, ended)
        try:
            yield True
        finally:
            ended.set()

    def normalise(self, reply: HttpReply, request: Request, seconds: float) -> Reply:
        """The reply in the body of a successful call."""
        read = normalise(reply.body, request, seconds, self.redact, self._number(reply))
        self._reports_cache |= read.usage.cached + read.usage.written > 0
        return read

    def _number(self, reply: HttpReply) -> str:
        """What the service calls the request: ``req_011C…``; nothing where it is no such word."""
        number = self.redact(reply.header("request-id") or "")
        return number if REQUEST_ID.fullmatch(number) else ""

    def refusal(self, reply: HttpReply) -> Fault:
        """The fault behind a reply whose status is not a success."""
        fault = super().refusal(reply)
        kind = next((BY_CODE[code] for code in _codes(reply.body) if code in BY_CODE), fault.kind)
        if kind == "bad_request" and SPENT.search(fault.message):
            kind = "auth"
        should = (reply.header("x-should-retry") or "").lower()
        if should == "false" and kind in PASSING:
            kind = "bad_request"
        elif should == "true" and kind == "bad_request":
            kind = "server"
        return msgspec.structs.replace(fault, kind=kind, request_id=self._number(reply))

    def path(self, sampling: Sampling) -> str:
        """The one route."""
        return MESSAGES

    async def preflight(self, sampling: Sampling) -> None:
        """Find a wrong address, key, model or parameter before the run, in one line."""
        if self._info is None:
            self._info = await self._model_info()
        info = self._info
        most = info.get("max_tokens")
        if isinstance(most, int) and (sampling.max_tokens or 0) > most:
            values = {"model": self.name, "tokens": sampling.max_tokens, "most": most}
            raise EndpointError("anthropic_too_long", **values)
        request = Request(PROMPT, self.briefly(sampling), hash="")
        try:
            reply = await self.post(body_of(self.name, request), self.preflight_timeout)
        except TransportError as error:
            raise self._unreached(error) from None
        read = self.read(reply, request)
        if read.error is not None:
            raise await self._explained(read.error)
        self._facts |= {
            "api_version": self.settings.version,
            "reported_model": read.model,
            "table": AS_OF,
            "short_names": NAMES_AS_OF,
            "known": self.settings.gate is not None,
            "reasoning": "summary",
        } | ({"model_info": info} if info else {})
        if self._has_key:
            self._facts["has_key"] = True
        if self.settings.gate is not None:
            effort = (sampling.extra.get("output_config") or {}).get("effort")
            self._facts["effort"] = effort or self.settings.gate.default_effort

    async def _model_info(self) -> dict[str, Any]:
        """What the service says of the model, where it does; a gateway may not."""
        try:
            url = self.address.model(self.name)
            reply = await self.transport.get(url, self.preflight_timeout)
            document = document_of(reply.body) if reply.status == 200 else None
        except (TransportError, ValueError):
            document = None
        told = document if isinstance(document, dict) else {}
        return {name: told[name] for name in INFO if isinstance(told.get(name), str | int)}

    def _unreached(self, error: TransportError) -> EndpointError:
        message = self.redact(error.message)
        if error.reached:
            return NotReady(self.address.display_url, Fault(error.kind, message))
        code = "endpoint_distrusted" if error.distrusted else "endpoint_unreachable"
        return endpoint_error(code, self, message)

    async def _explained(self, fault: Fault) -> EndpointError:
        """Say what to change; NotReady for a failure that may pass."""
        if fault.kind in TRANSIENT:
            return NotReady(self.address.display_url, fault)
        if fault.kind == "auth" and fault.status in (401, 403):
            code = "endpoint_refused_key" if self.has_key else "endpoint_wants_key"
            return endpoint_error(code, self, fault.message, status=fault.status)
        if fault.kind == "not_found" and fault.status < 400:
            return endpoint_error("endpoint_elsewhere", self, fault.message)
        if fault.kind != "not_found":
            return endpoint_error("endpoint_refused_request", self, fault_text(fault))
        offered = await self._offered()
        if self.name in offered or not offered:
            code = "endpoint_without_model_or_route"
            return endpoint_error(code, self, fault_text(fault), model=self.name)
        near = nearest(self.name, offered)
        return endpoint_error(
            "endpoint_without_model",
            self,
            "",
            model=self.name,
            hint=Notice("did_you_mean", {"name": near}) if near else "",
            names=first_of(offered, LISTED_MODELS),
            more=Notice("in_all", {"n": len(offered)}) if len(offered) > LISTED_MODELS + 1 else "",
        )

    async def _offered(self) -> list[str]:
        """The models that the service lists; none where it does not tell."""
        try:
            reply = await self.transport.get(self.address.models, self.preflight_timeout)
            listed = document_of(reply.body)["data"]
            return [entry["id"] for entry in listed if isinstance(entry["id"], str)]
        except (TransportError, ValueError, LookupError, TypeError):
            return []


def _codes(body: bytes) -> list[str]:
    """The code and the type of an error: ``ramp_limit_exceeded``, ``rate_limit_error``."""
    try:
        error = msgspec.json.decode(body)["error"]
        details = error.get("details") or {}
        return [str(details.get("error_code")), str(error.get("type"))]
    except (msgspec.DecodeError, LookupError, TypeError, AttributeError, UnicodeDecodeError):
        return []


def make(config: TaskConfig) -> AnthropicModel:
    """The model that `config` names; ConfigError where the provider's own host would lack a key."""
    model = AnthropicModel(
        settings_of(config),
        api_url=config.api_url,
        api_key=config.api_key.get_secret_value() if config.api_key is not None else None,
        headers=config.headers | config.generation_config.extra_headers,
        ca_file=config.ca_file,
        preflight_timeout=min(config.timeout, PREFLIGHT_SECONDS),
    )
    # Whoever serves the API elsewhere may want no key.
    if not model.has_key and model.address.base.startswith(ANTHROPIC.home):
        short = {full: name for name, full in SHORT_NAMES.items()}.get(config.model.strip())
        names = {"model": config.model, "variable": ANTHROPIC.key_variable}
        if short is None:
            raise ConfigError("anthropic_no_key", **names)
        raise ConfigError("anthropic_no_key_short", short=short, **names)
    return model
