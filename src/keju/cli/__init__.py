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

    @property
    def is_hidden(self) -> bool:
        """Whether only ``keju --help-all`` lists the command."""
        return self.panel == MORE


MORE = "More"
_COMMAND_TABLE = {
    "Evaluate": {
        "eval": ("evaluate", "evaluate a model on exams, or on your own questions"),
        "run": ("run", "measure whether MCP servers and tools help a model"),
        "score": ("score", "score a stored run or a file of predictions again"),
        "judge": ("judge", "grade a stored run's free answers with a model"),
        "import": ("import_", "turn another tool's log into a run"),
        "fresh": ("fresh", "write new questions that no model has seen"),
    },
    "Look": {
        "view": ("view", "runs in a browser: scores, replies, comparisons"),
        "show": ("show", "a run or an exam: scores, questions, prompts, replies"),
        "list": ("listing", "exams, subsets, models, protocols, readers, runs"),
        "report": ("report", "a run's report as one HTML file"),
        "plot": ("plot", "runs as a figure: SVG, PNG or PDF"),
        "export": ("export", "tables for papers; answers as CSV, Parquet and more"),
    },
    "Decide": {
        "compare": ("compare", "is B better than A? question by question"),
        "gate": ("gate", "may it ship? exit code 0 or 1 for CI"),
        "audit": ("audit", "why is my number low? misread and unread replies"),
        "plan": ("plan", "how many questions a decision needs, and the cost"),
    },
    "Set up": {
        "init": ("init", "start your own exam, a config file, a test of tools"),
        "data": ("data", "find, check and download the data of exams"),
        "model": ("model", "find and download the built-in model"),
        "doctor": ("doctor", "what is installed, what is missing, what to do"),
    },
    MORE: {
        "diff": ("diff", "the same as compare --why"),
        "modes": ("modes", "the same as compare --modes"),
        "stats": ("stats", "the same as show EXAM --lengths"),
        "prompts": ("prompts", "the same as show EXAM --prompts"),
        "watch": ("watch", "the same as view --terminal"),
        "verify": ("verify", "the same as doctor --verify"),
        "vf-eval": ("vf_eval", "evaluate a model with the flags of verifiers' vf-eval"),
        "merge": ("merge", "combine the parts of a run from several jobs into one run"),
        "mcp": ("mcp", "start and check the MCP servers of a config file"),
        "schema": ("schema", "JSON Schema of the configuration"),
        "rm": ("rm", "delete stored runs"),
        "completion": ("completion", "completion for bash, zsh and fish"),
    },
}
"""The file and the description of each command, by panel and name."""

COMMANDS = tuple(
    CommandEntry(name, f"keju.cli.{module}", help, panel)
    for panel, commands in _COMMAND_TABLE.items()
    for name, (module, help) in commands.items()
)

FORMS = {
    ("compare", "--modes"): "modes",
    ("compare", "--why"): "diff",
    ("show", "--lengths"): "stats",
    ("show", "--prompts"): "prompts",
    ("view", "--terminal"): "watch",
    ("doctor", "--verify"): "verify",
}
"""Flags that select another command, which takes all other words."""

OTHER_WORDS = {
    **dict.fromkeys(("summary", "scores", "inspect"), "show RUN"),
    **dict.fromkeys(("results", "runs", "ls"), "list runs"),
    **dict.fromkeys(("leaderboard", "ui", "serve", "open"), "view"),
    **dict.fromkeys(("evaluate", "bench", "benchmark", "test"), "eval"),
    **dict.fromkeys(("exams", "benchmarks", "tasks", "datasets"), "list benchmarks"),
    **dict.fromkeys(("models", "protocols", "readers"), "list"),
    **dict.fromkeys(("table", "csv", "latex"), "export RUN --table md"),
    **dict.fromkeys(("resume", "continue"), "eval --run-id RUN"),
    **dict.fromkeys(("download", "pull"), "data pull NAME"),
    **dict.fromkeys(("delete", "remove"), "rm RUN"),
}
"""Words that newcomers type as commands, and the command to type."""

HELP_FLAGS = ("-h", "--help")
HELP_ALL = "--help-all"
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
    if not words or words[0] in (*HELP_FLAGS, HELP_ALL):
        from keju.cli.help import overview, welcome

        is_complete = words[:1] == [HELP_ALL]
        sys.stdout.write(overview(COMMANDS, is_complete=is_complete) if words else welcome())
        return 0
    if words[0] == "help":  # `keju help eval` is `keju eval --help`
        return _dispatch([*words[1:], HELP_FLAGS[1]])
    if words[0] in ("-V", VERSION_FLAG):
        from keju import __version__

        sys.stdout.write(f"keju {__version__}\n")
        return 0
    entries = {command.name: command for command in COMMANDS}
    words = _select_form(words)
    entry = _find_command(words[0], entries)
    importlib.import_module(entry.module)
    from keju.cli import command

    if entry.name in command.COMMANDS:
        return _run_command(command.COMMANDS[entry.name], words[1:])
    return _run_subcommand(entry, words[1:])


def _select_form(words: list[str]) -> list[str]:
    """Return the words of the command that a flag selects: ``diff A B`` for ``compare --why A B``.

    The help of a command lists its forms. ``keju compare --why --help`` shows the help of a form.
    """
    options = words[: words.index("--")] if "--" in words else words
    for (command, flag), other_command in FORMS.items():
        if words[0] == command and flag in options[1:]:
            position = options.index(flag)
            return [other_command, *words[1:position], *words[position + 1 :]]
    return words


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
    if any(flag in options for flag in (*HELP_FLAGS, HELP_ALL)):
        from keju.cli.help import print_help

        print_help(command, is_complete=HELP_ALL in options)
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
    if not group and (usual_command := OTHER_WORDS.get(word.casefold())):
        raise UsageError("cli_other_command", command=word, example=f"keju {usual_command}")
    candidates = [*commands, *(() if group else (VERSION_FLAG,))]
    hint = did_you_mean(word, candidates)
    raise UsageError("cli_unknown_command", command=group + word, group=group, hint=hint)
