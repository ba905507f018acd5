"""``keju report``: a run's report as one HTML file."""

from __future__ import annotations

from typing import Literal

from keju.cli.command import Output, command
from keju.cli.common import note, print_lines, stored_run
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
    from keju.report.html import report_run

    stored = stored_run(run, work_dir)
    target, notices = report_run(stored, output, language=language, data_dir=data_dir)
    for notice in notices:
        note(f"keju: {notice.said}")
    document = {"run": stored.id, "report": str(target)}
    return Output(document, lambda: print_lines(said("wrote", file=target)))
