"""Numbers in text. They are read by value, so different spellings of a number are equal.

`_NUMBER` is the grammar of a number. `_PART_OF_MORE` lists the signs that a number is part of a
longer expression. Both are used for a text that is a number (`parse_number`), begins with a number
(`parse_leading_number`) or contains numbers (`find_numbers`).
"""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal
from typing import NamedTuple

from keju.answers.lazy_patterns import lazy_pattern
from keju.answers.phrases import load_words
from keju.answers.segments import clean_segment

LONGEST = 60
"""The longest number, in characters. Longer text is not an answer."""

_SUPERSCRIPTS = str.maketrans("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "+-0123456789")
# The power in `10⁻³` or `5²`, not the `²` of `m²`.
_POWER = lazy_pattern(r"(?<=\d)[⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,4}")
# The narrow blank in `2 416`.
_THIN_SPACE = lazy_pattern(r"(?<=\d)[\u2009\u202f\u00a0](?=\d{3}(?!\d))")
# The fraction in `3½` or `3 ½`, not `½` alone.
_VULGAR = lazy_pattern(r"(?<=\d)(?=[½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞])")
_SIGNS = str.maketrans({"\u2212": "-", "\u2010": "-", "\u2011": "-", "\ufe63": "-", "\u2044": "/"})
"""The minus sign and the hyphens with the same meaning, and the slash of a fraction."""

_DASH = "-\u2012\u2013\u2014\u2015"
"""Hyphen, figure dash, en dash, em dash and bar. Each may mean a minus or ``to``."""
_LONG_DASHES = "\u2014\u2015"
# `^-3`, `**{6}`, `^(12)`: group 1 is the exponent.
_EXPONENT = rf"(?:\^|\*\*)\s?[({{]?\s?([{_DASH}+]?\d{{1,4}})(?!\d)[)}}]?"
# `1,000.5`, `.5`, `5e-3`, `5 x 10^-3`, `10**6`, `35 %`; not the digits of `CD14`, `IL-6`, `m^2`.
# Groups: mantissa; exponent after `e`, after `x 10^`, and of a bare `10^`; per cent.
_NUMBER = lazy_pattern(
    r"(?<![\w.^])(?<![A-Za-z][-_])"
    r"(\d{1,3}(?:,\d{3})++(?![\d])(?:\.\d++)?|\d++(?:\.\d++)?|\.\d++)"
    rf"(?:[eE]([{_DASH}+]?\d{{1,4}})(?!\d)|\s?(?:[x×*·⋅]|\\times|\\cdot)\s?10\s?"
    + _EXPONENT
    + r"|(?<=10)\s?"
    + _EXPONENT
    + r")?(\s?(?:\\?%|(?i:per ?cent)\b))?"
)
# A sign in front of a number, `- `, `minus`, `+`; group 1 is set where it may be a minus.
_SIGN = lazy_pattern(rf"(?:([{_DASH}]|(?<![A-Za-z])(?i:minus|negative)(?=[ \t]))|\+)[ \t]?")
_SIGN_BEFORE = lazy_pattern(_SIGN.pattern + r"\Z")
_SIGN_REACH = 10
_BEFORE_MINUS = "=≈≅~:([{,;*_`$\"'“‘|<>≤≥≠"
"""Signs before a dash that is a minus, with or without blanks."""
# `is`, `about`: after these a `minus` is a sign, after `five` it is not.
_WORD_BEFORE_MINUS = lazy_pattern(
    r"\b(?i:is|was|are|were|be|equals|to|of|about|approximately|around|roughly|exactly|and)\Z"
)
_WORD_REACH = 14

NUMBER_WORDS = {word: number for number, word in enumerate(load_words("number_words"))}
_WORDS = "|".join(NUMBER_WORDS)

# The text after a number that is part of a longer expression, line by line: `5k`, `5 + `, `5.3.1`,
# `5 plus`; `5 > `, `5 / `; `5 million`, `5万`; `5:3`, `5 - 7`, `5 x 3`, `5...7`, `5~`, `5 ±`;
# `5 and a half`; `5 times 3`; `5 squared`; `5 tenths`; `5 or more`. Not `5.`, `5: 3 red`.
_PART_OF_MORE = lazy_pattern(
    r"[A-Za-zµμ°′″_^+]|[ \t][+^]|[.,'’ ]\d|[ ](?i:plus|minus|times)\s|"
    r"[ \t]?(?:[<>](?!/?[A-Za-z]{1,10}>)|[≤≥≠]|!=)|[ \t][x×÷/](?![A-Za-z])|"
    r"[\s-]?\s?(?i:dozens?|hundreds?|thousands?|(?:m|b|tr|quadr)illions?|lakhs?|crores?|[mb]n)\b|"
    r"\s?[百千万亿萬億‰]|\s?(?i:pct)\b|"
    rf":\d|/\s?\d|[ \t]?(?:[{_DASH}x×*·⋅∙÷/~]|\*\*|\.{{2,3}}|\\times|\\cdot|\\div)"
    r"[ \t]?[-+({]?\.?\d|\s?(?:\.{2,}|…|~|～|〜|±|\\pm|\+/-)|"
    r"\s+(?i:(?:and|&)\s+(?:an?\s+|one[\s-]|three[\s-])?(?:half|third|quarter|fifth)s?\b|"
    rf"(?:times|(?:multiplied|divided) by|plus|minus|over|point)\s+(?:\d|(?:{_WORDS})\b)|"
    r"squared|cubed|to the power|"
    r"(?:tenth|hundredth|thousandth|third|halve|fifth|sixth|seventh|eighth|ninth)s\b|"
    r"or\s+(?:more|less|fewer|higher|lower|greater|above|below|so)\b)"
)
# The text before a number that is part of a longer expression: `3/`, `<= `, `±`, `#`, `3 x `, `1 `.
_MORE_BEFORE = lazy_pattern(
    r"(?:\d\s?[:/]|[<>≤≥]=?|[≠≮≯≲≳≪≫±√#]|[!/]=|=/=|\+/-|\\(?:neq?|leq?|geq?|lt|gt|pm)\b|"
    r"\d[%)]?[ \t]?(?:[x×*·⋅÷/+~]|\*\*|\.{2,3}|\\times|\\cdot)|\d (?i:plus|times))\s?$|\d[,'’ ]$"
)
_REACH = 8
# `(1,234)`: two bounds that could also be one number with a thousands separator.
_PAIR = lazy_pattern(r"[(\[]\s?[-+]?\d{1,3},\d{3}\s?[)\]]")


class ParsedNumber(NamedTuple):
    """One number of a text."""

    value: Decimal
    """The value as written: ``35 %`` is 35. Its exponent gives the number of printed digits."""
    percent: bool
    clear: bool
    """Whether the number is complete and its sign is known. False for ``10k``, ``3/4``, ``< 5``,
    ``5-7``, ``2^5``, and after a dash that may or may not be a minus.
    """
    start: int
    end: int

    @property
    def quantum(self) -> Decimal:
        """Return one unit of the last printed digit."""
        exponent = self.value.as_tuple().exponent
        return Decimal((0, (1,), exponent if isinstance(exponent, int) else 0))

    @property
    def plain(self) -> str:
        """Return the value in plain digits, ``-1000`` or ``3.5``."""
        digits = f"{self.value:f}" if self.value else "0"
        return digits.rstrip("0").rstrip(".") if "." in digits else digits


class NumberRange(NamedTuple):
    """Two bounds, the lower one first. Both belong to the range."""

    low: Decimal
    high: Decimal

    def holds(self, value: Decimal) -> bool:
        """Whether `value` is between the bounds or equal to one of them."""
        return self.low <= value <= self.high


def plain_numerals(text: str) -> str:
    """Return `text` with superscript powers, full-width digits and minus signs in plain form."""
    if text.isascii():
        return text
    text = _THIN_SPACE.sub("", text)
    text = _POWER.sub(lambda match: "^" + match[0].translate(_SUPERSCRIPTS), text)
    return unicodedata.normalize("NFKC", _VULGAR.sub(" ", text)).translate(_SIGNS)


def normalise_for_comparison(text: str) -> str:
    """Return a text in its form for comparison: without decoration, case or double spaces."""
    return " ".join(clean_segment(plain_numerals(text)).casefold().split())


def find_numbers(text: str) -> list[ParsedNumber]:
    """Return the numbers of a text in plain form (`plain_numerals`), in order.

    Digits of a name (``CD14``, ``IL-6``, ``m^2``) are not numbers.
    """
    numbers = []
    for match in _NUMBER.finditer(text):
        start, negative, clear = _find_sign(text, match.start())
        end = match.end()
        value = _parse_value(match, negative) if end - start <= LONGEST else None
        is_part = (
            _PART_OF_MORE.match(text, end)
            or _MORE_BEFORE.search(text, max(0, start - _REACH), start)
            or (start and _PAIR.match(text, start - 1))
        )
        clear = clear and value is not None and not is_part
        numbers.append(ParsedNumber(value or Decimal(0), bool(match[5]), clear, start, end))
    return numbers


def parse_number(text: str) -> ParsedNumber | None:
    """Return the number that `text` is, apart from decoration and a final full stop, or None."""
    bare = clean_segment(plain_numerals(text))
    if len(bare) > LONGEST:
        return None
    sign = _SIGN.match(bare)
    match = _NUMBER.fullmatch(bare, sign.end() if sign else 0)
    value = _parse_value(match, bool(sign and sign[1])) if match else None
    if match is None or value is None:
        return None
    return ParsedNumber(value, bool(match[5]), True, 0, len(bare))


# `(- $`, `minus `, `[$-`: signs before the digits of a leading number.
_BEFORE_LEADING = lazy_pattern(r"[(\[]?\s?(-|\+|minus |negative )?\s?\$?\s?([+-]?)", re.I | re.A)
# `kg`, ` * 3`, `-(`: text directly after digits that are then only part of an expression.
_GOES_ON = lazy_pattern(r"\w|\s?[-+*/×^]\s?[\d(]", re.A)
# `minus three`, `Twelve`; not `one of`, `twenty-one`.
_NUMBER_WORD = lazy_pattern(r"(minus |negative )?([a-z]+)(?!-| of\b)", re.I | re.A)


def parse_leading_number(text: str) -> ParsedNumber | None:
    """Return the number at the beginning of a plain `text`, in digits or in words up to twenty.

    It is not `clear` if the following text makes it part of a longer expression.
    """
    return _parse_leading_digits(text) or _parse_leading_word(text)


def _parse_leading_digits(text: str) -> ParsedNumber | None:
    """Return the number in digits at the beginning of a text, with the signs before it."""
    before = _BEFORE_LEADING.match(text)
    match = _NUMBER.match(text, before.end()) if before else None
    if not before or not match or match.end() > LONGEST or _GOES_ON.match(text, match.end()):
        return None
    negative = (before[1] or "+").strip().lower() != "+"
    value = _parse_value(match, negative != (before[2] == "-"))
    if value is None:
        return None
    end = match.end()
    closed = end + (text[end : end + 1] in ("]", ")"))
    is_part = _PART_OF_MORE.match(text, end) or _PART_OF_MORE.match(text, closed)
    return ParsedNumber(value, bool(match[5]), not is_part, 0, end)


def _parse_leading_word(text: str) -> ParsedNumber | None:
    """Return the number in words at the beginning of a text."""
    word = _NUMBER_WORD.match(text)
    if word is None or (number := NUMBER_WORDS.get(word[2].lower())) is None:
        return None
    following = text[word.end() :].split(maxsplit=1)
    if number == 20 and following and following[0].strip(".,").lower() in NUMBER_WORDS:
        return None
    end = word.end()
    value = Decimal(-number if word[1] else number)
    return ParsedNumber(value, False, not _PART_OF_MORE.match(text, end), 0, end)


def parse_range(text: str) -> NumberRange | None:
    """Return the range ``(lower,upper)`` that `text` is, with sorted bounds, or None."""
    bare = plain_numerals(text).strip()
    if not (bare[:1] in "([" and bare[-1:] in ")]") or bare.count(",") != 1:
        return None
    first_bound, second_bound = (parse_number(part.strip()) for part in bare[1:-1].split(","))
    if first_bound is None or second_bound is None or first_bound.percent or second_bound.percent:
        return None
    return NumberRange(*sorted((first_bound.value, second_bound.value)))


def is_same_number(left_number: ParsedNumber, right_number: ParsedNumber) -> bool:
    """Whether two numbers have the same value and are both, or neither, in per cent."""
    return left_number.value == right_number.value and left_number.percent == right_number.percent


def _find_sign(text: str, start: int) -> tuple[int, bool, bool]:
    """Return the beginning of a number, whether it is negative, and whether that is clear.

    The digits of the number begin at `start`.

    A sign must be distinguished from a dash between two numbers or two words.
    """
    sign = _SIGN_BEFORE.search(text, max(0, start - _SIGN_REACH), start)
    return _read_sign(text, sign) if sign else (start, False, True)


def _read_sign(text: str, sign: re.Match[str]) -> tuple[int, bool, bool]:
    """Return the same as `_find_sign` for a sign or a dash before a number."""
    start, sign_start = sign.end(), sign.start()
    nearest = max(0, sign_start - _SIGN_REACH)
    stem = nearest + len(text[nearest:sign_start].rstrip(" \t"))
    before = text[stem - 1] if stem else "\n"
    attached = sign.end() == sign_start + 1
    leading = attached and stem < sign_start  # about -5
    if before.isdecimal() or before in ")]}%":
        return (sign_start, bool(sign[1]), False) if leading else (start, False, False)
    if not sign[1]:
        return sign_start, False, attached
    if before == "\n":
        return sign_start, True, attached or sign[1].isalpha()
    if before in _BEFORE_MINUS:
        return sign_start, True, True
    if sign[1].isalpha():
        follows_verb = _WORD_BEFORE_MINUS.search(text, max(0, stem - _WORD_REACH), stem)
        return sign_start, True, follows_verb is not None
    follows_word = before.isalpha() or before in ".!?"
    return sign_start, True, leading and follows_word and sign[1] not in _LONG_DASHES


def _parse_value(match: re.Match[str], negative: bool) -> Decimal | None:
    """Return the value of a match of `_NUMBER`; None for a power of a base other than ten."""
    mantissa, exponent = match[1].replace(",", ""), match[2] or match[3] or match[4] or "0"
    if match[4] is not None:
        if mantissa != "10":
            return None
        mantissa = "1"
    if exponent[0] in _DASH:
        exponent = f"-{exponent[1:]}"
    return Decimal(f"{'-' if negative else ''}{mantissa}e{exponent}")
