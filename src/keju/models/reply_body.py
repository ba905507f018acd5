"""The body of a reply, decoded: fast where it is as published, patiently where it is not.

A reply has been paid for, so that an odd token count, a byte-order mark or half an emoji never
costs the answer: what the fast decoder refuses is read again, field by field.
"""

from __future__ import annotations

import json
import math
import re
from codecs import BOM_UTF8
from typing import Any, Final

import msgspec

REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
MOST_TOKENS: Final = 2**53
"""A larger count is no count, and no journal could hold it."""
_SURROGATE = re.compile("[\ud800-\udfff]")


class Message(msgspec.Struct):
    """A turn of the assistant; what a field holds is judged by whoever uses it."""

    content: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    refusal: Any = None
    tool_calls: list[dict[str, Any]] | None = None


class Choice(msgspec.Struct):
    """One answer of the model: a message of a chat, or a text."""

    message: Message | None = None
    text: str | None = None
    finish_reason: Any = None
    logprobs: Any = None


class InputDetails(msgspec.Struct):
    """Where the input tokens came from."""

    cached_tokens: float | None = None


class OutputDetails(msgspec.Struct):
    """What the output tokens were for."""

    reasoning_tokens: float | None = None


class TokenCounts(msgspec.Struct):
    """Tokens as the endpoint counted them."""

    prompt_tokens: float | None = None
    completion_tokens: float | None = None
    prompt_tokens_details: InputDetails | None = None
    completion_tokens_details: OutputDetails | None = None
    prompt_cache_hit_tokens: float | None = None
    """DeepSeek's name for cached input tokens."""


class Body(msgspec.Struct):
    """What Keju uses of a reply."""

    choices: list[Choice] | None = None
    usage: TokenCounts | None = None
    model: str | None = None
    error: Any = None


_decode = msgspec.json.Decoder(Body).decode
_FAILURES = (msgspec.DecodeError, UnicodeDecodeError)


def decode_body(body: bytes) -> Body:
    """Decode a reply; raises what `msgspec` raised if it is no reply even with patience."""
    try:
        return _decode(body)
    except _FAILURES as error:
        try:
            return _patiently(read_json(body))
        except (ValueError, RecursionError):
            raise error from None


def read_json(body: bytes) -> Any:
    """Any JSON that a server may send, with half characters replaced; ValueError if it is none."""
    text = body.removeprefix(BOM_UTF8).decode("utf-8", "surrogatepass")
    document = json.loads(text)
    return _without_surrogates(document)


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATE.sub(REPLACEMENT, value)
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_without_surrogates(k): _without_surrogates(v) for k, v in value.items()}
    return value


def _patiently(document: Any) -> Body:
    """Take what is usable of a reply; ValueError where that is not even a list of choices."""
    if not isinstance(document, dict):
        raise ValueError("not an object")
    choices, model = document.get("choices"), document.get("model")
    if not isinstance(choices, list | None):
        raise ValueError("choices are no list")
    return Body(
        choices=choices and [_choice(choices[0])],
        usage=_counts(document.get("usage")),
        model=model if isinstance(model, str) else None,
        error=document.get("error"),
    )


def _choice(choice: Any) -> Choice:
    if not isinstance(choice, dict):
        raise ValueError("a choice is no object")
    message, text = choice.get("message"), choice.get("text")
    if not isinstance(message, dict | None) or not isinstance(text, str | None):
        raise ValueError("a choice holds neither a message nor a text")
    return Choice(
        message=None if message is None else _message(message),
        text=text,
        finish_reason=choice.get("finish_reason"),
        logprobs=choice.get("logprobs"),
    )


def _message(message: dict[str, Any]) -> Message:
    calls = message.get("tool_calls")
    known = {name: message.get(name) for name in Message.__struct_fields__ if name != "tool_calls"}
    listed = [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    return Message(**known, tool_calls=listed)


def _counts(usage: Any) -> TokenCounts | None:
    if not isinstance(usage, dict):
        return None
    inputs, outputs = (
        details if isinstance(details, dict) else {}
        for details in map(usage.get, ("prompt_tokens_details", "completion_tokens_details"))
    )
    return TokenCounts(
        prompt_tokens=_number(usage.get("prompt_tokens")),
        completion_tokens=_number(usage.get("completion_tokens")),
        prompt_tokens_details=InputDetails(_number(inputs.get("cached_tokens"))),
        completion_tokens_details=OutputDetails(_number(outputs.get("reasoning_tokens"))),
        prompt_cache_hit_tokens=_number(usage.get("prompt_cache_hit_tokens")),
    )


def _number(value: Any) -> float | None:
    """A count that a server may have written as a text."""
    try:
        plain = isinstance(value, int | float | str) and not isinstance(value, bool)
        number = float(value) if plain else math.nan
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def count(value: float | None) -> int:
    """A number of tokens; 0 where the endpoint tells none that could be true."""
    return int(value) if value and 0 < value < MOST_TOKENS else 0
