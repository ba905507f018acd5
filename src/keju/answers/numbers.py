"""Numbers in text, read by value: sign, point and exponent count, the way of writing does not.

One grammar of a number (`_NUMBER`) and one list of what makes a number part of something else
(`_PART_OF_MORE`); on them stand the number that a text is (`number_of`), begins with
(`leading_number`), holds (`numbers_in`) or certainly answers with (`stated_number`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from decimal import Decimal
from typing import Literal, NamedTuple

from keju.answers.segments import clean_segment, unwrap_latex

LONGEST = 60
"""Characters of a number; whatever is longer is not an answer."""

_SUPERSCRIPTS = str.maketrans("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "+-0123456789")
# The power in `10⁻³` or `5²`, not the `²` of `m²`.
_POWER = re.compile(r"(?<=\d)[⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,4}")
# The narrow blank in `2 416`.
_THIN_SPACE = re.compile(r"(?<=\d)[\u2009\u202f\u00a0](?=\d{3}(?!\d))")
# The fraction in `3½` or `3 ½`, not `½` alone.
_VULGAR = re.compile(r"(?<=\d)(?=[½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞])")
_SIGNS = str.maketrans({"\u2212": "-", "\u2010": "-", "\u2011": "-", "\ufe63": "-", "\u2044": "/"})
"""The minus sign and the hyphens that stand for it; the slash of a fraction."""

_DASH = "-\u2012\u2013\u2014\u2015"
"""Hyphen, figure dash, en dash, em dash and bar: each may stand for a minus or for ``to``."""
_LONG_DASHES = "\u2014\u2015"
# `^-3`, `**{6}`, `^(12)`: group 1 is the exponent.
_EXPONENT = rf"(?:\^|\*\*)\s?[({{]?\s?([{_DASH}+]?\d{{1,4}})(?!\d)[)}}]?"
# `1,000.5`, `.5`, `5e-3`, `5 x 10^-3`, `10**6`, `35 %`; not the digits of `CD14`, `IL-6`, `m^2`.
# Groups: mantissa; exponent after `e`, after `x 10^`, and of a bare `10^`; per cent.
_NUMBER = re.compile(
    r"(?<![\w.^])(?<![A-Za-z][-_])"
    r"(\d{1,3}(?:,\d{3})++(?![\d])(?:\.\d++)?|\d++(?:\.\d++)?|\.\d++)"
    rf"(?:[eE]([{_DASH}+]?\d{{1,4}})(?!\d)|\s?(?:[x×*·⋅]|\\times|\\cdot)\s?10\s?"
    + _EXPONENT
    + r"|(?<=10)\s?"
    + _EXPONENT
    + r")?(\s?(?:\\?%|(?i:per ?cent)\b))?"
)
# A sign in front of a number, `- `, `minus`, `+`; group 1 is set where it may be a minus.
_SIGN = re.compile(rf"(?:([{_DASH}]|(?<![A-Za-z])(?i:minus|negative)(?=[ \t]))|\+)[ \t]?")
_SIGN_BEFORE = re.compile(_SIGN.pattern + r"\Z")
_SIGN_REACH = 10
_BEFORE_MINUS = "=≈≅~:([{,;*_`$\"'“‘|<>≤≥≠"
"""After these a dash is a minus, with blanks or without."""
# `is`, `about`: after these a `minus` is a sign, after `five` it is not.
_WORD_BEFORE_MINUS = re.compile(
    r"\b(?i:is|was|are|were|be|equals|to|of|about|approximately|around|roughly|exactly|and)\Z"
)
_WORD_REACH = 14

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

# What follows a number that is only part of something, line by line: `5k`, `5 + `, `5.3.1`,
# `5 plus`; `5 > `, `5 / `; `5 million`, `5万`; `5:3`, `5 - 7`, `5 x 3`, `5...7`, `5~`, `5 ±`;
# `5 and a half`; `5 times 3`; `5 squared`; `5 tenths`; `5 or more`. Not `5.`, `5: 3 red`.
_PART_OF_MORE = re.compile(
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
# What stands before a number that is only part of something: `3/`, `<= `, `±`, `#`, `3 x `, `1 `.
_MORE_BEFORE = re.compile(
    r"(?:\d\s?[:/]|[<>≤≥]=?|[≠≮≯≲≳≪≫±√#]|[!/]=|=/=|\+/-|\\(?:neq?|leq?|geq?|lt|gt|pm)\b|"
    r"\d[%)]?[ \t]?(?:[x×*·⋅÷/+~]|\*\*|\.{2,3}|\\times|\\cdot)|\d (?i:plus|times))\s?$|\d[,'’ ]$"
)
_REACH = 8
# `(1,234)`: two bounds that could also be one number with a thousands separator.
_PAIR = re.compile(r"[(\[]\s?[-+]?\d{1,3},\d{3}\s?[)\]]")


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

    @property
    def plain(self) -> str:
        """The value in plain digits, ``-1000`` or ``3.5``."""
        digits = f"{self.value:f}" if self.value else "0"
        return digits.rstrip("0").rstrip(".") if "." in digits else digits


class Range(NamedTuple):
    """Two bounds, the lower one first; both belong to it."""

    low: Decimal
    high: Decimal

    def holds(self, value: Decimal) -> bool:
        """Whether `value` lies between the bounds or on one of them."""
        return self.low <= value <= self.high


def plain_numerals(text: str) -> str:
    """`text` with superscript powers, full-width digits and minus signs in plain form."""
    if text.isascii():
        return text
    text = _THIN_SPACE.sub("", text)
    text = _POWER.sub(lambda match: "^" + match[0].translate(_SUPERSCRIPTS), text)
    return unicodedata.normalize("NFKC", _VULGAR.sub(" ", text)).translate(_SIGNS)


def comparable(text: str) -> str:
    """A text as far as it counts when compared as a whole: no dressing, case or double spaces."""
    return " ".join(clean_segment(plain_numerals(text)).casefold().split())


def numbers_in(text: str) -> list[Number]:
    """The numbers of a text that is in plain form (`plain_numerals`), in order.

    Digits that belong to a name (``CD14``, ``IL-6``, ``m^2``) are no numbers.
    """
    numbers = []
    for match in _NUMBER.finditer(text):
        start, negative, clear = _sign_before(text, match.start())
        end = match.end()
        value = _value(match, negative) if end - start <= LONGEST else None
        is_part = (
            _PART_OF_MORE.match(text, end)
            or _MORE_BEFORE.search(text, max(0, start - _REACH), start)
            or (start and _PAIR.match(text, start - 1))
        )
        clear = clear and value is not None and not is_part
        numbers.append(Number(value or Decimal(0), bool(match[5]), clear, start, end))
    return numbers


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


# `(- $`, `minus `, `[$-`: what may stand before the digits of a leading number.
_BEFORE_LEADING = re.compile(r"[(\[]?\s?(-|\+|minus |negative )?\s?\$?\s?([+-]?)", re.I | re.A)
# `kg`, ` * 3`, `-(`: what goes on from the digits, so that they are not a number by themselves.
_GOES_ON = re.compile(r"\w|\s?[-+*/×^]\s?[\d(]", re.A)
# `minus three`, `Twelve`; not `one of`, `twenty-one`.
_NUMBER_WORD = re.compile(r"(minus |negative )?([a-z]+)(?!-| of\b)", re.I | re.A)


def leading_number(text: str) -> Number | None:
    """The number that `text`, in plain form, begins with, in digits or in words up to twenty.

    It is not `clear` where what follows makes it part of something else.
    """
    before = _BEFORE_LEADING.match(text)
    match = _NUMBER.match(text, before.end()) if before else None
    if before and match and match.end() <= LONGEST and not _GOES_ON.match(text, match.end()):
        negative = (before[1] or "+").strip().lower() != "+"
        value = _value(match, negative != (before[2] == "-"))
        if value is not None:
            end = match.end()
            closed = end + (text[end : end + 1] in ("]", ")"))
            is_part = end < len(text) and (
                _PART_OF_MORE.match(text, end) or _PART_OF_MORE.match(text, closed)
            )
            return Number(value, bool(match[5]), not is_part, 0, end)
    word = _NUMBER_WORD.match(text)
    if word is None or (number := NUMBER_WORDS.get(word[2].lower())) is None:
        return None
    following = text[word.end() :].split(maxsplit=1)
    if number == 20 and following and following[0].strip(".,").lower() in NUMBER_WORDS:
        return None
    end = word.end()
    value = Decimal(-number if word[1] else number)
    return Number(value, False, not _PART_OF_MORE.match(text, end), 0, end)


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


def _sign_before(text: str, start: int) -> tuple[int, bool, bool]:
    """Where the number with its digits at `start` begins, whether it is negative, and clearly so.

    The sign has to be told from a dash between two numbers or two words.
    """
    sign = _SIGN_BEFORE.search(text, max(0, start - _SIGN_REACH), start)
    if sign is None:
        return start, False, True
    at = sign.start()
    stem = at
    while stem and text[stem - 1] in " \t" and at - stem < _SIGN_REACH:
        stem -= 1
    before = text[stem - 1] if stem else "\n"
    attached = sign.end() == at + 1
    leading = attached and stem < at  # about -5
    if before.isdecimal() or before in ")]}%":
        return (at, bool(sign[1]), False) if leading else (start, False, False)
    if not sign[1]:
        return at, False, attached
    if before == "\n":
        return at, True, attached or sign[1].isalpha()
    if sign[1].isalpha():
        clear = bool(_WORD_BEFORE_MINUS.search(text, max(0, stem - _WORD_REACH), stem))
    else:
        clear = leading and (before.isalpha() or before in ".!?") and sign[1] not in _LONG_DASHES
    return at, True, clear or before in _BEFORE_MINUS


def _value(match: re.Match[str], negative: bool) -> Decimal | None:
    """The value of a match of `_NUMBER`; None for a power of anything but ten."""
    mantissa, exponent = match[1].replace(",", ""), match[2] or match[3] or match[4] or "0"
    if match[4] is not None:
        if mantissa != "10":
            return None
        mantissa = "1"
    if exponent[0] in _DASH:
        exponent = f"-{exponent[1:]}"
    return Decimal(f"{'-' if negative else ''}{mantissa}e{exponent}")


# --- the number that a text certainly states ---------------------------------------------------

# `answer is`, `Answer :`.
_ANSWER_IS = re.compile(r"(?i:\banswer(?:\s+is\b|\s*:))")
# The sign of `r = 0.65`, `p ≈ 3`.
_EQUALS = re.compile(r"[=≈]")
# ` ** about `: from a marker to its number.
_UP_TO_NUMBER = re.compile(
    r"[\s*_`$~≈:]{0,12}+(?:(?i:approximately|about|around|roughly|exactly)\s+)?"
)
# `twelve`, `half`, `dozens`: a quantity in words, which may be part of the number beside it.
_NUMERAL = (
    r"one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty"
    r"|half|twice|thrice|double|triple|couple|dozens?|hundreds?|thousands?|millions?|billions?"
)
# Before a number: it is denied (`not 5`), supposed (`if 5`), a bound (`at most 5`), or one of
# several (`either 5`, `two or 5`); not `notable: 5`.
_HEDGE = re.compile(
    r"\b(?:not|cannot|unable|never|neither|nor|no|none|without|exclud\w+|except|besides|unlike"
    r"|wrong|incorrect\w*|false|untrue|invalid|unlikely|impossible|unknown|unclear|doubt\w*"
    r"|den(?:y|ies)"
    r"|if|whether|unless|suppos\w+|assum\w+|possibl[ey]|maybe|perhaps|may|might|previous\w*"
    r"|initial\w*|another|guess\w*|or|either|instead|rather|up\s+to|below|above|over|under|between"
    r"|beyond|within|minimum|maximum|min|max|bounds?|limit|exceed\w*|at\s+(?:least|most)|hardly"
    r"|almost"
    r"|nearly|(?:more|less|fewer|greater|larger|smaller|higher|lower|other|better|worse)\s+than"
    rf"|{_NUMERAL})\b|n['’]t\b",
    re.IGNORECASE,
)
# Earlier in the sentence of an announced number: it is supposed (`unless`) or disputed (`do not
# think`); not `no significant`.
_CONDITION = re.compile(
    r"\b(?:if|unless|otherwise|suppos\w+|assuming|whether|doubt\w*)\b"
    r"|(?:\bnot|n['’]t)\s+(?:think|believe|say|mean|claim|agree)\b",
    re.IGNORECASE,
)
# After a number: it may be denied (`5 is wrong`), a bound (`5 at most`), part of more (`5 out of`),
# or one of several (`5 or`); not `5, which is not significant`, `5-fold`.
_DOUBT = re.compile(
    r"\b(?:not(?!\s+(?:statistically\s+)?significant\b)|cannot|never|neither|nor|no|none|or|either"
    r"|wrong|incorrect\w*|false|untrue|invalid|unlikely|impossible|exclud\w+|except|but|if|unless"
    r"|possibl[ey]|maybe|perhaps|may|might|could|would|should|alternative\w*|depend\w*|actually"
    r"|wait"
    r"|instead|rather|although|though|however|too|off|short|more|less|fewer|most|least|greater"
    r"|larger|smaller|higher|lower|minimum|maximum|min|max|bounds?|limit|above|below|over|under"
    r"|plus|minus|ish|squared|cubed|factorial|logs?|out\s+of|quarters?|thirds?"
    r"|(?:four|fif|six|seven|eigh|nin|ten|hundred|thousand|million)ths?"
    rf"|{_NUMERAL})\b|n['’]t\b|\A[-\u2013](?!fold\b)",
    re.IGNORECASE,
)
# In later sentences: what was announced may be taken back, `Wait`, `not right`, `no,`, `Or 6`.
_CORRECTION = re.compile(
    r"\b(?:wait|actually|correct(?:ion|ed|ing)|wrong|incorrect\w*|false|mistake\w*|sorry|instead"
    r"|rather|scratch|hmm+|oops|retract\w*|alternative\w*|however|maybe|perhaps|possibl[ey]|might"
    r"|not\s+(?:it|right|correct|true|the|so|sure)|unsure|reconsider\w*|guess\w*)\b|\bno\s*[,.;!]"
    r"|(?:\A|[.!?\n])\s{0,3}(?:or|not|no)\b",
    re.IGNORECASE,
)
# Anywhere beside a number that no `answer is` announces: the text may have no answer.
_NO_ANSWER = re.compile(
    r"\b(?:cannot|unable|unknown|unclear|impossible|insufficient|undetermined|inconclusive"
    r"|un(?:available|certain|sure)|missing|no\s+(?:answer|data|result|idea))\b"
    r"|n['’]t\b|\b(?:do|does|could|can|did)\s+not\b",
    re.IGNORECASE,
)
# `r was high (n = `: the number is the size of the sample; not `n = ` at the beginning.
_SAMPLE_SIZE = re.compile(r"(?<=\S)[\s(,;]{1,3}n\s?=[\s*_`$]{0,4}\Z", re.IGNORECASE)
# The comma of `if so, 5`, `but`; not the point of `3.5`.
_CLAUSE_END = re.compile(r"[,;!?(\n]|\.\s|\bbut\b", re.IGNORECASE)
# `?`, `. `, a new line; not the point of `3.5`.
_SENTENCE_END = re.compile(r"[!?\n]|[.。]\s")
# What may stand right before the only number of a text for it to be the answer: nothing, `= `,
# `There are about `, `it's **`; not `at `.
_LEAD = re.compile(
    r"(?:\A|[\n=≈≅~:]|(?<=['’]s)\s|\b(?:is|was|are|were|be|equals|equal\s+to"
    r"|yields?|yielded|gives?|gave|found|identified|detected|obtained|counted|got|returns?|returned"
    r"|ha[sd]|have|contains?|(?:value|total|correlation|coefficient|ratio)\s+of)\s)"
    r"[\s*_`$\"'(\[]*(?:(?:approximately|approx\.?|about|around|roughly|exactly|precisely)\s)?"
    r"[\s*_`$\"'~≈]*\Z",
    re.IGNORECASE,
)
_LEAD_REACH = 60
# `at `, `among `: the number is a circumstance, `at 5 genes r = 0.65`.
_CIRCUMSTANCE = re.compile(r"\b(?:at|for|in|after|from|among|across|using)\s\Z", re.IGNORECASE)
_CIRCUMSTANCE_REACH = 8
_EXPRESSION = frozenset("0123456789 .,%+-*/×x÷^()\u2013")
# An interval or a test that goes with a number, in brackets: `(95% CI 4 to 6)`, `(p = 0.03)`.
_STATISTICS = re.compile(
    r"[(\[]\s?(?:\d{1,3}(?:\.\d{1,3})?\s?%\s?(?:CI|confidence)\b|CI\b"
    r"|[A-Za-z][\w -]{0,20}[=<>≤≥≈:])[^()\[\]\n]{0,100}[)\]]"
)


class _Candidate(NamedTuple):
    """A number that a text seems to answer with."""

    number: Number
    by: Literal["answer", "sign", "itself"]
    """``answer is``, a sign of equality, or that there is no other number."""


def stated_number(text: str) -> Number | None:
    """The one number that `text` certainly answers with.

    None where it has none or several, and where what stands around the number may deny it, bound
    it, suppose it, or make it part of something else: somebody who understands the text has to
    decide.
    """
    whole = number_of(text)
    if whole is not None:
        return whole
    plain = unwrap_latex(plain_numerals(text))
    stated = _candidate(plain, numbers_in(plain))
    if stated is None or not stated.number.clear:
        return None
    number, by = stated
    before, tail = plain[: number.start], plain[number.end :]
    hedged = before if by == "itself" else _CLAUSE_END.split(before)[-1]
    if _HEDGE.search(hedged):
        return None
    if by != "itself" and _CONDITION.search(_SENTENCE_END.split(before)[-1]):
        return None
    end = _SENTENCE_END.search(tail)
    if end and end[0] == "?":
        return None
    later = ""
    if by == "answer":
        later = tail[end.start() :] if end else ""
        tail = tail[: end.start()] if end else tail
    elif _SAMPLE_SIZE.search(before, max(0, number.start - _LEAD_REACH)) or _NO_ANSWER.search(
        plain
    ):
        return None
    remark = _STATISTICS.sub(" ", tail)
    if _DOUBT.search(remark) or numbers_in(remark) or _CORRECTION.search(later):
        return None
    return number


def _candidate(text: str, numbers: Sequence[Number]) -> _Candidate | None:
    """The number after ``answer is``, after a sign of equality, or the only one of `text`."""
    by_start = {number.start: number for number in numbers}

    def following(marker: re.Pattern[str]) -> list[Number | None]:
        """For each marker the number right after it."""
        leads = (_UP_TO_NUMBER.match(text, match.end()) for match in marker.finditer(text))
        return [by_start.get(lead.end()) if lead else None for lead in leads]

    announced = following(_ANSWER_IS)
    if any(announced):
        last = announced[-1]
        agreed = last and all(same_number(last, other) for other in announced if other)
        return _Candidate(last, "answer") if last and agreed else None
    equal = [number for number in following(_EQUALS) if number]
    if equal and all(same_number(equal[-1], other) for other in equal):
        last = equal[-1]
        first = len(text[: last.start].rstrip("=≈~ "))
        while first and text[first - 1] in _EXPRESSION:
            first -= 1
        same = {number.start for number in equal}
        # No number before rivals it: `at 5 genes r = 0.65`, `22/64 = 0.34`.
        if all(
            (other.start >= first and not other.clear)
            or _CIRCUMSTANCE.search(text, max(0, other.start - _CIRCUMSTANCE_REACH), other.start)
            for other in numbers
            if other.end <= last.start and other.start not in same
        ):
            return _Candidate(last, "sign")
    if len(numbers) == 1:
        start = numbers[0].start
        if _LEAD.search(text, max(0, start - _LEAD_REACH), start):
            return _Candidate(numbers[0], "itself")
    return None
