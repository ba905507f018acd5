"""Reasoning is not the answer: think blocks are cut out before any reader sees the text."""

from __future__ import annotations

from typing import NamedTuple

OPEN = "<think>"
CLOSE = "</think>"


class Thought(NamedTuple):
    """A reply taken apart."""

    reasoning: str
    text: str
    """What is left to read; as received where there was nothing to cut."""
    unclosed: bool
    """The reasoning never ended, so whatever follows its start is not an answer."""


def split_thinking(text: str) -> Thought:
    """Separate reasoning from the answer text.

    Every closed ``<think>…</think>`` is reasoning. If a ``</think>`` without a beginning remains,
    everything up to the last one is. A ``<think>`` that never closes makes the rest reasoning.
    """
    if "think>" not in text or (OPEN not in text and CLOSE not in text):
        return Thought("", text, False)
    kept, thoughts, unclosed = _cut_blocks(text)
    answer = "".join(kept)
    stray = answer.rfind(CLOSE)
    if stray >= 0:
        thoughts.insert(0, answer[:stray].replace(CLOSE, "\n"))
        answer = answer[stray + len(CLOSE) :]
    reasoning = "\n".join(part for part in map(str.strip, thoughts) if part)
    return Thought(reasoning, answer.strip(), unclosed)


def _cut_blocks(text: str) -> tuple[list[str], list[str], bool]:
    """Return what stands outside the blocks, what stands inside, and whether one stays open."""
    kept: list[str] = []
    thoughts: list[str] = []
    position = 0
    while (start := text.find(OPEN, position)) >= 0:
        kept.append(text[position:start])
        end = text.find(CLOSE, start)
        if end < 0:
            thoughts.append(text[start + len(OPEN) :])
            return kept, thoughts, True
        thoughts.append(text[start + len(OPEN) : end])
        position = end + len(CLOSE)
    kept.append(text[position:])
    return kept, thoughts, False
