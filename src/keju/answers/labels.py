"""Reading the label of an option: never a capital letter out of prose, never a guess."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from keju.answers.clean import clean_segment

Reason = Literal["", "ambiguous", "invalid_label", "no_label"]


class LabelReading(NamedTuple):
    """The label a segment names, or why it names none."""

    value: str | None
    reason: Reason = ""


_AMBIGUOUS = LabelReading(None, "ambiguous")
_INVALID = LabelReading(None, "invalid_label")
_NONE = LabelReading(None, "no_label")

_WIDE = {
    wide: wide - 0xFEE0
    for wide in (*range(0xFF21, 0xFF3B), *range(0xFF41, 0xFF5B), 0xFF08, 0xFF09, 0xFF0E, 0xFF1A)
} | {ord("【"): "[", ord("】"): "]", ord("〔"): "[", ord("〕"): "]", ord("，"): ","}
"""Full-width letters, brackets, full stop and colon to their ASCII forms."""

_BOXED_LETTER = re.compile(
    r"\\boxed ?\{ ?(?:\\(?:text|textbf|mathrm|mathbf) ?\{ ?)?\(?([A-Za-z])\)? ?\}? ?\}"
)
_LEAD = r"(?:(?:either|both|option|choice|选项|選項) ?:? ?)?"
_FOLLOWS = r"(?![A-Za-z0-9À-ɏ'’]|-[A-Za-z]|\.[A-Z]\.)"
_LABEL = re.compile(
    _LEAD
    + r"[*_`]{0,3}(?:\( ?[*_`]{0,3}([A-Za-z])[*_`]{0,3} ?\)|\[ ?[*_`]{0,3}([A-Za-z])[*_`]{0,3} ?\]"
    r"|([A-Z])" + _FOLLOWS + r")",
    re.IGNORECASE,
)
"""A label at the beginning of a segment; groups: in round or square brackets, bare."""

_WHOLE_LOWER = re.compile(_LEAD + r"\(?([a-z])[).:]?$", re.IGNORECASE)
_JOINER = re.compile(
    r"[*_`$\"'”’).\]]{0,4}\s{0,4}(?:,?\s{0,4}(?:\b(?:or|and)\b|[/&、和或与及])|,)\s{0,4}(?:also )?"
)
_NEXT_WORD = re.compile(r"\s+([A-Za-z’']+)")

_AFTER_LABEL = frozenset({
    "according", "after", "and", "as", "at", "based", "because", "but", "by", "considering",
    "due", "following", "for", "from", "given", "if", "in", "is", "it", "matches", "not",
    "of", "on", "or", "per", "since", "so", "that", "the", "therefore", "these", "this", "to",
    "we", "when", "which", "while", "with",
})  # fmt: skip
"""Words that can follow the label ``A`` or ``I`` but neither the article nor the pronoun."""


def read_label(segment: str, labels: str, choices: Sequence[str] = ()) -> LabelReading:
    r"""Return the one label of `labels` that `segment` begins with, or whose text it is.

    Accepted are ``(B)``, ``[B]``, ``B)``, ``B.``, ``B:`` and a bare capital that no letter or
    apostrophe follows, full-width forms and an ``option`` before it. A lower-case label counts
    only in brackets, in ``\boxed{}`` or as the whole segment. Two different labels joined by a
    comma or a conjunction are ambiguous; ``B, not C`` is B. Otherwise a segment that is the text
    of exactly one of the `choices` stands for that choice.
    """
    if segment[:1] == "(" and segment[2:] in (")", ").") and segment[1] in labels:
        return LabelReading(segment[1])
    normal = segment if segment.isascii() else segment.translate(_WIDE)
    if "\\boxed" in normal:
        normal = _BOXED_LETTER.sub(r"(\1)", normal)
    bare = clean_segment(normal)
    if len(bare) == 1 and bare.upper() in labels:
        return LabelReading(bare.upper())
    found = _label_at(bare, 0, choices)
    if found is None:
        whole = _WHOLE_LOWER.match(bare)
        if whole and whole[1].upper() in labels:
            return LabelReading(whole[1].upper())
        by_text = option_by_text(segment, choices, labels)
        return LabelReading(by_text) if by_text else _NONE
    label, end = found
    if choices and end < len(bare) and (by_text := option_by_text(segment, choices, labels)):
        return LabelReading(by_text)
    if label not in labels:
        return _INVALID
    if _joined_to_another(bare, label, end, labels, choices):
        return _AMBIGUOUS
    return LabelReading(label)


def option_by_text(segment: str, choices: Sequence[str], labels: str = "") -> str | None:
    """The label of the one choice whose text is `segment`, letter case and dressing aside.

    None where no choice or more than one has that text. `labels` are A, B, C, … by default.
    """
    if not choices:
        return None
    wanted = segment.strip().casefold()
    found = [i for i, choice in enumerate(choices) if choice.strip().casefold() == wanted]
    if not found and (wanted := _plain_text(segment)):
        found = [i for i, choice in enumerate(choices) if _plain_text(choice) == wanted]
    if len(found) != 1:
        return None
    return labels[found[0]] if labels else chr(ord("A") + found[0])


def _plain_text(option: str) -> str:
    """An option's text as far as it counts: no dressing, letter case or final full stops."""
    return clean_segment(option).rstrip(".…。 ").casefold()


def _own_text(label: str, choices: Sequence[str]) -> str:
    """The plain text of the option `label`; empty where it is not known."""
    index = ord(label) - ord("A")
    return _plain_text(choices[index]) if index < len(choices) else ""


def _label_at(bare: str, position: int, choices: Sequence[str]) -> tuple[str, int] | None:
    """The label that begins at `position`, upper case, and where it ends."""
    match = _LABEL.match(bare, position)
    if match is None:
        return None
    bracketed = match[1] or match[2]
    if bracketed:
        return bracketed.upper(), match.end()
    letter = match[3]
    if letter.islower() or _is_prose(bare, letter, match.end(), choices):
        return None
    return letter, match.end()


def _is_prose(bare: str, letter: str, end: int, choices: Sequence[str]) -> bool:
    """Whether a bare ``A`` or ``I`` is the article or the pronoun and no label."""
    if letter not in "AI":
        return False
    word = _NEXT_WORD.match(bare, end)
    if word is None or word[1].casefold() in _AFTER_LABEL:
        return False
    option = _own_text(letter, choices)
    follows = bare[word.start(1) : word.start(1) + len(option)].casefold()
    return not (option and follows == option)


def _joined_to_another(
    bare: str, label: str, end: int, labels: str, choices: Sequence[str]
) -> bool:
    """Whether a different label, valid or in brackets, is joined to the one that ends at `end`."""
    position = end
    while position < len(bare):
        joiner = _JOINER.match(bare, position) or _joiner_after_text(bare, label, position, choices)
        if joiner is None:
            return False
        other = _label_at(bare, joiner.end(), choices)
        if other is None or (other[0] not in labels and bare[other[1] - 1] not in ")]"):
            return False
        if other[0] != label:
            return True
        position = other[1]
    return False


def _joiner_after_text(
    bare: str, label: str, position: int, choices: Sequence[str]
) -> re.Match[str] | None:
    """The joiner in ``(A) its text or (B) …``, where the option's own text stands between."""
    option = _own_text(label, choices)
    while position < len(bare) and bare[position] in ").:- ":
        position += 1
    if not option or bare[position : position + len(option)].casefold() != option:
        return None
    return _JOINER.match(bare, position + len(option))


_BARE = re.compile(
    _LEAD + r"[(\[]?([A-Za-z])[)\].:、]{0,2}(?:\s+(\S.*))?", re.IGNORECASE | re.DOTALL
)


def read_bare_label(line: str, labels: str, choices: Sequence[str] = ()) -> str | None:
    """The label of a line that is nothing but an answer, or None.

    That is a label alone, a label and its own option's text, or the text of exactly one option.
    """
    bare = clean_segment(line if line.isascii() else line.translate(_WIDE))
    match = _BARE.fullmatch(bare)
    if match and (label := match[1].upper()) in labels:
        if not match[2]:
            return label
        if _plain_text(match[2]) == _own_text(label, choices):
            return label
    return option_by_text(line, choices, labels)
