"""Places with data files (folders on disk, zip files in memory), and parsers for the rows of one
file: JSON, JSON Lines, CSV and Parquet, also gzipped."""

from __future__ import annotations

import csv
import hashlib
import io
import re
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from json import JSONDecoder
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Protocol, cast

from keju import bounds
from keju.bounds import read_lines, unpack_gzip
from keju.errors import DataError, MissingExtra
from keju.files import TABLE, iter_json_rows, parse_json
from keju.sources.archive import ZipEntries

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


LFS_POINTER = b"version https://git-lfs.github.com/spec/"
"""The beginning of the small text file that replaces a large file in a Git LFS repository."""


class ReadableFiles(Protocol):
    """Named files that can be listed and read, never written."""

    def listing(self, folder: str) -> tuple[str, ...]:
        """Return the paths of the files directly in `folder` (``""`` is the top)."""

    def open(self, name: str) -> io.BufferedIOBase:
        """Open `name` for reading as a stream; raise DataError if that is impossible."""

    def fingerprint(self, name: str, content: io.BufferedIOBase) -> tuple[str, str]:
        """Return which file's hash represents `name` in a manifest, and that hash."""
        return name, hashlib.file_digest(content, "sha256").hexdigest()

    def where(self, name: str) -> str:
        """Return the path of `name` for messages."""

    def read(self, name: str) -> bytes:
        """Return the bytes of `name`; raise DataError if that is impossible."""
        with self.open(name) as stream:
            return read_whole(stream, self.where(name))


class DiskFiles(ReadableFiles):
    """A folder on disk. Links are followed, because hub caches consist of them."""

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
            stream = cast(io.BufferedReader, bounds.open_file(self.path / name))
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


class ZipFiles(ReadableFiles):
    """A zip file that is read in memory and never unpacked to disk.

    An archive with an entry outside its folder is refused as a whole. A single top folder around
    everything is left out of the names.
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
    def _archive(self) -> ZipEntries:
        try:
            archive = ZipEntries(self.path)
        except DataError:
            if self.path.is_file():
                with self.path.open("rb") as file:
                    _refuse_pointer(file.read(len(LFS_POINTER)), str(self.path))
            raise
        for entry in archive.entries.values():  # ../x, /x, C:/x, or a link
            name = entry.orig_filename.replace("\\", "/")
            is_link = stat.S_ISLNK(entry.external_attr >> 16)
            is_outside = (
                name.startswith("/") or ".." in name.split("/") or ":" in name.split("/")[0]
            )
            if is_outside or is_link:
                raise DataError("source_leaves", path=self.path, name=entry.filename)
        return archive

    @cached_property
    def _entries(self) -> dict[str, str]:
        """Return the entry name of each file name."""
        names = list(self._archive.entries)
        tops = {name.split("/")[0] for name in names}
        if len(tops) == 1 and all("/" in name for name in names):
            return {name.split("/", 1)[1]: name for name in names}
        return {name: name for name in names}


class NoFiles(ReadableFiles):
    """The place of a benchmark without a folder."""

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


Content = bytes | io.BufferedIOBase
"""The content of a file: all of its bytes, or an open stream."""

_BATCH = 1024
"""Number of Parquet rows that are turned into Python objects at a time."""

_SHORT_KINDS = ("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE")
"""Column types whose values have a few bytes."""

_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "threads": 1,
    "memory_limit": f"{bounds.TABLE_MEMORY // bounds.MIB}MiB",
    "temp_directory": "",
}
"""Reading a file must not download or load code, and must keep the order of its rows."""


def as_json(raw: bytes, where: str) -> Any:
    """Parse `raw` as one JSON document; numbers keep their notation."""
    try:
        return parse_json(raw, TABLE)
    except DataError as error:
        raise DataError("file_not_json", where=where, problem=error) from None


def jsonl_rows(
    content: Content, where: str, decoder: JSONDecoder = TABLE
) -> Iterator[dict[str, Any]]:
    """Yield the objects of a JSON Lines file; skip blank lines."""
    return (row for _, row in iter_json_rows(_stream(content), where, decoder))


def _refuse_separator(header: Sequence[str], where: str) -> None:
    """Raise DataError for a header of one column that contains another separator."""
    if len(header) == 1 and (separator := next((c for c in ";\t|" if c in header[0]), "")):
        name = "tab" if separator == "\t" else separator
        raise DataError("format_separator", where=where, found=name)


def csv_rows(content: Content, where: str) -> Iterator[dict[str, str]]:
    """Yield the rows of a CSV file; keep line breaks inside quoted fields."""
    lines = TableLines(_stream(content), where)
    try:
        reader = csv.DictReader(lines)
        _refuse_separator(reader.fieldnames or (), where)
        lines.end_row()
        for number, row in enumerate(reader, 1):
            lines.refuse_open_quote()
            lines.end_row()
            if None in row:  # DictReader keeps the values without a column under this key
                text = "more values than columns; check the quotes"
                raise DataError("format_row", where=where, number=number, problem=text)
            if empty_columns := [column for column, value in row.items() if value is None]:
                raise DataError("format_no_value", where=where, number=number, names=empty_columns)
            yield row
    except csv.Error as error:
        raise DataError("format_not_csv", where=where, problem=error) from None


# One line with its end, in a text that has line feeds, carriage returns or both: "a,b\r"
_ONE_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


class TableLines(Iterator[str]):
    """The lines of a table as text; DataError for a line that is not UTF-8 or holds a NUL.

    The bytes and commas of a row, and the number of empty lines before it, are limited.
    """

    def __init__(self, stream: io.BufferedIOBase, where: str) -> None:
        self._where = where
        self._lines = (
            match[0] for chunk in read_lines(stream, where) for match in _ONE_LINE.finditer(chunk)
        )
        self._number = 0
        self._is_over = False
        """Whether all lines have been read."""
        self.end_row()

    def end_row(self) -> None:
        """Reset the counters after a complete row."""
        self._size = self._commas = self._blank = 0
        self._row: list[str] = []

    def refuse_open_quote(self) -> None:
        """Raise DataError if the row is the last one and a quote in it is not closed."""
        if not self._is_over:
            return
        try:
            list(csv.reader(self._row, strict=True))
        except csv.Error as error:
            if str(error) == "unexpected end of data":
                first_line = self._number - len(self._row) + 1
                raise DataError("format_open_quote", where=self._where, number=first_line) from None

    def __next__(self) -> str:
        try:
            line = next(self._lines)
        except StopIteration:
            self._is_over = True
            raise
        self._number += 1
        self._size += len(line)
        self._commas += line.count(b",")
        self._blank += not line.strip()
        number, where = self._number, self._where
        if self._size > bounds.LONGEST_LINE:
            limit = bounds.LONGEST_LINE // bounds.MIB
            raise DataError("file_line_too_long", where=where, line=number, most=limit)
        if self._commas > bounds.MOST_COLUMNS or self._blank > bounds.MOST_BLANK_LINES:
            raise DataError("format_odd_table", where=where, number=number)
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise DataError(
                "format_line_not_utf8", where=where, number=number, problem=error.reason
            ) from None
        if "\0" in text:
            raise DataError("file_nul", where=where, line=number)
        self._row.append(text)
        return text


def table_rows(
    content: Content, name: str, where: str, decoder: JSONDecoder = TABLE
) -> Iterator[dict[str, Any]]:
    """Return the rows of the file `name` (any suffix of `keju.sources.folder.SUFFIXES`).

    JSON Lines and CSV are read line by line, Parquet in batches, JSON as a whole.
    """
    stream, plain = _stream(content), name.removesuffix(".gz")
    if plain != name:
        stream = unpack_gzip(stream, where)
    if plain.endswith(".jsonl"):
        return jsonl_rows(stream, where, decoder)
    if plain.endswith(".json"):
        return iter(_listed_rows(as_json(read_whole(stream, where), where), where))
    return csv_rows(stream, where) if plain.endswith(".csv") else _parquet_rows(stream, where)


def read_whole(stream: io.BufferedIOBase, where: str) -> bytes:
    """Return everything in a stream; raise DataError if that is too much for one document."""
    try:
        return bounds.read_whole(stream, where)
    except OSError as error:
        raise DataError("file_unreadable", where=where, problem=error.strerror) from None


def first_value(row: Mapping[str, Any], names: Sequence[str]) -> Any:
    """Return the value of the first field of these names that has one; None if none has."""
    return next((row[name] for name in names if row.get(name) is not None), None)


def _stream(content: Content) -> io.BufferedIOBase:
    return io.BytesIO(content) if isinstance(content, bytes) else content


def _listed_rows(document: Any, where: str) -> list[dict[str, Any]]:
    """Return the objects of a list, or of the only list in an object, as in ``{"examples":
    […]}``."""
    if isinstance(document, dict):
        lists = [value for value in document.values() if isinstance(value, list)]
        document = lists[0] if len(lists) == 1 else None
    if not isinstance(document, list) or not all(isinstance(row, dict) for row in document):
        raise DataError("format_no_list", where=where)
    return document


def _parquet_rows(stream: io.BufferedIOBase, where: str) -> Iterator[dict[str, Any]]:
    try:
        import duckdb
    except ImportError:
        raise MissingExtra(f"reading {where}", "data") from None

    with TemporaryDirectory(prefix="keju-") as scratch, _database().cursor() as cursor:
        copy = Path(scratch) / "table.parquet"
        with copy.open("wb") as file:
            shutil.copyfileobj(stream, file, 1 << 20)
        try:
            batch_size = _batch_size(cursor, copy, where)
            cursor.execute("SELECT * FROM read_parquet(?)", [str(copy)])
            columns = [column[0] for column in cursor.description or ()]
            while batch := cursor.fetchmany(batch_size):
                yield from (dict(zip(columns, row, strict=True)) for row in batch)
        except duckdb.OutOfMemoryException:
            limit = bounds.TABLE_MEMORY // bounds.MIB
            raise DataError("format_parquet_memory", where=where, most=limit) from None
        except duckdb.Error:
            raise DataError("format_not_parquet", where=where) from None


def _batch_size(cursor: DuckDBPyConnection, file: Path, where: str) -> int:
    """Return how many rows fit into LONGEST_BATCH; raise DataError if the rows unpack to far too
    much.

    A Parquet file may store a value once for a million rows.
    """
    cursor.execute("DESCRIBE SELECT * FROM read_parquet(?)", [str(file)])
    names = [name for name, kind, *_ in cursor.fetchall() if kind not in _SHORT_KINDS]
    if not names:
        return _BATCH
    quoted = ('"' + name.replace('"', '""') + '"' for name in names)
    size = " + ".join(f"coalesce(strlen(CAST({name} AS VARCHAR)), 0)" for name in quoted)
    cursor.execute(
        f"SELECT max(n), sum(n) FROM (SELECT {size} AS n FROM read_parquet(?))", [str(file)]
    )
    longest, total = cursor.fetchall()[0]
    if (longest or 0) > bounds.LONGEST_LINE:
        limit = bounds.LONGEST_LINE // bounds.MIB
        raise DataError("format_parquet_row", where=where, most=limit)
    bounds.refuse_bomb(int(total or 0), file.stat().st_size, where)
    return max(1, min(_BATCH, bounds.LONGEST_BATCH // max(1, int(longest or 0))))


@cache
def _database() -> DuckDBPyConnection:
    """Return the database in memory for all files. Opening one costs more than reading a small
    file."""
    import duckdb

    return duckdb.connect(":memory:", config=dict(_SETTINGS))
