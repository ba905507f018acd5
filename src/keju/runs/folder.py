"""Run folders: where they are, how they are named, and which there are."""

from __future__ import annotations

import os
import re
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from keju.config import TaskConfig
from keju.errors import DataError, UsageError, did_you_mean
from keju.runs.manifest import MANIFEST, Manifest

RESULTS, REPORT = "results.json", "report.html"


class RunInfo(NamedTuple):
    """A stored run, for lists."""

    id: str
    folder: Path
    model: str
    benchmarks: list[str]
    created: str
    complete: bool


def new_run_id(model: str, datasets: list[str]) -> str:
    """A name that sorts by time and says what was run."""
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    words = re.sub(r"[^A-Za-z0-9._]+", "-", f"{'-'.join(datasets)}-{model}").strip("-.")
    return f"{stamp}-{words}"[:96]


class RunFolder(NamedTuple):
    """Where a run is saved, and whether it begins here."""

    path: Path
    new: bool

    def remove_if_empty(self) -> None:
        """Remove the folder of a run that was refused before anything was saved."""
        left = list(self.path.iterdir()) if self.new else []
        if self.new and all(path.stat().st_size == 0 for path in left):
            for path in left:
                path.unlink()
            self.path.rmdir()


def run_folder(config: TaskConfig) -> RunFolder:
    """The folder of a run, made if need be: the one it names, or a new one of its own."""
    if config.run_id is None:
        if config.resume:
            raise UsageError("--resume needs the run's --run-id, or --config RUN/manifest.json")
        name = new_run_id(config.model, config.datasets)
        return RunFolder(_new_folder(Path(config.work_dir), name), new=True)
    folder = Path(config.work_dir) / config.run_id
    if config.resume and not (folder / MANIFEST).is_file():
        known = [run.id for run in list_runs(config.work_dir)]
        hint = did_you_mean(config.run_id, known) if known else ""
        raise UsageError(f"no run '{config.run_id}' in {config.work_dir} to resume{hint}")
    existed = folder.exists()
    return RunFolder(create_folder(folder), new=not existed)


def _new_folder(work_dir: Path, name: str) -> Path:
    """A folder that did not exist before, whatever else starts in the same second."""
    for number in range(1, 1000):
        folder = work_dir / (name if number == 1 else f"{name}-{number}")
        try:
            return create_folder(folder, new=True)
        except FileExistsError:
            continue
    raise UsageError(f"{work_dir} holds too many runs called {name}")


def create_folder(folder: Path, *, new: bool = False) -> Path:
    """Make a folder; FileExistsError if it must be `new` and is not."""
    try:
        folder.mkdir(parents=True, exist_ok=not new)
    except OSError as error:
        if new and isinstance(error, FileExistsError):
            raise
        raise UsageError(f"cannot create {folder}: {error.strerror}; see --work-dir") from None
    if not os.access(folder, os.W_OK):
        raise UsageError(f"cannot write to {folder}: permission denied; see --work-dir")
    return folder


def find_run(name: str, work_dir: str = "runs") -> Path:
    """The folder of a run, given as a path or as an id below `work_dir`."""
    for folder in (Path(name), Path(work_dir) / name):
        if (folder / MANIFEST).is_file():
            return folder
    known = [run.id for run in list_runs(work_dir)]
    hint = did_you_mean(name, known) if known else ""
    raise UsageError(f"no run '{name}' here or in {work_dir}{hint}")


def list_runs(work_dir: str = "runs") -> list[RunInfo]:
    """The runs below `work_dir`, oldest first."""
    runs = []
    for path in sorted(Path(work_dir).glob(f"*/{MANIFEST}")):
        folder = path.parent
        try:
            manifest = Manifest.read(folder)
        except DataError:
            continue
        exams = [exam.name for exam in manifest.benchmarks]
        runs.append(
            RunInfo(folder.name, folder, manifest.model, exams, manifest.created, manifest.complete)
        )
    return sorted(runs, key=lambda run: run.created)
