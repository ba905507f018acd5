"""The log-probability of each option label, out of what the endpoint returns for a token."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any, NamedTuple

from keju.types import Request

WORD_MARKS = "▁Ġ"
"""How SentencePiece and byte-level vocabularies write a leading space."""


class _Position(NamedTuple):
    token: str
    likeliest: list[tuple[str, float]]


def plain(token: str) -> str:
    """A token's text as a label would be written."""
    return unicodedata.normalize("NFKC", token).strip().lstrip(WORD_MARKS)


def continues_cue(request: Request) -> bool:
    """Whether the reply goes on from a prefilled turn, so that its first token is the label."""
    return bool(request.prompt.cue and request.sampling.extra.get("continue_final_message"))


def label_values(logprobs: Any, request: Request) -> tuple[dict[str, float], float | None] | None:
    """The value of each label that was returned, and the probability of everything else.

    A label's value is the log of the summed probability of all tokens that spell it. The token
    that counts is the first of a text to continue; in a chat it is the first that is a label,
    outside of any reasoning. Returns None where there are no log-probabilities at all.
    """
    positions = list(_positions(logprobs))
    if not positions:
        return None
    position: _Position | None = positions[0]
    if request.sampling.form == "chat" and not continues_cue(request):
        position = _first_label(positions, request.labels)
    if position is None:
        return {}, None
    shares: dict[str, float] = {}
    for token, value in position.likeliest:
        label = plain(token)
        if len(label) == 1 and label in request.labels:
            shares[label] = shares.get(label, 0.0) + math.exp(min(value, 0.0))
    values = {label: math.log(share) for label, share in shares.items() if share > 0}
    return values, max(0.0, 1.0 - sum(shares.values()))


def _first_label(positions: list[_Position], labels: str) -> _Position | None:
    thinking = False
    for position in positions:
        if "<think>" in position.token:
            thinking = True
        if "</think>" in position.token:
            thinking = False
        elif not thinking:
            label = plain(position.token)
            if len(label) == 1 and label in labels:
                return position
    return None


def _positions(logprobs: Any) -> Iterator[_Position]:
    """The tokens of the reply in order, in OpenAI's completion shape or the chat shape."""
    if not isinstance(logprobs, dict):
        return
    content = logprobs.get("content")
    if isinstance(content, list):
        for entry in filter(_is_object, content):
            yield _Position(str(entry.get("token", "")), _listed(entry))
        return
    tokens, own, tops = (
        value if isinstance(value, list) else []
        for value in map(logprobs.get, ("tokens", "token_logprobs", "top_logprobs"))
    )
    for token, value, top in zip_longest(tokens, own, filter(_is_object, tops)):
        shares = {str(name): share for name, share in (top or {}).items()}
        if token is not None:
            shares.setdefault(str(token), value)
        pairs = [(name, float(share)) for name, share in shares.items() if _is_number(share)]
        yield _Position(str(token or ""), pairs)


def _listed(entry: dict[str, Any]) -> list[tuple[str, float]]:
    tops = filter(_is_object, entry.get("top_logprobs") or [])
    pairs = [(str(t.get("token", "")), t.get("logprob")) for t in tops]
    if entry.get("token") not in [token for token, _ in pairs]:
        pairs.append((str(entry.get("token", "")), entry.get("logprob")))
    return [(token, float(value)) for token, value in pairs if _is_number(value)]


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not math.isnan(value)
