"""The reading of option labels and option texts. Keju never takes a letter out of prose or guesses.

`read_label` reads the text after an announcement. `bare_label` reads a line that contains only an
answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from keju.answers.decision import (
    EXPLAINS,
    LINK,
    NEGATIVE,
    OFFERS,
    REJECTS,
    SENTENCE_END,
    is_second_answer,
)
from keju.answers.lazy_patterns import lazy_pattern
from keju.answers.options import (
    find_text_labels,
    is_longer,
    is_other_prose,
    option_by_text,
    option_texts,
    plain_option_text,
    plain_text,
)
from keju.answers.phrases import load_pattern, load_phrase, load_words
from keju.answers.segments import (
    AMBIGUOUS,
    INVALID_LABEL,
    NO_LABEL,
    AnswerStatement,
    clean_segment,
)
from keju.answers.wordings import FIELD

_WIDE = {
    wide: wide - 0xFEE0
    for wide in (*range(0xFF21, 0xFF3B), *range(0xFF41, 0xFF5B), 0xFF08, 0xFF09, 0xFF0E, 0xFF1A)
} | {ord("【"): "[", ord("】"): "]", ord("〔"): "[", ord("〕"): "]", ord("，"): ","}
"""Full-width letters, brackets, full stop and colon to their ASCII forms."""

_BOXED_LETTER = load_pattern("boxed_letter")
# `'C' (200 MPa)`, `"B"`: a label in quotes before more.
_QUOTED_LETTER = lazy_pattern(r"[\"'“‘]([A-Z])[.)]?[\"'”’](?![A-Za-z])")
_QUOTES = ('"', "'", "“", "‘")
_LEAD = load_phrase("label_lead")
_LABEL = load_pattern("announced_label")
_LABEL_LIST = load_pattern("label_list")
# A whole segment that is a small label: `b`, `option b)`; not `b is`.
_SMALL = lazy_pattern(_LEAD + r"\(?([a-z])[).:]?$", re.IGNORECASE)
_ONLY_LABEL = load_pattern("only_label")
_MENTION = load_pattern("further_label")
# ` rather than`, ` good`: the word after a bare `A` or `I`.
_NEXT_WORD = lazy_pattern(r"\s+(rather than|instead of|[A-Za-z’']+)", re.IGNORECASE)
# ` and II`, `, III`: the `I` before is a number.
_ROMAN = lazy_pattern(r"[,]?(?: and| or| &)?,? (?:II|III|IV)\b")
# `**)?`: a question about the label; not `. Why?`.
_QUESTION_MARK = lazy_pattern(r"[*_)\]\s]{0,4}(?:\?|吗|么[?？])")
# `) **`, `. "`: from a label to the text that follows it; then a dash, where it is not the sign of
# a number: `B - two`, not `B -2`.
_GAP = lazy_pattern(r"[)\]}*_`]*+[.:,]?[)*_`\s$\"'“‘]*+")
_DASH = lazy_pattern(r"[-–—]\s++[*_`$\"'“‘]*+")
# `.`, `**,`, ` because`: the end of an option's text; not ` and more`.
_TEXT_ENDS = lazy_pattern(r"[\s*_`\"'”’]*+(?:\Z|[.,;:!?)\]]|(?:because|since|as|which|is)\b)")

_AFTER_LABEL = frozenset(load_words("after_a_and_i"))


class _LabelSpan(NamedTuple):
    """A label inside a segment."""

    label: str
    raw: str
    """The letter as it is written. It may be lower case in brackets."""
    end: int
    is_bracketed: bool


def read_label(
    segment: str, labels: str, choices: Sequence[str] = (), *, letter_counts: bool = False
) -> AnswerStatement:
    r"""Return the one label of `labels` at the beginning of `segment`, or the label of its text.

    Accepted are ``(B)``, ``[B]``, ``B)``, ``B.``, ``B:``, full-width forms, and a bare capital that
    no letter or apostrophe follows. A bullet, a word of emphasis or ``the option`` may precede the
    label. A lower-case label counts only in brackets, in ``\boxed{}`` or as the whole segment. It
    is ambiguous if it is the text of another option. Two labels in one sentence are ambiguous
    unless one is rejected (``B, not C``) or only discussed. A label with the text of another option
    is ambiguous unless `letter_counts`. Otherwise a segment that is the text of exactly one of the
    `choices` means that choice.
    """
    segment = _read_field(segment)
    bare = _normalise_segment(segment)
    if len(bare) == 1 and bare.upper() in labels:
        return _make_label_statement(bare, segment, choices)
    label_span = _find_label(bare, 0, choices)
    if label_span is None:
        return _read_unlabelled(segment, bare, labels, choices)
    has_more = label_span.end < len(bare)
    if has_more and (by_text := option_by_text(segment, choices, labels)):
        return AnswerStatement(by_text)
    if label_span.label not in labels:
        return INVALID_LABEL
    statement = _make_label_statement(label_span.raw, segment, choices)
    if not has_more:
        return statement
    if not letter_counts and _has_text_of_another(bare, label_span, choices):
        statement = AMBIGUOUS
    return _find_objection(bare, label_span, labels, choices) or statement


def _find_objection(
    bare: str, label_span: _LabelSpan, labels: str, choices: Sequence[str]
) -> AnswerStatement | None:
    """Return the statement if the text after a label denies it or adds another; else None."""
    after = _end_of_option_text(bare, label_span.label, label_span.end, choices)
    if _QUESTION_MARK.match(bare, label_span.end) or NEGATIVE.match(bare, after):
        return NO_LABEL
    return AMBIGUOUS if _is_joined(bare, label_span, labels, choices) else None


def _read_field(segment: str) -> str:
    """Return the value of the answer in a JSON object, else the unchanged segment."""
    field = FIELD.search(segment) if segment[:1] == "{" else None
    return segment[field.end() :].partition(",")[0].strip(' "}\n') if field else segment


def _normalise_segment(segment: str) -> str:
    """Return the cleaned segment in ASCII letters, with a boxed or quoted letter in brackets."""
    normal = segment if segment.isascii() else segment.translate(_WIDE)
    if "\\boxed" in normal:
        normal = _BOXED_LETTER.sub(r"(\1)", normal)
    if normal[:1] in _QUOTES and (quoted := _QUOTED_LETTER.match(normal)):
        normal = f"({quoted[1]}){normal[quoted.end() :]}"
    return clean_segment(normal)


def _read_unlabelled(
    segment: str, bare: str, labels: str, choices: Sequence[str]
) -> AnswerStatement:
    """Return the statement of a segment without a leading label: a small letter or option text."""
    small = _SMALL.match(bare)
    if small and small[1].upper() in labels and bare != "(i)":
        return _make_label_statement(small[1], segment, choices)
    if by_text := option_by_text(segment, choices, labels):
        return AnswerStatement(by_text)
    listed = _LABEL_LIST.match(bare)
    pair = set(map(str.upper, listed.groups()[:2])) if listed else set()
    if len(pair) == 2 and pair <= set(labels):
        return AMBIGUOUS
    if by_text := _find_leading_text(bare, choices, labels):
        return AnswerStatement(by_text)
    if "=" in bare and (by_text := option_by_text(bare.rpartition("=")[2], choices, labels)):
        return AnswerStatement(by_text)
    return _read_closing_label(bare, labels, choices)


_GOES_ON = load_pattern("label_goes_on")


def _find_leading_text(bare: str, choices: Sequence[str], labels: str) -> str | None:
    """Return the label of the option whose text begins `bare`, separated from the following text.

    ``24, since …``; not ``increase, then …`` if other options begin with the same words.
    """
    end = _GOES_ON.search(bare) if choices else None
    if end is None or not (lead := plain_text(bare[: end.start()])):
        return None
    following_text = bare[end.start() :]
    texts = option_texts(tuple(choices)).plain
    if (
        sum(text.startswith(lead) for text in texts) != 1
        or OFFERS.search(following_text)
        or _OR.match(following_text)
    ):
        return None
    return option_by_text(lead, choices, labels)


_OR = load_pattern("or_else")


_CLOSING = load_pattern("closing_label")


_CLOSES = ("(", "[", "ption", "hoice", "选项")
"""A part of every ending that `_CLOSING` matches."""


def _read_closing_label(bare: str, labels: str, choices: Sequence[str]) -> AnswerStatement:
    """Return the label at the end of the first sentence, after the option's text or a remark."""
    sentence = SENTENCE_END.split(bare, maxsplit=1)[0]
    if not any(map(sentence.__contains__, _CLOSES)):
        return NO_LABEL
    closing = _CLOSING.fullmatch(sentence.rstrip(" *_`\"'”’"))
    if closing is None or (label := closing[2] or closing[3]) not in labels:
        return NO_LABEL
    before = closing[1].rstrip(" ,:-–—*_")
    if text_label := option_by_text(before, choices, labels):
        return AnswerStatement(label) if text_label == label else AMBIGUOUS
    if _MENTION.search(before) or _TAKES_BACK.search(before):
        return NO_LABEL
    texts = find_text_labels(before, choices)
    return NO_LABEL if texts and label not in texts else AnswerStatement(label)


_TAKES_BACK = load_pattern("takes_back")


LONGEST_LABEL = 60
"""The most characters of a label with its decoration."""


@lru_cache(maxsize=64)
def bare_label(line: str, labels: str, choices: tuple[str, ...] = ()) -> str | None:
    """Return the label of a line that contains only an answer, or None.

    Such a line is a label, a label with the text of its option, or the text of exactly one option.
    The original line is checked too, since cleaning may remove LaTeX from the text of an option.
    """
    if _is_bracketed_label(line, labels):
        return line[1]
    if _is_more_than_answer(line, choices):
        return None
    clean = clean_segment(line if line.isascii() else line.translate(_WIDE))
    for form in dict.fromkeys((clean, line)):
        match = _ONLY_LABEL.fullmatch(form)
        if match is None or form[match.start(1) - 1 : match.end(1)] == "(i":
            continue  # not a label, or a Roman number
        if (label := match[1].upper()) not in labels:
            continue
        if not match[2]:
            return _make_label_statement(match[1], line, choices).value
        if _is_text_of(match[2], labels.index(label), choices):
            return label
    return option_by_text(line, choices, labels)


def _is_bracketed_label(line: str, labels: str) -> bool:
    """Whether a line is a label in brackets, the most frequent answer: ``(B)``."""
    return len(line) == 3 and line[0] == "(" and line[2] == ")" and line[1] in labels


def _is_more_than_answer(line: str, choices: tuple[str, ...]) -> bool:
    """Whether a line is the beginning of more text, too long for an answer, or other prose."""
    if line.rstrip().endswith((":", "：")):
        return True
    if len(line) > LONGEST_LABEL and is_longer(line, choices, LONGEST_LABEL):
        return True
    return bool(choices) and is_other_prose(line, choices)


def _is_text_of(text: str, index: int, choices: Sequence[str]) -> bool:
    """Whether a text is the text of one option, or its first part."""
    if index < len(choices) and option_by_text(text, (choices[index],)):
        return True
    return _begins_option(text, index, choices)


_PARTS = frozenset("\u3000 ，、；,;")
"""The separators between the parts of a Chinese option."""


def _begins_option(text: str, index: int, choices: Sequence[str]) -> bool:
    """Whether a text is the first part of an option: ``内质网`` of ``内质网、蛋白质``."""
    option_text = choices[index].strip() if index < len(choices) else ""
    if len(text) < 2 or option_text.isascii() or not option_text.startswith(text):
        return False
    return option_text[len(text) : len(text) + 1] in _PARTS


def _make_label_statement(letter: str, segment: str, choices: Sequence[str]) -> AnswerStatement:
    """Return the label of `letter`; ambiguous if a small letter is the text of another option."""
    label = letter.upper()
    if letter.islower() and choices:
        text = segment.strip().removesuffix(".")
        label_index = ord(label) - ord("A")
        if any(choice.strip() == text for i, choice in enumerate(choices) if i != label_index):
            return AMBIGUOUS
    return AnswerStatement(label)


@lru_cache(maxsize=1024)
def _have_question_parts(choices: tuple[str, ...]) -> bool:
    """Whether options answer the parts of a question: ``(a) all tall, (b) half tall``."""
    return any("(a)" in choice or choice.startswith("a)") for choice in choices)


# `(b)`, `(c)`: a further part of a question.
_NEXT_PART = lazy_pattern(r"[\s,;.]\([b-h]\)\s")


# --- labels inside a segment -------------------------------------------------------------------


def _find_label(bare: str, position: int, choices: Sequence[str]) -> _LabelSpan | None:
    """Return the label at `position`; not a small letter, the article or the pronoun."""
    match = _LABEL.match(bare, position)
    if match is None:
        return None
    is_bracketed = match[1] is not None
    letter, end = match[1] or match[2], match.end()
    if letter.islower() and not (is_bracketed and _is_small_label(letter, bare, end, choices)):
        return None
    if letter in "AI" and not is_bracketed and _is_word(letter, bare, end, choices):
        return None
    return _LabelSpan(letter.upper(), letter, end, is_bracketed)


def _is_small_label(letter: str, bare: str, end: int, choices: Sequence[str]) -> bool:
    """Whether a small letter in brackets is a label.

    ``(i)`` is a number, and ``(a) … (b) …`` are the parts of a question.
    """
    if letter == "i" or _have_question_parts(tuple(choices)):
        return False
    return not _NEXT_PART.search(bare, end)


def _is_word(letter: str, bare: str, end: int, choices: Sequence[str]) -> bool:
    """Whether a bare A or I is the article, the pronoun or a Roman number."""
    if letter == "I" and _ROMAN.match(bare, end):
        return True
    word = _NEXT_WORD.match(bare, end)
    if word is None or word[1].casefold() in _AFTER_LABEL:
        return False
    option = plain_option_text(letter, choices)
    return not option or not bare[word.start(1) :].casefold().startswith(option)


def _possible_text_starts(bare: str, position: int) -> tuple[int, ...]:
    """Return the possible beginnings of the text after a label that ends at `position`."""
    gap = _GAP.match(bare, position)
    start = gap.end() if gap else position
    dash = _DASH.match(bare, start)
    return (start, dash.end()) if dash else (start,)


def _end_of_option_text(bare: str, label: str, position: int, choices: Sequence[str]) -> int:
    """Return the end of the option's text if it follows the label, else `position`."""
    option = plain_option_text(label, choices) if choices else ""
    if option:
        for start in _possible_text_starts(bare, position):
            end = start + len(option)
            if bare[start:end].casefold() == option and not bare[end : end + 1].isalnum():
                return end
    return position


def _has_text_of_another(bare: str, label_span: _LabelSpan, choices: Sequence[str]) -> bool:
    """Whether the text of another option follows a label.

    If several texts match, the longest one counts.
    """
    if not choices:
        return False
    label_index = ord(label_span.label) - ord("A")
    farthest, text_index = (0, False, False), label_index
    for start in _possible_text_starts(bare, label_span.end):
        following_text = bare[start:]
        folded = following_text.casefold()
        for index, text in enumerate(option_texts(tuple(choices)).plain) if following_text else ():
            if text and folded.startswith(text) and _TEXT_ENDS.match(folded, len(text)):
                exact = following_text.startswith(choices[index].strip())
                if (rank := (start + len(text), exact, index == label_index)) > farthest:
                    farthest, text_index = rank, index
    return text_index != label_index


def _is_joined(bare: str, label_span: _LabelSpan, labels: str, choices: Sequence[str]) -> bool:
    """Whether the same sentence gives another label as an answer.

    The other label may be joined to this one (``B or C``). It may also be offered later in the
    sentence, neither rejected nor discussed.
    """
    position = begin = _end_of_option_text(bare, label_span.label, label_span.end, choices)
    while position < len(bare):
        link = LINK.match(bare, position)
        end = link.end() if link else position
        other_span = _find_label(bare, end, choices)
        if other_span is None or (end == position and not other_span.is_bracketed):
            break
        after = _end_of_option_text(bare, other_span.label, other_span.end, choices)
        if other_span.label != label_span.label:
            if _is_like(label_span, other_span, labels) and is_second_answer(
                bare, bare[position:end], other_span.end, after
            ):
                return True
            break
        position = after
    return _is_offered(bare, label_span, labels, max(begin, position))


def _is_like(label_span: _LabelSpan, other_span: _LabelSpan, labels: str) -> bool:
    """Whether another letter is a label like the first one: a capital, or also in brackets."""
    if label_span.raw.isupper() and not other_span.raw.isupper():
        return False
    if not label_span.raw.isupper() and not other_span.is_bracketed:
        return False
    return other_span.is_bracketed or other_span.label in labels


def _is_offered(bare: str, label_span: _LabelSpan, labels: str, position: int) -> bool:
    """Whether the rest of the sentence offers another label, neither rejected nor discussed."""
    is_discussed = False
    for mention, between in _find_other_labels(bare, label_span, labels, position):
        if REJECTS.search(between):
            is_discussed = True
        elif OFFERS.search(between):
            return True
        elif is_discussed or EXPLAINS.search(between):
            is_discussed = True
        elif not NEGATIVE.match(bare, mention.end()):
            return True
    return False


def _find_other_labels(
    bare: str, label_span: _LabelSpan, labels: str, position: int
) -> Iterator[tuple[re.Match[str], str]]:
    """Yield the other labels in the rest of the sentence, each with the text before it."""
    sentence = SENTENCE_END.search(bare, position)
    for mention in _MENTION.finditer(bare, position, sentence.start() if sentence else len(bare)):
        label = mention[1] or mention[2] or mention[3]
        if label != label_span.label and label in labels:
            yield mention, bare[position : mention.start(mention.lastindex or 0)]
            position = mention.end()
