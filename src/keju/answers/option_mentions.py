"""Options that a sentence names, and how the sentence treats them.

A sentence names an option by its label, ``(B)``, ``option B``, ``B项``, by its text, or by its
number. `judge_options` decides whether a sentence asserts, rejects or only discusses an option, or
leaves several open: ``B, rather than C``.

Sources of the rules: Llama-3.2-3B-Instruct (half of its BBH replies), GPT-4 (Chinese),
Llama-3.1-8B, Mistral-7B, the embedded model, hand-written replies.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple

from keju.answers.decision import LINK, NEGATIVE, SUPPOSES, link_strength
from keju.answers.lazy_patterns import lazy_pattern
from keju.answers.numbers import NUMBER_WORDS
from keju.answers.options import (
    find_counted_option,
    find_framed_option,
    find_option_texts,
    normalise_formulas,
    plain_option_text,
)
from keju.answers.phrases import load_pattern, load_words
from keju.answers.sentences import (
    CONCLUDES,
    CONTRAST,
    HEDGES,
    UNDETERMINED,
    concludes,
    has_chinese,
    is_about_another_quantity,
    is_unsure,
    last_clause,
)
from keju.types import LABELS, Sample


class OptionMention(NamedTuple):
    """An option named in a sentence."""

    label: str
    start: int
    end: int
    is_text: bool = False
    is_weak: bool = False
    """Whether the letter may have another meaning: ``you get D``, ``vitamin C``."""


# --- finding mentions ----------------------------------------------------------------------------

_LABEL = load_pattern("option_label")
_AROUND_LABEL = load_words("around_label")
_LETTER_ZH = load_pattern("bare_letter_zh")
_LETTER = load_pattern("bare_letter")
_WEAK = load_pattern("weak")
# A part of every label: a separate capital letter, or a letter before a bracket.
_MAY_BE_LABEL = lazy_pattern(r"(?<![A-Za-z])(?:[A-Z](?![A-Za-z])|[a-z][)\]])")
WORD = lazy_pattern(r"\w")


def find_mentions(sentence: str, sample: Sample) -> tuple[OptionMention, ...]:
    """Return the options that a normalised sentence names, in order.

    A label and the text of its option next to it are one mention. A number is a mention if all
    options are numbers and the sentence contains no other number.
    """
    return _find_mentions(sentence, sample.choices)


@lru_cache(maxsize=64)
def _find_mentions(sentence: str, choices: tuple[str, ...]) -> tuple[OptionMention, ...]:
    """Return the same as `find_mentions`, cached, since several rules use one sentence."""
    matches = _add_labels(_find_texts(sentence, choices), sentence, LABELS[: len(choices)])
    if "here" in sentence and (there_are := _THERE_ARE.search(sentence)):
        counted = find_counted_option(there_are[1], choices)
        if counted:
            return (OptionMention(counted[0], there_are.start(1), there_are.end(1), True),)
    if not matches:
        counted = find_framed_option(sentence, choices) or find_counted_option(sentence, choices)
        if counted and _NOT.search(sentence, counted[1], counted[2]):
            return ()
        return (OptionMention(*counted, True),) if counted else ()
    return tuple(_merge_mentions(matches, sentence)) if len(matches) > 1 else tuple(matches)


def _find_texts(sentence: str, choices: tuple[str, ...]) -> list[OptionMention]:
    """Return mentions of the options whose whole texts are in a sentence."""
    return [
        OptionMention(label, start, end, True)
        for start, end, label in find_option_texts(sentence.lower(), choices)
        if sentence[start : end + 1] not in _PRONOUN
        if not UNDETERMINED.search(plain_option_text(label, choices))
        or sentence[:start].rstrip(' "*').endswith((":", "：", "answer is", "答案是"))
    ]


_PRONOUN = frozenset({"I ", "A ", "a "})
"""The pronoun and the article, which may equal an option of one letter."""


def _add_labels(
    text_mentions: list[OptionMention], sentence: str, labels: str
) -> list[OptionMention]:
    """Return `text_mentions` and the labels in a sentence, except labels inside an option text."""
    for pattern in _select_patterns(sentence):
        for match in pattern.finditer(sentence):
            label = match[match.lastindex or 0].upper()
            start, end = match.span(pattern is not _LABEL)
            inside = any(mention.start <= start and end <= mention.end for mention in text_mentions)
            if label in labels and not inside:
                text_mentions = [
                    kept_mention
                    for kept_mention in text_mentions
                    if not start <= kept_mention.start < kept_mention.end <= end
                ]
                text_mentions.append(OptionMention(label, start, end, is_weak=pattern is _WEAK))
    return text_mentions


def _merge_mentions(unmerged: Sequence[OptionMention], sentence: str) -> list[OptionMention]:
    """Return mentions in order. A label and the text next to it become one mention."""
    merged: list[OptionMention] = []
    for mention in sorted(unmerged, key=lambda mention: mention.start):
        previous = merged[-1] if merged else None
        if previous is None or WORD.search(sentence, previous.end, mention.start):
            merged.append(mention)
        elif previous.label == mention.label:
            by_text = previous.is_text and mention.is_text
            merged[-1] = OptionMention(previous.label, previous.start, mention.end, by_text)
        elif mention.is_text and not previous.is_text:
            merged[-1] = previous._replace(end=mention.end)  # `(C) right winger`: the label counts
        else:
            merged.append(mention)
    return merged


# `not`, inside a paraphrase of an option: `Amy is second (so not first)`.
_NOT = lazy_pattern(r"\b(?:not|never|cannot)\b|n[’']t\b", re.IGNORECASE)
_THERE_ARE = load_pattern("there_are")


def _select_patterns(sentence: str) -> list[re.Pattern[str]]:
    """Return the label patterns that may match in a sentence."""
    if not _MAY_BE_LABEL.search(sentence):
        return []
    patterns = [_LABEL] if any(map(sentence.__contains__, _AROUND_LABEL)) else []
    return [*patterns, _LETTER_ZH if has_chinese(sentence) else _LETTER, _WEAK]


# --- judging mentions ----------------------------------------------------------------------------

# The end of a clause; not the comma of `1,000`, the colon of `3:1`.
_COMMA = lazy_pattern(r"[,，;→](?!\d)|[:：](?!\s{0,2}\W{0,3}\w\b)|——|\bbut\b|但|而(?!是)")
_ALTERNATIVE_BEFORE = load_pattern("alternative_before")
# Between two options in contrast.
_BUT = lazy_pattern(r"\bbut\b|但|而", re.IGNORECASE)
# `, though (E) is tempting`, `while the momentum is 12`; `虽然`: a concession is not an assertion.
_CONCEDES = lazy_pattern(r"\b(?:though|although|whereas|while|unlike)\b|虽然|尽管", re.IGNORECASE)
_EQUALLY = lazy_pattern(r"\b(?:just as|equally|as well)\b|同样|也(?:可以|对|行)", re.IGNORECASE)
_AFTER_LABEL = load_pattern("after_label")
_AFTER_TEXT = load_pattern("after_text")
# Only an article before the option's text, which begins its clause.
_BEGINS = lazy_pattern(r"\W*(?:(?:the|an?)\s+\W*)?", re.IGNORECASE)
_ENDS_CLAUSE = tuple(',，.。;；!(（*"”」》)')
AROUND = " .。!！,，*_\"'”’」》)）]`$✅✔✓哦呢啦呀啊喔吧~～"
_DIGIT = lazy_pattern(r"\d")
_REPETITION = load_pattern("repetition")
_IS_MY_ANSWER = load_pattern("is_my_answer")
_OTHER_GRADE = load_pattern("other_grade")
# `so that is option 2`: an option of another list.
_NUMBERED = lazy_pattern(r"\b(?:option|choice) #?\d")
CONSIDERED = load_pattern("considered")
_NAMES = load_pattern("names")


class SentenceMentions(NamedTuple):
    """The options that a sentence asserts, discusses and rejects."""

    asserted: tuple[OptionMention, ...] = ()
    discussed: tuple[OptionMention, ...] = ()
    """The options that the sentence names without a verdict."""
    rejected: tuple[str, ...] = ()
    is_open: bool = False
    """Whether the sentence leaves several options open."""

    @property
    def names_any_option(self) -> bool:
        """Whether the sentence names any option."""
        return bool(self.asserted or self.discussed or self.rejected or self.is_open)


def judge_options(sentence: str, sample: Sample) -> SentenceMentions:
    """Return how a normalised sentence treats the options that it names."""
    if _states_no_option(sentence, sample):
        return SentenceMentions()
    if _OTHER_GRADE.fullmatch(sentence) or _NUMBERED.search(sentence):
        return SentenceMentions(is_open=True)
    sentence = _IS_MY_ANSWER.split(sentence, maxsplit=1)[0]
    asserted: list[OptionMention] = []
    discussed: list[OptionMention] = []
    rejected: list[str] = []
    is_open = False
    for clause, group in _find_clauses(sentence, sample):
        mention, end = group[0], group[-1].end
        if _is_rejected(sentence, group[-1], clause, sample):
            rejected += map(attrgetter("label"), group)
        elif len(group) > 1 or _states(_ALTERNATIVE_BEFORE, clause, sample, 4):
            asserted, is_open = [], True
        elif asserted and _EQUALLY.search(sentence, end):
            is_open = True
        elif _CONCEDES.search(clause):
            continue
        elif _asserts(sentence, clause, mention, sample):
            is_open = False
            asserted.append(mention)
        else:
            discussed.append(mention)
    return SentenceMentions(tuple(asserted), tuple(discussed), tuple(rejected), is_open)


def _states_no_option(sentence: str, sample: Sample) -> bool:
    """Whether a sentence is a question or a supposition, or names no option."""
    if sentence.rstrip("*_\"'”’) ").endswith(("?", "？")):
        return True
    return not find_mentions(sentence, sample) or is_supposition(sentence, sample)


def _find_clauses(sentence: str, sample: Sample) -> Iterator[tuple[str, list[OptionMention]]]:
    """Yield each group of mentions with the text of its clause before it."""
    end = 0
    clause_ends = [match.end() for match in _COMMA.finditer(sentence)]
    for group in _group_mentions(sentence, find_mentions(sentence, sample)):
        start = group[0].start
        commas = [comma for comma in clause_ends if comma <= start]
        yield sentence[max([end, *commas]) : start], group
        end = group[-1].end


def _asserts(sentence: str, clause: str, mention: OptionMention, sample: Sample) -> bool:
    """Whether a sentence gives an option as the answer, and does not only discuss it."""
    if mention.is_weak or _states(HEDGES, clause, sample, 1):
        return False
    return _is_answer(sentence, mention, sample)


_RANGE = frozenset("-–—~")
"""Signs between the first and the last option of a range: ``(A)–(J)``."""


def _group_mentions(
    sentence: str, option_mentions: Sequence[OptionMention]
) -> list[list[OptionMention]]:
    """Return the mentions in groups of different options joined by ``or``, ``and`` or a comma."""
    groups: list[list[OptionMention]] = []
    for mention in option_mentions:
        before = groups[-1][-1] if groups else None
        link = sentence[before.end : mention.start] if before else ""
        if (
            before
            and before.label != mention.label
            and not _BUT.search(link)
            and LINK.fullmatch(link)
            and (link_strength(link) != "apart" or link.strip() in _RANGE)
        ):
            groups[-1].append(mention)
        else:
            groups.append([mention])
    return groups


_BUT_NOT = load_pattern("but_not")


def _is_rejected(sentence: str, mention: OptionMention, clause: str, sample: Sample) -> bool:
    """Whether a sentence rejects an option, before or after naming it."""
    is_set_against = CONTRAST.search(clause) and not sample.asks_for_wrong
    if is_set_against or is_unsure(clause, sample):
        return True
    after = find_text_end(sentence, mention, sample)
    if _BUT_NOT.match(sentence, after):
        return True
    is_wrong = NEGATIVE.match(sentence, after) and not CONTRAST.match(sentence, after)
    return bool(is_wrong) and not sample.asks_for_wrong


@lru_cache(maxsize=1024)
def _normalised_option_text(label: str, choices: tuple[str, ...]) -> str:
    """Return the text of an option in the form of a normalised sentence, in lower case."""
    return normalise_formulas(plain_option_text(label, choices)).lower()


def find_text_end(sentence: str, mention: OptionMention, sample: Sample) -> int:
    """Return the end of a mention, including the option's text if it follows the label."""
    option_text = _normalised_option_text(mention.label, sample.choices)
    following_text = sentence[mention.end :]
    begin = len(following_text) - len(following_text.lstrip(' .:、)*_"“'))
    if option_text and following_text[begin:].lower().startswith(option_text):
        return mention.end + begin + len(option_text)
    return mention.end


def _states(pattern: re.Pattern[str], clause: str, sample: Sample, extra_characters: int) -> bool:
    """Whether a pattern matches in a clause, other than in words of the question.

    A match with `extra_characters` after it is compared with the question.
    """
    return any(
        clause[match.start() : match.end() + extra_characters] not in sample.text
        for match in pattern.finditer(clause)
    )


WRONG = load_pattern("wrong")
RIGHT = load_pattern("right")


def _is_answer(sentence: str, mention: OptionMention, sample: Sample) -> bool:
    """Whether a mention is at the place of an answer, and not the subject of a remark."""
    following_text = sentence[mention.end :].lstrip(" .:、)*_")
    before = sentence[: mention.start]
    if CONSIDERED.search(before):
        return False
    is_value = mention.is_text and before.rstrip(" $").endswith("=")
    if is_value and is_about_another_quantity(last_clause(before.rstrip(" =$")), sample):
        return False
    if not following_text.strip(AROUND):
        return True
    if not mention.is_text:
        return _is_label_answer(sentence, mention, sample)
    return _is_text_answer(sentence, mention, following_text, sample)


def _is_text_answer(
    sentence: str, mention: OptionMention, following_text: str, sample: Sample
) -> bool:
    """Whether the text of an option is at the place of an answer, judged by the text around it."""
    if _is_counted(sentence, mention, sample):
        return _COUNTS.search(sentence, 0, mention.start) is not None
    is_number = _DIGIT.search(sentence, mention.start, mention.end) is not None
    if is_number and _DIGIT.search(_REPETITION.sub("", following_text)):
        return False  # a number on the way to another
    if _fits_question(sentence, mention, sample):
        return True
    begins = _BEGINS.fullmatch(_COMMA.split(sentence[: mention.start])[-1])
    after = _AFTER_TEXT.match(sentence, mention.end)
    if begins and sentence[mention.end] not in _ENDS_CLAUSE and not (after and " " in after[0][3:]):
        return False  # the subject of a clause: `The nucleus stores`
    if after and after[1] and not _NAMES.search(sentence, 0, mention.start):
        return False  # `Create a line from 5 to 6`
    return after is not None


# `____`: the blank of a question.
_BLANK = lazy_pattern(r"_{2,}")
_NO_WORD = lazy_pattern(r"[\W_]+")
_PREDICATE = load_pattern("predicate")
_NEAR_BLANK = 12
"""The number of letters before and after a blank that are compared."""
_LEAST_QUESTION_LETTERS = 6
"""The fewest letters of a question that a sentence does not repeat by chance."""


def _keep_letters(text: str) -> str:
    """Return the letters and digits of a text in lower case."""
    return _NO_WORD.sub("", text).casefold()


@lru_cache(maxsize=64)
def _question_letters(question: str) -> tuple[str, str, str]:
    """Return the letters of a question, and the letters before and after its only blank."""
    stem = unicodedata.normalize("NFKC", question.partition("\nOptions:")[0])
    parts = _BLANK.split(stem)
    if len(parts) != 2:
        return _keep_letters(stem), "", ""
    return (
        _keep_letters(stem),
        _keep_letters(parts[0])[-_NEAR_BLANK:],
        _keep_letters(parts[1])[:_NEAR_BLANK],
    )


def _fits_question(sentence: str, mention: OptionMention, sample: Sample) -> bool:
    """Whether a sentence fills the blank of the question, or repeats words of the question."""
    if sample.asks_for_wrong:
        return False
    question, before, after = _question_letters(sample.text)
    if len(before + after) >= _LEAST_QUESTION_LETTERS:
        is_before = _keep_letters(sentence[: mention.start]).endswith(before)
        if is_before and _keep_letters(sentence[mention.end :]).startswith(after):
            return True
    predicate = _PREDICATE.match(sentence, mention.end)
    predicate_letters = _keep_letters(predicate[1]) if predicate else ""
    least_letters = (
        2 * _LEAST_QUESTION_LETTERS if predicate_letters.isascii() else _LEAST_QUESTION_LETTERS
    )
    return len(predicate_letters) >= least_letters and predicate_letters in question


def _is_label_answer(sentence: str, mention: OptionMention, sample: Sample) -> bool:
    """Whether a label is at the place of an answer, judged by the text around it."""
    end = find_text_end(sentence, mention, sample)
    if end > mention.end and _AFTER_TEXT.match(sentence, end):
        return True
    if sentence[: mention.start].endswith(("是", "为", "选", "即")):
        return sentence[mention.end] in ":：,，。;.! (（)）*"
    if _AFTER_LABEL.match(sentence, end):
        return True
    if _NAMES.search(sentence, 0, mention.start) and concludes(sentence[: mention.start]):
        return True
    return bool(RIGHT.search(sentence, end)) and not WRONG.search(sentence, end)


_COUNTS = load_pattern("counts")


def _is_counted(sentence: str, mention: OptionMention, sample: Sample) -> bool:
    """Whether a mention is a number that means an option with another text."""
    option_text = _normalised_option_text(mention.label, sample.choices)
    number_text = sentence[mention.start : mention.end].lower()
    is_number = _QUANTITY.fullmatch(number_text) is not None
    is_there = _THERE_ARE.search(sentence, 0, mention.end) is not None
    return is_number and (option_text != number_text or is_there)


# `5`, `27/40`, `three`: a number.
_QUANTITY = lazy_pattern(rf"-?[\d,.]+(?:/\d+)?%?|{'|'.join(NUMBER_WORDS)}")


_SUPPOSING = load_words("supposing_stems")


def is_supposition(sentence: str, sample: Sample) -> bool:
    """Whether a sentence is a supposition, other than in words of the question."""
    return _is_supposition(sentence, sample.text)


@lru_cache(maxsize=64)
def _is_supposition(sentence: str, question: str) -> bool:
    """Return the same as `is_supposition`, cached, since several rules use one sentence."""
    if not has_chinese(sentence) and not any(map(sentence.lower().__contains__, _SUPPOSING)):
        return False
    for match in SUPPOSES.finditer(sentence):
        words = sentence[match.start() : match.end() + 6].casefold()
        if words not in question.casefold() and not CONCLUDES.search(sentence, match.end()):
            return True
    return False
