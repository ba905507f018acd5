"""From the body of a reply to a `Reply`: one shape for what a dozen servers send."""

from __future__ import annotations

from typing import Any

import msgspec

from keju.answers.thinking import split_thinking
from keju.models.faults import Redactor, error_of, kind_of, one_line
from keju.models.labels import label_values
from keju.types import Fault, Reply, Request, Usage

FINISHES = {
    "max_tokens": "length",
    "model_length": "length",
    "MAX_TOKENS": "length",
    "eos": "stop",
    "eos_token": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
}
"""Other servers' words for OpenAI's finish reasons."""


class _Message(msgspec.Struct):
    content: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    refusal: Any = None
    tool_calls: list[dict[str, Any]] | None = None


class _Choice(msgspec.Struct):
    message: _Message | None = None
    text: str | None = None
    finish_reason: Any = None
    logprobs: Any = None


class _InputDetails(msgspec.Struct):
    cached_tokens: float | None = None


class _OutputDetails(msgspec.Struct):
    reasoning_tokens: float | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: float | None = None
    completion_tokens: float | None = None
    prompt_tokens_details: _InputDetails | None = None
    completion_tokens_details: _OutputDetails | None = None
    prompt_cache_hit_tokens: float | None = None
    """DeepSeek's name for cached input tokens."""


class _Body(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    model: str | None = None
    error: Any = None


_decode = msgspec.json.Decoder(_Body).decode


def normalise(body: bytes, request: Request, seconds: float, redact: Redactor) -> Reply:
    """Turn the body of a successful call into a reply; what cannot be used is a fault."""
    try:
        document = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return _fault(_malformed(body, error, redact), seconds)
    if not document.choices:
        return _fault(_no_choices(document, body, redact), seconds)
    choice = document.choices[0]
    finish = choice.finish_reason if isinstance(choice.finish_reason, str) else ""
    finish = FINISHES.get(finish, finish)
    message = choice.message
    received = _text(message.content) if message is not None else choice.text or ""
    if message is not None and not received and isinstance(message.refusal, str):
        received = message.refusal
    if finish == "content_filter" and not received:
        return _fault(Fault("content_filter", "the endpoint's filter withheld the reply"), seconds)
    thought = split_thinking(received)
    cut = thought.text is not received
    values, outside = None, None
    if request.sampling.decode == "labels":
        found = label_values(choice.logprobs, request)
        if found is None:
            fault = Fault("malformed", "the reply holds no log-probabilities")
            return _fault(fault, seconds)
        values, outside = found
    return Reply(
        text=thought.text,
        reasoning=_reasoning(message, thought.reasoning),
        finish=finish,
        usage=_usage(document.usage),
        seconds=seconds,
        label_logprobs=values,
        outside_mass=outside,
        model=document.model or "",
        raw=received if cut else "",
        tool_calls=tuple(message.tool_calls) if message is not None and message.tool_calls else (),
    )


def _fault(fault: Fault, seconds: float) -> Reply:
    return Reply(seconds=seconds, error=fault)


def _malformed(body: bytes, error: Exception, redact: Redactor) -> Fault:
    if isinstance(error, msgspec.ValidationError):
        return Fault("malformed", one_line(f"not an OpenAI-compatible reply: {error}"))
    start = body[:200].decode("utf-8", "replace")
    what = "an HTML page" if start.lstrip()[:1] == "<" else "not valid JSON"
    return Fault("malformed", one_line(redact(f"the reply is {what}, it begins: {start[:80]}")))


def _no_choices(document: _Body, body: bytes, redact: Redactor) -> Fault:
    """Some gateways report an error under status 200."""
    if document.error is None:
        lack = "no choices" if document.choices is None else "an empty list of choices"
        return Fault("malformed", f"the reply holds {lack}")
    message, code = error_of(body)
    status = document.error.get("code") if isinstance(document.error, dict) else None
    number = status if isinstance(status, int) and 400 <= status < 600 else 500
    return Fault(kind_of(number, message, code), one_line(redact(message)), number)


def _text(content: Any) -> str:
    """The text of a message: a string, null, or a list of parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = (p.get("text") for p in content if isinstance(p, dict) and p.get("type") == "text")
    return "".join(part for part in parts if isinstance(part, str))


def _reasoning(message: _Message | None, inline: str) -> str:
    if message is None:
        return inline
    named = message.reasoning_content or message.reasoning
    if not isinstance(named, str) or not named:
        return inline
    return f"{named}\n{inline}" if inline else named


def _usage(usage: _Usage | None) -> Usage:
    if usage is None:
        return Usage()
    cached = usage.prompt_cache_hit_tokens
    if usage.prompt_tokens_details is not None:
        cached = usage.prompt_tokens_details.cached_tokens or cached
    reasoning = None
    if usage.completion_tokens_details is not None:
        reasoning = usage.completion_tokens_details.reasoning_tokens
    return Usage(
        int(usage.prompt_tokens or 0),
        int(usage.completion_tokens or 0),
        int(cached or 0),
        int(reasoning or 0),
    )
