"""Readers of a letter: the environment's rules, the official ones, and Keju's.

No rule takes the first character of prose for a label: ``Because…`` is not B, ``As an AI`` is not A
and ``E. coli`` is not E. Options that are numbers are compared by value, options in words by their
letters, never the other way.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import SequenceMatcher
from unicodedata import normalize

from keju.answers.decision import LINK, link_strength
from keju.answers.kinds import Choice
from keju.answers.labels import bare_label, read_label
from keju.answers.numbers import is_same_number, normalise_for_comparison, parse_number, parse_range
from keju.answers.reader import Reader
from keju.answers.robust import RobustReader
from keju.answers.segments import (
    LONGEST,
    NO_LABEL,
    AnswerStatement,
    clean_segment,
    find_tag_content,
)
from keju.answers.statements import find_statements
from keju.answers.wordings import TOLERANT
from keju.benchmarks.grading import REFUSAL
from keju.types import Answer, Sample, Tier

LABEL_LENGTH = 12
"""Maximum length of a reply in which full-width labels are read."""
FUZZY_RATIO = 0.8
"""The lowest similarity that counts (README of the verifiers environment `bixbench`)."""
SHORT = 200
"""Maximum length of a reply that can be only a misspelt option."""

# `**(B).`: one letter with formatting around it; not `B is`.
_ONE_LABEL = re.compile(r"[\s*_`\"'(\[{$]*+([A-Za-z])[\s*_`\"')\]}$.:,;!]*+")
# `B.two`, `B选项`: no blank between a label and the next text; the environment does not read these.
_GLUED = re.compile(r"\W{0,4}[A-Za-z](?:[)\].:、]{1,3}+\S|\s?选?项)")
# `Option (B`, `option  B`; not `Option Bs`, `option b`.
_OPTION = re.compile(r"\b(?:[Oo]ption|OPTION)\s{1,3}[*_`(\[]{0,3}([A-Z])(?![A-Za-z0-9'’])")
# A label at the beginning, `(b) **`, `B.`, separated by a new line, a comma, a dash or ` because`;
# group 3 is set if other text follows, `B two`. Not `Because`, `E.coli`.
_LEADING = re.compile(
    r"[\s*_`]*+(?:[(\[]([A-Za-z])[)\]]|([A-Z]))(?![A-Za-z0-9'’])[*_`]{0,3}[).:]{0,2}[*_`]{0,3}"
    r"(?=\s*(?:\n|[,;–—]\s|-\s)|\s+(?:is|because|since)\b|\s+(\S))"
)

# `<answer>` if `</answer>` closes it; `ANSWER:`.
_TAG_OR_MARKER = re.compile(r"(?i:<answer>(?=[^<]*+</answer>))|ANSWER:")

Step = Callable[[str, Sample], "Answer | None"]


class BixBenchOfficialReader(Reader):
    """The last closed ``<answer>…</answer>``, compared only by letters and digits.

    The published parser extracts noise from replies without tags; here they have no answer.
    """

    name = "official"
    about = "bixbench.about_reader_official"

    def read(self, text: str, sample: Sample) -> Answer:
        inside = find_tag_content(text)
        if inside is None:
            return Answer(reason="no_marker")
        letter = re.sub(r"[^A-Za-z0-9]+", "", inside).upper()  # ` (b). ` is B
        return _accept_label(letter, sample, "strict") if letter else Answer(reason="empty")


class EnvironmentReader(Reader):
    """The documented rules of the verifiers environment, without its defects.

    In this order: a single label; ``answer is X``; a label at the beginning; ``Option X``; the text
    of an option; a text similar to one.
    """

    name = "environment"
    about = "bixbench.about_reader_environment"
    version = 2

    def read(self, text: str, sample: Sample) -> Answer:
        return _first_answer(
            text.strip(),
            sample,
            (
                _read_single_label,
                _read_announced_label,
                _read_leading_label,
                _read_named_option,
                _read_option_text,
                _read_similar_option,
            ),
        )


class OptionChoice(Choice):
    """A label, or an option's text; numbers are compared by value."""

    def read(self, segment: str, sample: Sample) -> AnswerStatement:
        statement = super().read(segment, sample)
        label = find_option(segment, sample) if statement == NO_LABEL else None
        return AnswerStatement(label) if label else statement

    def whole(self, text: str, sample: Sample) -> str | None:
        return super().whole(text, sample) or find_option(text, sample)


class TaggedReader(RobustReader):
    """Keju's reader: tags and the strict marker, other wordings, then the reply's form."""

    version = 8

    def __init__(self) -> None:
        super().__init__(OptionChoice(), strict=_TAG_OR_MARKER)

    def fallback(self, text: str, sample: Sample) -> Answer:
        return _first_answer(
            text.strip(), sample, (_read_single_label, _read_leading_label, _read_named_option)
        )


def make_readers() -> dict[str, Reader]:
    """Return all readers of multiple choice by name."""
    return {
        reader.name: reader
        for reader in (EnvironmentReader(), BixBenchOfficialReader(), TaggedReader())
    }


# --- the environment's steps -------------------------------------------------------------------


def _first_answer(text: str, sample: Sample, steps: tuple[Step, ...]) -> Answer:
    """Return the answer of the first step that has one, even if that answer is invalid."""
    for step in steps:
        answer = step(text, sample)
        if answer is not None:
            return answer
    return Answer(reason="no_marker" if text else "empty")


def _accept_label(label: str, sample: Sample, tier: Tier) -> Answer:
    if len(label) == 1 and label in sample.labels:
        return Answer(label, tier)
    return Answer(reason="invalid_label")


def _read_single_label(text: str, sample: Sample) -> Answer | None:
    """Read a reply that is only one label, or a label with the text of its option."""
    match = _ONE_LABEL.fullmatch(normalize("NFKC", text) if len(text) <= LABEL_LENGTH else text)
    if match:
        return _accept_label(match[1].upper(), sample, "strict")
    label = None if _GLUED.match(text) else bare_label(text, sample.labels, sample.choices)
    return (
        Answer(label, "tolerant") if label and find_option(text, sample) in (None, label) else None
    )


class _TextBeforeLabel(Choice):
    """An option's text, which takes precedence over a label."""

    def read(self, segment: str, sample: Sample) -> AnswerStatement:
        label = find_option(segment, sample)
        return (
            AnswerStatement(label) if label else read_label(segment, sample.labels, sample.choices)
        )


def _read_announced_label(text: str, sample: Sample) -> Answer | None:
    """Read the last ``answer is X`` or ``Answer: X`` that has an answer and is not denied."""
    marked_statements, _ = find_statements(text, "", TOLERANT, _TextBeforeLabel(), sample)
    if not marked_statements:
        return None
    value, reason = marked_statements[-1].statement
    return Answer(value, "tolerant" if value else "", reason)


def _read_leading_label(text: str, sample: Sample) -> Answer | None:
    """Read a label at the beginning, if it is separated or followed by the text of its option."""
    match = _LEADING.match(text)
    if match is None:
        return None
    label = (match[1] or match[2]).upper()
    if match[3] and not _is_option_text_next(text, match.start(3), label, sample):
        return None
    statement = read_label(text.partition("\n")[0], sample.labels, sample.choices)
    if statement.reason == "ambiguous":
        return Answer(reason="ambiguous")
    return Answer(label, "tolerant") if statement.value == label else None


def _is_option_text_next(text: str, start: int, label: str, sample: Sample) -> bool:
    index = sample.labels.find(label)
    option_text = sample.choices[index].strip() if index >= 0 else ""
    reply_part = text[start : start + len(option_text) + 1].casefold()
    is_complete = len(reply_part) <= len(option_text) or not (
        reply_part[-1].isalnum() or reply_part[-1] in "%.,-"
    )
    return bool(option_text) and reply_part.startswith(option_text.casefold()) and is_complete


def _read_named_option(text: str, sample: Sample) -> Answer | None:
    """Read the last ``Option X``; none if two are joined, or if the text calls it wrong."""
    mentions = list(_OPTION.finditer(text))
    if not mentions:
        return None
    last_mention = mentions[-1]
    if len(mentions) > 1 and mentions[-2][1] != last_mention[1]:
        link = LINK.fullmatch(text, mentions[-2].end(), last_mention.start())
        if link and link_strength(link[0]) != "apart":
            return Answer(reason="ambiguous")
    line = text[last_mention.start() : last_mention.start() + LONGEST].partition("\n")[0]
    statement = read_label(line, sample.labels, sample.choices)
    if statement.reason == "no_label":
        return None
    if statement.value is None:
        return Answer(reason=statement.reason)
    return _accept_label(last_mention[1], sample, "tolerant")


def _read_option_text(text: str, sample: Sample) -> Answer | None:
    label = find_option(text, sample)
    return Answer(label, "tolerant") if label else None


def _read_similar_option(text: str, sample: Sample) -> Answer | None:
    """Return the option in words that a short `text` resembles most, if it is similar enough.

    Similarity never selects the refusal option, nor the opposite of the statement.
    """
    letters = _normalize_letters(text)
    if len(text) > SHORT or not letters:
        return None
    refusal = sample.metadata.get(REFUSAL)
    ratios = [
        (SequenceMatcher(None, letters, _normalize_letters(choice)).ratio(), label, choice)
        for label, choice in zip(sample.labels, sample.choices, strict=True)
        if label != refusal and _has_no_digit(choice)
    ]
    best = max((ratio for ratio, _, _ in ratios), default=0.0)
    winners = [(label, choice) for ratio, label, choice in ratios if ratio == best]
    if best < FUZZY_RATIO or len(winners) != 1 or _are_opposed(text, winners[0][1]):
        return None
    return Answer(winners[0][0], "fallback")


# --- the option that a text repeats -------------------------------------------------------------

# Words, and beginnings of words, that turn a statement into its opposite: `not`, `didn't`,
# `upregulated`, `fewer`.
_POLARITY = re.compile(
    r"\b(?:(no|not|non|un|never|neither|nor|none|without|cannot|lack(?:s|ed|ing)?|absen(?:t|ce)"
    r"|fail(?:s|ed)?)\b"
    r"|(up|down|incr|decr|hyper|hypo|over|under|positiv|negativ|lower|higher|more|less|fewer"
    r"|above|below|before|after|gain|loss|same|differen))|(n['’]t\b)"
)
_PREFIXES = ("un", "non", "in", "im", "ir", "dis", "anti")


def find_option(text: str, sample: Sample) -> str | None:
    """Return the label of the only option that `text` equals; None if none or several match.

    Options that are numbers or ranges are compared only by value. Options with digits are compared
    as full texts. Only options without digits may differ in punctuation.
    """
    labelled = zip(sample.labels, sample.choices, strict=True)
    matching_labels = [label for label, choice in labelled if _is_option(text, choice)]
    return matching_labels[0] if len(matching_labels) == 1 else None


def _is_option(text: str, choice: str) -> bool:
    if (number := parse_number(choice)) is not None:
        text_number = parse_number(text)
        return text_number is not None and is_same_number(text_number, number)
    if (bounds := parse_range(choice)) is not None:
        return parse_range(clean_segment(text)) == bounds
    if _has_no_digit(choice):
        return bool(_normalize_letters(choice)) and _normalize_letters(text) == _normalize_letters(
            choice
        )
    return normalise_for_comparison(text) == normalise_for_comparison(choice)


def _has_no_digit(text: str) -> bool:
    """Whether an option has no digit: ``upregulated``; not ``3-fold``."""
    return re.search(r"\d", text) is None


def _normalize_letters(text: str) -> str:
    """Return the letters and digits of a text in lower case, with single spaces for other
    characters.

    ``Up-regulated (IL-6)`` becomes ``up regulated il 6``.
    """
    return re.sub(r"[^a-z0-9]+", " ", normalize("NFKC", text).lower()).strip()


def _are_opposed(left_text: str, right_text: str) -> bool:
    """Whether two similar texts may be opposites: for example, only one of them has a ``not``."""
    polarities = [
        sorted("".join(groups) for groups in _POLARITY.findall(normalize("NFKC", text).lower()))
        for text in (left_text, right_text)
    ]
    left_words, right_words = (
        frozenset(_normalize_letters(text).split()) for text in (left_text, right_text)
    )
    return polarities[0] != polarities[1] or any(
        prefix + word in larger_words
        for smaller_words, larger_words in ((left_words, right_words), (right_words, left_words))
        for word in smaller_words - larger_words
        for prefix in _PREFIXES
    )
