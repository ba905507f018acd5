"""Read a journal in blocks of whole lines, within limits, because any run may be opened."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from keju.bounds import MIB
from keju.runs.journal import open_journal

LONGEST_LINE: Final = 128 * MIB
"""The maximum number of bytes of a line; a longer line counts as damaged."""
_PIECE: Final = 4 * MIB
"""The number of bytes that are read at once to find the end of such a line."""


class JournalBlock(NamedTuple):
    """Whole lines of a journal; no lines if a line was too long."""

    start: int
    data: bytes
    end: int

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield each line with its line end, together with its position."""
        start = self.start
        for line in self.data[:-1].split(b"\n") if self.data else ():
            yield start, line + b"\n"
            start += len(line) + 1


def blocks(path: Path, start: int, size: int) -> Iterator[JournalBlock]:
    """Yield blocks of about `size` bytes from `start` on; an incomplete last line is not read.

    Raises DataError if the journal is a link or not a file.
    """
    with open_journal(path) as file:
        file.seek(start)
        while data := file.read(size):
            if not data.endswith(b"\n"):
                data += file.readline(LONGEST_LINE)
            whole_length = data.rfind(b"\n") + 1
            torn_length = len(data) - whole_length
            if whole_length:
                yield JournalBlock(
                    start, data[:whole_length] if torn_length else data, start + whole_length
                )
            start += whole_length
            del data
            if torn_length >= LONGEST_LINE:
                end = start + torn_length + _skip_line(file)
                yield JournalBlock(start, b"", end)
                start = end
            elif torn_length:
                return


def _skip_line(file: BinaryIO) -> int:
    """Skip to the end of a line without storing it; return its number of bytes.

    Pieces are read whole and searched, because `readline` is slow on a line of gigabytes.
    """
    start = file.tell()
    _skip_hole(file)
    while piece := file.read(_PIECE):
        line_end = piece.find(b"\n") + 1
        if line_end:
            file.seek(line_end - len(piece), os.SEEK_CUR)
            break
        _skip_hole(file)
    return file.tell() - start


def _skip_hole(file: BinaryIO) -> None:
    """Skip to the next bytes that are on the disk: a hole reads as zeros and contains no line end.

    A file with a size of 6 GB can be one hole; reading it takes half a minute.
    """
    if not hasattr(os, "SEEK_DATA"):
        return
    number, position = file.fileno(), file.tell()
    buffered_to = os.lseek(number, 0, os.SEEK_CUR)
    try:
        data_start = os.lseek(number, position, os.SEEK_DATA)
    except OSError as error:
        # ENXIO: only a hole up to the end of the file. Other errors: the file system has no such
        # call.
        data_start = os.fstat(number).st_size if error.errno == errno.ENXIO else position
    os.lseek(number, buffered_to, os.SEEK_SET)  # the buffer of `file` relies on its position
    file.seek(data_start)
