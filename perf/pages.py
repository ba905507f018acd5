"""Tables of the documentation that commands write, between their markers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path


def write_between(page: Path, name: str, lines: Sequence[str]) -> None:
    """Put `lines` between ``<!-- NAME: begin -->`` and ``<!-- NAME: end -->`` of a page."""
    text = page.read_text("utf-8")
    pattern = re.compile(rf"(<!-- {name}: begin[^>]*-->\n).*?(<!-- {name}: end -->)", re.DOTALL)
    filled, count = pattern.subn(lambda match: f"{match[1]}\n{body(lines)}\n{match[2]}", text)
    if count != 1:
        raise SystemExit(f"{page} has no markers for '{name}'")
    page.write_text(filled, "utf-8")


def body(lines: Sequence[str]) -> str:
    """The lines as they stand in a page."""
    return "".join(f"{line}\n" for line in lines)
