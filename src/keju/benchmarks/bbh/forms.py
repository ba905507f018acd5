"""Normal forms of short answers: labels, truth values, verdicts, integers.

Each function reads one segment of a reply, already cut out by a marker, or says that the segment is
no answer of its kind. Values come back in the data set's own spelling, so that comparing them with
a target is comparing normal forms.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from keju.answers.clean import DRESSING, clean_segment
from keju.answers.labels import read_bare_label, read_label
from keju.types import Sample


class Found(NamedTuple):
    """What a segment answers, or why it answers nothing."""

    value: str | None
    reason: str = ""


NOTHING = Found(None, "invalid_answer")
AMBIGUOUS = Found(None, "ambiguous")

SPORTS = "sports_understanding"

_LETTER_TARGET = re.compile(r"\([A-Z]\)")


def read_choice(segment: str, sample: Sample) -> Found:
    """A label of the row, an option's text, or the target where the data has text for a label."""
    if not _LETTER_TARGET.fullmatch(sample.target) and _is_target_text(segment, sample):
        return Found(sample.target)
    return Found(*read_label(segment, sample.labels, sample.choices))


def whole_choice(line: str, sample: Sample) -> str | None:
    """The label of a line that is nothing but an answer."""
    if not _LETTER_TARGET.fullmatch(sample.target) and _is_target_text(line, sample):
        return sample.target
    return read_bare_label(line, sample.labels, sample.choices)


def same_choice(value: str, target: str) -> bool:
    return value == target or f"({value})" == target


def _is_target_text(segment: str, sample: Sample) -> bool:
    return clean_segment(segment).casefold() == clean_segment(sample.target).casefold()


_JOINED = r"(?:\s*(?:\bor\b|\band\b|[/,&])\s*(?:{words})\b)?"
_BOOL = re.compile(r"(true|false)\b(?!-)" + r"(\s*(?:\bor\b|\band\b|[/,&])\s*(?:true|false)\b)?", re.I | re.A)
_YES_NO = re.compile(r"(yes|no)\b(?!-| one\b)(\s*(?:\bor\b|\band\b|[/,&])\s*(?:yes|no)\b)?", re.I | re.A)
_PLAUSIBLE = re.compile(r"(plausible|implausible|not plausible)\b(\s*(?:\bor\b|/)\s*(?:not |im)?plausible\b)?", re.I | re.A)
_VALID = re.compile(
    r"(?:deductively )?(valid|invalid|not (?:deductively )?valid)\b(\s*(?:\bor\b|/)\s*(?:not |in)?valid\b)?", re.I | re.A
)
