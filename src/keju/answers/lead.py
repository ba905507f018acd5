"""What may stand between a marker and its answer without changing it: bullets and emphasis."""

from __future__ import annotations

import re

ADVERBS = (
    r"(?:(?:definitely|indeed|clearly|therefore|thus|hence|then|simply|certainly|obviously|surely"
    r"|actually|undoubtedly|evidently|apparently|ultimately|finally|exactly|just|probably|likely"
    r"|in fact|of course|no doubt|without (?:a )?doubt|most (?:likely|probably|certainly))"
    r"\b[,:]? {0,4})"
)
"""One word of emphasis; letter case does not matter."""

BULLET = r"(?:[-–—•·▪●>→]\s{1,4}(?=\S))"
"""The sign of a list's item. A number's minus looks the same, so numbers keep theirs."""

_EMPHASIS = re.compile(rf"{ADVERBS}{{1,3}}", re.IGNORECASE)
_LEAD = re.compile(rf"{BULLET}?[*_`\"'“]{{0,3}}{ADVERBS}{{0,3}}", re.IGNORECASE)


def without_lead(segment: str) -> str:
    """`segment` from its answer on: without a bullet and words such as ``clearly`` before it."""
    lead = _LEAD.match(segment)
    return segment[lead.end() :] if lead and lead.end() else segment


def without_emphasis(segment: str) -> str:
    """`segment` without words such as ``clearly`` before it; a dash may be a minus and stays."""
    lead = _EMPHASIS.match(segment)
    return segment[lead.end() :] if lead else segment
