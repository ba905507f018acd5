"""A file, pipe or terminal for lines, which never waits for its reader.

Lines are collected and written by `flush`. Lines that a pipe cannot take stay in memory, up to
`MAX_WAITING` bytes. Further lines are dropped and counted, and the count is written as soon as
there is room. Each `flush` tries again to open a pipe without a reader.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep

from keju.errors import Notice, UsageError

MAX_WAITING = 8 << 20
"""The most bytes that wait for a slow reader."""
LAST_WAIT = 1.0
"""The most seconds that the end of a run waits for a slow reader."""


class LineStream:
    """Lines to one place; safe to use from several threads."""

    def __init__(self, path: str, on_dropped: Callable[[int], bytes]) -> None:
        """Open the place. `on_dropped` makes the line with the number of dropped lines."""
        self.path = path
        self.problem: str | Notice | None = None
        """Why nothing more is written."""
        self._on_dropped = on_dropped
        self._lock = threading.Lock()
        self._waiting = bytearray()
        self._dropped = 0
        self._fd = -1
        self._open(is_first=True)

    def write(self, line: bytes) -> None:
        """Take a line; it ends with a line feed."""
        with self._lock:
            if self.problem is not None:
                return
            if len(self._waiting) + len(line) > MAX_WAITING:
                self._dropped += 1
                return
            if self._dropped:
                self._waiting += self._on_dropped(self._dropped)
                self._dropped = 0
            self._waiting += line

    def flush(self) -> None:
        """Write as much as possible without waiting."""
        with self._lock:
            if self.problem is not None or not self._waiting:
                return
            try:
                if self._fd < 0:
                    self._open()
                while self._waiting and self._fd >= 0:
                    del self._waiting[: os.write(self._fd, self._waiting[: 1 << 20])]
            except BlockingIOError:
                pass  # its reader is too slow
            except OSError as error:
                self._stop(error.strerror or str(error))

    def close(self) -> None:
        """Write the remaining lines, as far as that is quick."""
        deadline = monotonic() + LAST_WAIT
        self.flush()
        with self._lock:
            if self._dropped and self.problem is None:
                self._waiting += self._on_dropped(self._dropped)
                self._dropped = 0
        self.flush()
        while self._waiting and self.problem is None and monotonic() < deadline:
            sleep(0.02)
            self.flush()
        with self._lock:
            if self._waiting and self.problem is None:
                self._stop(Notice("events_nobody" if self._fd < 0 else "events_slow"))
            self._close_file()

    def _open(self, *, is_first: bool = False) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            self._fd = os.open(self.path, flags, 0o644)
        except OSError as error:
            if error.errno == errno.ENXIO and _is_pipe(self.path):
                return  # the pipe has no reader yet
            if is_first:
                problem = error.strerror
                raise UsageError("cli_cannot_write", place=self.path, problem=problem) from None
            raise
        if is_first and _is_torn(self.path):
            self._waiting += b"\n"

    def _stop(self, problem: str | Notice) -> None:
        self.problem = problem
        self._waiting.clear()
        self._close_file()

    def _close_file(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _is_pipe(path: str) -> bool:
    return stat.S_ISFIFO(Path(path).stat().st_mode)


def _is_torn(path: str) -> bool:
    """Whether a plain file ends in the middle of a line, for example after a full disk."""
    file = Path(path)
    if not file.is_file() or not file.stat().st_size:
        return False
    with file.open("rb") as content:
        content.seek(-1, os.SEEK_END)
        return content.read(1) != b"\n"
