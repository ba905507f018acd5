"""Tables of subsets and groups for pages: their order, and rows that are below chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from keju.reporting import format as fmt
from keju.reporting.format import Labels
from keju.results.schema import SubsetRow
from keju.types import Outcome

ORDERS = ("exam", "lowest", "highest")
"""The orders that a page without scripts offers; the first one is the default."""


class TableRow(NamedTuple):
    """A row of a table of subsets."""

    row: SubsetRow
    title: str
    href: str
    is_below_chance: bool
    """Whether the whole interval is below the chance level."""


class RowTable(NamedTuple):
    """A table of subsets, groups or kinds of questions."""

    title: str
    """The title of the first column."""
    mean: str
    orders: list[tuple[str, list[TableRow]]]
    """The rows by order; a page with scripts sorts the first ones."""
    outcomes: list[Outcome]
    """The outcomes that have a column."""
    has_chance: bool = False
    references: Sequence[tuple[str, str, Mapping[str, float]]] = ()
    """Published scores: name, style of the mark, score by subset."""
    has_micro: bool = False

    @property
    def rows(self) -> list[TableRow]:
        """The rows in the first order."""
        return self.orders[0][1]

    @property
    def has_below_chance(self) -> bool:
        """Whether any row is below chance."""
        return any(row.is_below_chance for row in self.rows)


def is_below_chance(row: SubsetRow) -> bool:
    """Return whether the whole interval of a row is below its chance level."""
    return row.chance is not None and row.ci95 is not None and row.ci95[1] < row.chance


def subset_table(
    rows: Sequence[SubsetRow],
    labels: Labels,
    *,
    links: Mapping[str, str],
    references: Sequence[tuple[str, str, Mapping[str, float]]] = (),
    is_static: bool = False,
) -> RowTable:
    """Return the table of subsets; a static page gets the rows in every order."""
    table_rows = _table_rows(rows, labels, links)
    return RowTable(
        labels("subset"),
        labels("accuracy"),
        _orders(table_rows) if is_static else [(ORDERS[0], table_rows)],
        fmt.occurring_outcomes(rows),
        any(row.chance is not None for row in rows),
        references,
    )


def group_table(rows: Sequence[SubsetRow], labels: Labels) -> RowTable:
    """Return the table of groups of subsets."""
    table_rows = _table_rows(rows, labels, {})
    orders = [(ORDERS[0], table_rows)]
    return RowTable(labels("group"), labels("group_mean"), orders, [], has_micro=True)


def kind_table(breakdown: fmt.MetricBreakdown) -> RowTable:
    """Return the table of kinds of questions."""
    rows = [TableRow(row, row.name, "", is_below_chance(row)) for row in breakdown.rows]
    return RowTable(breakdown.kind, breakdown.metric, [(ORDERS[0], rows)], [])


def _table_rows(
    rows: Sequence[SubsetRow], labels: Labels, links: Mapping[str, str]
) -> list[TableRow]:
    return [
        TableRow(row, labels.row(row), links.get(row.name, ""), is_below_chance(row))
        for row in rows
    ]


def _orders(rows: list[TableRow]) -> list[tuple[str, list[TableRow]]]:
    """Return the rows in every order; rows without a score come last."""
    scored = [row for row in rows if row.row.accuracy is not None]
    unscored = [row for row in rows if row.row.accuracy is None]
    if len(scored) < 2:
        return [(ORDERS[0], rows)]
    lowest = sorted(scored, key=lambda row: row.row.accuracy or 0.0)
    highest = sorted(scored, key=lambda row: -(row.row.accuracy or 0.0))
    return list(zip(ORDERS, (rows, lowest + unscored, highest + unscored), strict=True))
