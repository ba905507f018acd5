"""From the body of a reply to a `Reply`: one shape for what a dozen servers send."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from keju.answers.thinking import as_reply
from keju.models.faults import Redactor, error_of, kind_of, one_line
from keju.models.labels import label_values
from keju.models.reply_body import Body, Choice, TokenCounts, count, decode_body
from keju.types import FILTERED, Fault, Reply, Request, Usage

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


TEXT_PARTS = ("text", "output_text")
REFUSAL_PART = "refusal"
REASONING_PARTS = ("thinking", "reasoning")
"""Types of content parts: OpenAI's two routes, and Anthropic's and Mistral's for reasoning."""


class _Content(NamedTuple):
    """What a message says, apart from what it thought."""

    text: str
    reasoning: str = ""


def normalise(body: bytes, request: Request, seconds: float, redact: Redactor) -> Reply:
    """Turn the body of a successful call into a reply; what cannot be used is a fault."""
    try:
        document = decode_body(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return _fault(_malformed(body, error, redact), seconds)
    if not document.choices:
        return _fault(_no_choices(document, body, redact), seconds)
    choice = document.choices[0]
    content = _content(choice)
    if isinstance(content, Fault):
        return _fault(content, seconds)
    finish = choice.finish_reason if isinstance(choice.finish_reason, str) else ""
    finish = FINISHES.get(finish, finish)
    if finish == FILTERED and not content.text:
        return _fault(Fault(FILTERED, "the endpoint's filter withheld the reply"), seconds)
    values, outside = None, None
    if request.sampling.decode == "labels":
        found = label_values(choice.logprobs, request)
        if found is None:
            fault = Fault("malformed", "the reply holds no log-probabilities")
            return _fault(fault, seconds)
        values, outside = found
    message = choice.message
    return as_reply(
        content.text,
        reasoning=(content.reasoning,),
        finish=finish,
        usage=_usage(document.usage),
        seconds=seconds,
        label_logprobs=values,
        outside_mass=outside,
        model=document.model or "",
        tool_calls=tuple(message.tool_calls) if message is not None and message.tool_calls else (),
    )


def _fault(fault: Fault, seconds: float) -> Reply:
    return Reply(seconds=seconds, error=fault)


def _malformed(body: bytes, error: Exception, redact: Redactor) -> Fault:
    if isinstance(error, msgspec.ValidationError):
        return Fault("malformed", one_line(f"not an OpenAI-compatible reply: {error}"))
    start = body[:200].decode("utf-8", "replace")
    what = "an HTML page" if start.lstrip("\ufeff \t\r\n")[:1] == "<" else "not valid JSON"
    return Fault("malformed", one_line(redact(f"the reply is {what}, it begins: {start[:80]}")))


def _no_choices(document: Body, body: bytes, redact: Redactor) -> Fault:
    """Some gateways report an error under status 200."""
    if document.error is None:
        lack = "no choices" if document.choices is None else "an empty list of choices"
        return Fault("malformed", f"the reply holds {lack}")
    message, code = error_of(body)
    status = document.error.get("code") if isinstance(document.error, dict) else None
    number = status if isinstance(status, int) and 400 <= status < 600 else 500
    return Fault(kind_of(number, message, code), one_line(redact(message)), number)


def _content(choice: Choice) -> _Content | Fault:
    """The text of a choice: of its message, or else its own; what holds none is malformed."""
    message = choice.message
    if message is None:
        if choice.text is None:
            return Fault("malformed", "the reply holds neither a message nor a text")
        return _Content(choice.text)
    said = _said(message.content)
    if said is None:
        return Fault("malformed", "the reply's content is neither a text nor parts of a known type")
    if not said.text and isinstance(message.refusal, str):
        said = said._replace(text=message.refusal)
    named = message.reasoning_content or message.reasoning
    if isinstance(named, str) and named:
        said = said._replace(reasoning=_together(named, said.reasoning))
    return said


def _said(content: Any) -> _Content | None:
    """The text and the reasoning of a message's content; None where it is of no known shape."""
    if isinstance(content, str):
        return _Content(content)
    if not content and isinstance(content, list | None):
        return _Content("")
    if not isinstance(content, list):
        return None
    texts: list[str] = []
    thoughts: list[str] = []
    for part in content:
        kind, text = _part(part)
        if text is not None:
            (thoughts if kind in REASONING_PARTS else texts).append(text)
    if not texts and not thoughts:
        return None
    return _Content("".join(texts), "\n".join(filter(None, thoughts)))


def _part(part: Any) -> tuple[str, str | None]:
    """The type and the text of one part; no text where the type is not known."""
    if not isinstance(part, dict):
        return "", None
    kind = part.get("type")
    if kind in TEXT_PARTS:
        return kind, _plain(part.get("text"))
    if kind == REFUSAL_PART:
        return kind, _plain(part.get("refusal"))
    if kind in REASONING_PARTS:
        named = (part[name] for name in (kind, "text", "content", "summary") if part.get(name))
        return kind, _plain(next(named, ""))
    return "", None


def _plain(value: Any) -> str | None:
    """A text, or the texts of a list of parts, as Mistral nests them."""
    if isinstance(value, list):
        return "".join(_plain(p.get("text")) or "" for p in value if isinstance(p, dict))
    return value if isinstance(value, str) else None


def _together(first: str, second: str) -> str:
    return f"{first}\n{second}" if first and second else first or second


def _usage(usage: TokenCounts | None) -> Usage:
    if usage is None:
        return Usage()
    cached = usage.prompt_cache_hit_tokens
    if usage.prompt_tokens_details is not None:
        cached = usage.prompt_tokens_details.cached_tokens or cached
    reasoning = None
    if usage.completion_tokens_details is not None:
        reasoning = usage.completion_tokens_details.reasoning_tokens
    return Usage(
        count(usage.prompt_tokens),
        count(usage.completion_tokens),
        count(cached),
        count(reasoning),
    )
