"""``keju eval``: sit a model for one or more benchmarks."""

from __future__ import annotations

import inspect
import shlex
import sys
from inspect import Parameter
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from keju.cli import flags, options
from keju.cli.arguments import StrictCommand
from keju.cli.output import note, print_json, print_lines
from keju.config import load as settings

if TYPE_CHECKING:
    from keju.config import TaskConfig
    from keju.task import Finished

app = options.new_app()

BESIDE = "robust"
"""The reader that the results show beside a protocol's own."""

HELP = (
    "Sit a model for one or more benchmarks.\n\n"
    "Settings come from flags, then -s, then KEJU_<FIELD> variables, then the file; mappings "
    "merge key by key. A run that stops early is saved, and the command that resumes it is "
    "printed.\n\n"
    "Exit codes: 0 ok, 2 usage, 4 incomplete, 5 endpoint, 130 interrupted."
)
EXAMPLES = options.examples(
    "keju eval --model NAME --api-url http://localhost:8000/v1 --datasets bbh mmlu_pro --limit 10",
    "keju eval -c config.yaml -s generation_config.temperature=0.6 --run-id tuesday",
    "keju eval -m scripted --datasets ceval --protocol tutorial --dry-run",
)
OWN_FLAGS: dict[str, tuple[Any, Any]] = {
    "config": (
        None,
        Annotated[
            str | None,
            typer.Option(
                "--config",
                "-c",
                metavar="FILE",
                help="Settings as YAML or JSON, or the manifest of a run.",
                rich_help_panel="Run",
            ),
        ],
    ),
    "overrides": (
        None,
        Annotated[
            list[str] | None,
            typer.Option(
                "--set",
                "-s",
                metavar="KEY=VALUE",
                help="One setting, e.g. dataset_args.bbh.few_shot_num=0; repeatable.",
                rich_help_panel="Run",
            ),
        ],
    ),
    "dry_run": (
        False,
        Annotated[
            bool,
            typer.Option(
                "--dry-run",
                help="Check everything, show the first prompts and a forecast; ask nothing.",
                rich_help_panel="Run",
            ),
        ],
    ),
    "no_report": (
        False,
        Annotated[
            bool,
            typer.Option(
                "--no-report", help="Write no report.html.", rich_help_panel=options.OUTPUT
            ),
        ],
    ),
    "quiet": (
        False,
        Annotated[
            bool,
            typer.Option("--quiet", "-q", help="Show no progress.", rich_help_panel=options.OUTPUT),
        ],
    ),
    "as_json": (False, options.Json),
}


class EvalCommand(StrictCommand):
    """Takes several benchmarks after one flag."""

    several: ClassVar[tuple[str, ...]] = ("--datasets",)


def evaluate(**given: Any) -> int:
    """Load the settings, sit the exams, print the results; return the exit code."""
    config = settings.load(given["config"], given["overrides"] or (), flags.collect(given))
    if given["dry_run"]:
        _rehearse(config, as_json=given["as_json"])
        return 0
    return _sit(config, given)


def _sit(config: TaskConfig, given: dict[str, Any]) -> int:
    from keju.report.live import make_display
    from keju.task import run_exams

    display = make_display(sys.stderr, quiet=given["quiet"])
    finished = run_exams(config, display=display, report=not given["no_report"])
    _print(finished, as_json=given["as_json"])
    if finished.exit_code:
        note(f"keju: error: {finished.told}")
    return finished.exit_code


def _print(finished: Finished, *, as_json: bool) -> None:
    if as_json:
        print_json(finished.results)
        return
    from keju.report.terminal import render_results

    render_results(finished.results)
    print_lines(f"run folder: {finished.folder}")
    if finished.exit_code:
        return
    from keju.runs.folder import REPORT

    report = finished.folder / REPORT
    if report.is_file():
        print_lines(f"report: {report}")
    steps = _next_steps(finished, reported=report.is_file())
    width = max(len(command) for command, _ in steps)
    print_lines("next:", *(f"  {command:<{width}}  # {what}" for command, what in steps))
    if any(e["name"] == "ceval" for e in finished.results["benchmarks"]):
        from keju.cli.modes import mode_hint

        if hint := mode_hint(finished.folder):
            print_lines(f"both modes of C-Eval are there, side by side: {hint}")


def _next_steps(finished: Finished, *, reported: bool) -> list[tuple[str, str]]:
    """Commands that do something useful with this very run, and what they do."""
    here = finished.folder.parent == settings.work_dir(None)
    run = shlex.quote(finished.folder.name if here else str(finished.folder))
    entries = finished.results["benchmarks"]
    steps = [(f"keju export {run} -o answers.csv", "every answer, one row each")]
    if not reported:
        steps.insert(0, (f"keju report {run} -o report.html", "one page to read and share"))
    if all(f"accuracy_{BESIDE}" in entry["metrics"] for entry in entries):
        own = dict.fromkeys(entry["reader"] for entry in entries)
        readers = ",".join([*own, BESIDE]) if len(own) == 1 else BESIDE
        steps.insert(
            0, (f"keju score {run} --reader {readers}", "the same replies, read otherwise")
        )
    return steps


def _rehearse(config: TaskConfig, *, as_json: bool) -> None:
    from keju.cli.rehearsal import print_rehearsal, rehearse

    document = rehearse(config)
    if as_json:
        print_json(document)
    else:
        print_rehearsal(document)


def _give_signature() -> None:
    """Typer reads a command's flags from its signature, and this one's rows are in `flags`."""
    own = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (default, annotation) in OWN_FLAGS.items()
    ]
    parameters = [*flags.parameters(), *own]
    evaluate.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    evaluate.__annotations__ = {each.name: each.annotation for each in parameters}


_give_signature()
app.command(cls=EvalCommand, help=HELP, epilog=EXAMPLES)(evaluate)
