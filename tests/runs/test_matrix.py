"""The folder of a matrix next to its runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from keju.errors import DataError, UsageError
from keju.runs.manifest import MANIFEST
from keju.runs.matrix import (
    MATRIX_FILE,
    StoredMatrix,
    StoredMatrixRun,
    find_matrix,
    open_matrix_folder,
)


def test_a_stored_matrix_is_read_as_it_was_written(tmp_path: Path) -> None:
    runs = [StoredMatrixRun("weekly--small--demo", "small", "demo")]
    stored = StoredMatrix(plan="weekly", created="2026-01-01", seconds=2.5, runs=runs)
    stored.write(tmp_path)
    assert StoredMatrix.read(tmp_path).runs == runs
    document = json.loads((tmp_path / MATRIX_FILE).read_text())
    assert (document["plan"], document["seconds"]) == ("weekly", 2.5)


def test_a_matrix_is_found_by_name_or_path(tmp_path: Path) -> None:
    folder = tmp_path / "weekly"
    folder.mkdir()
    assert find_matrix("weekly", str(tmp_path)) is None
    StoredMatrix(plan="weekly", created="").write(folder)
    assert find_matrix("weekly", str(tmp_path)) == folder
    assert find_matrix(str(folder), "elsewhere") == folder


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / MATRIX_FILE).write_text('{"plan": 3, "created": ""}')
    with pytest.raises(DataError, match=MATRIX_FILE):
        StoredMatrix.read(tmp_path)


def test_one_process_at_a_time_and_never_in_the_folder_of_a_run(tmp_path: Path) -> None:
    folder = tmp_path / "weekly"
    with open_matrix_folder(folder), pytest.raises(UsageError) as used, open_matrix_folder(folder):
        pass
    assert used.value.code == "plan_in_use"
    with open_matrix_folder(folder):
        (folder / MANIFEST).write_text("{}")
    with pytest.raises(UsageError) as run, open_matrix_folder(folder):
        pass
    assert run.value.code == "plan_is_run"
