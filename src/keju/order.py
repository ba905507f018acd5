"""The order in which people expect names."""

from __future__ import annotations

import re

_DIGITS = re.compile(r"(\d+)")


def natural_key(text: str) -> tuple[tuple[int, int, str], ...]:
    """Sort key that puts ``q2`` before ``q10``."""
    parts = _DIGITS.split(text)
    return tuple((1, int(p), "") if p.isdecimal() else (0, 0, p) for p in parts if p)
