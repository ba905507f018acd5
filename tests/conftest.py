"""Fixtures that every test may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of complete real data sets; tests that need it skip where it is missing."""
    named = os.environ.get("KEJU_DATA_DIR")
    folder = Path(named) if named else REPOSITORY.parent / "shared" / "data"
    if not (folder / "bbh").is_dir():
        pytest.skip(f"no real data at {folder}: set KEJU_DATA_DIR to run this test")
    return folder
