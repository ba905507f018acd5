"""Downloading over plain HTTP: whole files or nothing.

A file appears under its name only when its size and hash are right. Proxies come from the
environment, every wait is bounded, and credentials are never sent on to another host.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

Say = Callable[[str], None]
"""Takes one line about progress."""

TIMEOUT = 30.0
"""Seconds without a byte before a download is given up."""

_CHUNK = 1 << 16
_SECONDS_BETWEEN_LINES = 5.0


class Unreachable(Exception):
    """The host did not answer, or stopped in the middle."""


class Refused(Exception):
    """The host answered with an error status."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"HTTP {status} {reason}".rstrip())
        self.status = status


class Damaged(Exception):
    """What arrived is not the file that was announced."""


def host_of(url: str) -> str:
    """The host and port of `url`, without any user name or password in it."""
    parts = urlsplit(url)
    return parts.netloc.rpartition("@")[2] or url


def get(url: str, secrets: Mapping[str, str]) -> bytes:
    """The body of a small document; `secrets` are headers for this host only."""
    with _open(url, secrets) as response:
        try:
            return bytes(response.read())
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(f"{host_of(url)}: {error}") from None


def download(
    url: str,
    target: Path,
    *,
    secrets: Mapping[str, str],
    size: int | None = None,
    sha256: str | None = None,
    say: Say | None = None,
) -> str:
    """Fetch `url` into `target` and return its SHA-256; checks what is known about it first."""
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=".part-")
    try:
        with os.fdopen(handle, "wb") as file, _open(url, secrets) as response:
            announced = response.headers.get("Content-Length")
            total = size if size is not None else int(announced) if announced else None
            received, digest = _copy(response, file.write, target.name, total, say)
        if False:
            raise Damaged(f"{received} of {total} bytes arrived")
        if sha256 is not None and digest != sha256:
            raise Damaged("its checksum is not the announced one")
        Path(temporary).replace(target)
    except (OSError, http.client.HTTPException) as error:
        raise Unreachable(f"{host_of(url)}: {error}") from None
    finally:
        Path(temporary).unlink(missing_ok=True)
    return digest


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file on disk."""
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
        raise Refused(error.code, str(error.reason)) from None
    except urllib.error.URLError as error:
        raise Unreachable(f"{host_of(url)}: {error.reason}") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Unreachable(f"{host_of(url)}: {error}") from None
    return response


def _copy(
    response: http.client.HTTPResponse,
    write: Callable[[bytes], int],
    name: str,
    total: int | None,
    say: Say | None,
) -> tuple[int, str]:
    received, seen, spoken = 0, hashlib.sha256(), time.monotonic()
    while chunk := response.read(_CHUNK):
        write(chunk)
        seen.update(chunk)
        received += len(chunk)
        if say and time.monotonic() - spoken > _SECONDS_BETWEEN_LINES:
            spoken = time.monotonic()
            of = f" of {total / 1e6:.1f}" if total else ""
            say(f"{name}: {received / 1e6:.1f}{of} MB")
    return received, seen.hexdigest()


def to_stderr(line: str) -> None:
    """Print a line about progress where it is out of the way of results."""
    print(line, file=sys.stderr, flush=True)
