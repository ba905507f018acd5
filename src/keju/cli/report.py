"""``keju report``: a run's report as one HTML file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from keju.cli.command import command
from keju.cli.common import note, print_json, print_lines, run_folder
from keju.errors import UsageError

if TYPE_CHECKING:
    from keju.runs.manifest import Manifest
    from keju.types import Sample


@command("report", "keju report tuesday", "keju report runs/tuesday -o report.html --language zh")
def report(
    run: str,
    output: str | None,
    language: Literal["en", "zh"],
    data_dir: str | None,
    work_dir: str | None,
    as_json: bool,
) -> None:
    """Write the report of a run as one HTML file that needs no network."""
    from keju.files import read_json
    from keju.report.html import write_report
    from keju.runs.folder import REPORT, RESULTS
    from keju.runs.judged import graded_records
    from keju.runs.manifest import Manifest

    folder = run_folder(run, work_dir)
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
    from keju.config.load import of_run
    from keju.engine.job import make_jobs
    from keju.results.outputs import sample_lookup

    try:
        return sample_lookup(make_jobs(of_run(manifest.config, data_dir)))
    except UsageError as error:
        note(f"keju: the report goes without the questions' texts: {error}")
        return lambda *_: None
