"""``keju report``: writes a run's report as one HTML file."""

from __future__ import annotations

from pathlib import Path

from keju.cli.command import command
from keju.cli.common import CommandOutput, open_stored_run, page_path, print_lines, remark
from keju.messages import current_language, label_text


@command(
    "report",
    "keju report tuesday",
    "keju report runs/tuesday -o report.html --language zh",
    "keju report monday tuesday -o compare.html",
)
def report(
    runs: list[str],
    output: str | None,
    data_dir: str | None,
    work_dir: str | None,
) -> CommandOutput:
    """Write the report of a run as one HTML file that needs no network.

    For several runs, it is the report of their comparison, as 'keju compare -o' writes it. For a
    plan, it covers all runs of the plan.
    """
    from keju.config.load import runs_folder
    from keju.reporting.comparison import report_comparison
    from keju.reporting.html import report_run
    from keju.reporting.matrix import write_matrix
    from keju.results.matrix import matrix_of
    from keju.runs.matrix import find_matrix

    page_path(output)
    folder = find_matrix(runs[0], str(runs_folder(work_dir))) if len(runs) == 1 else None
    if folder is not None:
        matrix = matrix_of(folder, data_dir=data_dir)
        page = write_matrix(
            matrix, folder, Path(output) if output else None, language=current_language()
        )
        return CommandOutput({"plan": folder.name, "report": str(page)}, lambda: _print_path(page))
    if len(runs) > 1:
        page = report_comparison(
            runs, output, language=current_language(), data_dir=data_dir, work_dir=work_dir
        )
        return CommandOutput({"runs": runs, "report": str(page)}, lambda: _print_path(page))
    stored = open_stored_run(runs[0], work_dir)
    target, notices = report_run(stored, output, language=current_language(), data_dir=data_dir)
    for notice in notices:
        remark(notice.message)
    document = {"run": stored.id, "report": str(target)}
    return CommandOutput(document, lambda: _print_path(target))


def _print_path(file: Path) -> None:
    print_lines(label_text("wrote", file=file))
