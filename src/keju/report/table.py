"""The one table renderer of all commands: right widths, plain text in pipes, nothing cut off."""

from __future__ import annotations

import io
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TextIO

from keju.messages import command_lines, spoken
from keju.messages.wrapping import cells, longest, wrap
from keju.report.format import UNKNOWN, Labels, count, printable

if TYPE_CHECKING:
    from rich.table import Table

Cell = str | int | float | None

UNBOUNDED_WIDTH = 10_000
"""Width of a file or pipe: one row is one line there, so that it can be searched and cut."""

_KEY_WIDTH = 20
"""Names in the first column are broken to no fewer characters than this."""
_TEXT_WIDTH = 24
"""The same of a long text: in less room it cannot be read."""
_GAP = 3
"""One blank on each side of a cell and one between the columns."""
_INDENT = 2
"""Of what stands below the head of a record."""


@dataclass(frozen=True)
class Column:
    """A column of a table; numbers stand to the right without being asked."""

    title: str
    align: Literal["left", "right", ""] = ""
    fold: bool = False
    """A long text that may be broken over several lines."""
    spare: int = 0
    """Where the screen is too narrow all columns with the largest number go first; 0 never does."""
    id: bool = False
    """Names its row, as the first column does, and is never broken: it is to be copied."""
    meaning: str = ""
    """What its title does not tell: a line below the first table that shows the column."""


@dataclass(frozen=True)
class _Ready:
    """A column with its cells as text."""

    column: Column
    cells: tuple[str, ...]
    right: bool
    numeric: bool
    width: int
    """Of the title and the cells in one line each."""
    tight: int
    """The same with a title that is broken between its words, and of a text that folds."""
    least: int
    """The same with names that are broken between their parts."""


def render_table(
    columns: Sequence[Column | str],
    rows: Iterable[Sequence[Cell]],
    file: TextIO | None = None,
    *,
    width: int | None = None,
    title: str = "",
) -> None:
    """Print a table to `file` (stdout by default).

    None prints as a dash; a column without any value is left out. Where the columns do not fit
    the width, titles are broken, then spare columns go, then names are broken between their parts;
    where that is not enough, every row becomes a record with all that belongs to it.
    """
    screen = Screen(file, width)
    screen.table(columns, rows, title=title)
    screen.flush()


class Screen:
    """Collects what is to be printed and writes it in one go; colour only on a terminal."""

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
        """Add one paragraph; long ones are wrapped at the width, with their indent."""
        for line in _paragraph(text, self.console.width - indent):
            self.raw(" " * indent + line, style)

    def raw(self, text: str, style: str | None = None) -> None:
        """Add one line as it is: what is longer than the screen is the terminal's to break."""
        from rich.text import Text

        self.console.print(Text(printable(text), style=style or ""), soft_wrap=True)

    def commands(self, steps: Sequence[tuple[str, str]], indent: int = 2) -> None:
        """Add commands as a shell takes them, each with what it does, where that is said.

        That stands beside them where all of it fits the width, else above.
        """
        from rich.cells import cell_len

        longest = max(len(command) for command, _ in steps)
        room = self.console.width - indent - longest
        beside = all(cell_len(f"  # {what}") <= room for _, what in steps)
        for command, what in steps:
            if what and beside:
                lines = [f"{' ' * indent}{command:<{longest}}  # {what}"]
            else:
                if what:
                    self.line(f"# {what}", indent=indent)
                lines = command_lines(command, self.console.width, indent)
            for line in lines:
                self.raw(line)

    def table(
        self, columns: Sequence[Column | str], rows: Iterable[Sequence[Cell]], title: str = ""
    ) -> None:
        """Add a table, or a record for each of its rows where the screen is too narrow for it."""
        ready = _ready(columns, [tuple(row) for row in rows])
        if title:
            self.line(title, style="bold")
        if not ready:
            return
        kept, widths = _fitting(ready, self.console.width)
        if sum(widths) + _GAP * (len(widths) - 1) > self.console.width:
            self._records(ready)
            self._explain(ready)
            return
        self.console.print(_rich_table(kept, widths))
        self._explain(kept)
        if left_out := [column.column.title for column in ready if column not in kept]:
            labels = Labels(spoken())
            names = labels("list_separator").join(left_out)
            self.line(labels("table.no_room", names=names), style="dim")

    def _explain(self, columns: Sequence[_Ready]) -> None:
        """Say what columns mean whose titles do not tell it, each once."""
        labels = Labels(spoken())
        for column in (ready.column for ready in columns):
            if column.meaning and column.meaning not in self._explained:
                self._explained.add(column.meaning)
                text = labels("table.field", title=column.title, value=column.meaning)
                self.line(text, style="dim")

    def _records(self, columns: Sequence[_Ready]) -> None:
        for name, lines in _record_lines(columns, self.console.width):
            if name:
                self.raw(name, style="bold")
            for line in lines:
                self.raw(line)

    def flush(self) -> None:
        """Write everything to the file; characters it cannot hold are replaced."""
        lines = self._buffer.getvalue().split("\n")
        text = "\n".join(line if self.terminal else line.rstrip() for line in lines)
        self._buffer.seek(0)
        self._buffer.truncate()
        encoding = getattr(self.file, "encoding", None) or "utf-8"
        self.file.write(text.encode(encoding, "replace").decode(encoding))
        self.file.flush()


class Record(NamedTuple):
    """A row of a table that does not fit."""

    name: str
    """On a line of its own; empty where nothing names the row."""
    lines: list[str]
    """Each title and value, indented."""


def records_of(
    columns: Sequence[Column | str], rows: Iterable[Sequence[Cell]], width: int
) -> list[Record]:
    """A record for each row, as a table has them that does not fit the width."""
    return list(_record_lines(_ready(columns, [tuple(row) for row in rows]), width))


def _record_lines(columns: Sequence[_Ready], width: int) -> Iterator[Record]:
    labels = Labels(spoken())
    names = [c for n, c in enumerate(columns) if c.column.id or (n == 0 and not c.numeric)]
    others = [column for column in columns if column not in names]
    for row in range(len(columns[0].cells)):
        fields = [
            (
                labels("table.field", title=title, value=cell) if title else cell,
                column.column.fold,
            )
            for column in others
            if (cell := column.cells[row]) not in ("", UNKNOWN)
            for title in [column.column.title]
        ]
        lines = _packed(fields or [(UNKNOWN, False)], width - _INDENT)
        name = " · ".join(column.cells[row] for column in names)
        yield Record(name, [" " * _INDENT + line for line in lines])


def _shown(cell: Cell) -> str:
    if cell is None:
        return UNKNOWN
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, int):
        return count(cell)
    if isinstance(cell, float):
        return f"{cell:,.2f}"
    return printable(cell, one_line=True)


def _paragraph(text: str, width: int) -> list[str]:
    """A text in lines; what has no blank in it, such as a path, is not broken."""
    text = printable(text, one_line=True)
    return [text] if cells(text) <= width else wrap(text, width, cut=False)


def _packed(fields: Sequence[tuple[str, bool]], width: int) -> list[str]:
    """Fields in as few lines as hold them unbroken; a long text has its own."""
    lines: list[str] = []
    open_ = False
    for field, alone in fields:
        own = _paragraph(field, width)
        if open_ and not alone and len(own) == 1 and cells(f"{lines[-1]} · {field}") <= width:
            lines[-1] += f" · {field}"
            continue
        lines += [own[0], *(" " * _INDENT + each for each in _after(field, own[0], width))]
        open_ = not alone and len(own) == 1
    return lines


def _after(text: str, first: str, width: int) -> list[str]:
    """What follows the first line of a text, in lines that are indented."""
    more = printable(text, one_line=True)[len(first) :].strip()
    return _paragraph(more, width - _INDENT) if more else []


def _ready(columns: Sequence[Column | str], rows: Sequence[Sequence[Cell]]) -> list[_Ready]:
    """The columns that hold something, each with its texts and its natural width."""
    from rich.cells import cell_len

    ready: list[_Ready] = []
    for position, title in enumerate(columns):
        column = title if isinstance(title, Column) else Column(title)
        values = [row[position] for row in rows]
        if position and rows and all(value in (None, "", UNKNOWN) for value in values):
            continue
        shown = tuple(_shown(value) for value in values)
        numeric = bool(values) and all(
            value is None or isinstance(value, int | float) for value in values
        )
        right = column.align == "right" or (column.align == "" and numeric)
        width = max(map(cell_len, (column.title, *shown)))
        if column.fold:
            tight = max(min(width, _TEXT_WIDTH), *map(longest, (column.title, *shown)))
        else:
            tight = max(map(cell_len, (*column.title.split(), *shown)), default=0)
        least = tight
        if position == 0 and not column.id and not column.fold:
            parts = (cell_len(part.rstrip()) for cell in shown for part in _PART.findall(cell))
            least = max(min(tight, _KEY_WIDTH), max(parts, default=0))
        ready.append(_Ready(column, shown, right, numeric, width, tight, least))
    return ready


def _fitting(columns: list[_Ready], width: int) -> tuple[list[_Ready], list[int]]:
    """The columns for which there is room, and how wide each is; too wide where nothing helps.

    Titles are broken first; then the columns that can be spared go; then names are broken.
    """
    room = width - _GAP * (len(columns) - 1)
    natural = [column.tight if column.column.fold else column.width for column in columns]
    if sum(natural) <= room:
        return columns, _widened(columns, natural, room)
    kept = columns
    for number in sorted({c.column.spare for c in columns} - {0}, reverse=True):
        if sum(c.tight for c in kept) <= width - _GAP * (len(kept) - 1):
            break
        kept = [column for column in kept if column.column.spare != number]
    room = width - _GAP * (len(kept) - 1)
    tight = [column.tight for column in kept]
    tight[0] = max(kept[0].least, min(tight[0], room - sum(tight[1:])))
    return kept, _widened(kept, tight, room)


def _widened(columns: Sequence[_Ready], widths: list[int], room: int) -> list[int]:
    """The widths with the room that is left given to texts that fold, the shortest first."""
    spare = room - sum(widths)
    folding = [n for n, column in enumerate(columns) if column.column.fold]
    for place, number in enumerate(sorted(folding, key=lambda n: columns[n].width)):
        share = spare // (len(folding) - place)
        more = max(0, min(columns[number].width - widths[number], share))
        widths[number] += more
        spare -= more
    return widths


# A part of a name, up to where a line may end: `demo_`, `objects_`, `runs/`.
_PART = re.compile(r"[^_\-./\s]*[_\-./\s]?")


def _broken(name: str, room: int) -> str:
    """A name in lines of at most `room` cells, as far as its parts allow."""
    from rich.cells import cell_len

    lines = [""]
    for part in _PART.findall(name):
        if lines[-1] and cell_len(lines[-1] + part.rstrip()) > room:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def _rich_table(columns: Sequence[_Ready], widths: Sequence[int]) -> Table:
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
        justify: Literal["left", "right"] = "right" if ready.right else "left"
        table.add_column(Text(ready.column.title), justify=justify, width=width, overflow="fold")
        if ready.column.fold:
            drawn.append(["\n".join(_paragraph(cell, width)) for cell in ready.cells])
        elif position == 0:
            drawn.append([_broken(cell, width) for cell in ready.cells])
        else:
            drawn.append(ready.cells)
    for row in zip(*drawn, strict=True):
        table.add_row(*(Text(cell) for cell in row))
    return table
