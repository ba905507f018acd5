"""The Chinese catalogue."""

from __future__ import annotations

TEXTS: dict[str, str] = {
    "missing_extra": "{what}需要可选组件：pip install 'keju[{extra}]'",
}
