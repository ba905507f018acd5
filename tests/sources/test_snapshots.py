"""The same questions come out of an official folder, a hub snapshot and an archive."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pytest

from keju.benchmarks.prepare import prepare_exam
from keju.sources.folder import DataFolder
from tests.sources.layouts import BBH_SUBSETS, CEVAL_SUBJECTS, LAYOUTS

pytestmark = pytest.mark.slow

SNAPSHOTS = {
    "bbh": [(subset, f"{subset}/test-00000-of-00001.parquet") for subset in BBH_SUBSETS],
    "ceval": [
        (f"{split}/{subject}", f"{subject}/{split}-00000-of-00001.parquet")
        for split in ("dev", "val")
        for subject in CEVAL_SUBJECTS[::4]
    ],
    "mmlu_pro": [("validation", "data/validation-00000-of-00001.parquet")],
}
"""Logical table and file, as the hubs lay them out."""

KINDS = {str: "VARCHAR", int: "BIGINT", bool: "BOOLEAN", list: "VARCHAR[]"}


def write_parquet(path: Path, rows: list[dict[str, Any]], scratch: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    columns = {name: KINDS[type(value)] for name, value in rows[0].items()}
    with duckdb.connect(":memory:") as database:
        table = f"read_json('{scratch}', format='newline_delimited', columns={columns})"
        database.execute(f"COPY (SELECT * FROM {table}) TO '{path}' (FORMAT PARQUET)")


@pytest.mark.parametrize("benchmark", ["bbh", "ceval", "mmlu_pro"])
def test_a_hub_snapshot_holds_the_same_rows(benchmark: str, data_dir: Path, tmp_path: Path) -> None:
    official = DataFolder(data_dir / benchmark, LAYOUTS[benchmark])
    tables = {table: list(official.rows(table)) for table, _ in SNAPSHOTS[benchmark]}
    for table, file in SNAPSHOTS[benchmark]:
        write_parquet(tmp_path / "hub" / file, tables[table], tmp_path / "scratch")
    snapshot = DataFolder(tmp_path / "hub", LAYOUTS[benchmark])
    for table, rows in tables.items():
        assert list(snapshot.rows(table)) == rows
    assert set(snapshot.hashes) == {file for _, file in SNAPSHOTS[benchmark]}


def test_the_official_archive_of_ceval_holds_the_same_rows(data_dir: Path, tmp_path: Path) -> None:
    shutil.make_archive(str(tmp_path / "ceval-exam"), "zip", data_dir / "ceval")
    official = DataFolder(data_dir / "ceval", LAYOUTS["ceval"])
    archive = DataFolder(tmp_path, LAYOUTS["ceval"])
    for split in ("dev", "val", "test"):
        for subject in CEVAL_SUBJECTS:
            table = f"{split}/{subject}"
            assert list(archive.rows(table)) == list(official.rows(table))
    assert list(archive.hashes) == ["ceval-exam.zip"]


@pytest.mark.parametrize(
    ("benchmark", "args"),
    [
        ("bbh", {"few_shot_num": 0}),
        ("ceval", {"subset_list": list(CEVAL_SUBJECTS[::4]), "few_shot_num": 5}),
    ],
)
def test_a_hub_snapshot_is_the_same_exam(
    benchmark: str, args: dict[str, Any], data_dir: Path, tmp_path: Path
) -> None:
    folder = DataFolder(data_dir / benchmark, LAYOUTS[benchmark])
    for table, file in SNAPSHOTS[benchmark]:
        rows = list(folder.rows(table))
        if benchmark == "ceval":
            rows = [row | {"id": int(row["id"])} for row in rows]
        write_parquet(tmp_path / "hub" / file, rows, tmp_path / "scratch")
    official, _ = prepare_exam(benchmark, args, data_dir=str(data_dir))
    snapshot, _ = prepare_exam(benchmark, {**args, "local_path": str(tmp_path / "hub")})
    assert list(snapshot.samples) == list(official.samples)
    last = official.samples[-1]
    assert snapshot.render(last).messages == official.render(last).messages
    assert all(name.endswith(".parquet") for name in snapshot.data.files)
