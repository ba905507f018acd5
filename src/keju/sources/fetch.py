"""Downloads over plain HTTP, and receipts of finished pulls in Keju's cache (one per benchmark and
hub).

A file appears under its name only if its size and hash are right. Proxies come from the
environment, every wait is bounded, and credentials are never sent to another host. The receipt is
written last, so Keju never uses the data of an interrupted pull. Keju also ignores a receipt if one
of its files is missing or has another size.
"""

from __future__ import annotations

import hashlib
import http.client
import io
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec

from keju import bounds
from keju.files import whole_file, write_json
from keju.messages import tolerant, write_line
from keju.sources.folder import HUB_NAMES, DataFolder, HubName, Layout

Say = Callable[[str], None]
"""A function that takes one line about progress."""

TIMEOUT = 30.0
"""Seconds without a byte after which a download fails."""

_CHUNK = 1 << 16
_BROKEN = (OSError, http.client.HTTPException, RuntimeError)
"""Errors of a connection. A tool that blocks the network in a process may raise the last one."""
_SECONDS_BETWEEN_LINES = 5.0


class Unreachable(Exception):
    """The host did not answer, or stopped in the middle of the reply."""


class HostRefused(Exception):
    """The host answered with an error status."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"HTTP {status} {reason}".rstrip())
        self.status = status


class DamagedDownload(Exception):
    """The bytes that arrived are not the announced file."""


def host_of(url: str) -> str:
    """Return the host and port of `url`, without any user name or password."""
    parts = urlsplit(url)
    return parts.netloc.rpartition("@")[2] or url


def get(url: str, secrets: Mapping[str, str]) -> bytes:
    """Return the body of a small document; `secrets` are headers for this host only."""
    max_bytes = bounds.LONGEST_LISTING
    with _open(url, secrets) as response:
        content = bytearray()
        while chunk := _read_chunk(response, url, _CHUNK):
            content += chunk
            if len(content) > max_bytes:
                raise Unreachable(f"{host_of(url)}: more than {max_bytes // bounds.MIB} MiB")
        return bytes(content)


def download(
    url: str,
    target: Path,
    *,
    secrets: Mapping[str, str],
    size: int | None = None,
    sha256: str | None = None,
    say: Say | None = None,
) -> str:
    """Download `url` to `target` and return its SHA-256; check size and hash if they are known."""
    with _open(url, secrets) as response, whole_file(target) as file:
        announced = response.headers.get("Content-Length")
        total = size
        if total is None and announced and announced.isascii() and announced.isdecimal():
            total = int(announced)
        max_bytes = bounds.MOST_UNPACKED if total is None else min(total, bounds.MOST_UNPACKED)
        received, digest, last_line = 0, hashlib.sha256(), time.monotonic()
        while chunk := _read_chunk(response, url, _CHUNK):
            file.write(chunk)
            digest.update(chunk)
            received += len(chunk)
            if received > max_bytes:
                raise DamagedDownload(f"more than {max_bytes} bytes arrive")
            if say and time.monotonic() - last_line > _SECONDS_BETWEEN_LINES:
                last_line = time.monotonic()
                total_note = f" of {total / 1e6:.1f}" if total else ""
                say(f"{target.name}: {received / 1e6:.1f}{total_note} MB")
        if total is not None and received != total:
            raise DamagedDownload(f"{received} of {total} bytes arrived")
        if sha256 is not None and digest.hexdigest() != sha256:
            raise DamagedDownload("its checksum is not the announced one")
    return digest.hexdigest()


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file on disk."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _open(url: str, secrets: Mapping[str, str]) -> http.client.HTTPResponse:
    request = urllib.request.Request(url, headers={"User-Agent": "keju"})
    for name, value in secrets.items():
        request.add_unredirected_header(name, value)
    try:
        response: http.client.HTTPResponse = urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        raise HostRefused(error.code, str(error.reason)) from None
    except urllib.error.URLError as error:
        raise Unreachable(f"{host_of(url)}: {error.reason}") from None
    except _BROKEN as error:
        raise Unreachable(f"{host_of(url)}: {error}") from None
    except ValueError:  # the error's text would show the header's value
        raise Unreachable(f"{host_of(url)}: address or token cannot be sent as given") from None
    response.fp = cast(io.BufferedReader, _BoundedResponse(response.fp))
    return response


class _BoundedResponse:
    """The stream that http.client reads; it refuses endless lines between the data."""

    def __init__(self, stream: io.BufferedReader) -> None:
        self._stream = stream
        self._line_bytes = 0

    def readline(self, size: int = -1) -> bytes:
        """Return the next line: the size of a chunk, or a trailer."""
        line = self._stream.readline(size)
        self._line_bytes += len(line)
        if self._line_bytes > bounds.LONGEST_HEAD:
            raise http.client.HTTPException("trailers without an end")
        return line

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes of data."""
        data = self._stream.read(size)
        self._line_bytes = 0 if len(data) > len(b"\r\n") else self._line_bytes
        return data

    def readinto(self, buffer: memoryview) -> int:
        """Read data into a buffer; return the number of bytes."""
        self._line_bytes = 0
        return self._stream.readinto(buffer)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _read_chunk(response: http.client.HTTPResponse, url: str, size: int) -> bytes:
    try:
        return response.read(size)
    except _BROKEN as error:
        raise Unreachable(f"{host_of(url)}: {error}") from None


def to_stderr(line: str) -> None:
    """Print a line about progress to stderr, which keeps stdout free for results."""
    write_line(tolerant(sys.stderr), line)


_SHOWN_COMMIT = 12


class PulledFile(msgspec.Struct, frozen=True):
    """The size and hash of one pulled file."""

    size: int
    sha256: str


class PullReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """The record of one pull: its source, its files and their folder."""

    benchmark: str
    hub: HubName
    repo: str
    revision: str
    """The revision that was requested."""
    commit: str
    """The hub's commit of that revision, or a digest of the content if the hub names no commit."""
    path: str
    files: dict[str, PulledFile]
    companions: str = ""
    """Folder of official files from another source."""
    notes: tuple[str, ...] = ()

    @property
    def origin(self) -> str:
        """One short line for manifests and tables."""
        return f"{self.hub} {self.repo}@{self.commit[:_SHOWN_COMMIT]}"

    def find_damage(self) -> str:
        """Return the first file that is missing or has another size; empty if there is none."""
        for name, stored in self.files.items():
            file = Path(self.path) / name
            if not file.is_file() or file.stat().st_size != stored.size:
                return str(file)
        return ""

    def folder(self, layout: Layout) -> DataFolder:
        """Return the pulled files as a data folder."""
        revision_note = "" if self.revision == self.commit else f" (asked for as {self.revision})"
        pulled = f"pulled from {self.hub} {self.repo} at {self.commit}{revision_note}"
        return DataFolder(
            Path(self.path),
            layout,
            origin=self.origin,
            notes=(pulled, *self.notes),
            companions=Path(self.companions) if self.companions else None,
            recorded={name: stored.sha256 for name, stored in self.files.items()},
        )


def cache_root(environ: Mapping[str, str]) -> Path:
    """Return Keju's cache: KEJU_CACHE_DIR, else ``keju`` below XDG_CACHE_HOME or ``~/.cache``."""
    if environ.get("KEJU_CACHE_DIR"):
        return Path(environ["KEJU_CACHE_DIR"]).expanduser()
    base = environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "keju"


def load_receipts(
    benchmark: str, hub: HubName | None, environ: Mapping[str, str]
) -> list[PullReceipt]:
    """Return the receipts of `benchmark` from `hub`, or from any hub; skip unreadable ones."""
    stored = []
    for name in HUB_NAMES if hub is None else (hub,):
        try:
            raw = bounds.read_file(_receipt_file(benchmark, name, environ))
            stored.append(msgspec.json.decode(raw, type=PullReceipt))
        except (OSError, msgspec.MsgspecError):
            continue
    return stored


def write_receipt(receipt: PullReceipt, environ: Mapping[str, str]) -> None:
    """Write the receipt of a finished pull atomically."""
    write_json(_receipt_file(receipt.benchmark, receipt.hub, environ), receipt)


def _receipt_file(benchmark: str, hub: HubName, environ: Mapping[str, str]) -> Path:
    return cache_root(environ) / "receipts" / benchmark / f"{hub}.json"
