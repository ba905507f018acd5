"""``keju merge``: joins parts of one run, made by several jobs."""

from __future__ import annotations

from pathlib import Path

from keju.cli.command import command
from keju.cli.common import CommandOutput, open_stored_run, session_output
from keju.errors import UsageError


@command(
    "merge",
    "keju merge part-1 part-2 part-3 -o tuesday",
    "keju merge runs/job-* -o runs/tuesday --json",
)
def merge(
    runs: list[str],
    merged_run: str | None,
    data_dir: str | None,
    work_dir: str | None,
    no_report: bool,
) -> CommandOutput:
    """Make one run of its parts: runs with the same model, protocol, sampling and data.

    The parts, such as those of 'keju eval --shard 3/16', stay as they are; sessions and costs are
    added up. If questions are missing, the last line is the command that asks them:
    'keju eval --config runs/tuesday/manifest.json --resume'.

    Exit codes: 0 ok, 2 no parts of one run, 4 questions are missing.
    """
    from keju.cli.evaluate import print_next_steps
    from keju.config.load import runs_folder
    from keju.stored_tasks import merge_runs

    if merged_run is None:
        raise UsageError("merge_where")
    place = Path(merged_run)
    folder = place if len(place.parts) > 1 else runs_folder(work_dir) / merged_run
    parts = [open_stored_run(run, work_dir) for run in runs]
    finished = merge_runs(parts, folder, data_dir=data_dir, report=not no_report)
    return session_output(finished, lambda: print_next_steps(finished))
