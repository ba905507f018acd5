"""Files, once: written whole or not at all; JSON, JSON Lines and gzip within limits; names."""

from __future__ import annotations

import gzip
import io
import json
import math
import os
import platform
import re
import secrets
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final, Never, Self

import msgspec

from keju.errors import DataError, WriteError

PART: Final = ".part"
"""How the name of a file ends that is still written."""
LONGEST_WRITING: Final = 86_400.0
"""Seconds after which nobody writes a file any more."""
LONGEST_LINE: Final = 1 << 26
"""Bytes of one line; replies may be long, but not endless."""
LONGEST_NUMBER: Final = 1000
"""Digits of one number in JSON."""
ALWAYS_UNPACKED: Final = 1 << 26
MOST_RATIO: Final = 250
"""Beyond so many bytes, so many times its size is the most that a file may unpack to. Text packs
ten to fifty times; a bomb a thousand times."""
_DIGITS = re.compile(r"(\d+)")


@contextmanager
def whole_file(path: Path, *, make_folder: bool = True) -> Iterator[BinaryIO]:
    """A file that takes the place of `path` once everything is written.

    A reader of `path` sees the old content or the new, never a part, and nothing stays behind
    where the block fails. The part's name is new each time, so that two writers never share one;
    parts that killed writers left behind are removed.
    WriteError says in one line why the file cannot be written.
    """
    writer = f"{platform.node()}-{os.getpid()}"
    part = path.with_name(f".{path.name}.{writer}-{secrets.token_hex(4)}{PART}")
    try:
        if make_folder:
            path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise WriteError("file_is_folder", where=path)
        _remove_leftovers(path)
        with part.open("xb") as stream:
            yield stream
        part.replace(path)
    except OSError as error:
        problem = error.strerror or error
        raise WriteError("cli_cannot_write", place=path, problem=problem) from None
    finally:
        try:
            part.unlink(missing_ok=True)
        except OSError:
            pass  # the folder itself cannot be used, which the first error said


def _remove_leftovers(path: Path) -> None:
    """Remove the parts of `path` whose writers are gone from this computer, or older than a day."""
    start = f".{path.name}."
    for entry in os.scandir(path.parent):
        if not (entry.name.startswith(start) and entry.name.endswith(PART)):
            continue
        host, _, rest = entry.name.removeprefix(start).rpartition("-")[0].rpartition("-")
        with suppress(OSError):
            gone = host == platform.node() and rest.isdecimal() and not _runs(int(rest))
            if gone or entry.stat().st_mtime < time.time() - LONGEST_WRITING:
                Path(entry.path).unlink()


def _runs(process: int) -> bool:
    """Whether a process of this computer is still there; where that cannot be asked, it is."""
    if os.name == "nt":  # asking would end it
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        pass
    return True


def is_there(path: Path) -> bool:
    """Whether there is a file; none has a name that the system cannot have."""
    try:
        return path.is_file()
    except OSError:  # `File name too long`
        return False


def write_json(path: Path, document: Any, *, make_folder: bool = True) -> None:
    """Write a whole JSON file or none, indented for people."""
    data = msgspec.json.format(msgspec.json.encode(document), indent=1)
    with whole_file(path, make_folder=make_folder) as stream:
        stream.write(data + b"\n")


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON file that holds one object."""
    try:
        document = parse_json(path.read_bytes())
    except OSError as error:
        raise DataError("file_unreadable", where=path, problem=error.strerror) from None
    except DataError as error:
        raise DataError("file_not_json", where=path, problem=error) from None
    if not isinstance(document, dict):
        raise DataError("file_no_object", where=path)
    return document


class Written(float):
    """A number that is shown as people wrote it: ``1.10`` does not lose its 0."""

    _text: str

    def __new__(cls, text: str) -> Self:
        number = super().__new__(cls, _finite(text))
        number._text = text
        return number

    def __str__(self) -> str:
        return self._text


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise DataError("json_number_too_large")
    return number


def _whole(text: str) -> int:
    if len(text) > LONGEST_NUMBER:
        raise DataError("json_number_too_long")
    return int(text)


def _refuse(constant: str) -> Never:
    raise DataError("config_not_json_value", constant=constant)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(pairs)
    if len(unique) < len(pairs):
        key = next(key for key, many in Counter(key for key, _ in pairs).items() if many > 1)
        raise DataError("config_key_twice", key=key)
    return unique


def _decoder(number: Callable[[str], float], constant: Callable[[str], float]) -> json.JSONDecoder:
    return json.JSONDecoder(
        parse_float=number, parse_constant=constant, parse_int=_whole, object_pairs_hook=_unique
    )


DOCUMENT: Final = _decoder(_finite, _refuse)
TABLE: Final = _decoder(Written, _refuse)
"""For what people write down."""
LOG: Final = _decoder(float, float)
"""For what programs in Python write, ``NaN`` and ``Infinity`` included."""


def parse_json(raw: bytes, decoder: json.JSONDecoder = DOCUMENT) -> Any:
    """A JSON document in UTF-8; DataError says in one line why it is none.

    A key that is given twice in one object is refused, since one of its values would be lost.
    """
    try:
        text = raw.decode("utf-8-sig")
        document = decoder.decode(text)
        if "\\ud" in text or "\\uD" in text:  # half a character cannot be written again
            json.dumps(document, ensure_ascii=False).encode()
    except UnicodeDecodeError as error:
        raise DataError("json_not_utf8", position=error.start + 1) from None
    except UnicodeEncodeError:
        raise DataError("json_half_character") from None
    except json.JSONDecodeError as error:
        problem = error.msg[:1].lower() + error.msg[1:]
        raise DataError("json_invalid", problem=problem, position=error.pos + 1) from None
    except RecursionError:
        raise DataError("json_too_deep") from None
    return document


def lines_of(stream: io.BufferedIOBase, where: str) -> Iterator[bytes]:
    """The lines of a stream; DataError names one that is too long to be one."""
    number = 0
    while line := stream.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            most = LONGEST_LINE >> 20
            raise DataError("file_line_too_long", where=where, line=number, most=most)
        yield line


def json_rows(
    stream: io.BufferedIOBase, where: str, decoder: json.JSONDecoder = TABLE
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The numbered objects of JSON Lines; empty lines are passed over."""
    for number, line in enumerate(lines_of(stream, where), 1):
        if not line.strip():
            continue
        try:
            row = parse_json(line, decoder)
            if not isinstance(row, dict):
                raise DataError("json_no_object")
        except DataError as error:
            raise DataError("file_line", where=where, line=number, problem=error) from None
        yield number, row


def read_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The numbered objects of a JSON Lines file, gzipped or not; see `json_rows`."""
    try:
        with path.open("rb") as file:
            stream = unpacking(file, str(path)) if path.suffix == ".gz" else file
            yield from json_rows(stream, str(path))
    except OSError as error:
        raise DataError("file_unreadable", where=path, problem=error.strerror) from None


def unpacking(packed: io.BufferedIOBase, where: str) -> io.BufferedIOBase:
    """What a gzip file holds, read bit by bit; DataError if it is damaged, or a bomb."""
    return io.BufferedReader(_Unpacked(packed, where), 1 << 16)


class _Counted(io.RawIOBase):
    """A stream that counts the bytes read from it."""

    def __init__(self, stream: io.BufferedIOBase) -> None:
        self._stream = stream
        self.count = 0

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self.count += len(data)
        return data


class _Unpacked(io.RawIOBase):
    def __init__(self, packed: io.BufferedIOBase, where: str) -> None:
        self._packed = _Counted(packed)
        self._gzip = gzip.GzipFile(fileobj=self._packed)
        self._made = 0
        self._where = where

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._gzip.read1(len(buffer))
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise DataError("file_not_gzip", where=self._where, problem=error) from None
        self._made += len(data)
        refuse_bomb(self._made, self._packed.count, self._where)
        buffer[: len(data)] = data
        return len(data)


def refuse_bomb(unpacked: int, packed: int, where: str) -> None:
    """DataError where something small unpacks to something huge, as no honest data does."""
    if unpacked > ALWAYS_UNPACKED and unpacked > MOST_RATIO * packed:
        raise DataError("file_bomb", where=where, ratio=MOST_RATIO)


def natural_key(text: str) -> tuple[tuple[int, int, str], ...]:
    """Sort key that puts ``q2`` before ``q10``."""
    parts = _DIGITS.split(text)
    return tuple((1, int(p), "") if p.isdecimal() else (0, 0, p) for p in parts if p)
