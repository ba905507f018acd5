"""The names in an untrusted tar file, read within limits.

Python's `tarfile` has no limits: a file of a few kilobytes may unpack to terabytes, and one header
may announce gigabytes. So the stream is unpacked here in pieces and measured.
"""

from __future__ import annotations

import bz2
import io
import lzma
import tarfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from keju import bounds
from keju.errors import DataError

_BROKEN = (tarfile.TarError, OSError, EOFError, ValueError, zlib.error, RecursionError)
"""Errors that a damaged file may raise."""
_GZIP: Final = b"\x1f\x8b"
_CHUNK: Final = 1 << 16


def _xz() -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(memlimit=bounds.UNPACKING_MEMORY)


_UNPACKERS: Final[dict[bytes, Callable[[], bz2.BZ2Decompressor | lzma.LZMADecompressor]]] = {
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ\0": _xz,
    b"]\0\0": _xz,
}
"""First bytes of packed files; the last entry is the older form of LZMA."""


def tar_names(path: Path) -> Iterator[str]:
    """Yield the names of the entries of a tar file, packed or not; nothing if it is not a tar file.

    Raises DataError if the file unpacks to far more than its size, has too many entries, or has a
    header that is too long. A damaged file ends at the damage.
    """
    with path.open("rb") as file:
        start = file.read(8)
        file.seek(0)
        if start.startswith(_GZIP):
            packed: io.BufferedIOBase | BinaryIO = bounds.unpack_gzip(file, path.name)
        else:
            makers = (make for mark, make in _UNPACKERS.items() if start.startswith(mark))
            make = next(makers, None)
            packed = io.BufferedReader(_DecompressedStream(file, make, path.name)) if make else file
        count = 0
        try:
            with tarfile.open(fileobj=_ForwardStream(packed, path.name), mode="r:") as archive:
                while (entry := archive.next()) is not None:
                    count += 1
                    if count > bounds.MOST_ENTRIES:
                        limit = bounds.MOST_ENTRIES
                        raise DataError("archive_too_many", where=path.name, most=limit)
                    cast(Any, archive).members.clear()  # otherwise it keeps every entry
                    yield entry.name
        except DataError as error:
            if error.code != "file_not_gzip":
                raise
        except _BROKEN:
            return


class _DecompressedStream(io.RawIOBase):
    """The content of a bzip2 or xz file with one or more streams."""

    def __init__(
        self,
        packed: BinaryIO,
        make: Callable[[], bz2.BZ2Decompressor | lzma.LZMADecompressor],
        where: str,
    ) -> None:
        self._packed, self._make, self._where = packed, make, where
        self._unpack, self._input = make(), b""
        self._read = self._unpacked_bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = b""
        while not data:
            if self._unpack.eof:
                self._input, self._unpack = self._unpack.unused_data, self._make()
            if self._unpack.needs_input and not self._input:
                self._input = self._packed.read(_CHUNK)
                self._read += len(self._input)
                if not self._input:
                    return 0
            try:
                data = self._unpack.decompress(self._input, len(buffer))
            except lzma.LZMAError as error:
                if "limit" in str(error):  # `Memory usage limit exceeded`
                    limit = bounds.UNPACKING_MEMORY // bounds.MIB
                    raise DataError("archive_memory", where=self._where, most=limit) from None
                raise EOFError from None
            self._input = b""
        self._unpacked_bytes += len(data)
        bounds.refuse_bomb(self._unpacked_bytes, self._read, self._where)
        buffer[: len(data)] = data
        return len(data)


class _ForwardStream(io.RawIOBase):
    """A stream that only moves forward and returns at most one header at a time."""

    def __init__(self, stream: io.BufferedIOBase | BinaryIO, where: str) -> None:
        self._stream, self._where = stream, where
        self._position = 0

    def tell(self) -> int:
        return self._position

    def seek(self, target: int, whence: int = io.SEEK_SET) -> int:
        if whence != io.SEEK_SET or target < self._position:
            raise OSError("only forward")
        while self._position < target and self.read(min(_CHUNK, target - self._position)):
            pass
        return self._position

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= bounds.LONGEST_ENTRY_HEADER:
            limit = bounds.LONGEST_ENTRY_HEADER // bounds.MIB
            raise DataError("archive_header", where=self._where, most=limit)
        data = self._stream.read(size)
        self._position += len(data)
        return data
