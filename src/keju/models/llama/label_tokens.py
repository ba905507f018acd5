"""Finds the tokens of the labels: those that the tokenizer writes after the prompt.

The token of a label by itself is often not its token after the prompt. SentencePiece writes a space
before it, and a prompt that ends with a space or a colon may merge with it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from keju.models.labels import common_length

Tokenize = Callable[[str], Awaitable[list[int]]]

ENDING = 32
"""Characters at the end of a prompt that are used; no token extends further back."""


class LabelTokens(NamedTuple):
    """The tokens to compare at the position that decides."""

    cut: int
    """Tokens at the end of the prompt that merge with a label and are removed: 1 if ``:`` and ``A``
    form the one token ``:A``."""
    ids: dict[int, str]
    """Token to the label that it spells."""
    lead: tuple[int, ...] = ()
    """Tokens before every label that are added to the prompt, such as a separate space."""

    def by_label(self) -> dict[str, list[int]]:
        """Return the tokens of each label."""
        tokens: dict[str, list[int]] = {}
        for token, label in self.ids.items():
            tokens.setdefault(label, []).append(token)
        return tokens


async def find_label_tokens(
    ending: str, labels: str, tokenize: Tokenize, *, lead: str = "", space: bool = False
) -> LabelTokens | None:
    """Return the tokens of `labels` after a prompt that ends with `ending`.

    `lead` is the text that the protocol writes before a label. Without a lead, `space` makes the
    label after a space count as the same label. None if one token cannot distinguish the labels.
    """
    prompt_tokens = await tokenize(ending)
    tokens_by_label = {label: await tokenize(ending + lead + label) for label in labels}
    starts = {common_length(prompt_tokens, tokens) for tokens in tokens_by_label.values()}
    start = position = min(starts)
    if len(starts) > 1:
        return None
    last_index = min(len(tokens) for tokens in tokens_by_label.values()) - 1
    while (
        lead
        and position < last_index
        and len({tuple(w[: position + 1]) for w in tokens_by_label.values()}) == 1
    ):
        position += 1
    if any(len(tokens) <= position for tokens in tokens_by_label.values()):
        return None
    ids = {tokens[position]: label for label, tokens in tokens_by_label.items()}
    if len(ids) < len(labels):
        return None
    for label in labels if space and not lead else "":
        spaced = await tokenize(f"{ending} {label}")
        if common_length(prompt_tokens, spaced) == start < len(spaced):
            ids.setdefault(spaced[start], label)
    any_tokens = next(iter(tokens_by_label.values()))
    return LabelTokens(len(prompt_tokens) - start, ids, tuple(any_tokens[start:position]))
