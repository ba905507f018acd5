"""Samples that are made when they are looked at, so that a million of them need little memory."""

from __future__ import annotations

import mmap
import weakref
from abc import abstractmethod
from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from tempfile import TemporaryFile
from typing import IO, overload

import msgspec

from keju.types import Sample

IN_MEMORY = 1 << 22
"""Bytes of stored samples up to which they need no file."""
KEPT = 512
"""Samples that are kept after they were made: more than are usually in flight."""
_NUMBER_BITS = 32


class LazySamples(Sequence[Sample]):
    """A sequence of samples of which each is made by `make` when it is asked for.

    The last few are kept: a question is looked at when it is asked, and again when it is answered.
    """

    @abstractmethod
    def make(self, index: int) -> Sample:
        """The sample at `index`, which is at least 0 and below the length."""

    @overload
    def __getitem__(self, index: int) -> Sample: ...
    @overload
    def __getitem__(self, index: slice) -> list[Sample]: ...
    def __getitem__(self, index: int | slice) -> Sample | list[Sample]:
        if isinstance(index, slice):
            return [self.make(i) for i in range(*index.indices(len(self)))]
        if (sample := self._recent.get(index)) is None:
            if not 0 <= index < len(self):
                raise IndexError(index)
            if len(self._recent) >= KEPT:
                self._recent.clear()
            sample = self._recent[index] = self.make(index)
        return sample

    def __iter__(self) -> Iterator[Sample]:
        return map(self.make, range(len(self)))

    @cached_property
    def _recent(self) -> dict[int, Sample]:
        return {}


class ChosenSamples(LazySamples):
    """Some rows of other samples, in an order of their own: four bytes a row."""

    def __init__(self, samples: Sequence[Sample], rows: Sequence[int]) -> None:
        self._samples = samples
        self._rows = rows if isinstance(rows, range) else array("I", rows)

    def __len__(self) -> int:
        return len(self._rows)

    def make(self, index: int) -> Sample:
        return self._samples[self._rows[index]]


class StoredSamples(LazySamples):
    """Samples in a temporary file of this process: eight bytes of memory a sample.

    The file is mapped, so that the system keeps in memory what is in use and may drop the rest.
    It is a copy: whoever edits the exam's own files while it is sat changes nothing. It has no
    name, so that nothing stays behind when the process ends, however it ends.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        """What is not in the file yet."""
        self._file: IO[bytes] | None = None
        self._content: bytes | mmap.mmap | None = None
        self._ends = array("Q", [0])
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(Sample).decode

    def append(self, sample: Sample) -> None:
        """Add one sample at the end."""
        encoded = self._encode(sample)
        self._buffer += encoded
        self._ends.append(self._ends[-1] + len(encoded))
        self._content = None
        if len(self._buffer) > IN_MEMORY:
            self._write()

    def __len__(self) -> int:
        return len(self._ends) - 1

    def make(self, index: int) -> Sample:
        if self._content is None:
            self._content = self._read()
        return self._decode(self._content[self._ends[index] : self._ends[index + 1]])

    def _write(self) -> IO[bytes]:
        if self._file is None:
            self._file = TemporaryFile()  # noqa: SIM115 (it lives as long as the samples)
            weakref.finalize(self, self._file.close)
        self._file.write(self._buffer)
        self._buffer.clear()
        return self._file

    def _read(self) -> bytes | mmap.mmap:
        if self._file is None:
            return bytes(self._buffer)
        self._write().flush()
        return mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)


class Positions:
    """Finds the number of a text: a hash table of 8-byte cells, at most half of them in use.

    A cell holds 32 bits of the text's hash and, below them, its number plus one; 0 is empty. The
    texts themselves are not kept: `text_of` tells them again, to confirm what the hash found.
    """

    def __init__(self, text_of: Callable[[int], str]) -> None:
        self._text_of = text_of
        self._cells = array("Q", bytes(8 * 16))
        self._used = 0

    @classmethod
    def of(cls, samples: Sequence[Sample]) -> Positions:
        """The positions of samples by their id."""
        positions = cls(lambda number: samples[number].id)
        for number, sample in enumerate(samples):
            positions.add(sample.id, number)
        return positions

    def add(self, text: str, number: int) -> int | None:
        """Enter a text under a number; if it is there already, return the number it has."""
        cell = self._find(text)
        if self._cells[cell]:
            return self._number(cell)
        self._cells[cell] = (hash(text) & 0xFFFFFFFF) << _NUMBER_BITS | (number + 1)
        self._used += 1
        if 2 * self._used > len(self._cells):
            self._grow()
        return None

    def get(self, text: str) -> int | None:
        """The number of a text; None if it was never added."""
        cell = self._find(text)
        return self._number(cell) if self._cells[cell] else None

    def _number(self, cell: int) -> int:
        return (self._cells[cell] & 0xFFFFFFFF) - 1

    def _find(self, text: str) -> int:
        """The cell that holds `text`, else the empty one where it belongs."""
        cells, mask = self._cells, len(self._cells) - 1
        bits = hash(text) & 0xFFFFFFFF
        cell = bits & mask
        while content := cells[cell]:
            if content >> _NUMBER_BITS == bits and self._text_of(self._number(cell)) == text:
                break
            cell = (cell + 1) & mask
        return cell

    def _grow(self) -> None:
        cells, mask = array("Q", bytes(16 * len(self._cells))), 2 * len(self._cells) - 1
        for content in self._cells:
            if content:
                cell = content >> _NUMBER_BITS & mask
                while cells[cell]:
                    cell = (cell + 1) & mask
                cells[cell] = content
        self._cells = cells
