"""The command ``keju``: one file for each command, imported only when that command runs.

`main` looks at the first word and imports that command's file, which declares the command with
`keju.cli.command.command`. To add a command, add its file and one line in `_COMMAND_TABLE`. To add
a flag, see `keju.cli.options`.
"""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

if TYPE_CHECKING:
    from keju.cli.command import Command


class CommandEntry(NamedTuple):
    """One line of ``keju --help``."""

    name: str
    module: str
    help: str
    panel: str


_COMMAND_TABLE = {
    "Examine a model": {
        "eval": ("evaluate", "evaluate a model on one or more benchmarks"),
        "run": ("run", "with and without MCP servers, as mcpbr does"),
        "vf-eval": ("vf_eval", "evaluate a model as verifiers' vf-eval does"),
        "score": ("score", "score a stored run or a file of predictions"),
        "merge": ("merge", "combine the parts of a run from several jobs into one run"),
        "judge": ("judge", "grade a stored run's answers with a model"),
        "plan": ("plan", "questions that a decision needs, and their cost"),
        "fresh": ("fresh", "write new questions that no model has seen"),
    },
    "Understand results": {
        "import": ("import_", "another tool's log as a run of Keju"),
        "report": ("report", "write a run's report as one HTML file"),
        "compare": ("compare", "two or more runs, question by question"),
        "gate": ("gate", "may a run take the place of its baseline?"),
        "diff": ("diff", "why two scores are not comparable, field by field"),
        "view": ("view", "stored runs in a browser, active ones live"),
        "watch": ("watch", "active runs, live in the terminal"),
        "plot": ("plot", "runs as a figure: SVG, PNG or PDF"),
        "audit": ("audit", "why replies of a run were misread or not read"),
        "modes": ("modes", "answer-only and chain of thought side by side"),
        "export": ("export", "a run as CSV, Parquet, Markdown, LaTeX and more"),
    },
    "Look around": {
        "list": ("listing", "benchmarks, subsets, models, protocols, readers, runs"),
        "show": ("show", "one question as the model gets it, or a stored reply"),
        "prompts": ("prompts", "the prompts of a benchmark as JSON files"),
        "stats": ("stats", "number of questions and prompt lengths"),
        "data": ("data", "find, check and pull the data of benchmarks"),
        "model": ("model", "find and pull the weights of the embedded model"),
        "mcp": ("mcp", "start and check the MCP servers of a config file"),
        "schema": ("schema", "JSON Schema of the configuration"),
        "verify": ("verify", "score recorded outputs whose scores are known"),
        "init": ("init", "start your own benchmark, a config file, an A/B test of tools"),
        "rm": ("rm", "delete stored runs"),
        "completion": ("completion", "completion for bash, zsh and fish"),
        "doctor": ("doctor", "what is installed, and what is missing"),
    },
}
"""The file and the description of each command, by panel and name."""

COMMANDS = tuple(
    CommandEntry(name, f"keju.cli.{module}", help, panel)
    for panel, commands in _COMMAND_TABLE.items()
    for name, (module, help) in commands.items()
)

HELP_FLAGS = ("-h", "--help")
VERSION_FLAG = "--version"
LANGUAGE_FLAG = "--language"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Without `argv` it is the console script. It then reads the process's own arguments and ends the
    process itself, because threads of the HTTP client or of Ray may abort an interpreter that shuts
    down.
    """
    if argv is None:
        _run_console_script()
    from keju.cli.common import run_guarded
    from keju.messages import speak

    try:
        return run_guarded(_dispatch, list(argv))
    finally:
        speak(None)  # this command alone chose the language


def _run_console_script() -> NoReturn:
    # Importing makes many objects that last. With Python's default of 700 new objects per
    # collection, the collector spends a tenth of a short command on them.
    gc.set_threshold(20_000, 50, 100)
    try:
        from keju.cli.common import leave, open_streams, run_guarded

        open_streams()
        code = run_guarded(_dispatch_with_signals, sys.argv[1:])
    except KeyboardInterrupt:  # before the signal handlers were installed
        end_interrupted()
    leave(code)


def end_interrupted() -> NoReturn:
    """End the process with the message and exit code of an interrupted command."""
    from keju.cli.common import leave, run_guarded

    def interrupt(_: list[str]) -> int:
        raise KeyboardInterrupt

    leave(run_guarded(interrupt, sys.argv[1:]))


def _dispatch_with_signals(words: list[str]) -> int:
    """Dispatch the words with handlers for signals to this process."""
    from keju.signals import listen

    listen()
    return _dispatch(words)


def _dispatch(words: list[str]) -> int:
    words = _take_language(words)
    if not words or words[0] in HELP_FLAGS or words[0] == "help":
        from keju.cli.help import overview, welcome

        sys.stdout.write(overview(COMMANDS) if words else welcome())
        return 0
    if words[0] in ("-V", VERSION_FLAG):
        from keju import __version__

        sys.stdout.write(f"keju {__version__}\n")
        return 0
    entry = _find_command(words[0], {command.name: command for command in COMMANDS})
    importlib.import_module(entry.module)
    from keju.cli import command

    if entry.name in command.COMMANDS:
        return _run_command(command.COMMANDS[entry.name], words[1:])
    return _run_subcommand(entry, words[1:])


def _run_subcommand(entry: CommandEntry, words: list[str]) -> int:
    """Run one command of a group such as ``keju data``, or print the group's help."""
    from keju.cli.command import COMMANDS as DECLARED
    from keju.cli.help import print_group_help
    from keju.errors import UsageError

    group = entry.name
    subcommands = {n.split()[1]: c for n, c in DECLARED.items() if n.split()[0] == group}
    if not words:
        print_group_help(entry, subcommands, sys.stderr)
        raise UsageError("cli_command_missing", command=group, commands=[*subcommands])
    if words[0] in HELP_FLAGS:
        print_group_help(entry, subcommands)
        return 0
    return _run_command(_find_command(words[0], subcommands, f"{group} "), words[1:])


def _run_command(command: Command, words: list[str]) -> int:
    """Run a command, or print its help if the words before ``--`` ask for it."""
    options = words[: words.index("--")] if "--" in words else words
    if any(flag in options for flag in HELP_FLAGS):
        from keju.cli.help import print_help

        print_help(command)
        return 0
    from keju.cli.command import run

    return run(command, words)


def _take_language(words: list[str]) -> list[str]:
    """Set the language of ``--language``; return the words without a leading ``--language``.

    The tag of a regional language, such as ``zh-CN``, counts as ``zh``.
    """
    from keju.messages import language_of, speak

    options = words[: words.index("--")] if "--" in words else words
    for position, word in enumerate(options):
        flag, equals, value = word.partition("=")
        if flag == LANGUAGE_FLAG:
            value = value or " ".join(options[position + 1 : position + 2])
            if (language := language_of(value)) is not None:
                speak(language)
                flag_in_place = [flag, language] if position else []
                following_words = words[position + (1 if equals else 2) :]
                return [*words[:position], *flag_in_place, *following_words]
    return words


def _find_command(word: str, commands: Mapping[str, Any], group: str = "") -> Any:
    """Return the command called `word`; UsageError names the nearest one."""
    if word in commands:
        return commands[word]
    from keju.errors import UsageError, did_you_mean

    if word.startswith("-"):
        example = f"{group}{next(iter(commands))}"
        raise UsageError("cli_command_expected", flag=word, example=example)
    candidates = [*commands, *(() if group else (VERSION_FLAG,))]
    hint = did_you_mean(word, candidates)
    raise UsageError("cli_unknown_command", command=group + word, group=group, hint=hint)
