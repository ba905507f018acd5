"""Wrapping of text for a terminal, where a wide character takes two cells and may end a line."""

from __future__ import annotations

import unicodedata

# Characters that may not begin a line, such as `。` and `）`, and those that may not end one.
_NOT_FIRST = frozenset("，。；：！？、）”》…%,.;:!?)")
_NOT_LAST = frozenset("（“《(")


def cells(text: str) -> int:
    """Return the number of cells of a text: two for each wide character."""
    return len(text) + sum(map(_is_wide, text))


def _is_wide(character: str) -> bool:
    return character > "\u10ff" and unicodedata.east_asian_width(character) in "WF"


def pad(text: str, width: int) -> str:
    """Return the text padded with spaces to `width` cells."""
    return text + " " * (width - cells(text))


def wrap(text: str, width: int, *, cut: bool = True) -> list[str]:
    """Return the lines of a paragraph, of at most `width` cells each.

    With `cut`, a word longer than a line is cut. Otherwise it stays whole, so that a path or a
    command can be copied.
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
    """Return the width of the longest word, which may not be broken, in cells."""
    return max((cells(word) for _, word in _words(text)), default=0)


def _words(text: str) -> list[tuple[str, str]]:
    """Return the unbreakable parts of a text, each with the space before it.

    ``用 --api chat 提问。 [必填]`` is 用, --api, chat, 提, 问。 and [必填]
    """
    words: list[tuple[str, str]] = []
    for part in text.split():
        if part.startswith("["):
            words.append((" ", part))
            continue
        start = 0
        for end in range(1, len(part) + 1):
            last_character, next_character = part[end - 1], part[end : end + 1]
            is_joined = next_character in _NOT_FIRST or last_character in _NOT_LAST
            if not next_character or (
                (_is_wide(last_character) or _is_wide(next_character)) and not is_joined
            ):
                words.append((" " if words and start == 0 else "", part[start:end]))
                start = end
    return words
