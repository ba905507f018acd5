"""Finding what stands after a marker such as ``So the answer is``, in linear time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

LONGEST = 4000
"""Characters of a segment; whatever goes on for longer is not an answer."""


class Segment(NamedTuple):
    """What a marker introduces, and where the marker stands."""

    text: str
    """Rest of the marker's line, or the next non-empty line; empty if neither says anything."""
    start: int
    end: int


def segments_after(
    text: str, pattern: re.Pattern[str], *, paragraph: bool = False
) -> list[Segment]:
    """The segment after each match of `pattern`, in order.

    `pattern` must not backtrack over the text. See `segments_at` for where a segment ends.
    """
    return segments_at(text, [m.span() for m in pattern.finditer(text)], paragraph=paragraph)


def segments_after_literal(text: str, marker: str, *, paragraph: bool = False) -> list[Segment]:
    """The segment after each occurrence of the literal `marker`, in order."""
    spans: list[tuple[int, int]] = []
    found = text.find(marker)
    while found >= 0:
        end = found + len(marker)
        spans.append((found, end))
        found = text.find(marker, end)
    return segments_at(text, spans, paragraph=paragraph)


def segments_at(
    text: str, spans: Sequence[tuple[int, int]], *, paragraph: bool = False
) -> list[Segment]:
    """The segment after each of the markers at `spans`, which are in order and do not overlap.

    A segment is the rest of the marker's line or, if that is empty, the next non-empty line (with
    `paragraph` on to the next blank line). It never reaches beyond the next marker, so that all
    segments together are no longer than the text, and is cut after `LONGEST` characters.
    """
    segments: list[Segment] = []
    last = len(spans) - 1
    for number, (start, end) in enumerate(spans):
        limit = min(spans[number + 1][0] if number < last else len(text), end + LONGEST)
        segments.append(Segment(_segment(text, end, limit, paragraph), start, end))
    return segments


def _segment(text: str, start: int, limit: int, paragraph: bool) -> str:
    line_end = text.find("\n", start, limit)
    if line_end < 0:
        return text[start:limit].strip()
    rest = text[start:line_end].strip()
    if rest.strip("*_`"):
        return rest
    block: list[str] = []
    while line_end >= 0:
        next_end = text.find("\n", line_end + 1, limit)
        line = text[line_end + 1 : next_end if next_end >= 0 else limit].strip()
        if line:
            block.append(line)
        if block and not (line and paragraph):
            break
        line_end = next_end
    return "\n".join(block)


def last_line(text: str) -> str:
    """The last line that is not blank, stripped."""
    bare = text.rstrip()
    return bare[bare.rfind("\n") + 1 :].strip()
