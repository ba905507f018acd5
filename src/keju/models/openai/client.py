"""A model behind an address, and the one behind an OpenAI-compatible endpoint, with the one cheap
call that shows whether the address, the key, the model and the settings are right.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from time import perf_counter
from typing import Any

import msgspec

from keju.config import TaskConfig
from keju.config.address import OPENAI, PATHS, Address, parse_address
from keju.errors import ConfigError, EndpointError, Hint, Notice, nearest
from keju.messages import first_of
from keju.models.base import Model, NotReady, Redactor, fault_text, refusal
from keju.models.labels import shows_spaces
from keju.models.openai.wire import FEWEST_LABELS, BodyBuilder, check_extra, document_of, normalise
from keju.models.transport import HttpReply, Transport, TransportError
from keju.types import CUT, Fault, Prefix, Prompt, Reply, Request, Sampling

PREFLIGHT_SECONDS = 60.0
"""A server that loads its weights on the first call may need that long."""
SMALL, LARGER = 1, 16
"""Limits of the reply: some reasoning models refuse a single token."""
TRANSIENT = ("rate_limit", "server", "timeout", "connection", "malformed")
LISTED_MODELS = 8
PROMPT = Prompt(Prefix(), "Answer with one letter, A or B.", cue="Answer:")
LABELS = "AB"
COUNTING = Prompt(Prefix(), " ".join(map(str, range(1, 31))))
COUNTING_STOPS = (" 70", "\n", ".", "e")
"""Where a model that counts on ends: at a number, or where it writes anything else."""
SHORT_DEFAULT = 512
"""Tokens; a longer reply was hardly cut by a default."""
SENT_LIMIT = 1024
"""The limit that is sent to servers whose default would cut replies short."""
ANOTHER_ROUTE = {"chat": "completions", "completion": "chat"}
KEY_HEADERS = ("authorization", "x-api-key")
"""Headers that carry the key of an endpoint."""
CREDENTIAL = re.compile("auth|key|token|secret|password|cookie", re.IGNORECASE)
"""What the names of headers have that carry a key: ``Authorization``, ``api-key``, ``Cookie``."""

LLAMA = "llama.cpp"
"""What llama.cpp's server calls itself in its header."""


class _Props(msgspec.Struct):
    """What llama.cpp's server tells of itself."""

    total_slots: int


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
        return f"{type(self).__name__}({self.name!r}, api_url={self.address.display_url!r})"

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

    @abstractmethod
    def path(self, sampling: Sampling) -> str:
        """The end of the address that requests of this sampling go to, e.g. ``/completions``."""

    def sent(self, sampling: Sampling) -> Notice | None:
        """Where a request goes, without credentials, and which model it asks for."""
        route = self.address.display_url + self.path(sampling)
        return Notice("request_sent", {"route": route, "model": self.name})

    def facts(self) -> dict[str, Any]:
        """The endpoint without credentials, and what the preflight learnt of it."""
        return {"name": self.name, "endpoint": self.address.display_url} | self._facts


def endpoint_error(code: str, endpoint: HttpModel, problem: Any, **values: Any) -> EndpointError:
    """What is wrong with an endpoint; the settings are those of a candidate.

    Whoever asks for somebody else, such as a judge, puts the names of its own settings in place
    of `key`, `address` and `address_and_model`.
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


def _limited(sampling: Sampling, tokens: int) -> Sampling:
    """`sampling` with a reply of at most `tokens`, however the user named the limit."""
    names = ("max_tokens", "max_completion_tokens")
    extra = {k: tokens if k in names else v for k, v in sampling.extra.items()}
    return msgspec.structs.replace(sampling, max_tokens=tokens, extra=extra)


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
        self._has_key = bool(key)
        self._probed_default = False
        self._routes = {form: self.address.route(form) for form in PATHS}

    async def preflight(self, sampling: Sampling) -> None:
        """Find a wrong address, key, model or parameter before the run, in one line.

        A limit or a number of log-probabilities that the endpoint refuses is replaced by one that
        it takes, and the run then uses that one as well. Raises NotReady for what may pass.
        """
        check_extra(sampling)
        bodies, labels = self.bodies, sampling.decode == "labels"
        trial = sampling if labels else _limited(sampling, SMALL)
        while True:
            reply = await self._trial(Request(PROMPT, trial, hash="", labels=LABELS))
            if isinstance(reply, HttpReply):
                break
            fault = reply
            if fault.kind in TRANSIENT:
                raise NotReady(self.address.display_url, fault)
            if fault.kind != "bad_request":
                raise await self._explanation(sampling, fault)
            # What the endpoint may have refused is asked for in another way, one thing at a time.
            if "max_completion_tokens" in fault.message and bodies.limit_field == "max_tokens":
                bodies.limit_field = "max_completion_tokens"
            elif labels and bodies.top_logprobs > FEWEST_LABELS:
                bodies.top_logprobs = FEWEST_LABELS
            elif not labels and trial.max_tokens == SMALL:
                trial = _limited(trial, LARGER)
            else:
                raise await self._explanation(sampling, fault)
        self.trial = self.read(reply, Request(PROMPT, trial, hash="", labels=LABELS))
        self.trial_bytes = len(PROMPT.text.encode())
        await self._find_default_limit(sampling)
        document = document_of(reply.body)
        if self.slots is None and reply.header("server") == LLAMA:
            await self._count_slots()
        if labels:
            told = [choice.get("logprobs") for choice in document["choices"]]
            self.spaces = self.spaces or any(shows_spaces(each) for each in told)
        facts = {
            "server": reply.header("server"),
            "reported_model": document.get("model"),
            "system_fingerprint": document.get("system_fingerprint"),
            "slots": self.slots,
            "top_logprobs": bodies.top_logprobs if labels else None,
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
        """Find out whether the server cuts texts short where no limit is sent.

        OpenAI's completion route, vLLM and SGLang then give 16 tokens. The model is asked to go on
        counting, and stops at a number. If it is cut off before, the run sends a limit.
        """
        is_open = sampling.form == "completion" and sampling.decode == "generate"
        names = ("max_tokens", "max_completion_tokens")
        if not is_open or sampling.max_tokens or any(name in sampling.extra for name in names):
            return
        if self._probed_default:
            return
        self._probed_default = True
        counting = msgspec.structs.replace(sampling, stop=COUNTING_STOPS)
        request = Request(COUNTING, counting, hash="")
        try:
            reply = self.read(await self.send(request, self.preflight_timeout), request)
        except TransportError:
            return
        tokens = reply.usage.output or len(reply.text) // 3  # where the server does not count
        if reply.error is None and reply.finish == CUT and tokens <= SHORT_DEFAULT:
            self.bodies.default_limit = SENT_LIMIT
            values = {"tokens": tokens, "limit": SENT_LIMIT}
            self.learnt = (Notice("default_limit_replaced", values),)

    async def _count_slots(self) -> None:
        """llama.cpp keeps the prompt of each slot: more requests than slots would only wait there,
        and those of one subset do best on one slot."""
        with suppress(TransportError, msgspec.MsgspecError):
            told = await self.transport.get(self.address.props, self.preflight_timeout)
            self.slots = max(1, msgspec.json.decode(told.body, type=_Props).total_slots)

    async def _trial(self, request: Request) -> HttpReply | Fault:
        try:
            reply = await self.send(request, self.preflight_timeout)
        except TransportError as error:
            message = self.redact(error.message)
            if error.reached:
                return Fault(error.kind, message)
            code = "endpoint_distrusted" if error.distrusted else "endpoint_unreachable"
            raise endpoint_error(code, self, message) from None
        # Its shape is judged as if free text had been asked for; only then are labels looked for.
        sampling = msgspec.structs.replace(request.sampling, decode="generate")
        as_text = msgspec.structs.replace(request, sampling=sampling)
        fault = self.read(reply, as_text).error
        lacking = self.read(reply, request).error
        if fault is None and lacking is not None:  # by chance, or always
            lasting = endpoint_error("endpoint_no_logprobs", self, Notice("logprobs_left_out"))
            raise NotReady(self.address.display_url, lacking, lasting)
        return reply if fault is None else fault

    async def _explanation(self, sampling: Sampling, fault: Fault) -> EndpointError:
        """Say what to change, for a failure that will not pass."""
        if fault.kind == "auth" and fault.status in (401, 403):
            code = "endpoint_refused_key" if self.has_key else "endpoint_wants_key"
            return endpoint_error(code, self, fault.message, status=fault.status)
        if fault.kind == "not_found" and fault.status < 400:
            return endpoint_error("endpoint_elsewhere", self, fault.message)
        if fault.kind != "not_found":
            if sampling.decode == "labels" and "logprob" in fault.message.lower():
                return endpoint_error("endpoint_no_logprobs", self, fault.message)
            return endpoint_error("endpoint_refused_request", self, fault_text(fault))
        # The list of models tells a missing model from a missing route.
        name = self.name
        try:
            reply = await self.transport.get(self.address.models, self.preflight_timeout)
            listed = document_of(reply.body)["data"]
            offered = [entry["id"] for entry in listed if isinstance(entry["id"], str)]
        except (TransportError, ValueError, LookupError, TypeError, RecursionError):
            offered = []  # the endpoint does not tell
        if offered and name not in offered:
            near = nearest(name, offered)
            return endpoint_error(
                "endpoint_without_model",
                self,
                "",
                model=name,
                hint=Notice("did_you_mean", {"name": near}) if near else "",
                names=first_of(offered, LISTED_MODELS),
                more=Notice("in_all", {"n": len(offered)})
                if len(offered) > LISTED_MODELS + 1
                else "",
            )
        if offered:
            other = ANOTHER_ROUTE[sampling.form]
            return endpoint_error("endpoint_refused_route", self, fault_text(fault), other=other)
        return endpoint_error(
            "endpoint_without_model_or_route", self, fault_text(fault), model=name
        )

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

    def _attempt(self, request: Request, timeout: float, top: int = 0) -> Awaitable[Reply]:
        return self.attempt(self.send(request, timeout, top), request)

    def path(self, sampling: Sampling) -> str:
        """The route of the form."""
        return PATHS[sampling.form]

    def normalise(self, reply: HttpReply, request: Request, seconds: float) -> Reply:
        """The reply in the body of a successful call."""
        return normalise(reply.body, request, seconds, self.redact, spaces=self.spaces)

    def send(self, request: Request, timeout: float, top: int = 0) -> Awaitable[HttpReply]:
        """Send one request as it is, for `ask` and the preflight."""
        route = self._routes[request.sampling.form]
        return self.transport.post(route, self.bodies.build(request, top), timeout)


def make(config: TaskConfig) -> OpenAIModel:
    """The model at the endpoint that `config` names."""
    if not config.api_url:
        from keju.models.registry import near_name

        name = config.model.strip()
        if near := near_name(name):
            hint = Hint("did_you_mean", name=near)
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
