"""The command ``keju``: one file a command, and nothing imported that the command does not use.

`main` looks at the first argument only and hands the rest to that command's module, which holds
a `typer.Typer` called ``app``. To add a command, add its file and one line to `COMMANDS`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NamedTuple


class Command(NamedTuple):
    """One line of ``keju --help``."""

    name: str
    module: str
    help: str
    panel: str


EXAMINE, UNDERSTAND, LOOK = "Examine a model", "Understand results", "Look around"

COMMANDS = (
    Command("eval", "keju.cli.evaluate", "sit a model for one or more benchmarks", EXAMINE),
    Command("vf-eval", "keju.cli.vf_eval", "sit a benchmark as verifiers' vf-eval does", EXAMINE),
    Command("score", "keju.cli.score", "score a stored run or a file of predictions", EXAMINE),
    Command("judge", "keju.cli.judge", "grade a stored run's answers with a model", EXAMINE),
    Command("import", "keju.cli.import_", "another tool's log as a run of Keju", UNDERSTAND),
    Command("report", "keju.cli.report", "write a run's report as one HTML file", UNDERSTAND),
    Command("modes", "keju.cli.modes", "C-Eval with and without a chain of thought", UNDERSTAND),
    Command("export", "keju.cli.export", "a run as CSV, JSON Lines or Parquet", UNDERSTAND),
    Command("list", "keju.cli.listing", "benchmarks, models, protocols, readers, runs", LOOK),
    Command("show", "keju.cli.show", "one question as the model gets it", LOOK),
    Command("stats", "keju.cli.stats", "number of questions and prompt lengths", LOOK),
    Command("data", "keju.cli.data", "find, check and pull the data of benchmarks", LOOK),
    Command("model", "keju.cli.model", "find and pull the weights of the embedded model", LOOK),
    Command("schema", "keju.cli.schema", "JSON Schema of the configuration", LOOK),
    Command("verify", "keju.cli.verify", "score recorded outputs whose scores are known", LOOK),
    Command("init", "keju.cli.init", "start a benchmark of your own, or a config file", LOOK),
    Command("doctor", "keju.cli.doctor", "what is installed, and what is missing", LOOK),
)

USAGE = """\
Usage: keju COMMAND [OPTIONS]

Keju examines language models: BBH, MMLU-Pro, C-Eval, BixBench.
"""

CLOSING = """
Every command has --help with examples, and --json for one JSON document on stdout.

  keju eval --model NAME --api-url http://localhost:8000/v1 --datasets bbh --limit 10
  keju show bbh --subset snarks --index 3
  keju --version
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Without `argv` it is the console script: it takes the process's own arguments and ends the
    process itself, since the HTTP client's thread may abort an interpreter that shuts down.
    """
    from keju.cli.boundary import guarded, leave

    code = guarded(_dispatch, sys.argv[1:] if argv is None else list(argv))
    if argv is None:
        leave(code)
    return code


def _dispatch(argv: list[str]) -> int:
    if not argv or argv[0] in ("-h", "--help", "help"):
        sys.stdout.write(_help())
        return 0 if argv else 2
    if argv[0] in ("-V", "--version"):
        from keju import __version__

        sys.stdout.write(f"keju {__version__}\n")
        return 0
    from keju.cli.boundary import invoke

    return invoke(_find(argv[0]), argv[1:])


def _find(name: str) -> Command:
    for command in COMMANDS:
        if command.name == name:
            return command
    from keju.errors import UsageError, did_you_mean

    if name.startswith("-"):
        raise UsageError(f"expected a command before '{name}', e.g. 'keju eval {name}'")
    hint = did_you_mean(name, [command.name for command in COMMANDS])
    raise UsageError(f"unknown command '{name}'{hint}")


def _help() -> str:
    width = max(len(command.name) for command in COMMANDS) + 2
    lines = [USAGE]
    for panel in dict.fromkeys(command.panel for command in COMMANDS):
        lines.append(f"{panel}:")
        lines += [f"  {c.name:<{width}}{c.help}" for c in COMMANDS if c.panel == panel]
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n" + CLOSING
