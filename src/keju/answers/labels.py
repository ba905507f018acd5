"""Reading the label of an option: never a capital letter out of prose, never a guess."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from keju.answers.clean import clean_segment
from keju.answers.lead import ADVERBS, BULLET
from keju.answers.links import (
    LINK,
    NEGATIVE,
    counts_as_second,
    explains,
    is_offered,
    is_rejected,
    sentence_end,
)

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
_NOUN = r"(?:option|choice|answer|letter|选项|選項)"
_ANNOUNCED = (
    rf"{ADVERBS}{{0,3}}(?:(?:that )?(?:the |an? )?(?:(?:correct|right|best) )?"
    rf"(?:either|both|{_NOUN}) ?(?:is )?:? ?|that (?=[(\[]))?"
)
_LEAD = f"{BULLET}?{_ANNOUNCED}"
_SYMBOL = r"[\u2070-\u209f¹²³°℃℉#%^′″]|_\d|\+(?!\s?[(\[]?[A-Za-z](?![A-Za-z]))"
"""What makes a letter part of a name or a quantity: ``H₂O``, ``C°``, ``C++``, but not ``B+C``."""
_FOLLOWS = rf"(?![A-Za-z0-9À-ɏ'’]|-[A-Za-z]|\.[A-Z]\.|{_SYMBOL})"
_INSIDE = r"\s{0,8}[*_`\"'“]{0,3}([A-Za-z])[*_`\"'”]{0,3}\s{0,8}"
_LABEL = re.compile(
    rf"{_LEAD}[*_`]{{0,3}}(?:[(\[{{]{{1,2}}{_INSIDE}[)\]}}]{{1,2}}|([A-Z]){_FOLLOWS})",
    re.IGNORECASE,
)
"""A label at the beginning of a segment; groups: in brackets, bare."""

_LISTED = re.compile(
    rf"{_LEAD}[*_$\s]{{0,4}}[(\[（【{{]{{1,2}}\s{{0,8}}([A-Za-z])"
    r"\s{0,4}(?:[,，/、&|;+]|(?i:and|or|vs)\b|[和与及或])\s{0,4}(?i:or |and )?([A-Za-z])\b",
    re.IGNORECASE,
)
"""Several labels in one pair of brackets: ``(A, C)``."""

_WHOLE_LOWER = re.compile(_LEAD + r"\(?([a-z])[).:]?$", re.IGNORECASE)
_MENTION = re.compile(
    r"[(\[]\s?([A-Z])\s?[)\]]|\b(?:[Oo]ption|[Cc]hoice|选项) ?\(?([A-Z])(?![A-Za-z'’])"
    r"|\b(?:or|otherwise|else|alternatively|perhaps|maybe|versus|vs)[ ,]{1,3}([A-Z])(?![\w'’.-])"
)
"""A further label in the same sentence: in brackets, named as an option, or offered."""
_NEXT_WORD = re.compile(r"\s+(rather than|instead of|[A-Za-z’']+)", re.IGNORECASE)
_QUESTIONED = re.compile(r"[*_)\]\s]{0,4}\?")
_GAP = re.compile(r"[)\]}*_`]*+[.:,]?[)*_`\s$\"'“‘]*+")
_DASH = re.compile(r"[-–—]\s++[*_`$\"'“‘]*+")
"""A dash between a label and its option's text, where it is not the sign of a number."""

_AFTER_LABEL = frozenset({
    "according", "after", "and", "are", "as", "at", "based", "because", "but", "by", "cannot",
    "considering", "due", "fits", "following", "for", "from", "given", "if", "in", "instead of",
    "is", "it", "matches", "not", "of", "on", "option", "or", "otherwise", "per", "rather than",
    "since", "so", "that", "the", "therefore", "these", "this", "to", "unless", "versus", "vs",
    "was", "we", "when", "whereas", "which", "while", "with", "would",
})  # fmt: skip
"""Words that can follow the label ``A`` or ``I`` but neither the article nor the pronoun."""


class _Named(NamedTuple):
    """A label inside a segment."""

    label: str
    raw: str
    """As it is written, which may be lower case in brackets."""
    end: int
    bracketed: bool


def read_label(segment: str, labels: str, choices: Sequence[str] = ()) -> LabelReading:
    r"""Return the one label of `labels` that `segment` begins with, or whose text it is.

    Accepted are ``(B)``, ``[B]``, ``B)``, ``B.``, ``B:`` and a bare capital that no letter or
    apostrophe follows, full-width forms, and a bullet, a word of emphasis or ``the option`` before
    it. A lower-case label counts only in brackets, in ``\boxed{}`` or as the whole segment. Two
    labels in one sentence are ambiguous unless one is rejected (``B, not C``) or only discussed,
    and so is a label with the text of another option. Otherwise a segment that is the text of
    exactly one of the `choices` stands for that choice.
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
        return _without_leading_label(segment, bare, labels, choices)
    if choices and found.end < len(bare):
        by_text = option_by_text(segment, choices, labels)
        if by_text:
            return LabelReading(by_text)
    if found.label not in labels:
        return _INVALID
    return _weighed(bare, found, labels, choices)


def _without_leading_label(
    segment: str, bare: str, labels: str, choices: Sequence[str]
) -> LabelReading:
    """What a segment says that does not begin with one label."""
    whole = _WHOLE_LOWER.match(bare)
    if whole and whole[1].upper() in labels:
        return LabelReading(whole[1].upper())
    if by_text := option_by_text(segment, choices, labels):
        return LabelReading(by_text)
    listed = _LISTED.match(bare)
    if listed and listed[1] != listed[2] and {listed[1].upper(), listed[2].upper()} <= set(labels):
        return _AMBIGUOUS
    return _NONE


def _weighed(bare: str, found: _Named, labels: str, choices: Sequence[str]) -> LabelReading:
    """The label that was found, unless the rest of its sentence takes it back or adds another."""
    if found.end == len(bare):
        return LabelReading(found.label)
    if _QUESTIONED.match(bare, found.end) or NEGATIVE.match(bare, found.end):
        return _NONE
    if _is_text_of_another(bare, found, choices) or _is_joined(bare, found, labels, choices):
        return _AMBIGUOUS
    return LabelReading(found.label)


def option_by_text(segment: str, choices: Sequence[str], labels: str = "") -> str | None:
    """The label of the one choice whose text is `segment`, letter case and dressing aside.

    None where no choice or more than one has that text. `labels` are A, B, C, … by default.
    """
    if not choices:
        return None
    folded, plain = _option_texts(tuple(choices))
    wanted = segment.strip().casefold()
    found = [i for i, text in enumerate(folded) if text == wanted]
    if not found and (wanted := _plain_text(segment)):
        found = [i for i, text in enumerate(plain) if text == wanted]
    if len(found) != 1:
        return None
    return labels[found[0]] if labels else chr(ord("A") + found[0])


def _plain_text(option: str) -> str:
    """An option's text as far as it counts: no dressing, letter case or final full stops."""
    return clean_segment(option).rstrip(".…。 ").casefold()


@lru_cache(maxsize=1024)
def _option_texts(choices: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The options' texts with letter case aside, and the plain ones."""
    folded = tuple(choice.strip().casefold() for choice in choices)
    return folded, tuple(map(_plain_text, choices))


def _plain_texts(choices: Sequence[str]) -> tuple[str, ...]:
    return _option_texts(tuple(choices))[1]


def _own_text(label: str, choices: Sequence[str]) -> str:
    """The plain text of the option `label`; empty where it is not known."""
    index = ord(label) - ord("A")
    return _plain_texts(choices)[index] if index < len(choices) else ""


def _label_at(bare: str, position: int, choices: Sequence[str]) -> _Named | None:
    """The label that begins at `position`, and where it ends."""
    match = _LABEL.match(bare, position)
    if match is None:
        return None
    letter = match[1] or match[2]
    if match[1] is None and (letter.islower() or _is_prose(bare, letter, match.end(), choices)):
        return None
    return _Named(letter.upper(), letter, match.end(), match[1] is not None)


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


def _text_starts(bare: str, position: int) -> tuple[int, ...]:
    """Where the text may begin that follows a label ending at `position`."""
    gap = _GAP.match(bare, position)
    start = gap.end() if gap else position
    dash = _DASH.match(bare, start)
    return (start, dash.end()) if dash else (start,)


def _after_own_text(bare: str, label: str, position: int, choices: Sequence[str]) -> int:
    """The position after the option's own text where that follows the label, else `position`."""
    option = _own_text(label, choices) if choices else ""
    if option:
        for start in _text_starts(bare, position):
            end = start + len(option)
            if bare[start:end].casefold() == option and not bare[end : end + 1].isalnum():
                return end
    return position


_TEXT_ENDS = re.compile(r"[\s*_`\"'”’]*+(?:\Z|[.,;:!?)\]]|(?:because|since|as|which|is)\b)")


def _is_text_of_another(bare: str, found: _Named, choices: Sequence[str]) -> bool:
    """Whether a label is followed by the text of an option that is not its own.

    Where several texts fit the one that reaches farthest counts.
    """
    if not choices:
        return False
    own = ord(found.label) - ord("A")
    farthest, named = (0, False, False), own
    for start in _text_starts(bare, found.end):
        rest = bare[start:]
        folded = rest.casefold()
        for index, text in enumerate(_plain_texts(choices)) if rest else ():
            if text and folded.startswith(text) and _TEXT_ENDS.match(folded, len(text)):
                exact = rest.startswith(choices[index].strip())
                if (rank := (start + len(text), exact, index == own)) > farthest:
                    farthest, named = rank, index
    return named != own


def _is_joined(bare: str, found: _Named, labels: str, choices: Sequence[str]) -> bool:
    """Whether another label stands beside the one that was found, in the same sentence."""
    position = begin = _after_own_text(bare, found.label, found.end, choices)
    while position < len(bare):
        link = LINK.match(bare, position)
        end = link.end() if link else position
        other = _label_at(bare, end, choices)
        if other is None or (end == position and not other.bracketed):
            break
        after = _after_own_text(bare, other.label, other.end, choices)
        if other.label != found.label:
            is_label = other.raw.isupper() if found.raw.isupper() else other.bracketed
            if not is_label or not (other.bracketed or other.label in labels):
                break
            if counts_as_second(bare, bare[position:end], other.end, after):
                return True
            break
        position = after
    return _is_mentioned(bare, max(begin, position), found.label, labels)


def _is_mentioned(bare: str, position: int, label: str, labels: str) -> bool:
    """Whether the rest of the sentence offers another label, neither rejected nor discussed."""
    discussed = False
    for mention in _MENTION.finditer(bare, position, sentence_end(bare, position)):
        other = mention[1] or mention[2] or mention[3]
        if other == label or other not in labels:
            continue
        between = bare[position : mention.start(mention.lastindex or 0)]
        position = mention.end()
        if is_rejected(between):
            discussed = True
        elif is_offered(between):
            return True
        elif not discussed and not explains(between):
            if not NEGATIVE.match(bare, mention.end()):
                return True
        else:
            discussed = True
    return False


_BARE = re.compile(
    _ANNOUNCED + r"[(\[]{0,2}\s{0,8}([A-Za-z])\s{0,8}[)\].:、]{0,3}(?:\s+(\S.*))?",
    re.IGNORECASE | re.DOTALL,
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
