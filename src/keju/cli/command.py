"""What a command is: a function, the rows of `keju.cli.options` that it takes, and its help.

    @command("report", "keju report tuesday", "keju report runs/tuesday -o report.html")
    def report(run: str, output: str | None) -> Output:
        \"\"\"Write the report of a run as one HTML file.\"\"\"

Each parameter is the name of a row, and gets its value. Every command takes ``--json`` and returns
its `Output`, of which one half is printed; one that prints while it works lists ``as_json`` and
returns its exit code. Rows that stand in `sets` are settings: a command that lists them takes
``**settings``, the fields of `TaskConfig` as far as they were given.

Its words are read with typer, which is imported then and not before, so that help is there at once.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import textwrap
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

from keju.cli.common import Output, names, note, print_json
from keju.cli.options import ADDRESS, ARGUMENTS, MAPPING, MAPPINGS, OPTIONS, PLAIN, Option
from keju.errors import UsageError, nearest

if TYPE_CHECKING:
    import typer

    from keju.task import Finished

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


COMMANDS: dict[str, Command] = {}
"""The commands whose files are imported, by name."""


def command(
    name: str, *examples: str, sets: Mapping[str, str] | str = ""
) -> Callable[[Function], Function]:
    """Make a function a command; `sets` holds names of settings, by panel or in their own ones."""

    def register(function: Function) -> Function:
        panels = {"": sets} if isinstance(sets, str) else sets
        rows = {}
        for panel, listed in panels.items():
            for row in listed.split():
                own = _row(name, row)
                rows[row] = own._replace(panel=panel or own.panel)
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


def run(command: Command, words: Sequence[str]) -> int:
    """Read the words, call the command's function, and return its exit code."""
    values = parse(command, words)
    settings = collect({command.rows[name]: values.pop(name) for name in command.settings})
    parameters = command.function.__code__.co_varnames
    as_json = values["as_json"] if "as_json" in parameters else values.pop("as_json")
    output = command.function(**values, **settings)
    if not isinstance(output, Output):
        return output or 0
    if as_json:
        print_json(output.document)
    else:
        output.show()
    if output.problem:
        note(f"keju: error: {output.problem}")
    return output.exit_code


def parse(command: Command, words: Sequence[str]) -> dict[str, Any]:
    """The values of all rows of a command, None for what is not given and has no default.

    A flag is never taken for the value of the one before it (``--model --limit 5``), and one that
    takes a single value is refused where it is given twice.
    """
    from typer import BadParameter
    from typer.main import get_command

    unreadable: type[Exception] = BadParameter.__mro__[1]
    rows = command.rows.values()
    valued = {flag: row for row in rows if row.kind is not bool for flag in row.flags}
    flags = {flag for row in rows for flag in row.flags}
    for flag, value in pairwise([*words, ""]):
        if flag == "--":
            break
        if flag in valued and (not value or value in flags):
            raise UsageError("cli_value_missing", flag=flag)
    several = {flag for flag, row in valued.items() if row.metavar.endswith("...")}
    try:
        reader = get_command(_application(command))
        with reader.make_context(f"keju {command.name}", spread(words, several)) as context:
            values: dict[str, Any] = reader.invoke(context)
    except unreadable as error:
        raise _explained(error, command) from None
    for name, row in command.rows.items():
        value = values[name]
        if row.kind is bool and name not in command.settings:
            values[name] = bool(value)
        elif row.flags and row.kind not in (bool, list):
            if value and len(value) > 1:
                raise UsageError("cli_flag_twice", flag=row.flags[0], command=command.name)
            values[name] = value = value[0] if value else row.default
        if isinstance(row.kind, tuple) and value is not None and value not in row.kind:
            choices = ", ".join(f"'{choice}'" for choice in row.kind)
            place = row.flags[0] if row.flags else row.spelling
            raise UsageError(
                "cli_not_a_choice", place=place, value=value, choices=choices, command=command.name
            )
    return values


def collect(values: dict[Option, Any]) -> dict[str, Any]:
    """The fields of `TaskConfig` that flags set: mappings parsed, lists split at commas."""
    from keju.config.load import merge
    from keju.config.strict import mapping, mappings

    settings: dict[str, Any] = {}
    # A mapping comes before the flags that set single keys of it: --judge before --model.
    for row, value in sorted(values.items(), key=lambda item: item[0].field.count(".")):
        if value is None or value == []:
            continue
        if row.metavar == MAPPING:
            value = mapping(value, row.flags[0], plain=row.name == "headers")
        elif row.metavar == MAPPINGS:
            value = mappings(value, row.flags[0])
        elif row.kind is list and row.metavar != ADDRESS:
            value = [name for text in value for name in names(text, row.flags[0])]
        for part in reversed(row.field.split(".")):
            value = {part: value}
        settings = merge(settings, value)
    return settings


def spread(words: Sequence[str], several: Container[str]) -> list[str]:
    """Rewrite ``--datasets a b`` as ``--datasets a --datasets b`` for the flags in `several`."""
    result: list[str] = []
    open_flag, wants_value = "", False
    for word in words:
        if word.startswith("-"):
            open_flag = word.partition("=")[0] if word.partition("=")[0] in several else ""
            wants_value = open_flag == word
        elif open_flag and not wants_value:
            result.append(open_flag)
        else:
            wants_value = False
        result.append(word)
    return result


def _application(command: Command) -> typer.Typer:
    """A typer application that returns the values of the command's rows.

    Every flag with a value is declared repeatable, so that `parse` sees whether it was repeated.
    """
    from inspect import Parameter, Signature

    import typer

    parameters = []
    for name, row in command.rows.items():
        kind: Any = str if isinstance(row.kind, tuple) else row.kind
        kind = list[str] if kind is list else kind
        about: Any = typer.Argument(metavar=row.spelling)
        if row.flags:
            about = typer.Option(
                *row.flags, metavar=row.metavar or None, envvar=row.variable or None
            )
            if kind is not bool:
                kind = kind if row.kind is list else list[kind]
        optional = bool(row.flags) or row.spelling.startswith("[")
        parameters.append(
            Parameter(
                name,
                Parameter.KEYWORD_ONLY,
                default=None if optional else Parameter.empty,
                annotation=Annotated[kind | None if optional else kind, about],
            )
        )

    def values(**by_name: Any) -> dict[str, Any]:
        return by_name

    values.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    values.__annotations__ = {each.name: each.annotation for each in parameters}
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command(add_help_option=False)(values)
    return app


def _explained(error: Exception, command: Command) -> UsageError:
    """One line for what typer complains about, with the nearest flag where one is unknown."""
    option = getattr(error, "option_name", None)
    if option is not None and hasattr(error, "possibilities"):
        long = [f for row in command.rows.values() for f in row.flags if f.startswith("--")]
        from keju.config.load import OTHER_NAMES

        other = "--" + OTHER_NAMES.get(option.strip("-").replace("-", "_"), "").replace("_", "-")
        near = nearest(option, long) if option.startswith("--") else None
        near = other if other in long else near
        code = "cli_unknown_option_near" if near else "cli_unknown_option"
        return UsageError(code, option=option, near=near, command=command.name)
    message: str = getattr(error, "format_message", error.__str__)()
    message = " ".join(message.split()).rstrip(".")
    return UsageError("cli_usage", problem=message[:1].lower() + message[1:], command=command.name)


def again_by(command: str, given: Mapping[str, Any], finished: Finished) -> Finished:
    """`finished` with the command that made it as the one that resumes it.

    A manifest holds no value of a server's variables and headers; the file of the run does.
    `given` are the values of the command's options.
    """
    if not finished.resume_command:
        return finished
    words = ["keju", *command.split()]
    own = {"run_id": finished.folder.name, "replace": None}
    given = {**given, **own, **({"api_key": "YOUR_KEY"} if given.get("api_key") else {})}
    for name, row in COMMANDS[command].rows.items():
        value = given.get(name)
        if value is True:
            words.append(row.flags[-1])
        elif value not in (None, False, []):
            for each in value if isinstance(value, list) else [value]:
                text = each if isinstance(each, str) else json.dumps(each)
                words += [row.flags[-1], text]
    return finished._replace(resume_command=shlex.join(words))
