"""The log-probability of each option label, from the token log-probabilities of an endpoint."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from keju.types import LogprobIssue, Request

WORD_MARKS = "▁Ġ"
"""Marks for a leading space in SentencePiece and byte-level vocabularies."""
ROUNDING = 1e-3
"""The largest log-probability above 0 that counts as rounding."""


class _TokenPosition(NamedTuple):
    """One token of a reply, and the log-probabilities of the most likely tokens at its position."""

    token: str
    likeliest: list[tuple[str, float]]


def label_text(token: str) -> str:
    """Return a token's text in the form of a label."""
    return unicodedata.normalize("NFKC", token).strip().lstrip(WORD_MARKS)


def common_length(left_tokens: Sequence[int], right_tokens: Sequence[int]) -> int:
    """Return how many leading tokens two sequences have in common."""
    shorter = min(len(left_tokens), len(right_tokens))
    if left_tokens[:shorter] == right_tokens[:shorter]:
        return shorter
    return next(
        (index for index in range(shorter) if left_tokens[index] != right_tokens[index]), shorter
    )


def has_spaced_tokens(logprobs: Any) -> bool:
    """Whether a server writes the space before a token. Some servers leave it out of all tokens."""
    return any(
        _has_leading_space(token)
        for position in _positions(logprobs)
        for token, _ in position.likeliest
    )


def _has_leading_space(token: str) -> bool:
    return token.startswith((" ", *WORD_MARKS))


def label_values(
    logprobs: Any, request: Request, *, spaces: bool = False
) -> tuple[dict[str, float], float | None] | None:
    """Return the value of each returned label, and the probability of everything else.

    A label's value is the log of the summed probability of all tokens that spell it. If the
    protocol writes a space before a label, ``" A"`` spells it. ``"A"`` then does not, if the server
    writes these spaces. `spaces` says that it does; otherwise the tokens of this reply decide.

    In a text to continue, the first token counts. In a chat, the first token that is a label
    counts, outside of any reasoning. Returns None if the reply holds none.
    """
    positions = list(_positions(logprobs))
    if not positions:
        return None
    position: _TokenPosition | None = positions[0]
    if request.sampling.form == "chat" and not request.continues_cue:
        position = _find_label(positions, request.labels)
    if position is None:
        return {}, None
    shares: dict[str, float] = {}
    likeliest = position.likeliest
    if request.sampling.label_lead:
        # A server that decodes tokens one by one may leave the space out of all of them. A server
        # that is known to write spaces may have no such token among the most likely: then there is
        # no label.
        spaced_tokens = [entry for entry in likeliest if _has_leading_space(entry[0])]
        likeliest = spaced_tokens if spaced_tokens or spaces else likeliest
    for token, value in likeliest:
        label = label_text(token)
        if len(label) == 1 and label in request.labels:
            shares[label] = shares.get(label, 0.0) + math.exp(min(value, 0.0))
    values = {label: math.log(share) for label, share in shares.items() if share > 0}
    return values, max(0.0, 1.0 - sum(shares.values()))


def logprob_issue(logprobs: Any) -> LogprobIssue:
    """Return the problem of a reply's log-probabilities; empty if there is none.

    A value that is not a number may be written as NaN, as a text or as null. Rounding may put a
    value slightly above 0.
    """
    issue: LogprobIssue = ""
    for value in _raw_values(logprobs):
        if not isinstance(value, int | float) or math.isnan(value):
            return "nan"
        if value > ROUNDING:
            issue = "positive"
    return issue


def _raw_values(logprobs: Any) -> Iterator[Any]:
    """Yield every log-probability of a reply as the endpoint wrote it."""
    if not isinstance(logprobs, dict):
        return
    content = logprobs.get("content")
    for entry in _objects(content if isinstance(content, list) else []):
        for top in _objects(entry.get("top_logprobs") or []) or [entry]:
            yield top.get("logprob")
    tops = logprobs.get("top_logprobs")
    for shares in _objects(tops if isinstance(tops, list) else []):
        yield from shares.values()


def _find_label(positions: list[_TokenPosition], labels: str) -> _TokenPosition | None:
    thinking = False
    for position in positions:
        label = label_text(position.token)
        # One token may open and close the reasoning, so the closing tag decides.
        if "</think>" in position.token:
            thinking = False
        elif "<think>" in position.token:
            thinking = True
        elif not thinking and len(label) == 1 and label in labels:
            return position
    return None


def _positions(logprobs: Any) -> Iterator[_TokenPosition]:
    """Yield the tokens of the reply in order.

    A chat has ``{"content": [{"token": "A", "logprob": -0.1, "top_logprobs": [{"token": "A",
    "logprob": -0.1}, …]}, …]}``, a completion ``{"tokens": ["A"], "token_logprobs": [-0.1],
    "top_logprobs": [{"A": -0.1, …}]}``.
    """
    if not isinstance(logprobs, dict):
        return
    content = logprobs.get("content")
    if isinstance(content, list):
        for entry in _objects(content):
            tops = _objects(entry.get("top_logprobs") or [])
            if entry.get("token") not in [str(top.get("token", "")) for top in tops]:
                tops.append(entry)
            numbers = [
                (str(top.get("token", "")), float(top["logprob"]))
                for top in tops
                if _is_number(top.get("logprob"))
            ]
            yield _TokenPosition(str(entry.get("token", "")), numbers)
        return
    tokens, token_values, tops = (
        value if isinstance(value, list) else []
        for value in map(logprobs.get, ("tokens", "token_logprobs", "top_logprobs"))
    )
    for token, value, top in zip_longest(tokens, token_values, _objects(tops)):
        shares = {str(name): share for name, share in (top or {}).items()}
        if token is not None:
            shares.setdefault(str(token), value)
        numbers = [(name, float(share)) for name, share in shares.items() if _is_number(share)]
        yield _TokenPosition(str(token or ""), numbers)


def _objects(values: list[Any]) -> list[dict[str, Any]]:
    return [value for value in values if isinstance(value, dict)]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not math.isnan(value)
