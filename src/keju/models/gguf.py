"""The header of a GGUF file: metadata of the model, and whether the file is complete.

llama.cpp only reports that it cannot load a file. Reading the header first gives the reason in one
line, and the metadata for a run's manifest.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from keju.bounds import open_file
from keju.errors import DataError

MAGIC = b"GGUF"
VERSIONS = (2, 3)
DEFAULT_ALIGNMENT = 32
LARGEST_ALIGNMENT = 1 << 20
LONGEST_HEADER = 1 << 27
"""Bytes. The header of the largest vocabulary has a quarter of it, so a longer header is
damaged."""
TEXT_COST = 24
"""Bytes that each text of a list counts in addition to its length, because each one takes time to
read."""
MOST_DIMENSIONS = 8
"""Twice the limit of ggml."""
TEMPLATE_HASH_LENGTH = 16


class _TensorType(NamedTuple):
    """The storage of a tensor type: a block of `values` values takes `size` bytes."""

    name: str
    values: int
    size: int


TENSOR_TYPES = {
    0: _TensorType("F32", 1, 4),
    1: _TensorType("F16", 1, 2),
    2: _TensorType("Q4_0", 32, 18),
    3: _TensorType("Q4_1", 32, 20),
    6: _TensorType("Q5_0", 32, 22),
    7: _TensorType("Q5_1", 32, 24),
    8: _TensorType("Q8_0", 32, 34),
    9: _TensorType("Q8_1", 32, 36),
    10: _TensorType("Q2_K", 256, 84),
    11: _TensorType("Q3_K", 256, 110),
    12: _TensorType("Q4_K", 256, 144),
    13: _TensorType("Q5_K", 256, 176),
    14: _TensorType("Q6_K", 256, 210),
    15: _TensorType("Q8_K", 256, 292),
    16: _TensorType("IQ2_XXS", 256, 66),
    17: _TensorType("IQ2_XS", 256, 74),
    18: _TensorType("IQ3_XXS", 256, 98),
    19: _TensorType("IQ1_S", 256, 50),
    20: _TensorType("IQ4_NL", 32, 18),
    21: _TensorType("IQ3_S", 256, 110),
    22: _TensorType("IQ2_S", 256, 82),
    23: _TensorType("IQ4_XS", 256, 136),
    24: _TensorType("I8", 1, 1),
    25: _TensorType("I16", 1, 2),
    26: _TensorType("I32", 1, 4),
    27: _TensorType("I64", 1, 8),
    28: _TensorType("F64", 1, 8),
    29: _TensorType("IQ1_M", 256, 56),
    30: _TensorType("BF16", 1, 2),
    34: _TensorType("TQ1_0", 256, 54),
    35: _TensorType("TQ2_0", 256, 66),
    39: _TensorType("MXFP4", 32, 17),
}
"""The types of ggml by number. Types that are not listed are left to llama.cpp."""

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q",
            12: "d"}  # fmt: skip
_STRING, _ARRAY = 8, 9


@dataclass(frozen=True)
class GgufHeader:
    """The metadata of a complete GGUF file."""

    path: Path
    size: int
    architecture: str
    context: int
    """Context length in training, in tokens; 0 if the file does not name it."""
    vocabulary: int
    quantisation: str
    """The type that holds most of the weights."""
    chat_template: str
    words: str = ""
    """The name of the tokenizer's rule for splitting a text into words."""


def template_hash(template: str) -> str:
    """Return a short hash of a chat template; empty if there is none."""
    digest = hashlib.sha256(template.encode()).hexdigest()
    return digest[:TEMPLATE_HASH_LENGTH] if template else ""


class _DamagedHeader(Exception):
    """The file ends inside its header, or the header is invalid."""


def read_gguf(path: Path) -> GgufHeader:
    """Read the header of `path` and check that the file holds all its tensors.

    Raises DataError in one line: the file is missing, not a GGUF file, or cut short.
    """
    try:
        size = path.stat().st_size
        with open_file(path) as file:
            return _HeaderReader(file, path, size).read_header()
    except OSError as error:
        raise DataError("gguf_unreadable", path=path, problem=error.strerror) from None
    except _DamagedHeader:
        raise DataError("gguf_cut", path=path) from None


class _HeaderReader:
    """Reads a header from front to back: its counts, its entries, its list of tensors."""

    def __init__(self, file: BinaryIO, path: Path, size: int) -> None:
        self._file = file
        self._path = path
        self._size = size
        self._remaining = LONGEST_HEADER
        """Bytes that the header may still have, which bounds memory and time."""

    def read_header(self) -> GgufHeader:
        if self._file.read(4) != MAGIC:
            raise DataError("gguf_no_gguf", path=self._path)
        version = self._read_number("I")
        if version not in VERSIONS:
            raise DataError("gguf_version", path=self._path, version=version)
        tensors, entries = self._read_length(), self._read_length()
        # An entry is its name, the number of its type, and the value.
        facts = {
            self._read_string(): self._read_value(self._read_number("I")) for _ in range(entries)
        }
        alignment = facts.get("general.alignment", DEFAULT_ALIGNMENT)
        if type(alignment) is not int or not 0 < alignment <= LARGEST_ALIGNMENT:
            raise DataError("gguf_alignment", path=self._path)
        weights = self._read_tensors(tensors, alignment)
        name = str(facts.get("general.architecture", ""))
        context, tokens = facts.get(f"{name}.context_length"), facts.get("tokenizer.ggml.tokens")
        return GgufHeader(
            path=self._path,
            size=self._size,
            architecture=name,
            context=context if type(context) is int else 0,
            vocabulary=tokens if type(tokens) is int else 0,
            quantisation=max(weights, key=weights.__getitem__, default=""),
            chat_template=str(facts.get("tokenizer.chat_template", "")),
            words=str(facts.get("tokenizer.ggml.pre", "")),
        )

    def _read_tensors(self, count: int, alignment: int) -> Counter[str]:
        """Return the bytes by type; raise DataError if the file ends before the last tensor."""
        weights: Counter[str] = Counter()
        end = 0
        for _ in range(count):
            self._read_string()
            dimensions = self._read_number("I")
            if dimensions > MOST_DIMENSIONS:
                raise _DamagedHeader
            shape = [self._read_number("Q") for _ in range(dimensions)]
            kind, offset = self._read_number("I"), self._read_number("Q")
            end = max(end, offset)
            if kind in TENSOR_TYPES:
                name, values, size = TENSOR_TYPES[kind]
                length = math.prod(shape) // values * size
                weights[name] += length
                end = max(end, offset + length)
        start = -(-self._file.tell() // alignment) * alignment
        if start + end > self._size:
            raise DataError("gguf_short", path=self._path, size=self._size, needed=start + end)
        return weights

    def _read_value(self, kind: int) -> Any:
        """Return a value; for an array only its length, because no long list is needed here.

        An array of arrays is damage: llama.cpp does not accept it.
        """
        if kind == _STRING:
            return self._read_string()
        if kind != _ARRAY:
            return self._read_number(_scalar_format(kind))
        kind, count = self._read_number("I"), self._read_length()
        if kind == _STRING:
            self._spend(count * TEXT_COST)
            for _ in range(count):
                self._read_string()
        else:
            self._read_bytes(count * struct.calcsize(_scalar_format(kind)))
        return count

    def _read_string(self) -> str:
        return self._read_bytes(self._read_length()).decode("utf-8", "replace")

    def _read_length(self) -> int:
        """Return a number of bytes or entries, each of at least one byte; raise if it is beyond the
        header."""
        length = self._read_number("Q")
        if length > LONGEST_HEADER:
            raise _DamagedHeader
        return int(length)

    def _read_number(self, form: str) -> Any:
        return struct.unpack(f"<{form}", self._read_bytes(struct.calcsize(form)))[0]

    def _spend(self, count: int) -> None:
        self._remaining -= count
        if self._remaining < 0:
            raise _DamagedHeader

    def _read_bytes(self, count: int) -> bytes:
        self._spend(count)
        data = self._file.read(count)
        if len(data) < count:
            raise _DamagedHeader
        return data


def _scalar_format(kind: int) -> str:
    if kind not in _SCALARS:
        raise _DamagedHeader
    return _SCALARS[kind]
