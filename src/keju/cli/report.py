"""``keju report``: a run's report as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from keju.cli.command import Output, command
from keju.cli.common import note, print_lines, stored_run
from keju.errors import UsageError
from keju.messages import said


@command("report", "keju report tuesday", "keju report runs/tuesday -o report.html --language zh")
def report(
    run: str,
    output: str | None,
    language: Literal["en", "zh"],
    data_dir: str | None,
    work_dir: str | None,
) -> Output:
    """Write the report of a run as one HTML file that needs no network."""
    from keju.engine.job import make_jobs
    from keju.engine.resume import JobRequests, answers_of
    from keju.report.html import write_report
    from keju.results.schema import from_document
    from keju.results.score import score_run
    from keju.runs.folder import REPORT
    from keju.runs.run import damage_notices

    stored = stored_run(run, work_dir)
    current = stored.results_are_current
    results = from_document(stored.results()) if current else score_run(stored, data_dir=data_dir)
    target = Path(output) if output else stored.folder / REPORT
    requests = None
    try:
        requests = JobRequests(make_jobs(stored.config(data_dir)))
    except UsageError as error:
        note(f"keju: the report goes without the questions' texts: {error}")
    answers = answers_of(stored, requests)
    write_report(results, answers, target, manifest=stored.manifest, language=language)
    missing = [
        notice
        for entry in results.benchmarks
        for notice in entry.notices
        if notice.code == "replies_missing"
    ]
    for notice in [*missing, *damage_notices(stored.damaged, len(missing))]:
        note(f"keju: {notice.said}")
    document = {"run": stored.id, "report": str(target)}
    return Output(document, lambda: print_lines(said("wrote", file=target)))
