"""Reasoning is not the answer: think blocks are cut out before any reader sees the text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from keju.types import Reply

OPEN = "<think>"
CLOSE = "</think>"

_UNUSUAL = (
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
)
"""How some models mark their reasoning, other than with ``<think>``."""


_FINAL_CHANNEL = "<|channel|>final<|message|>"
"""What stands before the answer of a model that writes into channels."""


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
    if OPEN not in text and CLOSE not in text:
        return Thought("", text, False)
    outside: list[str] = []
    thoughts: list[str] = []
    position, unclosed = 0, False
    while (start := text.find(OPEN, position)) >= 0:
        outside.append(text[position:start])
        end = text.find(CLOSE, start)
        unclosed = end < 0
        thoughts.append(text[start + len(OPEN) : None if unclosed else end])
        position = len(text) if unclosed else end + len(CLOSE)
    outside.append(text[position:])
    answer = "".join(outside)
    stray = answer.rfind(CLOSE)
    if stray >= 0:
        thoughts.insert(0, answer[:stray].replace(CLOSE, "\n"))
        answer = answer[stray + len(CLOSE) :]
    reasoning = "\n".join(part for part in map(str.strip, thoughts) if part)
    return Thought(reasoning, answer.strip(), unclosed)


def as_reply(text: str, *, reasoning: Iterable[str] = (), finish: str = "", **facts: Any) -> Reply:
    """A text that a model wrote, as the reply it is: its thoughts kept apart.

    `reasoning` is what came apart from the text; `facts` are further fields of `Reply`.
    """
    if not reasoning and OPEN not in text and CLOSE not in text:  # as most replies are
        return Reply(text, finish=finish, **facts)
    thought = split_thinking(text)
    thoughts = "\n".join([part for part in (*reasoning, thought.reasoning) if part])
    raw = text if thought.text is not text else ""
    return Reply(thought.text, thoughts, finish, raw=raw, **facts)


def split_any_thinking(text: str) -> Thought:
    """As `split_thinking`, for unusual tags too; a reply without any is left as it is."""
    _, final, said = text.rpartition(_FINAL_CHANNEL)
    text = said if final else text
    for begin, end in _UNUSUAL:
        text = text.replace(begin, OPEN).replace(end, CLOSE)
    return split_thinking(text)
