"""Find the words in which two texts differ."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import Final, NamedTuple

MOST_WORDS: Final = 4_000
"""Texts with more words than this are not compared, because that would take seconds."""

# A word, a Chinese character, a sign, or the blanks in between: ``So``, `` ``, ``答``, ``.``
_WORD = re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+|\s+|[^\w\s]")


class DiffPiece(NamedTuple):
    """A part of a text, and whether the other text contains it too."""

    text: str
    is_shared: bool


def diff_words(left_text: str, right_text: str) -> tuple[list[DiffPiece], list[DiffPiece]]:
    """Split both texts into shared and different pieces."""
    words = _WORD.findall(left_text), _WORD.findall(right_text)
    if left_text == right_text or max(map(len, words)) > MOST_WORDS:
        return [DiffPiece(left_text, left_text == right_text)], [
            DiffPiece(right_text, left_text == right_text)
        ]
    pieces: tuple[list[DiffPiece], list[DiffPiece]] = ([], [])
    matcher = SequenceMatcher(None, *words)
    for kind, a, b, c, d in matcher.get_opcodes():
        for side, (start, stop) in enumerate(((a, b), (c, d))):
            if start < stop:
                text = "".join(words[side][start:stop])
                pieces[side].append(DiffPiece(text, kind == "equal"))
    return pieces
