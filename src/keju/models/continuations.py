"""Log-probabilities of given texts: the border between a context and its continuation, the windows
of a long text, and the reply."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence

from keju.types import Continuation, ContinuationScore, Fault, Reply, Usage

NO_TOKENS = "a continuation adds no tokens to its context"
NOT_NUMBERS = "the model gives log-probabilities that are not numbers (NaN)"
LEAST = -sys.float_info.max
"""In place of minus infinity, which JSON cannot hold."""


def move_spaces(context: str, text: str) -> tuple[str, str]:
    """Return context and continuation with the white space at their border in the continuation.

    Most tokenizers write the space before a word into the word's first token.
    """
    stripped = context.rstrip()
    return stripped, context[len(stripped) :] + text


def rolling_windows(
    tokens: Sequence[int], start: int, length: int
) -> Iterator[tuple[list[int], list[int]]]:
    """Yield windows that together score each token once: the tokens before and the scored ones.

    Each window has at most `length` scored tokens and one token before them. The last one is
    filled up with tokens that an earlier one has scored. `start` precedes the first token.
    """
    done = min(length, len(tokens))
    if tokens:
        yield [start], list(tokens[:done])
    while done < len(tokens):
        end = min(done + length, len(tokens))
        yield list(tokens[end - length - 1 : done]), list(tokens[done:end])
        done = end


def make_score(values: Sequence[float], greedy: bool) -> ContinuationScore:
    """Return the score of a continuation by the log-probabilities of its tokens."""
    return ContinuationScore(max(sum(values), LEAST), greedy, len(values))


def make_reply(
    continuations: Sequence[Continuation],
    scores: Sequence[ContinuationScore],
    usage: Usage,
    seconds: float = 0.0,
    model: str = "",
) -> Reply:
    """Return the reply with these scores; its text is the most likely of several continuations."""
    if any(math.isnan(score.logprob) for score in scores):
        return Reply(seconds=seconds, error=Fault("malformed", NOT_NUMBERS))
    text = ""
    if len(scores) > 1:
        best = max(range(len(scores)), key=lambda number: scores[number].logprob)
        text = continuations[best].text.strip()
    return Reply(
        text=text,
        finish="stop",
        usage=usage,
        seconds=seconds,
        model=model,
        continuations=tuple(scores),
    )
