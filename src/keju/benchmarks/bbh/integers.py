"""Normal form of whole numbers, and what makes a number another one than it seems."""

from __future__ import annotations

import re

from keju.answers.clean import DRESSING, clean_segment
from keju.answers.lead import without_emphasis
from keju.answers.links import FINAL, LINK, strength_of
from keju.benchmarks.bbh.forms import AMBIGUOUS, NOTHING, Found
from keju.types import Sample

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
_WORDS = "|".join(NUMBER_WORDS)
_NUMBER = re.compile(
    r"[(\[]?\s?(-|\+|minus |negative )?\s?\$?\s?([+-]?)(\d{1,3}(?:,\d{3})++(?!\d)|\d++)(\.\d++)?"
    r"(?!\w|\s?[-+*/×^]\s?[\d(])",
    re.I | re.A,
)
_NUMBER_WORD = re.compile(r"(minus |negative )?([a-z]+)(?!-| of\b)", re.I | re.A)
_ANY_NUMBER = re.compile(rf"(?:about |around )?[+-]?(?:\d[\d,.]*+|((?:{_WORDS})\b))", re.I | re.A)
_MORE_THAN_A_NUMBER = re.compile(
    r"[)\]]?(?:"
    r"[\s-]{0,2}(?:hundred|thousand|million|billion|trillion|quadrillion|dozen|lakh|crore)s?\b"
    r"|\s?[百千万亿萬億]|\s?(?:%|\\%|％|‰|percent\b|per cent\b|pct\b)"
    r"|\s+\d|\s?[½⅓⅔¼¾⅕⅛⅜⅝⅞²³⁰¹⁴⁵⁶⁷⁸⁹]"
    r"|\s+(?:and|&)\s+(?:an?\s+|one[\s-]|three[\s-])?(?:half|third|quarter|fifth)s?\b|\s+\d+/\d"
    r"|\s?(?:[x×*·⋅∙÷^/]|\\times\b|\\cdot\b|\\div\b)\s?[\d({]|\s?(?:\.{2,}|…|~|～|〜|±|\\pm|\+/-)"
    rf"|\s+(?:(?:times|(?:multiplied|divided) by|plus|minus|over|point)\s+(?:\d|(?:{_WORDS})\b)"
    r"|squared|cubed|to the power)"
    r"|\s+(?:tenth|hundredth|thousandth|third|halve|fifth|sixth|seventh|eighth|ninth)s\b"
    r"|\s?\+(?!\w)|\s+or\s+(?:more|less|fewer|higher|lower|greater|above|below|so)\b"
    r")",
    re.I,
)
"""Magnitudes, shares, fractions, products and bounds: the number before them is not the answer."""
_OFFERED = re.compile(
    r"\b(?:otherwise|else|alternatively|in which case)\b[\s,:]*(?:it is |the answer is )?[+-]?\d",
    re.I | re.A,
)
_OPENING, _CLOSING = ("(", "["), (")", "]")


class Integers:
    """Whole numbers in any usual spelling; another number is an answer too, though a wrong one."""

    def read(self, segment: str, sample: Sample) -> Found:
        """The number after the last ``=``, or the leading one; words after it do not count."""
        bare = _plain_number(segment)
        for part in (bare.rpartition("=")[2].strip(DRESSING), bare) if "=" in bare else (bare,):
            part = without_emphasis(part) if part[:1].isalpha() else part
            value, end = _leading_number(part)
            if value is not None:
                return Found(value) if end == len(part) else _weighed(value, part, end)
        return NOTHING

    def whole(self, line: str, sample: Sample) -> str | None:
        """The number of a line that is nothing but a number."""
        bare = _plain_number(line)
        if bare[:1] in _OPENING and not bare.endswith(_CLOSING):
            return None
        value, end = _leading_number(bare)
        return value if value is not None and not bare[end:].strip(" )]") else None

    def same(self, value: str, target: str) -> bool:
        return value == (_leading_number(_plain_number(target))[0] or target)


def _weighed(value: str, part: str, end: int) -> Found:
    """The number that ends at `end`, unless what follows makes it part of more, or one of two."""
    if _MORE_THAN_A_NUMBER.match(part, end) or _OFFERED.search(part, end):
        return AMBIGUOUS
    link = LINK.match(part, end)
    if link is None or link.end() == end:
        return Found(value)
    other = _ANY_NUMBER.match(part, link.end())
    if other is None:
        return Found(value)
    strength = strength_of(link[0])
    firm = strength == "either" or (strength == "joined" and not other[1])
    return AMBIGUOUS if firm or FINAL.match(part, other.end()) else Found(value)


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
