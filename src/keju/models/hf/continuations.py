"""The tokens of continuations: the border after the context, truncation, and windows.

They are those of lm-eval, so that its scores can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from keju.models.continuations import NO_TOKENS, move_spaces, rolling_windows
from keju.models.hf.forest import ScoredRow, ScoredTree, grow_trees
from keju.types import Continuation, Fault, Request

NO_START = "the tokenizer has no token that could precede a text without a context"

Tokenize = Callable[[list[str], bool], list[list[int]]]
"""Tokenises texts, with or without special tokens."""


class ContinuationEncoder:
    """Tokenises the continuations of requests and lays them out as trees."""

    def __init__(self, tokenize: Tokenize, tokenizer: Any, context: int) -> None:
        start = tokenizer.bos_token_id
        self._start: int | None = tokenizer.eos_token_id if start is None else start
        """The token before a text without a context."""
        self._start_text = "" if self._start is None else str(tokenizer.decode(self._start))
        self._tokenize = tokenize
        self._context = context

    def encode(self, requests: Sequence[Request]) -> list[list[ScoredTree] | Fault]:
        """Tokenise all texts of requests together; return the trees of each request."""
        texts: dict[tuple[str, bool], list[int]] = {}
        for request in requests:
            for part in request.continuations:
                texts |= {key: [] for key in map(self._key, _texts(part))}
        for special in (False, True):
            keys = [key for key in texts if key[1] is special]
            encoded = self._tokenize([text for text, _ in keys], special) if keys else []
            texts.update(zip(keys, encoded, strict=True))
        return [self._make_trees(request, texts) for request in requests]

    def _key(self, text_and_special: tuple[str, bool]) -> tuple[str, bool]:
        """Return a text with the decision whether it gets special tokens: not if it has one."""
        text, special = text_and_special
        has_start = bool(self._start_text) and text.startswith(self._start_text)
        return text, special and not has_start

    def _make_trees(
        self, request: Request, texts: dict[tuple[str, bool], list[int]]
    ) -> list[ScoredTree] | Fault:
        rows: list[ScoredRow] = []
        trees: list[ScoredTree] = []
        for number, part in enumerate(request.continuations):
            tokens = [texts[self._key(text)] for text in _texts(part)]
            if self._start is None and (part.rolling or not part.context):
                return Fault("bad_request", NO_START)
            start = self._start or 0
            if part.rolling:
                for before, scored in rolling_windows(tokens[0], start, self._context):
                    window = self._make_row(number, before, scored)
                    assert isinstance(window, ScoredRow)
                    trees += grow_trees([window])
                continue
            if part.context:
                context, joined = tokens
                row = self._make_row(number, context or [start], joined[len(context) :])
            else:
                row = self._make_row(number, *_split_start(tokens[0], start))
            if isinstance(row, Fault):
                return row
            rows.append(row)
        return grow_trees(rows) + trees

    def _make_row(
        self, number: int, context: Sequence[int], scored: list[int]
    ) -> ScoredRow | Fault:
        """Return what the model reads: the last tokens that fit, without the very last one."""
        if not scored:
            return Fault("bad_request", NO_TOKENS)
        if len(scored) > self._context:
            return Fault(
                "context_length",
                f"a continuation has {len(scored)} tokens, more than the context of "
                f"{self._context}",
            )
        tokens = [*context, *scored][-(self._context + 1) : -1]
        return ScoredRow(number, tokens, scored)


def _texts(part: Continuation) -> list[tuple[str, bool]]:
    """Return the texts of a continuation to tokenise, and whether they get special tokens."""
    if part.rolling:
        return [(part.text, True)]
    if not part.context:
        return [(part.text, False)]
    context, text = move_spaces(part.context, part.text)
    return [(context, True), (context + text, True)]


def _split_start(tokens: list[int], start: int) -> tuple[list[int], list[int]]:
    """Return the context and the scored tokens of a text without a context."""
    return (tokens[:1], tokens[1:]) if tokens[:1] == [start] else ([start], tokens)
