"""Read tables as people save them: CSV with any usual separator and encoding, TSV, and XLSX.

Published data is read by `keju.sources.files`, which accepts commas and UTF-8 only. Here Keju finds
the separator and the encoding, and reports them. It raises DataError with one line if two of them
are possible.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from keju.errors import DataError
from keju.sources.files import TableLines

SHEET_SUFFIXES = (".csv", ".tsv", ".xlsx")
SEPARATORS = (",", ";", "\t", "|")
CHUNK = 1 << 20
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
USUAL_CHINESE = frozenset(
    "的一是不了在有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年动同工也能下过子说产种面而方后多定"
    "行学法所民得经题目答案选项问以下哪什么怎正确错误，。？、：；！（）“”"
)
"""Frequent characters of Chinese texts and questions."""
LEAST_USUAL = 0.1
"""The smallest share of them among the characters that are not ASCII, in a Chinese text."""

Row = dict[str, Any]
CountColumns = Callable[[Sequence[str]], int]
"""Returns how many of the names are known columns."""


@dataclass(frozen=True)
class SheetSettings:
    """The form of a file as the user states it; an empty value is detected."""

    separator: str = ""
    encoding: str = ""
    sheet: str = ""


class SheetForm(NamedTuple):
    """How a file is read."""

    columns: tuple[str, ...] = ()
    separator: str = ""
    """Empty for XLSX."""
    encoding: str = ""
    """Empty for XLSX."""
    sheet: str = ""
    """The name of the worksheet of an XLSX file."""
    formulas: int = 0
    """The number of cells whose value a formula gives."""


@dataclass
class SheetFile:
    """One opened file: its form, and its rows as mappings."""

    form: SheetForm
    rows: Iterator[Row] = field(repr=False)


def is_sheet(name: str) -> bool:
    """Whether this module reads files of this name."""
    return name.lower().endswith(SHEET_SUFFIXES)


def open_sheet(
    stream: io.BufferedIOBase,
    name: str,
    where: str,
    count_known: CountColumns,
    settings: SheetSettings | None = None,
) -> SheetFile:
    """Return the form and the rows of a file that can be read twice."""
    settings = settings or SheetSettings()
    if name.lower().endswith(".xlsx"):
        from keju.sources.xlsx import open_workbook

        return open_workbook(stream, where, count_known, settings.sheet)
    encoding = settings.encoding or find_encoding(stream, where)
    stream.seek(0)
    lines = TableLines(_as_utf8(stream, encoding, where), where)
    first_line = next(lines, "")
    stated_separator, first_lines = _read_separator_line(first_line)
    first_lines = first_lines or [next(lines, "")]
    separator = settings.separator or stated_separator
    if name.lower().endswith(".tsv") and not separator:
        separator = "\t"
    separator = separator or find_separator(first_lines[0], where, count_known)
    rows = _read_records(lines, first_lines, separator, where)
    columns = next(rows, [])
    lines.end_row()
    refuse_repeated(columns, where)
    form = SheetForm(tuple(columns), separator, _public_name(encoding))
    return SheetFile(form, _named_rows(columns, rows, lines, where))


def _public_name(encoding: str) -> str:
    return {"utf-8-sig": "UTF-8", "utf-8": "UTF-8"}.get(encoding, encoding.upper())


# --- encodings ---------------------------------------------------------------------------------


def find_encoding(stream: io.BufferedIOBase, where: str) -> str:
    """Return the encoding of a text: by its mark, UTF-8, or GB18030 if it is Chinese."""
    stream.seek(0)
    beginning = stream.read(4)
    for mark, encoding in _BOMS:
        if beginning.startswith(mark):
            return encoding
    stream.seek(0)
    if _decodes(stream, "utf-8"):
        return "utf-8"
    stream.seek(0)
    if _is_chinese(stream):
        return "gb18030"
    raise DataError("sheet_encoding", where=where)


def _decodes(stream: io.BufferedIOBase, encoding: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        while chunk := stream.read(CHUNK):
            decoder.decode(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _is_chinese(stream: io.BufferedIOBase) -> bool:
    """Whether a text in GB18030 is Chinese.

    Texts in many other encodings can be decoded, too, but not to usual Chinese characters.
    """
    decoder = codecs.getincrementaldecoder("gb18030")()
    wide = usual = common = 0
    try:
        while chunk := stream.read(CHUNK):
            characters = [c for c in decoder.decode(chunk) if not c.isascii()]
            wide += len(characters)
            usual += sum(c in USUAL_CHINESE for c in characters)
            common += len("".join(characters).encode("gb2312", "ignore")) // 2
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return bool(wide) and usual >= LEAST_USUAL * wide and common >= 0.8 * wide


class _Transcoder(io.RawIOBase):
    """A text in any encoding as a stream of UTF-8."""

    def __init__(self, stream: io.BufferedIOBase, encoding: str, where: str) -> None:
        self._stream, self._where, self._encoding = stream, where, encoding
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._pending = b""
        self._is_over = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._pending and not self._is_over:
            chunk = self._stream.read(CHUNK)
            self._is_over = not chunk
            try:
                self._pending = self._decoder.decode(chunk, final=self._is_over).encode("utf-8")
            except (UnicodeDecodeError, UnicodeEncodeError) as error:
                values = {"where": self._where, "encoding": self._encoding.upper()}
                raise DataError("sheet_not_encoded", problem=error.reason, **values) from None
        size = min(len(buffer), len(self._pending))
        buffer[:size], self._pending = self._pending[:size], self._pending[size:]
        return size


def _as_utf8(stream: io.BufferedIOBase, encoding: str, where: str) -> io.BufferedIOBase:
    if encoding in ("utf-8", "utf-8-sig"):
        return stream
    return io.BufferedReader(_Transcoder(stream, encoding, where))


# --- separators and rows -----------------------------------------------------------------------


def _read_separator_line(first_line: str) -> tuple[str, list[str]]:
    """Return the separator that a first line ``sep=;`` states, and the lines read of the table."""
    text = first_line.strip().strip('"')
    if text[:4].lower() == "sep=" and len(text) == 5:
        return text[4], []
    return "", [first_line]


def find_separator(header: str, where: str, count_known: CountColumns) -> str:
    """Return the separator under which the header has the most known columns.

    DataError if two separators are equally good.
    """
    scores = {}
    for separator in SEPARATORS:
        names = split_record(header, separator)
        if len(names) > 1:
            scores[separator] = count_known(names)
    best = max(scores.values(), default=0)
    separators = [separator for separator, score in scores.items() if score == best]
    if len(separators) > 1 and best:
        labels = ["tab" if separator == "\t" else separator for separator in separators]
        raise DataError("sheet_separators", where=where, first=labels[0], second=labels[1])
    return separators[0] if len(separators) == 1 else ","


def split_record(line: str, separator: str) -> list[str]:
    """Return the values of one line."""
    return next(csv.reader([line], delimiter=separator), [])


def _read_records(
    lines: TableLines, first_lines: Sequence[str], separator: str, where: str
) -> Iterator[list[str]]:
    """Yield the values of each row, without its empty values at the end."""

    def all_lines() -> Iterator[str]:
        yield from first_lines
        yield from lines

    try:
        yield from csv.reader(all_lines(), delimiter=separator)
    except csv.Error as error:
        raise DataError("format_not_csv", where=where, problem=error) from None


def _named_rows(
    header: Sequence[str], records: Iterator[list[str]], lines: TableLines, where: str
) -> Iterator[Row]:
    """Yield the rows with values by column; skip rows without a value."""
    for number, record in enumerate(records, 1):
        lines.refuse_open_quote()
        lines.end_row()
        if not any(value.strip() for value in record):
            continue
        yield name_values(header, record, number, where)


def name_values(header: Sequence[str], record: Sequence[Any], number: int, where: str) -> Row:
    """Return the values of a row by column. DataError if it has too few or too many."""
    if any(str(value).strip() for value in record[len(header) :]):
        raise DataError("sheet_more_values", where=where, number=number)
    if missing := [name for name in header[len(record) :] if name.strip()]:
        raise DataError("format_no_value", where=where, number=number, names=missing)
    row = {name: value for name, value in zip(header, record, strict=False) if name.strip()}
    unnamed = [v for n, v in zip(header, record, strict=False) if not n.strip()]
    if any(str(value).strip() for value in unnamed):
        raise DataError("sheet_no_name", where=where, number=number)
    return row


def refuse_repeated(columns: Sequence[str], where: str) -> None:
    """Raise DataError if two columns have one name."""
    names: Mapping[str, int] = {
        name: sum(name == other for other in columns) for name in columns if name.strip()
    }
    if repeated := [name for name, count in names.items() if count > 1]:
        raise DataError("sheet_repeated", where=where, names=repeated)
