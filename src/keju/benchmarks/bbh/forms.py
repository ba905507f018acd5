"""Normal forms of short answers: labels, truth values, verdicts.

Each function reads one segment of a reply, already cut out by a marker, or says that the segment is
no answer of its kind. Values come back in the data set's own spelling, so that comparing them with
a target is comparing normal forms.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from keju.answers.clean import DRESSING, clean_segment
from keju.answers.labels import read_bare_label, read_label
from keju.answers.lead import without_lead
from keju.answers.links import LINK, counts_as_second
from keju.types import Sample


class Found(NamedTuple):
    """What a segment answers, or why it answers nothing."""

    value: str | None
    reason: str = ""


NOTHING = Found(None, "invalid_answer")
AMBIGUOUS = Found(None, "ambiguous")
DENIED = Found(None, "denied")

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


class Verdicts:
    """A closed set of words, each standing for a value; only a leading word counts."""

    def __init__(self, values: dict[str, str], lead: str = "", *, equations: bool = False) -> None:
        """With `equations` the value after the last ``=`` counts."""
        self._values = values
        self._equations = equations
        words = "|".join(sorted(values, key=len, reverse=True))
        word = rf"(?:{lead})?({words})\b(?!-)"
        self._pattern = re.compile(word, re.I | re.A)
        self._offered = re.compile(
            rf"\b(?:otherwise|else|alternatively)\b[\s,:]*(?:it is |the answer is )?{word}",
            re.I | re.A,
        )

    def read(self, segment: str, sample: Sample) -> Found:
        """The value of the leading word; two words of different value are ambiguous."""
        bare = without_lead(clean_segment(segment))
        if self._equations and "=" in bare:
            bare = bare.rpartition("=")[2].lstrip(DRESSING)
        if bare[:1] in _OPENING:
            bare = bare[1:].lstrip(DRESSING)
        match = self._pattern.match(bare)
        if match is None or _is_other_use(bare, match):
            return NOTHING
        value, end = self._value(match[1]), match.end()
        if end == len(bare):
            return Found(value)
        if _QUESTIONED.match(bare, end):
            return NOTHING
        if self._has_second(bare, end, value):
            return AMBIGUOUS
        offered = self._offered.search(bare, end)
        return AMBIGUOUS if offered and self._value(offered[1]) != value else Found(value)

    def _has_second(self, bare: str, end: int, value: str) -> bool:
        """Whether a word of another value is joined to the one that ends at `end`."""
        link = LINK.match(bare, end)
        if link is None or link.end() == end:
            return False
        other = self._pattern.match(bare, link.end())
        if other is None or self._value(other[1]) == value or _is_other_use(bare, other):
            return False
        return counts_as_second(bare, link[0], other.end(), other.end())

    def whole(self, line: str, sample: Sample) -> str | None:
        """The value of a line that is nothing but one of the words."""
        match = self._pattern.fullmatch(clean_segment(line).strip("[]() "))
        return self._value(match[1]) if match else None

    def _value(self, words: str) -> str:
        return self._values[words.lower()]


_OPENING = ("(", "[", "{")
_QUESTIONED = re.compile(r"[*_\"'”’]{0,3}\?")
_NO_MATTER = re.compile(r"\s+([A-Za-z’']+)")
_AFTER_NO = frozenset({
    "according", "after", "and", "as", "based", "because", "but", "by", "considering", "due", "for",
    "from", "given", "he", "i", "if", "in", "is", "it", "its", "not", "on", "or", "per", "she",
    "since", "so", "that", "the", "there", "therefore", "these", "they", "this", "though", "under",
    "unless", "versus", "vs", "we", "when", "which", "while", "with", "you", "yes", "otherwise",
    "alternatively", "maybe", "perhaps", "plausible", "implausible",
})  # fmt: skip
"""Words that can follow the verdict ``No``; before any other it counts things: ``no answer``."""


def _is_other_use(bare: str, match: re.Match[str]) -> bool:
    """Whether the word is no verdict but part of a phrase such as ``no longer``."""
    if match[1].lower() != "no":
        return False
    word = _NO_MATTER.match(bare, match.end())
    return word is not None and word[1].lower() not in _AFTER_NO


BOOL = Verdicts({"true": "True", "false": "False"}, equations=True)
YES_NO = Verdicts({"yes": "Yes", "no": "No"})
PLAUSIBLE = Verdicts(
    {"yes": "yes", "no": "no", "plausible": "yes", "implausible": "no", "not plausible": "no"}
)
"""sports_understanding asks whether a sentence is plausible and spells yes and no in lower case."""
VALID = Verdicts(
    {
        "valid": "valid",
        "invalid": "invalid",
        "not valid": "invalid",
        "not deductively valid": "invalid",
        "not logically valid": "invalid",
    },
    lead="deductively |logically ",
)


def same_word(value: str, target: str) -> bool:
    return value.lower() == target.strip().lower()
