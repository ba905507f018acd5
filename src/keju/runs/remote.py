"""Runs on object storage and other remote places, by addresses of fsspec:
``s3://bucket/runs/tuesday``.

Keju fetches a run into a folder of its cache and reads it there. It fetches only files that have
changed. It never writes to the copy, since the copy is not the run.

    s3://bucket/runs/tuesday  ──>  ~/.cache/keju/runs/2f7a…/tuesday/manifest.json, records.jsonl, …
                                                           /fetched.json: the mark of each file
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from keju.errors import DataError, KejuError, MissingExtra, UsageError
from keju.files import read_json, whole_file, write_json
from keju.runs.journal import RECEIPT, is_fetched
from keju.runs.manifest import MANIFEST
from keju.sources.fetch import cache_root

# `ftp://user:word@host/run`.
_CREDENTIALS = re.compile(r"[a-z0-9+.-]+://[^/]*@")
_DIGITS = 16


class FetchReceipt(msgspec.Struct):
    """The address of a fetched run, and the marks of its files at that time."""

    address: str
    files: dict[str, str] = {}


def fetch_run(address: str) -> Path:
    """Return the folder with an up-to-date copy of the run at an address.

    Raise UsageError if the address has no run, DataError if the store fails.
    """
    if _CREDENTIALS.match(address):
        raise UsageError("remote_credentials")
    with _explain_errors(address):
        try:
            import fsspec
        except ImportError:
            raise MissingExtra("a run elsewhere", "storage") from None
        store, root = fsspec.core.url_to_fs(address)
        root = root.rstrip("/")
        store.invalidate_cache()
        remote_files = {
            str(PurePosixPath(path).relative_to(root)): path for path in sorted(store.find(root))
        }
        if MANIFEST not in remote_files:
            raise UsageError("remote_none", address=address)
        if unsafe := next(
            (name for name in remote_files if ".." in PurePosixPath(name).parts), None
        ):
            raise DataError("remote_unsafe", address=address, name=unsafe)
        digest = sha256(address.encode()).hexdigest()[:_DIGITS]
        folder = cache_root(os.environ) / "runs" / digest / PurePosixPath(root).name
        _update_copy(store, address, remote_files, folder)
    return folder


def _update_copy(store: Any, address: str, remote_files: dict[str, str], folder: Path) -> None:
    """Make a folder a copy of the remote files. The manifest comes last, since it makes the folder
    a run."""
    receipt = FetchReceipt(address)
    if is_fetched(folder):
        try:
            receipt = msgspec.convert(read_json(folder / RECEIPT), FetchReceipt)
        except (DataError, msgspec.ValidationError):
            shutil.rmtree(folder)
    for name in receipt.files.keys() - remote_files.keys():
        (folder / name).unlink(missing_ok=True)
    old_marks, receipt.files = receipt.files, {}
    write_json(folder / RECEIPT, receipt)
    for name in sorted(remote_files, key=lambda name: name == MANIFEST):
        mark = str(store.ukey(remote_files[name]))
        if old_marks.get(name) != mark or not (folder / name).is_file():
            with store.open(remote_files[name], "rb") as source, whole_file(folder / name) as copy:
                shutil.copyfileobj(source, copy)
        receipt.files[name] = mark
    write_json(folder / RECEIPT, receipt)


@contextmanager
def _explain_errors(address: str) -> Iterator[None]:
    """Turn any error of a store or its package into one line. They have no common base class."""
    try:
        yield
    except KejuError:
        raise
    except FileNotFoundError:
        raise UsageError("remote_none", address=address) from None
    except ImportError as error:  # the package for this kind of store
        raise UsageError("remote_package", address=address, problem=_first_line(error)) from None
    except Exception as error:
        raise DataError("remote_failed", address=address, problem=_first_line(error)) from None


def _first_line(error: Exception) -> str:
    """Return the first line of an error's text, or its class."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
