"""Files that are either whole or not there."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from keju.errors import UsageError

_MODE = 0o666


@contextmanager
def atomic_text(path: Path) -> Iterator[TextIO]:
    """Open a UTF-8 file that takes the place of `path` only when everything was written.

    A reader of `path` sees the old content or the new, never a part. UsageError says in one line
    why the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise UsageError(f"cannot write {path}: it is a folder; name a file")
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n", errors="replace") as file:
            yield file
        temporary.chmod(_MODE & ~_umask())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from None
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _umask() -> int:
    """The process's file mode mask; reading it means setting it twice."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
