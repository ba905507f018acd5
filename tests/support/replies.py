"""What the endpoint of the tests says: bodies of chat completions, completions and errors."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

ANSWER_LETTERS = "ABCDEF"


@dataclass(frozen=True)
class EndpointRequest:
    """One request as the endpoint understood it."""

    route: Literal["chat", "completion"]
    body: dict[str, Any]
    key: str
    """Hash of the prompt, see `prompt_key`."""

    @property
    def text(self) -> str:
        """The last user message, or the text to continue."""
        if self.route == "completion":
            return str(self.body.get("prompt", ""))
        users = [m for m in self.body.get("messages", []) if m.get("role") == "user"]
        return str(users[-1]["content"]) if users else ""


@dataclass(frozen=True, kw_only=True)
class Raw:
    """Bytes that go over the wire as they are, in place of a reply."""

    data: bytes
    then: Literal["keep", "close", "abort"] = "close"
    """What becomes of the connection afterwards; ``keep`` leaves it open and silent."""
    delay: float = 0.0
    """Seconds before the first byte."""
    pieces: int = 1
    """In how many pieces they are sent, a hundredth of a second apart."""
    rest: bytes = b""
    """What follows for ever, as fast as the client reads."""


Answerer = Callable[[EndpointRequest], "str | dict[str, Any]"]
"""Gives the text of the reply, or the whole ``message`` (or ``choice``) to send."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How the endpoint behaves."""

    answers: Answerer | Mapping[str, str] | str | None = None
    """A callable, a mapping from `prompt_key` to text, or one text; letters by hash by default."""
    faults: Mapping[str, float] = field(default_factory=dict)
    """Share of attempts by fault: a status such as ``429``, or drop, partial, malformed, html,
    stall, empty, null."""
    first_faults: tuple[str, ...] = ()
    """Faults of the first attempts at every prompt, in order; the shares apply afterwards."""
    seed: int = 0
    key: str | None = None
    """The only key that is accepted."""
    models: tuple[str, ...] = ()
    """The models that exist; any name if there are none."""
    latency: float | Mapping[float, float] = 0.0
    """Seconds, or seconds to share of prompts."""
    stall: float = 30.0
    """Seconds for which a stalled request hangs before its connection is closed."""
    retry_after: str | None = None
    """The Retry-After header of 429 and 503."""
    logprobs: Literal["openai", "llamacpp", "refused", "missing"] = "openai"
    max_logprobs: int = 20
    tokens: Callable[[EndpointRequest], dict[str, float]] | None = None
    """Log-probabilities of the first token; the labels by hash by default."""
    min_max_tokens: int = 0
    """Smaller ``max_tokens`` are refused, as some reasoning models do."""
    unsupported: tuple[str, ...] = ()
    """Body fields that are refused."""
    context: int | None = None
    """Longer prompts, in characters, are refused."""
    redirect: str | None = None
    """Where every call is redirected to."""
    max_requests: int | None = None
    """Every later call is answered 503."""
    raw: Callable[[EndpointRequest, int], Raw | None] | None = None
    """Bytes in place of the reply to an attempt (from 0) at a prompt; None for a good reply."""
    usage: Mapping[str, int] | None = None
    """The ``usage`` of every reply, empty for none; counted from the texts by default."""
    model_name: str | None = None
    """The model name in replies; the one asked for by default."""
    choices: int = 1
    """How many choices every reply has; all but the first say something else."""
    prompt_cap: int | None = None
    """The most tokens of a prompt that are read, and counted."""
    echo: Literal["", "texts", "tokens", "single"] = ""
    """Whether completions with ``echo`` hold the log-probabilities of the prompt: of several prompts
    at once, with a route ``/tokenize``, or of one prompt at a time."""
    default_max_tokens: int | None = None
    """Where replies end if the request has no limit, as on many completion routes."""


def prompt_key(prompt: Any) -> str:
    """Hash of a list of messages or of a text to continue."""
    raw = prompt.encode() if isinstance(prompt, str) else msgspec.json.encode(prompt)
    return hashlib.sha256(raw).hexdigest()[:16]


def draw(*parts: object) -> float:
    """A number in [0, 1) that depends on nothing but `parts`."""
    digest = hashlib.sha256("\0".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


def pick(shares: Mapping[Any, float], value: float) -> Any:
    """The entry of `shares` that `value` in [0, 1) falls into, or None beyond their sum."""
    for name, share in shares.items():
        if value < share:
            return name
        value -= share
    return None


def latency_of(plan: Plan, key: str) -> float:
    """Seconds this prompt takes."""
    if isinstance(plan.latency, int | float):
        return plan.latency
    return float(pick(plan.latency, draw(plan.seed, key, "latency")) or 0.0)


def error_body(status: int, message: str, code: str | None = None) -> bytes:
    """An error in OpenAI's shape."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    return msgspec.json.encode(
        {"error": {"message": message, "type": kind, "param": None, "code": code}}
    )


def refusal(plan: Plan, request: EndpointRequest, authorization: str) -> tuple[int, bytes] | None:
    """The client's own mistakes, which are answered before any fault is drawn."""
    if plan.key is not None and authorization != f"Bearer {plan.key}":
        used_key = authorization.removeprefix("Bearer ")
        message = f"Incorrect API key provided: {used_key}. You can find your key in the console."
        return 401, error_body(401, message, "invalid_api_key")
    model = request.body.get("model")
    if plan.models and model not in plan.models:
        message = f"The model `{model}` does not exist"
        return 404, error_body(404, message, "model_not_found")
    for name in plan.unsupported:
        if name in request.body:
            message = f"Unsupported parameter: '{name}'."
            if name == "max_tokens":
                message += " Use 'max_completion_tokens' instead."
            return 400, error_body(400, message, "unsupported_parameter")
    if plan.echo == "single" and isinstance(request.body.get("prompt"), list):
        return 400, error_body(400, "prompt must be a string")
    max_tokens = request.body.get("max_tokens")
    if max_tokens is not None and max_tokens < plan.min_max_tokens:
        message = f"max_tokens must be at least {plan.min_max_tokens}, got {max_tokens}"
        return 400, error_body(400, message)
    length = len(request.text)
    if plan.echo and isinstance(prompts := request.body.get("prompt"), list):
        length = 1 + max(len(prompt) for prompt in prompts)  # tokens, and the new one
    if plan.context is not None and length > plan.context:
        message = f"This model's maximum context length is {plan.context} tokens."
        return 400, error_body(400, message, "context_length_exceeded")
    return _logprobs_refusal(plan, request)


def _logprobs_refusal(plan: Plan, request: EndpointRequest) -> tuple[int, bytes] | None:
    logprob_count = _wanted_logprobs(request)
    if logprob_count and plan.logprobs == "refused":
        return 400, error_body(400, "logprobs are not supported by this model")
    if logprob_count > plan.max_logprobs:
        message = f"top logprobs must be at most {plan.max_logprobs}, got {logprob_count}"
        return 400, error_body(400, message)
    return None


def _wanted_logprobs(request: EndpointRequest) -> int:
    if request.route == "completion":
        return int(request.body.get("logprobs") or 0)
    return int(request.body.get("top_logprobs") or 0) if request.body.get("logprobs") else 0


def answer(plan: Plan, request: EndpointRequest) -> bytes:
    """The body of a good reply."""
    if plan.echo and request.body.get("echo"):
        from tests.support.echo import echo_choices

        choices = echo_choices(plan, request)
        usage = {"prompt_tokens": sum(len(c["logprobs"]["tokens"]) - 1 for c in choices)}
        model = plan.model_name or request.body.get("model")
        return msgspec.json.encode({"model": model, "choices": choices, "usage": usage})
    content = _content(plan, request)
    choice: dict[str, Any] = {"index": 0, "finish_reason": "stop"}
    if request.route == "completion":
        choice |= content if isinstance(content, dict) else {"text": content}
    elif isinstance(content, dict) and "message" in content:
        choice |= content
    else:
        message = content if isinstance(content, dict) else {"content": content}
        choice["message"] = {"role": "assistant"} | message
    logprob_count = _wanted_logprobs(request)
    if logprob_count and plan.logprobs != "missing":
        choice["logprobs"] = _logprobs(plan, request, logprob_count)
    completion_tokens = len(content) // 4 if isinstance(content, str) else 1
    limit = int(request.body.get("max_tokens") or plan.default_max_tokens or 0)
    if plan.default_max_tokens and isinstance(content, str) and limit < completion_tokens:
        cut, completion_tokens = content[: 4 * limit], limit
        choice["finish_reason"] = "length"
        choice |= {"text": cut} if request.route == "completion" else {"message": {"content": cut}}
    prompt_tokens = len(request.text) // 4
    if plan.prompt_cap is not None:
        prompt_tokens = min(prompt_tokens, plan.prompt_cap)
    further_choices = [
        {"index": n, "finish_reason": "stop", "text": "?", "message": {"content": "?"}}
        for n in range(1, plan.choices)
    ]
    document = {
        "id": f"reply-{request.key}",
        "object": "chat.completion" if request.route == "chat" else "text_completion",
        "created": 0,
        "model": plan.model_name or request.body.get("model"),
        "choices": [choice, *further_choices],
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
        },
    }
    if plan.usage is not None:
        document["usage"] = dict(plan.usage) or None
    return msgspec.json.encode(document)


def _content(plan: Plan, request: EndpointRequest) -> str | dict[str, Any]:
    if callable(plan.answers):
        return plan.answers(request)
    if isinstance(plan.answers, str):
        return plan.answers
    if plan.answers is not None and request.key in plan.answers:
        return plan.answers[request.key]
    letter = ANSWER_LETTERS[int(request.key, 16) % len(ANSWER_LETTERS)]
    return f"Let's think step by step. So the answer is ({letter})."


def _logprobs(plan: Plan, request: EndpointRequest, count: int) -> dict[str, Any]:
    tokens = plan.tokens(request) if plan.tokens is not None else _label_tokens(request)
    ranked = sorted(tokens.items(), key=lambda item: -item[1])[:count]
    likeliest = ranked[0]
    if request.route == "completion" and plan.logprobs == "openai":
        return {
            "tokens": [likeliest[0]],
            "token_logprobs": [likeliest[1]],
            "top_logprobs": [dict(ranked)],
            "text_offset": [0],
        }
    listed = [{"token": token, "logprob": value, "bytes": None} for token, value in ranked]
    return {"content": [listed[0] | {"top_logprobs": listed}]}


def _label_tokens(request: EndpointRequest) -> dict[str, float]:
    weights = {label: 0.05 + draw(request.key, label) for label in "ABCD"}
    total = sum(weights.values()) * 1.1
    tokens = {label: math.log(weight / total) for label, weight in weights.items()}
    return tokens | {" A": math.log(0.01), "The": math.log(0.02)}
