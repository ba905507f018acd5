"""A table of names and numbers in a terminal that may be narrow."""

from __future__ import annotations

from collections.abc import Sequence
from os.path import commonprefix
from typing import TYPE_CHECKING

from keju.messages.wrapping import cells
from keju.report.format import shorten_name

if TYPE_CHECKING:
    from rich.table import Table

GAP = 3
"""Blanks between the columns of a table that has room."""
LEAST = 8
"""Characters that a name keeps in the narrowest terminal."""


def named_rows(rows: Sequence[Sequence[str]], width: int) -> Table:
    """Rows below their titles, each after its name.

    In a narrow terminal titles are broken between words, names keep what tells them apart, and the
    last columns are left out: a number is never cut.
    """
    from rich.table import Table

    titles, *below = rows
    gap, widths = GAP, [max(map(cells, own)) for own in zip(*rows, strict=True)]
    if sum(widths) + gap * (len(widths) - 1) > width:
        gap = 1
        words = [max(map(cells, title.split()), default=0) for title in titles]
        numbers = [max(map(cells, own)) for own in zip(*below, strict=True)]
        widths = [max(pair) for pair in zip(words, numbers, strict=True)]
        while len(widths) > 2 and LEAST + sum(widths[1:]) + gap * (len(widths) - 1) > width:
            widths.pop()
        widths[0] = max(LEAST, min(widths[0], width - sum(widths[1:]) - gap * (len(widths) - 1)))
    table = Table.grid(padding=(0, gap, 0, 0))
    for each in widths:
        table.add_column(width=each)
    table.add_row(*titles[: len(widths)])
    for name, row in zip(told_apart([row[0] for row in below], widths[0]), below, strict=True):
        table.add_row(name, *row[1 : len(widths)])
    return table


def told_apart(names: Sequence[str], limit: int) -> list[str]:
    """Names of at most `limit` characters: as they are where all fit, else without what all begin
    with (``fresh_bbh/``), so that what tells them apart is left."""
    if max(map(len, names), default=0) <= limit:
        return list(names)
    shared = commonprefix(names) if len(names) > 1 else ""  # noqa: RUF071 (of any letters)
    exam = shared.rfind("/") + 1
    if max(len(name) - exam for name in names) <= limit:
        return [name[exam:] for name in names]
    cut = max(map(shared.rfind, "/-_ ")) + 1
    return [shorten_name(f"…{name[cut:]}" if cut > 1 else name, limit) for name in names]
