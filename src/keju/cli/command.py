"""What a command is: a function, the rows of `keju.cli.options` that it takes, and its help.

    @command("report", "keju report tuesday", "keju report runs/tuesday -o report.html")
    def report(run: str, output: str | None) -> Output:
        \"\"\"Write the report of a run as one HTML file.\"\"\"

Each parameter is the name of a row, and gets its value. Every command takes ``--json`` and
``--language``, and returns its `Output`, of which one half is printed; one that prints while it
works lists ``as_json`` and returns its exit code. Rows that stand in `sets` are settings: a command
that lists them takes ``**settings``, the fields of `TaskConfig` as far as they were given.

Its words are read with typer, which is imported then and not before, so that help is there at once.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Callable, Container, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, TypeVar

from keju.cli.common import Output, complain, names, print_json, read_together, remark
from keju.cli.options import ADDRESS, FILE, MAPPING, MAPPINGS, OPTIONS, PORT, Option
from keju.errors import UsageError, near_hint, quoted
from keju.messages import said

if TYPE_CHECKING:
    from pathlib import Path

    import typer

    from keju.task import Finished

LAST_PORT: Final = 65535
LEAST, MOST = 1e-9, 1e15
"""Between them lies every number that a flag can mean, 0 apart."""

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
        for row in ("language", "as_json"):
            rows.setdefault(row, OPTIONS[row])
        COMMANDS[name] = Command(name, function, rows, settings, examples)
        return function

    return register


def _row(command: str, name: str) -> Option:
    return OPTIONS.get(f"{command}.{name}") or OPTIONS[name]


def run(command: Command, words: Sequence[str]) -> int:
    """Read the words, call the command's function, and return its exit code."""
    values = parse(command, words)
    settings = collect({command.rows[name]: values.pop(name) for name in command.settings})
    values.pop("language", None)  # `main` has listened to it
    parameters = command.function.__code__.co_varnames
    as_json = values["as_json"] if "as_json" in parameters else values.pop("as_json")
    absent = _absent_folders(command, values)
    output = command.function(**values, **settings)
    for folder in absent:
        if folder.is_dir():
            remark(said("made_folder", folder=folder))
    if not isinstance(output, Output):
        return output or 0
    if as_json:
        print_json(output.document)
    else:
        output.show()
    if output.problem and (as_json or not (output.shown and read_together())):
        complain(output.problem, output.exit_code)
    return output.exit_code


def _absent_folders(command: Command, values: Mapping[str, Any]) -> list[Path]:
    """The folders of files to write that are not there yet: whoever made them with a slip of the
    pen is to know."""
    from pathlib import Path

    files = [values.get(name) for name, row in command.rows.items() if row.metavar == FILE]
    folders = dict.fromkeys(Path(file).parent for file in files if isinstance(file, str))
    return [folder for folder in folders if not folder.is_dir()]


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
            if context.args:
                from keju.cli.unknown import left_over

                raise left_over(context.args, words, command)
            values: dict[str, Any] = reader.invoke(context)
    except unreadable as error:
        raise _explained(error, words, command) from None
    for name, row in command.rows.items():
        value = values[name]
        if row.kind is bool and name not in command.settings:
            values[name] = bool(value)
        elif row.flags and row.kind not in (bool, list):
            if value and len(value) > 1:
                from keju.cli.unknown import given_twice

                raise given_twice(row, value, command)
            values[name] = value = _read(row, value[0], command) if value else row.default
        if isinstance(row.kind, tuple) and value is not None and value not in row.kind:
            choices = quoted(row.kind)
            place = row.flags[0] if row.flags else row.spelling.strip("[]")
            told = {"place": place, "value": value, "choices": choices, "command": command.name}
            raise UsageError("cli_not_a_choice", **told, hint=near_hint(value, row.kind))
    return values


def _read(row: Option, word: str, command: Command) -> Any:
    """The value of a flag; UsageError where it should be a number and is none, or one that no
    calculation holds. The configuration knows the limits of its own settings."""
    if row.kind not in (int, float):
        return word
    own = {"flag": row.flags[0], "value": word, "command": command.name}
    try:
        value = row.kind(word.encode("ascii"))  # not the digits of other scripts
    except ValueError:
        code = "cli_not_a_whole_number" if row.kind is int else "cli_not_a_number"
        raise UsageError(code, **own) from None
    if row.metavar == PORT and not 0 <= value <= LAST_PORT:
        raise UsageError("cli_not_a_port", last=LAST_PORT, **own)
    far = (
        0 < abs(value) < LEAST or MOST < abs(value) < math.inf
    )  # nan and inf have words of their own
    if not row.field and far:
        raise UsageError("cli_number_beyond", least=LEAST, most=MOST, **own)
    return value


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

    Every flag with a value is declared as repeatable texts, so that `parse` sees whether it was
    repeated, and says itself what is wrong with one.
    """
    from inspect import Parameter, Signature

    import typer

    parameters = []
    for name, row in command.rows.items():
        kind: Any = row.kind if row.kind is bool else str
        if row.kind is list or (row.flags and kind is str):
            kind = list[str]
        about: Any = typer.Argument(metavar=row.spelling)
        if row.flags:
            about = typer.Option(
                *row.flags, metavar=row.metavar or None, envvar=row.variable or None
            )
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
    app.command(add_help_option=False, context_settings={"allow_extra_args": True})(values)
    return app


def _explained(error: Exception, words: Sequence[str], command: Command) -> UsageError:
    """One line for what typer complains about, with the nearest flag where one is unknown."""
    own = {"command": command.name}
    option = getattr(error, "option_name", None)
    if option is not None and hasattr(error, "possibilities"):
        from keju.cli.unknown import unknown_option

        return unknown_option(option, words, command)
    if option is not None:  # a flag such as --json=yes
        return UsageError("cli_value_unwanted", flag=option, **own)
    row = command.rows.get(getattr(getattr(error, "param", None), "name", None) or "")
    if row is not None and not row.flags:
        example = command.examples[0]
        return UsageError("cli_argument_missing", argument=row.spelling, example=example, **own)
    if row is not None and row.variable:
        return UsageError("cli_bad_variable", variable=row.variable, flag=row.flags[0], **own)
    message: str = getattr(error, "format_message", error.__str__)()
    return UsageError("cli_usage", problem=" ".join(message.split()).rstrip("."), **own)


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
