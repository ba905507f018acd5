"""A folder of data files, read only; every file that is read leaves its hash."""

from __future__ import annotations

import io
from collections.abc import Generator, Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import file_digest
from pathlib import Path
from typing import Any, NamedTuple

from keju.errors import DataError
from keju.sources import formats
from keju.sources.files import DiskFiles, Files, NoFiles, ZipFiles
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
        self.edited: list[str] = []
        """Files read so far that are not the official ones, or not as they were pulled."""
        self.notes: list[str] = list(notes)
        """What the manifest should say about this data, each in one line."""
        self.recorded = recorded or {}
        """Relative path to SHA-256 of each file as it was pulled."""
        self._companions = companions

    def exists(self, name: str) -> bool:
        """Whether the folder holds the file `name`."""
        return any(name in place.listing(_parent(name)) for place in self._places)

    def bytes(self, name: str) -> bytes:
        """The content of `name`, unpacked if its name ends in ``.gz``."""
        place = self._place_of(name)
        return formats.unpacked(self._read(place, name), name, place.where(name))

    def text(self, name: str) -> str:
        """The content of `name` as UTF-8 text, line ends kept as they are."""
        return formats.as_text(self.bytes(name), self._place_of(name).where(name))

    def json(self, name: str) -> Any:
        """The content of `name` as JSON."""
        return formats.as_json(self.bytes(name), self._place_of(name).where(name))

    def file_rows(self, name: str) -> Generator[dict[str, Any], None, None]:
        """The rows of the file `name`, read bit by bit: it may be larger than memory.

        Its hash is taken when all of it was read.
        """
        place = self._place_of(name)
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
        table = self._find(stem)
        if table is None:
            shown = ", ".join(f"{s}.*" for s in self.layout.stems_of(stem) or [stem])
            raise DataError("source_no_table", path=self.path, stem=stem, shown=shown)
        return table

    def name_of(self, stem: str) -> str:
        """The logical table `stem` as messages call it: the path of its first file."""
        table = self.table(stem)
        return table.files.where(table.names[0])

    def holds_data(self) -> bool:
        """Whether at least one table of the benchmark is here."""
        return any(self.has(table) for table in self.layout.tables)

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

    def _place_of(self, name: str) -> Files:
        """The place that holds `name`, or the first, which then says that it does not."""
        holders = (place for place in self._places if name in place.listing(_parent(name)))
        return next(holders, self._places[0])

    def _find(self, stem: str) -> Table | None:
        stems = dict.fromkeys([*self.layout.stems_of(stem), stem])
        for place in self._places:
            groups = [g for s in stems for g in matching(s, place.listing(_parent(s)))]
            if not groups:
                continue
            names, *others = groups
            if lacking := missing_parts(names):
                raise DataError("source_parts_missing", where=place.where(names[0]), n=lacking)
            for other in others:
                self.note(f"{names[0]} was read, {other[0]} beside it was not")
            return Table(place, tuple(names))
        return None

    def _read(self, place: Files, name: str) -> Raw:
        raw = place.read(name)
        self._note_hash(place, name, io.BytesIO(raw))
        return raw

    def _note_hash(self, place: Files, name: str, content: io.BufferedIOBase) -> None:
        file, digest = place.fingerprint(name, content)
        self.hashes[file] = digest
        official = self.layout.sha256(name) or self.recorded.get(name)
        if official is not None and file != name:  # an archive's hash stands for its files
            content.seek(0)
            digest = file_digest(content, "sha256").hexdigest()
        if official not in (None, digest) and name not in self.edited:
            self.edited.append(name)


class NoFolder(DataFolder):
    """Stands in where a benchmark makes its questions itself."""

    def __init__(self, benchmark: str, origin: str = "built in") -> None:
        super().__init__(Path(), origin=origin)
        self._benchmark = benchmark

    @cached_property
    def _places(self) -> list[Files]:
        return [NoFiles(self._benchmark)]


def _parent(path: str) -> str:
    """``a/b`` of ``a/b/c``, empty for ``c``."""
    return path.rpartition("/")[0]
