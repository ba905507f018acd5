"""Read a journal in blocks of whole lines, within limits: the viewer also shows runs of others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from keju.bounds import MIB
from keju.runs.journal import open_journal

LONGEST_LINE: Final = 128 * MIB
"""Bytes of a line that the viewer reads; a longer line counts as damaged."""


class Block(NamedTuple):
    """Whole lines of a journal; no lines where a line was too long."""

    start: int
    data: bytes
    end: int

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield each line with its line end, after the position at which it begins."""
        start = self.start
        for line in self.data[:-1].split(b"\n") if self.data else ():
            yield start, line + b"\n"
            start += len(line) + 1


def blocks(path: Path, start: int, size: int) -> Iterator[Block]:
    """Yield blocks of about `size` bytes from `start` on; a torn last line is left for later.

    Raises DataError if the journal is a link or not a file.
    """
    with open_journal(path) as file:
        file.seek(start)
        while data := file.read(size):
            if not data.endswith(b"\n"):
                data += file.readline(LONGEST_LINE)
            whole = data.rfind(b"\n") + 1
            rest = len(data) - whole
            if whole:
                yield Block(start, data[:whole] if rest else data, start + whole)
            start += whole
            del data
            if rest >= LONGEST_LINE:
                end = start + rest + _pass_over(file)
                yield Block(start, b"", end)
                start = end
            elif rest:
                return


def _pass_over(file: BinaryIO) -> int:
    """Read to the end of a line without keeping it; return its bytes."""
    passed = 0
    while piece := file.readline(MIB):
        passed += len(piece)
        if piece.endswith(b"\n"):
            break
    return passed
