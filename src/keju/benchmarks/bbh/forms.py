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


class Verdicts:
    """A closed set of words, each standing for a value; only a leading word counts."""

    def __init__(self, values: dict[str, str], lead: str = "") -> None:
        self._values = values
        words = "|".join(sorted(values, key=len, reverse=True))
        joined = rf"(?:\s*(?:\bor\b|\band\b|[/,&])\s*(?:{lead})?({words})\b)?"
        self._pattern = re.compile(rf"(?:{lead})?({words})\b(?!-| one\b){joined}", re.I | re.A)

    def read(self, segment: str, sample: Sample) -> Found:
        """The value of the leading word; two words of different value are ambiguous."""
        match = self._pattern.match(clean_segment(segment))
        if match is None:
            return NOTHING
        value, other = self._value(match[1]), match[2]
        return AMBIGUOUS if other and self._value(other) != value else Found(value)

    def whole(self, line: str, sample: Sample) -> str | None:
        """The value of a line that is nothing but one of the words."""
        bare = clean_segment(line)
        match = self._pattern.match(bare)
        return self._value(match[1]) if match and match.end(1) == len(bare) else None

    def _value(self, words: str) -> str:
        return self._values[words.lower()]


BOOL = Verdicts({"true": "True", "false": "False"})
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
    },
    lead="deductively ",
)


def same_word(value: str, target: str) -> bool:
    return value.lower() == target.strip().lower()


NUMBER_WORDS = {
    word: number
    for number, word in enumerate(
        (
            "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
            "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen",
            "eighteen", "nineteen", "twenty",
        )
    )
}  # fmt: skip
_NUMBER = re.compile(
    r"[(\[]?\s?(-|\+|minus |negative )?\s?\$?\s?([+-]?)(\d{1,3}(?:,\d{3})++(?!\d)|\d++)(\.\d++)?"
    r"(?!\w|\s?[-+*/×^:]\s?[\d(])",
    re.I | re.A,
)
_NUMBER_WORD = re.compile(r"(minus |negative )?([a-z]+)(?!-| of\b)", re.I | re.A)
_ANOTHER_NUMBER = re.compile(r"\s*(?:or\b|and\b|[,/&])\s*[+-]?\d", re.I | re.A)
_CLOSING = ")] "


class Integers:
    """Whole numbers in any usual spelling; another number is an answer too, though a wrong one."""

    def read(self, segment: str, sample: Sample) -> Found:
        """The number after the last ``=``, or the leading one; words after it do not count."""
        bare = _plain_number(segment)
        for part in (bare.rpartition("=")[2].strip(DRESSING), bare) if "=" in bare else (bare,):
            value, end = _leading_number(part)
            if value is not None:
                return AMBIGUOUS if _ANOTHER_NUMBER.match(part, end) else Found(value)
        return NOTHING

    def whole(self, line: str, sample: Sample) -> str | None:
        """The number of a line that is nothing but a number."""
        bare = _plain_number(line)
        value, end = _leading_number(bare)
        return value if value is not None and not bare[end:].strip(_CLOSING) else None

    def same(self, value: str, target: str) -> bool:
        return value == (_leading_number(_plain_number(target))[0] or target)


def _plain_number(segment: str) -> str:
    """The cleaned segment with ASCII minus signs and plain thousands commas."""
    bare = clean_segment(segment)
    return (
        bare
        if bare.isascii() and "{" not in bare
        else (bare.replace("\u2212", "-").replace("\u2013", "-").replace("{,}", ","))
    )


def _leading_number(bare: str) -> tuple[str | None, int]:
    """The number that `bare` begins with, in canonical spelling, and where it ends."""
    match = _NUMBER.match(bare)
    if match is None:
        return _leading_number_word(bare)
    negative = (match[1] or "").strip().lower() in ("-", "minus", "negative")
    digits = match[3].replace(",", "").lstrip("0") or "0"
    fraction = (match[4] or "").rstrip("0").rstrip(".")
    sign = "-" if negative != (match[2] == "-") and digits + fraction != "0" else ""
    return sign + digits + fraction, match.end()


def _leading_number_word(bare: str) -> tuple[str | None, int]:
    match = _NUMBER_WORD.match(bare)
    if match is None or (number := NUMBER_WORDS.get(match[2].lower())) is None:
        return None, 0
    following = bare[match.end() :].split(maxsplit=1)
    if number == 20 and following and following[0].strip(".,").lower() in NUMBER_WORDS:
        return None, 0
    return str(-number if match[1] else number), match.end()
