"""The folder of a matrix, next to its runs: the list of the runs and the combined results.

``runs/weekly/plan.json`` names the runs ``runs/weekly--small--demo`` and so on. Each is an ordinary
run. ``results.json`` and ``report.html`` in the matrix's folder cover all of them. Only one process
at a time works on a matrix.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import msgspec

from keju.errors import DataError, UsageError, WriteError
from keju.files import (
    explain_shape,
    file_exists,
    open_for_writing,
    read_json,
    take_lock,
    write_json,
)
from keju.runs.manifest import MANIFEST

MATRIX_FILE = "plan.json"
LOCK = ".lock"
SCHEMA = 1


class StoredMatrixRun(msgspec.Struct, frozen=True):
    """One pair of a matrix."""

    run: str
    """Its id. Its folder is next to the matrix's folder."""
    model: str
    exam: str
    """The names of both entries."""


class StoredMatrix(msgspec.Struct, kw_only=True):
    """``plan.json``."""

    schema: int = SCHEMA
    plan: str
    created: str
    seconds: float = 0.0
    """How long all processes have worked on it."""
    runs: list[StoredMatrixRun] = []

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Return the matrix in `folder`. Raise DataError if it cannot be read."""
        try:
            return msgspec.convert(read_json(folder / MATRIX_FILE), cls)
        except msgspec.ValidationError as error:
            problem = explain_shape(error)
            raise DataError("plan_damaged", path=folder / MATRIX_FILE, problem=problem) from None

    def write(self, folder: Path) -> None:
        """Write the whole file or nothing."""
        write_json(folder / MATRIX_FILE, self)


def find_matrix(name: str, work_dir: str) -> Path | None:
    """Return the folder of a matrix, given as a path or by its name, or None."""
    folders = (Path(name), Path(work_dir) / name)
    return next((folder for folder in folders if file_exists(folder / MATRIX_FILE)), None)


@contextmanager
def open_matrix_folder(folder: Path) -> Iterator[None]:
    """Create and lock the folder of a matrix for one process."""
    if (folder / MANIFEST).is_file():
        raise UsageError("plan_is_run", folder=folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteError("cli_cannot_write", place=folder, problem=error.strerror) from None
    fd = open_for_writing(folder / LOCK, os.O_RDWR | os.O_CREAT)
    try:
        if not take_lock(fd, folder / LOCK):
            raise UsageError("plan_in_use", name=folder.name)
        yield
    finally:
        os.close(fd)
