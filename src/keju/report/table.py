"""The one table renderer of all commands: right widths, plain text in pipes, nothing cut off."""

from __future__ import annotations

import io
import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TextIO

from keju.messages import command_lines, spoken
from keju.report.format import UNKNOWN, Labels, count, printable

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

Cell = str | int | float | None

UNBOUNDED_WIDTH = 10_000
"""Width of a file or pipe: one row is one line there, so that it can be searched and cut."""

_KEY_WIDTH = 12
"""The first column is folded to no fewer characters than this."""
_GAP = 3
"""One blank on each side of a cell and one between the columns."""


@dataclass(frozen=True)
class Column:
    """A column of a table; numbers stand to the right without being asked."""

    title: str
    align: Literal["left", "right", ""] = ""
    fold: bool = False
    """A long text that may be broken over several lines."""
    spare: int = 0
    """Where the screen is too narrow all columns with the largest number go first; 0 never does."""


@dataclass(frozen=True)
class _Ready:
    """A column with its cells as text."""

    column: Column
    cells: tuple[str, ...]
    right: bool
    width: int
    """Of the title and the cells in one line each."""
    least: int
    """The same with a title that is broken between its words, or of a text that folds."""


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
    the width, titles are broken, then spare columns go, and what is still too much follows in a
    further table that repeats the first column.
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
        from rich.padding import Padding
        from rich.text import Text

        content: RenderableType = Text(printable(text, one_line=True), style=style or "")
        if indent:
            content = Padding(content, (0, 0, 0, indent), expand=False)
        self.console.print(content, soft_wrap=False)

    def commands(self, steps: Sequence[tuple[str, str]], indent: int = 2) -> None:
        """Add commands as a shell takes them, each with what it does, where that is said.

        That stands beside them where all of it fits the width, else above.
        """
        from rich.cells import cell_len
        from rich.text import Text

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
                self.console.print(Text(printable(line)), soft_wrap=True)

    def table(
        self, columns: Sequence[Column | str], rows: Iterable[Sequence[Cell]], title: str = ""
    ) -> None:
        """Add a table, in several blocks where it is wider than the screen."""
        ready = _ready(columns, [tuple(row) for row in rows])
        if title:
            self.line(title, style="bold")
        kept, tight = _fitting(ready, self.console.width)
        for number, block in enumerate(_blocks(kept, self.console.width, tight=tight)):
            if number:
                self.line()
            self.console.print(
                _rich_table(_with_broken_keys(block, self.console.width), tight=tight)
            )
        if left_out := [column.column.title for column in ready if column not in kept]:
            names = ", ".join(left_out)
            self.line(Labels(spoken())("table.no_room", names=names), style="dim")

    def flush(self) -> None:
        """Write everything to the file; characters it cannot hold are replaced."""
        lines = self._buffer.getvalue().split("\n")
        text = "\n".join(line if self.terminal else line.rstrip() for line in lines)
        self._buffer.seek(0)
        self._buffer.truncate()
        encoding = getattr(self.file, "encoding", None) or "utf-8"
        self.file.write(text.encode(encoding, "replace").decode(encoding))
        self.file.flush()


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


def _ready(columns: Sequence[Column | str], rows: Sequence[Sequence[Cell]]) -> list[_Ready]:
    """The columns that hold something, each with its texts and its natural width."""
    from rich.cells import cell_len

    ready: list[_Ready] = []
    for position, title in enumerate(columns):
        column = title if isinstance(title, Column) else Column(title)
        values = [row[position] for row in rows]
        if position and rows and all(value in (None, "", UNKNOWN) for value in values):
            continue
        cells = tuple(_shown(value) for value in values)
        numeric = all(value is None or isinstance(value, int | float) for value in values)
        right = column.align == "right" or (column.align == "" and numeric and bool(values))
        width = max(map(cell_len, (column.title, *cells)))
        unfolded = max(map(cell_len, (*column.title.split(), *cells)), default=0)
        least = min(width, _KEY_WIDTH) if column.fold else unfolded
        ready.append(_Ready(column, cells, right, width, least))
    return ready


def _fitting(columns: list[_Ready], width: int) -> tuple[list[_Ready], bool]:
    """The columns for which there is room, and whether their titles are broken between words.

    Titles are broken first; then the columns that can be spared go.
    """
    if sum(_GAP + c.width for c in columns if c is columns[0] or not c.column.fold) <= width + _GAP:
        return columns, False
    kept = columns
    for number in sorted({c.column.spare for c in columns} - {0}, reverse=True):
        if kept[0].width + sum(_GAP + column.least for column in kept[1:]) <= width:
            break
        kept = [column for column in kept if column.column.spare != number]
    return kept, True


def _blocks(columns: Sequence[_Ready], width: int, *, tight: bool) -> list[list[_Ready]]:
    """Split the columns into blocks that fit `width`; the first column leads each block."""
    blocks = [[key] for key in columns[:1]]
    used = least = min(columns[0].width, max(_KEY_WIDTH, width // 2)) if columns else 0
    for column in columns[1:]:
        need = _GAP + (column.least if tight or column.column.fold else column.width)
        if used + need > width and len(blocks[-1]) > 1:
            blocks.append([columns[0]])
            used = least
        blocks[-1].append(column)
        used += need
    return blocks


# A part of a name, up to where a line may end: `demo_`, `objects_`, `runs/`.
_PART = re.compile(r"[^_\-./\s]*[_\-./\s]?")


def _with_broken_keys(columns: list[_Ready], width: int) -> list[_Ready]:
    """A block whose first column has its long names broken between their parts, not inside."""
    key, *others = columns
    if not others or any(column.column.fold for column in columns):
        return columns
    room = width - sum(_GAP + column.least for column in others)
    if key.width <= room or room < _KEY_WIDTH:
        return columns
    return [replace(key, cells=tuple(_broken(cell, room) for cell in key.cells)), *others]


def _broken(name: str, room: int) -> str:
    """A name in lines of at most `room` cells, as far as its parts allow."""
    from rich.cells import cell_len

    lines = [""]
    for part in _PART.findall(name):
        if lines[-1] and cell_len(lines[-1] + part.rstrip()) > room:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def _rich_table(columns: Sequence[_Ready], *, tight: bool) -> Table:
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
    for position, ready in enumerate(columns):
        folds = position == 0 or ready.column.fold
        table.add_column(
            Text(ready.column.title),
            justify="right" if ready.right else "left",
            no_wrap=not (folds or tight),
            overflow="fold",
            min_width=min(ready.width, _KEY_WIDTH) if folds else None,
            width=None if folds else ready.least if tight else ready.width,
        )
    for row in zip(*(ready.cells for ready in columns), strict=True):
        table.add_row(*(Text(cell) for cell in row))
    return table
