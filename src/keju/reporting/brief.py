"""A short answer on a terminal: every line fits the width, and nothing is wrapped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os.path import commonprefix
from typing import Literal, NamedTuple, TextIO

from keju.messages import current_language, printable
from keju.messages.wrapping import cells, pad, wrap
from keju.reporting.format import Labels, shorten_name
from keju.reporting.narrow import shorten_distinctly
from keju.reporting.table import TerminalScreen

WIDEST = 130
"""The number of columns that a short answer uses at most."""
LOG_WIDTH = 100
"""The width of a short answer in a file or pipe."""
NAME_WIDTH = 28
"""The number of characters of a model or run in a sentence."""
_INDENT = 1
_LEAST_END = 3
"""The number of characters that a name keeps when its beginning is left out."""
_LEAST_SHRUNK = 16
"""The number of cells of a text that is shortened."""
_HINT_GAP = 3
"""The smallest number of blanks before a hint on the right."""


@dataclass(frozen=True)
class BriefColumn:
    """A column of a table without title lines."""

    align: Literal["left", "right"] = "right"
    title: str = ""
    spare: int = 0
    """On a narrow screen, columns with the largest number are dropped first; 0 is never dropped."""
    shrinks: bool = False
    """Whether its texts are shortened in the middle rather than a column dropped."""


class LabelledCommand(NamedTuple):
    """A command and what it is for."""

    purpose: str
    command: str


class BriefScreen(TerminalScreen):
    """Collects lines that fit the width of the terminal."""

    def __init__(self, file: TextIO | None = None, width: int | None = None) -> None:
        super().__init__(file, width)
        is_bounded = self.terminal or width is not None
        self.width = min(self.console.width, WIDEST) if is_bounded else LOG_WIDTH
        self.labels = Labels(current_language())

    @property
    def room(self) -> int:
        """The number of cells of a line after the indent; the last cell of the terminal is free."""
        return self.width - _INDENT - 1

    def put(self, text: str = "", style: str | None = None) -> None:
        """Add one line with the indent."""
        self.raw(" " * _INDENT + text if text else "", style)

    def facts(
        self, parts: Sequence[str], lead: str = "", *, gap: str = " · ", style: str | None = None
    ) -> None:
        """Add facts on one line after `lead`, as many as fit, in their order."""
        self.put(lead + fit_parts(parts, self.room - cells(lead), gap), style)

    def hinted(self, text: str, hint: str, style: str | None = None) -> None:
        """Add a line with a hint at the right edge if there is room for it."""
        free = self.room - cells(text) - cells(hint)
        if hint and free >= _HINT_GAP:
            text += " " * free + hint
        self.put(fit_text(text, self.room), style)

    def sentence(self, text: str, style: str | None = None) -> None:
        """Add a sentence; a long one is broken between words."""
        if cells(text) <= self.room:
            self.put(text, style)
            return
        for line in wrap(text, self.room):
            self.put(line, style)

    def rows(
        self,
        columns: Sequence[BriefColumn],
        rows: Sequence[Sequence[str]],
        blank_after: Sequence[int] = (),
    ) -> None:
        """Add aligned rows, after a line of titles if any column has one.

        An empty line follows the rows with the numbers `blank_after`.
        """
        titles = [[column.title for column in columns]] if _has_titles(columns) else []
        texts = _shrink([*titles, *rows], columns, self.room)
        widths = [max(map(cells, column)) for column in zip(*texts, strict=True)]
        visible = _fitting_columns(columns, widths, self.room)
        for number, row in enumerate(texts, -len(titles)):
            parts = [_aligned(row[n], widths[n], columns[n].align) for n in visible]
            style = "dim" if number < 0 else None
            # A full-width bracket has its own space on the left.
            text = "  ".join(parts).rstrip().replace("  （", "（")
            self.put(fit_text(text, self.room), style)
            if number in blank_after and number + 1 < len(rows):
                self.put()

    def next_steps(self, steps: Sequence[LabelledCommand], most_lines: int = 2) -> None:
        """Add commands with their purposes, several on a line, on at most `most_lines` lines."""
        lines: list[str] = []
        for step in steps:
            text = f"{step.purpose}  {step.command}"
            if lines and cells(f"{lines[-1]}     {text}") <= self.room:
                lines[-1] += f"     {text}"
            elif len(lines) < most_lines:
                lines.append(text)
        for line in lines:
            if cells(line) <= self.room:
                self.put(line)
            else:  # a long path: the command must stay complete, to be copied
                self.commands([(line.partition("  ")[2], "")], indent=_INDENT)


def _has_titles(columns: Iterable[BriefColumn]) -> bool:
    return any(column.title for column in columns)


def _shrink(
    rows: Sequence[Sequence[str]], columns: Sequence[BriefColumn], room: int
) -> list[list[str]]:
    """Return the rows with the texts of the shrinking column shortened, as far as necessary."""
    texts = [list(row) for row in rows]
    position = next((n for n, column in enumerate(columns) if column.shrinks), None)
    if position is None or not texts:
        return texts
    widths = [max(map(cells, column)) for column in zip(*texts, strict=True)]
    excess = sum(widths) + 2 * (sum(map(bool, widths)) - 1) - room
    limit = max(_LEAST_SHRUNK, widths[position] - excess)
    for row in texts if excess > 0 else ():
        if cells(row[position]) > limit:
            row[position] = shorten_name(row[position], limit)
    return texts


def _fitting_columns(columns: Sequence[BriefColumn], widths: Sequence[int], room: int) -> list[int]:
    """Return the positions of the columns that have content and fit."""
    visible = [n for n, width in enumerate(widths) if width]
    for number in sorted({column.spare for column in columns} - {0}, reverse=True):
        if sum(widths[n] for n in visible) + 2 * (len(visible) - 1) <= room:
            break
        visible = [n for n in visible if columns[n].spare != number]
    return visible


def _aligned(text: str, width: int, align: str) -> str:
    return pad(text, width) if align == "left" else " " * (width - cells(text)) + text


def fit_parts(parts: Sequence[str], room: int, gap: str = " · ") -> str:
    """Return the first parts that fit together; the first one is shortened if necessary."""
    fitting: list[str] = []
    for part in filter(None, parts):
        if fitting and cells(gap.join([*fitting, part])) > room:
            break
        fitting.append(printable(part, one_line=True))
    return fit_text(gap.join(fitting), room)


def pack_parts(parts: Sequence[str], room: int, gap: str = " · ") -> list[str]:
    """Join parts into as few lines of `room` cells as possible; no part is broken."""
    lines: list[str] = []
    for part in parts:
        if lines and cells(f"{lines[-1]}{gap}{part}") <= room:
            lines[-1] += f"{gap}{part}"
        else:
            lines.append(part)
    return lines


def fit_text(text: str, room: int) -> str:
    """Return a line of at most `room` cells; a longer one ends in ``…`` after a whole word."""
    if cells(text) <= room:
        return text
    fitting = text
    while fitting and cells(fitting) > room - 1:
        fitting = fitting[:-1]
    words = fitting.rpartition(" ")[0]
    return (words if len(words) > len(fitting) // 2 else fitting).rstrip(" ,;:，；：、·") + "…"


def short_model(name: str) -> str:
    """Return the name of a model without its folder or owner: ``Qwen2.5-7B-Instruct``."""
    return shorten_name(name.rstrip("/").rpartition("/")[2] or name, NAME_WIDTH)


def known_names(models: Sequence[str], runs: Sequence[str]) -> list[str]:
    """Return the names of the models, or of the runs where two models are alike or unknown."""
    names = [short_model(model) for model in models]
    if not all(names) or len(set(names)) < len(names):
        names = shorten_distinctly([run.rpartition("/")[2] or run for run in runs], NAME_WIDTH)
    return _without_shared_start(names)


def _without_shared_start(names: list[str]) -> list[str]:
    """Return names without the words that all of them begin with: ``bf16`` and ``int4``."""
    shared = commonprefix(names) if len(names) > 1 else ""  # noqa: RUF071 (of any letters)
    cut = max(map(shared.rfind, "-_ ")) + 1
    ends = [name[cut:] for name in names]
    return ends if all(len(end) >= _LEAST_END and end[0].isalpha() for end in ends) else names


# The parts of a subset's name: `salient`, `translation`, `error`.
_PARTS = re.compile(r"[_\s]+")
_SHORT_SUBSET = 20
_LEAST_SUBSET = 16


def short_subsets(names: Sequence[str]) -> dict[str, str]:
    """Return short names of subsets that remain distinct: ``salient_translation``."""
    short: dict[str, str] = {}
    for name in names:
        parts = _PARTS.split(name)
        short[name] = name
        for n in range(2, len(parts) if len(name) > _SHORT_SUBSET else 0):
            start = "_".join(parts[:n])
            if len(start) < _LEAST_SUBSET:
                continue
            if sum("_".join(_PARTS.split(rival)).startswith(start) for rival in names) == 1:
                short[name] = start
                break
    return short
