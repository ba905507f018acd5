"""Word lists for fresh questions, written by Keju; one file per list.

Commas and line ends separate entries: ``walking the dog, feeding the ducks``.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files


@cache
def vocabulary(name: str) -> tuple[str, ...]:
    """Return the entries of a list in order; problems refer to them by index."""
    text = files(__name__).joinpath(f"{name}.txt").read_text(encoding="utf-8")
    return tuple(re.split(r", |\n", text.strip()))
