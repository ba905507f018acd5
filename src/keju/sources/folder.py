"""A folder of data files, read only; every file that is read leaves its hash."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Generator, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from keju.errors import DataError
from keju.sources import formats
from keju.sources.files import DiskFiles, Files, ZipFiles
from keju.sources.layouts import Layout, matching, missing_parts

Raw = bytes
"""`bytes` itself; `DataFolder` has a method of that name."""


class Table(NamedTuple):
    """The files that one logical table is read from, in order."""

    files: Files
    names: tuple[str, ...]


class DataFolder:
    """One benchmark's files. Nothing is ever written to it, and nothing in it is run.

    Rooms ask for logical tables with `rows`, whichever layout and format the folder has, or for
    single files by name. Zip files of a known name are read as if they were unpacked.
    """

    def __init__(
        self,
        path: Path,
        layout: Layout | None = None,
        *,
        origin: str = "folder",
        notes: Sequence[str] = (),
        companions: Path | None = None,
        recorded: Mapping[str, str] | None = None,
    ) -> None:
        """Without a `layout` tables are found by their own names only."""
        self.path = path
        self.layout = layout or Layout(stems=())
        self.origin = origin
        """Where the files came from, e.g. ``huggingface OWNER/NAME@f8cc3bd…``."""
        self.hashes: dict[str, str] = {}
        """Relative path to SHA-256 of each file read so far."""
        self.notes: list[str] = list(notes)
        """What the manifest should say about this data, each in one line."""
        self.recorded = recorded or {}
        """Relative path to SHA-256 of each file as it was pulled."""
        self._companions = companions

    def exists(self, name: str) -> bool:
        """Whether the folder holds the file `name`."""
        return self._place_of(name) is not None

    def bytes(self, name: str) -> bytes:
        """The content of `name`, unpacked if its name ends in ``.gz``."""
        place = self._place_of(name) or self._places[0]
        return formats.unpacked(self._read(place, name), name, place.where(name))

    def text(self, name: str) -> str:
        """The content of `name` as UTF-8 text, line ends kept as they are."""
        return formats.as_text(self.bytes(name), self._where(name))

    def json(self, name: str) -> Any:
        """The content of `name` as JSON."""
        return formats.as_json(self.bytes(name), self._where(name))

    def jsonl(self, name: str) -> Iterator[dict[str, Any]]:
        """The rows of a JSON Lines file."""
        return formats.jsonl_rows(self.bytes(name), self._where(name))

    def csv(self, name: str) -> Iterator[dict[str, str]]:
        """The rows of a CSV file; line breaks inside quoted fields are kept as they are."""
        return formats.csv_rows(self.bytes(name), self._where(name))

    def file_rows(self, name: str) -> Generator[dict[str, Any], None, None]:
        """The rows of the file `name`, read bit by bit: it may be larger than memory.

        Its hash is taken when all of it was read.
        """
        place = self._place_of(name) or self._places[0]
        with place.open(name) as stream:
            yield from formats.table_rows(stream, name, place.where(name))
            stream.seek(0)
            self._note_hash(place, name, stream)

    def has(self, stem: str) -> bool:
        """Whether the folder holds the logical table `stem`."""
        return self._find(stem) is not None

    def rows(self, stem: str) -> Iterator[dict[str, Any]]:
        """The rows of the logical table `stem` in published order, from whatever file holds it.

        Values are as the format has them: CSV gives text only.
        """
        table = self.table(stem)
        for name in table.names:
            raw = self._read(table.files, name)
            yield from formats.table_rows(raw, name, table.files.where(name))

    def table(self, stem: str) -> Table:
        """The files behind the logical table `stem`; DataError if there are none."""
        found = self._find(stem)
        if found is None:
            shown = ", ".join(f"{s}.*" for s in self.layout.stems_of(stem) or [stem])
            raise DataError(f"{self.path} holds no table '{stem}' (looked for {shown})")
        return found

    def name_of(self, stem: str) -> str:
        """The logical table `stem` as messages call it: the path of its first file."""
        table = self.table(stem)
        return table.files.where(table.names[0])

    def holds_data(self) -> bool:
        """Whether at least one table of the benchmark is here."""
        return any(self.has(table) for table in self.layout.tables)

    def digest(self, files: Files, name: str) -> str:
        """The SHA-256 of one file or archive entry."""
        return hashlib.sha256(self._read(files, name)).hexdigest()

    def note(self, line: str) -> None:
        """Add a line for the manifest, once."""
        if line not in self.notes:
            self.notes.append(line)

    @cached_property
    def _places(self) -> list[Files]:
        roots = [self.path] if self._companions is None else [self.path, self._companions]
        disks: list[Files] = [DiskFiles(root) for root in roots]
        archives = [self.path / name for name in self.layout.archives]
        present = [path for path in archives if path.is_file()]
        return [*disks, *(ZipFiles(path) for path in present)]

    def _place_of(self, name: str) -> Files | None:
        path = PurePosixPath(name)
        folder = "" if path.parent == PurePosixPath() else str(path.parent)
        return next((p for p in self._places if path.name in p.listing(folder)), None)

    def _find(self, stem: str) -> Table | None:
        stems = dict.fromkeys([*self.layout.stems_of(stem), stem])
        for place in self._places:
            found = [names for s in stems for names in _files(place, s)]
            if not found:
                continue
            if lacking := missing_parts(found[0]):
                raise DataError(f"{place.where(found[0][0])}: {lacking} of its parts are missing")
            for other in found[1:]:
                self.note(f"{found[0][0]} was read, {other[0]} beside it was not")
            return Table(place, tuple(found[0]))
        return None

    def _read(self, place: Files, name: str) -> Raw:
        raw = place.read(name)
        self._note_hash(place, name, io.BytesIO(raw))
        return raw

    def _note_hash(self, place: Files, name: str, content: io.BufferedIOBase) -> None:
        file, digest = place.fingerprint(name, content)
        self.hashes[file] = digest

    def _where(self, name: str) -> str:
        return (self._place_of(name) or self._places[0]).where(name)


class NoFolder(DataFolder):
    """Stands in where a benchmark makes its questions itself."""

    def __init__(self, benchmark: str, origin: str = "built in") -> None:
        super().__init__(Path(), origin=origin)
        self._benchmark = benchmark

    @cached_property
    def _places(self) -> list[Files]:
        return [_Nothing(self._benchmark)]


class _Nothing:
    def __init__(self, benchmark: str) -> None:
        self._benchmark = benchmark

    def listing(self, folder: str) -> tuple[str, ...]:
        return ()

    def read(self, name: str) -> bytes:
        raise DataError(f"{self._benchmark} needs {name}: give its folder with --data-dir")

    def open(self, name: str) -> io.BufferedIOBase:
        return io.BytesIO(self.read(name))

    def fingerprint(self, name: str, content: io.BufferedIOBase) -> tuple[str, str]:
        return name, hashlib.file_digest(content, "sha256").hexdigest()

    def where(self, name: str) -> str:
        return f"{self._benchmark}, {name}"


def _files(place: Files, stem: str) -> list[list[str]]:
    """The files of `place` that are the table `stem`, one list of parts for each suffix."""
    folder, _, last = stem.rpartition("/")
    groups = matching(last, place.listing(folder))
    return [[f"{folder}/{name}" if folder else name for name in names] for names in groups]
