"""Writing a table as CSV, JSON Lines or Parquet, a row at a time."""

from __future__ import annotations

import csv
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

import msgspec

from keju.errors import MissingExtra
from keju.files import whole_file
from keju.results.export import Cell, Table

LONGEST_ROW = 1 << 26
"""Bytes of one row of Parquet: replies may be long."""


def write_csv(table: Table, stream: BinaryIO) -> int:
    """Write RFC 4180: UTF-8, CRLF, quotes where they are needed; return the number of rows."""
    writer = csv.writer(_Utf8(stream))
    writer.writerow(table.columns)
    count = 0
    for count, row in enumerate(table.rows, 1):  # noqa: B007 (the last number is the answer)
        writer.writerow([_cell(row[name]) for name in table.columns])
    return count


class _Utf8:
    """The little of a text file that a CSV writer needs; the stream stays the caller's."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(text.encode())


def _cell(value: Cell) -> str | int | float | None:
    """A list stands in its cell as JSON; what is not there is an empty cell."""
    return msgspec.json.encode(value).decode() if isinstance(value, list) else value


def write_jsonl(table: Table, stream: BinaryIO) -> int:
    """Write one JSON object a line; return the number of rows."""
    encoder = msgspec.json.Encoder()
    count = 0
    for count, row in enumerate(table.rows, 1):  # noqa: B007 (the last number is the answer)
        stream.write(encoder.encode(row) + b"\n")
    return count


def write_parquet(table: Table, path: Path) -> int:
    """Write a Parquet file; return the number of rows."""
    try:
        import duckdb
    except ImportError:
        raise MissingExtra("writing Parquet", "data") from None

    types = ", ".join(f"'{name}': '{kind}'" for name, kind in table.columns.items())
    with TemporaryDirectory(prefix="keju-") as scratch:
        lines, made = Path(scratch) / "rows.jsonl", Path(scratch) / "rows.parquet"
        with lines.open("wb") as stream:
            count = write_jsonl(table, stream)
        settings: dict[str, str | bool | int | float | list[str]] = {
            "autoinstall_known_extensions": False,
            "threads": 1,
        }
        with duckdb.connect(":memory:", config=settings) as database:
            database.execute(
                f"COPY (SELECT * FROM read_json('{lines}', format='newline_delimited', "
                f"maximum_object_size={LONGEST_ROW}, columns={{{types}}})) "
                f"TO '{made}' (FORMAT parquet, COMPRESSION zstd)"
            )
        with whole_file(path) as stream:
            stream.write(made.read_bytes())
    return count
