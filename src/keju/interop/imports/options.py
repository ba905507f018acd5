"""The options of an import, and its result."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keju.results.schema import Results

COMPARISON = "import.json"
"""The file in a run's folder with the tool's verdicts next to Keju's."""


@dataclass(frozen=True, kw_only=True)
class ImportOptions:
    """The user's options."""

    tool: str | None = None
    dataset: str | None = None
    data_dir: str | None = None
    work_dir: str = "runs"
    run_id: str | None = None
    protocol: str | None = None
    readers: list[str] | None = None


@dataclass(frozen=True)
class ImportResult:
    """The result of an import."""

    folder: Path
    document: dict[str, Any]
    """The comparison, as in ``import.json`` and ``--json``."""
    results: Results
