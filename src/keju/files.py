"""Files: atomic writing, JSON and JSON Lines, file names, and temporary files that replace memory.

The limits are in `keju.bounds`.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import io
import json
import math
import mmap
import os
import platform
import re
import secrets
import shutil
import stat
import time
import weakref
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO, Final, Generic, Never, Self, TypeVar, overload

import msgspec

from keju import bounds
from keju.bounds import (
    LONGEST_DOCUMENT,
    has_many_values,
    open_file,
    parse_whole_number,
    read_file,
    read_lines,
    unpack_gzip,
)
from keju.errors import DataError, TranslatableText, WriteError

PART: Final = ".part"
"""The suffix of a file that is being written."""
LONGEST_WRITING: Final = 86_400.0
"""Seconds after which a file counts as abandoned by its writer."""
LONGEST_NUMBER: Final = 1000
"""Digits of one number in JSON."""
IN_MEMORY: Final = 1 << 22
"""Bytes up to which stored data stays in memory without a temporary file."""
_DIGITS = re.compile(r"(\d+)")
Stored = TypeVar("Stored")


@contextmanager
def whole_file(path: Path, *, make_folder: bool = True) -> Iterator[BinaryIO]:
    """Yield a file that replaces `path` once everything is written.

    A reader of `path` sees the old content or the new, never a part. If the block fails, no file
    is left behind. The temporary name is new each time, so that two writers never share one. Files
    that killed writers left behind are removed. Raise WriteError with one line if the file cannot
    be written.
    """
    part = _temporary_path(path)
    try:
        if make_folder:
            path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise WriteError("file_is_folder", where=path)
        if path.exists() and not path.is_file():  # /dev/stdout, /dev/null, a pipe: never replaced
            with _open_device(path) as stream:
                yield stream
            return
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
            pass  # the folder itself cannot be used, as the first error says


def _open_device(path: Path) -> BinaryIO:
    """Open a device or a pipe for writing. Raise OSError if no program reads the pipe."""
    fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    os.set_blocking(fd, True)
    return os.fdopen(fd, "wb")


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder with the same name that replaces `path` once everything is written.

    `path` is an empty folder, or does not exist, and stays so if the block fails or is killed. So a
    command that creates a folder can be repeated. Folders that killed commands left behind are
    removed. Raise WriteError with one line if the folder cannot be written.
    """
    part = _temporary_path(path)
    new_folder = part / path.name
    try:
        with _explain_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            _remove_leftovers(path)
            new_folder.mkdir(parents=True)
        yield new_folder
        with _explain_errors(path):
            new_folder.replace(path)
    finally:
        shutil.rmtree(part, ignore_errors=True)


@contextmanager
def _explain_errors(path: Path) -> Iterator[None]:
    """Turn an OSError into a WriteError with one line."""
    try:
        yield
    except OSError as error:
        problem = error.strerror or error
        raise WriteError("cli_cannot_write", place=path, problem=problem) from None


def open_for_writing(path: Path, flags: int) -> int:
    """Open a file of Keju for writing and return its descriptor. Raise WriteError if that fails.

    A link is not followed, since it could lead to any file of the user. A device or a pipe is
    refused.
    """
    fd = -1
    try:
        fd = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, TranslatableText("not_a_file"))
    except OSError as error:
        if fd >= 0:
            os.close(fd)
        problem = _link_hint(error, path)
        raise WriteError("cli_cannot_write", place=path, problem=problem) from None
    return fd


def open_regular_file(path: Path) -> BinaryIO:
    """Open a file of Keju for reading. Raise OSError for a link, a pipe or a device."""
    try:
        stream = open_file(path, follow=False)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, _link_hint(error, path), str(path)) from None
        raise
    if not stat.S_ISREG(path.lstat().st_mode):
        stream.close()
        raise OSError(errno.EINVAL, TranslatableText("not_a_file"), str(path))
    return stream


def _link_hint(error: OSError, path: Path) -> str:
    if error.errno == errno.ELOOP and path.is_symlink():
        return TranslatableText("file_is_link")
    return error.strerror or str(error)


def take_lock(fd: int, path: Path, *, shared: bool = False) -> bool:
    """Lock an open file. Return whether it was free. Raise WriteError if it cannot be locked at
    all."""
    try:
        fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        raise WriteError("file_not_lockable", path=path, problem=error.strerror) from None
    return True


def _temporary_path(path: Path) -> Path:
    """Return a new temporary name for a file that will replace `path`."""
    writer = f"{platform.node()}-{os.getpid()}"
    return path.with_name(f".{path.name}.{writer}-{secrets.token_hex(4)}{PART}")


def _remove_leftovers(path: Path) -> None:
    """Remove the temporary files of `path` that are older than a day or whose writers have
    ended."""
    start = f".{path.name}."
    for entry in os.scandir(path.parent):
        if not (entry.name.startswith(start) and entry.name.endswith(PART)):
            continue
        host, _, process = entry.name.removeprefix(start).rpartition("-")[0].rpartition("-")
        with suppress(OSError):
            is_abandoned = (
                host == platform.node() and process.isdecimal() and not _is_running(int(process))
            )
            if is_abandoned or entry.stat().st_mtime < time.time() - LONGEST_WRITING:
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path)
                else:
                    Path(entry.path).unlink()


def _is_running(process: int) -> bool:
    """Whether a process of this computer is running. True if the system does not tell."""
    if os.name == "nt":  # os.kill would end it
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        pass
    return True


def typed_path(path: Path) -> str:
    """Return a path as typed in the current folder: relative if it is below that folder."""
    here = Path.cwd()
    return str(path.relative_to(here) if here in path.parents else path)


def file_exists(path: Path) -> bool:
    """Whether a file exists. False for names that the system does not allow."""
    try:
        return path.is_file()
    except OSError:  # `File name too long`
        return False


def write_json(path: Path, document: Any, *, make_folder: bool = True) -> None:
    """Write a whole indented JSON file or nothing."""
    with whole_file(path, make_folder=make_folder) as stream:
        for piece in iter_json_pieces(document, 1):
            stream.write(piece)
        stream.write(b"\n")


def iter_json_pieces(document: Any, indent: int) -> Iterator[bytes]:
    """Yield an indented JSON document in pieces.

    A sequence that is not a list or tuple may create its items on access. They are written one by
    one, so that a document may be larger than memory.
    """
    return _iter_pieces(document, indent, b"\n")


def _iter_pieces(value: Any, indent: int, margin: bytes) -> Iterator[bytes]:
    """Yield the pieces of a value. `margin` is the line end with the indentation of its last
    bracket."""
    if not value or not _has_lazy_part(value):
        # JSON strings never contain a line end: it is written as two characters.
        encoded = msgspec.json.encode([] if _is_lazy(value) else value, enc_hook=_encode_text)
        yield msgspec.json.format(encoded, indent=indent).replace(b"\n", margin)
        return
    is_mapping = isinstance(value, Mapping)
    inner = margin + b" " * indent
    opening = (b"{" if is_mapping else b"[") + inner
    for item in value.items() if is_mapping else value:
        yield opening
        if is_mapping:
            name, item = item
            yield msgspec.json.encode(name) + b": "
        yield from _iter_pieces(item, indent, inner)
        opening = b"," + inner
    yield margin + (b"}" if is_mapping else b"]")


def _encode_text(value: Any) -> str:
    """Return a text with translations as its English text."""
    if isinstance(value, str):
        return str(value)
    raise NotImplementedError(f"Encoding objects of type {type(value).__name__} is unsupported")


def _is_lazy(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | list | tuple)


def _has_lazy_part(value: Any) -> bool:
    """Whether any part of a document creates its items on access."""
    pending = [value]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            pending.extend(part.values())
        elif isinstance(part, list | tuple):
            pending.extend(part)
        elif isinstance(part, Sequence) and not isinstance(part, str | bytes):
            return True
    return False


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON file that holds one object."""
    try:
        document = parse_json(read_file(path, LONGEST_DOCUMENT))
    except OSError as error:
        raise DataError("file_unreadable", where=path, problem=error.strerror) from None
    except DataError as error:
        raise DataError("file_not_json", where=path, problem=error) from None
    if not isinstance(document, dict):
        raise DataError("file_no_object", where=path)
    return document


class WrittenNumber(float):
    """A number that is shown as it was written: ``1.10`` keeps its 0."""

    _text: str

    def __new__(cls, text: str) -> Self:
        number = super().__new__(cls, _parse_finite(text))
        number._text = text
        return number

    def __str__(self) -> str:
        return self._text


def _parse_finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise DataError("json_number_too_large")
    return number


def _parse_integer(text: str) -> int:
    if len(text) > LONGEST_NUMBER:
        raise DataError("json_number_too_long")
    return int(text)


def _refuse_constant(constant: str) -> Never:
    raise DataError("config_not_json_value", constant=constant)


def _check_unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(pairs)
    if len(unique) < len(pairs):
        key = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise DataError("config_key_twice", key=key)
    return unique


def _make_decoder(
    number: Callable[[str], float], constant: Callable[[str], float]
) -> json.JSONDecoder:
    return json.JSONDecoder(
        parse_float=number,
        parse_constant=constant,
        parse_int=_parse_integer,
        object_pairs_hook=_check_unique,
    )


DOCUMENT: Final = _make_decoder(_parse_finite, _refuse_constant)
TABLE: Final = _make_decoder(WrittenNumber, _refuse_constant)
"""For files that people write."""
LOG: Final = _make_decoder(float, float)
"""For files that programs in Python write, including ``NaN`` and ``Infinity``."""


# An error of msgspec: `Expected `int`, got `str` - at `$.runs[0].n``.
_MISSING = re.compile(r"Object missing required field `(?P<name>[^`]*)`")
_KIND = re.compile(r"Expected `(?P<wanted>[^`]*)`, got `(?P<given>[^`]*)`")
_VALUE = re.compile(r"Invalid enum value '?(?P<value>[^']*)'?")
_AT = re.compile(
    r"(?P<told>.*?)(?: - at `(?:key in )?\$(?:\[\.\.\.\])?\.?(?P<path>.*)`)?", re.DOTALL
)
_KINDS = ("int", "float", "str", "bool", "array", "object")


def explain_shape(error: msgspec.ValidationError) -> str:
    """Return why a document does not have the expected structure, in words of every language."""
    parts = _AT.fullmatch(str(error))
    assert parts is not None
    place = TranslatableText("shape_place", path=parts["path"]) if parts["path"] else ""
    if match := _MISSING.fullmatch(parts["told"]):
        return TranslatableText("shape_missing", name=match["name"], place=place)
    if match := _KIND.fullmatch(parts["told"]):
        expected_kinds, actual_kinds = (
            [
                TranslatableText(f"shape_{kind}")
                for kind in match[key].split(" | ")
                if kind in _KINDS
            ]
            for key in ("wanted", "given")
        )
        if expected_kinds:
            actual_kinds = actual_kinds or [TranslatableText("shape_null")]
            return TranslatableText(
                "shape_kind", wanted=expected_kinds, given=actual_kinds, place=place
            )
    if match := _VALUE.fullmatch(parts["told"]):
        return TranslatableText("shape_value", value=match["value"], place=place)
    return str(error)


def parse_json(raw: bytes, decoder: json.JSONDecoder = DOCUMENT) -> Any:
    """Parse a JSON document in UTF-8. Raise DataError with one line if it is not valid.

    A key that appears twice in one object is an error, since one of its values would be lost.
    """
    if has_many_values(raw, bounds.MOST_VALUES):
        raise DataError("json_many_values", most=bounds.MOST_VALUES)
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
        # "Unterminated string starting at", which includes the place
        problem = (error.msg[:1].lower() + error.msg[1:]).removesuffix(" at")
        raise DataError("json_invalid", problem=problem, position=error.pos + 1) from None
    except RecursionError:
        raise DataError("json_too_deep") from None
    return document


def iter_json_rows(
    stream: io.BufferedIOBase | BinaryIO, where: str, decoder: json.JSONDecoder = TABLE
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the numbered objects of JSON Lines. Empty lines are skipped."""
    for number, line in enumerate(read_lines(stream, where), 1):
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
    """Yield the numbered objects of a JSON Lines file, gzipped or not; see `json_rows`."""
    try:
        with open_file(path) as file:
            stream = unpack_gzip(file, str(path)) if path.suffix == ".gz" else file
            yield from iter_json_rows(stream, str(path))
    except OSError as error:
        raise DataError("file_unreadable", where=path, problem=error.strerror) from None


LONGEST_NAME: Final = 120
"""Bytes of a file name made from data. Systems allow 255, and `_part_of` adds to it."""
# `q1`, `bix-1-q1`, `初中语文 (上)`: not `.hidden`, `a/b`, `C:`, `what?`, `con`, a blank at the end
_PLAIN_NAME = re.compile(
    r"(?!(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|\Z))(?![.\s~-])[^\x00-\x1f\x7f-\x9f/\\:*?\"<>|]+(?<![.\s])",
    re.IGNORECASE,
)
# `what~5d41402abc4b2a76`: the form of a name that was cleaned
_CLEANED_NAME = re.compile(r".*~[0-9a-f]{16}")
# a character that cleaning replaces: the slash and the dots of `../x`
_ODD_IN_NAME = re.compile(r"[^\w-]+")


def make_file_name(text: str) -> str:
    """Return a file or folder name for a text from data, such as an id.

    An ordinary text stays unchanged. Any other one, such as ``../x``, ``/etc``, a reserved name or
    a long one, is cleaned and gets a digest, so that two texts never share a name.
    """
    try:
        size = len(text.encode())
    except UnicodeEncodeError:  # half a character
        size = LONGEST_NAME + 1
    if size <= LONGEST_NAME and _PLAIN_NAME.fullmatch(text) and not _CLEANED_NAME.fullmatch(text):
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{_ODD_IN_NAME.sub('_', text[:40]).strip('_-')[:20] or 'x'}~{digest}"


def natural_key(text: str) -> tuple[tuple[int, int, str], ...]:
    """Return a sort key that puts ``q2`` before ``q10``."""
    parts = _DIGITS.split(text)
    numbers = [(part, parse_whole_number(part)) for part in parts if part]
    return tuple((0, 0, part) if number is None else (1, number, "") for part, number in numbers)


class MappedSequence(Sequence[Stored], Generic[Stored]):
    """A sequence of the results of a function on the items of another. Each is computed on
    access."""

    def __init__(self, items: Sequence[Any], make: Callable[[Any], Stored]) -> None:
        self._items = items
        self._make = make

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, index: int) -> Stored: ...
    @overload
    def __getitem__(self, index: slice) -> list[Stored]: ...
    def __getitem__(self, index: int | slice) -> Stored | list[Stored]:
        if isinstance(index, slice):
            return [self._make(item) for item in self._items[index]]
        return self._make(self._items[index])


class SpooledSequence(Sequence[Stored], Generic[Stored]):
    """A sequence of objects of one type in a temporary file. Each takes eight bytes of memory.

    The file is mapped, so the system keeps the used parts in memory and may drop the rest. It has
    no name, so no file is left behind when the process ends for any reason.
    """

    def __init__(self, kind: Any) -> None:
        self._buffer = bytearray()
        """Encoded objects that are not in the file yet."""
        self._file: IO[bytes] | None = None
        self._content: bytes | mmap.mmap | None = None
        self._ends = array("Q", [0])
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(kind).decode

    def append(self, value: Stored) -> None:
        """Add one object at the end."""
        self._append_bytes(self._encode(value))

    def extend(self, spool: SpooledSequence[Stored]) -> None:
        """Add all objects of another spool of the same type."""
        for index in range(len(spool)):
            self._append_bytes(spool._stored_bytes(index))

    def __len__(self) -> int:
        return len(self._ends) - 1

    @overload
    def __getitem__(self, index: int) -> Stored: ...
    @overload
    def __getitem__(self, index: slice) -> list[Stored]: ...
    def __getitem__(self, index: int | slice) -> Stored | list[Stored]:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(index)
        value: Stored = self._decode(self._stored_bytes(index))
        return value

    def _append_bytes(self, encoded: bytes) -> None:
        self._buffer += encoded
        self._ends.append(self._ends[-1] + len(encoded))
        self._content = None
        if len(self._buffer) > IN_MEMORY:
            self._write()

    def _stored_bytes(self, index: int) -> bytes:
        if self._content is None:
            if self._file is None:
                self._content = bytes(self._buffer)
            else:
                self._write().flush()
                self._content = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        return self._content[self._ends[index] : self._ends[index + 1]]

    def _write(self) -> IO[bytes]:
        if self._file is None:
            from tempfile import TemporaryFile  # few commands store anything

            self._file = TemporaryFile()  # noqa: SIM115 (it lives as long as what is stored)
            weakref.finalize(self, self._file.close)
        self._file.write(self._buffer)
        self._buffer.clear()
        return self._file
