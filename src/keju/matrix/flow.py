"""Run a matrix from start to finish: its runs, then the table of their results."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from keju.config.matrix import MatrixConfig
from keju.errors import KejuError, UsageError
from keju.files import write_json
from keju.interop.watchers import watch_runs
from keju.matrix.session import MatrixSession, stop_of
from keju.messages import current_language
from keju.progress.watching import WATCHER
from keju.reporting.board import Board
from keju.reporting.matrix import write_matrix
from keju.results.matrix import Matrix, matrix_of
from keju.runs.manifest import format_now
from keju.runs.matrix import MATRIX_FILE, StoredMatrix, StoredMatrixRun, open_matrix_folder
from keju.runs.run import RESULTS


class FinishedMatrix(NamedTuple):
    """The outcome of a matrix."""

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
        """The results as the plain document that ``results.json`` of the matrix holds."""
        return self.matrix.document


def run_matrix(
    config: MatrixConfig, *, board: Board | None = None, report: bool = True
) -> FinishedMatrix:
    """Run all pairs of a matrix that are not complete, and write the table of results.

    An error that ends one run does not end the others. The same call resumes incomplete runs.
    """
    board = board or Board()
    folder = Path(config.task.work_dir) / config.name
    if config.resume and not (folder / MATRIX_FILE).is_file():
        raise UsageError("plan_none", name=config.name, work_dir=config.task.work_dir)
    with open_matrix_folder(folder), watch_runs(config.task, board):
        stored = _load_or_create_matrix(config, folder)

        def note_pace(seconds: float) -> None:
            stored.seconds = round(seconds, 1)
            stored.write(folder)

        session = MatrixSession(
            config, board, report=report, seconds=stored.seconds, on_pace=note_pace
        )
        stored.write(folder)
        watcher = WATCHER.get()
        if watcher is not None:
            watcher.matrix_started(config.name, [pair.run for pair in config.pairs])
        session.run()
        stop = stop_of(session)
        errors = {work.pair.run: work.error for work in session.works if work.error is not None}
        matrix = matrix_of(folder, errors=errors, data_dir=config.task.data_dir)
        write_json(folder / RESULTS, matrix.document)
        if report:
            write_matrix(matrix, folder, language=config.task.language or current_language())
        if watcher is not None:
            watcher.matrix_finished(config.name, stop)
    return FinishedMatrix(matrix, folder, stop)


def _load_or_create_matrix(config: MatrixConfig, folder: Path) -> StoredMatrix:
    """Return the contents of ``plan.json``: today's pairs and the time of earlier sessions."""
    stored = StoredMatrix(plan=config.name, created=format_now())
    if (folder / MATRIX_FILE).is_file():
        stored = StoredMatrix.read(folder)
    stored.runs = [StoredMatrixRun(pair.run, pair.model, pair.exam) for pair in config.pairs]
    return stored
