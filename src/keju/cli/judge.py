"""``keju judge``: grade the answers of a stored run with a model."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from keju.cli import options
from keju.cli.arguments import StrictCommand
from keju.cli.output import note, print_json, print_lines
from keju.config import load as settings

if TYPE_CHECKING:
    from pathlib import Path

    from keju.config import TaskConfig
    from keju.task import Finished

app = options.new_app()

JUDGE = "Judge"
Strategy = Literal["rule", "llm", "llm_recall"]


Settings = Annotated[
    str | None,
    typer.Option(
        "--judge",
        metavar="JSON",
        help="Settings of the judge, laid over the run's own; the flags below go first.",
        rich_help_panel=JUDGE,
    ),
]
Model = Annotated[
    str | None,
    typer.Option("--model", "-m", metavar="NAME", help="The judge.", rich_help_panel=JUDGE),
]
ApiUrl = Annotated[
    str | None,
    typer.Option(
        metavar="URL", help="Its endpoint; the candidate's by default.", rich_help_panel=JUDGE
    ),
]
KeyVar = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Variable that holds its key.", rich_help_panel=JUDGE),
]
HowToAsk = Annotated[
    Strategy | None,
    typer.Option(
        help="Ask about what no rule decides or the rule missed, about all, or never.",
        rich_help_panel=JUDGE,
    ),
]
Repeats = Annotated[
    int | None,
    typer.Option(metavar="K", help="Verdicts on each answer; most decide.", rich_help_panel=JUDGE),
]
Second = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Another judge, to measure agreement.", rich_help_panel=JUDGE
    ),
]
Labelled = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="JSON Lines of graded answers that measure the judge.",
        rich_help_panel=JUDGE,
    ),
]
NoReport = Annotated[
    bool,
    typer.Option("--no-report", help="Write no report.html.", rich_help_panel=options.OUTPUT),
]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="Show no progress.", rich_help_panel=options.OUTPUT),
]


@app.command(
    cls=StrictCommand,
    epilog=options.examples(
        "keju judge tuesday --model NAME --api-url http://localhost:8000/v1",
        "keju judge tuesday --strategy llm --second OTHER --labelled graded.jsonl",
        """keju judge tuesday --judge '{"model": "NAME", "repeats": 3}' --json""",
    ),
)
def judge(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run: its folder or its id.")],
    judge_settings: Settings = None,
    model: Model = None,
    api_url: ApiUrl = None,
    api_key_var: KeyVar = None,
    strategy: HowToAsk = None,
    repeats: Repeats = None,
    second: Second = None,
    labelled: Labelled = None,
    data_dir: options.DataDir = None,
    work_dir: options.WorkDir = None,
    no_report: NoReport = False,
    quiet: Quiet = False,
    as_json: options.Json = False,
) -> int:
    """Grade the answers of a stored run with a model; the candidate is not asked again.

    Verdicts that the run has already are kept. Its results and report are written anew; complete
    ones stay until the new grading is complete.

    Exit codes: 0 ok, 2 usage, 4 incomplete, 5 endpoint, 130 interrupted.
    """
    from keju.report.live import make_display
    from keju.runs.folder import find_run
    from keju.task import judge_run

    folder = find_run(run, str(settings.work_dir(work_dir)))
    named = {
        "model": model,
        "api_url": api_url,
        "api_key_var": api_key_var,
        "strategy": strategy,
        "repeats": repeats,
        "second": second,
        "labelled": labelled,
    }
    config = _configure(folder, judge_settings, named, data_dir)
    display = make_display(sys.stderr, quiet=quiet)
    finished = judge_run(config, folder, display=display, report=not no_report)
    _print(finished, as_json=as_json)
    if finished.exit_code:
        note(f"keju: error: {finished.told}")
    return finished.exit_code


def _configure(
    folder: Path, judge_settings: str | None, named: dict[str, Any], data_dir: str | None
) -> TaskConfig:
    """The settings of the stored run with those of its judge laid over them; flags go first."""
    from keju.judges.rejudge import complete_settings
    from keju.runs.manifest import MANIFEST

    given: dict[str, Any] = settings.from_flags({"judge": judge_settings} if judge_settings else {})
    own = {name: value for name, value in named.items() if value is not None}
    if own:
        given["judge"] = given.get("judge", {}) | own
    if data_dir is not None:
        given["data_dir"] = data_dir
    if "judge" in given:
        flags = {name: value for name, value in given.items() if name != "judge"}
        stored = settings.load(folder / MANIFEST, flags=flags)
        given["judge"] = complete_settings(stored, given["judge"])
    return settings.load(folder / MANIFEST, flags=given)


def _print(finished: Finished, *, as_json: bool) -> None:
    if as_json:
        print_json(finished.results)
        return
    from keju.report.terminal import render_results

    render_results(finished.results)
    print_lines(f"run folder: {finished.folder}")
