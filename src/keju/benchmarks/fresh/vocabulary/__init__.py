"""Word lists and phrases for fresh questions, written by Keju; one file per list.

In lists of words, commas and line ends separate entries: ``walking the dog, feeding the ducks``.
Phrases with several parts are JSON.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import TypeVar

import msgspec

_Phrases = TypeVar("_Phrases")


@cache
def vocabulary(name: str) -> tuple[str, ...]:
    """Return the entries of a list in order; problems refer to them by index."""
    text = files(__name__).joinpath(f"{name}.txt").read_text(encoding="utf-8")
    return tuple(re.split(r", |\n", text.strip()))


def read_phrases(name: str, phrases_type: type[_Phrases]) -> _Phrases:
    """Return the content of a JSON file; problems refer to its entries by index."""
    content = files(__name__).joinpath(f"{name}.json").read_bytes()
    return msgspec.json.decode(content, type=phrases_type)
