"""The names in a tar file of a stranger, read within limits.

Python's `tarfile` unpacks whatever it is given: a file of a few kilobytes may unpack to terabytes,
and one header may claim to have gigabytes. Here the stream is unpacked bit by bit and measured.
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
"""What a damaged file may raise."""
_GZIP: Final = b"\x1f\x8b"
_CHUNK: Final = 1 << 16


def _xz() -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(memlimit=bounds.UNPACKING_MEMORY)


_UNPACKERS: Final[dict[bytes, Callable[[], bz2.BZ2Decompressor | lzma.LZMADecompressor]]] = {
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ\0": _xz,
    b"]\0\0": _xz,
}
"""How packed files begin; the last one is LZMA's older form."""


def tar_names(path: Path) -> Iterator[str]:
    """Yield the names of the entries of a tar file, packed or not; nothing if it is none.

    DataError if the file unpacks to far more than its size, has too many entries, or a header that
    is too long. A damaged file ends where the damage is.
    """
    with path.open("rb") as file:
        start = file.read(8)
        file.seek(0)
        if start.startswith(_GZIP):
            packed: io.BufferedIOBase | BinaryIO = bounds.unpack_gzip(file, path.name)
        else:
            makers = (make for mark, make in _UNPACKERS.items() if start.startswith(mark))
            make = next(makers, None)
            packed = io.BufferedReader(_Unpacked(file, make, path.name)) if make else file
        count = 0
        try:
            with tarfile.open(fileobj=_Forward(packed, path.name), mode="r:") as archive:
                while (entry := archive.next()) is not None:
                    count += 1
                    if count > bounds.MOST_ENTRIES:
                        most = bounds.MOST_ENTRIES
                        raise DataError("archive_too_many", where=path.name, most=most)
                    cast(Any, archive).members.clear()  # else it keeps every entry
                    yield entry.name
        except DataError as error:
            if error.code != "file_not_gzip":
                raise
        except _BROKEN:
            return


class _Unpacked(io.RawIOBase):
    """What a bzip2 or xz file holds, of one stream or several."""

    def __init__(
        self,
        packed: BinaryIO,
        make: Callable[[], bz2.BZ2Decompressor | lzma.LZMADecompressor],
        where: str,
    ) -> None:
        self._packed, self._make, self._where = packed, make, where
        self._unpack, self._rest = make(), b""
        self._read = self._made = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = b""
        while not data:
            if self._unpack.eof:
                self._rest, self._unpack = self._unpack.unused_data, self._make()
            if self._unpack.needs_input and not self._rest:
                self._rest = self._packed.read(_CHUNK)
                self._read += len(self._rest)
                if not self._rest:
                    return 0
            try:
                data = self._unpack.decompress(self._rest, len(buffer))
            except lzma.LZMAError as error:
                if "limit" in str(error):  # `Memory usage limit exceeded`
                    most = bounds.UNPACKING_MEMORY // bounds.MIB
                    raise DataError("archive_memory", where=self._where, most=most) from None
                raise EOFError from None
            self._rest = b""
        self._made += len(data)
        bounds.refuse_bomb(self._made, self._read, self._where)
        buffer[: len(data)] = data
        return len(data)


class _Forward(io.RawIOBase):
    """A stream that only goes forward, and gives no more than a header at a time."""

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
            most = bounds.LONGEST_ENTRY_HEADER // bounds.MIB
            raise DataError("archive_header", where=self._where, most=most)
        data = self._stream.read(size)
        self._position += len(data)
        return data
