"""Samples that are made when they are looked at, so that a million of them need little memory."""

from __future__ import annotations

import mmap
import weakref
from abc import abstractmethod
from array import array
from collections.abc import Iterator, Sequence
from functools import cached_property
from tempfile import TemporaryFile
from typing import IO, overload

import msgspec

from keju.types import Sample

IN_MEMORY = 1 << 22
"""Bytes of stored samples up to which they need no file."""
KEPT = 512
"""Samples that are kept after they were made: more than are usually in flight."""


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
