"""A model that llama.cpp runs in this process: the embedded one, or a GGUF file of the user."""

from __future__ import annotations

import asyncio
import http
import os
import threading
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

import msgspec
from pydantic import BaseModel, ConfigDict, Field, PositiveInt, ValidationError

from keju.bounds import read_text
from keju.config import TaskConfig
from keju.config.address import PATHS
from keju.config.strict import explain_error
from keju.errors import (
    ConfigError,
    DataError,
    EndpointError,
    MissingExtra,
    Notice,
    TranslatableText,
    did_you_mean,
)
from keju.models import weights
from keju.models.base import Model, Redactor, one_line, refusal
from keju.models.gguf import GgufHeader, read_gguf, template_hash
from keju.models.llama.continuations import NextToken, TokenScorer
from keju.models.llama.label_tokens import ENDING, LabelTokens, find_label_tokens
from keju.models.llama.server import LlamaServer, available_cores, runtime_version
from keju.models.openai.wire import BodyBuilder, check_extra, normalise
from keju.models.transport import HttpReply, Transport, TransportError
from keju.signals import run_in_thread
from keju.types import Continuation, Fault, Prefix, Prompt, Reply, Request, Sampling

DEFAULT_CONTEXT = 4096
"""Tokens per slot, unless the model was trained on fewer."""
DEFAULT_SLOTS = 1
"""With one reply at a time, each reply is always computed in the same way. With more, timing
decides which replies share a batch, and this changes the last bit of the arithmetic."""
EMBEDDED = "embedded"
GGUF_PREFIX = "gguf:"
TRIAL = Prompt(Prefix(), "Answer with one letter, A or B.\nAnswer:")
TRIAL_LABELS = "AB"
TRIAL_TEXTS = (Continuation(TRIAL.text, " A"),)
TRIAL_SECONDS = 600.0
"""Seconds. A large model may take long for its first token."""

FIRST_LOOK = 256
"""Number of most likely tokens to request. If a label is not among them, all tokens are
requested."""
KEPT = 4096
"""Number of prompt endings and samplings to keep before all are dropped."""
NEUTRAL = {"top_k": 0, "min_p": 0.0}
"""Without these llama.cpp would cut the distribution, although no setting asks for it."""
CONTINUE = "continue_final_message"
"""The field that asks endpoints to continue the cue of a prompt, which this model always does."""
RENAMED = {"repetition_penalty": "repeat_penalty"}
FIELDS = (
    "top_k", "min_p", "typical_p", "top_n_sigma", "seed", "presence_penalty", "frequency_penalty",
    "repetition_penalty", "repeat_penalty", "repeat_last_n", "dry_multiplier", "dry_base",
    "dry_allowed_length", "dry_penalty_last_n", "dry_sequence_breakers", "xtc_probability",
    "xtc_threshold", "dynatemp_range", "dynatemp_exponent", "mirostat", "mirostat_tau",
    "mirostat_eta", "min_keep", "samplers", "logit_bias", "ignore_eos", "grammar", "json_schema",
    "response_format", "chat_template_kwargs", CONTINUE, "max_completion_tokens",
)  # fmt: skip
"""Fields of a body that have an effect in llama.cpp."""

_no_redaction = Redactor(())


class LlamaSettings(BaseModel):
    """The ``model_args`` of a model that llama.cpp runs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    n_ctx: PositiveInt | None = None
    """Context of each slot in tokens; 4096 by default, or what the model was trained on."""
    slots: PositiveInt = DEFAULT_SLOTS
    """Requests worked on at once, faster where replies are long; each slot stays on one prefix."""
    threads: PositiveInt | None = None
    """Threads of the arithmetic; by default one for each core this process may use."""
    n_gpu_layers: int = Field(default=-1, ge=-1)
    """Layers on the GPU where the runtime has one; -1 for all."""
    chat_template: str | None = None
    """A template in Jinja, or the path of a file with one, instead of the model's own."""
    prefix_reuse: bool = True
    """Keep what is computed for a prompt and use it for the next that begins alike."""
    flash_attention: bool = False
    """Faster attention, whose rounding depends on what else is in the batch."""
    label_space: bool = False
    """Count `` A`` with a space before it as a spelling of the label ``A``."""


def make(config: TaskConfig) -> LlamaModel:
    """Return the model that `config` names, not yet loaded; raise KejuError for wrong settings."""
    settings = read_settings(config)
    if find_spec("xllamacpp") is None:
        raise MissingExtra(TranslatableText("extra_for_model", name=config.model), "local")
    name = config.model.strip()
    if name == EMBEDDED:
        return LlamaModel(name, weights.locate_file(weights.EMBEDDED, os.environ), settings)
    path = name.removeprefix(GGUF_PREFIX)
    if not path:
        raise ConfigError("llama_no_file", name=name, prefix=GGUF_PREFIX)
    return LlamaModel(name, Path(path).expanduser(), settings)


def read_settings(config: TaskConfig) -> LlamaSettings:
    """Check ``model_args``; raise ConfigError with the nearest key."""
    args: dict[str, Any] = {key.replace("-", "_"): v for key, v in config.model_args.items()}
    try:
        return LlamaSettings(**args)
    except ValidationError as error:
        raise ConfigError("model_args_wrong", problem=explain_error(error, LlamaSettings)) from None


def check_extra_fields(sampling: Sampling) -> None:
    """Refuse body fields that belong to Keju or that llama.cpp would ignore; raise ConfigError."""
    check_extra(sampling)
    for name in sampling.extra:
        if name not in FIELDS:
            hint = did_you_mean(name, FIELDS)
            raise ConfigError("llama_not_taken", name=name, hint=hint)


class LlamaModel(Model):
    """Runs a GGUF file with llama.cpp in this process and sends requests to its loopback address.

    Bodies and replies have the format of an endpoint, so both kinds of model are read alike.
    Labels are requested at the one position after the prompt. For a conversation the chat template
    is applied first. A call that is given up (a timeout, Ctrl-C) closes its connection, and
    llama.cpp stops it at its next token.
    """

    acts = True
    quits = True
    counts = True

    def __init__(self, name: str, path: Path, settings: LlamaSettings | None = None) -> None:
        """Read the header of the file; raise DataError or ConfigError if it cannot be used."""
        self.name = name
        self.settings = settings or LlamaSettings()
        self.slots = self.settings.slots
        self.file: GgufHeader = read_gguf(path)
        trained_context, requested_context = self.file.context, self.settings.n_ctx
        if (
            requested_context is not None
            and trained_context
            and requested_context > trained_context
        ):
            raise ConfigError(
                "llama_n_ctx",
                wish=requested_context,
                trained=trained_context,
                file=self.file.path.name,
            )
        self.context = requested_context or min(DEFAULT_CONTEXT, trained_context or DEFAULT_CONTEXT)
        self.chat_template = _read_template(self.settings.chat_template) or self.file.chat_template
        self._server: LlamaServer | None = None
        self._transport = Transport()
        self._bodies = BodyBuilder(name)
        self._samplings: dict[tuple[int, bool], tuple[Sampling, Sampling]] = {}
        self._endings: dict[tuple[str, str, str], LabelTokens | None] = {}
        self._facts: dict[str, Any] = {}
        self._scorer: TokenScorer | None = None
        self._given_up = False
        """Whether llama.cpp may still be working on a call that was given up."""

    @property
    def loading(self) -> Notice | None:
        """A notice before the start, because llama.cpp blocks the whole process while it loads
        weights."""
        return Notice("model_loading", {"name": self.name}) if self._server is None else None

    async def start(self) -> None:
        """Load the weights; raise EndpointError if llama.cpp cannot."""
        if self._server is None:
            is_cancelled = threading.Event()
            try:
                server = await run_in_thread(partial(self._load, is_cancelled))
            except asyncio.CancelledError:
                is_cancelled.set()
                raise
            key = f"Bearer {server.key}"
            headers = {"Content-Type": "application/json", "Authorization": key}
            self._transport = Transport(headers, proxies=False)
            self._server = server
            await self._record_context(server)

    async def preflight(self, sampling: Sampling) -> None:
        """Refuse settings that would do nothing, and let the model write one token."""
        check_extra_fields(sampling)
        if sampling.decode == "continuations":
            pass  # their contexts are whole texts in any form
        elif sampling.form == "chat" and not self.chat_template:
            raise ConfigError("llama_no_template", name=self.name)
        trial = msgspec.structs.replace(sampling, max_tokens=1)
        labels = TRIAL_LABELS if sampling.decode == "labels" else ""
        request = Request(TRIAL, trial, hash="", labels=labels, continuations=TRIAL_TEXTS)
        reply = await self.ask(request, timeout=TRIAL_SECONDS)
        if reply.error is not None:
            raise EndpointError("llama_cannot_answer", name=self.name, problem=reply.error.message)

    async def ask(self, request: Request, *, timeout: float) -> Reply:
        """Make one attempt; a failure becomes a fault."""
        await self.start()
        started = perf_counter()
        try:
            if request.sampling.decode == "labels":
                return await self._score_labels(request, timeout)
            if request.sampling.decode == "continuations":
                return await self._score_texts(request, timeout)
            return await self._generate(request, timeout)
        except asyncio.CancelledError:
            self._given_up = True
            raise
        except TransportError as error:
            self._given_up |= error.kind == "timeout"
            fault = Fault(error.kind, error.message, sent=error.reached)
        except ValueError as error:
            fault = Fault("bad_request", one_line(f"the prompt is refused: {error}"))
        return Reply(seconds=perf_counter() - started, error=fault)

    async def _record_context(self, server: LlamaServer) -> None:
        """Record the context in use: llama.cpp rounds up, e.g. 288 tokens to 512."""
        with suppress(TransportError, msgspec.MsgspecError):
            props = await self._transport.get(f"{server.address}/props", TRIAL_SECONDS)
            self._facts["context"] = msgspec.json.decode(
                props.body, type=_LlamaProps
            ).settings.n_ctx

    async def close(self) -> None:
        """Release connections and weights without waiting for calls that were given up."""
        await self._transport.close()
        server, self._server = self._server, None
        if server is not None and self._given_up:
            self._given_up = False
            server.release()

    def facts(self) -> dict[str, Any]:
        """Return the file, the runtime, and every setting that determines the replies."""
        return {
            "name": self.name,
            "backend": "llama.cpp",
            "file": self.file.path.name,
            "bytes": self.file.size,
            "architecture": self.file.architecture,
            "quantisation": self.file.quantisation,
            "context": self.context,
            "slots": self.slots,
            "prefix_reuse": self.settings.prefix_reuse,
            "flash_attention": self.settings.flash_attention,
            "label_space": self.settings.label_space,
            "chat_template_hash": template_hash(self.chat_template) or None,
        } | self._facts

    def _load(self, is_cancelled: threading.Event) -> LlamaServer:
        """Load the weights in a separate thread; raise DataError for unpublished ones.

        The file is read into memory first. While llama.cpp waits for the disk, it blocks the whole
        interpreter, so signals would not be handled.
        """
        settings = self.settings
        digest = weights.checksum(self.file.path, os.environ)
        published = weights.EMBEDDED
        if self.name == EMBEDDED and digest != published.sha256:
            raise DataError("llama_not_published", path=self.file.path, command=published.command)
        weights.read_ahead(self.file.path, is_cancelled.is_set)
        if is_cancelled.is_set():
            raise InterruptedError
        threads = settings.threads or available_cores()
        self._facts = {"sha256": digest, "threads": threads, "xllamacpp": runtime_version()}
        return LlamaServer(
            self.file.path,
            alias=self.name,
            context=self.context,
            slots=settings.slots,
            threads=threads,
            gpu_layers=settings.n_gpu_layers,
            chat_template=_read_template(settings.chat_template) or "",
            prefix_reuse=settings.prefix_reuse,
            flash_attention=settings.flash_attention,
        )

    # Text

    async def _generate(self, request: Request, timeout: float) -> Reply:
        """Return a text; every sampling setting is sent, so llama.cpp's defaults do not apply."""
        sampling, cued = request.sampling, bool(request.prompt.cue)
        # The sampling is kept together with its result, so no other object gets its id.
        entry = self._samplings.get((id(sampling), cued))
        if entry is None:
            if len(self._samplings) >= KEPT:
                self._samplings.clear()
            extra = {RENAMED.get(name, name): value for name, value in sampling.extra.items()}
            extra.pop(CONTINUE, None)
            turn = {CONTINUE: True, "add_generation_prompt": False} if cued else {}
            explicit_sampling = msgspec.structs.replace(
                sampling,
                temperature=1.0 if sampling.temperature is None else sampling.temperature,
                top_p=1.0 if sampling.top_p is None else sampling.top_p,
                extra=NEUTRAL | extra | turn,
            )
            entry = self._samplings[id(sampling), cued] = (sampling, explicit_sampling)
        explicit = msgspec.structs.replace(request, sampling=entry[1])
        body = self._bodies.build(explicit)
        reply = await self._reply(PATHS[sampling.form], body, explicit, timeout)
        # llama.cpp repeats the beginning of the turn that it was given to continue.
        text = reply.text.removeprefix(request.prompt.cue)
        return reply if text is reply.text else msgspec.structs.replace(reply, text=text)

    async def _reply(
        self,
        route: str,
        body: bytes,
        request: Request,
        timeout: float,
        tokens: LabelTokens | None = None,
    ) -> Reply:
        """Post a body; for a labels request only the `tokens` of the labels are kept."""
        started = perf_counter()
        reply = await self._post(f"/v1{route}", body, timeout)
        seconds = perf_counter() - started
        if reply.status == http.HTTPStatus.OK:
            content = reply.body if tokens is None else keep_label_logprobs(reply.body, tokens.ids)
            return normalise(content, request, seconds, _no_redaction)
        fault = refusal(reply.status, reply.body, reply.header, _no_redaction)
        if fault.kind == "context_length":
            error = msgspec.json.decode(reply.body).get("error", {})
            count, context = error.get("n_prompt_tokens", 0), error.get("n_ctx", 0)
            message = f"the prompt has {count} tokens and the context {context}"
            fault = Fault(fault.kind, f"{message}: raise model_args.n_ctx", fault.status)
        return Reply(seconds=seconds, error=fault)

    # Labels

    async def _score_labels(self, request: Request, timeout: float) -> Reply:
        """Return the log-probabilities of the labels, for any tokens that spell them after the
        prompt."""
        text = request.prompt.text
        if request.sampling.form == "chat":
            turns = [{"role": m.role, "content": m.content} for m in request.prompt.cued_messages]
            options = request.sampling.extra.get("chat_template_kwargs", {})
            fields = {"messages": turns} | ({"chat_template_kwargs": options} if options else {})
            text = (await self._call("/apply-template", fields, timeout))["prompt"]
        ending = text[-ENDING:]
        key = (ending, request.labels, request.sampling.label_lead or "")
        if key not in self._endings:
            if len(self._endings) >= KEPT:
                self._endings.clear()
            self._endings[key] = await find_label_tokens(
                ending,
                request.labels,
                lambda text: self.tokenize(text, timeout),
                lead=key[2],
                space=self.settings.label_space,
            )
        tokens = self._endings[key]
        if tokens is None:
            raise ValueError(
                "the tokenizer does not write the labels as one token each behind it; "
                "use decode 'generate'"
            )
        prompt: str | list[int] = text
        if tokens.cut or tokens.lead:
            ids = await self.tokenize(text, timeout, special=True)
            prompt = [*ids[: len(ids) - tokens.cut], *tokens.lead]
        sampling = msgspec.structs.replace(request.sampling, form="completion")
        completion = msgspec.structs.replace(request, sampling=sampling)
        for count in (FIRST_LOOK, self.file.vocabulary):
            fields = {"prompt": prompt, "max_tokens": 1, "temperature": 0.0, "logprobs": count}
            body = msgspec.json.encode(fields)
            reply = await self._reply(PATHS["completion"], body, completion, timeout, tokens)
            if reply.error or set(reply.label_logprobs or ()) == set(request.labels):
                break
        if reply.error is not None:
            return reply
        return msgspec.structs.replace(reply, label_ids=tokens.by_label())

    # Continuations

    async def _score_texts(self, request: Request, timeout: float) -> Reply:
        """Return the log-probabilities of given texts, each token by a short request."""
        started = perf_counter()
        if self._scorer is None:
            self._scorer = await self._make_scorer(timeout)
        reply = await self._scorer.score(request, timeout)
        return msgspec.structs.replace(reply, seconds=perf_counter() - started, model=self.name)

    async def _make_scorer(self, timeout: float) -> TokenScorer:
        """Return the scorer, which needs the token that begins a text."""
        assert self._server is not None
        reply = await self._transport.get(f"{self._server.address}/props", timeout)
        props = msgspec.json.decode(reply.body, type=_LlamaProps)
        start_text = props.bos_token or props.eos_token
        start = await self.tokenize(start_text, timeout) if start_text else []

        async def tokenize(text: str, special: bool, timeout: float) -> list[int]:
            has_start = bool(start_text) and text.startswith(start_text)
            return await self.tokenize(text, timeout, special=special and not has_start)

        # One token of the context is for the new token.
        length = props.settings.n_ctx - 1
        return TokenScorer(tokenize, self._next_token, start[0] if start else None, length)

    async def _next_token(self, prompt: list[int], token: int, timeout: float) -> NextToken | Fault:
        """Return the log-probability of one token after a prompt."""
        for count in (FIRST_LOOK, self.file.vocabulary):
            fields = {"prompt": prompt, "max_tokens": 1, "temperature": 0.0, "logprobs": count}
            reply = await self._post("/v1/completions", msgspec.json.encode(fields), timeout)
            if reply.status != http.HTTPStatus.OK:
                return refusal(reply.status, reply.body, reply.header, _no_redaction)
            document = msgspec.json.decode(reply.body, type=_LlamaLabelReply)
            tops = document.first_position
            values = {top.id: top.logprob for top in tops if top.logprob is not None}
            if token in values:
                return NextToken(values[token], values[token] >= max(values.values()))
        return Fault("malformed", "llama.cpp returned no log-probability of a token")

    async def tokenize(self, text: str, timeout: float, *, special: bool = False) -> list[int]:
        """Return the tokens of `text`; `special` adds the model's tokens at the beginning."""
        fields = {"content": text, "add_special": special, "parse_special": True}
        return list((await self._call("/tokenize", fields, timeout))["tokens"])

    async def _call(self, route: str, fields: dict[str, Any], timeout: float) -> Any:
        """Return the reply of a route of llama.cpp; raise ValueError if it refuses."""
        reply = await self._post(route, msgspec.json.encode(fields), timeout)
        document = msgspec.json.decode(reply.body)
        if reply.status != http.HTTPStatus.OK:
            raise ValueError(document.get("error", {}).get("message", f"status {reply.status}"))
        return document

    async def _post(self, route: str, body: bytes, timeout: float) -> HttpReply:
        assert self._server is not None
        return await self._transport.post(self._server.address + route, body, timeout)


# The parts of a labels reply that matter. Their types let the decoder skip the other parts, because
# such a reply may list every token of the vocabulary.


class _TopLogprob(msgspec.Struct):
    id: int
    logprob: float | None


class _LlamaPosition(msgspec.Struct):
    top_logprobs: list[_TopLogprob] = []


class _Logprobs(msgspec.Struct):
    content: list[_LlamaPosition] = []


class _LlamaChoice(msgspec.Struct):
    text: str | None = None
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None


class _LlamaLabelReply(msgspec.Struct):
    choices: list[_LlamaChoice] = []
    usage: dict[str, Any] | None = None
    model: str | None = None

    @property
    def first_position(self) -> list[_TopLogprob]:
        """The log-probabilities of the most likely tokens at the first position."""
        logprobs = self.choices[0].logprobs if self.choices else None
        positions = logprobs.content if logprobs is not None else []
        return positions[0].top_logprobs if positions else []


def keep_label_logprobs(body: bytes, ids: dict[int, str]) -> bytes:
    """Return `body` with the label tokens as its only log-probabilities, each under its label."""
    document = msgspec.json.decode(body, type=_LlamaLabelReply)
    if not document.choices:
        return body
    choice = document.choices[0]
    positions = choice.logprobs.content if choice.logprobs is not None else []
    tops = [
        {"token": ids[top.id], "logprob": top.logprob}
        for position in positions[:1]
        for top in position.top_logprobs
        if top.id in ids
    ]
    labelled = {
        "text": choice.text,
        "finish_reason": choice.finish_reason,
        "logprobs": {"content": [{"token": "", "top_logprobs": tops}]},
    }
    reply = {"choices": [labelled], "usage": document.usage, "model": document.model}
    return msgspec.json.encode(reply)


class _LlamaSlot(msgspec.Struct):
    n_ctx: int


class _LlamaProps(msgspec.Struct):
    """The recorded properties of a llama.cpp server."""

    settings: _LlamaSlot = msgspec.field(name="default_generation_settings")
    bos_token: str = ""
    eos_token: str = ""


def _read_template(setting: str | None) -> str | None:
    """Return a chat template from the text itself or from the file that it names."""
    if setting is None or "{" in setting:
        return setting
    try:
        return read_text(Path(setting).expanduser())
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or TranslatableText("not_a_text")
        raise ConfigError("llama_chat_template", setting=setting, problem=reason) from None
