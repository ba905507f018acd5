"""The journal: ``records.jsonl``, append-only, the only truth about a run.

Promises: one writer at a time; a line is whole or absent (a torn last line is repaired on the
next opening); a full disk stops the run with everything before it intact; reading never loads
the file into memory.
"""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from keju.errors import RunIncomplete, UsageError
from keju.types import Record

FILE = "records.jsonl"
VERDICTS = "verdicts.jsonl"
"""The journal of the judges, kept in the same way."""
_CHUNK = 1 << 20


class Journal:
    """An open journal; the lock is held until `close`."""

    def __init__(self, folder: Path, file: str = FILE) -> None:
        self.path = folder / file
        self._encoder = msgspec.json.Encoder()
        self._buffer = bytearray()
        self._unsynced = 0
        self._syncing = threading.Lock()
        self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._fd)
            raise UsageError(
                f"run '{folder.name}' is being written by another process; "
                "wait for it, or choose another --run-id"
            ) from None
        self.repaired = _repair(self._fd)
        """Bytes of a torn last line that were cut off."""
        self._size = os.fstat(self._fd).st_size

    def append(self, records: Iterable[msgspec.Struct]) -> None:
        """Write whole lines; they survive the death of this process from here on."""
        buffer = self._buffer
        buffer.clear()
        for record in records:
            self._encoder.encode_into(record, buffer, -1)
            buffer += b"\n"
        self._write(buffer)

    def _write(self, data: bytearray) -> None:
        try:
            written = os.write(self._fd, data)
            while written < len(data):
                written += os.write(self._fd, memoryview(data)[written:])
        except OSError as error:
            os.ftruncate(self._fd, self._size)
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise RunIncomplete(
                    f"no space left for {self.path}; everything before is saved: "
                    "free some space, then resume"
                ) from None
            raise RunIncomplete(f"cannot write {self.path}: {error.strerror}") from None
        self._size += len(data)
        self._unsynced += len(data)

    def sync(self) -> None:
        """Make everything written so far survive a loss of power; safe to call from a thread."""
        with self._syncing:
            if not self._unsynced or self._fd < 0:
                return
            self._unsynced = 0
            try:
                os.fdatasync(self._fd)
            except OSError as error:
                raise RunIncomplete(f"cannot write {self.path}: {error.strerror}") from None

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


def _repair(fd: int) -> int:
    """Cut off what follows the last line feed; return how many bytes that was."""
    size = os.fstat(fd).st_size
    end = size
    while end > 0:
        start = max(0, end - _CHUNK)
        found = os.pread(fd, end - start, start).rfind(b"\n")
        if found >= 0:
            end = start + found + 1
            break
        end = start
    if end < size:
        os.ftruncate(fd, end)
    return size - end


def read_lines(folder: Path, file: str = FILE) -> Iterator[bytes]:
    """The whole lines of a journal, without their line feeds; a torn last line is left out."""
    path = folder / file
    if not path.is_file():
        raise UsageError(f"{folder} is not a run folder: it has no {file}")
    with path.open("rb", buffering=_CHUNK) as lines:
        for line in lines:
            if line.endswith(b"\n"):
                yield line[:-1]


class Damage:
    """Counts the lines of a journal that could not be read."""

    lines = 0


def read_records(folder: Path, damage: Damage | None = None, file: str = FILE) -> Iterator[Record]:
    """The answer records of a journal in the order in which they were written.

    Lines of other kinds are passed over. A line that cannot be read is counted in `damage`: its
    sample then counts as not asked.
    """
    decode = msgspec.json.Decoder(Record).decode
    for line in read_lines(folder, file):
        if line.startswith(b'{"kind":'):
            continue
        try:
            yield decode(line)
        except msgspec.DecodeError:
            if damage is not None:
                damage.lines += 1
