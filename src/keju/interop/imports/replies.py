"""Replies as other tools store them: contents in parts, stop reasons, token counts, errors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from keju.answers.thinking import as_reply
from keju.errors import DataError
from keju.models.faults import REDACTED, kind_of, one_line
from keju.types import Fault, Reply, Usage

FINISHES = {"max_tokens": "length", "model_length": "length", "max_length": "length"}
"""What the tools call a reply that was cut off."""

SHOWN = 100
"""Characters of a malformed reply that its error quotes."""
_SECRET = re.compile(r"\bsk-[\w.*-]{4,}|(?<=Bearer )\S+|(?<=api key provided: )\S+", re.IGNORECASE)
"""Keys as endpoints quote them in their refusals."""


def text_of(content: Any) -> str:
    """The text of a message's content, which may be a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part if isinstance(part, str) else _text_part(part) for part in parts]
    return "\n".join(text for text in texts if text)


def _text_part(part: Any) -> str:
    if not isinstance(part, Mapping) or part.get("type") not in (None, "text"):
        return ""
    return str(part.get("text") or "")


def reasoning_of(content: Any) -> str:
    """The reasoning among the parts of a message's content."""
    if not isinstance(content, list):
        return ""
    parts = [p for p in content if isinstance(p, Mapping) and p.get("type") == "reasoning"]
    return "\n".join(str(part.get("reasoning") or "") for part in parts)


def prompt_of(messages: Any) -> str:
    """All that was sent, as one text: the messages before the model's last."""
    if isinstance(messages, str):
        return messages
    listed = [m for m in messages if isinstance(m, Mapping)] if isinstance(messages, list) else []
    while listed and listed[-1].get("role") in ("assistant", "BOT"):
        listed.pop()
    return "\n\n".join(text_of(m.get("content", m.get("prompt"))) for m in listed)


def make_reply(
    content: Any,
    *,
    reasoning: Any = None,
    finish: Any = "",
    usage: Any = None,
    seconds: Any = 0.0,
    model: Any = "",
) -> Reply:
    """The reply behind a stored message, its thoughts kept apart."""
    text = text_of(content)
    word = str(finish or "")
    return as_reply(
        text,
        reasoning=(text_of(reasoning), reasoning_of(content)),
        finish=FINISHES.get(word, word),
        usage=_usage(usage),
        seconds=float(seconds) if isinstance(seconds, int | float) else 0.0,
        model=str(model or ""),
    )


def failed(message: Any) -> Reply:
    """The reply of a row on which the tool failed."""
    line = one_line(_SECRET.sub(REDACTED, str(message))) or "the tool says nothing more"
    kind = kind_of(0, line, "")
    return Reply(error=Fault("server" if kind == "bad_request" else kind, line))


def malformed(stored: Any) -> Reply:
    """The reply of a row that holds none: nothing, or not what the tool's versions store."""
    shown = one_line(_SECRET.sub(REDACTED, repr(stored)))[:SHOWN]
    return Reply(error=Fault("malformed", f"the log holds no reply here: {shown}"))


@contextmanager
def naming(place: Path) -> Iterator[None]:
    """Tell of a row that is laid out otherwise than expected where it stands."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        kind = type(error).__name__
        raise DataError(
            f"{place}: this row is not laid out as Keju knows it ({kind}: {error})"
        ) from None


def _usage(counts: Any) -> Usage:
    if not isinstance(counts, Mapping):
        return Usage()

    def count(*names: str) -> int:
        known = (counts.get(name) for name in names)
        return int(next((n for n in known if isinstance(n, int | float)), 0))

    return Usage(
        count("input_tokens", "prompt_tokens"),
        count("output_tokens", "completion_tokens"),
        count("input_tokens_cache_read"),
        count("reasoning_tokens"),
    )


def number(value: Any) -> float | None:
    """A score as a number; None where the tool gave none."""
    if isinstance(value, bool):
        return float(value)
    return float(value) if isinstance(value, int | float) and value == value else None


def mean(values: Iterable[float]) -> float | None:
    """The mean; None of nothing."""
    listed = list(values)
    return sum(listed) / len(listed) if listed else None
