"""Reading a letter: the rules of the environment, the official ones, and Keju's own.

No rule ever takes the first character of prose for a label: ``Because…`` is not B, ``As an AI`` is
not A and ``E. coli`` is not E.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from unicodedata import normalize

from keju.answers.kinds import Choice
from keju.answers.labels import bare_label, read_label
from keju.answers.negation import LINK, standing_of, strength_of
from keju.answers.reader import Reader
from keju.answers.robust import RobustReader
from keju.answers.segments import LONGEST, Statement, segment_at, tagged
from keju.answers.wordings import ANSWER_COLON, announcements
from keju.benchmarks.bixbench.option_text import likely_option, option_of
from keju.types import Answer, Sample, Tier

NAMES = ("environment", "official", "robust")

LABEL_LENGTH = 12
"""Characters of a reply in which a full-width label is looked for."""

_NOT_ALNUM = re.compile(r"[^A-Za-z0-9]+")
_ONE_LABEL = re.compile(r"[\s*_`\"'(\[{$]*+([A-Za-z])[\s*_`\"')\]}$.:,;!]*+")
# `B.two`, `B选项`: no blank between a label and what follows, which the environment does not read.
_GLUED = re.compile(r"\W{0,4}[A-Za-z](?:[)\].:、]{1,3}\w|\s?选?项)")
_OPTION = re.compile(r"\b(?:[Oo]ption|OPTION)\s{1,3}[*_`(\[]{0,3}([A-Z])(?![A-Za-z0-9'’])")
_LEADING = re.compile(
    r"[\s*_`]*+(?:[(\[]([A-Za-z])[)\]]|([A-Z]))(?![A-Za-z0-9'’])[*_`]{0,3}[).:]{0,2}[*_`]{0,3}"
    r"(?=\s*(?:\n|[,;–—]\s|-\s)|\s+(?:is|because|since)\b|\s+(\S))"
)
"""A label at the beginning; the third group is set where something else follows it."""

Step = Callable[[str, Sample], "Answer | None"]


class OfficialReader(Reader):
    """The last closed ``<answer>…</answer>``, compared by letters and digits alone.

    The published parser cuts garbage out of replies without tags; here they hold no answer.
    """

    name = "official"

    def read(self, text: str, sample: Sample) -> Answer:
        inside = tagged(text)
        if inside is None:
            return Answer(reason="no_marker")
        letter = _NOT_ALNUM.sub("", inside).upper()
        return _valid(letter, sample, "strict") if letter else Answer(reason="empty")


class EnvironmentReader(Reader):
    """The rules that the verifiers environment promises, without its defects.

    One label alone; ``answer is X``; a label that leads the reply; ``Option X``; the text of an
    option; a text much like one.
    """

    name = "environment"
    version = 2

    def read(self, text: str, sample: Sample) -> Answer:
        return _first(text.strip(), sample, (_alone, _announced, _leading, _option, _text, _fuzzy))


class TaggedReader(RobustReader):
    """Keju's own: tags, then the strict and tolerant markers, then the reply's own form."""

    version = 3

    def __init__(self) -> None:
        super().__init__(Choice(), strict=ANSWER_COLON)

    def read(self, text: str, sample: Sample) -> Answer:
        inside = tagged(text)
        if inside is not None:
            answer = _first(inside.strip(), sample, (_alone, _announced, _leading, _text))
            if answer.value is not None:
                return answer
        return super().read(text, sample)

    def fallback(self, text: str, sample: Sample) -> Answer:
        return _first(text.strip(), sample, (_alone, _leading, _option, _text))


def readers() -> dict[str, Reader]:
    """All readers of multiple choice by name."""
    return {
        reader.name: reader for reader in (EnvironmentReader(), OfficialReader(), TaggedReader())
    }


def _first(text: str, sample: Sample, steps: tuple[Step, ...]) -> Answer:
    """What the first step that finds anything says, be it that the answer is not valid."""
    for step in steps:
        answer = step(text, sample)
        if answer is not None:
            return answer
    return Answer(reason="no_marker" if text else "empty")


def _valid(label: str, sample: Sample, tier: Tier) -> Answer:
    if len(label) == 1 and label in sample.labels:
        return Answer(label, tier)
    return Answer(reason="invalid_label")


def _alone(text: str, sample: Sample) -> Answer | None:
    """The whole reply is one label, or a label and its own option's text."""
    match = _ONE_LABEL.fullmatch(normalize("NFKC", text) if len(text) <= LABEL_LENGTH else text)
    if match:
        return _valid(match[1].upper(), sample, "strict")
    label = None if _GLUED.match(text) else bare_label(text, sample.labels, sample.choices)
    return Answer(label, "tolerant") if label and option_of(text, sample) in (None, label) else None


def _announced(text: str, sample: Sample) -> Answer | None:
    """``answer is X`` or ``Answer: X``, the last that is followed by an answer and not denied."""
    silent = {""}
    spans = announcements(text)
    for number in reversed(range(len(spans))):
        words, start, _ = segment_at(text, spans, number)
        if words in silent:
            continue
        label = option_of(words, sample)
        statement = Statement(label) if label else read_label(words, sample.labels, sample.choices)
        if statement.reason == "no_label":
            silent.add(words)
            continue
        standing = standing_of(text, start)
        if standing == "alternative":
            return Answer(reason="ambiguous")
        if standing == "stated":
            return Answer(statement.value, "tolerant" if statement.value else "", statement.reason)
    return None


def _leading(text: str, sample: Sample) -> Answer | None:
    """A label at the beginning, set off from what follows or followed by its own text."""
    match = _LEADING.match(text)
    if match is None:
        return None
    label = (match[1] or match[2]).upper()
    if match[3] and not _own_text_follows(text, match.start(3), label, sample):
        return None
    statement = read_label(text.partition("\n")[0], sample.labels, sample.choices)
    if statement.reason == "ambiguous":
        return Answer(reason="ambiguous")
    return Answer(label, "tolerant") if statement.value == label else None


def _own_text_follows(text: str, start: int, label: str, sample: Sample) -> bool:
    index = sample.labels.find(label)
    own = sample.choices[index].strip() if index >= 0 else ""
    follows = text[start : start + len(own) + 1].casefold()
    whole = len(follows) <= len(own) or not (follows[-1].isalnum() or follows[-1] in "%.,-")
    return bool(own) and follows.startswith(own.casefold()) and whole


def _option(text: str, sample: Sample) -> Answer | None:
    """``Option X``, the last one; where two are joined, or it is called wrong, there is none."""
    named = list(_OPTION.finditer(text))
    if not named:
        return None
    last = named[-1]
    if len(named) > 1 and named[-2][1] != last[1]:
        link = LINK.fullmatch(text, named[-2].end(), last.start())
        if link and strength_of(link[0]) != "apart":
            return Answer(reason="ambiguous")
    said = text[last.start() : last.start() + LONGEST].partition("\n")[0]
    statement = read_label(said, sample.labels, sample.choices)
    if statement.reason == "no_label":
        return None
    if statement.value is None:
        return Answer(reason=statement.reason)
    return _valid(last[1], sample, "tolerant")


def _text(text: str, sample: Sample) -> Answer | None:
    label = option_of(text, sample)
    return Answer(label, "tolerant") if label else None


def _fuzzy(text: str, sample: Sample) -> Answer | None:
    label = likely_option(text, sample)
    return Answer(label, "fallback") if label else None
