"""Which tokens are the labels: those that the tokenizer writes behind the prompt.

A label alone is often another token than the label in its place: SentencePiece writes a space
before it, and a prompt that ends with a space or a colon may merge with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

Tokenize = Callable[[str], list[int]]

ENDING = 32
"""Characters at the end of a prompt that are looked at; no token reaches further back."""


class LabelTokens(NamedTuple):
    """What is compared at the position that decides."""

    cut: int
    """Tokens at the end of the prompt that merge with a label and are taken back."""
    ids: dict[int, str]
    """Token to the label that it spells."""

    def by_label(self) -> dict[str, list[int]]:
        """The tokens of each label."""
        found: dict[str, list[int]] = {}
        for token, label in self.ids.items():
            found.setdefault(label, []).append(token)
        return found


def label_texts(ending: str, labels: str, *, space: bool = False) -> list[str]:
    """The texts whose tokens `find_label_tokens` looks at."""
    texts = [ending, *(ending + label for label in labels)]
    return texts + [f"{ending} {label}" for label in labels if space]


def find_label_tokens(
    ending: str, labels: str, tokenize: Tokenize, *, space: bool = False
) -> LabelTokens | None:
    """The tokens of `labels` behind a prompt that ends with `ending`.

    With `space` the label after a space counts as the same label. None where the labels cannot
    be told apart by one token.
    """
    before = tokenize(ending)
    written = {label: tokenize(ending + label) for label in labels}
    starts = {_common(before, tokens) for tokens in written.values()}
    start = min(starts)
    if len(starts) > 1 or any(len(tokens) <= start for tokens in written.values()):
        return None
    ids = {tokens[start]: label for label, tokens in written.items()}
    if len(ids) < len(labels):
        return None
    if space:
        for label in labels:
            spaced = tokenize(f"{ending} {label}")
            if _common(before, spaced) == start < len(spaced):
                ids.setdefault(spaced[start], label)
    return LabelTokens(len(before) - start, ids)


def _common(first: list[int], second: list[int]) -> int:
    for position, (left, right) in enumerate(zip(first, second, strict=False)):
        if left != right:
            return position
    return min(len(first), len(second))
