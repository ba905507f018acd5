"""Help pages, in the language of the terminal and as wide as it is.

English stands where a flag or a command is declared: the text of its row, the function's docstring,
the line in `keju.cli.COMMANDS`. Chinese stands in ``messages/zh/cli.json`` under the same name, so
``flag.api_url``, ``command.eval`` and ``line.eval``. A wide character takes two cells of a
terminal, and a Chinese text may break between any two of them: see `keju.messages.wrapping`.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TextIO

from keju.cli.options import ARGUMENTS, OUTPUT, PLAIN
from keju.messages import command_lines, helped, said
from keju.messages.wrapping import cells, pad, wrap

if TYPE_CHECKING:
    from keju.cli import Entry
    from keju.cli.command import Command
    from keju.cli.options import Option

COMMANDS = "Commands"
"""The panel of a group's commands."""
USUAL_WIDTH, LEAST_WIDTH = 80, 30
WIDEST_FLAG = 30
"""Cells of a flag that leave room for its text beside it; a wider one has a line of its own."""
NARROWEST_TEXT = 24
"""Cells of a text beside its flag; with less room it stands below."""

# The end of a line of a Chinese text: between two characters, or after a full stop or comma.
_LINE_OF_CHINESE = re.compile(
    r"(?<=[\u3000-\uffef])\s*\n\s*(?=[\u3000-\uffef])|(?<=[，。；：、])\s*\n\s*"
)


def overview(commands: Sequence[Entry]) -> str:
    """What ``keju --help`` prints: a line for each command."""
    width = max(len(each.name) for each in commands) + 2
    lines = [said("help.usage", usage="keju " + said("help.command_usage")), ""]
    lines += [*wrap(said("help.about"), terminal_width()), ""]
    for panel in dict.fromkeys(each.panel for each in commands):
        lines.append(helped(f"panel.{panel}", panel) + said("help.colon"))
        for each in (each for each in commands if each.panel == panel):
            first, *more = wrap(line_of(each), max(terminal_width() - width - 2, 12))
            lines.append(f"  {each.name:<{width}}{first}")
            lines += [" " * (width + 2) + part for part in more]
        lines.append("")
    lines += [
        *wrap(said("help.closing"), terminal_width()),
        "",
        *_example_lines((TRYING, REAL_EXAM)),
    ]
    return "\n".join(lines) + "\n"


TRYING = "keju eval --model scripted --datasets demo"
OWN_MODEL = "keju eval --model NAME --api-url http://localhost:8000/v1 --datasets demo"
EXAMINING = "keju doctor"
REAL_EXAM = "keju eval --model NAME --api-url http://localhost:8000/v1 --datasets bbh --limit 10"


def welcome() -> str:
    """What ``keju`` alone prints: what it is, and three commands that work at once."""
    lines = [*wrap(said("help.about"), terminal_width()), "", said("help.first"), ""]
    steps = ((TRYING, "trying"), (OWN_MODEL, "own_model"), (EXAMINING, "examining"))
    for example, label in steps:
        lines += _step(example, said(f"help.{label}"))
    return "\n".join([*lines, "", *wrap(said("help.more"), terminal_width())]) + "\n"


def first_exam() -> str:
    """What ``keju eval`` alone says: what it needs, in commands that work."""
    lines = [*wrap(said("help.eval_needs"), terminal_width()), ""]
    steps = ((TRYING, "trying"), (OWN_MODEL, "own_model"), (REAL_EXAM, "real_exam"))
    for example, label in steps:
        lines += _step(example, said(f"help.{label}"))
    return "\n".join([*lines, "", *wrap(said("help.eval_more"), terminal_width()), ""])


def _step(example: str, text: str) -> list[str]:
    return [*_example_lines([example]), *_indented(wrap(text, terminal_width() - 6), 6)]


def line_of(entry: Entry) -> str:
    """What a command does, in a line."""
    return helped(f"line.{entry.name}", entry.help)


def print_help(command: Command) -> None:
    """Print what a command does, its options in panels, and its examples."""
    panels: dict[str, list[tuple[str, str]]] = {ARGUMENTS: [], PLAIN: []}
    for row in command.rows.values():
        panels.setdefault(row.panel, []).append((spelling_of(row), meaning_of(row)))
    panels[OUTPUT] = [*panels.pop(OUTPUT), _asking()]  # the last one
    arguments = " ".join(row.spelling for row in command.rows.values() if not row.flags)
    usage = f"keju {command.name} {said('help.options')} {arguments}".rstrip()
    _print_page(usage, about(command), panels, command.examples)


def print_group_help(
    entry: Entry, commands: Mapping[str, Command], stream: TextIO | None = None
) -> None:
    """Print what a group of commands is for, a line for each of them, and an example of each."""
    stop = said("help.full_stop")
    lines = [
        (word, paragraphs(about(each))[0].partition(stop)[0].removesuffix("."))
        for word, each in commands.items()
    ]
    line = line_of(entry)
    examples = [example for each in commands.values() for example in each.examples[:1]]
    usage = f"keju {entry.name} {said('help.command_usage')}"
    text = line[:1].upper() + line[1:] + stop.strip()
    _print_page(usage, text, {COMMANDS: lines, PLAIN: [_asking()]}, examples, stream)


def about(command: Command) -> str:
    """What a command does, in paragraphs."""
    return helped(f"command.{command.name}", command.function.__doc__ or "")


def spelling_of(row: Option) -> str:
    """The left column: the spellings of a flag and its value, or an argument."""
    value = row.metavar or ("|".join(row.kind) if isinstance(row.kind, tuple) else "")
    return " ".join([*row.flags, value]).rstrip() if row.flags else row.spelling


def meaning_of(row: Option) -> str:
    """The right column: what it does, its default, whether it is needed."""
    text = helped(f"flag.{row.name}", row.help)
    if row.flags:
        return text if row.default is None else text + said("help.default", value=row.default)
    return text if row.spelling.startswith("[") else text + said("help.required")


def _asking() -> tuple[str, str]:
    return "--help -h", said("help.help")


def paragraphs(text: str) -> list[str]:
    """Paragraphs as one line each; lines of Chinese are joined without a space."""
    paragraphs = (_LINE_OF_CHINESE.sub("", part) for part in text.strip().split("\n\n"))
    return [" ".join(paragraph.split()) for paragraph in paragraphs]


def terminal_width() -> int:
    """How wide a page of help, or a line of an error, may be."""
    try:
        width = int(os.environ.get("COLUMNS") or os.get_terminal_size().columns or USUAL_WIDTH)
    except (OSError, ValueError):
        width = USUAL_WIDTH
    return max(width, LEAST_WIDTH)


def _print_page(
    usage: str,
    text: str,
    panels: Mapping[str, list[tuple[str, str]]],
    examples: Iterable[str],
    stream: TextIO | None = None,
) -> None:
    stream = stream or sys.stdout
    width = terminal_width()
    lines = ["", *_indented(wrap(said("help.usage", usage=usage), width - 2), 1), ""]
    for paragraph in paragraphs(text):
        lines += [*_indented(wrap(paragraph, width - 2), 1), ""]
    for title, entries in panels.items():
        if entries:
            lines += _panel(helped(f"panel.{title}", title), entries, width)
    lines += ["", f" {said('help.examples')}", "", *_example_lines(examples, indent=3)]
    page = "\n".join(lines) + "\n"
    try:
        page.encode(stream.encoding or "utf-8")
    except UnicodeEncodeError:
        page = page.translate(str.maketrans("╭╮╰╯─│…", "++++-|."))
        page = page.encode(stream.encoding, "replace").decode(stream.encoding)
    stream.write(page)


def _indented(lines: Iterable[str], spaces: int) -> list[str]:
    return [" " * spaces + line for line in lines]


def _panel(title: str, entries: list[tuple[str, str]], width: int) -> list[str]:
    """A box with two columns; what has no room in the first one stands above its text."""
    colours = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    bold = "\033[1m{}\033[0m".format if colours and os.environ.get("TERM") != "dumb" else str
    left = max((len(e) for e, _ in entries if len(e) <= WIDEST_FLAG), default=0)
    if width - left - 6 < NARROWEST_TEXT:
        left = 2
    room, whole = width - left - 6, width - 4
    lines = [f"╭─ {bold(title)} " + "─" * (width - cells(title) - 5) + "╮"]
    for entry, text in entries:
        parts = wrap(text, room)
        if len(entry) > left:
            for piece in _pieces(entry, whole):
                lines.append(f"│ {bold(pad(piece, whole))} │")
            entry = ""
        for part in parts:
            lines.append(f"│ {bold(pad(entry, left))}  {pad(part, room)} │")
            entry = ""
    return [*lines, "╰" + "─" * (width - 2) + "╯"]


def _pieces(entry: str, width: int) -> list[str]:
    """A long flag with its choices in lines: ``--kind forest|difference|`` and ``curve|tokens``."""
    pieces = [""]
    for part in re.findall(r"[^|\s]+[|\s]?", entry):
        if pieces[-1] and len(pieces[-1]) + len(part.rstrip()) > width:
            pieces.append("  ")
        pieces[-1] += part
    return [piece.rstrip() for piece in pieces]


def _example_lines(examples: Iterable[str], indent: int = 2) -> list[str]:
    """Commands as a shell takes them."""
    return [line for each in examples for line in command_lines(each, terminal_width(), indent)]
