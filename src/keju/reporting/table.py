"""The table renderer of all commands: aligned columns, plain text in pipes, no cell cut off."""

from __future__ import annotations

import io
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TextIO

from keju.messages import command_lines, current_language
from keju.messages.wrapping import cells, longest, wrap
from keju.reporting.format import UNKNOWN, Labels, count, printable

if TYPE_CHECKING:
    from rich.table import Table

Cell = str | int | float | None

UNBOUNDED_WIDTH = 10_000
"""The width of a file or pipe: every row is one line, so that grep and cut work."""

_KEY_WIDTH = 20
"""Names in the first column are not broken into parts shorter than this."""
_TEXT_WIDTH = 24
"""The smallest width of a long text; a narrower one is not readable."""
_GAP = 3
"""One blank on each side of a cell and one between the columns."""
_INDENT = 2
"""The indentation of the lines below the head of a record."""


@dataclass(frozen=True)
class TableColumn:
    """A column of a table; numbers are aligned to the right by default."""

    title: str
    align: Literal["left", "right", ""] = ""
    fold: bool = False
    """A long text that may be broken over several lines."""
    spare: int = 0
    """On a narrow screen, columns with the largest number are dropped first; 0 is always kept."""
    id: bool = False
    """An identifier of the row, like the first column; it is never broken and can be copied."""
    meaning: str = ""
    """An explanation of the title, printed once below the first table that shows the column."""


@dataclass(frozen=True)
class _PreparedColumn:
    """A column with its cells as text."""

    column: TableColumn
    cells: tuple[str, ...]
    is_right_aligned: bool
    is_numeric: bool
    width: int
    """The width of the title and the cells on one line each."""
    tight_width: int
    """The same width if the title is broken between words and a long text is folded."""
    minimum_width: int
    """The same width if names are also broken between their parts."""


def render_table(
    columns: Sequence[TableColumn | str],
    rows: Iterable[Sequence[Cell]],
    file: TextIO | None = None,
    *,
    width: int | None = None,
    title: str = "",
) -> None:
    """Print a table to `file` (stdout by default).

    None prints as a dash; a column without values is dropped. If the columns do not fit the width,
    titles are broken first, then spare columns are dropped, then names are broken between their
    parts. If the table still does not fit, every row is printed as a record with all its fields.
    """
    screen = TerminalScreen(file, width)
    screen.table(columns, rows, title=title)
    screen.flush()


class TerminalScreen:
    """Collects the output and writes it in one call; uses colours only on a terminal."""

    def __init__(self, file: TextIO | None = None, width: int | None = None) -> None:
        from rich.console import Console

        self.file = file if file is not None else sys.stdout
        try:
            self.terminal = self.file.isatty()
        except (AttributeError, ValueError):  # not a real file, or closed
            self.terminal = False
        if width is None:
            width = shutil.get_terminal_size().columns if self.terminal else UNBOUNDED_WIDTH
        self._explained: set[str] = set()
        self._buffer = io.StringIO()
        self.console = Console(
            file=self._buffer,
            force_terminal=self.terminal,
            force_jupyter=False,
            no_color=None if self.terminal else True,
            width=width,
            highlight=False,
            markup=False,
            emoji=False,
        )

    def line(self, text: str = "", style: str | None = None, indent: int = 0) -> None:
        """Add one paragraph; wrap it at the width of the screen and keep its indentation."""
        for line in _wrap(text, self.console.width - indent):
            self.raw(" " * indent + line, style)

    def raw(self, text: str, style: str | None = None) -> None:
        """Add one line without wrapping it; the terminal breaks a longer line."""
        from rich.text import Text

        self.console.print(Text(printable(text), style=style or ""), soft_wrap=True)

    def commands(self, steps: Sequence[tuple[str, str]], indent: int = 2) -> None:
        """Add shell commands, each with its purpose if it has one.

        The purpose follows the command if all commands fit the width; otherwise it precedes the
        command.
        """
        from rich.cells import cell_len

        longest = max(len(command) for command, _ in steps)
        room = self.console.width - indent - longest
        is_side_by_side = all(cell_len(f"  # {purpose}") <= room for _, purpose in steps)
        for command, purpose in steps:
            if purpose and is_side_by_side:
                lines = [f"{' ' * indent}{command:<{longest}}  # {purpose}"]
            else:
                if purpose:
                    self.line(f"# {purpose}", indent=indent)
                lines = command_lines(command, self.console.width, indent)
            for line in lines:
                self.raw(line)

    def table(
        self, columns: Sequence[TableColumn | str], rows: Iterable[Sequence[Cell]], title: str = ""
    ) -> None:
        """Add a table, or a record for each row if the screen is too narrow."""
        ready = _measure(columns, [tuple(row) for row in rows])
        if title:
            self.line(title, style="bold")
        if not ready:
            return
        visible, widths = _fit(ready, self.console.width)
        if sum(widths) + _GAP * (len(widths) - 1) > self.console.width:
            self._records(ready)
            self._print_meanings(ready)
            return
        self.console.print(_rich_table(visible, widths))
        self._print_meanings(visible)
        if left_out := [column.column.title for column in ready if column not in visible]:
            labels = Labels(current_language())
            names = labels("list_separator").join(left_out)
            self.line(labels("table.no_room", names=names), style="dim")

    def _print_meanings(self, columns: Sequence[_PreparedColumn]) -> None:
        """Print the explanation of each column once."""
        labels = Labels(current_language())
        for column in (ready.column for ready in columns):
            if column.meaning and column.meaning not in self._explained:
                self._explained.add(column.meaning)
                text = labels("table.field", title=column.title, value=column.meaning)
                self.line(text, style="dim")

    def _records(self, columns: Sequence[_PreparedColumn]) -> None:
        for name, lines in _record_lines(columns, self.console.width):
            if name:
                self.raw(name, style="bold")
            for line in lines:
                self.raw(line)

    def flush(self) -> None:
        """Write everything to the file; replace characters that its encoding cannot represent."""
        lines = self._buffer.getvalue().split("\n")
        text = "\n".join(line if self.terminal else line.rstrip() for line in lines)
        self._buffer.seek(0)
        self._buffer.truncate()
        encoding = getattr(self.file, "encoding", None) or "utf-8"
        self.file.write(text.encode(encoding, "replace").decode(encoding))
        self.file.flush()


class StackedRow(NamedTuple):
    """A row of a table that does not fit the width."""

    name: str
    """The first line; empty if no column names the row."""
    lines: list[str]
    """The titles and values, indented."""


def records_of(
    columns: Sequence[TableColumn | str], rows: Iterable[Sequence[Cell]], width: int
) -> list[StackedRow]:
    """Return a record for each row, in the form that replaces a table that is too wide."""
    return list(_record_lines(_measure(columns, [tuple(row) for row in rows]), width))


def _record_lines(columns: Sequence[_PreparedColumn], width: int) -> Iterator[StackedRow]:
    labels = Labels(current_language())
    names = [c for n, c in enumerate(columns) if c.column.id or (n == 0 and not c.is_numeric)]
    value_columns = [column for column in columns if column not in names]
    for row in range(len(columns[0].cells)):
        fields = [
            (
                labels("table.field", title=title, value=cell) if title else cell,
                column.column.fold,
            )
            for column in value_columns
            if (cell := column.cells[row]) not in ("", UNKNOWN)
            for title in [column.column.title]
        ]
        lines = _pack(fields or [(UNKNOWN, False)], width - _INDENT)
        name = " · ".join(column.cells[row] for column in names)
        yield StackedRow(name, [" " * _INDENT + line for line in lines])


def _cell_text(cell: Cell) -> str:
    if cell is None:
        return UNKNOWN
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, int):
        return count(cell)
    if isinstance(cell, float):
        return f"{cell:,.2f}"
    return printable(cell, one_line=True)


def _wrap(text: str, width: int) -> list[str]:
    """Wrap a text; a word without blanks, such as a path, is not broken."""
    text = printable(text, one_line=True)
    return [text] if cells(text) <= width else wrap(text, width, cut=False)


def _pack(fields: Sequence[tuple[str, bool]], width: int) -> list[str]:
    """Join fields into as few lines as possible; a long text gets separate lines."""
    lines: list[str] = []
    open_ = False
    for field, alone in fields:
        field_lines = _wrap(field, width)
        if (
            open_
            and not alone
            and len(field_lines) == 1
            and cells(f"{lines[-1]} · {field}") <= width
        ):
            lines[-1] += f" · {field}"
            continue
        lines += [
            field_lines[0],
            *(" " * _INDENT + line for line in _wrap_remainder(field, field_lines[0], width)),
        ]
        open_ = not alone and len(field_lines) == 1
    return lines


def _wrap_remainder(text: str, first_line: str, width: int) -> list[str]:
    """Return the rest of a text after its first line, wrapped and indented."""
    remainder = printable(text, one_line=True)[len(first_line) :].strip()
    return _wrap(remainder, width - _INDENT) if remainder else []


def _measure(
    columns: Sequence[TableColumn | str], rows: Sequence[Sequence[Cell]]
) -> list[_PreparedColumn]:
    """Return the columns that have values, each with its texts and widths."""
    from rich.cells import cell_len

    ready: list[_PreparedColumn] = []
    for position, title in enumerate(columns):
        column = title if isinstance(title, TableColumn) else TableColumn(title)
        values = [row[position] for row in rows]
        if position and rows and all(value in (None, "", UNKNOWN) for value in values):
            continue
        texts = tuple(_cell_text(value) for value in values)
        numeric = bool(values) and all(
            value is None or isinstance(value, int | float) for value in values
        )
        right = column.align == "right" or (column.align == "" and numeric)
        width = max(map(cell_len, (column.title, *texts)))
        if column.fold:
            tight = max(min(width, _TEXT_WIDTH), *map(longest, (column.title, *texts)))
        else:
            tight = max(map(cell_len, (*column.title.split(), *texts)), default=0)
        minimum = tight
        if position == 0 and not column.id and not column.fold:
            parts = (cell_len(part.rstrip()) for cell in texts for part in _PART.findall(cell))
            minimum = max(min(tight, _KEY_WIDTH), max(parts, default=0))
        ready.append(_PreparedColumn(column, texts, right, numeric, width, tight, minimum))
    return ready


def _fit(columns: list[_PreparedColumn], width: int) -> tuple[list[_PreparedColumn], list[int]]:
    """Select the columns that fit, with their widths; the result is too wide if nothing helps.

    Titles are broken first, then spare columns are dropped, then names are broken.
    """
    room = width - _GAP * (len(columns) - 1)
    natural = [column.tight_width if column.column.fold else column.width for column in columns]
    if sum(natural) <= room:
        return columns, _widen(columns, natural, room)
    visible = columns
    for number in sorted({c.column.spare for c in columns} - {0}, reverse=True):
        if sum(c.tight_width for c in visible) <= width - _GAP * (len(visible) - 1):
            break
        visible = [column for column in visible if column.column.spare != number]
    room = width - _GAP * (len(visible) - 1)
    tight = [column.tight_width for column in visible]
    tight[0] = max(visible[0].minimum_width, min(tight[0], room - sum(tight[1:])))
    return visible, _widen(visible, tight, room)


def _widen(columns: Sequence[_PreparedColumn], widths: list[int], room: int) -> list[int]:
    """Distribute the remaining width over the folded texts, the shortest first."""
    spare = room - sum(widths)
    folding = [n for n, column in enumerate(columns) if column.column.fold]
    for place, number in enumerate(sorted(folding, key=lambda n: columns[n].width)):
        share = spare // (len(folding) - place)
        extra = max(0, min(columns[number].width - widths[number], share))
        widths[number] += extra
        spare -= extra
    return widths


# A part of a name, up to a place where a line may end: `demo_`, `objects_`, `runs/`.
_PART = re.compile(r"[^_\-./\s]*[_\-./\s]?")


def _break_name(name: str, room: int) -> str:
    """Break a name into lines of at most `room` cells, as far as its parts allow."""
    from rich.cells import cell_len

    lines = [""]
    for part in _PART.findall(name):
        if lines[-1] and cell_len(lines[-1] + part.rstrip()) > room:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def _rich_table(columns: Sequence[_PreparedColumn], widths: Sequence[int]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(
        box=box.Box("    \n    \n -- \n    \n    \n    \n    \n    \n", ascii=True),
        show_edge=False,
        pad_edge=False,
        padding=(0, 1),
        collapse_padding=False,
        header_style="bold",
    )
    drawn: list[Sequence[str]] = []
    for position, (ready, width) in enumerate(zip(columns, widths, strict=True)):
        justify: Literal["left", "right"] = "right" if ready.is_right_aligned else "left"
        table.add_column(Text(ready.column.title), justify=justify, width=width, overflow="fold")
        if ready.column.fold:
            drawn.append(["\n".join(_wrap(cell, width)) for cell in ready.cells])
        elif position == 0:
            drawn.append([_break_name(cell, width) for cell in ready.cells])
        else:
            drawn.append(ready.cells)
    for row in zip(*drawn, strict=True):
        table.add_row(*(Text(cell) for cell in row))
    return table
