"""Log-probabilities of given texts from a completions route that repeats the prompt (``echo``).

Where the server has a route ``/tokenize`` (vLLM, SGLang), token ids are sent, so
the border between context and continuation is the same as with ``hf:``. Other servers get texts,
and the border follows from the places of their tokens in the text.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec

from keju.models.base import Redactor, refusal
from keju.models.continuations import (
    NO_TOKENS,
    make_reply,
    make_score,
    move_spaces,
    rolling_windows,
)
from keju.models.openai.wire import document_of, token_count, unreadable_fault
from keju.models.transport import HttpReply, TransportError
from keju.types import Continuation, ContinuationScore, Fault, Reply, Request, Usage

NO_ECHO = "the reply holds no log-probabilities of the prompt: the server ignores 'echo'"
NO_START = (
    "the endpoint does not show which token begins a text, which a text without a context needs"
)
NO_WINDOWS = "the endpoint has no route /tokenize, which texts longer than its context need"
OTHER_PROMPT = "the endpoint returns log-probabilities of tokens that are not in the prompt"
TRIAL = Continuation("The capital of France is", " Paris, and the capital of Peru is Lima")
TRIAL_OF_TWO = (TRIAL, Continuation(TRIAL.context, " Lima"))

Post = Callable[[str, bytes, float], Awaitable[HttpReply]]
Get = Callable[[str, float], Awaitable[HttpReply]]


@dataclass(frozen=True)
class EchoedPrompt:
    """A prompt to send, and which of its tokens are scored."""

    number: int
    """The index of its continuation."""
    prompt: str | list[int]
    context: int
    """Tokens of the context; in a text its characters."""


class EchoError(Exception):
    """The fault of a reply that cannot be used."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


class EchoScorer:
    """Scores continuations at one completions route."""

    def __init__(
        self, model: str, route: str, models: str, post: Post, get: Get, redact: Redactor
    ) -> None:
        self._model = model
        self._route = route
        self._models = models
        self._post = post
        self._get = get
        self._redact = redact
        self.tokenizer = ""
        """The address of the server's tokenizer; empty if it has none."""
        self.length = 0
        """The context of the model in tokens; 0 if the server does not report it."""
        self.together = True
        """Whether the server accepts several prompts in one request."""
        self._start: int | None = None

    async def prepare(self, timeout: float) -> Fault | None:
        """Find out what the server supports; return a fault if it gives no such numbers."""
        parts = urlsplit(self._route)
        base = parts.path.removesuffix("/completions").removesuffix("/v1")
        for path in (f"{base}/tokenize", "/tokenize"):
            self.tokenizer = urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))
            with suppress(EchoError, TransportError):
                tokens = await self._tokenize(TRIAL.context, timeout)
                start = await self._tokenize("", timeout)
                self._start = start[0] if len(start) == 1 and start == tokens[:1] else None
                break
        else:
            self.tokenizer = ""
        with suppress(TransportError, ValueError, LookupError, TypeError):
            listed = document_of((await self._get(self._models, timeout)).body)["data"]
            lengths = {entry["id"]: entry.get("max_model_len") for entry in listed}
            self.length = token_count(lengths.get(self._model))
        request_of_two = await self._try(TRIAL_OF_TWO, timeout)
        if request_of_two is None:
            return None
        self.together = False
        return await self._try((TRIAL,), timeout)

    async def _try(self, parts: Sequence[Continuation], timeout: float) -> Fault | None:
        try:
            scores, _, _ = await self._score(parts, {}, timeout)
        except EchoError as error:
            return error.fault
        return None if all(score.tokens for score in scores) else Fault("malformed", NO_ECHO)

    async def ask(self, request: Request, timeout: float) -> Reply:
        """Make one attempt for all continuations of a request."""
        started = perf_counter()
        try:
            scores, usage, model = await self._score(
                request.continuations, request.sampling.extra, timeout
            )
        except TransportError as error:
            fault = Fault(error.kind, self._redact(error.message), sent=error.reached)
            return Reply(seconds=perf_counter() - started, error=fault)
        except EchoError as error:
            return Reply(seconds=perf_counter() - started, error=error.fault)
        seconds = perf_counter() - started
        return make_reply(request.continuations, scores, usage, seconds, self._redact(model))

    async def _score(
        self, parts: Sequence[Continuation], extra: Mapping[str, Any], timeout: float
    ) -> tuple[list[ContinuationScore], Usage, str]:
        """Return the scores, the usage and the model's reported name."""
        prompts: list[EchoedPrompt] = []
        for number, part in enumerate(parts):
            make = self._encode if self.tokenizer else self._as_text
            prompts += await make(number, part, timeout)
        values: list[list[float]] = [[] for _ in parts]
        greedy = [True] * len(parts)
        tokens, model = 0, ""
        groups = [prompts] if self.together else [[prompt] for prompt in prompts]
        for group in groups:
            document = await self._complete([prompt.prompt for prompt in group], extra, timeout)
            usage = document.get("usage")
            tokens += token_count(usage.get("prompt_tokens")) if isinstance(usage, dict) else 0
            model = str(document.get("model") or model)
            choices = _choices_of(document, len(group))
            for prompt, choice in zip(group, choices, strict=True):
                logs, is_greedy = read_echo(choice, prompt)
                values[prompt.number] += logs
                greedy[prompt.number] &= is_greedy
        scores = [make_score(*pair) for pair in zip(values, greedy, strict=True)]
        return scores, Usage(tokens), model

    async def _complete(
        self, prompts: list[str | list[int]], extra: Mapping[str, Any], timeout: float
    ) -> dict[str, Any]:
        fields = {
            "model": self._model,
            "prompt": prompts if self.together else prompts[0],
            "max_tokens": 1,  # some servers refuse 0; the one new token is left out
            "temperature": 0,
            "logprobs": 1,
            "echo": True,
        }
        reply = await self._post(self._route, msgspec.json.encode(fields | dict(extra)), timeout)
        document = self._read(reply)
        if not isinstance(document, dict):
            raise EchoError(Fault("malformed", "not an OpenAI-compatible reply: not an object"))
        return document

    def _read(self, reply: HttpReply) -> Any:
        """Return the document of a successful reply."""
        if not 200 <= reply.status < 300:
            raise EchoError(refusal(reply.status, reply.body, reply.header, self._redact))
        try:
            return document_of(reply.body)
        except ValueError:
            raise EchoError(unreadable_fault(reply.body, self._redact)) from None

    async def _tokenize(self, text: str, timeout: float, *, special: bool = True) -> list[int]:
        fields = {"model": self._model, "prompt": text, "add_special_tokens": special}
        document = self._read(
            await self._post(self.tokenizer, msgspec.json.encode(fields), timeout)
        )
        tokens = document.get("tokens") if isinstance(document, dict) else None
        if not isinstance(tokens, list) or not all(type(token) is int for token in tokens):
            raise EchoError(Fault("malformed", "the route /tokenize returns no token ids"))
        return tokens

    async def _encode(self, number: int, part: Continuation, timeout: float) -> list[EchoedPrompt]:
        """Return the prompts of a continuation as token ids."""
        if part.context and not part.rolling:
            context, text = move_spaces(part.context, part.text)
            before = await self._tokenize(context, timeout)
            scored = (await self._tokenize(context + text, timeout))[len(before) :]
            windows = [(before, scored)]
        else:
            if self._start is None:
                raise EchoError(Fault("bad_request", NO_START))
            scored = await self._tokenize(part.text, timeout, special=part.rolling)
            windows = [([self._start], scored)]
            if part.rolling:
                # One token of the context is for the new token, and one precedes a window.
                room = self.length - 2 if self.length else len(scored)
                windows = list(rolling_windows(scored, self._start, max(1, room)))
        return [self._cut(number, before, scored) for before, scored in windows]

    def _cut(self, number: int, before: list[int], scored: list[int]) -> EchoedPrompt:
        """Return a prompt without the first tokens of a context that is too long."""
        if not scored:
            raise EchoError(Fault("bad_request", NO_TOKENS))
        excess = len(before) + len(scored) - (self.length - 1) if self.length else 0
        if excess >= len(before):
            problem = f"a continuation has {len(scored)} tokens, and the context {self.length}"
            raise EchoError(Fault("context_length", problem))
        before = before[max(0, excess) :]
        return EchoedPrompt(number, before + scored, len(before))

    async def _as_text(self, number: int, part: Continuation, timeout: float) -> list[EchoedPrompt]:
        """Return the prompt of a continuation as a text."""
        del timeout
        if part.rolling or not part.context.strip():
            raise EchoError(Fault("bad_request", NO_WINDOWS if part.rolling else NO_START))
        context, text = move_spaces(part.context, part.text)
        return [EchoedPrompt(number, context + text, len(context))]


def _choices_of(document: Mapping[str, Any], count: int) -> list[dict[str, Any]]:
    """Return the choices in the order of the prompts."""
    choices = document.get("choices")
    objects = [choice for choice in choices if isinstance(choice, dict)] if choices else []
    if len(objects) != count:
        problem = f"the reply holds {len(objects)} choices for {count} prompts"
        raise EchoError(Fault("malformed", problem))
    places = [choice.get("index") for choice in objects]
    if sorted(map(str, places)) == sorted(map(str, range(count))):
        objects.sort(key=lambda choice: int(choice["index"]))
    return objects


def read_echo(choice: Mapping[str, Any], prompt: EchoedPrompt) -> tuple[list[float], bool]:
    """Return the log-probabilities of the scored tokens, and whether all are the most likely."""
    logprobs = choice.get("logprobs")
    fields = logprobs if isinstance(logprobs, dict) else {}
    values, tops = fields.get("token_logprobs"), fields.get("top_logprobs")
    if not isinstance(values, list) or not isinstance(tops, list) or len(tops) != len(values):
        raise EchoError(Fault("malformed", NO_ECHO))
    if isinstance(prompt.prompt, str):
        start, end = _find_border(fields, prompt.prompt, prompt.context)
    else:
        start, end = prompt.context, len(prompt.prompt)
        if not end <= len(values) <= end + 1:
            raise EchoError(Fault("malformed", NO_ECHO if len(values) < end else OTHER_PROMPT))
    scored = values[start:end]
    if not scored or not all(isinstance(value, int | float) for value in scored):
        raise EchoError(Fault("malformed", NO_ECHO))
    greedy = all(
        isinstance(top, dict) and value >= max(_numbers(top), default=value)
        for value, top in zip(scored, tops[start:end], strict=True)
    )
    return [float(value) for value in scored], greedy


def _numbers(top: Mapping[str, Any]) -> list[float]:
    return [value for value in top.values() if isinstance(value, int | float)]


def _find_border(fields: Mapping[str, Any], text: str, context: int) -> tuple[int, int]:
    """Return the index of the first scored token and of the token after the prompt.

    A server may write a mark before the text, such as ``<s>``. Tokens that begin inside the context
    belong to it.
    """
    tokens = fields.get("tokens")
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise EchoError(Fault("malformed", NO_ECHO))
    joined = "".join(tokens)
    offset = joined.find(text)
    if offset < 0:
        raise EchoError(Fault("malformed", NO_ECHO if len(joined) < len(text) else OTHER_PROMPT))
    place, start, end = 0, 0, 0
    for token in tokens:
        start += place < offset + context
        end += place < offset + len(text)
        place += len(token)
    return start, end
