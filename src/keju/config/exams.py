"""Exams that are named by a path.

A task may name an exam by the path of a folder or file. Its settings may then use a shorter name:

- the short name: ``sql`` for ``./sql.csv``; results use it, too
- the name that the exam's own file declares; results prefer it
- the path in any spelling, or the end of the path
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from keju.config.strict import document
from keju.errors import ConfigError, TranslatableText, did_you_mean

EXAM_FILES: Final = ("exam.yaml", "exam.yml")
"""The files in an exam's folder that describe it."""
CUSTOM: Final = "custom:"
"""The prefix of the path of an exam that is not built in."""

LM_EVAL: Final = "lm_eval:"
"""The prefix of the tasks of lm-eval."""

FILE_ENDINGS: Final = (
    *(".csv.gz", ".jsonl.gz", ".json.gz"),
    *(".csv", ".tsv", ".xlsx", ".jsonl", ".json", ".yaml", ".yml", ".parquet", ".py"),
)
"""The endings of files of questions, which need no ``./``."""


def is_path(name: str) -> bool:
    """Whether a benchmark's name is a path: it has the prefix, contains a separator, or ends as a
    file of questions does."""
    if name.startswith(LM_EVAL):
        return False
    is_file = name.lower().endswith(FILE_ENDINGS)
    is_marked = name.startswith((CUSTOM, "~")) or name in (".", "..")
    return is_file or is_marked or "/" in name or os.sep in name


def path_of(name: str) -> Path:
    """Return the path that such a name refers to."""
    path = Path(name.removeprefix(CUSTOM))
    with suppress(RuntimeError):  # a user of this name does not exist
        path = path.expanduser()
    return path


def short_name(name: str) -> str:
    """Return the name of the exam at a path if its own file declares no other."""
    path = path_of(name)
    base_name = path.name if path.name not in ("", "..") else path.resolve().name
    return base_name if path.is_dir() else base_name.partition(".")[0]


def declared_name(name: str) -> str | None:
    """Return the name that an exam's folder declares; None if it has none or the file is wrong."""
    for file in EXAM_FILES:
        path = path_of(name) / file
        with suppress(OSError, ValueError, ConfigError):
            if path.is_file():
                exam_name = document(path).get("name")
                return exam_name if isinstance(exam_name, str) else None
    return None


def resolve_name(name: str, exams: Sequence[str]) -> str | None:
    """Return the exam in `exams` that `name` refers to; None if there is none or more than one."""
    if name in exams:
        return name
    path = path_of(name)
    parts, resolved_path = path.parts, _resolve_path(path) if is_path(name) else None
    paths = {exam: path_of(exam) for exam in exams if is_path(exam)}
    matches = [
        exam
        for exam, exam_path in paths.items()
        if name in (short_name(exam), declared_name(exam))
        or exam_path.parts[-len(parts) :] == parts
        or (resolved_path is not None and _resolve_path(exam_path) == resolved_path)
    ]
    return matches[0] if len(matches) == 1 and parts else None


def _resolve_path(path: Path) -> Path | None:
    """Return the resolved path; None if it cannot be a path."""
    try:
        return path.resolve()
    # a loop of links, or a character that paths cannot contain
    except (OSError, RuntimeError, ValueError):
        return None


def setting_names(exams: Sequence[str]) -> list[str]:
    """Return the name of each exam for use in settings.

    This is the short name if it refers to no other exam, and else the path.
    """
    names = []
    for exam in exams:
        short_names = [short_name(exam), declared_name(exam) or exam] if is_path(exam) else []
        names.append(
            next(
                (candidate for candidate in short_names if resolve_name(candidate, exams) == exam),
                exam,
            )
        )
    return names


def _find_unmarked_file(exams: Sequence[str]) -> str | None:
    """Return the first of `exams` that is a file in this folder but not written as a path."""
    candidates = (exam for exam in exams if not is_path(exam) and "." in exam and "\0" not in exam)
    return next((exam for exam in candidates if Path(exam).is_file()), None)


def unknown_exam_error(name: str, exams: Sequence[str]) -> ConfigError:
    """Return the error about settings for an exam that the task does not have."""
    if file := _find_unmarked_file(exams):
        hint = TranslatableText("benchmark_at_path", path=f"./{file}")
        return ConfigError("unknown_benchmark", name=file, hint=hint)
    return ConfigError(
        "config_args_not_run", name=name, hint=did_you_mean(name, setting_names(exams))
    )


def find_in_folder(name: str, folder: Path) -> str:
    """Return `name`, or the absolute path in `folder` if the exam exists only there."""
    if not is_path(name) or "\0" in name:
        return name
    path = path_of(name)
    with suppress(OSError):
        if not path.exists() and (folder / path).exists():
            marker = CUSTOM if name.startswith(CUSTOM) else ""
            return f"{marker}{(folder / path).absolute()}"
    return name
