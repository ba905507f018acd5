"""The two readers that all exams with labelled options share.

`EvalScopeChoiceReader` does what EvalScope 1.14 publishes, faults included; `RobustChoiceReader` is
Keju's own. Both are parametrised with the markers of an exam and hold no state.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import msgspec

from keju.answers.choice_markers import TOLERANT, announcements
from keju.answers.clean import clean_segment
from keju.answers.denial import standing_of
from keju.answers.labels import LabelReading, option_by_text, read_label
from keju.answers.markers import Segment, last_block, segment_at
from keju.answers.option_text import flattened, option_as_shown
from keju.answers.runon import cut_run_on
from keju.benchmarks.base import Reader
from keju.types import Answer, Sample, Tier


class ChoiceReader(Reader):
    """A reader whose answers are labels, compared with the target label."""

    def matches(self, value: str, sample: Sample) -> bool:
        return value == sample.target


# --- EvalScope -------------------------------------------------------------------------------

EVALSCOPE_ENGLISH = re.compile(r"ANSWER\s*+:\s*+\**+\s*+", re.IGNORECASE)
EVALSCOPE_CHINESE = re.compile(r"答案\s*+[:：]\s*+\**+\s*+")

_TYPESETTING = re.compile(r"(?:(?:\$+|\\\(|\\(?:boxed|fbox|text|textbf|mathbf|mathrm)\s*\{)\s*)*+")
_SEPARATOR = r"[,，/、]"
_BRACKETED = re.compile(
    r"[(\[（【]\s*+([A-Za-z\d](?:\s*" + _SEPARATOR + r"\s*[A-Za-z\d])*+)\s*+[)\]）】]"
)
_RUN = re.compile(r"([A-Za-z\d][A-Za-z\d ,，/、]*+)")
_WORD = re.compile(r"[A-Za-z\d]+")
_CONNECTORS = frozenset({"and", "or"})


class EvalScopeChoiceReader(ChoiceReader):
    """EvalScope 1.14: the last usable marker's label, else the last capital of the text.

    The fallback is kept because published numbers contain it; it takes ``DNA`` for A and the
    pronoun for I. `marker` is `EVALSCOPE_ENGLISH` or `EVALSCOPE_CHINESE`.
    """

    name = "evalscope"

    def __init__(self, marker: re.Pattern[str] = EVALSCOPE_ENGLISH) -> None:
        self.marker = marker

    def read(self, text: str, sample: Sample) -> Answer:
        labels = sample.labels
        ends = [match.end() for match in self.marker.finditer(text)]
        last = _first_usable(text, reversed(ends), labels)
        if last is None:
            return _last_capital(text, labels)
        if last not in labels or len(last) != 1:
            return Answer(reason="ambiguous")
        first = _first_usable(text, iter(ends), labels) if len(ends) > 1 else last
        differs = first is not None and first != last and len(first) == 1
        return Answer(last, "strict", first=first if differs else None)


def _first_usable(text: str, ends: Iterator[int], labels: str) -> str | None:
    """The first run of labels that follows one of the markers ending at `ends`."""
    for end in ends:
        if run := _labels_at(text, end, labels):
            return run
    return None


def _labels_at(text: str, position: int, labels: str) -> str:
    """The text at `position` as far as it is nothing but labels of the row."""
    typesetting = _TYPESETTING.match(text, position)
    start = typesetting.end() if typesetting else position
    for pattern in (_BRACKETED, _RUN):
        match = pattern.match(text, start)
        if match and (run := _leading_labels(match[1], labels)):
            return run
    return ""


def _leading_labels(run: str, labels: str) -> str:
    """The leading part of `run` made of labels, with ``and`` and ``or`` only between two."""
    end = 0
    connector = False
    for match in _WORD.finditer(run):
        if set(match[0]) <= set(labels):
            end = match.end()
            connector = False
        elif end and not connector and match[0].lower() in _CONNECTORS:
            connector = True
        else:
            break
    return run[:end]


def _last_capital(text: str, labels: str) -> Answer:
    capital = next((letter for letter in reversed(text) if letter.isupper()), "")
    if capital and capital in labels:
        return Answer(capital, "fallback")
    return Answer(reason="invalid_label" if capital else "no_marker")


# --- robust ----------------------------------------------------------------------------------

Cut = Callable[[str], tuple[str, bool]]
"""Cuts a run-on; returns what is left and whether anything was cut."""


@dataclass(frozen=True)
class ChoiceRules:
    """What a robust reader has to know of an exam and its protocol."""

    strict: re.Pattern[str]
    """The marker that the protocol asks for."""
    tolerant: re.Pattern[str] = TOLERANT
    """Any other wording; ``\\boxed{B}`` counts as one beside it."""
    questions: tuple[str, ...] = ()
    """How a line begins where a model runs on into a new question."""
    normalise: Callable[[str], str] | None = None
    """Applied to the text first, e.g. a Unicode normal form."""
    cut: Cut | None = None
    """A further cut for forms whose questions begin with nothing recognisable."""


class RobustChoiceReader(ChoiceReader):
    """Keju's own reader: strict marker, tolerant marker, a bare last line; never prose.

    Inside a tier the last marker that is followed by an answer wins. Where two labels are joined
    nothing is read, and a label that the row does not have ends its tier.
    """

    name = "robust"

    def __init__(self, rules: ChoiceRules) -> None:
        self.rules = rules

    def read(self, text: str, sample: Sample) -> Answer:
        if self.rules.normalise:
            text = self.rules.normalise(text)
        text, cut = cut_run_on(text, self.rules.questions)
        if self.rules.cut:
            text, cut_too = self.rules.cut(text)
            cut = cut or cut_too
        if not text.strip():
            return Answer(reason="empty", cut=cut)
        if any("\n" in choice for choice in sample.choices):
            text, flat = flattened(text, sample.choices)
            sample = msgspec.structs.replace(sample, choices=flat)
        found = self._read_tiers(text, sample)
        if not cut:
            return found
        return Answer(found.value, found.tier, found.reason, found.first, cut=True)

    def _read_tiers(self, text: str, sample: Sample) -> Answer:
        reason = ""
        known: dict[str, LabelReading] = {"": _NO_LABEL}
        for tier, pattern in self._tiers():
            answer = _read_tier(text, pattern, tier, sample, known)
            if answer.value is not None or answer.reason == "ambiguous":
                return answer
            reason = reason or answer.reason
        if label := _bare_answer(text, sample):
            return Answer(label, "fallback")
        return Answer(reason=reason or "no_marker")

    def _tiers(self) -> tuple[tuple[Tier, re.Pattern[str]], ...]:
        return ("strict", self.rules.strict), ("tolerant", self.rules.tolerant)


_PLAIN = re.compile(r" ?[(\[（]?([A-Z])")
"""A label right after its marker, undecorated: what makes a strict marker a strict answer."""
_FILLED_IN = re.compile(r"([(\[（]?[A-Z][)\]）]?)\s?[?？]")
"""A label with a question mark: after the protocol's own marker and colon it fills in a form."""


def _read_tier(
    text: str,
    pattern: re.Pattern[str],
    tier: Tier,
    sample: Sample,
    known: dict[str, LabelReading],
) -> Answer:
    """The last statement of `text` among those that `pattern` announces.

    `known` remembers what was read already, so that a looping reply costs no more than one turn.
    """
    if tier == "tolerant":
        spans = announcements(text, pattern)
    else:
        spans = [match.span() for match in pattern.finditer(text)]
    if not spans:
        return Answer()
    strict = tier == "strict"
    order = range(len(spans))
    from_last = (segment_at(text, spans, number) for number in reversed(order))
    last = _first_statement(text, from_last, sample, known, strict)
    if last is None:
        return Answer()
    segment, reading = last
    if reading.value is None:
        return Answer(reason=reading.reason)
    plain = _PLAIN.match(text, segment.end)
    if strict and not (plain and plain[1] == reading.value):
        tier = "tolerant"
    from_first = (segment_at(text, spans, number) for number in order)
    first = _first_statement(text, from_first, sample, known, strict)
    differs = first is not None and first[1].value not in (None, reading.value)
    return Answer(reading.value, tier, first=first[1].value if first and differs else None)


def _first_statement(
    text: str,
    segments: Iterator[Segment],
    sample: Sample,
    known: dict[str, LabelReading],
    strict: bool,
) -> tuple[Segment, LabelReading] | None:
    """The first of `segments` that states a label, valid or not; prose and denials state none."""
    for segment in segments:
        said = _filled_in(text, segment) if strict else segment.text
        reading = known.get(said)
        if reading is None:
            reading = known[said] = _statement(said, sample)
        if reading.reason == "no_label":
            continue
        standing = standing_of(text, segment.start)
        if standing != "denied":
            return segment, reading if standing == "stated" else _AMBIGUOUS
    return None


def _filled_in(text: str, segment: Segment) -> str:
    """What the protocol's own marker introduces; a question mark is no doubt in a filled-in form.

    That is a label alone after a colon (``ANSWER: B?``); in a sentence (``the answer is (B)?``) the
    mark stays and says that nothing was decided.
    """
    said = segment.text
    if not said.endswith(("?", "？")) or text[segment.end - 1] not in ":：":
        return said
    match = _FILLED_IN.fullmatch(said)
    return match[1] if match else said


def _statement(segment: str, sample: Sample) -> LabelReading:
    """What one marker announces: a label, an option's text, or both."""
    if not _bare_label(segment, sample) and (label := _as_shown(segment, sample)):
        return LabelReading(label)
    reading = read_label(segment, sample.labels, sample.choices)
    if reading.value is not None:
        return _AMBIGUOUS if _is_text_of_another(segment, reading.value, sample) else reading
    if reading.reason != "no_label":
        return reading
    return LabelReading(label) if (label := _only_label(segment, sample)) else reading


def _bare_label(segment: str, sample: Sample) -> bool:
    """Whether `segment` is nothing but a label of the row, so that it is not an option's text."""
    match = _ONLY_LABEL.fullmatch(segment.strip())
    return match is not None and not match[2] and match[1].upper() in sample.labels


def _as_shown(segment: str, sample: Sample) -> str | None:
    return option_as_shown(segment, sample.choices, sample.labels)


_AMBIGUOUS = LabelReading(None, "ambiguous")
_NO_LABEL = LabelReading(None, "no_label")


def _is_text_of_another(segment: str, label: str, sample: Sample) -> bool:
    """Whether a small letter that was read as a label is, as it stands, another option's text."""
    bare = segment.strip().removesuffix(".")
    if len(bare) > len("(a)") or not bare.islower():
        return False
    return any(
        choice.strip() == bare and other != label
        for other, choice in zip(sample.labels, sample.choices, strict=True)
    )


def _bare_answer(text: str, sample: Sample) -> str | None:
    """The label of a last line, or of a whole reply, that is nothing but an answer."""
    line = last_block(text)
    if not _bare_label(line, sample) and (shown := _as_shown(line, sample)):
        return shown
    if label := _only_label(line, sample):
        return None if _is_text_of_another(line, label, sample) else label
    return option_by_text(line, sample.choices, sample.labels) or option_by_text(
        text, sample.choices, sample.labels
    )


_ONLY_LABEL = re.compile(
    r"(?:option |choice |选项 ?)?[(\[]?([A-Za-z])(?![A-Za-z])[)\].:、]{0,2}(?: ?选?项|\s*(.*))",
    re.IGNORECASE | re.DOTALL,
)


def _only_label(line: str, sample: Sample) -> str | None:
    """The label of a line that is only a label, or a label and its own option's text.

    The line is looked at as it stands too, since undressing may take LaTeX off an option's text.
    """
    for form in (clean_segment(line), line):
        match = _ONLY_LABEL.fullmatch(form)
        if match is None or (label := match[1].upper()) not in sample.labels:
            continue
        own = sample.choices[sample.labels.index(label)]
        if not match[2] or option_by_text(match[2], (own,)):
            return label
    return None
