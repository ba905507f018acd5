"""Run folders: where they are, what is in them, and the manifest that determines the numbers."""

from __future__ import annotations

import os
import platform
import re
import sys
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from keju.config import TaskConfig
from keju.errors import DataError, UsageError, did_you_mean
from keju.files import read_json

MANIFEST, RESULTS, REPORT = "manifest.json", "results.json", "report.html"
PACKAGES = ("keju", "msgspec", "pydantic", "pyreqwest", "uvloop")


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
    found = []
    for manifest in sorted(Path(work_dir).glob(f"*/{MANIFEST}")):
        try:
            facts = read_json(manifest)
        except DataError:
            continue
        complete = bool(facts.get("complete"))
        names = [exam["name"] for exam in facts.get("benchmarks", [])]
        folder = manifest.parent
        created = str(facts.get("created", ""))
        found.append(
            RunInfo(folder.name, folder, str(facts.get("model")), names, created, complete)
        )
    return sorted(found, key=lambda run: run.created)


def environment() -> dict[str, Any]:
    """Versions of what takes part in a run."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return {
        "python": platform.python_version(),
        "platform": f"{sys.platform}-{platform.machine()}",
        "packages": versions,
    }


def now() -> str:
    """The time as manifests write it."""
    return datetime.now(UTC).isoformat(timespec="seconds")
