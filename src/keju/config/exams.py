"""Exams that are named by a path: what is one, what it may be called for short, where it lies.

is_path, path_of    a name that stands for a folder or file of the user's own
short_name          ``sql`` for ``./sql.csv``, as its results call it too
own_name            what its own file calls it, and then its results
meant               the exam of a task that a name means: itself, its short name, its own name, its
                    path in any spelling, its path's end
called              the names that settings of a task's exams can go by
not_run             the refusal of settings for an exam that a task does not have
beside              an exam of a config file, found beside that where it is not in this folder
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from keju.config.strict import document
from keju.errors import ConfigError, Hint, did_you_mean

EXAM_FILES: Final = ("exam.yaml", "exam.yml")
"""What an exam in a folder says about itself."""
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


def own_name(name: str) -> str | None:
    """What the exam in a folder calls itself; None where it does not, or its file is wrong."""
    for file in EXAM_FILES:
        path = path_of(name) / file
        with suppress(OSError, ValueError, ConfigError):
            if path.is_file():
                own = document(path).get("name")
                return own if isinstance(own, str) else None
    return None


def meant(name: str, exams: Sequence[str]) -> str | None:
    """The one of `exams` that `name` means; None for none, or where several paths end so."""
    if name in exams:
        return name
    path = path_of(name)
    parts, place = path.parts, _place(path) if is_path(name) else None
    paths = {exam: path_of(exam) for exam in exams if is_path(exam)}
    found = [
        exam
        for exam, own in paths.items()
        if name in (short_name(exam), own_name(exam))
        or own.parts[-len(parts) :] == parts
        or (place is not None and _place(own) == place)
    ]
    return found[0] if len(found) == 1 and parts else None


def _place(path: Path) -> Path | None:
    """Where a path leads, however it is written; None where it can be none."""
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):  # a loop of links, a character no path has
        return None


def called(exams: Sequence[str]) -> list[str]:
    """What each of a task's exams can be called in its settings: short where that means no other.

    The path stands for an exam that has no such name.
    """
    names = []
    for exam in exams:
        short = [short_name(exam), own_name(exam) or exam] if is_path(exam) else []
        names.append(next((own for own in short if meant(own, exams) == exam), exam))
    return names


def _unmarked(exams: Sequence[str]) -> str | None:
    """The first of `exams` that is a file which lies here, and not written as a path."""
    plain = (exam for exam in exams if not is_path(exam) and "." in exam and "\0" not in exam)
    return next((exam for exam in plain if Path(exam).is_file()), None)


def not_run(name: str, exams: Sequence[str]) -> ConfigError:
    """The refusal of settings for what is none of a task's exams."""
    if file := _unmarked(exams):
        hint = Hint("benchmark_at_path", path=f"./{file}")
        return ConfigError("unknown_benchmark", name=file, hint=hint)
    return ConfigError("config_args_not_run", name=name, hint=did_you_mean(name, called(exams)))


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
