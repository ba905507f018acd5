"""Models behind an HTTP address, and the model behind an OpenAI-compatible endpoint. Its preflight
is one cheap call that checks the address, the key, the model and the settings."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from time import perf_counter
from typing import Any

import msgspec

from keju.config import TaskConfig
from keju.config.address import OPENAI, PATHS, Address, parse_address
from keju.errors import ConfigError, EndpointError, Notice, TranslatableText, find_nearest
from keju.messages import first_of
from keju.models.base import Model, NotReady, Redactor, fault_text, refusal
from keju.models.labels import has_spaced_tokens
from keju.models.openai.echo import EchoScorer
from keju.models.openai.wire import FEWEST_LABELS, BodyBuilder, check_extra, document_of, normalise
from keju.models.transport import HttpReply, Transport, TransportError
from keju.types import CUT, Fault, Prefix, Prompt, Reply, Request, Sampling

PREFLIGHT_SECONDS = 60.0
"""A server that loads its weights on the first call may need this many seconds."""
SMALL, LARGER = 1, 16
"""Limits of the trial reply in tokens. Some reasoning models refuse a single token."""
TRANSIENT = ("rate_limit", "server", "timeout", "connection", "malformed")
LISTED_MODELS = 8
PROMPT = Prompt(Prefix(), "Answer with one letter, A or B.", cue="Answer:")
LABELS = "AB"
COUNTING = Prompt(Prefix(), " ".join(map(str, range(1, 31))))
COUNTING_STOPS = (" 70", "\n", ".", "e")
"""Stops for a model that continues counting: a number, or any other kind of text."""
SHORT_DEFAULT = 512
"""Tokens. A longer reply was probably not cut by a server's default."""
SENT_LIMIT = 1024
"""The limit that is sent to servers whose default would cut replies short."""
ANOTHER_ROUTE = {"chat": "completions", "completion": "chat"}
KEY_HEADERS = ("authorization", "x-api-key")
"""Headers that carry the key of an endpoint."""
CREDENTIAL = re.compile("auth|key|token|secret|password|cookie", re.IGNORECASE)
"""Parts of header names that carry a key: ``Authorization``, ``api-key``, ``Cookie``."""

LLAMA = "llama.cpp"
"""The name of llama.cpp's server in its header."""


class _ServerProps(msgspec.Struct):
    """The properties that llama.cpp's server reports."""

    total_slots: int


class HttpModel(Model):
    """A model behind an HTTP address.

    The key and the values of all further headers are secrets. They never appear in a message, a
    repr or a fact.
    """

    provider = OPENAI

    def __init__(
        self,
        name: str,
        address: Address,
        api_headers: Mapping[str, str],
        headers: Mapping[str, str] | None = None,
        ca_file: str | None = None,
        preflight_timeout: float = PREFLIGHT_SECONDS,
    ) -> None:
        """`api_headers` are for the API, including the key; `headers` are the user's."""
        self.name = name
        self.address = address
        self.preflight_timeout = preflight_timeout
        all_headers = {"Content-Type": "application/json"} | dict(api_headers) | dict(headers or {})
        keys = [v for n, v in all_headers.items() if CREDENTIAL.search(n)] + [*self.address.secrets]
        self.has_key = any(n.lower() in KEY_HEADERS for n in all_headers)
        self.redact = Redactor([*keys, *(headers or {}).values()], keys)
        self.transport = Transport(all_headers, ca_file)
        self._facts: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, api_url={self.address.display_url!r})"

    async def start(self) -> None:
        """Open the connection pool."""
        self.transport.open()

    async def close(self) -> None:
        """Close all connections."""
        await self.transport.close()

    async def attempt(self, sending: Awaitable[HttpReply], request: Request) -> Reply:
        """Make one attempt; a missing or incomplete reply becomes a fault."""
        started = perf_counter()
        try:
            reply = await sending
        except TransportError as error:
            fault = Fault(error.kind, self.redact(error.message), sent=error.reached)
            return Reply(seconds=perf_counter() - started, error=fault)
        return self.parse_reply(reply, request, perf_counter() - started)

    def parse_reply(self, reply: HttpReply, request: Request, seconds: float = 0.0) -> Reply:
        """Return the reply of an endpoint; an unreadable reply is a fault of this attempt."""
        try:
            if not 200 <= reply.status < 300:
                return Reply(seconds=seconds, error=self.refusal(reply))
            return self.redact.reply(self.normalise(reply, request, seconds))
        except Exception as error:  # no reply of an endpoint may end a run
            problem = f"the reply cannot be read ({type(error).__name__})"
            return Reply(seconds=seconds, error=Fault("malformed", problem, reply.status))

    def refusal(self, reply: HttpReply) -> Fault:
        """Return the fault of a reply whose status is not a success."""
        return refusal(reply.status, reply.body, reply.header, self.redact)

    async def offered_models(self) -> list[str]:
        """Return the models that the endpoint lists, without secrets; [] if it lists none."""
        try:
            reply = await self.transport.get(self.address.models, self.preflight_timeout)
            listed = document_of(reply.body)["data"]
            names = [entry["id"] for entry in listed if isinstance(entry["id"], str)]
        except (TransportError, ValueError, LookupError, TypeError, RecursionError):
            return []
        return [self.redact(name) for name in names]

    def without_model(self, offered: Sequence[str]) -> EndpointError:
        """Return the error of an endpoint that offers other models than the one asked for."""
        near = find_nearest(self.name, offered)
        is_cut = len(offered) > LISTED_MODELS + 1
        return endpoint_error(
            "endpoint_without_model",
            self,
            "",
            model=self.name,
            hint=Notice("did_you_mean", {"name": near}) if near else "",
            names=first_of(offered, LISTED_MODELS),
            more=Notice("in_all", {"n": len(offered)}) if is_cut else "",
        )

    @abstractmethod
    def normalise(self, reply: HttpReply, request: Request, seconds: float) -> Reply:
        """Return the reply in the body of a successful call."""

    @abstractmethod
    def path(self, sampling: Sampling) -> str:
        """Return the end of the address for requests of this sampling, e.g. ``/completions``."""

    def sent(self, sampling: Sampling) -> Notice | None:
        """Return the route of a request without credentials, and the model that it asks for."""
        route = self.address.display_url + self.path(sampling)
        return Notice("request_sent", {"route": route, "model": self.name})

    def facts(self) -> dict[str, Any]:
        """Return the endpoint without credentials, and the facts that the preflight found."""
        return {"name": self.name, "endpoint": self.address.display_url} | self._facts


def endpoint_error(code: str, endpoint: HttpModel, problem: Any, **values: Any) -> EndpointError:
    """Return the error of an endpoint, with the settings of a candidate.

    For another model, such as a judge, the caller replaces `key`, `address` and `address_and_model`
    with the names of its settings.
    """
    return EndpointError(
        code,
        url=endpoint.address.display_url,
        problem=problem,
        key=Notice("key_setting", {"variable": endpoint.provider.key_variable}),
        address="--api-url",
        address_and_model=Notice("address_and_model_settings"),
        **values,
    )


def _limit_reply(sampling: Sampling, tokens: int) -> Sampling:
    """Return `sampling` with a reply of at most `tokens`, under either name of the limit."""
    names = ("max_tokens", "max_completion_tokens")
    extra = {k: tokens if k in names else v for k, v in sampling.extra.items()}
    return msgspec.structs.replace(sampling, max_tokens=tokens, extra=extra)


class OpenAIModel(HttpModel):
    """Chat completions and completions, with one attempt per call.

    The form of a request's sampling decides the route.
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
        """Whether the server writes the space before a token, as seen in the preflight."""
        self._has_key = bool(key)
        self._probed_default = False
        self._routes = {form: self.address.route(form) for form in PATHS}

    async def preflight(self, sampling: Sampling) -> None:
        """Find a wrong address, key, model or parameter before the run, in one line.

        If the endpoint refuses a limit or a number of log-probabilities, it is replaced by one that
        the endpoint accepts, also for the run. Raises NotReady for a failure that may pass.
        """
        check_extra(sampling)
        if sampling.decode == "continuations":
            if sampling.form == "chat":
                raise ConfigError("continuations_over_chat", model=self.name)
            await self._find_echo(sampling)
            return
        trial, reply = await self._find_accepted(sampling)
        self.trial = self.parse_reply(reply, Request(PROMPT, trial, hash="", labels=LABELS))
        self.trial_bytes = len(PROMPT.text.encode())
        await self._find_default_limit(sampling)
        document = document_of(reply.body)
        if self.slots is None and reply.header("server") == LLAMA:
            await self._count_slots()
        if sampling.decode == "labels":
            self.spaces = self.spaces or any(
                has_spaced_tokens(choice.get("logprobs")) for choice in document["choices"]
            )
        self._note_facts(sampling, reply, document)

    async def _find_echo(self, sampling: Sampling) -> None:
        """Find out whether the completions route gives the log-probabilities of a prompt."""
        echo = self._echo
        try:
            fault = await echo.prepare(self.preflight_timeout)
        except TransportError as error:
            message = self.redact(error.message)
            if error.reached:
                raise NotReady(self.address.display_url, Fault(error.kind, message)) from None
            code = "endpoint_distrusted" if error.distrusted else "endpoint_unreachable"
            raise endpoint_error(code, self, message) from None
        if fault is not None:
            if fault.kind in TRANSIENT and fault.kind != "malformed":
                raise NotReady(self.address.display_url, fault)
            if fault.kind in ("auth", "not_found"):
                raise await self._explain(sampling, fault)
            raise endpoint_error("endpoint_no_echo", self, fault.message)
        self._facts |= {"echo": "tokens" if echo.tokenizer else "texts"}
        self._facts |= {"max_model_len": echo.length} if echo.length else {}

    @cached_property
    def _echo(self) -> EchoScorer:
        return EchoScorer(
            self.name,
            self._routes["completion"],
            self.address.models,
            self.transport.post,
            self.transport.get,
            self.redact,
        )

    async def _find_accepted(self, sampling: Sampling) -> tuple[Sampling, HttpReply]:
        """Return sampling that the endpoint accepts, and its reply.

        What the endpoint may refuse is changed one setting at a time.
        """
        trial = sampling if sampling.decode == "labels" else _limit_reply(sampling, SMALL)
        while True:
            reply = await self._try_request(Request(PROMPT, trial, hash="", labels=LABELS))
            if isinstance(reply, HttpReply):
                return trial, reply
            fault = reply
            if fault.kind in TRANSIENT:
                raise NotReady(self.address.display_url, fault)
            if fault.kind != "bad_request":
                raise await self._explain(sampling, fault)
            changed = self._change_refused(trial, fault)
            if changed is None:
                raise await self._explain(sampling, fault)
            trial = changed

    def _change_refused(self, trial: Sampling, fault: Fault) -> Sampling | None:
        """Change one setting that may have been refused; return None if there is no further one."""
        bodies, labels = self.bodies, trial.decode == "labels"
        if "max_completion_tokens" in fault.message and bodies.limit_field == "max_tokens":
            bodies.limit_field = "max_completion_tokens"
        elif labels and bodies.top_logprobs > FEWEST_LABELS:
            bodies.top_logprobs = FEWEST_LABELS
        elif not labels and trial.max_tokens == SMALL:
            return _limit_reply(trial, LARGER)
        else:
            return None
        return trial

    def _note_facts(
        self, sampling: Sampling, reply: HttpReply, document: Mapping[str, Any]
    ) -> None:
        """Note the facts that the preflight showed about the server."""
        bodies = self.bodies
        facts = {
            "server": reply.header("server"),
            "reported_model": document.get("model"),
            "system_fingerprint": document.get("system_fingerprint"),
            "slots": self.slots,
            "top_logprobs": bodies.top_logprobs if sampling.decode == "labels" else None,
            "limit_field": bodies.limit_field if bodies.limit_field != "max_tokens" else None,
            "default_limit": bodies.default_limit,
            "has_key": self._has_key,
        }
        self._facts |= {
            name: self.redact(value) if isinstance(value, str) else value
            for name, value in facts.items()
            if value
        }
        self._facts["routes"] = sorted({*self._facts.get("routes", ()), sampling.form})

    async def _find_default_limit(self, sampling: Sampling) -> None:
        """Find out whether the server cuts texts short if no limit is sent.

        OpenAI's completion route, vLLM and SGLang then use a limit of 16 tokens. The model is asked
        to continue counting up to a stop. If it is cut off before, the run sends a limit.
        """
        if self._probed_default or not _is_open(sampling):
            return
        self._probed_default = True
        counting = msgspec.structs.replace(sampling, stop=COUNTING_STOPS)
        request = Request(COUNTING, counting, hash="")
        try:
            reply = self.parse_reply(await self.send(request, self.preflight_timeout), request)
        except TransportError:
            return
        tokens = reply.usage.output or len(reply.text) // 3  # the server does not count
        if reply.error is None and reply.finish == CUT and tokens <= SHORT_DEFAULT:
            self.bodies.default_limit = SENT_LIMIT
            values = {"tokens": tokens, "limit": SENT_LIMIT}
            self.learnt = (Notice("default_limit_replaced", values),)

    async def _count_slots(self) -> None:
        """Read the number of slots of llama.cpp's server. It keeps the prompt of each slot. More
        requests than slots would only wait there, and requests of one subset are fastest on one
        slot."""
        with suppress(TransportError, msgspec.MsgspecError):
            props = await self.transport.get(self.address.props, self.preflight_timeout)
            self.slots = max(1, msgspec.json.decode(props.body, type=_ServerProps).total_slots)

    async def _try_request(self, request: Request) -> HttpReply | Fault:
        try:
            reply = await self.send(request, self.preflight_timeout)
        except TransportError as error:
            message = self.redact(error.message)
            if error.reached:
                return Fault(error.kind, message)
            code = "endpoint_distrusted" if error.distrusted else "endpoint_unreachable"
            raise endpoint_error(code, self, message) from None
        # The reply is checked as free text first; only then are labels looked for.
        sampling = msgspec.structs.replace(request.sampling, decode="generate")
        as_text = msgspec.structs.replace(request, sampling=sampling)
        fault = self.parse_reply(reply, as_text).error
        label_fault = self.parse_reply(reply, request).error
        if fault is None and label_fault is not None:  # by chance, or always
            lasting = endpoint_error("endpoint_no_logprobs", self, Notice("logprobs_left_out"))
            raise NotReady(self.address.display_url, label_fault, lasting)
        return reply if fault is None else fault

    async def _explain(self, sampling: Sampling, fault: Fault) -> EndpointError:
        """Return the error that says what to change, for a failure that will not pass."""
        if fault.kind == "auth" and fault.status in (401, 403):
            code = "endpoint_refused_key" if self.has_key else "endpoint_wants_key"
            return endpoint_error(code, self, fault.message, status=fault.status)
        if fault.kind == "not_found" and fault.status < 400:
            return endpoint_error("endpoint_elsewhere", self, fault.message)
        if fault.kind == "not_found":
            return await self._explain_not_found(sampling, fault)
        if sampling.decode == "labels" and "logprob" in fault.message.lower():
            return endpoint_error("endpoint_no_logprobs", self, fault.message)
        return endpoint_error("endpoint_refused_request", self, fault_text(fault))

    async def _explain_not_found(self, sampling: Sampling, fault: Fault) -> EndpointError:
        """Return the error for a model or a route that does not exist."""
        # The list of models tells a missing model from a missing route.
        offered = await self.offered_models()
        if offered and self.name not in offered:
            return self.without_model(offered)
        if offered and sampling.decode == "continuations":
            return endpoint_error("endpoint_no_echo", self, fault_text(fault))
        if offered:
            other = ANOTHER_ROUTE[sampling.form]
            return endpoint_error("endpoint_refused_route", self, fault_text(fault), other=other)
        code = "endpoint_without_model_or_route"
        return endpoint_error(code, self, fault_text(fault), model=self.name)

    async def ask(self, request: Request, *, timeout: float) -> Reply:
        """Make one attempt; if no label is among the most likely tokens, ask for more of them."""
        if request.sampling.decode == "continuations":
            return await self._echo.ask(request, timeout)
        reply = await self._attempt(request, timeout)
        for top in self.bodies.further_looks if request.sampling.form == "completion" else ():
            if reply.error is not None or reply.label_logprobs != {}:
                break
            deeper = await self._attempt(request, timeout, top)
            if deeper.error is not None and deeper.error.kind == "bad_request":
                self.bodies.further_looks = ()
                break
            reply = deeper
        return reply

    def _attempt(self, request: Request, timeout: float, top: int = 0) -> Awaitable[Reply]:
        return self.attempt(self.send(request, timeout, top), request)

    def path(self, sampling: Sampling) -> str:
        """Return the route of the form."""
        return PATHS[sampling.form]

    def normalise(self, reply: HttpReply, request: Request, seconds: float) -> Reply:
        """Return the reply in the body of a successful call."""
        return normalise(reply.body, request, seconds, self.redact, spaces=self.spaces)

    def send(self, request: Request, timeout: float, top: int = 0) -> Awaitable[HttpReply]:
        """Send one request without retries, for `ask` and the preflight."""
        route = self._routes[request.sampling.form]
        return self.transport.post(route, self.bodies.build(request, top), timeout)


def make(config: TaskConfig) -> OpenAIModel:
    """Return the model at the endpoint that `config` names."""
    if not config.api_url:
        from keju.models.registry import nearest_spelling

        name = config.model.strip()
        if suggestion := nearest_spelling(name):
            hint = TranslatableText("did_you_mean", name=suggestion)
            raise ConfigError("no_endpoint_near", model=name, hint=hint)
        raise ConfigError("no_endpoint", model=name)
    return OpenAIModel(
        config.model.strip(),
        api_url=config.api_url,
        api_key=config.api_key.get_secret_value() if config.api_key is not None else None,
        headers=config.headers | config.generation_config.extra_headers,
        ca_file=config.ca_file,
        preflight_timeout=min(config.timeout, PREFLIGHT_SECONDS),
    )


def _is_open(sampling: Sampling) -> bool:
    """Whether a text is continued without a limit."""
    names = ("max_tokens", "max_completion_tokens")
    is_text = sampling.form == "completion" and sampling.decode == "generate"
    has_limit = sampling.max_tokens or any(name in sampling.extra for name in names)
    return is_text and not has_limit
