"""Run a plan from start to finish: its runs, then the matrix of their results."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from keju.config.plan import PlanConfig
from keju.engine.watching import WATCHER
from keju.errors import KejuError, UsageError
from keju.files import write_json
from keju.interop.watchers import watch_runs
from keju.messages import spoken
from keju.plans.session import PlanSession, stop_of
from keju.report.board import Board
from keju.report.matrix import write_matrix
from keju.results.matrix import Matrix, matrix_of
from keju.runs.manifest import format_now
from keju.runs.plan import PLAN, PlannedRun, StoredPlan, open_plan_folder
from keju.runs.run import RESULTS


class FinishedPlan(NamedTuple):
    """The outcome of a plan."""

    matrix: Matrix
    folder: Path
    error: KejuError | None = None
    """The error that ended it early, or the error that runs are incomplete."""

    @property
    def exit_code(self) -> int:
        """The exit code of the command."""
        return self.error.exit_code if self.error else 0

    @property
    def document(self) -> dict[str, Any]:
        """The results as the plain document that ``results.json`` of the plan holds."""
        return self.matrix.document


def run_plan(plan: PlanConfig, *, board: Board | None = None, report: bool = True) -> FinishedPlan:
    """Run all pairs of a plan that are not complete, and write the matrix of results.

    An error that ends one run does not end the others. The same call resumes incomplete runs.
    """
    board = board or Board()
    folder = Path(plan.task.work_dir) / plan.name
    if plan.resume and not (folder / PLAN).is_file():
        raise UsageError("plan_none", name=plan.name, work_dir=plan.task.work_dir)
    with open_plan_folder(folder), watch_runs(plan.task, board):
        stored = _load_or_create_plan(plan, folder)

        def note_pace(seconds: float) -> None:
            stored.seconds = round(seconds, 1)
            stored.write(folder)

        session = PlanSession(plan, board, report=report, seconds=stored.seconds, on_pace=note_pace)
        stored.write(folder)
        watcher = WATCHER.get()
        if watcher is not None:
            watcher.plan_started(plan.name, [pair.run for pair in plan.pairs])
        session.run()
        stop = stop_of(session)
        errors = {work.pair.run: work.error for work in session.works if work.error is not None}
        matrix = matrix_of(folder, errors=errors, data_dir=plan.task.data_dir)
        write_json(folder / RESULTS, matrix.document)
        if report:
            write_matrix(matrix, folder, language=plan.task.language or spoken())
        if watcher is not None:
            watcher.plan_finished(plan.name, stop)
    return FinishedPlan(matrix, folder, stop)


def _load_or_create_plan(plan: PlanConfig, folder: Path) -> StoredPlan:
    """Return the contents of ``plan.json``: today's pairs and the time of earlier sessions."""
    stored = StoredPlan(plan=plan.name, created=format_now())
    if (folder / PLAN).is_file():
        stored = StoredPlan.read(folder)
    stored.runs = [PlannedRun(pair.run, pair.model, pair.exam) for pair in plan.pairs]
    return stored
