"""The words and patterns of the reader, which are data: ``phrases.txt``.

A section begins with its name, ``[correction]``. Its lines together are one regular expression, a
part of other expressions, or words with ``|`` between them. ``<<name>>`` inserts another section.
Patterns ignore case unless the header says ``cased``. Further flags are ``ascii`` and ``dotall``.
Lines that begin with ``# `` are comments: what a pattern matches and what it must not match.
"""

from __future__ import annotations

import re
from functools import cache, partial
from importlib.resources import files

from keju.answers.lazy_patterns import lazy_pattern

_HEADER = re.compile(r"\[([a-z_]+)((?: [a-z]+)*)\]")
_INSERTED = re.compile("<<([a-z_]+)>>")
_FLAGS = {"ascii": re.ASCII, "dotall": re.DOTALL}


@cache
def _sections() -> dict[str, tuple[str, list[str]]]:
    """Return the text and the flags of each section."""
    sections: dict[str, tuple[str, list[str]]] = {}
    name = ""
    text = files("keju.answers").joinpath("phrases.txt").read_text("utf-8")
    for line in text.split("\n"):
        if header := _HEADER.fullmatch(line):
            name = header[1]
            sections[name] = ("", header[2].split())
        elif line and not line.startswith("# "):
            sections[name] = (sections[name][0] + line, sections[name][1])
    return sections


def load_phrase(name: str) -> str:
    """Return the text of a section with all inserted sections."""
    return _INSERTED.sub(lambda inserted: load_phrase(inserted[1]), _sections()[name][0])


def load_pattern(name: str) -> re.Pattern[str]:
    """Return the pattern of a section."""
    flag_names = _sections()[name][1]
    flags = 0 if "cased" in flag_names else re.IGNORECASE
    for flag_name in flag_names:
        flags |= _FLAGS.get(flag_name, 0)
    return lazy_pattern(partial(load_phrase, name), flags)


def load_words(name: str) -> tuple[str, ...]:
    """Return the words of a section, in order."""
    return tuple(load_phrase(name).split("|"))
