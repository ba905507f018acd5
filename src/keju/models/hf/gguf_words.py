"""Cutting a text into words as a GGUF's own tokenizer does.

A GGUF names its way of cutting (``tokenizer.ggml.pre``) and llama.cpp follows it. transformers
takes over vocabulary and merges alone, so that the tokens around digits may differ.
"""

from __future__ import annotations

from typing import Any

DIGITS_APART = frozenset({"smollm", "starcoder", "refact", "command-r", "codeshell"})
"""Ways in which every digit is a word of its own and the rest is cut as GPT-2 does."""


def cut_as_named(tokenizer: Any, words: str) -> None:
    """Let a converted `tokenizer` cut texts in the way that its file names, if Keju knows it."""
    if words not in DIGITS_APART:
        return
    from tokenizers import pre_tokenizers

    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
