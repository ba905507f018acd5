"""Kinds of answers. Each kind reads, recognises and compares its answers.

The kinds are `Choice` (a label or the text of an option), `Number`, `Verdict` (yes or no, true or
false, valid or not) and `Text`. An exam may define more kinds. Readers return values in one
spelling, so a comparison with the target compares normal forms.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping

from keju.answers.conclusions import find_conclusion
from keju.answers.decision import COMPLETE_ANSWER_END, LINK, is_second_answer, link_strength
from keju.answers.labels import bare_label, read_label
from keju.answers.lazy_patterns import lazy_pattern
from keju.answers.numbers import (
    ParsedNumber,
    find_numbers,
    is_same_number,
    normalise_for_comparison,
    parse_leading_number,
    parse_number,
    plain_numerals,
)
from keju.answers.options import option_by_text, plain_option_text
from keju.answers.phrases import load_pattern, load_words
from keju.answers.segments import (
    AMBIGUOUS,
    DRESSING,
    NO_ANSWER,
    NO_LABEL,
    AnswerStatement,
    Conclusion,
    clean_segment,
    remove_lead,
)
from keju.answers.verdicts import find_last_count, find_last_verdict, find_phrase_value
from keju.types import Sample

LONGEST_LAST_LINE = 200
"""The longest last line, in characters, that may be a text answer."""


class AnswerKind(ABC):
    """One kind of answer."""

    marker: re.Pattern[str] | None = None
    """The pattern that announces only answers of this kind."""
    plain: re.Pattern[str] | None = None
    """The form of a value directly after a strict marker that makes the answer strict."""
    paragraph = False
    """Whether an answer may have several lines."""
    equations = False
    """Whether an answer may follow ``=`` or ``the number of … is``."""
    closed = True
    """Whether Keju can distinguish answers of this kind from other texts."""
    listed = False
    """Whether a reply may list the possible answers line by line without choosing one."""
    many = False
    """Whether there are more than two possible answers."""

    nothing = "no_marker"
    """The reason code for a reply without an announcement."""

    @abstractmethod
    def read(self, segment: str, sample: Sample) -> AnswerStatement:
        """Return the statement of a segment after a marker."""

    @abstractmethod
    def whole(self, text: str, sample: Sample) -> str | None:
        """Return the answer of a line or reply that contains only an answer, else None."""

    def evaluates(self, equation: str, sample: Sample) -> bool:
        """Whether the question may ask for the value of the left side of an equation."""
        return True

    def leading(self, sentence: str, sample: Sample) -> str | None:
        """Return the answer of a first sentence that contains only an answer and its reason."""
        return self.whole(sentence, sample)

    def plainly(self, text: str, sample: Sample) -> Conclusion:
        """Return the answer that a text concludes without an announcement."""
        return Conclusion()

    def same(self, value: str, target: str) -> bool:
        """Whether a value from a reply equals a target."""
        return value == target


class Choice(AnswerKind):
    """A label of the row, alone or with the text of its option, or only the text of an option."""

    plain: re.Pattern[str] | None = re.compile(r" ?[(\[（]?([A-Z])")
    """``(B``, `` B``: undecorated; not ``**B``, ``$B``."""
    listed = many = True

    def read(self, segment: str, sample: Sample) -> AnswerStatement:
        if (
            len(segment) < 5
            and (common_statement := _IN_BRACKETS.get(segment))
            and segment[1] in sample.labels
        ):
            return common_statement
        statement = read_label(segment, sample.labels, sample.choices, letter_counts=True)
        if statement != NO_LABEL:
            return statement
        label = bare_label(segment, sample.labels, sample.choices)
        return AnswerStatement(label) if label else statement

    def whole(self, text: str, sample: Sample) -> str | None:
        return bare_label(text, sample.labels, sample.choices)

    def leading(self, sentence: str, sample: Sample) -> str | None:
        if reasoned := _WITH_REASON.match(sentence):
            return reasoned[1] if reasoned[1] in sample.labels else None
        return (
            _find_label_before_text(sentence, sample)
            or self.whole(sentence, sample)
            or _find_label_of_text(sentence, sample)
        )

    def plainly(self, text: str, sample: Sample) -> Conclusion:
        return find_conclusion(text, sample)


def _find_label_before_text(sentence: str, sample: Sample) -> str | None:
    """Return the label before a dash and the text of its option, and perhaps more text."""
    dashed = _WITH_TEXT.match(sentence)
    if dashed is None or dashed[1] not in sample.labels:
        return None
    option_text = plain_option_text(dashed[1], sample.choices)
    has_text = option_text and sentence[dashed.end() :].casefold().startswith(option_text)
    return dashed[1] if has_text else None


def _find_label_of_text(sentence: str, sample: Sample) -> str | None:
    """Return the label in brackets before a text that is an option, or at least no sentence."""
    option = _LABEL_AND_TEXT.fullmatch(sentence.strip())
    if option is None or option[1] not in sample.labels:
        return None
    is_text = option_by_text(option[2], sample.choices) or not _IS_SENTENCE.search(option[2])
    return option[1] if is_text else None


_IN_BRACKETS = {
    f"({c}){end}": AnswerStatement(c) for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" for end in ("", ".")
}
"""The most frequent statements: ``(B).``"""
_WITH_REASON = load_pattern("with_reason")


# A label in brackets and a text, `(C) Belle and Sebastian`: the label counts, even if the text
# belongs to another option.
_LABEL_AND_TEXT = lazy_pattern(r"[(\[]?([A-Z])[)\]]\s*+(\S.*)", re.DOTALL)
_IS_SENTENCE = load_pattern("sentence_sign")
# A label and the text of its option, and more text: `E — Uracil replaces thymine`.
_WITH_TEXT = lazy_pattern(r"\W{0,3}([A-Z])[)\]*]{0,2}\s?[-–—:]\s?")


SOLVED = re.compile(r"####(?<![^\n]####)(?!#)")
"""The end of a worked solution, ``#### 90``; not the heading of a deeper level."""
GIVES_UP = load_pattern("gives_up")


class Text(AnswerKind):
    """Any announced text, or a short last line. Numbers compare by value, words in any case."""

    closed = False
    marker = SOLVED

    def read(self, segment: str, sample: Sample) -> AnswerStatement:
        bare = clean_segment(segment)
        return AnswerStatement(bare) if bare and not self._gives_up(bare, sample) else NO_ANSWER

    def whole(self, text: str, sample: Sample) -> str | None:
        bare = clean_segment(text)
        is_line = 0 < len(bare) <= LONGEST_LAST_LINE and "\n" not in text.strip()
        return bare if is_line and not self._gives_up(bare, sample) else None

    def _gives_up(self, bare: str, sample: Sample) -> bool:
        """Whether a text says that it has no answer, unless this is the target."""
        last_part = bare.rpartition(":")[2].strip()
        return GIVES_UP.fullmatch(last_part) is not None and not self.same(last_part, sample.target)

    def same(self, value: str, target: str) -> bool:
        value_number, target_number = parse_number(value), parse_number(target)
        if value_number is not None and target_number is not None:
            return is_same_number(value_number, target_number)
        return normalise_for_comparison(value) == normalise_for_comparison(target)


# --- numbers -----------------------------------------------------------------------------------

_SECOND_NUMBER = load_pattern("second_number")
_OTHER_NUMBER = load_pattern("other_number")


class Number(AnswerKind):
    """A number in any usual spelling, at the beginning of the announced text or after its ``=``.

    Without `anywhere`, an unannounced line counts only if it is a number. With `anywhere` these
    numbers count too, as they are written: the last clear number of the announced text or of the
    last line, and the number after the marker of worked solutions.
    """

    equations = many = True

    def __init__(self, *, anywhere: bool = False) -> None:
        self.anywhere = anywhere
        self.closed = not anywhere
        if anywhere:
            self.marker = SOLVED
            self.nothing = "no_number"

    def read(self, segment: str, sample: Sample) -> AnswerStatement:
        bare = _plain_number(segment)
        if bare.isascii() and bare.isdigit():  # the usual case, without patterns
            return AnswerStatement(bare if self.anywhere else bare.lstrip("0") or "0")
        after_sign = bare.rpartition("=")[2].strip(DRESSING)
        for part in (after_sign, bare) if "=" in bare else (bare,):
            part = remove_lead(part, bullet=False)
            if number := parse_leading_number(part):
                return self._state_number(part, number)
        last_number = _last_number(segment) if self.anywhere else None
        return AnswerStatement(last_number) if last_number else NO_ANSWER

    def _state_number(self, part: str, number: ParsedNumber) -> AnswerStatement:
        """Return the statement of a text that begins with a number."""
        end = number.end
        value = number.plain
        if self.anywhere and parse_number(number_text := part[:end].lstrip("([ ")):
            value = number_text
        is_percentage = number.percent and not self.anywhere
        if end == len(part) and not is_percentage:
            return AnswerStatement(value)
        if is_percentage or not number.clear or _OTHER_NUMBER.search(part, end):
            return AMBIGUOUS
        return AMBIGUOUS if _offers_second(part, end) else AnswerStatement(value)

    def whole(self, text: str, sample: Sample) -> str | None:
        if self.anywhere:
            return None if "\n" in text else _last_number(text)
        if _DIGITS.fullmatch(text):
            return text.strip().lstrip("0") or "0"
        bare = _plain_number(text)
        if _OPEN_OPERATION.search(text) or _OPEN_BRACKET.fullmatch(bare):
            return None
        number = parse_leading_number(bare)
        if number is None or number.percent:
            return None
        remaining_text = bare[number.end :].strip(" )]")
        is_clear = number.clear or not remaining_text
        is_all = is_clear and _repeats_words(remaining_text, sample.text)
        return number.plain if is_all else None

    def plainly(self, text: str, sample: Sample) -> Conclusion:
        count = None if self.anywhere else find_last_count(text)
        return Conclusion(count, rule="count") if count else Conclusion()

    def same(self, value: str, target: str) -> bool:
        if value == target:
            return True
        value_number, target_number = parse_number(value), parse_number(target)
        return (
            value_number is not None
            and target_number is not None
            and is_same_number(value_number, target_number)
        )


def _offers_second(part: str, end: int) -> bool:
    """Whether the text joins a second number to the one that ends at `end`: ``5 or 6``."""
    link = LINK.match(part, end)
    second_number = _SECOND_NUMBER.match(part, link.end()) if link and link[0] else None
    if link is None or second_number is None:
        return False
    strength = link_strength(link[0])
    is_firm = strength == "either" or (strength == "joined" and not second_number[1])
    return is_firm or COMPLETE_ANSWER_END.match(part, second_number.end()) is not None


def _repeats_words(text: str, question: str) -> bool:
    """Whether a short text has only words of the question, as the noun of ``7 instruments``."""
    if len(text) >= _LONGEST_NOUN or _FIGURE.search(text):
        return False
    return all(map(question.__contains__, text.split()))


_LONGEST_NOUN = 30
_FIGURE = lazy_pattern(r"[^A-Za-z ]")
# `-8 *`, `19 +`: a calculation that broke off.
_OPEN_OPERATION = lazy_pattern(r"\d\s+[-+*/×÷^]\s*\Z")


_DIGITS = lazy_pattern(r"\s*[0-9]+\s*")
# `(-8`: a bracket that is not closed.
_OPEN_BRACKET = lazy_pattern(r"[(\[].*[^)\]]|[(\[]", re.DOTALL)


def _plain_number(segment: str) -> str:
    """Return the cleaned segment with ASCII digits, minus signs and thousands commas."""
    bare = plain_numerals(clean_segment(segment)).replace("\u2013", "-")
    return bare.replace("{,}", ",") if "{" in bare else bare


def _last_number(text: str) -> str | None:
    """Return the last clear number of `text`, as it is written."""
    plain = plain_numerals(text)
    clear = [number for number in find_numbers(plain) if number.clear]
    return plain[clear[-1].start : clear[-1].end] if clear else None


# --- verdicts ----------------------------------------------------------------------------------

# `**?`: a question about the verdict.
_QUESTION_MARK = lazy_pattern(r"[*_\"'”’]{0,3}\?")
_IN_EXPRESSION = load_pattern("in_expression")
# `. `, `, `, ` — `: signs between a leading verdict and its reasons.
_SET_OFF = lazy_pattern(r"[*_\"'”’]{0,3}(?:[.,;:!。，：—]|\s[-–—]|\s(?:because|since|as)\b)")
# `Probably `, `Most likely, `: words and decoration before a leading verdict.
_PROBABLY = lazy_pattern(
    rf"[{re.escape(DRESSING)}]*(?:(?:(?:most |very )?(?:probably|likely)|I(?:['’]d| would) say"
    rf"|I think)\b,?[{re.escape(DRESSING)}]+)?",
    re.IGNORECASE,
)
# ` because it`: the reason of a verdict in a sentence.
_REASON = lazy_pattern(r",? (?:because|since)\b|, as\b", re.IGNORECASE)
# ` longer`: the word after `no`.
_NEXT_WORD = lazy_pattern(r"\s+([A-Za-z’']+)")
_AFTER_NO = frozenset(load_words("after_no"))


class Verdict(AnswerKind):
    """A closed set of words with a value each. Only a leading word counts."""

    listed = True

    def __init__(
        self,
        values: Mapping[str, str],
        lead: str = "",
        *,
        equations: bool = False,
        phrases: Mapping[str, str | tuple[str, str]] | None = None,
        sentence: re.Pattern[str] | None = None,
    ) -> None:
        """With `equations` the value after the last ``=`` counts.

        `phrases` are patterns that express a value without its word: ``does not follow``. With two
        values the second counts if the phrase is denied: ``caused``, ``did not cause``. Group 1 of
        `sentence` matches the value in a whole sentence: ``The argument is invalid``.
        """
        self._sentence = sentence
        self._values = values
        self._phrases = [
            (
                lazy_pattern(phrase, re.IGNORECASE),
                *((value, "") if isinstance(value, str) else value),
            )
            for phrase, value in (phrases or {}).items()
        ]
        self.equations = equations
        words = "|".join(sorted(values, key=len, reverse=True))
        # `True`, `deductively valid`; not `true-ish`, `validity`.
        word = rf"(?:{lead})?({words})\b(?!-)"
        self._pattern = lazy_pattern(word, re.I | re.A)
        # `yes if it rains, otherwise no`.
        self._alternative = lazy_pattern(
            rf"\b(?:otherwise|else|alternatively)\b[\s,:]*(?:it is |the answer is )?{word}",
            re.I | re.A,
        )

    def read(self, segment: str, sample: Sample) -> AnswerStatement:
        """Return the value of the leading word. Two words with different values are ambiguous."""
        if value := self._values.get(segment.removesuffix(".").lower()):
            return AnswerStatement(value)  # the usual case, without patterns
        bare = self._remove_opening(segment)
        match = self._match_at(bare, 0)
        if match is None:
            value = find_phrase_value(bare, self._phrases, sample.text) or self.leading(
                bare, sample
            )
            return AnswerStatement(value) if value else NO_ANSWER
        value, end = self._values[match[1].lower()], match.end()
        if end == len(bare):
            return AnswerStatement(value)
        if _QUESTION_MARK.match(bare, end) or _IN_EXPRESSION.match(bare, end):
            return NO_ANSWER
        return AMBIGUOUS if self._offers_other_verdict(bare, end, value) else AnswerStatement(value)

    def _remove_opening(self, segment: str) -> str:
        """Return a segment without decoration, list number, equation and opening bracket."""
        bare = remove_lead(clean_segment(segment))
        if bare[:3] == "1. ":
            bare = bare[3:]
        if self.equations and "=" in bare:
            bare = bare.rpartition("=")[2].lstrip(DRESSING)
        return bare[1:].lstrip(DRESSING) if bare[:1] in ("(", "[", "{") else bare

    def _offers_other_verdict(self, bare: str, end: int, value: str) -> bool:
        """Whether another verdict follows the one that ends at `end`: ``yes or no``."""
        link = LINK.match(bare, end)
        other_verdict = self._match_at(bare, link.end()) if link and link[0] else None
        is_second = (
            link
            and other_verdict
            and is_second_answer(bare, link[0], other_verdict.end(), other_verdict.end())
        )
        if other_verdict and is_second and self._values[other_verdict[1].lower()] != value:
            return True
        offered = self._alternative.search(bare, end)
        return offered is not None and self._values[offered[1].lower()] != value

    def _match_at(self, bare: str, position: int) -> re.Match[str] | None:
        """Return the verdict at `position`, unless it is part of a phrase such as ``no longer``."""
        match = self._pattern.match(bare, position)
        if match is None or match[1].lower() != "no":
            return match
        word = _NEXT_WORD.match(bare, match.end())
        return None if word and word[1].lower() not in _AFTER_NO else match

    def whole(self, text: str, sample: Sample) -> str | None:
        if value := self._values.get(text.strip().lower()):
            return value
        bare = clean_segment(text)
        if bare[:2] == "- ":  # the only item of a list
            bare = bare[2:].lstrip(DRESSING)
        if self._sentence and (sentence_match := self._sentence.fullmatch(bare)):
            bare = sentence_match[1].replace(" an ", " ").replace(" a ", " ")
        match = self._pattern.fullmatch(bare.strip("[]() "))
        return self._values[match[1].lower()] if match else None

    def leading(self, sentence: str, sample: Sample) -> str | None:
        hedge = _PROBABLY.match(sentence)
        match = self._match_at(sentence, hedge.end() if hedge else 0)
        is_set_off = match and _SET_OFF.match(sentence, match.end())
        if match and is_set_off:
            return self._values[match[1].lower()]
        if self._sentence is None or self.equations:  # an equation is a step on the way
            return None
        reason = _REASON.search(sentence)
        return self.whole(sentence[: reason.start()] if reason else sentence, sample)

    def plainly(self, text: str, sample: Sample) -> Conclusion:
        value, reason = find_last_verdict(
            text, self._pattern, self._values, self._match_at, self._phrases, sample.text
        )
        return Conclusion(value, reason, "verdict" if value else "")

    def same(self, value: str, target: str) -> bool:
        return value.lower() == target.strip().lower()
