"""The English catalogue."""

from __future__ import annotations

TEXTS: dict[str, str] = {
    "missing_extra": "{what} needs an optional part: pip install 'keju[{extra}]'",
}
