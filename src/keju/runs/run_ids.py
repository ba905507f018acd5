"""The ids of runs that the user did not name, and the run that the same command continues.

An id names the exams and the model: ``quiz-qwen-7b``. The same command continues its own
unfinished run. If that run is complete, is in use by another process, or has other settings, the
next free id with a number is taken: ``quiz-qwen-7b-2``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from itertools import count
from pathlib import Path
from typing import Final

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
    """Yield the ids that a run without a name may get: the short one, then with a number."""
    name = make_run_id(config.model, config.datasets)
    yield name
    for number in count(2):
        yield f"{name}-{number}"


def find_unfinished(config: TaskConfig, excluded: Collection[str] = ()) -> str | None:
    """Return the id of the unfinished run that the same command began, or None."""
    for name in candidate_ids(config):
        folder = Path(config.work_dir, name)
        if not folder.exists():
            return None
        if name not in excluded and _is_unfinished(folder, config):
            return name
    return None


def _is_unfinished(folder: Path, config: TaskConfig) -> bool:
    """Return whether a folder holds an unfinished run with the same settings, not in use."""
    if not (folder / MANIFEST).is_file():
        return False
    try:
        manifest = Manifest.read(folder)
    except DataError:
        return False
    if manifest.complete or manifest.imported is True:
        return False
    stored, today = (
        {key: value for key, value in settings.items() if key not in FREE_SETTINGS}
        for settings in (manifest.config, make_storable(config, folder.name))
    )
    return stored == today and not _is_in_use(folder)


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
