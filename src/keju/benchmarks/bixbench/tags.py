"""Tags around answers and around reasoning."""

from __future__ import annotations

import re

from keju.answers.thinking import CLOSE, OPEN, Thought, split_thinking

_TAG = re.compile(r"<(/?)answer>", re.IGNORECASE)

_UNUSUAL = (
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
)
"""How some models mark their reasoning, other than with ``<think>``."""


def tagged(text: str) -> str | None:
    """What stands inside the last closed ``<answer>…</answer>``; None if there is none."""
    inside: str | None = None
    begin = -1
    for match in _TAG.finditer(text):
        if not match[1]:
            begin = match.end()
        elif begin >= 0:
            inside, begin = text[begin : match.start()], -1
    return inside


def split_any_thinking(text: str) -> Thought:
    """As `split_thinking`, for unusual tags too; a reply without any is left as it is."""
    for begin, end in _UNUSUAL:
        text = text.replace(begin, OPEN).replace(end, CLOSE)
    return split_thinking(text)
