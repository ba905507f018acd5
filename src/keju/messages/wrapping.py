"""Text in lines of a terminal, where a wide character takes two cells and may end any line."""

from __future__ import annotations

import unicodedata

# What begins no line, such as the full stop of `。` and the closing `）`, and what ends none.
_NOT_FIRST = frozenset("，。；：！？、）”》…%,.;:!?)")
_NOT_LAST = frozenset("（“《(")


def cells(text: str) -> int:
    """How many cells of a terminal a text takes: two for each wide character."""
    return len(text) + sum(map(_is_wide, text))


def _is_wide(character: str) -> bool:
    return character > "\u10ff" and unicodedata.east_asian_width(character) in "WF"


def pad(text: str, width: int) -> str:
    """The text with spaces up to `width` cells."""
    return text + " " * (width - cells(text))


def wrap(text: str, width: int, *, cut: bool = True) -> list[str]:
    """The lines of a paragraph, of at most `width` cells each.

    A word that is longer than a line is cut, or else left to the terminal, which puts nothing
    into it: a path or a command can then be copied whole.
    """
    lines, line = [], ""
    for space, word in _words(text):
        if line and cells(line) + len(space) + cells(word) > width:
            lines.append(line)
            line = space = ""
        line += space + word
        while cut and cells(line) > width:
            end = next(n for n in range(len(line), 0, -1) if cells(line[:n]) <= width)
            lines.append(line[:end])
            line = line[end:]
    return [*lines, line] if line else lines


def longest(text: str) -> int:
    """The cells of the longest word, in which no line may be broken."""
    return max((cells(word) for _, word in _words(text)), default=0)


def _words(text: str) -> list[tuple[str, str]]:
    """What a line may not be broken in, each with the space before it.

    ``用 --api chat 提问。 [必填]`` is 用, --api, chat, 提, 问。 and [必填]
    """
    words: list[tuple[str, str]] = []
    for part in text.split():
        if part.startswith("["):
            words.append((" ", part))
            continue
        start = 0
        for place in range(1, len(part) + 1):
            before, after = part[place - 1], part[place : place + 1]
            joined = after in _NOT_FIRST or before in _NOT_LAST
            if not after or ((_is_wide(before) or _is_wide(after)) and not joined):
                words.append((" " if words and start == 0 else "", part[start:place]))
                start = place
    return words
