"""Verdicts: reading one out of what a judge said, and what several about one answer come to."""

from __future__ import annotations

import re
from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

from keju.benchmarks.base import Reader
from keju.judges.prompts import Kind, render
from keju.judges.quoting import quotations, without_blocks
from keju.stats.agreement import kappa_of_labels, self_consistency
from keju.types import Answer, Outcome, Reading, Sample, Score

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
"""``<grade>correct</grade>``, ``< Grade > **Correct** </ grade>``; at the very end of a reply also
``<grade>correct``."""
_NUMBER = re.compile(r"[+-]?(?:\d{1,20}(?:\.\d{0,20})?|\.\d{1,20})(?:[eE][+-]?\d{1,3})?", re.ASCII)
"""``1``, ``0.75``, ``.5``, ``7.5e-1``."""


def read_verdict(text: str, shown: str, kind: Kind) -> Answer:
    """The verdict of a judge that was `shown` a prompt; no value if there is not exactly one.

    Verdicts in repetitions of what was shown do not count. Tags around something that is no
    verdict are passed over. Two verdicts that differ are none. The last verdict is the judge's
    own even where its line is also one of the answer's, lest an answer could take it away; only
    a favourable one that stands in quotation marks is not.
    """
    said = without_blocks(text, shown)
    spans: list[tuple[int, int]] = []
    answers: list[Answer] = []
    for tagged in _TAGGED[kind].finditer(said):
        verdict = _grade(tagged[1]) if kind == "grade" else _score(tagged[1])
        if verdict is not None:
            value, reason = verdict
            spans.append(tagged.span())
            answers.append(Answer(value, "strict" if tagged[2] else "tolerant", reason))
    if not answers:
        return Answer(reason="no_verdict")
    inline, lines = quotations(said, shown)
    quoted = _inside(spans, [*inline, *lines])
    favourable = score_of(answers[-1].value).outcome == "correct"
    quoted[-1] = favourable and _inside(spans[-1:], inline)[0]
    own = [answer for answer, taken in zip(answers, quoted, strict=True) if not taken]
    if not own:
        return Answer(reason="no_verdict")
    return own[-1] if len({each.value for each in own}) == 1 else Answer(reason="two_verdicts")


def _inside(spans: Sequence[tuple[int, int]], quoted: Iterable[tuple[int, int]]) -> list[bool]:
    """Whether each span lies in a quotation: one that begins before it and ends after it."""
    in_order = sorted(quoted)
    starts = [start for start, _ in in_order]
    reach = [0, *accumulate((end for _, end in in_order), max)]
    return [end <= reach[bisect(starts, start)] for start, end in spans]


def _grade(said: str) -> tuple[str, str] | None:
    word = said.strip(" \t\r\n*_`\"'.!").casefold()
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


def reading_of(verdict: Answer) -> Reading:
    """A verdict as the reading of the judge's reply."""
    return Reading(VerdictReader.name, verdict, score_of(verdict.value))


class VerdictReader(Reader):
    """Reads the verdict of a judge about one answer."""

    name = "verdict"

    def __init__(self, kind: Kind) -> None:
        self._kind = kind

    def read(self, text: str, sample: Sample) -> Answer:
        return read_verdict(text, render(sample, self._kind).tail, self._kind)

    def matches(self, value: str, sample: Sample) -> bool:
        return score_of(value).outcome == "correct"


def settled(votes: Sequence[str | None]) -> str | None:
    """What one judge's verdicts on one answer come to; None among them is a repeat without one.

    The verdict that most votes give, an earlier one at a tie; the mean of scores.
    """
    given = [vote for vote in votes if vote is not None]
    if not given:
        return None
    if given[0] not in GRADES:
        return f"{sum(map(float, given)) / len(given):.6g}"
    counts = Counter(given)
    return max(counts, key=counts.__getitem__)


def consistency(answers: Iterable[Sequence[str | None]]) -> float | None:
    """Chance that two verdicts of one judge on one answer are the same, over all answers."""
    counted = (Counter(vote for vote in votes if vote is not None) for votes in answers)
    shares = [self_consistency(counts.values()) for counts in counted]
    defined = [share for share in shares if share is not None]
    return sum(defined) / len(defined) if defined else None


def agreement(first: Sequence[str | None], second: Sequence[str | None]) -> dict[str, Any]:
    """How far two judges agree about the answers that both have a verdict on."""
    both = [(a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None]
    if not both:
        return {"n": 0, "disagreements": 0, "observed": None, "kappa": None}
    labels = [(score_of(a).outcome, score_of(b).outcome) for a, b in both]
    kappa = kappa_of_labels([a for a, _ in labels], [b for _, b in labels])
    return {
        "n": len(both),
        "disagreements": sum(a != b for a, b in labels),
        "observed": kappa.observed,
        "kappa": kappa.value,
    }
