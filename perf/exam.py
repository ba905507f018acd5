"""The exam that the benchmarks run: BBH where its data is at hand, else generated questions."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

from perf.measure import ROOT

DEMO_SIZE = 1_085
"""Questions of each of the six kinds of the demo exam: about as many as BBH has."""


class Chosen(NamedTuple):
    """The settings of an exam, and what to call it."""

    settings: dict[str, Any]
    title: str


def data_dir() -> Path | None:
    """The folder of real data: KEJU_DATA_DIR, else ../shared/data."""
    variable = os.environ.get("KEJU_DATA_DIR")
    folder = Path(variable) if variable else ROOT.parent / "shared" / "data"
    return folder if folder.is_dir() else None


def bbh() -> Chosen:
    """All of BBH, 3-shot; the generated demo exam stands in where there is no data."""
    folder = data_dir()
    if folder is not None and (folder / "bbh").is_dir():
        return Chosen({"datasets": ["bbh"], "data_dir": str(folder)}, "BBH 3-shot")
    settings = {"datasets": ["demo"], "dataset_args": {"demo": {"size": DEMO_SIZE}}}
    return Chosen(settings, "demo exam (no BBH data)")


def demo(samples: int) -> dict[str, Any]:
    """The settings of a demo exam of about so many questions, answered by the scripted model."""
    size = -(-samples // 6)
    return {"model": "scripted", "datasets": ["demo"], "dataset_args": {"demo": {"size": size}}}
