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

_DASH = "-\u2012\u2013\u2014\u2015"
"""Hyphen, figure dash, en dash, em dash and bar: each may stand for a minus or for ``to``."""
_LONG_DASHES = "\u2014\u2015"
_EXPONENT = rf"(?:\^|\*\*)\s?[({{]?\s?([{_DASH}+]?\d{{1,4}})(?!\d)[)}}]?"
_NUMBER = re.compile(
    r"(?<![\w.^])(?<![A-Za-z][-_])"
    r"(\d{1,3}(?:,\d{3})++(?![\d])(?:\.\d++)?|\d++(?:\.\d++)?|\.\d++)"
    rf"(?:[eE]([{_DASH}+]?\d{{1,4}})(?!\d)|\s?(?:[x×*·⋅]|\\times|\\cdot)\s?10\s?"
    + _EXPONENT
    + r"|(?<=10)\s?"
    + _EXPONENT
    + r")?(\s?(?:\\?%|(?i:per ?cent)\b))?"
)
"""Groups: mantissa; exponent after ``e``, after ``x 10^``, and of a bare ``10^``; per cent."""

_SIGN = re.compile(rf"(?:([{_DASH}]|(?<![A-Za-z])(?i:minus|negative)(?=[ \t]))|\+)[ \t]?")
"""A sign in front of a number; the first group is set where it may be a minus."""
_SIGN_BEFORE = re.compile(_SIGN.pattern + r"\Z")
_SIGN_REACH = 10
_BEFORE_MINUS = "=≈≅~:([{,;*_`$\"'“‘|<>≤≥≠"
"""After these a dash is a minus, with blanks or without."""
_WORD_BEFORE_MINUS = re.compile(
    r"\b(?i:is|was|are|were|be|equals|to|of|about|approximately|around|roughly|exactly|and)\Z"
)
_WORD_REACH = 14

_PART_OF_MORE = re.compile(
    r"[A-Za-zµμ°′″_^+]|[ \t][+^]|[.,'’ ]\d|[ ](?i:plus|minus|times)\s|"
    r"[ \t]?(?:[<>](?!/?[A-Za-z]{1,10}>)|[≤≥≠]|!=)|[ \t][x×÷/](?![A-Za-z])|"
    r"\s?(?i:dozens?|hundreds?|thousands?|millions?|billions?|trillions?|[mb]n)\b|"
    rf"[:/]\s?\d|[ \t]?(?:[{_DASH}x×*·⋅÷/~]|\*\*|\.{{2,3}}|\\times|\\cdot)[ \t]?[-+(]?\.?\d"
)
_MORE_BEFORE = re.compile(
    r"(?:\d\s?[:/]|[<>≤≥]=?|[≠≮≯≲≳≪≫±√#]|[!/]=|=/=|\+/-|\\(?:neq?|leq?|geq?|lt|gt|pm)\b|"
    r"\d[%)]?[ \t]?(?:[x×*·⋅÷/+~]|\*\*|\.{2,3}|\\times|\\cdot)|\d (?i:plus|times))\s?$|\d[,'’ ]$"
)
_REACH = 8
_PAIR = re.compile(r"[(\[]\s?[-+]?\d{1,3},\d{3}\s?[)\]]")
"""Two bounds that could also be one number with a thousands separator."""


class Number(NamedTuple):
    """One number of a text."""

    value: Decimal
    """As written: ``35 %`` is 35. Its exponent tells how many digits were printed."""
    percent: bool
    clear: bool
    """False where it is part of something else: ``10k``, ``3/4``, ``< 5``, ``5-7``, ``2^5``; and
    where a dash before it may be a minus or not.
    """
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
        sign = _sign_before(text, match.start())
        end = match.end()
        value = _value(match, sign.negative) if end - sign.start <= LONGEST else None
        clear = sign.clear and value is not None and _is_clear(text, sign.start, end)
        found.append(Number(value or Decimal(0), bool(match[5]), clear, sign.start, end))
    return found


def number_of(text: str) -> Number | None:
    """The number that `text` is, dressing and a final full stop aside; None if it is none."""
    bare = clean_segment(plain_numerals(text))
    if len(bare) > LONGEST:
        return None
    sign = _SIGN.match(bare)
    match = _NUMBER.fullmatch(bare, sign.end() if sign else 0)
    value = _value(match, bool(sign and sign[1])) if match else None
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


class _Sign(NamedTuple):
    """What stands before the digits of a number."""

    start: int
    """Where the number begins, its own sign included."""
    negative: bool = False
    clear: bool = True


def _sign_before(text: str, start: int) -> _Sign:
    """The sign of the digits at `start`, told from a dash between two numbers or two words."""
    found = _SIGN_BEFORE.search(text, max(0, start - _SIGN_REACH), start)
    if found is None:
        return _Sign(start)
    at = found.start()
    stem = at
    while stem and text[stem - 1] in " \t" and at - stem < _SIGN_REACH:
        stem -= 1
    before = text[stem - 1] if stem else "\n"
    attached = found.end() == at + 1
    leading = attached and stem < at  # about -5
    if before.isdecimal() or before in ")]}%":
        return _Sign(at, bool(found[1]), clear=False) if leading else _Sign(start, clear=False)
    if not found[1]:
        return _Sign(at, clear=attached)
    if before == "\n":
        return _Sign(at, True, clear=attached or found[1].isalpha())
    if found[1].isalpha():
        clear = bool(_WORD_BEFORE_MINUS.search(text, max(0, stem - _WORD_REACH), stem))
    else:
        clear = leading and (before.isalpha() or before in ".!?") and found[1] not in _LONG_DASHES
    return _Sign(at, True, clear=clear or before in _BEFORE_MINUS)


def _value(match: re.Match[str], negative: bool) -> Decimal | None:
    """The value of a match; None for a power of anything but ten."""
    mantissa = match[1].replace(",", "")
    sign = "-" if negative else ""
    if match[4] is None:
        return Decimal(f"{sign}{mantissa}e{_plain_exponent(match[2] or match[3] or '0')}")
    if mantissa != "10":
        return None
    return Decimal(f"{sign}1e{_plain_exponent(match[4])}")


def _plain_exponent(digits: str) -> str:
    return f"-{digits[1:]}" if digits[0] in _DASH else digits


def _is_clear(text: str, start: int, end: int) -> bool:
    if _PART_OF_MORE.match(text, end) or _MORE_BEFORE.search(text, max(0, start - _REACH), start):
        return False
    return start == 0 or not _PAIR.match(text, start - 1)
