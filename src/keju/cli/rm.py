"""``keju rm``: delete a stored run."""

from __future__ import annotations

import shutil
import sys

from keju.cli.command import command
from keju.cli.common import Output, print_lines, stored_run
from keju.errors import UsageError
from keju.messages import printable, said


@command("rm", "keju rm tuesday", "keju rm runs/tuesday --yes")
def rm(run: str, yes: bool, work_dir: str | None) -> Output:
    """Delete a run with all its replies. Asks first; a run that is being written is refused."""
    from keju.runs.journal import Journal

    folder = stored_run(run, work_dir).folder
    Journal(folder).close()  # refuses a run that another process writes
    if not yes:
        if not sys.stdin or not sys.stdin.isatty():
            raise UsageError("cli_rm_needs_yes", run=folder)
        sys.stderr.write(printable(said("rm.ask", folder=folder)))
        sys.stderr.flush()
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            return Output({"removed": None}, lambda: print_lines(said("rm.kept")))
    shutil.rmtree(folder)
    return Output({"removed": str(folder)}, lambda: print_lines(said("rm.deleted", folder=folder)))
