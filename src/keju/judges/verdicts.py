"""Reading a verdict out of what a judge said."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Callable, Sequence
from itertools import accumulate

from keju.benchmarks.base import Reader
from keju.judges.neutral import Quotation, quotations, without_blocks
from keju.judges.prompts import Kind
from keju.types import Answer, Outcome, Sample, Score

GRADER = "judge"
GRADES: dict[str, Outcome] = {
    "correct": "correct",
    "incorrect": "incorrect",
    "refused": "refused",
}
PASS = 0.5
"""The score from which a partly right answer counts as correct."""
CLAMPED = "clamped"
"""Reason of a verdict whose number lay outside [0, 1]."""

_TAGGED: dict[Kind, re.Pattern[str]] = {
    kind: re.compile(
        rf"<\s{{0,4}}{kind}\s{{0,4}}>([^<>]{{0,80}})(<\s{{0,4}}/\s{{0,4}}{kind}\s{{0,4}}>|\Z)",
        re.IGNORECASE,
    )
    for kind in ("grade", "score")
}
_NUMBER = re.compile(r"[+-]?(?:\d{1,20}(?:\.\d{0,20})?|\.\d{1,20})(?:[eE][+-]?\d{1,3})?", re.ASCII)
_ORNAMENTS = " \t\r\n*_`\"'.!"


def read_verdict(text: str, shown: str, kind: Kind) -> Answer:
    """The verdict of a judge that was `shown` a prompt; no value if there is not exactly one.

    Verdicts in repetitions of what was shown do not count. Tags around something that is no
    verdict are passed over. Two verdicts that differ are none. The last verdict is the judge's
    own even where its line is also one of the answer's, lest an answer could take it away; only
    a favourable one that stands in quotation marks is not.
    """
    said = without_blocks(text, shown)
    found: list[tuple[re.Match[str], Answer]] = []
    for tagged in _TAGGED[kind].finditer(said):
        verdict = _grade(tagged[1]) if kind == "grade" else _score(tagged[1])
        if verdict is not None:
            value, reason = verdict
            found.append((tagged, Answer(value, "strict" if tagged[2] else "tolerant", reason)))
    own = _without_quoted(found, quotations(said, shown)) if found else []
    if not own:
        return Answer(reason="no_verdict")
    if len({answer.value for answer in own}) > 1:
        return Answer(reason="two_verdicts")
    return own[-1]


def _without_quoted(
    found: Sequence[tuple[re.Match[str], Answer]], quoted: Sequence[Quotation]
) -> list[Answer]:
    is_quoted = _inside(found, quoted)
    if score_of(found[-1][1].value).outcome == "correct":
        quoted = [quotation for quotation in quoted if quotation.inline]
        is_quoted[-1:] = _inside(found[-1:], quoted)
    else:
        is_quoted[-1] = False
    return [answer for (_, answer), taken in zip(found, is_quoted, strict=True) if not taken]


def _inside(
    found: Sequence[tuple[re.Match[str], Answer]], quoted: Sequence[Quotation]
) -> list[bool]:
    """Whether each verdict lies in a quotation: one that begins before it and ends after it."""
    in_order = sorted(quoted)
    starts = [place.start for place in in_order]
    reach = [0, *accumulate((place.end for place in in_order), max)]
    return [tagged.end() <= reach[bisect(starts, tagged.start())] for tagged, _ in found]


def _grade(said: str) -> tuple[str, str] | None:
    word = said.strip(_ORNAMENTS).casefold()
    return (word, "") if word in GRADES else None


def _score(said: str) -> tuple[str, str] | None:
    number = _NUMBER.fullmatch(said.strip(" \t\r\n*_`"))
    if number is None:
        return None
    value = float(number[0])
    inside = min(1.0, max(0.0, value))
    return f"{inside:g}", "" if inside == value else CLAMPED


def score_of(verdict: str | None) -> Score:
    """What a verdict is worth; without one an answer is ungraded, and never 0 for that."""
    if verdict is None:
        return Score(0.0, "ungraded", GRADER)
    if verdict in GRADES:
        return Score(float(verdict == "correct"), GRADES[verdict], GRADER)
    value = float(verdict)
    return Score(value, "correct" if value >= PASS else "incorrect", GRADER)


class VerdictReader(Reader):
    """Reads the verdict of a judge about one answer."""

    name = "verdict"

    def __init__(self, kind: Kind, shown: Callable[[Sample], str]) -> None:
        self._kind = kind
        self._shown = shown

    def read(self, text: str, sample: Sample) -> Answer:
        return read_verdict(text, self._shown(sample), self._kind)

    def matches(self, value: str, sample: Sample) -> bool:
        return score_of(value).outcome == "correct"
