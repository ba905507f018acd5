"""A model that says again what a stored run has in its journal."""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from keju.errors import DataError
from keju.models.base import Model
from keju.types import Fault, Record, Reply, Request

RECORDS = "records.jsonl"
MANIFEST = "manifest.json"


class _ReplyHead(msgspec.Struct):
    error: msgspec.Raw | None = None


class _Head(msgspec.Struct):
    """What the index needs of a record; the rest of the line is skipped."""

    hash: str
    reply: _ReplyHead


class ReplayModel(Model):
    """Answers by request hash; of several records the last one without an error counts.

    Its name is the recorded model's, since the name is part of a request's hash. Only the
    positions of the records are kept in memory.
    """

    def __init__(self, path: Path | str) -> None:
        path = Path(path)
        self.path = path / RECORDS if path.is_dir() else path
        self.name = recorded_model(self.path.parent) or f"replay:{self.path.parent.name}"
        self._positions: dict[str, int] = {}
        self._file: BinaryIO | None = None
        self._decoder = msgspec.json.Decoder(Record)

    async def start(self) -> None:
        """Index the journal; DataError if there is none or it is broken."""
        if self._file is not None:
            return
        try:
            with self.path.open("rb") as file:
                self._positions = _index(file, self.path)
            self._file = self.path.open("rb")
        except OSError as error:
            raise DataError(f"cannot replay {self.path}: {error.strerror}") from None

    async def ask(self, request: Request, *, timeout: float) -> Reply:
        """The recorded reply, or a fault if the request was never answered."""
        if self._file is None:
            await self.start()
        assert self._file is not None
        position = self._positions.get(request.hash)
        if position is None:
            message = f"the stored run {self.path.parent.name} holds no reply to this request"
            return Reply(error=Fault("not_found", message))
        self._file.seek(position)
        return self._decoder.decode(self._file.readline()).reply

    async def close(self) -> None:
        """Close the journal."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def facts(self) -> dict[str, Any]:
        """Where the replies come from."""
        return {"name": self.name, "replayed_from": self.path.parent.name}


def _index(file: BinaryIO, path: Path) -> dict[str, int]:
    """Request hash to the position of its record; a torn or broken line counts as not there."""
    decode = msgspec.json.Decoder(_Head).decode
    positions: dict[str, int] = {}
    position = readable = 0
    for line in file:
        start, position = position, position + len(line)
        try:
            head = decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        readable += 1
        if head.reply.error is None:
            positions[head.hash] = start
    if position and not readable:
        raise DataError(f"cannot replay {path}: it holds no records of a run")
    return positions


def recorded_model(folder: Path) -> str | None:
    """The model's name by a run's manifest, or None where it is not told."""
    try:
        manifest = msgspec.json.decode((folder / MANIFEST).read_bytes())
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    for place in (manifest, manifest.get("config")) if isinstance(manifest, dict) else ():
        model = place.get("model") if isinstance(place, dict) else None
        name = model.get("name") if isinstance(model, dict) else model
        if isinstance(name, str) and name:
            return name
    return None
