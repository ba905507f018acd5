"""Keju's own reader of BBH: several wordings of the marker, typed answers, and never a guess."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from keju.answers.choice_markers import announcements
from keju.answers.denial import standing_of
from keju.answers.markers import (
    LONGEST,
    Segment,
    last_block,
    last_paragraph,
    segments_after_literal,
    segments_at,
)
from keju.answers.runon import cut_run_on
from keju.benchmarks.base import Reader
from keju.benchmarks.bbh import forms, integers, sequences, statements
from keju.benchmarks.bbh.facts import SUBSETS, Kind
from keju.benchmarks.bbh.forms import Found
from keju.benchmarks.bbh.readers import MARKER, QUESTION_STARTS
from keju.types import Answer, Sample, Tier


class Form(NamedTuple):
    """How answers of a kind are read and compared."""

    read: Callable[[str, Sample], Found]
    """What a segment after a marker answers."""
    whole: Callable[[str, Sample], str | None]
    """The answer of a line that is nothing but an answer."""
    same: Callable[[str, str], bool]
    """Whether a value that was read is a target."""


_INTEGERS = integers.Integers()

FORMS: dict[Kind, Form] = {
    "choice": Form(forms.read_choice, forms.whole_choice, forms.same_choice),
    "bool": Form(forms.BOOL.read, forms.BOOL.whole, forms.same_word),
    "yes_no": Form(forms.YES_NO.read, forms.YES_NO.whole, forms.same_word),
    "valid": Form(forms.VALID.read, forms.VALID.whole, forms.same_word),
    "integer": Form(_INTEGERS.read, _INTEGERS.whole, _INTEGERS.same),
    "brackets": Form(sequences.read_brackets, sequences.whole_brackets, sequences.same_brackets),
    "words": Form(sequences.read_words, sequences.whole_words, sequences.same_words),
}
_FORM_OF = {name: FORMS[facts.kind] for name, facts in SUBSETS.items()} | {
    forms.SPORTS: Form(forms.PLAUSIBLE.read, forms.PLAUSIBLE.whole, forms.same_word)
}
_LISTS = frozenset(name for name, facts in SUBSETS.items() if facts.kind == "words")


class RobustReader(Reader):
    """Reads an answer of the subset's kind: strict marker, tolerant marker, a bare last line.

    Inside a tier the last marker that is followed by an answer wins; the first one's answer is
    kept where it differs. Two answers joined by a conjunction are ambiguous and end the reading.
    """

    name = "robust"

    def read(self, text: str, sample: Sample) -> Answer:
        text, cut = cut_run_on(text, QUESTION_STARTS)
        answer = _read_tiers(text, sample)
        if not cut:
            return answer
        return Answer(answer.value, answer.tier, answer.reason, answer.first, cut=True)

    def matches(self, value: str, sample: Sample) -> bool:
        return _FORM_OF[sample.subset].same(value, sample.target)


def _read_tiers(text: str, sample: Sample) -> Answer:
    form = _FORM_OF[sample.subset]
    paragraph = sample.subset in _LISTS
    reason = ""
    if MARKER in text:
        segments = segments_after_literal(text, MARKER, paragraph=paragraph)
        answer = _last_answer(text, segments, "strict", form, sample)
        if answer.value is not None or answer.reason == "ambiguous":
            return answer
        reason = answer.reason
    if spans := announcements(text):
        segments = segments_at(text, spans, paragraph=paragraph)
        answer = _last_answer(text, segments, "tolerant", form, sample)
        if answer.value is not None or answer.reason == "ambiguous":
            return answer
        reason = reason or answer.reason
    value = _bare_answer(text, form, sample)
    if value is not None:
        return Answer(value, "fallback")
    return Answer(reason=reason or ("no_marker" if text.strip() else "empty"))


def _bare_answer(text: str, form: Form, sample: Sample) -> str | None:
    """The answer of a reply that ends with nothing else, or with a plain statement of it.

    That is the last line or a code block at the end; a list of words may be the last paragraph or
    the whole reply.
    """
    block = last_block(text)
    if len(block) > LONGEST:
        return None
    value = form.whole(block, sample)
    if value is None:
        value = statements.stated(block, form.whole, sample)
    if value is None and sample.subset in _LISTS and len(text) <= LONGEST:
        return form.whole(last_paragraph(text), sample) or form.whole(text, sample)
    return value


def _last_answer(
    text: str, segments: list[Segment], tier: Tier, form: Form, sample: Sample
) -> Answer:
    """The answer of the last segment that is one; an invalid label is a statement too."""
    known: dict[str, Found] = {}
    last = _first_statement(text, reversed(segments), form, sample, known)
    if last.value is None:
        return Answer(reason=last.reason)
    if len(segments) == 1:
        return Answer(last.value, tier)
    first = _first_statement(text, segments, form, sample, known).value
    return Answer(last.value, tier, first=first if first != last.value else None)


def _first_statement(
    text: str, segments: Iterable[Segment], form: Form, sample: Sample, known: dict[str, Found]
) -> Found:
    """What the first of `segments` that states anything says; what is denied states nothing.

    `known` remembers what was read already, so that a looping reply costs no more than one turn.
    """
    found = forms.NOTHING
    for segment in segments:
        reading = known.get(segment.text)
        if reading is None:
            reading = known[segment.text] = form.read(segment.text, sample)
        if reading.reason in ("no_label", "invalid_answer"):
            found = reading
            continue
        standing = standing_of(text, segment.start)
        if standing == "stated":
            return reading
        if standing == "alternative":
            return forms.AMBIGUOUS
        found = forms.DENIED
    return found
