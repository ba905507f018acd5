"""What a command is: a function, the rows of `keju.cli.options` that it takes, and its help.

    @command("report", "keju report tuesday", "keju report runs/tuesday -o report.html")
    def report(run: str, output: str | None) -> Output:
        \"\"\"Write the report of a run as one HTML file.\"\"\"

Each parameter is the name of a row, and gets its value. Every command takes ``--json`` and returns
its `Output`, of which one half is printed; one that prints while it works lists ``as_json`` and
returns its exit code. Rows that stand in `sets` are settings: a
command that lists them takes ``**settings``, the fields of `TaskConfig` as far as they were given.
Nothing heavy is imported here, so that help is there at once.
"""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from keju.cli.options import ARGUMENTS, OPTIONS, PLAIN, Option

Function = TypeVar("Function", bound=Callable[..., Any])


class Command(NamedTuple):
    """A command that can be called, as its file declares it."""

    name: str
    """All its words, e.g. ``data pull``."""
    function: Callable[..., Any]
    rows: dict[str, Option]
    settings: frozenset[str]
    """Names of the rows that go to the configuration."""
    examples: tuple[str, ...]


class Output(NamedTuple):
    """What a command says, for programs and for people."""

    document: Any
    """Printed as JSON with ``--json``."""
    show: Callable[[], None]
    """Prints the same for people."""
    problem: str = ""
    """What went wrong all the same, for stderr."""
    exit_code: int = 0


COMMANDS: dict[str, Command] = {}
"""The commands whose files are imported, by name."""


def command(
    name: str, *examples: str, sets: Mapping[str, str] | str = ""
) -> Callable[[Function], Function]:
    """Make a function a command; `sets` holds names of settings, by panel or in their own ones."""

    def register(function: Function) -> Function:
        panels = {"": sets} if isinstance(sets, str) else sets
        rows = {}
        for panel, names in panels.items():
            for row in names.split():
                rows[row] = _row(name, row)
                rows[row] = rows[row]._replace(panel=panel or rows[row].panel)
        settings = frozenset(rows)
        code = function.__code__
        for row in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
            rows[row] = _row(name, row)
        rows["as_json"] = OPTIONS["as_json"]
        COMMANDS[name] = Command(name, function, rows, settings, examples)
        return function

    return register


def _row(command: str, name: str) -> Option:
    return OPTIONS.get(f"{command}.{name}") or OPTIONS[name]


def print_help(command: Command) -> None:
    """Print what a command does, its options in panels, and its examples."""
    panels: dict[str, list[tuple[str, str]]] = {ARGUMENTS: [], PLAIN: []}
    for row in command.rows.values():
        # Two columns: the spellings and the value of an option, and what it does.
        if row.flags:
            value = row.metavar or ("|".join(row.kind) if isinstance(row.kind, tuple) else "")
            default = f" [default: {row.default}]" if row.default is not None else ""
            entry = " ".join([*row.flags, value]).rstrip(), row.help + default
        else:
            required = "" if row.spelling.startswith("[") else " [required]"
            entry = row.spelling, row.help + required
        panels.setdefault(row.panel, []).append(entry)
    panels[PLAIN].append(("--help -h", "Show this message and exit."))
    arguments = " ".join(row.spelling for row in command.rows.values() if not row.flags)
    _print_page(f"{command.name} [OPTIONS] {arguments}", command.function.__doc__ or "", panels)
    _print_examples(command.examples)


def print_group_help(name: str, about: str, commands: Mapping[str, Command]) -> None:
    """Print what a group of commands is for, a line for each of them, and an example of each."""
    lines = [
        (word, _paragraphs(each.function.__doc__ or "")[0].partition(". ")[0])
        for word, each in commands.items()
    ]
    helping = [("--help -h", "Show this message and exit.")]
    _print_page(f"{name} COMMAND [OPTIONS]", about, {PLAIN: helping, "Commands": lines})
    _print_examples([example for each in commands.values() for example in each.examples[:1]])


def _print_examples(examples: Iterable[str]) -> None:
    sys.stdout.write("\n".join(["", " Examples:", "", *(f"   {e}" for e in examples), ""]))


def _paragraphs(text: str) -> list[str]:
    return [" ".join(paragraph.split()) for paragraph in text.strip().split("\n\n")]


def _print_page(usage: str, about: str, panels: Mapping[str, list[tuple[str, str]]]) -> None:
    """Print the head of a help page and its panels, as wide as the terminal."""
    try:
        width = int(os.environ.get("COLUMNS") or os.get_terminal_size().columns or 80)
    except (OSError, ValueError):
        width = 80
    width = max(width, 60)
    colours = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    bold = "\033[1m{}\033[0m".format if colours else str
    lines = ["", f" Usage: keju {usage}".rstrip(), ""]
    for paragraph in _paragraphs(about):
        lines += textwrap.wrap(paragraph, width - 2, initial_indent=" ", subsequent_indent=" ")
        lines.append("")
    for title, entries in panels.items():
        if not entries:
            continue
        lines.append(f"╭─ {bold(title)} " + "─" * (width - len(title) - 5) + "╮")
        left = max(len(entry) for entry, _ in entries)
        room = width - left - 6
        for entry, text in entries:
            first = entry
            for part in textwrap.wrap(text, room, break_on_hyphens=False):
                lines.append(f"│ {bold(first.ljust(left))}  {part.ljust(room)} │")
                first = ""
        lines.append("╰" + "─" * (width - 2) + "╯")
    text = "\n".join(lines) + "\n"
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = text.translate(str.maketrans("╭╮╰╯─│", "++++-|"))
    sys.stdout.write(text)
