"""Whether data is the published data: how many rows it has, and which row is which."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from keju.errors import Notice

SHOWN = 5
"""How many differences a warning names."""


class Count(NamedTuple):
    """Rows of one table or subset."""

    name: str
    rows: int
    published: int

    @property
    def differs(self) -> bool:
        return self.rows != self.published


def count_warnings(counts: Sequence[Count]) -> tuple[Notice, ...]:
    """One warning for the results where any number of rows is not the published one."""
    different = [f"{c.name} has {c.rows} of {c.published}" for c in counts if c.differs]
    if not different:
        return ()
    rows, more = ", ".join(different[:SHOWN]), len(different) - SHOWN
    if more > 0:
        return (Notice("not_published_rows_more", {"rows": rows, "more": more}),)
    return (Notice("not_published_rows", {"rows": rows}),)


def fingerprint(text: str, target: str) -> str:
    """A short hash of a row, by which an erratum recognises the row that it is about."""
    return hashlib.sha256(f"{text}\0{target}".encode()).hexdigest()[:12]
