"""The statements that markers announce in a text, in order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from keju.answers.decision import StatementSpan, announcement_status
from keju.answers.kinds import AnswerKind
from keju.answers.lazy_patterns import lazy_pattern
from keju.answers.phrases import load_pattern
from keju.answers.segments import (
    AMBIGUOUS,
    DENIED,
    NO_ANSWER,
    SILENT,
    AnswerStatement,
    read_segment,
)
from keju.answers.wordings import find_announcements
from keju.types import Sample

# `(B)?`: after the marker of the protocol and a colon, the question mark belongs to the form.
_FILLED_IN = lazy_pattern(r"([(\[（]?[A-Z][)\]）]?)\s?[?？]")
_LISTS_OPTIONS = load_pattern("lists_options")
# `not "valid" but `: the answer follows.
_NOT_BUT = lazy_pattern(r"not [^.,;\n]{1,40}? but (?:rather )?")
_BEFORE_LIST = ("\n", ":", "*", "：")
# `选择:A. one\nB. two`: a list of options after the word for a choice. `选择:D. four\nA. one` is a
# choice before a list.
_LISTS_ON = lazy_pattern(r"[\s*:：]*+[(\[]?([A-Z])[)\].:、][^\n]*+\n[ \t]*+[(\[]?([A-Z])[)\].:、]")


def find_statements(
    text: str,
    strict: re.Pattern[str] | str,
    tolerant: re.Pattern[str],
    kind: AnswerKind,
    sample: Sample,
) -> tuple[list[StatementSpan], str]:
    """Return the statements of all markers in `text`, in order, and a reason.

    The reason tells why the last marker without a statement has none. Prose and denials are not
    statements. Equal segments are read only once, so a loop costs as much as one repetition.
    """
    spans = _find_marker_spans(text, strict, tolerant, kind)
    marked: list[StatementSpan] = []
    statements_by_words: dict[str, AnswerStatement] = {}
    reason = ""
    limits = [(start, end) for start, end, _, _ in spans]
    for number, (start, end, longer, is_strict) in enumerate(spans):
        if _begins_list(text, start, end):
            continue
        statement = NO_ANSWER
        for segment_start in sorted({end, max(end, longer)}):
            limits[number] = (start, segment_start)
            words = read_segment(text, limits, number, paragraph=kind.paragraph).text
            if number == len(spans) - 1 and _is_cut_off_loop(words, text, statements_by_words):
                statement = NO_ANSWER
                break
            fills_form = is_strict and text[segment_start - 1] in ":："
            words = _clean_announced_words(words, fills_form=fills_form)
            if words not in statements_by_words:
                statements_by_words[words] = kind.read(words, sample)
            statement = statements_by_words[words]
            if statement not in SILENT:
                break
        if statement in SILENT:
            reason = statement.reason
            continue
        status = announcement_status(text, start)
        if status == "denied":
            reason = DENIED.reason
            continue
        stated = statement if status == "stated" else AMBIGUOUS
        marked.append(StatementSpan(stated, start, limits[number][1], is_strict))
    return marked, reason


def _begins_list(text: str, start: int, end: int) -> bool:
    """Whether a list of options follows a marker. Such a list is not an answer."""
    may_list = text[end : end + 1] in _BEFORE_LIST
    listed = _LISTS_OPTIONS.match(text, end) if may_list else None
    if listed and listed[1] != listed[2]:
        return True
    listed = _LISTS_ON.match(text, end) if "选" in text[start:end] else None
    return listed is not None and listed[2] != "A"


def _clean_announced_words(words: str, *, fills_form: bool) -> str:
    """Return announced words without the question mark of a form and without a denied answer.

    In a completed form, `ANSWER: B?`, the question mark has no meaning. In a sentence, `the answer
    is (B)?`, it stays and means that the reply does not decide.
    """
    if fills_form and words.endswith(("?", "？")) and (form := _FILLED_IN.fullmatch(words)):
        words = form[1]
    if words[:4] == "not " and (turned := _NOT_BUT.match(words)):
        words = words[turned.end() :]
    return words


def _is_cut_off_loop(
    words: str, text: str, statements_by_words: Mapping[str, AnswerStatement]
) -> bool:
    """Whether a loop without answers broke off in its last repetition: ``is [ANSWER] … is [``."""
    return (
        len(statements_by_words) > 0 < len(words) < _LONGEST_CUT_OFF
        and text.endswith(words)
        and any(
            len(seen_words) > len(words) and seen_words.startswith(words) and statement in SILENT
            for seen_words, statement in statements_by_words.items()
        )
    )


_LONGEST_CUT_OFF = 40


def _find_marker_spans(
    text: str, strict: re.Pattern[str] | str, tolerant: re.Pattern[str], kind: AnswerKind
) -> list[tuple[int, int, int, bool]]:
    """Return the markers in order: start, end, the end of a longer form, whether it is strict."""
    strict_spans = list(_find_marker(text, strict))
    if kind.marker is not None:
        strict_spans = sorted({*strict_spans, *_find_marker(text, kind.marker)})
    other_spans = find_announcements(text, tolerant)
    spans: list[tuple[int, int, int, bool]] = []
    place = 0
    for start, end in strict_spans:
        while place < len(other_spans) and other_spans[place][1] <= start:
            spans.append((*other_spans[place], 0, False))
            place += 1
        longer = 0
        while place < len(other_spans) and other_spans[place][0] < end:
            longer = other_spans[place][1]
            place += 1
        spans.append((start, end, longer, True))
    spans += [(start, end, 0, False) for start, end in other_spans[place:]]
    return spans


def _find_marker(text: str, pattern: re.Pattern[str] | str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each occurrence of a marker."""
    if not pattern:
        return
    if not isinstance(pattern, str):
        for match in pattern.finditer(text):
            yield match.span()
        return
    start = text.find(pattern)
    while start >= 0:
        end = start + len(pattern)
        yield start, end
        start = text.find(pattern, end)
