"""Copy the data of a capsule for a model, without its solution.

A capsule is a zip file or a folder with a ``*Data*`` and a ``*Notebook*`` folder, as the authors
publish it; in some the two are one level deeper. The data moves to the top of the work folder.
Notebooks are the solution, so they are left out at any depth, under any name, and inside archives.
So are the authors' tables of answers.

    CapsuleFolder-33b8…/CapsuleData-33b8…/counts.csv     -> counts.csv
    CapsuleFolder-33b8…/CapsuleData-33b8…/old/try.ipynb  left out
    CapsuleFolder-33b8…/CapsuleNotebook-33b8…/run.ipynb  left out
"""

from __future__ import annotations

import hashlib
import os
import shutil
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from keju.errors import ConfigError, DataError, TranslatableText
from keju.sources.archive import ZipEntries, refuse_long_directory
from keju.sources.tar import tar_names
from keju.types import Sample

FOLDER = "capsules"
"""The folder of the capsules in the exam's data folder."""
HUB_PATTERN = "CapsuleFolder-*.zip"
"""Their names in a folder that a hub filled, next to the questions."""
NOTEBOOK = ".ipynb"
NOTEBOOK_MARKS = (b'"nbformat"', b'"ideal_answer"', b'"notebook_questions"')
"""Text that occurs in notebooks under any file name, and in the authors' tables of answers."""
ANSWER_FILES = ("metadata.json", "checksum")
"""Files next to the data that contain the answers."""
SCANNED_BYTES = 1 << 16
"""Bytes at both ends of a file in which Keju looks for the marks."""
_LINK = 0o120000
_KIND = 0o170000


class CapsuleMetadata(NamedTuple):
    """Facts about the files copied into a work folder."""

    name: str
    sha256: str
    """Of the paths and contents of the copied files."""
    files: int
    size: int
    left_out: tuple[str, ...]
    """Files that hold, or may hold, a solution."""


class _CapsuleFile(NamedTuple):
    """A file of a capsule: its path in the capsule, and a function that copies it to a new file."""

    path: PurePosixPath
    copy: Callable[[Path], object]


class CapsuleFolder:
    """A folder of capsules, by uuid or short id."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._capsules: dict[str, Path] = {}
        for path in sorted(folder.iterdir()):
            name = path.name.removesuffix(".zip").removeprefix("CapsuleFolder-").lower()
            if path.is_dir() or path.suffix == ".zip":
                self._capsules.setdefault(name, path)

    @classmethod
    def find(cls, capsule_dir: str | None, data: Path) -> CapsuleFolder:
        """Return the capsules in `capsule_dir`, or next to the exam's data; ConfigError if none
        exist."""
        folder = Path(capsule_dir).expanduser() if capsule_dir else data / FOLDER
        if not capsule_dir and not folder.is_dir() and any(data.glob(HUB_PATTERN)):
            folder = data
        if not folder.is_dir():
            raise ConfigError("bixbench.no_capsules", folder=folder)
        return cls(folder)

    def locate(self, sample: Sample) -> Path:
        """Return the path of a question's capsule; ConfigError if it is missing."""
        for key in ("capsule_uuid", "short_id"):
            if (name := str(sample.metadata[key]).lower()) in self._capsules:
                return self._capsules[name]
        short = sample.metadata["short_id"]
        raise ConfigError("bixbench.no_capsule", capsule=short, folder=self.folder)

    def prepare(self, sample: Sample, work: Path) -> CapsuleMetadata:
        """Copy the data of a question's capsule into the empty folder `work`.

        DataError if an entry would leave the folder, or if the capsule has only a solution.
        """
        capsule_path = self.locate(sample)
        files = list(
            _list_zip_files(capsule_path)
            if capsule_path.is_file()
            else _list_folder_files(capsule_path)
        )
        data_files, left_out = _select_data(files)
        digest, size, count = hashlib.sha256(), 0, 0
        for file in sorted(data_files):
            target = work.joinpath(*file.path.parts)
            target.parent.mkdir(parents=True, exist_ok=True)
            file.copy(target)
            if _holds_notebook(target):
                target.unlink()
                left_out.append(str(file.path))
                continue
            with target.open("rb") as copy:
                content = hashlib.file_digest(copy, "sha256").hexdigest()
            digest.update(f"{file.path}\0{content}\0".encode())
            size, count = size + target.stat().st_size, count + 1
        if not count:
            raise DataError("bixbench.empty_capsule", where=capsule_path)
        return CapsuleMetadata(capsule_path.name, digest.hexdigest(), count, size, tuple(left_out))


def _list_zip_files(path_of_archive: Path) -> Iterator[_CapsuleFile]:
    """Yield the files of a zip file; DataError if an entry is a link or would leave the folder."""
    archive = ZipEntries(path_of_archive)
    for name, entry in archive.entries.items():
        path = PurePosixPath(name)
        is_unsafe = path.is_absolute() or ".." in path.parts or "\\" in name or not path.parts
        if is_unsafe or (entry.external_attr >> 16) & _KIND == _LINK:
            raise DataError("archive_leaves", where=path_of_archive, name=name)
        yield _CapsuleFile(path, partial(archive.unpack, name))


def _list_folder_files(capsule_folder: Path) -> Iterator[_CapsuleFile]:
    """Yield the files of a folder; DataError if one is a link, which may lead out of the folder."""
    for root, folders, names in os.walk(capsule_folder):
        for path in (Path(root, name) for name in (*folders, *names)):
            if path.is_symlink():
                raise DataError(
                    "archive_leaves", where=capsule_folder, name=path.relative_to(capsule_folder)
                )
            if path.is_file():
                relative_path = PurePosixPath(path.relative_to(capsule_folder).as_posix())
                yield _CapsuleFile(relative_path, partial(shutil.copyfile, path))


def _select_data(files: Sequence[_CapsuleFile]) -> tuple[list[_CapsuleFile], list[str]]:
    """Return the data files, with paths relative to the data folder, and the names left out."""
    top_folders = {_top_folder(file.path) for file in files}
    # One folder contains the full capsule.
    if len(top_folders) == 1 and (top := top_folders.pop()) and not _contains_word("data", top):
        return _select_data(
            [_CapsuleFile(_strip_top_folder(file.path), file.copy) for file in files]
        )
    data_files: list[_CapsuleFile] = []
    left_out: list[str] = []
    for file in files:
        if _is_solution(file.path):
            left_out.append(str(file.path))
        elif _contains_word("data", _top_folder(file.path)):
            data_files.append(_CapsuleFile(_strip_top_folder(file.path), file.copy))
        else:
            data_files.append(file)
    _check_paths(data_files)
    return data_files, left_out


def _check_paths(files: Sequence[_CapsuleFile]) -> None:
    """Raise DataError if two files have the same path."""
    paths = Counter(file.path for file in files)
    if duplicate := next((path for path, count in paths.items() if count > 1), None):
        where = TranslatableText("bixbench.data_folders")
        raise DataError("archive_twice", where=where, name=duplicate)


def _top_folder(path: PurePosixPath) -> str:
    """Return the first folder of a path; empty if the file is in none."""
    return path.parts[0] if len(path.parts) > 1 else ""


def _is_solution(path: PurePosixPath) -> bool:
    """Whether a file may show the answers: a notebook, or a file of answers."""
    if not _top_folder(path) and path.name in ANSWER_FILES:
        return True
    return _contains_word("notebook", _top_folder(path)) or _is_notebook(path)


def _contains_word(word: str, folder: str) -> bool:
    return word in folder.lower()


def _strip_top_folder(path: PurePosixPath) -> PurePosixPath:
    return PurePosixPath(*path.parts[1:])


def _is_notebook(path: PurePosixPath) -> bool:
    """Whether a path is a notebook or a checkpoint of one."""
    return path.suffix.lower() == NOTEBOOK or ".ipynb_checkpoints" in path.parts


def _holds_notebook(path: Path) -> bool:
    """Whether a file is a solution under another name, or an archive with a notebook inside."""
    with path.open("rb") as file:
        start = file.read(SCANNED_BYTES)
        file.seek(max(0, path.stat().st_size - SCANNED_BYTES))
        ends = start + file.read()
        if start.lstrip()[:1] in (b"{", b"[") and any(mark in ends for mark in NOTEBOOK_MARKS):
            return True
    if zipfile.is_zipfile(path):
        refuse_long_directory(path, path.name)
        try:
            with zipfile.ZipFile(path) as archive:
                return any(_is_notebook(PurePosixPath(name)) for name in archive.namelist())
        except (OSError, zipfile.BadZipFile, EOFError, ValueError):
            return False  # nothing can be unpacked from a broken archive
    return any(_is_notebook(PurePosixPath(name)) for name in tar_names(path))
