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
    """The segment after each of the markers at `spans`, in order."""
    return [segment_at(text, spans, number, paragraph=paragraph) for number in range(len(spans))]


def segment_at(
    text: str, spans: Sequence[tuple[int, int]], number: int, *, paragraph: bool = False
) -> Segment:
    """The segment after one of the markers at `spans`, which are in order and do not overlap.

    A segment is the rest of the marker's line or, if that is empty, the next non-empty line (with
    `paragraph` on to the next blank line). It never reaches beyond the next marker, so that all
    segments together are no longer than the text, and is cut after `LONGEST` characters.
    """
    start, end = spans[number]
    limit = spans[number + 1][0] if number + 1 < len(spans) else len(text)
    if limit == end:
        return Segment("", start, end)
    return Segment(_segment(text, end, min(limit, end + LONGEST), paragraph), start, end)


_FENCE = re.compile(r"(?:```|~~~)[\w+.-]*+")
_EMPTY_LINES = frozenset({"$$", "\\[", "\\(", "---", "***", '"""'})
"""Lines that only set what follows apart."""
_BULLETS = ("- ", "* ", "• ")
CLOSING_TAG = "</"
"""Ends what a tag such as ``<answer>`` introduces."""


def _segment(text: str, start: int, limit: int, paragraph: bool) -> str:
    line_end = text.find("\n", start, limit)
    if line_end < 0:
        return _inside_tag(text[start:limit].strip())
    rest = text[start:line_end].strip()
    if rest.strip("*_`") and not _sets_apart(rest):
        return _inside_tag(rest)
    block: list[str] = []
    while line_end >= 0:
        next_end = text.find("\n", line_end + 1, limit)
        line = text[line_end + 1 : next_end if next_end >= 0 else limit].strip()
        line_end = next_end
        if not line or _sets_apart(line):
            if block:
                break
            continue
        if block and not (paragraph or _continues(block, line)):
            break
        block.append(line)
    return _inside_tag("\n".join(block))


def _continues(block: list[str], line: str) -> bool:
    """Whether `line` is one of the items of a list: several items are not one answer."""
    return line[:2] in _BULLETS and block[0][:2] in _BULLETS


def _sets_apart(line: str) -> bool:
    """Whether a line holds no answer itself: the beginning or end of a code block, a rule."""
    return line in _EMPTY_LINES or _FENCE.fullmatch(line) is not None


def _inside_tag(segment: str) -> str:
    return segment.partition(CLOSING_TAG)[0].rstrip() if CLOSING_TAG in segment else segment


def last_line(text: str) -> str:
    """The last line that is not blank, stripped."""
    bare = text.rstrip()
    return bare[bare.rfind("\n") + 1 :].strip()


def last_block(text: str) -> str:
    """What ends the text: the inside of a code block, or else the last line."""
    line = last_line(text)
    if line[:3] not in ("```", "~~~"):
        return line
    inside = text.rstrip()[: -len(line)].rstrip()
    opening = inside.rfind(f"\n{line[:3]}")
    if opening < 0 and not inside.startswith(line[:3]):
        return line
    return inside[opening + 1 :].partition("\n")[2].strip()


def last_paragraph(text: str) -> str:
    """The lines after the last blank one; of several, not a first one that ends with a colon."""
    bare = text.rstrip()
    paragraph = bare[bare.rfind("\n\n") + 1 :].strip()
    first, _, rest = paragraph.partition("\n")
    return rest if rest and first.rstrip("*_ ").endswith((":", "：")) else paragraph
