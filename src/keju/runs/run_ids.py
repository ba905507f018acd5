"""The ids of runs that the user did not name, and the run that the same command continues.

An id names the exams and the model: ``quiz-qwen-7b``. The same command continues its own
unfinished run. If that run is complete, is in use by another process, or has other settings, the
next free id with a number is taken: ``quiz-qwen-7b-2``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Final, Literal

from keju.benchmarks.registry import known_spelling
from keju.config import TaskConfig
from keju.config.exams import FILE_ENDINGS
from keju.errors import DataError
from keju.files import take_lock
from keju.runs.journal import FILE
from keju.runs.manifest import MANIFEST, Manifest, make_storable

EXAMS_NAMED: Final = 3
"""The number of exams that an id names; others are counted."""
_LONGEST_ID, _LONGEST_NAME = 96, 200
"""Characters of a run's name, and bytes. File systems take 255, and a suffix may follow."""
FREE_SETTINGS: Final = frozenset(
    {
        "run_id", "work_dir", "resume", "replace", "language", "events", "metrics_port", "otel",
        "eval_batch_size", "timeout", "attempts", "retry_interval", "rpm", "tpm", "give_up_after",
        "error_limit", "budget", "price", "executor", "ray", "use_cache",
    }
)  # fmt: skip
"""Settings that change the pace or the place of a run, but not its questions or replies."""


def make_run_id(model: str, datasets: list[str]) -> str:
    """Return a short id that names the exams and the model: ``quiz-qwen-7b``."""
    exams = datasets[:EXAMS_NAMED]
    if len(datasets) > EXAMS_NAMED:
        exams = [*datasets[: EXAMS_NAMED - 1], f"{len(datasets) - EXAMS_NAMED + 1}-more"]
    words = "-".join(filter(None, [*map(_clean_exam, exams), _clean_model(model)]))
    run_id = words[:_LONGEST_ID].encode()[:_LONGEST_NAME].decode(errors="ignore")
    return run_id.strip("-._") or "run"


def _clean_exam(name: str) -> str:
    """Return the name of an exam as a part of a file name; ``quiz`` for the file ``quiz.csv``."""
    name = known_spelling(name)
    ending = next((end for end in FILE_ENDINGS if name.lower().endswith(end)), "")
    return _clean_name(name[: len(name) - len(ending)] or name)


def _clean_model(model: str) -> str:
    """Return the name of a model as a part of a file name, without its owner or folder."""
    kind, colon, name = model.rpartition(":")
    return _clean_name(f"{kind}{colon}{name.rstrip('/').rpartition('/')[2]}")


def _clean_name(name: str) -> str:
    """Return the name of an exam as a part of a file name. Of a path, only its last part.

    ``custom:data/quiz`` becomes ``custom-data-quiz``, and ``.`` the name of this folder.
    """
    kind, colon, place = name.rpartition(":")
    if place.startswith((".", "/", "~")):
        place = Path(place).expanduser().resolve().name
    return re.sub(r"[^\w.]+", "-", f"{kind}{colon}{place}").strip("-.")


def candidate_ids(config: TaskConfig) -> Iterator[str]:
    """Return the ids that a run without a name may get: the short one, then with a number."""
    return _numbered_ids(make_run_id(config.model, config.datasets))


def _numbered_ids(run_id: str) -> Iterator[str]:
    """Yield an id, and then the same with a number."""
    yield run_id
    for number in count(2):
        yield f"{run_id}-{number}"


def find_unfinished(config: TaskConfig, excluded: Collection[str] = ()) -> str | None:
    """Return the id of the unfinished run that the same command began, or None."""
    for name in candidate_ids(config):
        folder = Path(config.work_dir, name)
        if not folder.exists():
            return None
        if name not in excluded and _is_unfinished(folder, config):
            return name
    return None


def find_unfinished_pair(sides: Iterable[tuple[str, TaskConfig]], base_id: str) -> str:
    """Return the id of the unfinished runs that the same command began together, or a free id.

    The runs are in the folders ``ID-SIDE``, and `sides` has the settings of each.
    """
    configs = dict(sides)
    for pair_id in _numbered_ids(base_id):
        folders = {
            Path(config.work_dir, f"{pair_id}-{side}"): config for side, config in configs.items()
        }
        present = {folder: config for folder, config in folders.items() if folder.exists()}
        if not present:
            return pair_id
        states = [_read_state(folder, config) for folder, config in present.items()]
        if "other" not in states and (len(present) < len(folders) or "unfinished" in states):
            return pair_id
    raise AssertionError("ids do not end")


def _is_unfinished(folder: Path, config: TaskConfig) -> bool:
    """Return whether a folder holds an unfinished run with the same settings, not in use."""
    return _read_state(folder, config) == "unfinished"


def _read_state(folder: Path, config: TaskConfig) -> Literal["unfinished", "complete", "other"]:
    """Return the state of a run with the same settings that is not in use; else ``other``."""
    if not (folder / MANIFEST).is_file():
        return "other"
    try:
        manifest = Manifest.read(folder)
    except DataError:
        return "other"
    if manifest.imported is True:
        return "other"
    stored, today = (
        {key: value for key, value in settings.items() if key not in FREE_SETTINGS}
        for settings in (manifest.config, make_storable(config, folder.name))
    )
    if stored != today or _is_in_use(folder):
        return "other"
    return "complete" if manifest.complete else "unfinished"


def _is_in_use(folder: Path) -> bool:
    """Return whether another process holds the journal of a run."""
    path = folder / FILE
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:  # no journal yet, or none that can be written
        return False
    try:
        return not take_lock(descriptor, path)
    finally:
        os.close(descriptor)
