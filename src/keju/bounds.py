"""Limits on everything that comes from outside: replies, messages, files, archives, tables.

All limits are here, with the functions that read within them. Code that reads bytes from an
endpoint, a server, a hub or an external file uses one of these functions. Each of them uses a
bounded amount of memory, and names the limit that was exceeded.
"""

from __future__ import annotations

import errno
import gzip
import io
import os
import re
import select
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

from keju.errors import DataError, TranslatableText

MIB: Final = 1 << 20

LONGEST_REPLY: Final = 16 * MIB
"""Bytes of an HTTP reply's body after decompression. Reading stops there, because many endless
replies at once must fit into memory."""
LONGEST_HEAD: Final = MIB // 4
"""Bytes of an HTTP reply outside its body: its headers, its trailers, and framing without data."""
MOST_HEADERS: Final = 5000
"""Headers and trailers of one HTTP reply."""
LONGEST_WIRE: Final = 8 * LONGEST_REPLY
"""Bytes of one HTTP reply as they are sent: chunks of one byte need six."""
LONGEST_LISTING: Final = 64 * MIB
"""Bytes of one page of a hub's listing."""

LONGEST_MESSAGE: Final = 32 * MIB
"""Bytes of one message of an MCP server."""
MOST_STREAMED: Final = 256 * MIB
"""Bytes that an MCP server may send in answer to one request."""
MOST_NOISE: Final = 64 * MIB
"""Bytes of lines that are not messages, for one MCP server process."""
MOST_TOOLS: Final = 10_000
"""Tools that one MCP server may list."""

LONGEST_LINE: Final = 64 * MIB
"""Bytes of one line, or of one row of a table."""
LONGEST_RECORD: Final = 512 * MIB
"""Bytes of one line of a journal: an episode has many replies."""
LONGEST_SETTINGS: Final = 16 * MIB
"""Bytes of a file that people write: settings, templates, certificates."""
LONGEST_DOCUMENT: Final = 512 * MIB
"""Bytes of a data file that is read as a whole (JSON, YAML)."""
MOST_VALUES: Final = 20_000_000
"""Commas and opening brackets of one JSON document: ``[[],[],…`` takes thirty times its size."""
MOST_MESSAGE_VALUES: Final = 1_000_000
"""The same limit for one message of an MCP server, which takes a hundred times its size."""
LONGEST_YAML: Final = 32 * MIB
"""Characters of a YAML document: reading one takes about a second for each MiB."""
MOST_YAML_VALUES: Final = 1_000_000
"""Values of a YAML document, keys included: each takes half a KiB and 50 microseconds."""
MOST_BLANK_LINES: Final = 1 << 20
"""Empty lines in a row of a table."""
MOST_COLUMNS: Final = 1_000_000
"""Commas of one row of a table, including those in its texts."""
TABLE_MEMORY: Final = 2048 * MIB
"""Bytes of memory that reading a Parquet file may take."""
LONGEST_BATCH: Final = 32 * MIB
"""Bytes of the rows of a Parquet file that are turned into Python objects at a time."""

ALWAYS_UNPACKED: Final = 64 * MIB
MOST_RATIO: Final = 250
"""A packed file may unpack to ALWAYS_UNPACKED bytes, and beyond that to MOST_RATIO times its size.
Text packs ten to fifty times; a bomb packs a thousand times."""
MOST_ENTRIES: Final = 200_000
"""Entries of an archive."""
LONGEST_DIRECTORY: Final = 32 * MIB
"""Bytes of the list of entries of a zip file."""
MOST_ENTRY_BYTES: Final = 256 * MIB
"""Bytes to which one entry of an archive may unpack in memory."""
MOST_BYTES: Final = 4096 * MIB
"""Bytes to which all entries that are read into memory may unpack."""
MOST_UNPACKED: Final = 32 * 1024 * MIB
"""Bytes that may be unpacked or downloaded to disk."""
UNPACKING_MEMORY: Final = 128 * MIB
"""Bytes of memory that unpacking Zstandard or xz may take; the tools of the formats allow it."""
LONGEST_ENTRY_HEADER: Final = MIB
"""Bytes of a tar file's header for one entry: its name and attributes."""

WRITER_SECONDS: Final = 3.0
"""Seconds to wait until a program opens a pipe that is given in place of a file."""
BYTE_SECONDS: Final = 60.0
"""Seconds to wait for the next byte of such a pipe."""
_CHUNK: Final = 1 << 16


MOST_DIGITS: Final = 4000
"""Digits of a whole number in data; Python itself refuses to read more than 4,300."""


class UnpackedTooLong(Exception):
    """Packed bytes unpack to more than the limit."""


class UnpackError(Exception):
    """Packed bytes cannot be unpacked."""


ENCODINGS: Final = "gzip, deflate"
"""Encodings of an HTTP body that Keju requests. Any other one raises Damaged."""
_PACKED: Final = ("gzip", "x-gzip", "deflate")


def parse_encodings(header: str) -> list[str]:
    """Return the encodings of a ``Content-Encoding`` header, the outermost first.

    The names may have any case and blanks around them. Raise Damaged if one is not known.
    """
    names = [name.strip().lower() for name in header.split(",")]
    packed = [name for name in names if name not in ("", "identity")]
    if any(name not in _PACKED for name in packed):
        raise UnpackError("the reply is packed in a way that was not asked for")
    return packed[::-1]


class Unpacker:
    """Unpacks a body of one encoding piece by piece: gzip of several members, zlib, raw deflate."""

    def __init__(self, encoding: str) -> None:
        self._is_gzip = encoding != "deflate"
        self._unpack = zlib.decompressobj(47)
        self._started = False
        self._members = 0

    def feed(self, data: bytes, limit: int) -> bytes:
        """Return the unpacked `data`. Raise TooLong beyond `limit` bytes, and Damaged if it is not
        valid."""
        unpacked = bytearray()
        while data:
            if self._unpack.eof:
                if not self._is_gzip or not data.strip(b"\0"):
                    break  # bytes after the end, which some servers pad with zeros
                self._unpack = zlib.decompressobj(31)
                self._members += 1
            unpacked += self._unpack_piece(data, limit - len(unpacked) + 1)
            if len(unpacked) > limit:
                raise UnpackedTooLong
            data = self._unpack.unused_data
        return bytes(unpacked)

    def _unpack_piece(self, data: bytes, limit: int) -> bytes:
        try:
            unpacked = self._unpack.decompress(data, limit)
        except zlib.error:
            if self._started or self._is_gzip:
                raise UnpackError("the reply cannot be unpacked") from None
            # Data called deflate comes with a zlib header or, from some servers, without one.
            self._unpack = zlib.decompressobj(-15)
            try:
                unpacked = self._unpack.decompress(data, limit)
            except zlib.error:
                raise UnpackError("the reply cannot be unpacked") from None
        self._started = True
        return unpacked

    def close(self) -> None:
        """Raise Damaged if the body ended too early."""
        if self._started and not self._unpack.eof:
            raise UnpackError("the reply cannot be unpacked")


def unpack_body(body: bytes, header: str) -> bytes:
    """Return an HTTP body unpacked. Raise TooLong or Damaged if that fails."""
    for encoding in parse_encodings(header) if body else ():
        unpacker = Unpacker(encoding)
        body = unpacker.feed(body, LONGEST_REPLY)
        unpacker.close()
    return body


def parse_whole_number(text: str) -> int | None:
    """Return the whole number that a text writes in digits, or None if it is not one or too
    long."""
    text = text.strip()
    return int(text) if text.isdecimal() and len(text) <= MOST_DIGITS else None


def open_file(path: Path | str, *, follow: bool = True) -> BinaryIO:
    """Open a file for reading. Never block forever, and never read a folder or a terminal.

    Pipes are accepted, so that ``--config <(command)`` works. A silent pipe raises OSError after
    WRITER_SECONDS or BYTE_SECONDS. Without `follow` a link raises OSError.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    fd = os.open(path, flags | (0 if follow else os.O_NOFOLLOW))
    try:
        mode = os.fstat(fd).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if stat.S_ISSOCK(mode) or stat.S_ISBLK(mode) or os.isatty(fd):
            raise OSError(errno.EINVAL, TranslatableText("not_a_file"), str(path))
        if stat.S_ISFIFO(mode):
            return io.BufferedReader(_PipeReader(fd, path), _CHUNK)
        os.set_blocking(fd, True)
        return os.fdopen(fd, "rb", buffering=MIB)
    except OSError:
        os.close(fd)
        raise


class _PipeReader(io.RawIOBase):
    """The reading end of a pipe, with limits on the waiting time."""

    def __init__(self, fd: int, path: Path | str) -> None:
        self._fd, self._path = fd, path
        self._has_writer = False
        self._poll = select.poll()
        self._poll.register(fd, select.POLLIN)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while True:
            try:
                data = os.read(self._fd, len(buffer))
            except BlockingIOError:  # a program has opened it and has not written yet
                self._wait(BYTE_SECONDS)
                continue
            if not data and not self._has_writer:
                self._wait(WRITER_SECONDS)
                continue
            buffer[: len(data)] = data
            return len(data)

    def _wait(self, seconds: float) -> None:
        if not self._poll.poll(seconds * 1000):
            raise OSError(errno.ETIMEDOUT, TranslatableText("pipe_silent"), str(self._path))
        self._has_writer = True

    def close(self) -> None:
        if not self.closed:
            os.close(self._fd)
        super().close()


def read_file(path: Path | str, max_bytes: int = LONGEST_SETTINGS, *, follow: bool = True) -> bytes:
    """Return the bytes of a file. Raise OSError if it cannot be read or is longer than
    `max_bytes`."""
    with open_file(path, follow=follow) as stream:
        return read_whole(stream, path, max_bytes)


def read_text(path: Path | str, max_bytes: int = LONGEST_SETTINGS) -> str:
    """Return the text of a file in UTF-8. Raise OSError as `read_file` does, or
    UnicodeDecodeError."""
    return read_file(path, max_bytes).decode("utf-8-sig")


def read_whole(stream: Any, where: object, max_bytes: int = LONGEST_DOCUMENT) -> bytes:
    """Return the rest of a stream. Raise OSError if it is longer than `max_bytes`."""
    content = bytearray()
    while piece := stream.read(min(MIB, max_bytes + 1 - len(content))):
        content += piece
        if len(content) > max_bytes:
            raise OSError(
                errno.EFBIG, TranslatableText("file_larger", most=max_bytes // MIB), str(where)
            )
    return bytes(content)


# A string of JSON with any content: `"a, \"b\" [c"`. An unterminated one goes to the end.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\Z)', re.DOTALL)


def has_many_values(document: bytes, limit: int) -> bool:
    """Whether a JSON document has more than `limit` commas and opening brackets outside of
    texts."""
    if len(document) <= limit or _count_marks(document) <= limit:
        return False
    return _count_marks(_STRING.sub(b"", document)) > limit


def _count_marks(document: bytes) -> int:
    return sum(map(document.count, (b",", b"[", b"{")))


def read_lines(stream: io.BufferedIOBase | BinaryIO, where: str) -> Iterator[bytes]:
    """Yield the lines of a stream. Raise DataError with the number of a line that is too long."""
    number = 0
    while line := stream.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            limit = LONGEST_LINE // MIB
            raise DataError("file_line_too_long", where=where, line=number, most=limit)
        yield line


def unpack_gzip(packed: io.BufferedIOBase | BinaryIO, where: str) -> io.BufferedIOBase:
    """Return a stream of the unpacked content of a gzip file. It raises DataError for damage and
    bombs."""
    return io.BufferedReader(_UnpackedStream(packed, where), _CHUNK)


class _CountingStream(io.RawIOBase):
    """A stream that counts the bytes read from it."""

    def __init__(self, stream: io.BufferedIOBase | BinaryIO) -> None:
        self._stream = stream
        self.count = 0

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self.count += len(data)
        return data


class _UnpackedStream(io.RawIOBase):
    def __init__(self, packed: io.BufferedIOBase | BinaryIO, where: str) -> None:
        self._packed = _CountingStream(packed)
        self._gzip = gzip.GzipFile(fileobj=self._packed)
        self._unpacked = 0
        self._where = where

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._gzip.read1(len(buffer))
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise DataError("file_not_gzip", where=self._where, problem=error) from None
        self._unpacked += len(data)
        refuse_bomb(self._unpacked, self._packed.count, self._where)
        buffer[: len(data)] = data
        return len(data)


def refuse_bomb(unpacked: int, packed: int, where: str) -> None:
    """Raise DataError where a small file unpacks to a huge one."""
    if unpacked > ALWAYS_UNPACKED and unpacked > MOST_RATIO * packed:
        raise DataError("file_bomb", where=where, ratio=MOST_RATIO)
