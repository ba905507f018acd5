"""The one number that a text states as its answer, and only where that is certain.

Words around a number may deny it, bound it, suppose it or take it back; then nothing is stated, and
somebody who understands the text has to decide.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from keju.answers.clean import unwrap_latex
from keju.answers.numbers import Number, number_of, numbers_in, plain_numerals, same_number

_ANSWER_IS = re.compile(r"(?i:\banswer(?:\s+is\b|\s*:))")
_EQUALS = re.compile(r"[=≈]")
_UP_TO_NUMBER = re.compile(
    r"[\s*_`$~≈:]{0,12}+(?:(?i:approximately|about|around|roughly|exactly)\s+)?"
)
_NUMERAL = (
    r"one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty"
    r"|half|twice|thrice|double|triple|couple|dozens?|hundreds?|thousands?|millions?|billions?"
)
_HEDGE = re.compile(
    r"\b(?:not|cannot|unable|never|neither|nor|no|none|without|exclud\w+|except|besides|unlike"
    r"|wrong|incorrect\w*|false|untrue|invalid|unlikely|impossible|unknown|unclear|doubt\w*|den(?:y|ies)"
    r"|if|whether|unless|suppos\w+|assum\w+|possibl[ey]|maybe|perhaps|may|might|previous\w*"
    r"|initial\w*|another|guess\w*|or|either|instead|rather|up\s+to|below|above|over|under|between"
    r"|beyond|within|minimum|maximum|min|max|bounds?|limit|exceed\w*|at\s+(?:least|most)|hardly|almost"
    r"|nearly|(?:more|less|fewer|greater|larger|smaller|higher|lower|other|better|worse)\s+than"
    rf"|{_NUMERAL})\b|n['’]t\b",
    re.IGNORECASE,
)
"""Before a number: it is denied, supposed, only a bound, or one of several."""
_CONDITION = re.compile(
    r"\b(?:if|unless|otherwise|suppos\w+|assuming|whether|doubt\w*)\b"
    r"|(?:\bnot|n['’]t)\s+(?:think|believe|say|mean|claim|agree)\b",
    re.IGNORECASE,
)
"""Earlier in the sentence of an announced number: it is supposed or disputed."""
_DOUBT = re.compile(
    r"\b(?:not(?!\s+(?:statistically\s+)?significant\b)|cannot|never|neither|nor|no|none|or|either"
    r"|wrong|incorrect\w*|false|untrue|invalid|unlikely|impossible|exclud\w+|except|but|if|unless"
    r"|possibl[ey]|maybe|perhaps|may|might|could|would|should|alternative\w*|depend\w*|actually|wait"
    r"|instead|rather|although|though|however|too|off|short|more|less|fewer|most|least|greater"
    r"|larger|smaller|higher|lower|minimum|maximum|min|max|bounds?|limit|above|below|over|under"
    r"|plus|minus|ish|squared|cubed|factorial|logs?|out\s+of|quarters?|thirds?"
    r"|(?:four|fif|six|seven|eigh|nin|ten|hundred|thousand|million)ths?"
    rf"|{_NUMERAL})\b|n['’]t\b|\A[-\u2013](?!fold\b)",
    re.IGNORECASE,
)
"""After a number: it may be denied, a bound, part of more, or one of several."""
_CORRECTION = re.compile(
    r"\b(?:wait|actually|correct(?:ion|ed|ing)|wrong|incorrect\w*|false|mistake\w*|sorry|instead"
    r"|rather|scratch|hmm+|oops|retract\w*|alternative\w*|however|maybe|perhaps|possibl[ey]|might"
    r"|not\s+(?:it|right|correct|true|the|so|sure)|unsure|reconsider\w*|guess\w*)\b|\bno\s*[,.;!]"
    r"|(?:\A|[.!?\n])\s{0,3}(?:or|not|no)\b",
    re.IGNORECASE,
)
"""In later sentences: what was announced may be taken back."""
_NO_ANSWER = re.compile(
    r"\b(?:cannot|unable|unknown|unclear|impossible|insufficient|undetermined|inconclusive"
    r"|un(?:available|certain|sure)|missing|no\s+(?:answer|data|result|idea))\b"
    r"|n['’]t\b|\b(?:do|does|could|can|did)\s+not\b",
    re.IGNORECASE,
)
"""Anywhere beside a number that no ``answer is`` announces: the text may have no answer."""
_SAMPLE_SIZE = re.compile(r"(?<=\S)[\s(,;]{1,3}n\s?=[\s*_`$]{0,4}\Z", re.IGNORECASE)
_CLAUSE_END = re.compile(r"[,;!?(\n]|\.\s|\bbut\b", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[!?\n]|[.。]\s")
_LEAD = re.compile(
    r"(?:\A|[\n=≈≅~:]|(?<=['’]s)\s|\b(?:is|was|are|were|be|equals|equal\s+to"
    r"|yields?|yielded|gives?|gave|found|identified|detected|obtained|counted|got|returns?|returned"
    r"|ha[sd]|have|contains?|(?:value|total|correlation|coefficient|ratio)\s+of)\s)"
    r"[\s*_`$\"'(\[]*(?:(?:approximately|approx\.?|about|around|roughly|exactly|precisely)\s)?"
    r"[\s*_`$\"'~≈]*\Z",
    re.IGNORECASE,
)
"""What may stand right before the only number of a text for it to be what the text answers."""
_LEAD_REACH = 60
_CIRCUMSTANCE = re.compile(r"\b(?:at|for|in|after|from|among|across|using)\s\Z", re.IGNORECASE)
_CIRCUMSTANCE_REACH = 8
_EXPRESSION = frozenset("0123456789 .,%+-*/×x÷^()\u2013")
_STATISTICS = re.compile(
    r"[(\[]\s?(?:\d{1,3}(?:\.\d{1,3})?\s?%\s?(?:CI|confidence)\b|CI\b"
    r"|[A-Za-z][\w -]{0,20}[=<>≤≥≈:])[^()\[\]\n]{0,100}[)\]]"
)
"""An interval or a test that goes with a number, in brackets: ``(95% CI 4 to 6)``."""


class _Stated(NamedTuple):
    """A number that a text seems to answer with."""

    number: Number
    by: Literal["answer", "sign", "itself"]
    """``answer is``, a sign of equality, or that there is no other number."""


def stated_number(text: str) -> Number | None:
    """The one number that `text` certainly answers with.

    None where it has none or several, and where what stands around the number may deny it, bound
    it, suppose it, or make it part of something else.
    """
    whole = number_of(text)
    if whole is not None:
        return whole
    plain = unwrap_latex(plain_numerals(text))
    numbers = numbers_in(plain)
    stated = _stated(plain, numbers)
    if stated is None or not stated.number.clear:
        return None
    doubtful = (
        _is_hedged(plain, stated)
        or _is_doubted(plain, stated)
        or (stated.by != "answer" and _is_beside_the_answer(plain, stated.number.start))
    )
    return None if doubtful else stated.number


def _stated(text: str, numbers: Sequence[Number]) -> _Stated | None:
    by_start = {number.start: number for number in numbers}
    answers = _following(text, _ANSWER_IS, by_start)
    if any(answers):
        last = answers[-1]
        agreed = last and all(same_number(last, other) for other in answers if other)
        return _Stated(last, "answer") if last and agreed else None
    equal = [number for number in _following(text, _EQUALS, by_start) if number]
    if equal and all(same_number(equal[-1], other) for other in equal):
        same = {number.start for number in equal}
        earlier = [n for n in numbers if n.end <= equal[-1].start and n.start not in same]
        if _are_asides(text, earlier, equal[-1]):
            return _Stated(equal[-1], "sign")
    if len(numbers) == 1 and _LEAD.search(
        text, max(0, numbers[0].start - _LEAD_REACH), numbers[0].start
    ):
        return _Stated(numbers[0], "itself")
    return None


def _following(
    text: str, marker: re.Pattern[str], by_start: dict[int, Number]
) -> list[Number | None]:
    """For each marker the number right after it."""
    found = []
    for match in marker.finditer(text):
        lead = _UP_TO_NUMBER.match(text, match.end())
        found.append(by_start.get(lead.end()) if lead else None)
    return found


def _are_asides(text: str, others: Sequence[Number], stated: Number) -> bool:
    """Whether none of the numbers before rivals: ``at 5 genes r = 0.65``, ``22/64 = 0.34``."""
    first = len(text[: stated.start].rstrip("=≈~ "))
    while first and text[first - 1] in _EXPRESSION:
        first -= 1
    return all(
        (other.start >= first and not other.clear)
        or _CIRCUMSTANCE.search(text, max(0, other.start - _CIRCUMSTANCE_REACH), other.start)
        for other in others
    )


def _is_hedged(text: str, stated: _Stated) -> bool:
    """Whether words before a number deny it; for an announced one those of its own clause."""
    before = text[: stated.number.start]
    if stated.by != "itself":
        clause = _CLAUSE_END.split(before)[-1]
        return bool(_HEDGE.search(clause) or _CONDITION.search(_SENTENCE_END.split(before)[-1]))
    return _HEDGE.search(before) is not None


def _is_beside_the_answer(text: str, start: int) -> bool:
    """Whether a text may have no answer, or its number may only be the size of the sample."""
    size = _SAMPLE_SIZE.search(text, max(0, start - _LEAD_REACH), start)
    return bool(size or _NO_ANSWER.search(text))


def _is_doubted(text: str, stated: _Stated) -> bool:
    """Whether what follows a number asks, doubts, bounds or corrects it, or names another."""
    tail = text[stated.number.end :]
    end = _SENTENCE_END.search(tail)
    if end and end[0] == "?":
        return True
    sentence, later = (tail[: end.start()], tail[end.start() :]) if end else (tail, "")
    if stated.by != "answer":
        sentence, later = tail, ""
    said = _STATISTICS.sub(" ", sentence)
    return bool(_DOUBT.search(said) or numbers_in(said) or _CORRECTION.search(later))
