"""The journal: ``records.jsonl``, append-only, the only source of truth about a run.

Guarantees: There is one writer at a time. A line is whole or absent, because a torn last line is
repaired on the next opening. A full disk stops the run and leaves all earlier lines intact. So does
another process that removes or changes the file. Reading never loads the whole file into memory. A
line that was changed is detected.

The last key of a line is its checksum, the CRC-32 of everything before it:

    {"bench":"demo","id":"q1",…,"at":1763294676.1,"crc":"5b0c9a41"}

Lines of version 0.1 have none. They are read, but their scores are not trusted.
"""

from __future__ import annotations

import errno
import os
import threading
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self
from zlib import crc32

import msgspec

from keju.bounds import LONGEST_RECORD
from keju.errors import DataError, RunIncomplete, UsageError
from keju.files import open_for_writing, open_regular_file, take_lock
from keju.types import Record

FILE = "records.jsonl"
VERDICTS = "verdicts.jsonl"
"""The journal of the judges, kept in the same way."""
RECEIPT = "fetched.json"
"""The file that marks the copy of a remote run."""
CHECKSUM = b',"crc":"%08x"}\n'
"""The end of a line."""
_CHUNK = 1 << 20
_TAIL, _DIGITS, _CLOSE = 19, 11, 3
"""The distance of the checksum from the end of a line, its digits, and the characters after it."""
_KEY = (CHECKSUM % 0)[: _TAIL - _DIGITS]


class JournalLost(RunIncomplete):
    """The journal is not as it was written, because another process removed or changed it."""


class Journal:
    """An open journal. The lock is held until `close`."""

    def __init__(self, folder: Path, file: str = FILE) -> None:
        if is_fetched(folder):
            raise UsageError("run_fetched", folder=folder)
        self.path = folder / file
        self._encoder = msgspec.json.Encoder()
        self._buffer = bytearray()
        self._unsynced = 0
        self._syncing = threading.Lock()
        self._fd = open_for_writing(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        try:
            if not take_lock(self._fd, self.path):
                raise UsageError("run_in_use", name=folder.name)
            _repair(self._fd)
        except BaseException:
            os.close(self._fd)
            raise
        self.size = os.fstat(self._fd).st_size
        """The number of bytes written so far."""

    def append(self, records: Iterable[msgspec.Struct]) -> None:
        """Write whole lines. From now on they survive the death of this process."""
        buffer, encode = self._buffer, self._encoder.encode
        buffer.clear()
        for record in records:
            line = encode(record)[:-1]  # without its last brace
            buffer += line
            buffer += CHECKSUM % crc32(line)
        self._write(buffer)

    def check(self) -> None:
        """Raise JournalLost if the file was replaced or does not have the length that was written.

        Only the writing thread may call this.
        """
        opened_stat, path_stat = os.fstat(self._fd), None
        with suppress(OSError):
            path_stat = self.path.stat()
        if path_stat is None or (path_stat.st_dev, path_stat.st_ino) != (
            opened_stat.st_dev,
            opened_stat.st_ino,
        ):
            raise JournalLost("journal_gone", path=self.path)
        if opened_stat.st_size != self.size:
            raise JournalLost("journal_written_by_others", path=self.path)

    def _write(self, data: bytearray) -> None:
        self.check()
        try:
            written = os.write(self._fd, data)
            while written < len(data):
                written += os.write(self._fd, memoryview(data)[written:])
        except OSError as error:
            os.ftruncate(self._fd, self.size)
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise RunIncomplete("journal_no_space", path=self.path) from None
            problem = error.strerror
            raise RunIncomplete("cli_cannot_write", place=self.path, problem=problem) from None
        self.size += len(data)
        self._unsynced += len(data)

    def sync(self) -> None:
        """Make everything written so far survive a power failure. Any thread may call this."""
        with self._syncing:
            if not self._unsynced or self._fd < 0:
                return
            self._unsynced = 0
            try:
                os.fdatasync(self._fd)
            except OSError as error:
                problem = error.strerror
                raise RunIncomplete("cli_cannot_write", place=self.path, problem=problem) from None

    def close(self) -> None:
        """Sync and let another process write."""
        if self._fd < 0:
            return
        try:
            self.sync()
        finally:
            with self._syncing:
                os.close(self._fd)
                self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def is_fetched(folder: Path) -> bool:
    """Whether a folder holds a copy of a remote run; see `keju.runs.remote`."""
    return (folder / RECEIPT).is_file()


def is_locked(path: Path) -> bool:
    """Whether a process of this machine has locked a file, as far as the system shows it.

    It does not try to take the lock, so that it never blocks a process that is about to take it.
    """
    try:
        status = path.stat()
        lock_id = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
        return any(lock_id in line.split() for line in _read_locks())
    except OSError:
        return False


def _read_locks() -> list[str]:
    return Path("/proc/locks").read_text().splitlines()


def _repair(fd: int) -> None:
    """Cut off everything after the last line feed."""
    size = os.fstat(fd).st_size
    end = size
    while end > 0:
        start = max(0, end - _CHUNK)
        position = os.pread(fd, end - start, start).rfind(b"\n")
        if position >= 0:
            end = start + position + 1
            break
        end = start
    if end < size:
        os.ftruncate(fd, end)


class Records:
    """The records of a journal in the order in which they were written. Each iteration reads the
    file.

    A torn last line and lines of other kinds are skipped. A line that is not valid UTF-8 or JSON,
    or does not match its checksum, is counted, and its question counts as not asked.
    """

    def __init__(self, folder: Path, file: str = FILE) -> None:
        self.path = folder / file
        self.damaged = 0
        """Lines that the last reading could not read."""
        self.is_sealed = False
        """Whether the last returned record is as it was written, by its checksum."""

    def __iter__(self) -> Iterator[Record]:
        return (record for _, record in self.iter_with_positions())

    def iter_with_positions(self) -> Iterator[tuple[int, Record]]:
        """Yield each record after the position at which its line begins."""
        decode = msgspec.json.Decoder(Record).decode
        self.damaged = end = 0
        try:
            lines = open_journal(self.path)
        except FileNotFoundError:
            folder, file = self.path.parent, self.path.name
            raise UsageError("run_not_a_folder", folder=folder, file=file) from None
        with lines:
            for line in iter(partial(lines.readline, LONGEST_RECORD), b""):
                start, end = end, end + len(line)
                if line.startswith(b'{"kind":') or not line.endswith(b"\n"):
                    self.damaged += len(line) == LONGEST_RECORD
                    continue
                try:
                    line = restore_line(line)
                    is_sealed = _has_checksum(line)
                    record = decode(line)
                except (ValueError, RecursionError):
                    self.damaged += 1
                    continue
                self.is_sealed = is_sealed
                yield start, record

    def at(self, starts: Iterable[int]) -> Iterator[Record]:
        """Yield the records whose lines begin at these positions, in this order."""
        decode = msgspec.json.Decoder(Record).decode
        with open_journal(self.path) as lines:
            for start in starts:
                lines.seek(start)
                line = restore_line(lines.readline(LONGEST_RECORD))
                try:
                    is_sealed, record = _has_checksum(line), decode(line)
                except (ValueError, RecursionError):
                    raise DataError("journal_changed", path=self.path) from None
                self.is_sealed = is_sealed
                yield record


def open_journal(path: Path) -> BinaryIO:
    """Open a journal for reading. Raise DataError if it is a link or not a file.

    Links are refused, because the lines of another file would count as the replies of this run.
    """
    try:
        return open_regular_file(path)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise DataError("file_unreadable", where=path, problem=error.strerror) from None


def restore_line(line: bytes) -> bytes:
    """Return a line as Keju wrote it, without a carriage return or a mark that an editor added."""
    if line.endswith(b"\r\n"):
        line = line[:-2] + b"\n"
    return line.removeprefix(BOM_UTF8)


def _has_checksum(line: bytes) -> bool:
    """Whether a line has a checksum. Raise ValueError if it does not match."""
    if line[-_TAIL:-_DIGITS] == _KEY:
        if int(line[-_DIGITS:-_CLOSE], 16) != crc32(line[:-_TAIL]):
            raise ValueError("the checksum is another")
        return True
    if b'"crc":' in line:  # another program has rewritten the line
        raise ValueError("the checksum is not at its place")
    return False
