"""OpenAI's format: from a `Request` to a body, and from a body to a `Reply`.

All questions of a subset share their worked examples and sampling parameters, so this part of the
JSON is encoded once and kept. Only the question's own text is escaped per request: the escape of a
concatenation is the concatenation of the escapes. `keju.models.openai.conversation` encodes the
turns of a model with tools.

Every reply has been paid for, so an odd token count, a byte-order mark or half an emoji never costs
the answer. A slower, tolerant decoder reads what the fast decoder refuses, and every field is only
used if it has the right type.
"""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from typing import Any, Final

import msgspec

from keju.answers.segments import as_reply
from keju.config.task import RESERVED_FIELDS
from keju.errors import ConfigError
from keju.models.base import Redactor, error_of, kind_of, one_line, seed_of
from keju.models.labels import label_values, logprob_issue
from keju.models.openai.conversation import Conversation, native_message
from keju.types import (
    BROKEN_FINISHES,
    FILTERED,
    Fault,
    LogprobIssue,
    Prefix,
    Reply,
    Request,
    Sampling,
    Usage,
)

KEPT_PREFIXES = 256
"""More than the number of subsets of any exam. Older entries are dropped, which bounds the
memory."""
MOST_LABELS = 20
"""The number of log-probabilities to request: the limit of OpenAI's and vLLM's chat routes."""
FEWEST_LABELS = 5
"""The limit of OpenAI's completion route."""
FURTHER_LOOKS = (1_000, 1_000_000)
"""Numbers to request if no label was found. llama.cpp returns the whole vocabulary, other servers
refuse."""
CHAT_LABEL_TOKENS = 8
"""Token limit for a label after a mark or two, if a chat reply cannot be prefilled."""
MOST_DIGITS: Final = 1000
MOST_TOKENS: Final = 2**53
"""A larger count is invalid, and no journal could store it."""

FINISHES = {
    "max_tokens": "length",
    "model_length": "length",
    "max_length": "length",
    "eos": "stop",
    "eos_token": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "safety": FILTERED,
    "prohibited_content": FILTERED,
}
"""OpenAI's finish reasons for the words of other servers."""
TEXT_PARTS = ("text", "output_text")
"""Types of content parts that hold an answer."""
REFUSAL_PART = "refusal"
"""The type of a content part that holds a refusal, and its field."""
REASONING_PARTS = ("thinking", "reasoning")
"""Types of content parts of Anthropic and Mistral that hold reasoning."""

_SURROGATE = re.compile("[\ud800-\udfff]")
"""Half a character, as in the JSON text ``"\\ud83d"`` without its second half."""
_encode = msgspec.json.encode
_decode = msgspec.json.decode


def finish_of(word: Any) -> str:
    """Return why a reply ended, in OpenAI's words."""
    lower = word.lower() if isinstance(word, str) else ""
    return FINISHES.get(lower, lower)


HeadKey = tuple[int, int, int, str, int | None]
"""Prefix and sampling by id, the number of log-probabilities, the name and value of the limit."""


class BodyBuilder:
    """Builds the bodies of one model's requests."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._heads: dict[HeadKey, tuple[Prefix, Sampling, bytes]] = {}
        self._conversation: Conversation | None = None
        self.top_logprobs = MOST_LABELS
        """The number of log-probabilities that a labels request asks for."""
        self.further_looks: tuple[int, ...] = FURTHER_LOOKS
        """Larger numbers to request if no label was found; empty after the endpoint refused
        them."""
        self.limit_field = "max_tokens"
        """The name of the field that limits the reply's length."""
        self.default_limit: int | None = None
        """The limit of a text to continue if the settings name none; None to send no limit."""

    def build(self, request: Request, top: int = 0) -> bytes:
        """Return the JSON body of `request`: the shared part, its own text, the cue, the seed.

        `top` is the number of log-probabilities, if it differs from the default.
        """
        prompt, sampling, top = request.prompt, request.sampling, top or self.top_logprobs
        key = (id(prompt.prefix), id(sampling), top, self.limit_field, self.default_limit)
        # The objects are kept together with their head, so no other object gets their ids.
        entry = self._heads.get(key)
        if entry is None:
            if len(self._heads) >= KEPT_PREFIXES:
                del self._heads[next(iter(self._heads))]
            head = self._make_head(prompt.prefix, sampling, top)
            entry = self._heads[key] = (prompt.prefix, sampling, head)
        seed = seed_of(request)
        closing = b'"' if sampling.form == "completion" else b'"}]'
        if request.continues_cue and sampling.form == "chat":
            closing = b'"},{"role":"assistant","content":' + _encode(prompt.cue) + b"}]"
        end = b"}" if seed is None else b',"seed":%d}' % seed
        if request.turns or request.tools:
            self._conversation = conversation = self._conversation or Conversation()
            closing = conversation.after_prompt(request.turns) if request.turns else closing
            end = conversation.tool_fields(request) + end if request.tools else end
        return b"".join((entry[2], _encode(prompt.tail)[1:-1], closing, end))

    def _make_head(self, prefix: Prefix, sampling: Sampling, top: int) -> bytes:
        """Return the part of a body that all requests with this prefix share."""
        head = _encode({"model": self._model} | self.fields(sampling, top))[:-1]
        if sampling.form == "completion":
            head += b',"prompt":"'
        else:
            turns = b"".join(_encode(message) + b"," for message in prefix.messages)
            head += b',"messages":[' + turns + b'{"role":"user","content":"'
        return head + _encode(prefix.lead)[1:-1]

    def fields(self, sampling: Sampling, top: int = MOST_LABELS) -> dict[str, Any]:
        """Return the sampling part of a body, without the seed, which may differ by request."""
        fields: dict[str, Any] = {"temperature": sampling.temperature, "top_p": sampling.top_p}
        fields[self.limit_field] = sampling.max_tokens
        fields = {name: value for name, value in fields.items() if value is not None}
        if sampling.stop:
            fields["stop"] = list(sampling.stop)
        if sampling.decode == "labels":
            fields |= self._label_fields(sampling, top)
        elif sampling.form == "completion" and self.default_limit is not None:
            fields.setdefault(self.limit_field, self.default_limit)
        if "max_completion_tokens" in sampling.extra:
            fields.pop("max_tokens", None)
        return fields | {name: v for name, v in sampling.extra.items() if name != "seed"}

    def _label_fields(self, sampling: Sampling, top: int) -> dict[str, Any]:
        """Return the fields that request the log-probabilities of labels."""
        if sampling.form == "completion":
            return {self.limit_field: 1, "logprobs": top}
        room = 1 if sampling.extra.get("continue_final_message") else CHAT_LABEL_TOKENS
        return {self.limit_field: room, "logprobs": True, "top_logprobs": top}


def check_extra(sampling: Sampling) -> None:
    """Refuse body fields that belong to Keju; raise ConfigError."""
    for name in RESERVED_FIELDS:
        if name in sampling.extra:
            raise ConfigError("extra_body_own", name=name)


def normalise(
    body: bytes, request: Request, seconds: float, redact: Redactor, *, spaces: bool = False
) -> Reply:
    """Turn the body of a successful call into a reply, or a fault if it cannot be used.

    `spaces` says that the server writes the space before a token (see `label_values`).
    """
    try:
        document = document_of(body)
    except ValueError:
        return Reply(seconds=seconds, error=unreadable_fault(body, redact))
    choices = document.get("choices") if isinstance(document, dict) else ()
    if not isinstance(choices, list) or not choices or document.get("error"):
        return Reply(seconds=seconds, error=_missing_answer_fault(document, redact))
    choice = _first_choice(choices)
    finish = finish_of(choice.get("finish_reason"))
    content = _usable_content(choice, finish, redact)
    if isinstance(content, Fault):
        return Reply(seconds=seconds, error=content)
    text, reasoning, refused = content
    values, outside = None, None
    issue: LogprobIssue = ""
    if request.sampling.decode == "labels":
        label_shares = label_values(choice.get("logprobs"), request, spaces=spaces)
        if label_shares is None:
            fault = Fault("malformed", "the reply holds no log-probabilities")
            return Reply(seconds=seconds, error=fault)
        values, outside = label_shares
        issue = logprob_issue(choice.get("logprobs"))
    model = document.get("model")
    reply = as_reply(
        text,
        reasoning=(reasoning,) if reasoning else (),
        finish=finish,
        usage=_usage(document.get("usage")),
        seconds=seconds,
        label_logprobs=values,
        outside_mass=outside,
        logprob_issue=issue,
        choices=len(choices),
        model=model if isinstance(model, str) else "",
        refusal=refused,
    )
    calls = (choice.get("message") or {}).get("tool_calls") or ()
    if calls and isinstance(calls, list):
        usable = [call for call in calls if isinstance(call, dict) and _is_shallow(call)]
        reply = msgspec.structs.replace(reply, tool_calls=tuple(usable))
    if request.tools and len(reply.tool_calls) >= len(calls):
        return msgspec.structs.replace(reply, native=native_message(body, reply))
    return reply


def _usable_content(
    choice: dict[str, Any], finish: str, redact: Redactor
) -> tuple[str, str, str] | Fault:
    """Return the text, the reasoning and the refusal of a choice, or why it cannot be used."""
    if choice.get("error"):  # some routers report here an error after the beginning of the reply
        return _reported_fault(choice["error"], redact)
    if finish in BROKEN_FINISHES and (fault := Reply(finish=finish).fault):
        return fault
    content = _content(choice)
    if finish == FILTERED and not isinstance(content, Fault) and not content[0]:
        return Fault(FILTERED, "the endpoint's filter withheld the reply")
    return content


def unreadable_fault(body: bytes, redact: Redactor) -> Fault:
    """Return the fault of a body that is not JSON."""
    # redact before cutting, which could split a secret
    start = redact(body[:8192].decode("utf-8", "replace"))
    page = start.lstrip("\ufeff \t\r\n").startswith("<")
    kind_of_body = "an HTML page" if page else "not valid JSON"
    return Fault("malformed", one_line(f"the reply is {kind_of_body}, it begins: {start[:80]}"))


def _is_shallow(value: Any, levels: int = 100) -> bool:
    """Whether a value is nested shallowly enough for every program to store and read it."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels > 0 and all(_is_shallow(value, levels - 1) for value in inner)


def _first_choice(choices: list[Any]) -> dict[str, Any]:
    """Return the choice with index 0 at any place, or the first choice if none has an index."""
    objects = [choice for choice in choices if isinstance(choice, dict)]
    numbered = (choice for choice in objects if choice.get("index") == 0)
    return next(numbered, objects[0] if objects else {})


def document_of(body: bytes) -> Any:
    """Return any JSON that a server may send, with half characters replaced; raise ValueError if
    invalid."""
    try:
        return _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass  # decoded again by the tolerant decoder below

    def clean(value: Any) -> Any:
        if isinstance(value, str):
            return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", value)
        if isinstance(value, list):
            return [clean(element) for element in value]
        if isinstance(value, dict):
            return {clean(name): clean(element) for name, element in value.items()}
        return value

    try:
        text = body.removeprefix(BOM_UTF8).decode("utf-8", "surrogatepass")
        return clean(json.loads(text, parse_int=_integer))
    except RecursionError:
        raise ValueError("nested too deep") from None


def _integer(digits: str) -> int | float:
    """Return a whole number, or infinity for one longer than Python accepts (4,300 digits)."""
    return int(digits) if len(digits) < MOST_DIGITS else float("inf")


def _missing_answer_fault(document: Any, redact: Redactor) -> Fault:
    """Return the fault of a reply without an answer. Some gateways report an error as success."""
    if not isinstance(document, dict) or not isinstance(document.get("choices"), list | None):
        shape = "not an object" if not isinstance(document, dict) else "its choices are not a list"
        return Fault("malformed", f"not an OpenAI-compatible reply: {shape}")
    error = document.get("error")
    if error is None:
        missing_part = (
            "no choices" if document.get("choices") is None else "an empty list of choices"
        )
        return Fault("malformed", f"the reply holds {missing_part}")
    return _reported_fault(error, redact)


def _reported_fault(error: Any, redact: Redactor) -> Fault:
    """Return the fault for an error object in a reply with a status of success."""
    message, code = error_of(_encode({"error": error}))
    status = error.get("code") if isinstance(error, dict) else None
    number = status if isinstance(status, int) and 400 <= status < 600 else 500
    return Fault(kind_of(number, message, code), one_line(redact(message)), number)


def _content(choice: dict[str, Any]) -> tuple[str, str, str] | Fault:
    """Return the text, the reasoning and the refusal of a choice, or a fault for an unknown format.

    Formats are ``{"text": "B"}``, ``{"message": {"content": "B", "reasoning_content": "hm"}}`` and
    ``{"message": {"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text":
    "B"}]}}``.
    """
    message = choice.get("message")
    if not isinstance(message, dict):
        text = choice.get("text") if message is None else None
        if isinstance(text, str):
            return text, "", ""
        return Fault("malformed", "the reply holds neither a message nor a text")
    content, refused = message.get("content"), message.get("refusal")
    thoughts: list[str] = []
    refusals = [refused] if isinstance(refused, str) else []
    if isinstance(content, list) and content:
        texts = _read_parts(content, thoughts, refusals)
        content = "".join(texts) if texts or thoughts or refusals else content
    elif content is None or content == []:
        content = ""
    if not isinstance(content, str):
        problem = "the reply's content is neither a text nor parts of a known type"
        return Fault("malformed", problem)
    named_reasoning = message.get("reasoning_content") or message.get("reasoning")
    if isinstance(named_reasoning, str):
        thoughts.insert(0, named_reasoning)
    reasoning = "\n".join(filter(None, thoughts)) if thoughts else ""
    return content, reasoning, "\n".join(filter(None, refusals))


def _read_parts(parts: list[Any], thoughts: list[str], refusals: list[str]) -> list[str]:
    """Return the texts in a list of parts; add its reasoning and refusals to the lists."""
    texts: list[str] = []
    for part in parts:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind in REASONING_PARTS:
            fields = (kind, "text", "content", "summary")
            thought = _plain(next((part[name] for name in fields if part.get(name)), ""))
            thoughts += () if thought is None else (thought,)
        elif kind in TEXT_PARTS:
            text = _plain(part.get("text"))
            texts += () if text is None else (text,)
        elif kind == REFUSAL_PART:
            refusals.append(_plain(part.get(REFUSAL_PART)) or "")
    return texts


def _plain(value: Any) -> str | None:
    """Return a text, or the texts of a list of parts, as Mistral nests them."""
    if isinstance(value, list):
        return "".join(_plain(p.get("text")) or "" for p in value if isinstance(p, dict))
    return value if isinstance(value, str) else None


def _usage(usage: Any) -> Usage:
    """Return the token counts of a reply; missing ones are 0."""
    if not isinstance(usage, dict):
        return Usage()
    inputs, outputs = usage.get("prompt_tokens_details"), usage.get("completion_tokens_details")
    cached = inputs.get("cached_tokens") if isinstance(inputs, dict) else None
    reasoning = outputs.get("reasoning_tokens") if isinstance(outputs, dict) else None
    return Usage(
        token_count(usage.get("prompt_tokens")),
        token_count(usage.get("completion_tokens")),
        token_count(cached or usage.get("prompt_cache_hit_tokens")),  # DeepSeek's name
        token_count(reasoning),
    )


def token_count(value: Any) -> int:
    """Return a number of tokens, also from a text; 0 if it is impossible."""
    if value is None or type(value) is int:
        return value if value and 0 < value < MOST_TOKENS else 0
    try:
        number = float(value) if isinstance(value, float | str) else 0.0
    except ValueError:
        return 0
    return int(number) if 0 < number < MOST_TOKENS else 0
