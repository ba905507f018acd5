"""The titles of exams, as people write them."""

from __future__ import annotations

from keju.benchmarks import registry
from keju.errors import KejuError


def title_of(name: str, arm: str = "") -> str:
    """Return the title of an exam; the name of an exam that is not here stays."""
    try:
        title = registry.get(name).title or name
    except (KejuError, OSError):
        title = name
    return f"{title} · {arm}" if arm else title
