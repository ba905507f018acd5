"""The functions for Python users: run a task, and read stored runs.

A run is given by its id, its folder, or the object that `open_run` returns.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from keju.benchmarks import registry
from keju.config import JudgeConfig, TaskConfig
from keju.config.load import load, runs_folder
from keju.config.matrix import load_matrix
from keju.errors import Interrupted, UsageError
from keju.interop.export import FORMS, export_run, form_of
from keju.matrix.flow import run_matrix as finish_plan
from keju.messages import Language
from keju.models.registry import settings_without_effect
from keju.reporting import runs as stored_runs
from keju.reporting.board import Board, make_board
from keju.reporting.charts import Kind, draw
from keju.reporting.comparison import report_comparison
from keju.reporting.figure import Figure as Figure
from keju.reporting.figure import check_suffix
from keju.reporting.html import report_run
from keju.reporting.live import LoopDisplay, Shown, display_for, in_notebook
from keju.reporting.runs import RunResults as RunResults
from keju.reporting.runs import StoredRun as StoredRun
from keju.reporting.summary import render_summary
from keju.results.matrix import Matrix as Matrix
from keju.results.score import score_run
from keju.runs.run import Run
from keju.signals import REMOTE, ThreadInterrupter
from keju.stored_tasks import judge_stored
from keju.task import FinishedTask, run_exams

TaskSource = TaskConfig | dict[str, Any] | str | Path
"""Settings: a TaskConfig, a mapping of its fields, or the path of a YAML or JSON file."""
RunSource = str | Path | Run | RunResults
"""A stored run: its id, its folder, a `StoredRun`, or the result of `run_task`."""


def run_task(task_cfg: TaskSource, *, progress: Shown = None, quiet: bool = False) -> RunResults:
    """Run the exams of a task and return its results. They are also the results document.

    `task_cfg` is a TaskConfig, a mapping with its fields, or the path of a YAML or JSON file.
    `progress` is a function that is called with a `Progress`, True for a bar, or False for no
    display. The default is a bar in a notebook and on a terminal.

    Outside a notebook, a short summary with the score and the folder of the run is printed at the
    end. With ``quiet=True`` or ``progress=False`` nothing is printed.

    Raises a KejuError with one line about the problem. A run that stopped early raises
    RunIncomplete, EndpointError or Interrupted, and can be resumed with its run id.
    """
    is_silent = quiet or progress is False
    display = display_for(False if quiet else progress)
    results = _raise_or_return(run_exams(_load_task(task_cfg), display=display))
    _print_summary(results, is_silent=is_silent)
    return results


def _print_summary(results: RunResults, *, is_silent: bool) -> None:
    """Print the short answer of a run, except in a notebook, which shows the results themselves."""
    if not is_silent and not in_notebook():
        render_summary(results.results)


async def arun_task(
    task_cfg: TaskSource, *, progress: Shown = None, quiet: bool = False
) -> RunResults:
    """Run a task like `run_task`, without blocking the running event loop.

    The run works in another thread. `progress` is called on the loop. If this call is cancelled,
    the run stops as with Ctrl-C: its answers are saved, and it can be resumed.
    """
    config, remote = _load_task(task_cfg), ThreadInterrupter()
    shown_progress = False if quiet else progress
    display = LoopDisplay(display_for(shown_progress), asyncio.get_running_loop())

    def work() -> RunResults:
        REMOTE.set(remote)
        return _raise_or_return(run_exams(config, display=display))

    thread = asyncio.ensure_future(asyncio.to_thread(work))
    cancelled: asyncio.CancelledError | None = None
    while not thread.done():
        try:
            await asyncio.wait([thread])
        except asyncio.CancelledError as error:
            cancelled = error
            remote.interrupt()
    if cancelled is not None:
        thread.exception()  # it was stopped, and its error says so
        raise cancelled
    results = thread.result()
    _print_summary(results, is_silent=quiet or progress is False)
    return results


def _load_task(task_cfg: TaskSource) -> TaskConfig:
    """Return the complete and checked settings of a task."""
    if isinstance(task_cfg, TaskConfig):
        fields = task_cfg.model_dump(exclude_unset=True) | {"headers": task_cfg.headers}
        if "arms" in fields:  # unchanged, since the stored form of servers lacks their secrets
            fields["arms"] = task_cfg.arms
        if task_cfg.api_key is not None:
            fields["api_key"] = task_cfg.api_key.get_secret_value()
        return load(flags=fields, idle=settings_without_effect)
    if isinstance(task_cfg, dict):
        return load(flags=task_cfg, idle=settings_without_effect)
    return load(file=Path(task_cfg), idle=settings_without_effect)


def _raise_or_return(finished: FinishedTask) -> RunResults:
    """Return the results of a finished task. Raise the error that ended it early, if there is
    one."""
    if finished.error is not None:
        raise type(finished.error)(finished.problem)
    return RunResults(finished.results, finished.folder)


def run_matrix(plan: Mapping[str, Any] | str | Path, *, progress: bool | None = None) -> Matrix:
    """Run every model of a plan on every exam and return the combined results.

    `plan` is the path of a YAML or JSON file, or a mapping with its keys. An error that ends one
    run does not end the others. `complete` of the result tells whether all runs are complete. The
    same call continues incomplete runs. `progress` shows a table of the runs; the default is a
    table on a terminal. Ctrl-C raises Interrupted.
    """
    config = load_matrix(
        plan, exam_name=lambda name: registry.get(name).name, idle=settings_without_effect
    )
    quiet = progress is None and not sys.stderr.isatty()
    board = Board() if progress is False else make_board(quiet=quiet)
    finished = finish_plan(config, board=board)
    if isinstance(finished.error, Interrupted):
        raise finished.error
    return finished.matrix


def open_run(run: RunSource, work_dir: str | None = None) -> StoredRun:
    """Return the stored run in the folder `run`, or with this id below `work_dir`."""
    stored = run.folder if isinstance(run, RunResults) else run
    return stored_runs.open_run(stored, str(runs_folder(work_dir)))


def list_runs(work_dir: str | None = None) -> list[StoredRun]:
    """Return the runs below `work_dir` whose manifests can be read, oldest first."""
    return stored_runs.list_runs(str(runs_folder(work_dir)))


def score(
    run: RunSource,
    *,
    readers: Sequence[str] | str | None = None,
    data_dir: str | None = None,
    work_dir: str | None = None,
) -> RunResults:
    """Read the replies of a stored run again and return the results.

    It uses `readers`, or the readers of the run. It calls no model and writes no file.
    """
    stored = open_run(run, work_dir)
    names = [readers] if isinstance(readers, str) else list(readers or ())
    return RunResults(score_run(stored, readers=names, data_dir=data_dir), stored.folder)


def judge(
    run: RunSource,
    settings: JudgeConfig | dict[str, Any] | None = None,
    *,
    progress: Shown = None,
    data_dir: str | None = None,
    work_dir: str | None = None,
) -> RunResults:
    """Grade the answers of a stored run with a model, and write its results and report again.

    `settings` are those of ``judge`` in a config file, e.g. ``{"model": NAME, "api_url": URL}``.
    They override the settings of the run's judge.
    """
    judge_settings = (
        settings.model_dump(exclude_unset=True) if isinstance(settings, JudgeConfig) else settings
    )
    flags = {} if data_dir is None else {"data_dir": data_dir}
    stored = open_run(run, work_dir)
    return _raise_or_return(
        judge_stored(stored, judge_settings, flags, display=display_for(progress))
    )


def export(
    run: RunSource,
    path: str | Path,
    *,
    format: str | None = None,
    full_text: bool = False,
    data_dir: str | None = None,
    work_dir: str | None = None,
) -> Path:
    """Export a run and return `path`. The format is `format` or follows from the suffix of `path`.

    With `full_text` a table also has the texts of questions and replies.
    """
    form = form_of(path, format)
    if form not in FORMS:
        raise UsageError("export_unknown_form", form=form, forms=[*FORMS])
    stored = open_run(run, work_dir)
    export_run(stored, form, Path(path), full_text=full_text, data_dir=data_dir)
    return Path(path)


def report(
    run: RunSource | Sequence[RunSource],
    path: str | Path | None = None,
    *,
    language: Language = "en",
    data_dir: str | None = None,
    work_dir: str | None = None,
) -> Path:
    """Write the report of a run, by default into its folder, and return its path.

    For a list of runs, write the report of their comparison, by default ``compare.html``.
    """
    if isinstance(run, Sequence) and not isinstance(run, str):
        folders = {"data_dir": data_dir, "work_dir": work_dir}
        return report_comparison(run, path, language=language, **folders)
    stored = open_run(run, work_dir)
    return report_run(stored, path, language=language, data_dir=data_dir).path


def plot(
    *runs: RunSource,
    kind: Kind = "forest",
    path: str | Path | None = None,
    language: Language = "en",
    data_dir: str | None = None,
    work_dir: str | None = None,
) -> Figure:
    """Draw runs and return a figure that a notebook shows. With `path`, save it as SVG, PNG or PDF
    too.

    A ``forest`` shows the subsets with their intervals. A ``difference`` compares two runs or arms
    question by question. ``latency`` and ``tokens`` show the cost of replies, ``outcomes`` their
    outcomes.
    """
    opened = [open_run(run, work_dir) for run in runs]
    if path is not None:
        check_suffix(path)
    figure = draw(opened, kind, language=language, data_dir=data_dir)
    if path is not None:
        figure.save(path)
    return figure
