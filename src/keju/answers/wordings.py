r"""Wordings of replies that announce an answer, in English and in Chinese.

Every pattern is linear: repetitions are possessive and no two neighbours accept the same character.
The Chinese patterns expect text in Unicode normal form KC (`normalise_chinese`), which converts
full-width letters, colons and brackets to ASCII.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate

from keju.answers.decision import LINK, link_strength
from keju.answers.lazy_patterns import lazy_pattern
from keju.answers.phrases import load_pattern

# --- English -----------------------------------------------------------------------------------

ANSWER_COLON = re.compile(r"ANSWER:")
"""The marker in the prompts of EvalScope and Inspect, ``ANSWER: [LETTER]``; not ``Answer:``."""

ANSWER_IS = re.compile(r"answer is\b")
"""The marker in the prompts of the MMLU-Pro authors, ``the answer is (X)``; not ``Answer is``."""


TOLERANT = load_pattern("tolerant")

# --- Chinese -----------------------------------------------------------------------------------

CUE = "答案:"
"""`答案：` in normal form."""


CHINESE_STRICT = load_pattern("chinese_strict")

CHINESE_COMPLETE = load_pattern("chinese_complete")

CHINESE = load_pattern("announcement_zh")

_CLAUSE = load_pattern("remark_comma")


def normalise_chinese(text: str) -> str:
    """Return `text` in normal form KC, with a semicolon before a remark on another option."""
    return _CLAUSE.sub("; ", unicodedata.normalize("NFKC", text))


# --- announcements and boxes -------------------------------------------------------------------

# ` $\(`: only decoration between a marker and its box, `answer is: $\boxed{B}`.
_DRESSING = lazy_pattern(r"[ \t$*:(\[{\\]*+")
# A whole box with its decoration, `$\boxed{\text{B}}$`, nested once; not one of several lines.
_BOX = lazy_pattern(
    r"[ \t$*:(\[{\\]*+boxed ?\{[^{}\n]{0,40}(?:\{[^{}\n]{0,40}\})?[^{}\n]{0,20}\}[\\)$]*+"
)
_NEAR = 120
"""The most characters between a marker and a box that belongs to it."""


FIELD = load_pattern("answer_field")

_STEMS = ("nswer", "NSWER", "orrect ", "ORRECT ", "案")
"""The text after the first letter of every match of `TOLERANT`; quicker to find than a pattern."""
_SMALL_STEMS = ("nswer", "orrect ")


def _select_stems(text: str) -> tuple[str, ...]:
    """Return the stems that may be in a text. Stems in capitals are possible only with an R."""
    return _STEMS if "R" in text or not text.isascii() else _SMALL_STEMS


def _find_tolerant_spans(text: str) -> list[tuple[int, int]]:
    """Return the spans of the matches of `TOLERANT`, in order."""
    spans: list[tuple[int, int]] = []
    for stem in _select_stems(text):
        at = text.find(stem)
        while at >= 0:
            match = TOLERANT.match(text, at - 1) if at else None
            if match:
                spans.append(match.span())
            at = text.find(stem, match.end() if match else at + 1)
    return sorted(spans) if len(spans) > 1 else spans


def may_announce(text: str) -> bool:
    """Whether `TOLERANT`, a box or a field of JSON may announce an answer in a text.

    One character is much quicker to find than two, so it is searched first.
    """
    return (
        any(map(text.__contains__, _select_stems(text)))
        or ("\\" in text and "\\boxed" in text)
        or ('"' in text and '":' in text)
    )


def find_announcements(text: str, pattern: re.Pattern[str] = TOLERANT) -> list[tuple[int, int]]:
    r"""Return the spans at which `pattern` or a box announces an answer, in order.

    A ``\boxed{`` is an announcement with an empty span, so the box is part of the announced text. A
    box after another marker, alone or joined to another box, belongs to that marker.
    """
    if pattern is TOLERANT:
        spans = _find_tolerant_spans(text)
    else:
        spans = [match.span() for match in pattern.finditer(text)]
    if '":' in text and "{" in text:
        spans = sorted([*spans, *_find_fields_apart(text, spans)])
    return _add_boxes(text, spans) if "\\boxed" in text else spans


def _find_fields_apart(text: str, spans: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the spans of fields of JSON that share no characters with `spans`, which are sorted."""
    starts = [start for start, _ in spans]
    furthest_ends = list(accumulate((end for _, end in spans), max, initial=0))
    for field in FIELD.finditer(text):
        if furthest_ends[bisect_left(starts, field.end())] <= field.start():
            yield field.span()


def _add_boxes(text: str, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the spans of all markers, and of the boxes that belong to no marker, in order."""
    # The backslash of each `\boxed{B}`.
    boxes = [(match.start(), match.start()) for match in re.finditer(r"\\boxed", text)]
    kept_spans: list[tuple[int, int]] = []
    for span in sorted(spans + boxes):
        is_box = span[0] == span[1]
        if not (is_box and kept_spans and _box_belongs_to_marker(text, kept_spans[-1][1], span[0])):
            kept_spans.append(span)
    return kept_spans


def _box_belongs_to_marker(text: str, marker_end: int, box: int) -> bool:
    """Whether a box is the answer of the marker before it, or joined to this answer."""
    if box - marker_end > _NEAR:
        return False
    between = text[marker_end:box]
    if _DRESSING.fullmatch(between):
        return True
    position = 0
    while box_match := _BOX.match(between, position):
        link = LINK.match(between, box_match.end())
        position = link.end() if link else box_match.end()
        joint = between[box_match.end() : position]
        if "\n" in joint or link_strength(joint) == "apart":
            return False
        if _DRESSING.fullmatch(between, position):
            return True
    return False
