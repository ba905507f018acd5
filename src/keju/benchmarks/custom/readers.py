"""The readers a custom exam can choose from: letters of options, and texts compared by value."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence

from keju.answers.choice_markers import ANSWER_COLON, TOLERANT
from keju.answers.clean import clean_segment
from keju.answers.labels import read_label
from keju.answers.markers import last_line, segments_after, segments_after_literal
from keju.answers.numbers import number_of, numbers_in, plain_numerals, same_number
from keju.benchmarks.base import Reader
from keju.benchmarks.choice_readers import ChoiceReader, ChoiceRules, RobustChoiceReader
from keju.benchmarks.custom.exam_file import ExamFile, Kind, ReaderRule
from keju.errors import ConfigError
from keju.types import Answer, Sample, Tier

ROBUST = "robust"
LETTER = "letter"
ACCEPTED = "accepted"
"""Key of `Sample.metadata` that holds all right answers, where there are several."""
CHINESE_COLON = re.compile(r"答案[:：]")
MARKERS = {"en": ANSWER_COLON, "zh": CHINESE_COLON}
"""What Keju's own prompts ask for."""
LONGEST_LAST_LINE = 200
"""Characters of a last line that may be an answer on its own."""

Finder = Callable[[str], Sequence[str]]
"""The parts of a reply that announce themselves as answers, in order."""


def after_marker(marker: str) -> Finder:
    """What stands after each occurrence of a text."""
    return lambda text: [s.text for s in segments_after_literal(text, marker)]


def matching(pattern: str) -> Finder:
    """What each match of a pattern holds: its first group, or all of it."""
    compiled = re.compile(pattern)
    group = 1 if compiled.groups else 0
    return lambda text: [match[group] or "" for match in compiled.finditer(text)]


class FoundLabel(ChoiceReader):
    """The label in the last part of a reply that announces one."""

    def __init__(self, name: str, find: Finder) -> None:
        self.name = name
        self._find = find

    def read(self, text: str, sample: Sample) -> Answer:
        for segment in reversed(self._find(text)):
            reading = read_label(segment, sample.labels, sample.choices)
            if reading.reason != "no_label":
                return Answer(reading.value, "strict" if reading.value else "", reading.reason)
        return Answer(reason="no_marker")


class LetterReader(RobustChoiceReader):
    """`robust` of options, under the name by which exam files and protocols know it."""

    name = LETTER


class TextReader(Reader):
    """A reader of free answers, compared with every answer that counts as right."""

    def matches(self, value: str, sample: Sample) -> bool:
        accepted = sample.metadata.get(ACCEPTED) or [sample.target]
        return any(self.same(value, right) for right in accepted)

    def same(self, value: str, right: str) -> bool:
        """Whether two answers say the same: equal numbers, or equal words in any case."""
        first, second = number_of(value), number_of(right)
        if first is not None and second is not None:
            return same_number(first, second)
        return _folded(value) == _folded(right)


def _folded(text: str) -> str:
    plain = unicodedata.normalize("NFKC", clean_segment(text)).casefold()
    return " ".join(plain.split())


class FoundText(TextReader):
    """What stands in the last part of a reply that announces an answer."""

    def __init__(self, name: str, find: Finder) -> None:
        self.name = name
        self._find = find

    def read(self, text: str, sample: Sample) -> Answer:
        for segment in reversed(self._find(text)):
            if bare := clean_segment(segment):
                return Answer(bare, "strict")
        return Answer(reason="no_marker")


class RobustText(TextReader):
    """The exam's marker, another wording, or a short last line."""

    name = ROBUST

    def __init__(self, strict: re.Pattern[str]) -> None:
        self._tiers: tuple[tuple[Tier, re.Pattern[str]], ...] = (
            ("strict", strict),
            ("tolerant", TOLERANT),
        )

    def read(self, text: str, sample: Sample) -> Answer:
        for tier, pattern in self._tiers:
            for segment in reversed(segments_after(text, pattern)):
                if bare := clean_segment(segment.text):
                    return Answer(bare, tier)
        line = clean_segment(last_line(text))
        if line and len(line) <= LONGEST_LAST_LINE:
            return Answer(line, "fallback")
        return Answer(reason="no_marker")


class ExactText(TextReader):
    """The whole reply, letter for letter."""

    name = "exact"

    def read(self, text: str, sample: Sample) -> Answer:
        bare = text.strip()
        return Answer(bare, "strict") if bare else Answer(reason="empty")

    def same(self, value: str, right: str) -> bool:
        return value == right.strip()


class NumberReader(TextReader):
    """The last number that is announced as the answer, or the last one of the last line."""

    name = "number"

    def read(self, text: str, sample: Sample) -> Answer:
        text = plain_numerals(text)
        for segment in reversed(segments_after(text, TOLERANT)):
            if number := _last_number(segment.text):
                return Answer(number, "strict")
        if number := _last_number(last_line(text)):
            return Answer(number, "fallback")
        return Answer(reason="no_number")

    def same(self, value: str, right: str) -> bool:
        first, second = number_of(value), number_of(right)
        return first is not None and second is not None and same_number(first, second)


def _last_number(text: str) -> str:
    clear = [number for number in numbers_in(text) if number.clear]
    return text[clear[-1].start : clear[-1].end] if clear else ""


def readers_of(exam: ExamFile, kind: Kind) -> tuple[str, dict[str, Reader]]:
    """The name of the headline's reader, and all readers of an exam of this kind."""
    found = _choice_readers(exam) if kind == "choice" else _text_readers(exam)
    rule = exam.reader
    if isinstance(rule, ReaderRule):
        return ("marker" if rule.marker is not None else "regex"), found
    name = rule or (LETTER if kind == "choice" else ROBUST)
    if name not in found:
        valid = ", ".join(found)
        raise ConfigError(f"reader '{name}' is not for {_KINDS[kind]} (valid: {valid})")
    return name, found


_KINDS: dict[Kind, str] = {"choice": "questions with options", "free": "questions without options"}


def _choice_readers(exam: ExamFile) -> dict[str, Reader]:
    rules = ChoiceRules(MARKERS[exam.language])
    found: dict[str, Reader] = {LETTER: LetterReader(rules), ROBUST: RobustChoiceReader(rules)}
    if isinstance(exam.reader, ReaderRule):
        name, find = _finder(exam.reader)
        found[name] = FoundLabel(name, find)
    return found


def _text_readers(exam: ExamFile) -> dict[str, Reader]:
    robust = RobustText(MARKERS[exam.language])
    found: dict[str, Reader] = {r.name: r for r in (robust, ExactText(), NumberReader())}
    if isinstance(exam.reader, ReaderRule):
        name, find = _finder(exam.reader)
        found[name] = FoundText(name, find)
    return found


def _finder(rule: ReaderRule) -> tuple[str, Finder]:
    if rule.marker is not None:
        return "marker", after_marker(rule.marker)
    return "regex", matching(rule.regex or "")
