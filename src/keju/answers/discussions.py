"""Replies that discuss the options one after another and call them right or wrong.

``(A) … - This is incorrect.``, ``B选项是正确的``, ``| C | ✓ |``. A sentence belongs to the option
of its heading or list item. If the question asks for the wrong statement, the option that is
called wrong is the answer.

Sources of the rules: Llama-3.2-3B-Instruct (half of its BBH replies), GPT-4 (Chinese), hand-written
replies.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from keju.answers.lazy_patterns import lazy_pattern
from keju.answers.option_mentions import (
    RIGHT,
    WORD,
    WRONG,
    find_mentions,
    find_text_end,
    is_supposition,
)
from keju.answers.options import normalise_formulas, option_texts, plain_text
from keju.answers.phrases import load_pattern, load_phrase, load_words
from keju.answers.sentences import BEGINS_CONCLUSION, clauses, is_ended
from keju.types import Sample

CHOSEN = load_pattern("chosen")
# `not`, `doubt`; `不`: words that deny that an option is the answer.
_DENIES_CHOICE = lazy_pattern(rf"{load_phrase('wrong')}|\bdoubt|怀疑|是否", re.IGNORECASE)
# `(A) ✗ (B) ✓`: options and marks in a line.
MARKED = lazy_pattern(r"(?<![A-Za-z])([A-Z])[)\].:]{0,2}\s?(?:([✓✔✅☑√])|[✗✘❌×])")
MARKED_ROW = load_pattern("marked_row")
_CELL = load_pattern("table_cell")
_REASON = load_pattern("remark_reason")
_ITEM = load_pattern("list_item")


# `选项C,`, `对于D选项,`: a sentence inside a line that turns to another option.
_ITEM_INSIDE = lazy_pattern(r"\s*(?:对于|关于|而)?(?:选项 ?([A-Z])|([A-Z]) ?选?项)")


class Sentence(NamedTuple):
    """A sentence and the label of the list item that contains it; the label is empty for none."""

    text: str
    item_label: str


# `6. **Facts (F)**: `, `- Dropped Content: `: a line that begins with an option's text.
_TEXT_HEADING = lazy_pattern(r"[\s\-•*#\d.]*([^:：\n]{2,60}?)\s*(?:\([A-Z]\))?[*\s]*[:：]")


def _find_heading_label(line: str, sample: Sample) -> str:
    """Return the label of the option that a list line discusses, or an empty text."""
    heading = _ITEM.match(line)
    if heading:
        return heading[1] if heading[1] in sample.labels else ""
    text_heading = _TEXT_HEADING.match(line) if ":" in line or "：" in line else None
    if text_heading is None:
        return ""
    texts, text = option_texts(sample.choices).plain, plain_text(text_heading[1])
    return sample.labels[texts.index(text)] if texts.count(text) == 1 else ""


def split_sentences(text: str, sample: Sample) -> list[Sentence]:
    """Return the sentences of a text, each with the label of its item in a list of options."""
    parts: list[Sentence] = []
    item_label = ""
    for line in filter(str.strip, text.split("\n")):
        if label := _find_heading_label(line, sample):
            item_label = label
        elif not line[:1].isspace() and line.lstrip()[:1] not in "-*•":
            item_label = ""
        if number := _LIST_NUMBER.match(line):
            line = line[number.end() :]
        for sentence in clauses(_BOLD.sub("", line) if "**" in line else line):
            item_label = _find_item_label(sentence, item_label, sample)
            if WORD.search(sentence):
                parts.append(Sentence(sentence, item_label))
    return parts


def _find_item_label(sentence: str, item_label: str, sample: Sample) -> str:
    """Return the label of the list item to which a sentence inside it belongs."""
    heading = _ITEM_INSIDE.match(sentence)
    if heading and (label := heading[1] or heading[2]) in sample.labels:
        item_label = label
    is_conclusion = BEGINS_CONCLUSION.match(sentence) and not _THIS_ITEM.search(sentence)
    return "" if is_conclusion else item_label


# `this statement`, `该项`: a reference to the same list item.
_THIS_ITEM = lazy_pattern(r"\b(?:this|it)\b(?! (?:means|analysis))|该|此项|本项", re.IGNORECASE)
# `1. `, `(2) `: the number of a list's line.
_LIST_NUMBER = lazy_pattern(r"\s*\(?\d{1,2}[.)]\s+")
# `**` around more than a label.
_BOLD = lazy_pattern(r"\*\*(?=[^\s*(]{2})|(?<=[^\s*)]{2})\*\*")


class Verdicts(NamedTuple):
    """The labels of the options that a reply calls right, wrong, or the answer."""

    right_labels: set[str]
    wrong_labels: set[str]
    chosen_labels: set[str]
    discussed_labels: set[str]
    """The labels of all discussed options."""


_REQUESTED_PROPERTY = load_pattern("requested_property")
LONG_WORD = lazy_pattern(r"[A-Za-z]{4,}")


QUESTION_WORDS = frozenset(
    {"what", "which", "following", "does", "where", "when", "whom", "these", "many"}
)


def _find_requested_words(sample: Sample) -> frozenset[str]:
    """Return the first two words of the requested property: ``sarcastic``, ``humorous edit``."""
    match = None if sample.asks_for_wrong else _REQUESTED_PROPERTY.search(sample.text)
    words = LONG_WORD.findall(match[1].lower())[:2] if match else ()
    return frozenset(words) - QUESTION_WORDS


def collect_verdicts(parts: Sequence[Sentence], sample: Sample) -> Verdicts:
    """Return the options that the sentences call right and wrong, without suppositions."""
    verdicts = Verdicts(set(), set(), set(), set())
    requested_words = _find_requested_words(sample)
    for part in dict.fromkeys(parts):  # a loop repeats sentences
        sentence = normalise_formulas(part.text.strip())
        if is_supposition(sentence, sample) or sentence.rstrip().endswith(("?", "？")):
            continue
        _add_verdicts(verdicts, part, sentence, requested_words, sample)
    return verdicts


def _add_verdicts(
    verdicts: Verdicts,
    part: Sentence,
    sentence: str,
    requested_words: frozenset[str],
    sample: Sample,
) -> None:
    """Add the options that one sentence calls right, wrong, or the answer."""
    labels = subject = list(filter(None, [part.item_label]))
    is_about = _ABOUT_ITEM.match(part.text) is not None
    may_describe = False  # whether words of the question may be about the named option
    for clause, clause_labels in split_remarks(sentence, sample):
        labels = clause_labels or labels  # a remark after a comma is about the same option
        subject = clause_labels or subject
        is_direct = bool(clause_labels) or (may_describe and _repeats_question(clause, sample))
        may_describe = may_describe or (bool(clause_labels) and sample.asks_for_wrong)
        verdicts.discussed_labels.update(labels)
        if _chooses_option(clause):
            verdicts.chosen_labels.update(subject)
        elif labels and (is_direct or is_about):
            is_right = _judge_clause(clause, requested_words, is_direct=is_direct)
            if is_right is not None:
                (verdicts.right_labels if is_right else verdicts.wrong_labels).update(labels)
                labels = []


def _chooses_option(clause: str) -> bool:
    """Whether a clause calls its option the answer."""
    match = CHOSEN.search(clause)
    return match is not None and not _DENIES_CHOICE.search(clause, 0, match.start())


def _judge_clause(clause: str, requested_words: frozenset[str], *, is_direct: bool) -> bool | None:
    """Whether a clause calls its option right; None if it calls it neither right nor wrong."""
    cell = _CELL.search(clause)
    if _is_wrong(clause, requested_words, is_direct=is_direct) or (cell and not cell[1]):
        return False
    if RIGHT.search(clause) or cell or _contains_requested_words(clause, requested_words):
        return True
    return None


_ABOUT_ITEM = load_pattern("about_item")
_CALLS_WRONG = load_pattern("calls_wrong")


def _is_wrong(clause: str, requested_words: frozenset[str], *, is_direct: bool) -> bool:
    """Whether a clause calls an option wrong.

    In a remark that does not name the option, ``not`` counts only with the word that it denies:
    ``This is not correct``.
    """
    if not WRONG.search(clause):
        return False
    if is_direct or _CALLS_WRONG.search(clause):
        return True
    return (
        RIGHT.search(clause) is not None
        or _contains_requested_words(clause, requested_words)
        or "possible" in clause
    )


# `the second most abundant`, `nearly `: words before a property that another option has.
_NOT_THE_FIRST = lazy_pattern(
    r"\b(?:second|third|fourth|next|almost|nearly|less|least)\b", re.IGNORECASE
)
# `is `, `has `: the verb before a description of an option.
_IS_A = lazy_pattern(r"\b(?:is|are|has|have|being|it)\b", re.IGNORECASE)


def _contains_requested_words(clause: str, words: frozenset[str]) -> bool:
    """Whether a clause contains all requested words: ``This statement is sarcastic``."""
    if not words or not _IS_A.search(clause) or _NOT_THE_FIRST.search(clause):
        return False
    return words <= set(LONG_WORD.findall(clause.lower()))


def _repeats_question(clause: str, sample: Sample) -> bool:
    """Whether the question contains all long words of a clause: ``isn't found in tissue``."""
    words = LONG_WORD.findall(clause.lower())
    return bool(words) and all(map(sample.text.lower().__contains__, words))


def split_remarks(sentence: str, sample: Sample) -> Iterator[tuple[str, list[str]]]:
    """Yield the clauses of a sentence, without option texts, each with the labels it names."""
    start = 0
    option_mentions = find_mentions(sentence, sample)
    ends = [match.start() for match in _REASON.finditer(sentence)] + [len(sentence)]
    for end in ends:
        clause_mentions = [mention for mention in option_mentions if start <= mention.start < end]
        if end < len(sentence) and any(
            spanning_mention.start < end < spanning_mention.end
            for spanning_mention in option_mentions
        ):
            continue  # the comma is inside the text of an option
        clause_text, place = "", start
        for inner_mention in clause_mentions:
            clause_text += sentence[place : inner_mention.start] + " "
            place = max(place, min(find_text_end(sentence, inner_mention, sample), end))
        clause_text += sentence[place:end]
        yield (
            clause_text,
            [
                labelled_mention.label
                for labelled_mention in clause_mentions
                if not labelled_mention.is_text or len(clause_mentions) == 1
            ],
        )
        start = end


def may_call_right(text: str, sample: Sample) -> bool:
    """Whether a text may call an option right. Most texts contain no such word."""
    if sample.asks_for_wrong or _find_requested_words(sample):
        return True
    if text.isascii() and not any(map(text.lower().__contains__, _RIGHT_STEMS)):
        return False
    return bool(RIGHT.search(text) or _CELLS.search(text))


_RIGHT_STEMS = load_words("right_stems")
_CHOSEN_STEMS = ("answer", "choice", "pick", "exception", "odd one")
"""A part of each English match of `CHOSEN`."""


def may_choose(text: str) -> bool:
    """Whether `CHOSEN` may match in a text."""
    return not text.isascii() or any(map(text.lower().__contains__, _CHOSEN_STEMS))


# `| yes |`, `— True`: a verdict in a cell.
_CELLS = lazy_pattern(r"\b(?:yes|true)\b|是|对", re.IGNORECASE)


def find_right_option(verdicts: Verdicts, sample: Sample) -> str | None:
    """Return the one option that a discussion of several options leaves as the answer."""
    right_labels, wrong_labels, chosen_labels, _ = verdicts
    if len(chosen_labels) == 1:
        return chosen_labels.pop()
    if right_labels & wrong_labels:
        right_labels, wrong_labels = right_labels - wrong_labels, wrong_labels - right_labels
        if not sample.asks_for_wrong:
            return None
    if sample.asks_for_wrong:
        remaining_labels = set(sample.labels) - right_labels
        if len(remaining_labels) == 1 < len(right_labels) and wrong_labels <= remaining_labels:
            return remaining_labels.pop()
        is_one = len(wrong_labels) == 1 and (right_labels or len(verdicts.discussed_labels) > 2)
        return wrong_labels.pop() if is_one else None
    return right_labels.pop() if len(right_labels) == 1 else None


def find_ticked_option(text: str, option_count: int) -> str | None:
    """Return the one ticked option of a list with marks: ``(A) ✗ (B) ✓``, ``| B | 2 | ✓ |``."""
    if text.isascii():
        return None
    marks = [mark for pattern in (MARKED, MARKED_ROW) for mark in pattern.finditer(text)]
    ticked = {mark[1] for mark in marks if mark[2]}
    marked_labels = {mark[1] for mark in marks}
    is_list = len(marked_labels) > 1 and (
        is_ended(text) or len(marked_labels) >= min(option_count, _LEAST_MARKS)
    )
    return ticked.pop() if is_list and len(ticked) == 1 else None


_LEAST_MARKS = 3
"""The number of options with marks that make a list, even if the reply is cut off."""
