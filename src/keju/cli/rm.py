"""``keju rm``: deletes stored runs."""

from __future__ import annotations

import shutil
import sys

from keju.cli.command import command
from keju.cli.common import CommandOutput, open_stored_run, print_lines
from keju.errors import UsageError
from keju.messages import label_text, printable


@command("rm", "keju rm tuesday", "keju rm monday tuesday", "keju rm --lm-eval-cache")
def rm(
    runs: list[str] | None, yes: bool, lm_eval_cache: bool, work_dir: str | None
) -> CommandOutput:
    """Delete runs with all their replies, after one confirmation for all of them.

    If one of them does not exist, or is still running, none is deleted. The cache of lm-eval's
    tasks is made again when it is needed, so it is deleted without a question.
    """
    if not runs:
        if not lm_eval_cache:
            raise UsageError("cli_rm_nothing")
        return _clear_cache()
    output = _delete_runs(runs, yes, work_dir)
    if not lm_eval_cache or output.document["removed"] is None:
        return output
    cleared = _clear_cache()

    def show() -> None:
        output.show()
        cleared.show()

    return CommandOutput(output.document | cleared.document, show)


def _clear_cache() -> CommandOutput:
    from keju.benchmarks.lm_eval_tasks.catalog import clear_cache

    count = len(clear_cache())
    return CommandOutput(
        {"cached_files": count}, lambda: print_lines(label_text("rm.cache", n=count))
    )


def _delete_runs(runs: list[str], yes: bool, work_dir: str | None) -> CommandOutput:
    from keju.runs.journal import Journal

    folders_by_path = {
        (run_folder := open_stored_run(run, work_dir).folder).resolve(): run_folder for run in runs
    }
    folders = [*folders_by_path.values()]
    for folder in folders:
        Journal(folder).close()  # raises an error if another process writes to the run
    folder_names = label_text("list_separator").join(map(str, folders))
    if not yes:
        if not sys.stdin or not sys.stdin.isatty():
            raise UsageError("cli_rm_needs_yes", run=folders)
        sys.stderr.write(printable(label_text("rm.ask", folders=folder_names, n=len(folders))))
        sys.stderr.flush()
        if not (answer := sys.stdin.readline()):  # end of input instead of an answer
            sys.stderr.write("\n")
            raise UsageError("cli_rm_needs_yes", run=folders)
        if answer.strip().lower() not in ("y", "yes"):
            return CommandOutput({"removed": None}, lambda: print_lines(label_text("rm.kept")))
    for folder in folders:
        shutil.rmtree(folder)
    removed = [str(folder) for folder in folders]
    document = {"removed": removed[0] if len(runs) == 1 else removed}
    return CommandOutput(
        document, lambda: print_lines(*(label_text("rm.deleted", folder=f) for f in removed))
    )
