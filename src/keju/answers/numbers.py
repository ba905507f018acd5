"""Numbers in text, read by value: sign, point and exponent count, the way of writing does not."""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal
from typing import NamedTuple

from keju.answers.clean import clean_segment

LONGEST = 60
"""Characters of a number; whatever is longer is not an answer."""

_SUPERSCRIPTS = str.maketrans("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "+-0123456789")
_POWER_OF_TEN = re.compile(r"(?<=10)[⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,4}")
_SIGNS = str.maketrans({"\u2212": "-", "\u2010": "-", "\u2011": "-", "\ufe63": "-"})
"""The minus sign and the hyphens that stand for it."""

_EXPONENT = r"(?:\^|\*\*)\s?[({]?\s?([-+]?\d{1,4})(?!\d)[)}]?"
_NUMBER = re.compile(
    r"(?<![\w.^])(?<![A-Za-z][-_])"
    r"((?:(?<![\w)%])[-+])?(?:\d{1,3}(?:,\d{3})++(?![\d])(?:\.\d++)?|\d++(?:\.\d++)?|\.\d++))"
    r"(?:[eE]([-+]?\d{1,4})(?!\d)|\s?(?:[x×*·⋅]|\\times|\\cdot)\s?10\s?" + _EXPONENT + r"|"
    r"(?<=10)\s?" + _EXPONENT + r")?"
    r"(\s?(?:\\?%|(?i:per ?cent)\b))?"
)
"""Groups: mantissa; exponent after ``e``, after ``x 10^``, and of a bare ``10^``; per cent."""

_PART_OF_MORE = re.compile(r"[A-Za-zµμ°]|\s?(?i:thousand|million|billion|trillion)\b|[:/]\s?\d")
_MORE_BEFORE = re.compile(r"(?:\d\s?[:/]|[<>≤≥]=?)\s?$")
_PAIR = re.compile(r"[(\[]\s?[-+]?\d{1,3},\d{3}\s?[)\]]")
"""Two bounds that could also be one number with a thousands separator."""


class Number(NamedTuple):
    """One number of a text."""

    value: Decimal
    """As written: ``35 %`` is 35. Its exponent tells how many digits were printed."""
    percent: bool
    clear: bool
    """False where it is part of something else: ``10k``, ``3/4``, ``< 5``, ``2 million``."""
    start: int
    end: int

    @property
    def quantum(self) -> Decimal:
        """One unit of the last printed digit."""
        exponent = self.value.as_tuple().exponent
        return Decimal((0, (1,), exponent if isinstance(exponent, int) else 0))


class Range(NamedTuple):
    """Two bounds, the lower one first; both belong to it."""

    low: Decimal
    high: Decimal

    def holds(self, value: Decimal) -> bool:
        """Whether `value` lies between the bounds or on one of them."""
        return self.low <= value <= self.high


def plain_numerals(text: str) -> str:
    """`text` with superscript powers of ten, full-width digits and minus signs in plain form."""
    if text.isascii():
        return text
    text = _POWER_OF_TEN.sub(lambda match: "^" + match[0].translate(_SUPERSCRIPTS), text)
    return unicodedata.normalize("NFKC", text).translate(_SIGNS)


def numbers_in(text: str) -> list[Number]:
    """The numbers of a text that is in plain form (`plain_numerals`), in order.

    Digits that belong to a name (``CD14``, ``IL-6``, ``m^2``) are no numbers.
    """
    found = []
    for match in _NUMBER.finditer(text):
        start, end = match.span()
        value = _value(match) if end - start <= LONGEST else None
        clear = value is not None and _is_clear(text, start, end)
        found.append(Number(value or Decimal(0), bool(match[5]), clear, start, end))
    return found


def number_of(text: str) -> Number | None:
    """The number that `text` is, dressing and a final full stop aside; None if it is none."""
    bare = clean_segment(plain_numerals(text))
    if len(bare) > LONGEST:
        return None
    match = _NUMBER.fullmatch(bare)
    value = _value(match) if match else None
    if match is None or value is None:
        return None
    return Number(value, bool(match[5]), True, 0, len(bare))


def range_of(text: str) -> Range | None:
    """The range ``(lower,upper)`` that `text` is, reversed bounds put right; None if it is none."""
    bare = plain_numerals(text).strip()
    if not (bare[:1] in "([" and bare[-1:] in ")]") or bare.count(",") != 1:
        return None
    first, second = (number_of(part.strip()) for part in bare[1:-1].split(","))
    if first is None or second is None or first.percent or second.percent:
        return None
    return Range(*sorted((first.value, second.value)))


def same_number(first: Number, second: Number) -> bool:
    """Whether two numbers are equal as written: by value, and both or neither in per cent."""
    return first.value == second.value and first.percent == second.percent


def _value(match: re.Match[str]) -> Decimal | None:
    """The value of a match; None for a power of anything but ten."""
    mantissa = match[1].replace(",", "")
    if match[4] is None:
        return Decimal(f"{mantissa}e{match[2] or match[3] or 0}")
    if mantissa.lstrip("+-") != "10":
        return None
    return Decimal(f"{mantissa[:-1]}e{match[4]}")


def _is_clear(text: str, start: int, end: int) -> bool:
    if _PART_OF_MORE.match(text, end) or _MORE_BEFORE.search(text, max(0, start - 4), start):
        return False
    return start == 0 or not _PAIR.match(text, start - 1)
