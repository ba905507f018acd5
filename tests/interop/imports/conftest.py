"""Running the command in an empty folder, on logs that the tools themselves wrote."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Keju, keju

__all__ = ["keju"]

FIXTURES = Path(__file__).parent / "fixtures"
DATA = FIXTURES / "data"

Import = Callable[..., dict[str, Any]]


@pytest.fixture
def log(tmp_path: Path) -> Callable[[str], Path]:
    """A copy of a log that may be changed."""

    def copy(name: str) -> Path:
        source, target = FIXTURES / name, tmp_path / Path(name).name
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copy(source, target)
        return target

    return copy


@pytest.fixture
def imported(keju: Keju) -> Import:
    """Import a log as run ``r`` and return the document."""

    def run(path: Path | str, *flags: str) -> dict[str, Any]:
        place = FIXTURES / path if isinstance(path, str) else path
        run_id_flags = () if "--run-id" in flags else ("--run-id", "r")
        ran = keju("import", str(place), "--data-dir", str(DATA), "--json", *run_id_flags, *flags)
        assert ran.err == ""
        assert ran.code == 0
        document: dict[str, Any] = ran.json
        return document

    return run


def exam_of(document: dict[str, Any], name: str) -> dict[str, Any]:
    """The entry of one benchmark."""
    exam_entry: dict[str, Any] = next(
        exam for exam in document["benchmarks"] if exam["name"] == name
    )
    return exam_entry
