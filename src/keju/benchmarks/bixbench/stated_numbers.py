"""Find the one number that an open answer certainly states.

A judge has to decide if the text may deny the number, limit it, suppose it or make it part of
another quantity.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from keju.answers.numbers import (
    ParsedNumber,
    find_numbers,
    is_same_number,
    parse_number,
    plain_numerals,
)
from keju.answers.segments import unwrap_latex

# `answer is`, `Answer :`.
_ANSWER_IS = re.compile(r"(?i:\banswer(?:\s+is\b|\s*:))")
# The sign of `r = 0.65`, `p ≈ 3`.
_EQUALS = re.compile(r"[=≈]")
# ` ** about `: the text from a marker to its number.
_UP_TO_NUMBER = re.compile(
    r"[\s*_`$~≈:]{0,12}+(?:(?i:approximately|about|around|roughly|exactly)\s+)?"
)
# `twelve`, `half`, `dozens`: a quantity in words, which may be part of the number next to it.
_NUMERAL = (
    r"one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty"
    r"|half|twice|thrice|double|triple|couple|dozens?|hundreds?|thousands?|millions?|billions?"
)
# Before a number: words that deny it (`not 5`), suppose it (`if 5`), make it a limit (`at most 5`)
# or one of several (`either 5`, `two or 5`); not `notable: 5`.
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
# Earlier in the sentence of an announced number: words that suppose it (`unless`) or dispute it
# (`do not think`); not `no significant`.
_CONDITION = re.compile(
    r"\b(?:if|unless|otherwise|suppos\w+|assuming|whether|doubt\w*)\b"
    r"|(?:\bnot|n['’]t)\s+(?:think|believe|say|mean|claim|agree)\b",
    re.IGNORECASE,
)
# After a number: words that deny it (`5 is wrong`), make it a limit (`5 at most`), part of more (`5
# out of`), or one of several (`5 or`); not `5, which is not significant`, `5-fold`.
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
# In later sentences: words that may retract the announced number, `Wait`, `not right`, `no,`, `Or
# 6`.
_CORRECTION = re.compile(
    r"\b(?:wait|actually|correct(?:ion|ed|ing)|wrong|incorrect\w*|false|mistake\w*|sorry|instead"
    r"|rather|scratch|hmm+|oops|retract\w*|alternative\w*|however|maybe|perhaps|possibl[ey]|might"
    r"|not\s+(?:it|right|correct|true|the|so|sure)|unsure|reconsider\w*|guess\w*)\b|\bno\s*[,.;!]"
    r"|(?:\A|[.!?\n])\s{0,3}(?:or|not|no)\b",
    re.IGNORECASE,
)
# Anywhere in a text whose number no `answer is` announces: the text may have no answer.
_NO_ANSWER = re.compile(
    r"\b(?:cannot|unable|unknown|unclear|impossible|insufficient|undetermined|inconclusive"
    r"|un(?:available|certain|sure)|missing|no\s+(?:answer|data|result|idea))\b"
    r"|n['’]t\b|\b(?:do|does|could|can|did)\s+not\b",
    re.IGNORECASE,
)
# `r was high (n = `: the number is the sample size; not `n = ` at the beginning.
_SAMPLE_SIZE = re.compile(r"(?<=\S)[\s(,;]{1,3}n\s?=[\s*_`$]{0,4}\Z", re.IGNORECASE)
# The comma of `if so, 5`, `but`; not the point of `3.5`.
_CLAUSE_END = re.compile(r"[,;!?(\n]|\.\s|\bbut\b", re.IGNORECASE)
# `?`, `. `, a new line; not the point of `3.5`.
_SENTENCE_END = re.compile(r"[!?\n]|[.。]\s")
# The text right before the only number of a text if it is the answer: nothing, `= `, `There are
# about `, `it's **`; not `at `.
_LEAD = re.compile(
    r"(?:\A|[\n=≈≅~:]|(?<=['’]s)\s|\b(?:is|was|are|were|be|equals|equal\s+to"
    r"|yields?|yielded|gives?|gave|found|identified|detected|obtained|counted|got|returns?|returned"
    r"|ha[sd]|have|contains?|(?:value|total|correlation|coefficient|ratio)\s+of)\s)"
    r"[\s*_`$\"'(\[]*(?:(?:approximately|approx\.?|about|around|roughly|exactly|precisely)\s)?"
    r"[\s*_`$\"'~≈]*\Z",
    re.IGNORECASE,
)
_LEAD_REACH = 60
# `at `, `among `: the number is a condition, `at 5 genes r = 0.65`.
_CIRCUMSTANCE = re.compile(r"\b(?:at|for|in|after|from|among|across|using)\s\Z", re.IGNORECASE)
_CIRCUMSTANCE_REACH = 8
_EXPRESSION = frozenset("0123456789 .,%+-*/×x÷^()\u2013")
# An interval or a test that belongs to a number, in brackets: `(95% CI 4 to 6)`, `(p = 0.03)`.
_STATISTICS = re.compile(
    r"[(\[]\s?(?:\d{1,3}(?:\.\d{1,3})?\s?%\s?(?:CI|confidence)\b|CI\b"
    r"|[A-Za-z][\w -]{0,20}[=<>≤≥≈:])[^()\[\]\n]{0,100}[)\]]"
)


class _NumberCandidate(NamedTuple):
    """A number that a text probably gives as its answer."""

    number: ParsedNumber
    basis: Literal["answer", "sign", "itself"]
    """The reason: ``answer is``, a sign of equality, or because it is the only number."""


def find_stated_number(text: str) -> ParsedNumber | None:
    """Return the one number that `text` certainly gives as its answer.

    None if it has no number or several. Also None if the text around the number may deny it, limit
    it, suppose it, or make it part of another quantity: such a text needs a judge.
    """
    whole_number = parse_number(text)
    if whole_number is not None:
        return whole_number
    plain_text = unwrap_latex(plain_numerals(text))
    candidate = _find_candidate(plain_text, find_numbers(plain_text))
    if candidate is None or not candidate.number.clear:
        return None
    number = candidate.number
    before, after = plain_text[: number.start], plain_text[number.end :]
    if _is_supposed(before, candidate) or _is_retracted(after, candidate):
        return None
    if candidate.basis != "answer" and (
        _SAMPLE_SIZE.search(before, max(0, number.start - _LEAD_REACH))
        or _NO_ANSWER.search(plain_text)
    ):
        return None
    return number


def _is_supposed(before: str, candidate: _NumberCandidate) -> bool:
    """Whether the text before a number denies, limits or supposes it."""
    if candidate.basis == "itself":
        return _HEDGE.search(before) is not None
    if _HEDGE.search(_CLAUSE_END.split(before)[-1]):
        return True
    return _CONDITION.search(_SENTENCE_END.split(before)[-1]) is not None


def _is_retracted(after: str, candidate: _NumberCandidate) -> bool:
    """Whether the text after a number doubts it, adds another one, or asks a question.

    After ``answer is``, later sentences only count if they correct the number.
    """
    end = _SENTENCE_END.search(after)
    if end and end[0] == "?":
        return True
    remark, later_text = after, ""
    if candidate.basis == "answer" and end:
        remark, later_text = after[: end.start()], after[end.start() :]
    remark = _STATISTICS.sub(" ", remark)
    return bool(_DOUBT.search(remark) or find_numbers(remark) or _CORRECTION.search(later_text))


def _find_candidate(text: str, numbers: Sequence[ParsedNumber]) -> _NumberCandidate | None:
    """Return the number after ``answer is`` or a sign of equality, or the only one of `text`."""
    announced_numbers = _numbers_after(_ANSWER_IS, text, numbers)
    if any(announced_numbers):
        last_number = announced_numbers[-1]
        is_unanimous = last_number and _are_same(last_number, announced_numbers)
        return _NumberCandidate(last_number, "answer") if last_number and is_unanimous else None
    equated_numbers = list(filter(None, _numbers_after(_EQUALS, text, numbers)))
    if equated_numbers and _are_same(equated_numbers[-1], equated_numbers):
        last_number = equated_numbers[-1]
        equated_starts = {number.start for number in equated_numbers}
        rivals = [
            number
            for number in numbers
            if number.end <= last_number.start and number.start not in equated_starts
        ]
        if not _compete(rivals, last_number, text):
            return _NumberCandidate(last_number, "sign")
    if len(numbers) == 1:
        start = numbers[0].start
        if _LEAD.search(text, max(0, start - _LEAD_REACH), start):
            return _NumberCandidate(numbers[0], "itself")
    return None


def _numbers_after(
    marker: re.Pattern[str], text: str, numbers: Sequence[ParsedNumber]
) -> list[ParsedNumber | None]:
    """Return, for each marker, the number right after it."""
    by_start = {number.start: number for number in numbers}
    leads = (_UP_TO_NUMBER.match(text, match.end()) for match in marker.finditer(text))
    return [by_start.get(lead.end()) if lead else None for lead in leads]


def _are_same(number: ParsedNumber, compared_numbers: Sequence[ParsedNumber | None]) -> bool:
    """Whether all compared numbers that exist equal a number."""
    return all(is_same_number(number, compared) for compared in compared_numbers if compared)


def _compete(rivals: Sequence[ParsedNumber], number: ParsedNumber, text: str) -> bool:
    """Whether an earlier number may be the answer instead of the one after a sign of equality.

    A part of its expression (``22/64 = 0.34``) and a condition (``at 5 genes r = 0.65``) may not.
    """
    expression_start = len(text[: number.start].rstrip("=≈~ "))
    while expression_start and text[expression_start - 1] in _EXPRESSION:
        expression_start -= 1
    return not all(
        (rival.start >= expression_start and not rival.clear)
        or _CIRCUMSTANCE.search(text, max(0, rival.start - _CIRCUMSTANCE_REACH), rival.start)
        for rival in rivals
    )
