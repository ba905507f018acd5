"""The right option of a question, as people write it: a letter, a number, or the option's text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from keju.benchmarks.choices import check_choices
from keju.errors import DataError
from keju.types import LABELS

# `B`, `(b)`, `B.`, `B)`, `Option B`, `选项B`, `B、`
_LETTER = re.compile(
    r"(?:(?:option|choice|answer)\s|选项\s?)?[(\[【]?([a-z])[)\]】]?[.:、)]?", re.I
)
# `B) Rome`, `B. Rome`, `(B) Rome`, `B：Rome`
_LETTER_AND_TEXT = re.compile(r"[(\[【]?([a-z])[)\].:、】]\s*(\S.*)", re.I | re.S)
# `A, C`, `A and C`, `ACD`, `A、C`
_LETTERS = re.compile(r"[A-Z](?:\s*(?:[,;/、&+]|and|und|和)?\s*[A-Z])+")


def read_letter(
    answers: Sequence[str], choices: Sequence[str], where: str, first_number: int | None = None
) -> tuple[str, ...]:
    """Return the label of the right option. DataError if the answer can mean several options.

    `first_number` is the number of the first option if the columns of options have numbers.
    """
    if not answers:
        check_choices(choices, "", where)
        return ()
    if len(answers) > 1:
        raise DataError("custom.several_answers", where=where)
    (answer,) = answers
    by_text = _find_text(answer, choices)
    by_label = _find_label(answer, choices, first_number)
    if len(by_text) > 1:
        raise DataError("custom.answer_of_several", where=where, answer=answer)
    if by_text and by_label and by_text[0] != by_label:
        raise DataError("custom.answer_both", where=where, answer=answer, option=by_text[0])
    letter = by_label or "".join(by_text)
    if not letter:
        raise _unknown_answer(answer, choices, where)
    check_choices(choices, letter, where)
    return (letter,)


def _find_text(answer: str, choices: Sequence[str]) -> list[str]:
    """Return the labels of the options with this text, or else with it in another notation."""
    exact = [LABELS[i] for i, choice in enumerate(choices) if choice.strip() == answer]
    plain = _plain(answer)
    return exact or [LABELS[i] for i, choice in enumerate(choices) if _plain(choice) == plain]


def _find_label(answer: str, choices: Sequence[str], first_number: int | None) -> str:
    """Return the label of an option that the answer names by letter or number; else empty."""
    text = unicodedata.normalize("NFKC", answer).strip()
    labels = LABELS[: len(choices)]
    if (letter := _LETTER.fullmatch(text)) and letter[1].upper() in labels:
        return letter[1].upper()
    if (option := _LETTER_AND_TEXT.fullmatch(text)) and option[1].upper() in labels:
        label = option[1].upper()
        is_its_text = _plain(option[2]) == _plain(choices[labels.index(label)])
        return label if is_its_text else ""
    if first_number is not None and text.isascii() and text.isdigit():
        place = int(text) - first_number
        return labels[place] if 0 <= place < len(labels) else ""
    return ""


def _unknown_answer(answer: str, choices: Sequence[str], where: str) -> DataError:
    text = unicodedata.normalize("NFKC", answer).strip()
    labels = LABELS[: len(choices)]
    if _LETTERS.fullmatch(text) and {c for c in text if c in LABELS} <= set(labels):
        return DataError("custom.several_answers", where=where)
    last_label = LABELS[min(len(choices), len(LABELS)) - 1]
    return DataError("custom.answer_neither", where=where, answer=answer, last=last_label)


def _plain(text: str) -> str:
    """Return a text without differences of case, width and white space."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
