"""Turning the bytes of one file into rows: JSON, JSON Lines, CSV and Parquet, also gzipped."""

from __future__ import annotations

import csv
import io
import shutil
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from keju.errors import DataError, MissingExtra
from keju.files import TABLE, json_rows, lines_of, parse_json, unpacking

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Content = bytes | io.BufferedIOBase
"""What a file holds: all of it, or the file opened to be read bit by bit."""

_BATCH = 1024
"""Parquet rows that are turned into Python objects at a time."""

_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "threads": 1,
}
"""Reading a file must neither download nor load code, and keep the order of its rows."""


def unpacked(raw: bytes, name: str, where: str) -> bytes:
    """`raw` itself, or what it holds if `name` ends in ``.gz``."""
    return unpacking(io.BytesIO(raw), where).read() if name.endswith(".gz") else raw


def as_text(raw: bytes, where: str) -> str:
    """`raw` as UTF-8 text, line ends kept as they are."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError("format_not_utf8", where=where, problem=error.reason) from None


def as_json(raw: bytes, where: str) -> Any:
    """`raw` as one JSON document; numbers are shown as they are written."""
    try:
        return parse_json(raw, TABLE)
    except DataError as error:
        raise DataError("file_not_json", where=where, problem=error) from None


def jsonl_rows(content: Content, where: str) -> Iterator[dict[str, Any]]:
    """The objects of a JSON Lines file; blank lines are left out."""
    return (row for _, row in json_rows(_stream(content), where))


def csv_rows(content: Content, where: str) -> Iterator[dict[str, str]]:
    """The rows of a CSV file; line breaks inside quoted fields are kept as they are."""
    lines = (
        line
        for chunk in lines_of(_stream(content), where)
        for line in chunk.splitlines(keepends=True)
    )
    try:
        for number, row in enumerate(csv.DictReader(_decoded(lines, where)), 1):
            if None in row:  # where DictReader keeps the values that no column is left for
                text = "more values than columns; check the quotes"
                raise DataError("format_row", where=where, number=number, problem=text)
            if lacking := [column for column, value in row.items() if value is None]:
                raise DataError(
                    "format_no_value", where=where, number=number, names=", ".join(lacking)
                )
            yield row
    except csv.Error as error:
        raise DataError("format_not_csv", where=where, problem=error) from None


def _decoded(lines: Iterable[bytes], where: str) -> Iterator[str]:
    """Lines of a table as text; DataError names one that is not UTF-8, or holds a NUL."""
    for number, line in enumerate(lines, 1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise DataError(
                "format_line_not_utf8", where=where, number=number, problem=error.reason
            ) from None
        if "\0" in text:
            raise DataError("file_nul", where=where, line=number)
        yield text


def table_rows(content: Content, name: str, where: str) -> Iterator[dict[str, Any]]:
    """The rows of the file `name` (any suffix of `keju.sources.layouts.SUFFIXES`).

    JSON Lines and CSV are read line by line, Parquet in batches, JSON as a whole.
    """
    stream, plain = _stream(content), name.removesuffix(".gz")
    if plain != name:
        stream = unpacking(stream, where)
    if plain.endswith(".jsonl"):
        yield from jsonl_rows(stream, where)
    elif plain.endswith(".json"):
        yield from _listed_rows(as_json(stream.read(), where), where)
    elif plain.endswith(".csv"):
        yield from csv_rows(stream, where)
    else:
        yield from _parquet_rows(stream, where)


def _stream(content: Content) -> io.BufferedIOBase:
    return io.BytesIO(content) if isinstance(content, bytes) else content


def _listed_rows(document: Any, where: str) -> Iterator[dict[str, Any]]:
    """A list of objects, or the one list in an object, as in ``{"examples": […]}``."""
    if isinstance(document, dict):
        lists = [value for value in document.values() if isinstance(value, list)]
        document = lists[0] if len(lists) == 1 else None
    if not isinstance(document, list) or not all(isinstance(row, dict) for row in document):
        raise DataError("format_no_list", where=where)
    yield from document


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
            cursor.execute("SELECT * FROM read_parquet(?)", [str(copy)])
            columns = [column[0] for column in cursor.description or ()]
            while batch := cursor.fetchmany(_BATCH):
                yield from (dict(zip(columns, row, strict=True)) for row in batch)
        except duckdb.Error:
            raise DataError("format_not_parquet", where=where) from None


@cache
def _database() -> DuckDBPyConnection:
    """One database in memory for all files: opening one costs more than reading a small file."""
    import duckdb

    return duckdb.connect(":memory:", config=dict(_SETTINGS))
