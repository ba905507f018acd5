"""Exams that are named by a path: what is one, what it may be called for short, where it lies.

is_path, path_of    a name that stands for a folder or file of the user's own
short_name          ``sql`` for ``./sql.csv``, as its results call it too
meant               the exam of a task that a name means: itself, its short name, its path's end
beside              an exam of a config file, found beside that where it is not in this folder
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

CUSTOM: Final = "custom:"
"""What marks the path of an exam that is no room of Keju's."""


def is_path(name: str) -> bool:
    """Whether the name of a benchmark is the path of an exam: marked so, or with a separator."""
    return name.startswith((CUSTOM, "~")) or name in (".", "..") or "/" in name or os.sep in name


def path_of(name: str) -> Path:
    """The path that such a name stands for."""
    path = Path(name.removeprefix(CUSTOM))
    with suppress(RuntimeError):  # nobody of that name has a home
        path = path.expanduser()
    return path


def short_name(name: str) -> str:
    """What the exam at a path is called where its own file says nothing else."""
    path = path_of(name)
    own = path.name if path.name not in ("", "..") else path.resolve().name
    return own if path.is_dir() else own.partition(".")[0]


def meant(name: str, exams: Sequence[str]) -> str | None:
    """The one of `exams` that `name` means; None for none, or where several paths end so."""
    if name in exams:
        return name
    parts = path_of(name).parts
    paths = {exam: path_of(exam).parts for exam in exams if is_path(exam)}
    found = [
        exam
        for exam, whole in paths.items()
        if name == short_name(exam) or whole[-len(parts) :] == parts
    ]
    return found[0] if len(found) == 1 and parts else None


def beside(name: str, folder: Path) -> str:
    """`name`, or the whole path of the exam in `folder` where only that has it."""
    if not is_path(name) or "\0" in name:
        return name
    path = path_of(name)
    with suppress(OSError):
        if not path.exists() and (folder / path).exists():
            marked = CUSTOM if name.startswith(CUSTOM) else ""
            return f"{marked}{(folder / path).absolute()}"
    return name
