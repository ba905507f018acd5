"""Files, once: written whole or not at all, JSON, JSON Lines, and the order of names."""

from __future__ import annotations

import gzip
import os
import re
import secrets
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from keju.errors import DataError

_DIGITS = re.compile(r"(\d+)")


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file that takes the place of `path` once everything is written.

    A reader of `path` sees the old content or the new, never a part, and nothing stays behind
    where the block fails. The part's name is new each time, so that two writers never share one.
    DataError says in one line why the file cannot be written.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise DataError(f"cannot write {path}: it is a folder; name a file")
        with part.open("xb") as stream:
            yield stream
        part.replace(path)
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        try:
            part.unlink(missing_ok=True)
        except OSError:
            pass  # the folder itself cannot be used, which the first error said


def write_json(path: Path, document: Any) -> None:
    """Write a whole JSON file or none, indented for people."""
    data = msgspec.json.format(msgspec.json.encode(document), indent=1)
    with whole_file(path) as stream:
        stream.write(data + b"\n")


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON file that holds one object."""
    try:
        document = msgspec.json.decode(path.read_bytes())
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    except msgspec.DecodeError as error:
        raise DataError(f"{path} is not valid JSON: {error}") from None
    if not isinstance(document, dict):
        raise DataError(f"{path} holds no JSON object")
    return document


def read_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The numbered objects of a JSON Lines file, gzipped or not; empty lines are passed over."""
    decoder = msgspec.json.Decoder(dict[str, Any])
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield number, decoder.decode(line)
    except msgspec.DecodeError as error:
        raise DataError(f"{path}, line {number}: {error}") from None
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"cannot read {path}: {reason}") from None


def natural_key(text: str) -> tuple[tuple[int, int, str], ...]:
    """Sort key that puts ``q2`` before ``q10``."""
    parts = _DIGITS.split(text)
    return tuple((1, int(p), "") if p.isdecimal() else (0, 0, p) for p in parts if p)
