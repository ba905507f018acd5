"""Log-probabilities of given texts from llama.cpp, one token after the other.

Its server gives no log-probabilities of a prompt, but those of the next token. So each token of a
continuation is one short request; the server keeps what it has computed for the tokens before it.
The numbers are those of the whole distribution, as if the text were scored in one pass.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from keju.models.continuations import (
    NO_TOKENS,
    make_reply,
    make_score,
    move_spaces,
    rolling_windows,
)
from keju.types import Continuation, ContinuationScore, Fault, Reply, Request, Usage

NO_START = "the model file names no token that could precede a text without a context"


class NextToken(NamedTuple):
    """The log-probability of a token after a prompt, and whether no other one is more likely."""

    logprob: float
    greedy: bool


Tokenize = Callable[[str, bool, float], Awaitable[list[int]]]
"""Tokenises a text, with or without the model's special tokens."""
AskNext = Callable[[list[int], int, float], Awaitable["NextToken | Fault"]]
"""Returns the log-probability of a token after a prompt."""


class TokenScorer:
    """Scores the continuations of requests with a context of `length` tokens."""

    def __init__(self, tokenize: Tokenize, ask: AskNext, start: int | None, length: int) -> None:
        self._tokenize = tokenize
        self._ask = ask
        self._start = start
        self._length = length

    async def score(self, request: Request, timeout: float) -> Reply:
        """Return the scores of all continuations of a request."""
        scores: list[ContinuationScore] = []
        tokens = 0
        known: dict[tuple[int, ...], NextToken] = {}
        for part in request.continuations:
            windows = await self._encode(part, timeout)
            if isinstance(windows, Fault):
                return Reply(error=windows)
            values: list[NextToken] = []
            for before, scored in windows:
                text = [*before, *scored][-(self._length + 1) :]
                for place in range(len(text) - len(scored), len(text)):
                    prompt, token = text[:place], text[place]
                    key = tuple(text[: place + 1])
                    if key not in known:
                        answer = await self._ask(prompt, token, timeout)
                        if isinstance(answer, Fault):
                            return Reply(error=answer)
                        known[key] = answer
                    values.append(known[key])
                tokens += len(before) + len(scored)
            scores.append(make_score([v.logprob for v in values], all(v.greedy for v in values)))
        return make_reply(request.continuations, scores, Usage(tokens))

    async def _encode(
        self, part: Continuation, timeout: float
    ) -> Sequence[tuple[list[int], list[int]]] | Fault:
        """Return the tokens before and the scored tokens of each window."""
        start = [] if self._start is None else [self._start]
        if not start and (part.rolling or not part.context):
            return Fault("bad_request", NO_START)
        if part.rolling:
            tokens = await self._tokenize(part.text, True, timeout)
            return list(rolling_windows(tokens, start[0], self._length))
        if not part.context:
            tokens = await self._tokenize(part.text, False, timeout)
            windows = [(tokens[:1], tokens[1:]) if tokens[:1] == start else (start, tokens)]
        else:
            context, text = move_spaces(part.context, part.text)
            before = await self._tokenize(context, True, timeout)
            joined = await self._tokenize(context + text, True, timeout)
            windows = [(before or start, joined[len(before) :])]
        if not all(scored for _, scored in windows):
            return Fault("bad_request", NO_TOKENS)
        if any(len(scored) > self._length for _, scored in windows):
            problem = f"a continuation is longer than the context of {self._length} tokens"
            return Fault("context_length", problem)
        return windows
