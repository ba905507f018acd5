"""From a request to the calls that llama.cpp is made to answer it, and back to one reply.

Bodies and replies take the same way as those of an endpoint (`BodyBuilder`, `normalise`), so a
model in this process and one behind HTTP are read alike. Labels are asked for at the one
position behind the prompt, in a conversation too: its turns are written out first.
"""

from __future__ import annotations

import threading
from http.client import HTTPException
from time import perf_counter
from typing import Any

import msgspec

from keju.errors import ConfigError, did_you_mean
from keju.models.faults import Redactor, one_line
from keju.models.label_tokens import ENDING, LabelTokens, find_label_tokens
from keju.models.llama import LlamaServer
from keju.models.openai.wire import BodyBuilder, check_extra, normalise
from keju.types import Fault, Reply, Request, Sampling

FIRST_LOOK = 256
"""Likeliest tokens that are asked for; where a label is not among them, all are."""
KEPT = 4096
"""Endings of prompts and samplings that are remembered before all are forgotten."""
NEUTRAL = {"top_k": 0, "min_p": 0.0}
"""Without these llama.cpp would cut the distribution where nobody asked for it."""
CONTINUE = "continue_final_message"
"""What endpoints must be asked for and what is always done here where a prompt has a cue."""
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

_nothing = Redactor(())


class _Delta(msgspec.Struct):
    content: str | None = None
    reasoning_content: str | None = None


class _Top(msgspec.Struct):
    id: int
    logprob: float | None


class _Position(msgspec.Struct):
    top_logprobs: list[_Top] = []


class _Logprobs(msgspec.Struct):
    content: list[_Position] = []


class _Choice(msgspec.Struct):
    text: str | None = None
    delta: _Delta | None = None
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None


class _Error(msgspec.Struct):
    n_prompt_tokens: int = 0
    n_ctx: int = 0


class _Chunk(msgspec.Struct):
    choices: list[_Choice] = []
    usage: dict[str, Any] | None = None
    model: str | None = None
    error: _Error | None = None


_decode = msgspec.json.Decoder(_Chunk).decode


def check_extra_fields(sampling: Sampling) -> None:
    """Refuse body fields that belong to Keju or that llama.cpp would ignore; ConfigError."""
    check_extra(sampling)
    for name in sampling.extra:
        if name not in FIELDS:
            hint = did_you_mean(name, FIELDS)
            raise ConfigError(f"generation_config: llama.cpp does not take '{name}'{hint}")


class Caller:
    """Answers requests, each in the thread that asks."""

    def __init__(
        self, server: LlamaServer, name: str, vocabulary: int, *, space: bool = False
    ) -> None:
        self._server = server
        self._vocabulary = vocabulary
        self._space = space
        self._bodies = BodyBuilder(name)
        self._building = threading.Lock()
        self._samplings: dict[tuple[int, bool], tuple[Sampling, Sampling]] = {}
        self._endings: dict[tuple[str, str], LabelTokens | None] = {}

    def answer(self, request: Request, stop: threading.Event) -> Reply:
        """Make one attempt; what goes wrong is a fault."""
        started = perf_counter()
        ids: dict[str, list[int]] | None = None
        try:
            if request.sampling.decode == "labels":
                body, asked, ids = self._choose(request, stop)
            else:
                body, asked = self._write(request, stop)
        except ValueError as error:
            fault = Fault("bad_request", one_line(f"the prompt is refused: {error}"))
            return Reply(seconds=perf_counter() - started, error=fault)
        except (OSError, HTTPException) as error:
            fault = Fault("server", one_line(f"the tokenizer does not answer: {error!r}"))
            return Reply(seconds=perf_counter() - started, error=fault)
        reply = normalise(body, asked, perf_counter() - started, _nothing)
        if reply.error is None:
            return msgspec.structs.replace(reply, label_ids=ids) if ids else reply
        if reply.error.kind == "context_length":
            return msgspec.structs.replace(reply, error=_too_long(body, reply.error))
        return reply

    # Text

    def _write(self, request: Request, stop: threading.Event) -> tuple[bytes, Request]:
        """The body of a reply, and the request that it answers."""
        with self._building:
            asked = self._streamed(request)
            built = self._bodies.build(asked)
        return joined(self._server.complete(asked.sampling.form, built, stop)), asked

    def _streamed(self, request: Request) -> Request:
        """`request` as it is sent: in chunks, and with everything named that decides."""
        given, cued = request.sampling, bool(request.prompt.cue)
        kept = self._samplings.get((id(given), cued))
        if kept is None:
            if len(self._samplings) >= KEPT:
                self._samplings.clear()
            kept = self._samplings[id(given), cued] = (given, _explicit(given, cued=cued))
        return msgspec.structs.replace(request, sampling=kept[1])

    # Labels

    def _choose(
        self, request: Request, stop: threading.Event
    ) -> tuple[bytes, Request, dict[str, list[int]]]:
        """The body of a reply that holds the labels alone, the request it answers, and the ids."""
        text = self._written(request)
        tokens = self._label_tokens(text[-ENDING:], request.labels)
        if tokens is None:
            raise ValueError(
                "the tokenizer does not write the labels as one token each behind it; "
                "use decode 'generate'"
            )
        prompt: str | list[int] = text
        if tokens.cut:
            prompt = self._server.tokenize(text, special=True)[: -tokens.cut]
        sampling = msgspec.structs.replace(request.sampling, form="completion")
        asked = msgspec.structs.replace(request, sampling=sampling)
        for count in (FIRST_LOOK, self._vocabulary):
            fields = {"prompt": prompt, "max_tokens": 1, "temperature": 0.0, "logprobs": count}
            chunks = self._server.complete("completion", msgspec.json.encode(fields), stop)
            body, found = labels_alone(b"".join(chunks[:1]), tokens.ids)
            if found is None or found == set(request.labels) or stop.is_set():
                break
        return body, asked, tokens.by_label()

    def _written(self, request: Request) -> str:
        """The whole text that the model continues."""
        if request.sampling.form == "completion":
            return request.prompt.text
        turns = [{"role": m.role, "content": m.content} for m in request.prompt.cued_messages]
        return self._server.render(turns, request.sampling.extra.get("chat_template_kwargs", {}))

    def _label_tokens(self, ending: str, labels: str) -> LabelTokens | None:
        key = (ending, labels)
        if key not in self._endings:
            if len(self._endings) >= KEPT:
                self._endings.clear()
            self._endings[key] = find_label_tokens(ending, labels, self._tokens, space=self._space)
        return self._endings[key]

    def _tokens(self, text: str) -> list[int]:
        return self._server.tokenize(text, special=False)


def joined(chunks: list[bytes]) -> bytes:
    """The chunks of a stream as the body of one reply; an error stays as it is."""
    content: list[str] = []
    reasoning: list[str] = []
    usage: dict[str, Any] | None = None
    finish, model, chat = "", "", False
    for raw in chunks:
        chunk = _decode(raw)
        if chunk.error is not None:
            return raw
        model, usage = chunk.model or model, chunk.usage or usage
        for choice in chunk.choices:
            finish = choice.finish_reason or finish
            content.append(choice.text or "")
            if choice.delta is not None:
                chat = True
                content.append(choice.delta.content or "")
                reasoning.append(choice.delta.reasoning_content or "")
    text = "".join(content)
    said: dict[str, Any] = {"text": text}
    if chat:
        said = {"message": {"content": text, "reasoning_content": "".join(reasoning)}}
    choices = [said | {"finish_reason": finish}]
    return msgspec.json.encode({"choices": choices, "usage": usage, "model": model})


def labels_alone(body: bytes, ids: dict[int, str]) -> tuple[bytes, set[str] | None]:
    """`body` with the label tokens as its only log-probabilities, and the labels it holds.

    None instead of labels where the reply is an error.
    """
    if not body:
        return b"{}", None
    document = _decode(body)
    if document.error is not None or not document.choices:
        return body, None
    choice = document.choices[0]
    positions = choice.logprobs.content if choice.logprobs is not None else []
    tops = [
        {"token": ids[top.id], "logprob": top.logprob}
        for position in positions[:1]
        for top in position.top_logprobs
        if top.id in ids
    ]
    kept = {
        "text": choice.text,
        "finish_reason": choice.finish_reason,
        "logprobs": {"content": [{"token": "", "top_logprobs": tops}]},
    }
    reply = {"choices": [kept], "usage": document.usage, "model": document.model}
    return msgspec.json.encode(reply), {str(top["token"]) for top in tops}


def _explicit(sampling: Sampling, *, cued: bool) -> Sampling:
    """`sampling` with nothing left to the defaults of llama.cpp."""
    given = {RENAMED.get(name, name): value for name, value in sampling.extra.items()}
    given.pop(CONTINUE, None)
    streaming: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
    if cued:
        streaming |= {CONTINUE: True, "add_generation_prompt": False}
    return msgspec.structs.replace(
        sampling,
        temperature=1.0 if sampling.temperature is None else sampling.temperature,
        top_p=1.0 if sampling.top_p is None else sampling.top_p,
        extra=NEUTRAL | given | streaming,
    )


def _too_long(body: bytes, fault: Fault) -> Fault:
    """Say in Keju's own words what to change."""
    error = _decode(body).error or _Error()
    message = (
        f"the prompt has {error.n_prompt_tokens} tokens and the context {error.n_ctx}: "
        "raise model_args.n_ctx"
    )
    return Fault(fault.kind, message, fault.status)
