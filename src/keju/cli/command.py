"""A command: a function, its rows of `keju.cli.options`, and its help.

  @command("report", "keju report tuesday", "keju report runs/tuesday -o report.html")
  def report(run: str, output: str | None) -> Output:
      \"\"\"Write the report of a run as one HTML file.\"\"\"

Each parameter has the name of a row and gets its value. Every command accepts ``--json`` and
``--language`` and returns an `CommandOutput`, of which one half is printed. A command that prints
while it works has a parameter ``as_json`` and returns its exit code. Rows in `sets` are settings:
the command then accepts ``**settings``, the fields of `TaskConfig` that were set.

typer parses the words. It is imported only then, so that help appears at once.
"""

from __future__ import annotations

import json
import math
import shlex
import sys
from collections.abc import Callable, Container, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, TypeVar

from keju.cli.common import CommandOutput, complain, is_same_stream, print_json, remark, split_names
from keju.cli.options import ADDRESS, FILE, FORMS, MAPPING, MAPPINGS, OPTIONS, PORT, OptionRow
from keju.errors import UsageError, near_hint, quoted
from keju.messages import label_text

if TYPE_CHECKING:
    from inspect import Parameter
    from pathlib import Path

    import typer

    from keju.task import FinishedTask

LAST_PORT: Final = 65535
LEAST, MOST = 1e-9, 1e15
"""Every number that a flag can mean, except 0, is between them."""

Function = TypeVar("Function", bound=Callable[..., Any])


class Command(NamedTuple):
    """A command, as its file declares it."""

    name: str
    """All words of its name, e.g. ``data pull``."""
    function: Callable[..., Any]
    rows: dict[str, OptionRow]
    settings: frozenset[str]
    """Names of the rows that are settings of the configuration."""
    examples: tuple[str, ...]
    common: tuple[str, ...] = ()
    """The rows on the first page of help, if there are too many; ``--help-all`` shows all."""

    @property
    def form_rows(self) -> frozenset[str]:
        """Names of the rows that select another command; `keju.cli` has already obeyed them."""
        return frozenset(name for name, row in self.rows.items() if row.panel == FORMS)


COMMANDS: dict[str, Command] = {}
"""The commands whose files are imported, by name."""


def command(
    name: str,
    *examples: str,
    sets: Mapping[str, str] | str = "",
    forms: str = "",
    common: str = "",
) -> Callable[[Function], Function]:
    """Register a function as a command.

    `sets` holds names of settings, optionally by panel; `forms` the flags that select another
    command; `common` the rows of the first page of help.
    """

    def register(function: Function) -> Function:
        panels = {"": sets} if isinstance(sets, str) else sets
        rows = {}
        for panel, row_names in panels.items():
            for row in row_names.split():
                option = _find_row(name, row)
                rows[row] = option._replace(panel=panel or option.panel)
        settings = frozenset(rows)
        code = function.__code__
        for row in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
            rows[row] = _find_row(name, row)
        for row in (*forms.split(), "language", "as_json"):
            rows.setdefault(row, OPTIONS[row])
        names = tuple(common.split())
        COMMANDS[name] = Command(name, function, rows, settings, examples, names)
        return function

    return register


def _find_row(command: str, name: str) -> OptionRow:
    return OPTIONS.get(f"{command}.{name}") or OPTIONS[name]


def run(command: Command, words: Sequence[str]) -> int:
    """Parse the words, call the command's function, and return its exit code."""
    values = parse(command, words)
    settings = collect({command.rows[name]: values.pop(name) for name in command.settings})
    for name in ("language", *command.form_rows):  # `main` has already used them
        values.pop(name, None)
    parameters = command.function.__code__.co_varnames
    as_json = values["as_json"] if "as_json" in parameters else values.pop("as_json")
    absent_folders = _absent_folders(command, values)
    output = command.function(**values, **settings)
    for folder in absent_folders:
        if folder.is_dir():
            remark(label_text("made_folder", folder=folder))
    return _print(output, as_json) if isinstance(output, CommandOutput) else output or 0


def _print(output: CommandOutput, as_json: bool) -> int:
    """Print one half of the output, and its problem; return the exit code."""
    if as_json:
        print_json(output.document)
    else:
        _show(output)
    if output.problem and (as_json or not (output.is_problem_shown and is_same_stream())):
        complain(output.problem, output.exit_code)
    return output.exit_code


def _show(output: CommandOutput) -> None:
    """Print the output for people. Percentages on a terminal have one decimal."""
    from keju.reporting.format import decimals_for

    with decimals_for(sys.stdout):
        output.show()


def _absent_folders(command: Command, values: Mapping[str, Any]) -> list[Path]:
    """Return the folders of output files that do not exist yet.

    Keju names them in a notice, because they may come from a typo.
    """
    from pathlib import Path

    files = [values.get(name) for name, row in command.rows.items() if row.metavar == FILE]
    folders = dict.fromkeys(Path(file).parent for file in files if isinstance(file, str))
    return [folder for folder in folders if not folder.is_dir()]


def parse(command: Command, words: Sequence[str]) -> dict[str, Any]:
    """Return the values of all rows of a command; None for a row that is not set.

    A flag is never the value of the flag before it (``--model --limit 5``). A flag with a single
    value is refused if it is repeated.
    """
    _refuse_missing_values(command, words)
    values = _split_words(command, words)
    for name, row in command.rows.items():
        if row.kind is bool and name not in command.settings:
            values[name] = bool(values[name])
        elif row.flags and row.kind not in (bool, list):
            values[name] = _single_value(row, values[name], command)
        if isinstance(row.kind, tuple) and values[name] is not None:
            _check_choice(row, values[name], command)
    return values


def _refuse_missing_values(command: Command, words: Sequence[str]) -> None:
    """Raise UsageError for a flag whose value is missing: ``--model --limit 5``."""
    rows = command.rows.values()
    flags = {flag for row in rows for flag in row.flags}
    flags_with_value = {flag for row in rows if row.kind is not bool for flag in row.flags}
    for flag, value in pairwise([*words, ""]):
        if flag == "--":
            break
        if flag in flags_with_value and (not value or value in flags):
            raise UsageError("cli_value_missing", flag=flag)


def _split_words(command: Command, words: Sequence[str]) -> dict[str, Any]:
    """Return the texts of each row as typer splits them; a list for each flag with a value."""
    from typer import BadParameter
    from typer.main import get_command

    rows = command.rows.values()
    usage_error: type[Exception] = BadParameter.__mro__[1]
    list_flags = {flag for row in rows if row.metavar.endswith("...") for flag in row.flags}
    try:
        reader = get_command(_application(command))
        with reader.make_context(
            f"keju {command.name}", repeat_flags(words, list_flags)
        ) as context:
            if context.args:
                from keju.cli.unknown import extra_words_error

                raise extra_words_error(context.args, words, command)
            values: dict[str, Any] = reader.invoke(context)
    except usage_error as error:
        raise _explain_error(error, words, command) from None
    return values


def _single_value(row: OptionRow, texts: Sequence[str] | None, command: Command) -> Any:
    """Return the value of a flag that is used once, or its default."""
    if not texts:
        return row.default
    if len(texts) > 1:
        from keju.cli.unknown import repeated_flag_error

        raise repeated_flag_error(row, texts, command)
    return _parse_value(row, texts[0], command)


def _check_choice(row: OptionRow, value: str, command: Command) -> None:
    if value not in row.kind:
        values = {"value": value, "choices": quoted(row.kind), "command": command.name}
        place = row.flags[0] if row.flags else row.spelling.strip("[]")
        hint = near_hint(value, row.kind)
        raise UsageError("cli_not_a_choice", place=place, hint=hint, **values)


def _parse_value(row: OptionRow, word: str, command: Command) -> Any:
    """Return the value of a flag; UsageError if it is not a number, or out of range.

    The configuration checks the limits of settings.
    """
    if row.kind not in (int, float):
        return word
    error_values = {"flag": row.flags[0], "value": word, "command": command.name}
    try:
        value = row.kind(word.encode("ascii"))  # refuses digits of other scripts
    except ValueError:
        code = "cli_not_a_whole_number" if row.kind is int else "cli_not_a_number"
        raise UsageError(code, **error_values) from None
    if row.metavar == PORT and not 0 <= value <= LAST_PORT:
        raise UsageError("cli_not_a_port", last=LAST_PORT, **error_values)
    # nan and inf get other messages
    is_out_of_range = 0 < abs(value) < LEAST or MOST < abs(value) < math.inf
    if not row.field and is_out_of_range:
        raise UsageError("cli_number_beyond", least=LEAST, most=MOST, **error_values)
    return value


def collect(values: dict[OptionRow, Any]) -> dict[str, Any]:
    """Return the fields of `TaskConfig` from flags. Parse mappings and split lists at commas."""
    from keju.config.load import merge

    settings: dict[str, Any] = {}
    # A mapping must come before the flags that set its keys: --judge before --model.
    for row, value in sorted(values.items(), key=lambda entry: entry[0].field.count(".")):
        if value is not None and value != []:
            setting = _parse_setting(row, value)
            for part in reversed(row.field.split(".")):
                setting = {part: setting}
            settings = merge(settings, setting)
    return settings


def _parse_setting(row: OptionRow, value: Any) -> Any:
    from keju.config.strict import parse_mapping, parse_mappings

    if row.metavar == MAPPING:
        return parse_mapping(value, row.flags[0], plain=row.name == "headers")
    if row.metavar == MAPPINGS:
        return parse_mappings(value, row.flags[0])
    if row.kind is list and row.metavar != ADDRESS:
        return [name for text in value for name in split_names(text, row.flags[0])]
    return value


def repeat_flags(words: Sequence[str], list_flags: Container[str]) -> list[str]:
    """Rewrite ``--datasets a b`` as ``--datasets a --datasets b`` for the flags in `list_flags`."""
    result: list[str] = []
    open_flag, needs_value = "", False
    for word in words:
        if word.startswith("-"):
            open_flag = word.partition("=")[0] if word.partition("=")[0] in list_flags else ""
            needs_value = open_flag == word
        elif open_flag and not needs_value:
            result.append(open_flag)
        else:
            needs_value = False
        result.append(word)
    return result


def _application(command: Command) -> typer.Typer:
    """Return a typer application that returns the values of the command's rows.

    Every flag with a value is declared as a repeatable text. So `parse` can see repetitions and
    report errors itself.
    """
    from inspect import Signature

    import typer

    parameters = [_parameter_of(name, row) for name, row in command.rows.items()]

    def return_values(**by_name: Any) -> dict[str, Any]:
        return by_name

    return_values.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return_values.__annotations__ = {
        parameter.name: parameter.annotation for parameter in parameters
    }
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command(add_help_option=False, context_settings={"allow_extra_args": True})(return_values)
    return app


def _parameter_of(name: str, row: OptionRow) -> Parameter:
    """Return typer's declaration of a row."""
    from inspect import Parameter

    import typer

    kind: Any = str
    if row.kind is bool:
        kind = bool
    elif row.flags or row.kind is list:
        kind = list[str]
    declaration: Any = typer.Argument(metavar=row.spelling)
    if row.flags:
        declaration = typer.Option(
            *row.flags, metavar=row.metavar or None, envvar=row.variable or None
        )
    is_optional = bool(row.flags) or row.spelling.startswith("[")
    return Parameter(
        name,
        Parameter.KEYWORD_ONLY,
        default=None if is_optional else Parameter.empty,
        annotation=Annotated[kind | None if is_optional else kind, declaration],
    )


def _explain_error(error: Exception, words: Sequence[str], command: Command) -> UsageError:
    """Return typer's error as one line, with the nearest flag if a flag is unknown."""
    error_values = {"command": command.name}
    option = getattr(error, "option_name", None)
    if option is not None and hasattr(error, "possibilities"):
        from keju.cli.unknown import unknown_option

        return unknown_option(option, words, command)
    if option is not None:  # a flag such as --json=yes
        return UsageError("cli_value_unwanted", flag=option, **error_values)
    row = command.rows.get(getattr(getattr(error, "param", None), "name", None) or "")
    if row is not None and not row.flags:
        example = command.examples[0]
        return UsageError(
            "cli_argument_missing", argument=row.spelling, example=example, **error_values
        )
    if row is not None and row.variable:
        return UsageError(
            "cli_bad_variable", variable=row.variable, flag=row.flags[0], **error_values
        )
    message: str = getattr(error, "format_message", error.__str__)()
    return UsageError("cli_usage", problem=" ".join(message.split()).rstrip("."), **error_values)


def with_resume_command(
    command: str, option_values: Mapping[str, Any], finished: FinishedTask
) -> FinishedTask:
    """Return `finished` with this command as the one that resumes the run.

    The manifest does not store values of a server's variables and headers, but the config file has
    them. `option_values` are the values of the command's options.
    """
    if not finished.resume_command:
        return finished
    resumed_values = {"run_id": finished.folder.name, "run_name": None, "replace": None}
    resume_command = rebuild_command(command, {**option_values, **resumed_values})
    return finished._replace(resume_command=resume_command)


def rebuild_command(command: str, option_values: Mapping[str, Any]) -> str:
    """Return the command with these values of its options, and a placeholder for each key."""
    words = ["keju", *command.split()]
    for name, row in COMMANDS[command].rows.items():
        value = option_values.get(name)
        if value and name in PLACEHOLDERS:
            value = PLACEHOLDERS[name]
        if value is True:
            words.append(row.flags[-1])
        elif value not in (None, False, []):
            for argument in value if isinstance(value, list) else [value]:
                text = argument if isinstance(argument, str) else json.dumps(argument)
                words += [row.flags[-1], text]
    return shlex.join(words)


PLACEHOLDERS: Final = {
    "api_key": "YOUR_KEY",
    "baseline_api_key": "YOUR_BASELINE_KEY",
    "headers": "YOUR_HEADERS",
}
"""The placeholders for secrets in printed commands."""
