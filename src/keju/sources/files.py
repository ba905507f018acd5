"""The places a data folder reads from: folders on disk, and zip files read in memory."""

from __future__ import annotations

import hashlib
import io
import stat
from functools import cached_property
from pathlib import Path
from typing import Protocol

from keju.errors import DataError
from keju.sources.archive import Archive

LFS_POINTER = b"version https://git-lfs.github.com/spec/"
"""How the small text begins that stands for a large file in a repository."""


class Files(Protocol):
    """Named files that can be listed and read, never written."""

    def listing(self, folder: str) -> tuple[str, ...]:
        """The paths of the files directly in `folder` (``""`` is the top)."""

    def open(self, name: str) -> io.BufferedIOBase:
        """`name` opened to be read bit by bit; DataError if that is impossible."""

    def fingerprint(self, name: str, content: io.BufferedIOBase) -> tuple[str, str]:
        """Which file's hash stands for `name` in a manifest, and that hash."""
        return name, hashlib.file_digest(content, "sha256").hexdigest()

    def where(self, name: str) -> str:
        """`name` as messages call it."""

    def read(self, name: str) -> bytes:
        """The bytes of `name`; DataError if that is impossible."""
        with self.open(name) as stream:
            return stream.read()


class DiskFiles(Files):
    """A folder on disk. Links are followed: hub caches consist of them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._listings: dict[str, tuple[str, ...]] = {}

    def listing(self, folder: str) -> tuple[str, ...]:
        if folder not in self._listings:
            try:
                paths = [path for path in (self.path / folder).iterdir() if path.is_file()]
            except OSError:
                paths = []
            prefix = f"{folder}/" if folder else ""
            self._listings[folder] = tuple(sorted(prefix + path.name for path in paths))
        return self._listings[folder]

    def open(self, name: str) -> io.BufferedIOBase:
        try:
            stream = (self.path / name).open("rb")
        except OSError as error:
            raise DataError(
                "file_unreadable", where=self.where(name), problem=error.strerror
            ) from None
        try:
            _refuse_pointer(stream.peek(len(LFS_POINTER)), self.where(name))
        except DataError:
            stream.close()
            raise
        return stream

    def where(self, name: str) -> str:
        return str(self.path / name)


class ZipFiles(Files):
    """A zip file, read in memory: nothing is unpacked to disk.

    An archive with an entry that would leave its folder is refused as a whole. One top folder
    around everything is left out of the names.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def listing(self, folder: str) -> tuple[str, ...]:
        return tuple(sorted(n for n in self._entries if n.rpartition("/")[0] == folder))

    def open(self, name: str) -> io.BufferedIOBase:
        entry = self._entries.get(name)
        if entry is None:
            raise DataError("source_holds_no", path=self.path, name=name)
        return io.BytesIO(self._archive.read(entry))

    def fingerprint(self, name: str, content: io.BufferedIOBase) -> tuple[str, str]:
        return self.path.name, self._digest

    def where(self, name: str) -> str:
        return f"{self.path}, {name}"

    @cached_property
    def _digest(self) -> str:
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    @cached_property
    def _archive(self) -> Archive:
        try:
            archive = Archive(self.path)
        except DataError:
            if self.path.is_file():
                with self.path.open("rb") as file:
                    _refuse_pointer(file.read(len(LFS_POINTER)), str(self.path))
            raise
        for entry in archive.entries.values():  # such as ../x, /x, C:/x, or a link
            name = entry.orig_filename.replace("\\", "/")
            link = stat.S_ISLNK(entry.external_attr >> 16)
            leaves = name.startswith("/") or ".." in name.split("/") or ":" in name.split("/")[0]
            if leaves or link:
                raise DataError("source_leaves", path=self.path, name=entry.filename)
        return archive

    @cached_property
    def _entries(self) -> dict[str, str]:
        """The names of files to those of their entries."""
        names = list(self._archive.entries)
        tops = {name.split("/")[0] for name in names}
        if len(tops) == 1 and all("/" in name for name in names):
            return {name.split("/", 1)[1]: name for name in names}
        return {name: name for name in names}


class NoFiles(Files):
    """Stands in where a benchmark has no folder."""

    def __init__(self, benchmark: str) -> None:
        self._benchmark = benchmark

    def listing(self, folder: str) -> tuple[str, ...]:
        return ()

    def open(self, name: str) -> io.BufferedIOBase:
        raise DataError("source_needs", benchmark=self._benchmark, name=name)

    def where(self, name: str) -> str:
        return f"{self._benchmark}, {name}"


def _refuse_pointer(raw: bytes, where: str) -> None:
    if raw.startswith(LFS_POINTER):
        raise DataError("source_lfs", where=where)
