"""The words in which two texts differ."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import Final, NamedTuple

MOST_WORDS: Final = 4_000
"""Words of a text beyond which nothing is compared: that would take seconds."""

# A word, a Chinese character, a sign, or what is between them: ``So``, `` ``, ``答``, ``.``
_WORD = re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+|\s+|[^\w\s]")


class Piece(NamedTuple):
    """A part of a text, and whether the other text has it too."""

    text: str
    same: bool


def differing(one: str, other: str) -> tuple[list[Piece], list[Piece]]:
    """Both texts in pieces."""
    words = _WORD.findall(one), _WORD.findall(other)
    if one == other or max(map(len, words)) > MOST_WORDS:
        return [Piece(one, one == other)], [Piece(other, one == other)]
    pieces: tuple[list[Piece], list[Piece]] = ([], [])
    matcher = SequenceMatcher(None, *words)
    for kind, a, b, c, d in matcher.get_opcodes():
        for side, (start, stop) in enumerate(((a, b), (c, d))):
            if start < stop:
                text = "".join(words[side][start:stop])
                pieces[side].append(Piece(text, kind == "equal"))
    return pieces
