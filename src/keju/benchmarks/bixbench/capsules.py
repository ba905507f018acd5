"""The data of a capsule, made ready for a model: all of it but the solution.

A capsule is a zip file or a folder with a ``*Data*`` and a ``*Notebook*`` folder, as the authors
publish it, one level deeper in some. The data moves up to the work folder; notebooks are the
solution, so they stay out at any depth, under any name, and inside archives, as do the authors'
tables of answers.

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

from keju.errors import ConfigError, DataError, Hint
from keju.sources.archive import Archive, refuse_long_directory
from keju.sources.tar import tar_names
from keju.types import Sample

FOLDER = "capsules"
"""Where they lie below the exam's own data folder."""
PULLED = "CapsuleFolder-*.zip"
"""What they are called where a hub put them beside the questions."""
NOTEBOOK = ".ipynb"
MARKS = (b'"nbformat"', b'"ideal_answer"', b'"notebook_questions"')
"""What notebooks hold, whatever their files are called, and the authors' tables of answers."""
OF_THE_AUTHORS = ("metadata.json", "checksum")
"""Files beside the data that say what the answers are."""
LOOKED_AT = 1 << 16
"""Bytes at both ends of a file in which the marks are looked for."""
_LINK = 0o120000
_KIND = 0o170000


class CapsuleFacts(NamedTuple):
    """What was put into a work folder."""

    name: str
    sha256: str
    """Of the paths and contents of what was put there."""
    files: int
    size: int
    left_out: tuple[str, ...]
    """What holds a solution, or might."""


class _File(NamedTuple):
    """A file of a capsule: where it stands there, and what writes it to a new file."""

    path: PurePosixPath
    copy: Callable[[Path], object]


class Capsules:
    """A folder of capsules, by uuid or short id."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._places: dict[str, Path] = {}
        for place in sorted(folder.iterdir()):
            name = place.name.removesuffix(".zip").removeprefix("CapsuleFolder-").lower()
            if place.is_dir() or place.suffix == ".zip":
                self._places.setdefault(name, place)

    @classmethod
    def find(cls, asked: str | None, data: Path) -> Capsules:
        """The capsules in `asked`, or beside the exam's data; ConfigError if there are none."""
        folder = Path(asked).expanduser() if asked else data / FOLDER
        if not asked and not folder.is_dir() and any(data.glob(PULLED)):
            folder = data
        if not folder.is_dir():
            raise ConfigError("bixbench.no_capsules", folder=folder)
        return cls(folder)

    def place(self, sample: Sample) -> Path:
        """The capsule of a question; ConfigError if it is not here."""
        for key in ("capsule_uuid", "short_id"):
            if (name := str(sample.metadata[key]).lower()) in self._places:
                return self._places[name]
        short = sample.metadata["short_id"]
        raise ConfigError("bixbench.no_capsule", capsule=short, folder=self.folder)

    def prepare(self, sample: Sample, work: Path) -> CapsuleFacts:
        """Put a fresh copy of the data of a question's capsule into the empty folder `work`.

        DataError where an entry would leave the folder, or nothing is there but the solution.
        """
        place = self.place(sample)
        files = list(_zipped(place) if place.is_file() else _lying(place))
        kept, left_out = _data_of(files)
        digest, size, count = hashlib.sha256(), 0, 0
        for file in sorted(kept):
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
            raise DataError("bixbench.empty_capsule", where=place)
        return CapsuleFacts(place.name, digest.hexdigest(), count, size, tuple(left_out))


def _zipped(place: Path) -> Iterator[_File]:
    """The files of a zip file; DataError where an entry is a link or would leave the folder."""
    archive = Archive(place)
    for name, entry in archive.entries.items():
        path = PurePosixPath(name)
        odd = path.is_absolute() or ".." in path.parts or "\\" in name or not path.parts
        if odd or (entry.external_attr >> 16) & _KIND == _LINK:
            raise DataError("archive_leaves", where=place, name=name)
        yield _File(path, partial(archive.unpack, name))


def _lying(place: Path) -> Iterator[_File]:
    """The files of a folder; DataError where one is a link, which may lead out of it."""
    for root, folders, names in os.walk(place):
        for path in (Path(root, name) for name in (*folders, *names)):
            if path.is_symlink():
                raise DataError("archive_leaves", where=place, name=path.relative_to(place))
            if path.is_file():
                inside = PurePosixPath(path.relative_to(place).as_posix())
                yield _File(inside, partial(shutil.copyfile, path))


def _data_of(files: Sequence[_File]) -> tuple[list[_File], list[str]]:
    """The files of the data, their paths from its folder on, and what is left out by its name."""
    tops = {file.path.parts[0] for file in files if len(file.path.parts) > 1}
    alone = len(tops) == 1 and all(len(file.path.parts) > 1 for file in files)
    if alone and not _named("data", next(iter(tops))):  # the capsule's own folder around it all
        return _data_of([_File(_below(file.path), file.copy) for file in files])
    kept: list[_File] = []
    left_out: list[str] = []
    for file in files:
        top = file.path.parts[0] if len(file.path.parts) > 1 else ""
        beside = len(file.path.parts) == 1 and file.path.name in OF_THE_AUTHORS
        if beside or _named("notebook", top) or _is_notebook(file.path):
            left_out.append(str(file.path))
        else:
            kept.append(_File(_below(file.path), file.copy) if _named("data", top) else file)
    paths = Counter(file.path for file in kept)
    if twice := next((path for path, many in paths.items() if many > 1), None):
        raise DataError("archive_twice", where=Hint("bixbench.data_folders"), name=twice)
    return kept, left_out


def _named(word: str, folder: str) -> bool:
    return word in folder.lower()


def _below(path: PurePosixPath) -> PurePosixPath:
    return PurePosixPath(*path.parts[1:])


def _is_notebook(path: PurePosixPath) -> bool:
    """Whether a path is that of a notebook, or of what Jupyter keeps of one."""
    return path.suffix.lower() == NOTEBOOK or ".ipynb_checkpoints" in path.parts


def _holds_notebook(path: Path) -> bool:
    """Whether a file is a solution under another name, or an archive with a notebook inside."""
    with path.open("rb") as file:
        start = file.read(LOOKED_AT)
        file.seek(max(0, path.stat().st_size - LOOKED_AT))
        ends = start + file.read()
        if start.lstrip()[:1] in (b"{", b"[") and any(mark in ends for mark in MARKS):
            return True
    if zipfile.is_zipfile(path):
        refuse_long_directory(path, path.name)
        try:
            with zipfile.ZipFile(path) as archive:
                return any(_is_notebook(PurePosixPath(name)) for name in archive.namelist())
        except (OSError, zipfile.BadZipFile, EOFError, ValueError):
            return False  # a broken archive hides nothing that could be unpacked
    return any(_is_notebook(PurePosixPath(name)) for name in tar_names(path))
