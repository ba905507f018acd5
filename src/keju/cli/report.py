"""``keju report``: a run's report as one HTML file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from keju.cli import options
from keju.cli.arguments import StrictCommand
from keju.cli.output import note, print_json, print_lines
from keju.config import load as settings
from keju.errors import UsageError

if TYPE_CHECKING:
    from keju.runs.manifest import Manifest
    from keju.types import Sample

app = options.new_app()


@app.command(
    cls=StrictCommand,
    epilog=options.examples(
        "keju report tuesday",
        "keju report runs/tuesday -o report.html --language zh",
    ),
)
def report(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run: its folder or its id.")],
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where to write; report.html in the run's folder by default.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    language: Annotated[
        Literal["en", "zh"],
        typer.Option(help="Language of the report.", rich_help_panel=options.OUTPUT),
    ] = "en",
    data_dir: options.DataDir = None,
    work_dir: options.WorkDir = None,
    as_json: options.Json = False,
) -> None:
    """Write the report of a run as one HTML file that needs no network."""
    from keju.files import read_json
    from keju.report.html import write_report
    from keju.runs.folder import REPORT, RESULTS, find_run
    from keju.runs.judged import graded_records
    from keju.runs.manifest import Manifest

    folder = find_run(run, str(settings.work_dir(work_dir)))
    manifest = Manifest.read(folder)
    results = read_json(folder / RESULTS)
    target = Path(output) if output else folder / REPORT
    questions = _questions(manifest, data_dir)
    write_report(
        results,
        graded_records(folder),
        questions,
        target,
        manifest=manifest.as_dict(),
        language=language,
    )
    if as_json:
        print_json({"run": folder.name, "report": str(target)})
    else:
        print_lines(f"wrote {target}")


def _questions(manifest: Manifest, data_dir: str | None) -> Callable[..., Sample | None]:
    """Finds a question by benchmark and id; finds none where the run's data is not at hand."""
    from keju.engine.job import make_jobs
    from keju.results.outputs import sample_lookup

    try:
        return sample_lookup(make_jobs(settings.of_run(manifest.config, data_dir)))
    except UsageError as error:
        note(f"keju: the report goes without the questions' texts: {error}")
        return lambda *_: None
