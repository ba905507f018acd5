"""Zip files as strangers send them: read in memory, entry by entry, and nothing is believed.

Refused in one line: two entries of one name, encrypted ones, methods that Keju does not know,
damage, entries that are too large, and small archives that unpack to something huge.
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

from keju.errors import DataError, Hint, MissingExtra
from keju.files import refuse_bomb

MOST_ENTRIES: Final = 200_000
MOST_ENTRY_BYTES: Final = 1 << 28
"""The most one entry may unpack to; the largest real one is a hundredth of that."""
MOST_BYTES: Final = 1 << 32
"""The most that all entries that are read may unpack to."""
ZSTANDARD: Final = 93
"""Inspect's archives since 0.3.2xx; stock zipfile reads it from Python 3.14 on."""
PLAIN_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
METHODS: Final = (*PLAIN_METHODS, ZSTANDARD)
MOST_UNPACKED: Final = 1 << 35
"""The most that may be unpacked to disk."""
_ENCRYPTED: Final = 0x1
"""The bit of an entry's flags that says so (APPNOTE.TXT 4.4.4)."""
_LOCAL_HEADER: Final = 30
"""Bytes of an entry's header before its name and extra field (APPNOTE.TXT 4.3.7)."""
_LOCAL_MARK: Final = b"PK\x03\x04"
_WINDOW: Final = 1 << 27
"""Memory that unpacking Zstandard may take; what the format's own tool allows."""
_CHUNK: Final = 1 << 20
_DAMAGE = (OSError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError)
"""What reading a damaged archive may raise; zipfile's own classes and those below it."""


class Archive:
    """The entries of a zip file by name; folders are left out."""

    def __init__(self, path: Path) -> None:
        """Read the list of entries; DataError if the file is no whole zip file."""
        self.path = path
        self._read = self._packed = 0
        try:
            with zipfile.ZipFile(path) as archive:
                listed = [entry for entry in archive.infolist() if not entry.is_dir()]
        except (*_DAMAGE, NotImplementedError) as error:
            raise DataError("archive_broken", where=path, problem=error) from None
        if len(listed) > MOST_ENTRIES:
            raise DataError("archive_too_many", where=path, most=MOST_ENTRIES)
        names = Counter(entry.filename for entry in listed)
        if twice := next((name for name, many in names.items() if many > 1), None):
            raise DataError("archive_twice", where=path, name=twice)
        self.entries = {entry.filename: entry for entry in listed}

    def read(self, name: str) -> bytes:
        """What an entry holds; DataError if it cannot be read, or should not be."""
        entry, where = self._admitted(name, METHODS, MOST_ENTRY_BYTES, MOST_BYTES)
        size = entry.file_size
        try:
            # Not by zipfile, which would read the list of all entries again.
            packed = self._stored(entry)
            if entry.compress_type == ZSTANDARD:
                content = b"".join(_zstandard(packed, entry))
            elif entry.compress_type == zipfile.ZIP_DEFLATED:
                content = zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, size + 1)
            else:
                content = packed
        except _DAMAGE as error:
            raise DataError("file_unreadable", where=where, problem=error) from None
        if len(content) != size or zlib.crc32(content) != entry.CRC:
            raise DataError("file_unreadable", where=where, problem=Hint("it_is_damaged"))
        return content

    def _stored(self, entry: zipfile.ZipInfo) -> bytes:
        """The bytes of an entry as they stand in the file, behind a header of its own."""
        with self.path.open("rb") as file:
            file.seek(entry.header_offset)
            header = file.read(_LOCAL_HEADER)
            if not header.startswith(_LOCAL_MARK):
                raise zipfile.BadZipFile("no entry begins where the list says so")
            name, extra = header[-4:-2], header[-2:]
            file.seek(int.from_bytes(name, "little") + int.from_bytes(extra, "little"), io.SEEK_CUR)
            return file.read(entry.compress_size)

    def unpack(self, name: str, target: Path) -> None:
        """Write an entry to the new file `target`, piece by piece; DataError as for `read`.

        For data files, which may be far larger than what is read into memory.
        """
        entry, where = self._admitted(name, PLAIN_METHODS, MOST_UNPACKED, MOST_UNPACKED)
        try:
            with (
                zipfile.ZipFile(self.path) as archive,
                archive.open(entry) as packed,
                target.open("xb") as file,
            ):
                shutil.copyfileobj(packed, file, _CHUNK)
        except _DAMAGE as error:
            raise DataError("file_unreadable", where=where, problem=error) from None

    def _admitted(
        self, name: str, methods: Sequence[int], most: int, most_in_all: int
    ) -> tuple[zipfile.ZipInfo, str]:
        """An entry that may be unpacked, and how to call it; DataError says why it may not."""
        entry, where = self.entries[name], f"{self.path}, {name}"
        if entry.flag_bits & _ENCRYPTED:
            raise DataError("archive_encrypted", where=where)
        if entry.compress_type not in methods:
            raise DataError("archive_method", where=where, method=entry.compress_type)
        size, packed = entry.file_size, entry.compress_size
        if size > most or self._read + size > most_in_all:
            raise DataError("archive_too_large", where=where, size=size)
        refuse_bomb(self._read + size, self._packed + packed, where)
        self._read, self._packed = self._read + size, self._packed + packed
        return entry, where


def _zstandard(packed: bytes, entry: zipfile.ZipInfo) -> Iterator[bytes]:
    """What a Zstandard entry holds, a byte beyond its size at the most."""
    try:
        import zstandard
    except ImportError:
        raise MissingExtra(f"reading {entry.filename}", "logs") from None
    unpacking = zstandard.ZstdDecompressor(max_window_size=_WINDOW)
    left = entry.file_size + 1
    try:
        with unpacking.stream_reader(io.BytesIO(packed), read_across_frames=True) as stream:
            while left > 0 and (chunk := stream.read(min(left, _CHUNK))):
                left -= len(chunk)
                yield chunk
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from None
