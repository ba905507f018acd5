"""Help pages in the language and width of the terminal.

The English text is next to the declaration of a flag or command: in its row, in the function's
docstring, or in `keju.cli.COMMANDS`. The Chinese text is in ``messages/zh/cli.json`` under a name
such as ``flag.api_url``, ``command.eval`` or ``line.eval``. A wide character takes two cells of a
terminal, and a Chinese text may break between any two of them: see `keju.messages.wrapping`.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TextIO

from keju.cli.options import ARGUMENTS, OUTPUT, PLAIN
from keju.messages import command_lines, helped, label_text
from keju.messages.wrapping import cells, pad, wrap

if TYPE_CHECKING:
    from keju.cli import CommandEntry
    from keju.cli.command import Command
    from keju.cli.options import OptionRow

COMMANDS = "Commands"
"""The panel of a group's subcommands."""
USUAL_WIDTH, LEAST_WIDTH = 80, 30
WIDEST_FLAG = 30
"""The widest flag, in cells, with its text next to it. A wider flag gets its own line."""
NARROWEST_TEXT = 24
"""The fewest cells for a text next to its flag. With less room it goes below the flag."""

# A line break in a Chinese text: between two characters, or after a full stop or comma.
_LINE_OF_CHINESE = re.compile(
    r"(?<=[\u3000-\uffef])\s*\n\s*(?=[\u3000-\uffef])|(?<=[，。；：、])\s*\n\s*"
)


def overview(commands: Sequence[CommandEntry], *, is_complete: bool = False) -> str:
    """Return the text of ``keju --help``: a line for each command.

    If `is_complete`, the hidden commands are listed too.
    """
    entries = [entry for entry in commands if is_complete or not entry.is_hidden]
    width = max(len(entry.name) for entry in entries) + 2
    lines = [label_text("help.usage", usage="keju " + label_text("help.command_usage")), ""]
    lines += [*wrap(label_text("help.about"), terminal_width()), ""]
    for panel in dict.fromkeys(entry.panel for entry in entries):
        lines.append(helped(f"panel.{panel}", panel) + label_text("help.colon"))
        panel_entries = [entry for entry in entries if entry.panel == panel]
        for entry in panel_entries:
            first_line, *following_lines = wrap(
                line_of(entry), max(terminal_width() - width - 2, 12)
            )
            lines.append(f"  {entry.name:<{width}}{first_line}")
            lines += [" " * (width + 2) + part for part in following_lines]
        lines.append("")
    lines += wrap(label_text("help.closing"), terminal_width())
    if not is_complete:
        lines += wrap(label_text("help.more_commands"), terminal_width())
    lines += ["", *_example_lines((DEMO_COMMAND, EXAM_COMMAND))]
    return "\n".join(lines) + "\n"


DEMO_COMMAND = "keju eval --model scripted --datasets demo"
ENDPOINT_COMMAND = "keju eval --model NAME --api-url http://localhost:8000/v1 --datasets demo"
DOCTOR_COMMAND = "keju doctor"
EXAM_COMMAND = "keju eval --model NAME --api-url http://localhost:8000/v1 --datasets bbh --limit 10"


def welcome() -> str:
    """Return the text of ``keju`` without arguments: a description and three commands that work."""
    lines = [*wrap(label_text("help.about"), terminal_width()), "", label_text("help.first"), ""]
    steps = (
        (DEMO_COMMAND, "trying"),
        (ENDPOINT_COMMAND, "own_model"),
        (DOCTOR_COMMAND, "examining"),
    )
    for example, label in steps:
        lines += _render_step(example, label_text(f"help.{label}"))
    return "\n".join([*lines, "", *wrap(label_text("help.more"), terminal_width())]) + "\n"


def eval_hint() -> str:
    """Return the text of ``keju eval`` without arguments: the required flags, in commands that
    work."""
    lines = [*wrap(label_text("help.eval_needs"), terminal_width()), ""]
    steps = ((DEMO_COMMAND, "trying"), (ENDPOINT_COMMAND, "own_model"), (EXAM_COMMAND, "real_exam"))
    for example, label in steps:
        lines += _render_step(example, label_text(f"help.{label}"))
    return "\n".join([*lines, "", *wrap(label_text("help.eval_more"), terminal_width()), ""])


def _render_step(example: str, text: str) -> list[str]:
    return [*_example_lines([example]), *_indent(wrap(text, terminal_width() - 6), 6)]


def line_of(entry: CommandEntry) -> str:
    """Return a command's description in one line."""
    return helped(f"line.{entry.name}", entry.help)


def print_help(command: Command, *, is_complete: bool = False) -> None:
    """Print a command's description, its options in panels, and its examples.

    For a command with many options, the examples and the most common options come first, and
    ``--help-all`` prints all options.
    """
    panels: dict[str, list[tuple[str, str]]] = {ARGUMENTS: [], PLAIN: []}
    is_short = bool(command.common) and not is_complete
    names = command.common if is_short else tuple(command.rows)
    for row in (command.rows[name] for name in names):
        panel = PLAIN if is_short and row.flags else row.panel
        panels.setdefault(panel, []).append((spelling_of(row), meaning_of(row)))
    last_panel = PLAIN if is_short else OUTPUT
    panels[last_panel] = [*panels.pop(last_panel, []), _help_flag()]
    if is_short:
        panels[PLAIN].append(("--help-all", label_text("help.all", n=len(command.rows))))
    arguments = " ".join(row.spelling for row in command.rows.values() if not row.flags)
    usage = f"keju {command.name} {label_text('help.options')} {arguments}".rstrip()
    description = about(command)
    if is_short:
        description = paragraphs(description)[0]
    _print_page(usage, description, panels, command.examples, are_examples_first=is_short)


def print_group_help(
    entry: CommandEntry, commands: Mapping[str, Command], stream: TextIO | None = None
) -> None:
    """Print the purpose of a group of commands, and a line and an example for each of them."""
    full_stop = label_text("help.full_stop")
    lines = [
        (word, paragraphs(about(command))[0].partition(full_stop)[0].removesuffix("."))
        for word, command in commands.items()
    ]
    line = line_of(entry)
    examples = [example for command in commands.values() for example in command.examples[:1]]
    usage = f"keju {entry.name} {label_text('help.command_usage')}"
    text = line[:1].upper() + line[1:] + full_stop.strip()
    _print_page(usage, text, {COMMANDS: lines, PLAIN: [_help_flag()]}, examples, stream)


def about(command: Command) -> str:
    """Return a command's description, in paragraphs."""
    return helped(f"command.{command.name}", command.function.__doc__ or "")


def spelling_of(row: OptionRow) -> str:
    """Return the left column: the spellings of a flag and its value, or an argument."""
    value = row.metavar or ("|".join(row.kind) if isinstance(row.kind, tuple) else "")
    return " ".join([*row.flags, value]).rstrip() if row.flags else row.spelling


def meaning_of(row: OptionRow) -> str:
    """Return the right column: the description, the default, and whether it is required."""
    text = helped(f"flag.{row.name}", row.help)
    if row.flags:
        return text if row.default is None else text + label_text("help.default", value=row.default)
    return text if row.spelling.startswith("[") else text + label_text("help.required")


def _help_flag() -> tuple[str, str]:
    return "--help -h", label_text("help.help")


def paragraphs(text: str) -> list[str]:
    """Return paragraphs as one line each. Lines of Chinese are joined without a space."""
    paragraphs = (_LINE_OF_CHINESE.sub("", part) for part in text.strip().split("\n\n"))
    return [" ".join(paragraph.split()) for paragraph in paragraphs]


def terminal_width() -> int:
    """Return the width for a page of help or a line of an error."""
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
    *,
    are_examples_first: bool = False,
) -> None:
    stream = stream or sys.stdout
    width = terminal_width()
    example_lines = [f" {label_text('help.examples')}", "", *_example_lines(examples, indent=3)]
    lines = ["", *_indent(wrap(label_text("help.usage", usage=usage), width - 2), 1), ""]
    for paragraph in paragraphs(text):
        lines += [*_indent(wrap(paragraph, width - 2), 1), ""]
    if are_examples_first:
        lines += [*example_lines, ""]
    for title, entries in panels.items():
        if entries:
            lines += _render_panel(helped(f"panel.{title}", title), entries, width)
    if not are_examples_first:
        lines += ["", *example_lines]
    page = "\n".join(lines) + "\n"
    try:
        page.encode(stream.encoding or "utf-8")
    except UnicodeEncodeError:
        page = page.translate(str.maketrans("╭╮╰╯─│…", "++++-|."))
        page = page.encode(stream.encoding, "replace").decode(stream.encoding)
    stream.write(page)


def _indent(lines: Iterable[str], spaces: int) -> list[str]:
    return [" " * spaces + line for line in lines]


def _render_panel(title: str, entries: list[tuple[str, str]], width: int) -> list[str]:
    """Return a box with two columns. An entry too wide for its column goes above its text."""
    colours = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    bold = "\033[1m{}\033[0m".format if colours and os.environ.get("TERM") != "dumb" else str
    left_width = max((len(e) for e, _ in entries if len(e) <= WIDEST_FLAG), default=0)
    if width - left_width - 6 < NARROWEST_TEXT:
        left_width = 2
    text_width, full_width = width - left_width - 6, width - 4
    lines = [f"╭─ {bold(title)} " + "─" * (width - cells(title) - 5) + "╮"]
    for entry, text in entries:
        parts = wrap(text, text_width)
        if len(entry) > left_width:
            for piece in _split_flag(entry, full_width):
                lines.append(f"│ {bold(pad(piece, full_width))} │")
            entry = ""
        for part in parts:
            lines.append(f"│ {bold(pad(entry, left_width))}  {pad(part, text_width)} │")
            entry = ""
    return [*lines, "╰" + "─" * (width - 2) + "╯"]


def _split_flag(entry: str, width: int) -> list[str]:
    """Split a long flag with its choices: ``--kind forest|difference|`` and ``curve|tokens``."""
    pieces = [""]
    for part in re.findall(r"[^|\s]+[|\s]?", entry):
        if pieces[-1] and len(pieces[-1]) + len(part.rstrip()) > width:
            pieces.append("  ")
        pieces[-1] += part
    return [piece.rstrip() for piece in pieces]


def _example_lines(examples: Iterable[str], indent: int = 2) -> list[str]:
    """Return commands as lines that a shell accepts."""
    return [
        line for example in examples for line in command_lines(example, terminal_width(), indent)
    ]
