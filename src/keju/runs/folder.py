"""Run folders: where they are, how they are named, and which there are."""

from __future__ import annotations

import os
import re
import shlex
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import NamedTuple

from keju.config import TaskConfig
from keju.config.load import runs_folder
from keju.errors import UsageError, did_you_mean
from keju.runs.journal import FILE, Journal
from keju.runs.manifest import MANIFEST

RESULTS, REPORT = "results.json", "report.html"
REPLACED = ".replaced-"
"""Stands between the name of a run that was replaced, and a number."""


def new_run_id(model: str, datasets: list[str]) -> str:
    """A name that sorts by time and says what was run."""
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    words = re.sub(r"[^A-Za-z0-9._]+", "-", f"{'-'.join(datasets)}-{model}").strip("-.")
    return f"{stamp}-{words}"[:96]


class RunFolder(NamedTuple):
    """Where a run is saved, and whether it begins here."""

    path: Path
    new: bool
    replaced: Path | None = None
    """Where the run now is whose place it takes."""

    def undo(self) -> None:
        """Remove the folder of a run that was refused before anything was saved.

        The run whose place it took is put back.
        """
        if not self.new or not self.path.is_dir():
            return
        left = list(self.path.iterdir())
        if all(path.stat().st_size == 0 for path in left):
            for path in left:
                path.unlink()
            self.path.rmdir()
            if self.replaced is not None:
                self.replaced.rename(self.path)


def run_folder(config: TaskConfig) -> RunFolder:
    """The folder of a run, made if need be: the one it names, or a new one of its own."""
    refuse_unknown_run(config)
    work_dir = Path(config.work_dir)
    if config.run_id is not None:
        folder = work_dir / config.run_id
        replaced = _moved_aside(folder) if config.replace else None
        existed = folder.exists()
        return RunFolder(_create(folder, exist_ok=True), new=not existed, replaced=replaced)
    name = new_run_id(config.model, config.datasets)
    for number in range(1, 1000):  # others may start in the same second
        folder = work_dir / (name if number == 1 else f"{name}-{number}")
        try:
            return RunFolder(_create(folder, exist_ok=False), new=True)
        except FileExistsError:
            continue
    raise UsageError("run_too_many", work_dir=work_dir, name=name)


def command_name(folder: Path) -> str:
    """What a command calls the run in `folder`: its id where runs usually are, else its path."""
    usual = folder.parent == runs_folder(None)
    return shlex.quote(folder.name if usual else str(folder))


def refuse_unknown_run(config: TaskConfig) -> None:
    """UsageError where a run is to be resumed that is not there."""
    if not config.resume:
        return
    if config.run_id is None:
        raise UsageError("run_resume_id")
    work_dir = Path(config.work_dir)
    if not (work_dir / config.run_id / MANIFEST).is_file():
        hint = _nearest(config.run_id, work_dir)
        raise UsageError(
            "run_none_to_resume", run_id=config.run_id, work_dir=config.work_dir, hint=hint
        )


def _moved_aside(folder: Path) -> Path | None:
    """Rename the folder of a run to ``RUN.replaced-1``, or to the next number that is free.

    UsageError if another process writes to it.
    """
    if not folder.is_dir():
        return None
    if not any((folder / name).is_file() for name in (MANIFEST, FILE)) and any(folder.iterdir()):
        raise UsageError("run_not_a_run", folder=folder)
    taken = {path.name for path in folder.parent.glob(f"{folder.name}{REPLACED}*")}
    numbered = (f"{folder.name}{REPLACED}{number}" for number in count(1))
    aside = folder.with_name(next(name for name in numbered if name not in taken))
    try:
        with Journal(folder):
            folder.rename(aside)
    except OSError as error:
        values = {"folder": folder, "aside": aside, "problem": error.strerror}
        raise UsageError("run_not_moved", **values) from None
    return aside


def _create(folder: Path, *, exist_ok: bool) -> Path:
    """Make a folder; FileExistsError only where it must be new."""
    try:
        folder.mkdir(parents=True, exist_ok=exist_ok)
    except OSError as error:
        if not exist_ok and isinstance(error, FileExistsError):
            raise
        raise UsageError("run_cannot_create", folder=folder, problem=error.strerror) from None
    if not os.access(folder, os.W_OK):
        raise UsageError("run_no_permission", folder=folder)
    return folder


def find_run(name: str, work_dir: str = "runs") -> Path:
    """The folder of a run, given as a path or as an id below `work_dir`."""
    for folder in (Path(name), Path(work_dir) / name):
        if (folder / MANIFEST).is_file():
            return folder
    raise UsageError("run_none", name=name, work_dir=work_dir, hint=_nearest(name, Path(work_dir)))


def _nearest(name: str, work_dir: Path) -> str:
    """The runs that may be meant, for a message; empty where there are none."""
    names = [path.parent.name for path in sorted(work_dir.glob(f"*/{MANIFEST}"))]
    return did_you_mean(name, names) if names else ""
