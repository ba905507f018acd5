"""In which form an answer stands, where a reader that looks for another form does not find it.

A trait of the form is to blame if the reader finds the answer once it is taken away: ``ANSWER: b``
is a small letter, since ``ANSWER: B`` is read. So every trait is a rewriting of the reply, and no
reader has to tell why it failed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from keju.answers.endings import CJK
from keju.answers.negation import standing_of
from keju.answers.oddities import lone_label
from keju.answers.segments import segment_at, unwrap_latex
from keju.answers.wordings import CHINESE, FIELD, TOLERANT, announcements, normal_chinese

# --- traits of the label -----------------------------------------------------------------------

_WIDE = {wide: wide - 0xFEE0 for wide in (*range(0xFF10, 0xFF1A), *range(0xFF21, 0xFF3B))}
_WIDE |= {wide: wide - 0xFF41 + 0x41 for wide in range(0xFF41, 0xFF5B)}

# A small label at the end of its line, after a marker or alone, (2) or in brackets (3):
# `ANSWER: b`, `答案：(b)`; not the article of `is a`.
_SMALL = re.compile(
    r"((?:[:：=是为选]|\bis\b|\A)[\s*_(\[（【{$\"'“]*+)([a-z])(?=[\s)\]）】}$\"'”.。!,，*_]*+(?:\n|\Z))"
    r"|(?<=[(\[（【])([a-z])(?=[)\]）】])",
    re.IGNORECASE,
)
# `**`, `__`, a backtick; `*B*`.
_MARKS = re.compile(r"\*\*|__|`+|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w)")
_QUOTES = re.compile("[\"“”„‟「」『』«»]|(?<![A-Za-z])['‘’]|['‘’](?![A-Za-z])")


def _narrow(text: str) -> str:
    return text.translate(_WIDE)


def _capital(text: str) -> str:
    return _SMALL.sub(lambda match: (match[1] or "") + (match[2] or match[3]).upper(), text)


def _unmarked(text: str) -> str:
    return _MARKS.sub("", text)


def _unboxed(text: str) -> str:
    return unwrap_latex(text).replace("$", "") if "\\" in text or "$" in text else text


def _unquoted(text: str) -> str:
    return _QUOTES.sub("", text)


def _on_one_line(text: str) -> str:
    """The text with each answer on the line of the marker that announces it."""
    parts, position = [], 0
    for _, end in _announced(text):
        gap = _GAP.match(text, end)
        if gap and "\n" in gap[0]:
            parts += [text[position:end], " "]
            position = gap.end()
    return "".join([*parts, text[position:]])


_GAP = re.compile(r"[*_]*+\s*+")


def _closed(text: str) -> str:
    opened = text.rfind("<answer>")
    return text + "</answer>" if opened > text.rfind("</answer>") else text


TRAITS: Final[tuple[tuple[str, Callable[[str], str]], ...]] = (
    ("full_width", _narrow),
    ("lower_case", _capital),
    ("bold", _unmarked),
    ("boxed", _unboxed),
    ("quoted", _unquoted),
    ("next_line", _on_one_line),
    ("open_tag", _closed),
)
"""By name: the reply without the trait."""

# --- the wording -------------------------------------------------------------------------------

OWN_FORMS: Final = (
    "So the answer is {}.",
    "The answer is {}.",
    "ANSWER: {}",
    "答案：{}",
    "所以答案是{}。",
    "<answer>{}</answer>",
    "{}",
)
"""Forms in which protocols ask for an answer, the most telling first."""
_LAST = 3
"""Announcements at the end of a reply that are looked at."""


def _announced(text: str) -> list[tuple[int, int]]:
    """Where a reply announces answers; Chinese in normal form."""
    return announcements(text, CHINESE if CJK.search(text) else TOLERANT)


def form_traits(text: str, value: str, form: str, reads: Callable[[str], bool]) -> tuple[str, ...]:
    """Why a reader that asks for `form` does not find `value`, which the reply states.

    `reads` says whether the reader finds it in a text. One trait whose absence is enough is told
    alone, else the fewest that have to go together. Empty where no rewriting helps.
    """
    if one := label_trait(text, reads):
        return (one,)
    for name, other in _reworded(text, value, form):
        if reads(other):
            return (name,)
    present = [(name, rewrite) for name, rewrite in TRAITS if rewrite(text) != text]
    plain = _without(text, present)
    for wording, other in (("", plain), *_reworded(plain, value, form)):
        if not reads(other):
            continue
        for trait in list(present):
            fewer = [each for each in present if each is not trait]
            rest = _without(text, fewer)
            again = [("", rest)] if not wording else _reworded(rest, value, form)
            if any(reads(each) for name, each in again if name == wording):
                present = fewer
        return (*(name for name, _ in present), *([wording] if wording else []))
    return ()


def label_trait(text: str, reads: Callable[[str], bool]) -> str:
    """The one trait without which the reader finds the answer in the same words; empty if none."""
    for name, rewrite in TRAITS:
        if (other := rewrite(text)) != text and reads(other):
            return name
    return ""


def _without(text: str, traits: Iterable[tuple[str, Callable[[str], str]]]) -> str:
    for _, rewrite in traits:
        text = rewrite(text)
    return text


def _reworded(text: str, value: str, form: str) -> Iterator[tuple[str, str]]:
    """The reply with one of its last announcements in the reader's own form, then with nothing but
    the value in it."""
    text = normal_chinese(text) if CJK.search(text) else text
    spans = _announced(text)
    own_is_chinese = CJK.search(form) is not None
    if form == "{}":
        if value in text:
            yield "in_sentence", value
        return
    for number in range(len(spans) - 1, max(-1, len(spans) - 1 - _LAST), -1):
        start, end = spans[number]
        said = segment_at(text, spans, number).text
        marker = text[start:end]
        name = "other_marker"
        if not marker:
            name = "boxed"  # a box announces itself
        elif FIELD.search(text, max(0, start - 2), end):
            name = "as_json"
        elif (CJK.search(marker) is not None) != own_is_chinese:
            name = "other_language"
        before = text[: text.rfind("\n", 0, start) + 1]
        bare = said.rstrip(".。 ")
        yield name, before + form.format(bare)
        yield name, before + form.format(f"({bare})")
        short = len(bare) <= 2 * len(value) + 12
        yield ("other_spelling" if short else "more_than_answer"), before + form.format(value)


def announces(text: str) -> bool:
    """Whether a reply announces an answer in any wording."""
    return bool(_announced(normal_chinese(text) if CJK.search(text) else text))


def is_json(text: str) -> bool:
    """Whether the answer is a field of JSON: ``{"answer": "B"}``."""
    return "{" in text and FIELD.search(text) is not None


def denies(text: str) -> bool:
    """Whether a reply says of an answer that it is not the one."""
    text = normal_chinese(text) if CJK.search(text) else text
    return any(standing_of(text, start) == "denied" for start, _ in _announced(text))


def wording_of(text: str) -> str:
    """The words that announce the last answer, without their dressing; a dash if none do."""
    text = normal_chinese(text) if CJK.search(text) else text
    spans = _announced(text)
    if not spans:
        return "-"
    start, end = spans[-1]
    return " ".join(_DRESSING.sub(" ", text[start:end]).casefold().split()) or "\\boxed"


_DRESSING = re.compile(r"[*_`\"'“”:：]")


def says_in_words(text: str, label: str) -> bool:
    """Whether a reply whose answer is the option `label` never writes that letter as a label."""
    text = _capital(_narrow(text))
    if len(label) != 1 or lone_label(text, label):
        return False
    named = re.compile(rf"(?:option|choice|answer|letter|选项?)\W{{0,4}}{label}\b", re.IGNORECASE)
    return named.search(text) is None


# `Answer: 2`, `the second option`, `第三个`: the place of an option in place of its label.
_PLACE = re.compile(
    r"(?:\b(?:answer|option|choice)\b(?: is)?(?: number)?|答案|选项?)\s?[:：#]?\s?(?:是|为)?\s?"
    r"\(?(\d{1,2})(?![\d.,%])"
    r"|\b(first|second|third|fourth|fifth|sixth|last) (?:option|choice|answer|one)\b"
    r"|第[一二三四五六1-9](?:个|项)",
    re.IGNORECASE,
)


def names_a_place(text: str, options: int) -> bool:
    """Whether the end of a reply names an option by its place among `options`."""
    places = list(_PLACE.finditer(text[-400:]))
    return bool(places) and (places[-1][1] is None or 1 <= int(places[-1][1]) <= options)
