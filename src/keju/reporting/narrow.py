"""A table of names and numbers in a terminal that may be narrow."""

from __future__ import annotations

from collections.abc import Sequence
from os.path import commonprefix
from typing import TYPE_CHECKING

from keju.messages.wrapping import cells
from keju.reporting.format import shorten_name

if TYPE_CHECKING:
    from rich.table import Table

GAP = 3
"""The number of blanks between the columns of a table that fits the width."""
MIN_NAME_WIDTH = 8
"""The number of characters that a name keeps in the narrowest terminal."""


def named_rows(rows: Sequence[Sequence[str]], width: int) -> Table:
    """Return rows of names and numbers as a table, with the titles in the first row.

    In a narrow terminal, titles are broken between words, names are shortened to the part that
    distinguishes them, and the last columns are dropped. A number is never cut.
    """
    from rich.table import Table

    titles, *data_rows = rows
    gap, widths = GAP, [max(map(cells, column)) for column in zip(*rows, strict=True)]
    if sum(widths) + gap * (len(widths) - 1) > width:
        gap = 1
        words = [max(map(cells, title.split()), default=0) for title in titles]
        numbers = [max(map(cells, column)) for column in zip(*data_rows, strict=True)]
        widths = [max(pair) for pair in zip(words, numbers, strict=True)]
        while (
            len(widths) > 2 and MIN_NAME_WIDTH + sum(widths[1:]) + gap * (len(widths) - 1) > width
        ):
            widths.pop()
        widths[0] = max(
            MIN_NAME_WIDTH, min(widths[0], width - sum(widths[1:]) - gap * (len(widths) - 1))
        )
    table = Table.grid(padding=(0, gap, 0, 0))
    for column_width in widths:
        table.add_column(width=column_width)
    table.add_row(*titles[: len(widths)])
    for name, row in zip(
        shorten_distinctly([row[0] for row in data_rows], widths[0]), data_rows, strict=True
    ):
        table.add_row(name, *row[1 : len(widths)])
    return table


def shorten_distinctly(names: Sequence[str], limit: int) -> list[str]:
    """Shorten names to at most `limit` characters so that they can still be distinguished.

    Names that fit stay as they are. Otherwise the part that all of them share is removed, for
    example ``demo/``.
    """
    if max(map(len, names), default=0) <= limit:
        return list(names)
    shared = commonprefix(names) if len(names) > 1 else ""  # noqa: RUF071 (of any letters)
    exam = shared.rfind("/") + 1
    if max(len(name) - exam for name in names) <= limit:
        return [name[exam:] for name in names]
    cut = max(map(shared.rfind, "/-_ ")) + 1
    return [shorten_name(f"…{name[cut:]}" if cut > 1 else name, limit) for name in names]
