"""Words that fresh questions are made of: lists of Keju's own, one file a list.

Entries stand between commas and line ends: ``walking the dog, feeding the ducks``.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files


@cache
def vocabulary(name: str) -> tuple[str, ...]:
    """The entries of a list in their order; problems name them by their place in it."""
    text = files(__name__).joinpath(f"{name}.txt").read_text(encoding="utf-8")
    return tuple(re.split(r", |\n", text.strip()))
