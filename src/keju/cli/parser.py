"""Reading a command's words with typer: rows become its options, values come back by name."""

from __future__ import annotations

from collections.abc import Container, Sequence
from inspect import Parameter, Signature
from itertools import pairwise
from typing import Annotated, Any

import typer
from typer.main import get_command

from keju.cli.command import Command, Output
from keju.cli.common import names, note, print_json
from keju.cli.options import MAPPING, MAPPINGS, Option
from keju.errors import UsageError, nearest

USAGE_ERRORS: type[Exception] = typer.BadParameter.__mro__[1]
"""What typer raises for words that it cannot read."""


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
    except USAGE_ERRORS as error:
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
    from keju.config.text import mapping, mappings

    settings: dict[str, Any] = {}
    # A mapping comes before the flags that set single keys of it: --judge before --model.
    for row, value in sorted(values.items(), key=lambda item: item[0].field.count(".")):
        if value is None or value == []:
            continue
        if row.metavar == MAPPING:
            value = mapping(value, row.flags[0], plain=row.name == "headers")
        elif row.metavar == MAPPINGS:
            value = mappings(value, row.flags[0])
        elif row.kind is list:
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
