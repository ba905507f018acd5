"""The command ``keju``: one file for each command, imported only when that command runs.

`main` looks at the first word and imports that command's file, which declares the command with
`keju.cli.command.command`. To add a command, add its file and one line in `COMMANDS`. To add a
flag, see `keju.cli.options`.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, NoReturn


class CommandEntry(NamedTuple):
    """One line of ``keju --help``."""

    name: str
    module: str
    help: str
    panel: str


EXAMINE, UNDERSTAND, LOOK = "Examine a model", "Understand results", "Look around"

COMMANDS = (
    CommandEntry(
        "eval", "keju.cli.evaluate", "evaluate a model on one or more benchmarks", EXAMINE
    ),
    CommandEntry("run", "keju.cli.run", "with and without MCP servers, as mcpbr does", EXAMINE),
    CommandEntry(
        "vf-eval", "keju.cli.vf_eval", "evaluate a model as verifiers' vf-eval does", EXAMINE
    ),
    CommandEntry("score", "keju.cli.score", "score a stored run or a file of predictions", EXAMINE),
    CommandEntry(
        "merge",
        "keju.cli.merge",
        "combine the parts of a run from several jobs into one run",
        EXAMINE,
    ),
    CommandEntry("judge", "keju.cli.judge", "grade a stored run's answers with a model", EXAMINE),
    CommandEntry(
        "plan", "keju.cli.plan", "questions that a decision needs, and their cost", EXAMINE
    ),
    CommandEntry("fresh", "keju.cli.fresh", "write new questions that no model has seen", EXAMINE),
    CommandEntry("import", "keju.cli.import_", "another tool's log as a run of Keju", UNDERSTAND),
    CommandEntry("report", "keju.cli.report", "write a run's report as one HTML file", UNDERSTAND),
    CommandEntry(
        "compare", "keju.cli.compare", "two or more runs, question by question", UNDERSTAND
    ),
    CommandEntry("gate", "keju.cli.gate", "may a run take the place of its baseline?", UNDERSTAND),
    CommandEntry(
        "diff", "keju.cli.diff", "why two scores are not comparable, field by field", UNDERSTAND
    ),
    CommandEntry("view", "keju.cli.view", "stored runs in a browser, active ones live", UNDERSTAND),
    CommandEntry("watch", "keju.cli.watch", "active runs, live in the terminal", UNDERSTAND),
    CommandEntry("plot", "keju.cli.plot", "runs as a figure: SVG, PNG or PDF", UNDERSTAND),
    CommandEntry(
        "audit", "keju.cli.audit", "why replies of a run were misread or not read", UNDERSTAND
    ),
    CommandEntry(
        "modes", "keju.cli.modes", "answer-only and chain of thought side by side", UNDERSTAND
    ),
    CommandEntry(
        "export",
        "keju.cli.export",
        "a run as CSV, Parquet, Markdown, LaTeX and more",
        UNDERSTAND,
    ),
    CommandEntry(
        "list", "keju.cli.listing", "benchmarks, subsets, models, protocols, readers, runs", LOOK
    ),
    CommandEntry(
        "show", "keju.cli.show", "one question as the model gets it, or a stored reply", LOOK
    ),
    CommandEntry("prompts", "keju.cli.prompts", "the prompts of a benchmark as JSON files", LOOK),
    CommandEntry("stats", "keju.cli.stats", "number of questions and prompt lengths", LOOK),
    CommandEntry("data", "keju.cli.data", "find, check and pull the data of benchmarks", LOOK),
    CommandEntry(
        "model", "keju.cli.model", "find and pull the weights of the embedded model", LOOK
    ),
    CommandEntry("mcp", "keju.cli.mcp", "start and check the MCP servers of a config file", LOOK),
    CommandEntry("schema", "keju.cli.schema", "JSON Schema of the configuration", LOOK),
    CommandEntry(
        "verify", "keju.cli.verify", "score recorded outputs whose scores are known", LOOK
    ),
    CommandEntry(
        "init",
        "keju.cli.init",
        "start your own benchmark, a config file, an A/B test of tools",
        LOOK,
    ),
    CommandEntry("rm", "keju.cli.rm", "delete stored runs", LOOK),
    CommandEntry("completion", "keju.cli.completion", "completion for bash, zsh and fish", LOOK),
    CommandEntry("doctor", "keju.cli.doctor", "what is installed, and what is missing", LOOK),
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
        sys.stdout.write(_help() if words else _welcome())
        return 0
    if words[0] in ("-V", VERSION_FLAG):
        from keju import __version__

        sys.stdout.write(f"keju {__version__}\n")
        return 0
    row = _find_command(words[0], {command.name: command for command in COMMANDS})
    importlib.import_module(row.module)
    from keju.cli import command

    name, arguments = row.name, words[1:]
    if name not in command.COMMANDS:
        subcommands = {n.split()[1]: c for n, c in command.COMMANDS.items() if n.split()[0] == name}
        if not arguments:
            from keju.cli.help import print_group_help
            from keju.errors import UsageError

            print_group_help(row, subcommands, sys.stderr)
            raise UsageError("cli_command_missing", command=name, commands=[*subcommands])
        if arguments[0] in HELP_FLAGS:
            from keju.cli.help import print_group_help

            print_group_help(row, subcommands)
            return 0
        name, arguments = _find_command(arguments[0], subcommands, f"{name} ").name, arguments[1:]
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    if any(flag in options for flag in HELP_FLAGS):
        from keju.cli.help import print_help

        print_help(command.COMMANDS[name])
        return 0
    return command.run(command.COMMANDS[name], arguments)


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
                following_words = words[position + (1 if equals else 2) :]
                return [
                    *words[:position],
                    *((flag, language) if position else ()),
                    *following_words,
                ]
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


def _help() -> str:
    from keju.cli.help import overview

    return overview(COMMANDS)


def _welcome() -> str:
    from keju.cli.help import welcome

    return welcome()
