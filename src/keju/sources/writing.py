"""Writing into Keju's cache: a file appears under its name whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from keju.errors import DataError


@contextmanager
def whole_file(target: Path) -> Iterator[BinaryIO]:
    """Open a file beside `target` that takes its place when the block ends without an error."""
    part = target.with_name(f".part-{os.getpid()}-{secrets.token_hex(4)}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with part.open("xb") as file:
            yield file
        part.replace(target)
    except OSError as error:
        raise DataError(f"cannot write {target}: {error.strerror or error}") from None
    finally:
        _discard(part)


def _discard(part: Path) -> None:
    try:
        part.unlink(missing_ok=True)
    except OSError:
        pass  # the folder itself cannot be used, which has been said
