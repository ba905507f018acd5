"""A language model of word pairs behind ``echo``: its log-probabilities depend on a token and the
one before it."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from typing import Any

from tests.support.replies import EndpointRequest, Plan, draw

START = "<s>"
_PIECES = re.compile(r"<s>| ?\w+|\s|[^\w\s]")
_ids: dict[str, int] = {START: 1}


def tokenize(text: str, special: bool = True) -> list[int]:
    """The tokens of a text, after the mark of its beginning."""
    pieces = _PIECES.findall(text)
    return [_ids.setdefault(piece, len(_ids) + 1) for piece in [START] * special + pieces]


def text_of(tokens: list[int]) -> list[str]:
    """The texts of tokens."""
    names = {number: piece for piece, number in _ids.items()}
    return [names[token] for token in tokens]


def logprob(before: str, piece: str) -> float:
    """The log-probability of a token after another one; every fifth is the most likely."""
    value = draw("pair", before, piece)
    return math.log(0.6 + 0.3 * value) if value < 0.2 else math.log(0.01 + 0.4 * value)


def is_likeliest(before: str, piece: str) -> bool:
    """Whether no other token is more likely there."""
    return draw("pair", before, piece) < 0.2


def echo_choices(plan: Plan, request: EndpointRequest) -> list[dict[str, Any]]:
    """The choices of a request with ``echo``, one for each prompt."""
    prompts = request.body["prompt"]
    if isinstance(prompts, str) or (prompts and isinstance(prompts[0], int)):
        prompts = [prompts]
    choices = []
    for number, prompt in enumerate(prompts):
        tokens = tokenize(prompt, plan.echo == "tokens") if isinstance(prompt, str) else prompt
        pieces = [*text_of(tokens), " then"]
        values: list[float | None] = [None]
        tops: list[dict[str, float] | None] = [None]
        for before, piece in pairwise(pieces):
            value = logprob(before, piece)
            values.append(value)
            tops.append({piece: value} if is_likeliest(before, piece) else {"the": value + 0.5})
        logprobs = {"tokens": pieces, "token_logprobs": values, "top_logprobs": tops}
        choices.append(
            {
                "index": number,
                "text": "".join(pieces),
                "finish_reason": "length",
                "logprobs": logprobs,
            }
        )
    return choices[::-1]  # in any order: each has its index
