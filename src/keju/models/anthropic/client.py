"""A model behind Anthropic's Messages API, with one attempt per call."""

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
from keju.errors import ConfigError, EndpointError
from keju.models.anthropic.sampling import (
    AS_OF,
    NO_SAMPLING_SINCE,
    UNSTREAMED_TOKENS,
    AnthropicSettings,
    settings_of,
)
from keju.models.anthropic.wire import (
    PAUSED,
    RequestBody,
    Unsendable,
    add_blocks,
    body_of,
    join_replies,
    normalise,
)
from keju.models.base import BRIEF, NotReady, fault_text
from keju.models.openai.client import (
    PREFLIGHT_SECONDS,
    TRANSIENT,
    HttpModel,
    endpoint_error,
)
from keju.models.openai.wire import document_of
from keju.models.transport import HttpReply, TransportError
from keju.types import Fault, FaultKind, Prefix, Prompt, Reply, Request, Sampling

MOST_PAUSES: Final = 8
"""Number of times that a paused reply is sent back before Keju gives up."""
KEPT_PREFIXES: Final = 256
LONGEST_PREFILL: Final = 2.0
"""Seconds after which the service has certainly computed a shared part."""
WORTH_A_WAIT: Final = 2000
"""Characters of a shared part from which the service may cache it: 512 tokens and more."""
INFO: Final = ("display_name", "lifecycle", "deprecated_at", "retires_at", "max_input_tokens",
               "max_tokens")  # fmt: skip
"""Fields of the service's model information that are kept."""
BY_CODE: Final[dict[str, FaultKind]] = {
    "enforced_spend_limit_reached": "auth",
    "ramp_limit_exceeded": "rate_limit",
    "overloaded_error": "rate_limit",
}
"""Codes and types of errors that are more specific than the status."""
# "Your credit balance is too low", "You have reached your specified API usage limits": the service
# sends them with status 400, as if the request were wrong.
SPENT: Final = re.compile(r"credit balance|(usage|spend(ing)?) limits?\b", re.IGNORECASE)
PASSING: Final[tuple[FaultKind, ...]] = ("server", "timeout", "rate_limit")
REQUEST_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,128}")
PROMPT: Final = Prompt(Prefix(), "Answer with one letter, A or B.")


class AnthropicModel(HttpModel):
    """``POST /v1/messages``, without streaming.

    If the service has reported cached tokens, the first request of each shared part is sent ahead.
    The service can only reuse a prompt after it has computed that part.
    """

    provider = ANTHROPIC
    api = "endpoint_of_anthropic"
    acts = True

    def __init__(
        self,
        settings: AnthropicSettings,
        *,
        api_url: str | None = None,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        ca_file: str | None = None,
        preflight_timeout: float = PREFLIGHT_SECONDS,
    ) -> None:
        key = (api_key or "").strip()
        has_key_header = settings.version < NO_SAMPLING_SINCE
        credentials = {"x-api-key": key} if has_key_header else {"Authorization": f"Bearer {key}"}
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
        self._prefixes: dict[tuple[int, bool], tuple[Prefix, asyncio.Event]] = {}
        self._reports_cache = False
        self._prefill = LONGEST_PREFILL
        """Estimated seconds in which the service computes a shared part."""

    def briefly(self, sampling: Sampling) -> Sampling:
        """Return `sampling` for a short reply that has room for the requested thinking."""
        budget = (sampling.extra.get("thinking") or {}).get("budget_tokens", 0)
        return msgspec.structs.replace(sampling, max_tokens=budget + BRIEF)

    def patience(self, sampling: Sampling, usual: float) -> float:
        """Return the seconds for one attempt: more than usual for a reply that may be longer than
        usual."""
        return usual * max(1.0, (sampling.max_tokens or 0) / UNSTREAMED_TOKENS)

    async def ask(self, request: Request, *, timeout: float) -> Reply:
        """Make one attempt; send a paused reply back until it ends."""
        try:
            body = body_of(self.name, request)
        except Unsendable as error:
            return Reply(error=Fault("bad_request", str(error), sent=False))
        async with self._wait_for_prefix(request) as is_first:
            reply = await self._attempt(body, request, timeout)
        if is_first and reply.error is None:
            self._prefill = min(self._prefill, reply.seconds)
        return reply

    async def _attempt(self, body: RequestBody, request: Request, timeout: float) -> Reply:
        combined = reply = await self.attempt(self.post(body, timeout), request)
        for _ in range(MOST_PAUSES):
            if reply.finish != PAUSED or not reply.native:
                return combined
            add_blocks(
                body.turns, "assistant", *msgspec.json.decode(reply.native, type=list[msgspec.Raw])
            )
            reply = await self.attempt(self.post(body, timeout), request)
            combined = join_replies(combined, reply)
        problem = f"the reply paused {MOST_PAUSES} times and did not end"
        return Reply(usage=combined.usage, seconds=combined.seconds, error=Fault("server", problem))

    async def post(self, body: RequestBody, timeout: float) -> HttpReply:
        """Send one request without retries."""
        return await self.transport.post(self.address.messages, body.encoded(), timeout)

    @asynccontextmanager
    async def _wait_for_prefix(self, request: Request) -> AsyncIterator[bool]:
        """Let the first request with a long shared part be computed before the others begin.

        The others wait at most for the shortest reply to such a first request. Yields whether the
        request is the first one.
        """
        prefix = request.prompt.prefix
        size = len(prefix.lead) + sum(len(message.content) for message in prefix.messages)
        if size < WORTH_A_WAIT:
            yield False
            return
        key = (id(prefix), bool(request.tools))  # tools come before everything else
        entry = self._prefixes.get(key)
        if entry is not None:
            if self._reports_cache:
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._prefill):
                        await entry[1].wait()
            yield False
            return
        if len(self._prefixes) >= KEPT_PREFIXES:
            del self._prefixes[next(iter(self._prefixes))]
        # The prefix is kept together with its event, so no other object gets its id.
        ended = asyncio.Event()
        self._prefixes[key] = (prefix, ended)
        try:
            yield True
        finally:
            ended.set()

    def normalise(self, reply: HttpReply, request: Request, seconds: float) -> Reply:
        """Return the reply in the body of a successful call."""
        parsed = normalise(reply.body, request, seconds, self.redact, self._request_id(reply))
        self._reports_cache |= parsed.usage.cached + parsed.usage.written > 0
        return parsed

    def _request_id(self, reply: HttpReply) -> str:
        """Return the service's id of the request: ``req_011C…``; empty if it has another form."""
        number = self.redact(reply.header("request-id") or "")
        return number if REQUEST_ID.fullmatch(number) else ""

    def refusal(self, reply: HttpReply) -> Fault:
        """Return the fault of a reply whose status is not a success."""
        fault = super().refusal(reply)
        kind = next((BY_CODE[code] for code in _codes(reply.body) if code in BY_CODE), fault.kind)
        if kind == "bad_request" and SPENT.search(fault.message):
            kind = "auth"
        retry_advice = (reply.header("x-should-retry") or "").lower()
        if retry_advice == "false" and kind in PASSING:
            kind = "bad_request"
        elif retry_advice == "true" and kind == "bad_request":
            kind = "server"
        return msgspec.structs.replace(fault, kind=kind, request_id=self._request_id(reply))

    def path(self, sampling: Sampling) -> str:
        """Return the only route."""
        return MESSAGES

    async def preflight(self, sampling: Sampling) -> None:
        """Find a wrong address, key, model or parameter before the run, in one line."""
        if self._info is None:
            self._info = await self._model_info()
        info = self._info
        max_tokens = info.get("max_tokens")
        if isinstance(max_tokens, int) and (sampling.max_tokens or 0) > max_tokens:
            values = {"model": self.name, "tokens": sampling.max_tokens, "most": max_tokens}
            raise EndpointError("anthropic_too_long", **values)
        request = Request(PROMPT, self.briefly(sampling), hash="")
        try:
            reply = await self.post(body_of(self.name, request), self.preflight_timeout)
        except TransportError as error:
            raise self._connection_error(error) from None
        parsed = self.parse_reply(reply, request)
        if parsed.error is not None:
            raise await self._explain(parsed.error)
        self._note_facts(sampling, parsed.model)

    def _note_facts(self, sampling: Sampling, reported_model: str) -> None:
        """Note the facts that the preflight showed about the model."""
        self._facts |= {
            "api_version": self.settings.version,
            "reported_model": reported_model,
            "table": AS_OF,
            "short_names": NAMES_AS_OF,
            "known": self.settings.gate is not None,
            "reasoning": "summary",
        } | ({"model_info": self._info} if self._info else {})
        if self._has_key:
            self._facts["has_key"] = True
        if self.settings.gate is not None:
            effort = (sampling.extra.get("output_config") or {}).get("effort")
            self._facts["effort"] = effort or self.settings.gate.default_effort

    async def _model_info(self) -> dict[str, Any]:
        """Return the service's information about the model; empty if a gateway has none."""
        try:
            url = self.address.model(self.name)
            reply = await self.transport.get(url, self.preflight_timeout)
            document = document_of(reply.body) if reply.status == 200 else None
        except (TransportError, ValueError, RecursionError):
            document = None
        info = document if isinstance(document, dict) else {}
        known = {name: info[name] for name in INFO if isinstance(info.get(name), str | int)}
        return {
            name: self.redact(value) if isinstance(value, str) else value
            for name, value in known.items()
        }

    def _connection_error(self, error: TransportError) -> EndpointError:
        message = self.redact(error.message)
        if error.reached:
            return NotReady(self.address.display_url, Fault(error.kind, message))
        code = "endpoint_distrusted" if error.distrusted else "endpoint_unreachable"
        return endpoint_error(code, self, message)

    async def _explain(self, fault: Fault) -> EndpointError:
        """Return the error that says what to change; NotReady for a failure that may pass."""
        if fault.kind in TRANSIENT:
            return NotReady(self.address.display_url, fault)
        if fault.kind == "auth" and fault.status in (401, 403):
            code = "endpoint_refused_key" if self.has_key else "endpoint_wants_key"
            return endpoint_error(code, self, fault.message, status=fault.status)
        if fault.kind == "not_found" and fault.status < 400:
            return endpoint_error("endpoint_elsewhere", self, fault.message)
        if fault.kind != "not_found":
            return endpoint_error("endpoint_refused_request", self, fault_text(fault))
        offered = await self.offered_models()
        if offered and self.name not in offered:
            return self.without_model(offered)
        code = "endpoint_without_model_or_route"
        return endpoint_error(code, self, fault_text(fault), model=self.name)


def _codes(body: bytes) -> list[str]:
    """Return the code and the type of an error: ``ramp_limit_exceeded``, ``rate_limit_error``."""
    try:
        error = msgspec.json.decode(body)["error"]
        details = error.get("details") or {}
        return [str(details.get("error_code")), str(error.get("type"))]
    except (msgspec.DecodeError, LookupError, TypeError, AttributeError, UnicodeDecodeError):
        return []


def make(config: TaskConfig) -> AnthropicModel:
    """Return the model that `config` names; raise ConfigError if Anthropic's host would lack a
    key."""
    model = AnthropicModel(
        settings_of(config),
        api_url=config.api_url,
        api_key=config.api_key.get_secret_value() if config.api_key is not None else None,
        headers=config.headers | config.generation_config.extra_headers,
        ca_file=config.ca_file,
        preflight_timeout=min(config.timeout, PREFLIGHT_SECONDS),
    )
    # A server of the API at another address may not need a key.
    if not model.has_key and model.address.base.startswith(ANTHROPIC.home):
        short_name = {full: name for name, full in SHORT_NAMES.items()}.get(config.model.strip())
        names = {"model": config.model, "variable": ANTHROPIC.key_variable}
        if short_name is None:
            raise ConfigError("anthropic_no_key", **names)
        raise ConfigError("anthropic_no_key_short", short=short_name, **names)
    return model
