"""Untrusted zip files, read in memory entry by entry.

Keju refuses a file in one line for two entries of one name, encrypted entries, unknown compression
methods, damage, entries that are too large, and small archives that unpack to something huge.
"""

from __future__ import annotations

import io
import shutil
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from keju import bounds
from keju.bounds import refuse_bomb
from keju.errors import DataError, MissingExtra, TranslatableText

ZSTANDARD: Final = 93
"""The method of Inspect's archives since 0.3.2xx. The standard zipfile reads it from Python 3.14
on."""
PLAIN_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
METHODS: Final = (*PLAIN_METHODS, ZSTANDARD)
_ENCRYPTED: Final = 0x1
"""The bit of an entry's flags for encryption (APPNOTE.TXT 4.4.4)."""
_LOCAL_HEADER: Final = 30
"""Bytes of an entry's header before its name and extra field (APPNOTE.TXT 4.3.7)."""
_LOCAL_MARK: Final = b"PK\x03\x04"
_LAST_RECORDS: Final = (1 << 16) + 1024
"""Bytes at the end of a zip file that contain its last records, even if a comment follows them."""
_CHUNK: Final = 1 << 20
_DAMAGE = (OSError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError)
"""Errors that reading a damaged archive may raise: zipfile's own classes and their causes."""


class ZipEntries:
    """The entries of a zip file by name, without folders."""

    def __init__(self, path: Path) -> None:
        """Read the list of entries; raise DataError if the file is not a complete zip file."""
        self.path = path
        self._read = self._packed = 0
        refuse_long_directory(path, str(path))
        try:
            with zipfile.ZipFile(path) as archive:
                entries = [entry for entry in archive.infolist() if not entry.is_dir()]
        except (*_DAMAGE, NotImplementedError) as error:
            raise DataError("archive_broken", where=path, problem=error) from None
        if len(entries) > bounds.MOST_ENTRIES:
            raise DataError("archive_too_many", where=path, most=bounds.MOST_ENTRIES)
        names = Counter(entry.filename for entry in entries)
        if repeated_name := next((name for name, count in names.items() if count > 1), None):
            raise DataError("archive_twice", where=path, name=repeated_name)
        self.entries = {entry.filename: entry for entry in entries}

    def read(self, name: str) -> bytes:
        """Return the content of an entry; raise DataError if it cannot or must not be read."""
        entry, where = self._check_entry(name, METHODS, bounds.MOST_ENTRY_BYTES, bounds.MOST_BYTES)
        size = entry.file_size
        try:
            # zipfile would read the list of all entries again.
            packed = self._packed_bytes(entry)
            if entry.compress_type == ZSTANDARD:
                content = b"".join(_zstandard(packed, entry))
            elif entry.compress_type == zipfile.ZIP_DEFLATED:
                content = zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, size + 1)
            else:
                content = packed
        except _DAMAGE as error:
            raise DataError("file_unreadable", where=where, problem=error) from None
        if len(content) != size or zlib.crc32(content) != entry.CRC:
            raise DataError(
                "file_unreadable", where=where, problem=TranslatableText("it_is_damaged")
            )
        return content

    def _packed_bytes(self, entry: zipfile.ZipInfo) -> bytes:
        """Return the compressed bytes of an entry, which follow its local header in the file."""
        with self.path.open("rb") as file:
            file.seek(entry.header_offset)
            header = file.read(_LOCAL_HEADER)
            if not header.startswith(_LOCAL_MARK):
                raise zipfile.BadZipFile("no entry begins where the list says so")
            name, extra = header[-4:-2], header[-2:]
            file.seek(int.from_bytes(name, "little") + int.from_bytes(extra, "little"), io.SEEK_CUR)
            return file.read(entry.compress_size)

    def unpack(self, name: str, target: Path) -> None:
        """Write an entry to the new file `target` in chunks; raise DataError like `read`.

        Meant for data files, which may be far larger than what is read into memory.
        """
        entry, where = self._check_entry(
            name, PLAIN_METHODS, bounds.MOST_UNPACKED, bounds.MOST_UNPACKED
        )
        try:
            with (
                zipfile.ZipFile(self.path) as archive,
                archive.open(entry) as packed,
                target.open("xb") as file,
            ):
                shutil.copyfileobj(packed, file, _CHUNK)
        except _DAMAGE as error:
            raise DataError("file_unreadable", where=where, problem=error) from None

    def _check_entry(
        self, name: str, methods: Sequence[int], max_bytes: int, max_total_bytes: int
    ) -> tuple[zipfile.ZipInfo, str]:
        """Return an entry and its name in messages; raise DataError if it must not be unpacked."""
        entry, where = self.entries[name], f"{self.path}, {name}"
        if entry.flag_bits & _ENCRYPTED:
            raise DataError("archive_encrypted", where=where)
        if entry.compress_type not in methods:
            raise DataError("archive_method", where=where, method=entry.compress_type)
        size, packed = entry.file_size, entry.compress_size
        if size > max_bytes or self._read + size > max_total_bytes:
            raise DataError("archive_too_large", where=where, size=size)
        refuse_bomb(self._read + size, self._packed + packed, where)
        self._read, self._packed = self._read + size, self._packed + packed
        return entry, where


def refuse_long_directory(path: Path, where: str) -> None:
    """Raise DataError for a zip file whose list of entries would take too much memory.

    zipfile reads the whole list at once. Its size is in the last record of the file, or for large
    archives in the record before that (APPNOTE.TXT 4.3.14 and 4.3.16).
    """
    try:
        with bounds.open_file(path) as file:
            end = file.seek(0, io.SEEK_END)
            file.seek(max(0, end - _LAST_RECORDS))
            tail = file.read(_LAST_RECORDS)
    except OSError as error:
        raise DataError("archive_broken", where=where, problem=error.strerror) from None
    sizes = [0]
    for mark, offset, width in ((b"PK\x05\x06", 12, 4), (b"PK\x06\x06", 40, 8)):
        if (start := tail.rfind(mark)) >= 0:
            sizes.append(int.from_bytes(tail[start + offset :][:width], "little"))
    directory_size = sizes[-1] if max(sizes) == 0xFFFFFFFF else max(sizes)
    if directory_size > bounds.LONGEST_DIRECTORY and directory_size <= end:
        raise DataError("archive_too_many", where=where, most=bounds.MOST_ENTRIES)


def _zstandard(packed: bytes, entry: zipfile.ZipInfo) -> Iterator[bytes]:
    """Yield the content of a Zstandard entry, at most one byte more than its announced size."""
    try:
        import zstandard
    except ImportError:
        raise MissingExtra(f"reading {entry.filename}", "logs") from None
    unpacking = zstandard.ZstdDecompressor(max_window_size=bounds.UNPACKING_MEMORY)
    remaining = entry.file_size + 1
    try:
        with unpacking.stream_reader(io.BytesIO(packed), read_across_frames=True) as stream:
            while remaining > 0 and (chunk := stream.read(min(remaining, _CHUNK))):
                remaining -= len(chunk)
                yield chunk
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from None
