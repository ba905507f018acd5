"""Numbers and texts as people read them. A value that is not known prints as a dash, never 0."""

from __future__ import annotations

import re
from collections.abc import Sequence

UNKNOWN = "–"

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Control characters and direction overrides: they could drive a terminal or disguise a text."""

_CANARY = re.compile(
    r"canary\W+guid|canary.*[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    re.IGNORECASE,
)


def percent(value: float | None, digits: int = 2) -> str:
    """A share in percent, e.g. ``63.59 %``."""
    return UNKNOWN if value is None else f"{value * 100:.{digits}f} %"


def published(value: float | None) -> str:
    """A published share in percent with no more digits than it needs, e.g. ``67.7 %``."""
    if value is None:
        return UNKNOWN
    return f"{value * 100:.2f}".rstrip("0").rstrip(".") + " %"


def interval(bounds: Sequence[float] | None, digits: int = 2) -> str:
    """An interval of shares in percent without the sign, e.g. ``60.52–66.55``."""
    if bounds is None:
        return UNKNOWN
    low, high = bounds
    return f"{low * 100:.{digits}f}–{high * 100:.{digits}f}"


def count(value: int | None) -> str:
    """A whole number with thousands separated."""
    return UNKNOWN if value is None else f"{value:,}"


def compact(value: float) -> str:
    """A rate or a large count in three or four characters, e.g. ``4.1k``."""
    for limit, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            scaled = value / limit
            return f"{scaled:.0f}{suffix}" if scaled >= 100 else f"{scaled:.1f}{suffix}"
    return f"{value:.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"


def duration(seconds: float | None) -> str:
    """A time span in the two units that matter, e.g. ``2 h 05 min``."""
    if seconds is None:
        return UNKNOWN
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def money(value: float) -> str:
    """A cost in the currency of the user's price list, finer where it is small."""
    return f"{value:,.2f}" if value >= 1 else f"{value:.4f}"


def printable(text: str, *, one_line: bool = False) -> str:
    """`text` without characters that could drive a terminal; line ends kept unless `one_line`."""
    text = text.replace("\r\n", "\n")
    if one_line:
        text = " ".join(text.split())
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def without_canary(text: str) -> str:
    """`text` without the lines that hold a data set's canary string."""
    if "canary" not in text.casefold():
        return text
    return "\n".join(line for line in text.split("\n") if not _CANARY.search(line))


def shorten(text: str, limit: int) -> str:
    """`text` on one line and at most `limit` characters long."""
    text = printable(text, one_line=True)
    return text if len(text) <= limit else text[: limit - 1] + "…"
