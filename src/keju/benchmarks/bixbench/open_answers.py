"""Grade open answers by rules; a judge may decide the answers that no rule decides.

``strict`` is the published rule of each question's ``eval_mode`` without its defects: a part of the
target does not count as the target, and signs, points and exponents are kept. Runs of Keju 1.0 call
it ``native``. ``tolerant`` also accepts what some relaxations allow, by default rounding and
percent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from unicodedata import numeric

from keju.answers.numbers import (
    NUMBER_WORDS,
    is_same_number,
    normalise_for_comparison,
    parse_number,
    parse_range,
)
from keju.answers.reader import Reader
from keju.answers.segments import clean_segment, find_tag_content
from keju.benchmarks.bixbench.relaxations import DEFAULT_RELAXATIONS, EVAL_MODE, RANGE, RelaxedRules
from keju.benchmarks.bixbench.stated_numbers import find_stated_number
from keju.benchmarks.grading import EXACT, grade
from keju.types import Answer, Outcome, Reading, Reply, Sample, Score

STRICT, NATIVE, TOLERANT = "strict", "native", "tolerant"
"""Readers of open answers. The second is the first under its name of version 1.0."""

# `true`, `yes` (group 1), `false`, `no.` (group 2); not the `no` of `no effect`.
_TRUTH_WORD = re.compile(r"\b(?:(true|yes)|(false|no(?=\s*+(?:[.,;:!?)\"'*]|or\b|and\b|$))))\b")
# The beginning of a reply: `no, because`; not `no doubt`, `no one`, which continue differently.
_FIRST_WORD = re.compile(r"(true|yes|false|no)\b(?!\s+(?:doubt|question|one|idea)\b)")
# `none`, `twenty-five`, `a half`: numbers in words, alone or as a part of a longer one.
_NUMBER_WORD = re.compile(
    rf"(?i)\b(?:{'|'.join(NUMBER_WORDS)}|(?:thir|for|fif|six|seven|eigh|nine)ty|hundreds?"
    rf"|thousands?"
    r"|[mb]illions?|dozens?|once|twice|none|nil|half|halves|thirds?|quarters?|infinit[ey]"
    r"|infinity)\b"
)
# `no effect, so it is true`: a `no` at the beginning, even if it does not deny the hypothesis.
_NO_FIRST = re.compile(r"no\b")


class OpenAnswerVerdict(NamedTuple):
    """The decision of the rules about an answer."""

    correct: bool | None
    """None if the rules cannot decide."""
    grader: str
    """The rule that decided."""


UNDECIDED = OpenAnswerVerdict(None, "undecided")


class OpenReader(Reader):
    """Takes the full reply, or the text inside its tags, as the answer."""

    version = 4

    def __init__(
        self, name: str, *, tags_required: bool, relaxed: RelaxedRules | None = None
    ) -> None:
        """`relaxed` accepts further answers of the reader ``tolerant``."""
        self.name = name
        self.about = f"bixbench.about_reader_{name}"
        self._relaxed = relaxed
        self._tags_required = self.marked = tags_required

    def read(self, text: str, sample: Sample) -> Answer:
        inside = find_tag_content(text)
        if inside is None and self._tags_required:
            return Answer(reason="no_marker")
        value = (text if inside is None else inside).strip()
        return Answer(value, "strict") if value else Answer(reason="empty")

    def matches(self, value: str, sample: Sample) -> bool:
        return self.decide(value, sample).correct is True

    def decide(self, value: str, sample: Sample) -> OpenAnswerVerdict:
        """Grade an answer by the rule of its question; the target's exact text is always right."""
        verdict = decide_strictly(value, sample)
        if verdict.correct is True or self._relaxed is None:
            return verdict
        if self._relaxed.accepts(value, sample):
            is_range = sample.metadata.get(EVAL_MODE) == RANGE
            return OpenAnswerVerdict(True, "range" if is_range else "number")
        return verdict


def decide_strictly(value: str, sample: Sample) -> OpenAnswerVerdict:
    """Grade an answer by the published rule of its question's ``eval_mode``."""
    target = sample.target
    if normalise_for_comparison(value) == normalise_for_comparison(target):
        return OpenAnswerVerdict(True, EXACT)
    if sample.metadata.get(EVAL_MODE) == RANGE:
        return _decide_range(value, target)
    number, gold = parse_number(value), parse_number(target)
    if number is not None and gold is not None and is_same_number(number, gold):
        return OpenAnswerVerdict(True, "number")
    return UNDECIDED


def _decide_range(value: str, target: str) -> OpenAnswerVerdict:
    """Grade an answer by the bounds in its target."""
    bounds, number = parse_range(target), find_stated_number(value)
    if bounds is not None and not _may_contain_number(value):
        return OpenAnswerVerdict(False, "range")
    if bounds is None or number is None:
        return UNDECIDED
    return OpenAnswerVerdict(bounds.holds(number.value), "range")


class HypothesisReader(Reader):
    """Reads true or false from the full reply or its first word; None if they contradict."""

    name = "native"
    about = "bixbench.about_reader_hypothesis"
    marked = False

    def read(self, text: str, sample: Sample) -> Answer:
        inside = find_tag_content(text)
        bare = clean_segment(text if inside is None else inside).casefold()
        if not bare:
            return Answer(reason="empty")
        words = _TRUTH_WORD.findall(bare)
        says_yes = any(yes for yes, _ in words)
        if says_yes and (any(no for _, no in words) or _NO_FIRST.match(bare)):
            return Answer(reason="ambiguous")
        first_word = _FIRST_WORD.match(bare)
        if first_word is None:
            return Answer(reason="no_marker")
        return Answer("True" if first_word[1] in ("true", "yes") else "False", "strict")

    def matches(self, value: str, sample: Sample) -> bool:
        return value == sample.target


def make_readers(
    *,
    hypothesis: bool,
    tags_required: bool,
    relaxations: Sequence[str] = DEFAULT_RELAXATIONS,
    distractors: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Reader]:
    """Return the readers of open answers by name."""
    if hypothesis:
        return {HypothesisReader.name: HypothesisReader()}
    relaxed = RelaxedRules(relaxations, distractors)
    return {
        NATIVE: OpenReader(NATIVE, tags_required=tags_required),
        STRICT: OpenReader(STRICT, tags_required=tags_required),
        TOLERANT: OpenReader(TOLERANT, tags_required=tags_required, relaxed=relaxed),
    }


def grade_open(
    reply: Reply, sample: Sample, reader: Reader, *, exact: bool, leaves_to_judge: bool = False
) -> Reading:
    """Read and grade an open answer.

    An answer that no rule decides is ungraded, so that a judge can decide. With `exact` it is right
    only if it equals the target's text. With `leaves_to_judge` a judge also decides on answers in
    which no rule finds true or false.
    """
    reading = grade(reply, sample, reader)
    value, outcome = reading.answer.value, reading.score.outcome
    is_hypothesis = isinstance(reader, HypothesisReader)
    is_undecided = outcome == "unparsed" and reading.answer.reason in _FOR_THE_JUDGE
    if leaves_to_judge and is_hypothesis and is_undecided:
        return Reading(reading.reader, reading.answer, Score(0.0, "ungraded", UNDECIDED.grader))
    if value is None or outcome not in ("correct", "incorrect"):
        return reading
    correct: bool | None
    if isinstance(reader, HypothesisReader):
        correct, grader = outcome == "correct", "hypothesis"
    elif isinstance(reader, OpenReader):
        correct, grader = reader.decide(value, sample)
        if correct is None and exact:
            correct, grader = False, EXACT
    else:
        return reading
    score = Score(1.0 if correct else 0.0, _OUTCOMES[correct], grader)
    return Reading(reading.reader, reading.answer, score)


_FOR_THE_JUDGE = ("no_marker", "ambiguous")
"""Why an open answer about a hypothesis was not read, where a judge may still decide."""
_OUTCOMES: dict[bool | None, Outcome] = {True: "correct", False: "incorrect", None: "ungraded"}


def _may_contain_number(text: str) -> bool:
    """Whether a text contains a number, in digits, other numerals or words."""
    return bool(_NUMBER_WORD.search(text)) or any(numeric(c, None) is not None for c in text)
