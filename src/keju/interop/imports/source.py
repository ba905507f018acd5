"""The files of a log, read only; each one that is read leaves its hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from keju.errors import DataError, UsageError

PREDICTIONS = "predictions"
"""The folder of a run in which EvalScope and OpenCompass keep replies."""
MOST_FILES = 20_000
"""A folder with more files is no log of one run."""


class Source:
    """A file, or a folder with everything below it.

    Names are relative to `root`. Where a single file was given, `names` holds it alone, and its
    companions can still be read by name.
    """

    def __init__(self, path: Path) -> None:
        if not path.exists():
            raise UsageError(f"there is no file or folder {path} to import")
        self.path = path
        self.single = path.is_file()
        self.root = _run_folder(path)
        self.hashes: dict[str, str] = {}
        """Relative path to SHA-256 of each file read so far."""
        below = [path] if self.single else _listing(path)
        self.names = [file.relative_to(self.root).as_posix() for file in below]

    def named(self, pattern: str) -> list[str]:
        """The names that match `pattern`, which is compared from their end."""
        return [name for name in self.names if PurePosixPath(name).match(pattern)]

    def has(self, name: str) -> bool:
        """Whether there is a file `name`, given or beside the one given."""
        return (self.root / name).is_file()

    def siblings(self, name: str, pattern: str) -> list[str]:
        """The names of files beside `name` that match `pattern`."""
        folder = (self.root / name).parent
        found = sorted(path for path in folder.glob(pattern) if path.is_file())
        return [str(PurePosixPath(name).parent / path.name) for path in found]

    def content(self, name: str) -> bytes:
        """The content of one file."""
        try:
            raw = (self.root / name).read_bytes()
        except OSError as error:
            raise DataError(f"cannot read {self.root / name}: {error.strerror}") from None
        self.hashes[name] = hashlib.sha256(raw).hexdigest()
        return raw

    def refuse_several(self, models: set[str]) -> None:
        """A run is of one model: UsageError, and how to choose, where the log has more."""
        if len(models) > 1:
            raise UsageError(
                f"{self.path} holds several models: {', '.join(sorted(models))}; give the folder "
                "or the file of one"
            )

    def json(self, name: str) -> Any:
        """One JSON document."""
        try:
            return _decode(self.content(name))
        except (ValueError, RecursionError) as error:
            raise DataError(f"{self.root / name} is not valid JSON: {error}") from None

    def mapping(self, name: str) -> dict[str, Any]:
        """One JSON object."""
        document = self.json(name)
        if not isinstance(document, dict):
            raise DataError(f"{self.root / name} holds no JSON object")
        return document

    def yaml(self, name: str) -> dict[str, Any]:
        """One YAML mapping; empty if it is none."""
        import yaml

        try:
            document = yaml.safe_load(self.content(name))
        except (yaml.YAMLError, UnicodeDecodeError):
            return {}
        return document if isinstance(document, dict) else {}

    def jsonl(self, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """The objects of a JSON Lines file, each with its place."""
        for number, line in enumerate(self.content(name).splitlines(), 1):
            if not line.strip():
                continue
            where = f"{name}, line {number}"
            try:
                row = _decode(line)
            except (ValueError, RecursionError) as error:
                raise DataError(f"{self.root / where}: {error}") from None
            if not isinstance(row, dict):
                raise DataError(f"{self.root / where}: no JSON object")
            yield where, row

    def start(self, name: str, size: int) -> bytes:
        """How a file begins; nothing if it cannot be read."""
        try:
            with (self.root / name).open("rb") as file:
                return file.read(size)
        except OSError:
            return b""

    def first(self, name: str) -> dict[str, Any]:
        """The first object of a JSON Lines file; empty if it does not begin with one."""
        try:
            with (self.root / name).open("rb") as lines:
                row = _decode(next(lines, b"null"))
        except (OSError, ValueError, RecursionError):
            return {}
        return row if isinstance(row, dict) else {}


def _decode(text: bytes) -> Any:
    """A JSON document; also one with the ``NaN`` and ``Infinity`` that Python writes."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        with suppress(ValueError):
            return json.loads(text)
        raise error from None


def _run_folder(path: Path) -> Path:
    """The folder above ``predictions`` where `path` lies in one; else the folder given."""
    for folder in (path, *path.parents):
        if folder.name == PREDICTIONS and folder.is_dir():
            return folder.parent
    return path.parent if path.is_file() else path


def _listing(folder: Path) -> list[Path]:
    found: list[Path] = []
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            found.append(path)
        if len(found) > MOST_FILES:
            raise UsageError(f"{folder} holds more than {MOST_FILES} files: give one run's folder")
    return found
