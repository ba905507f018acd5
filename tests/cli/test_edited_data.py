"""Data whose questions or gold answers somebody has edited says so on every result."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Keju


def run(keju: Keju, exam: str, subset: str, **args: Any) -> dict[str, Any]:
    """A scripted run of one subset of the data in ``data``; its results."""
    settings = json.dumps({exam: {"subset_list": [subset], "few_shot_num": 0, **args}})
    ran = keju(
        *("eval", "-m", "scripted", "--datasets", exam, "--limit", "3", "--data-dir", "data"),
        *("--dataset-args", settings, "--run-id", f"r{len(list(Path().glob('runs/*')))}"),
        *("--json", "-q", "--no-report"),
    )
    assert ran.code == 0, ran.err
    document: dict[str, Any] = ran.json
    return document


def codes(results: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {notice["code"]: notice["values"] for notice in results["benchmarks"][0]["notices"]}


@pytest.fixture
def data(data_dir: Path, tmp_path: Path) -> Path:
    return tmp_path / "data"


def test_edited_answers_of_bbh(keju: Keju, data_dir: Path, data: Path) -> None:
    """As ``sed -i 's/"(B)"/"(A)"/g'`` edits them."""
    shutil.copytree(data_dir / "bbh", data / "bbh")
    file = data / "bbh" / "bbh" / "snarks.json"
    assert "data_edited" not in codes(run(keju, "bbh", "snarks"))
    file.write_text(file.read_text().replace('"(B)"', '"(A)"'))
    results = run(keju, "bbh", "snarks")
    assert codes(results)["data_edited"] == {"files": "bbh/snarks.json"}
    assert "not the published files" in results["benchmarks"][0]["warnings"][-1]
    folder = Path("runs", results["run"])
    manifest = json.loads((folder / "manifest.json").read_text())
    assert "bbh/snarks.json is not the published file" in manifest["benchmarks"][0]["data"]["notes"]
    scored = keju("score", str(folder), "--json").json
    assert "data_edited" in codes(scored)
    rows = [json.dumps({"subset": "snarks", "index": i, "output": "(A)"}) for i in range(178)]
    Path("p.jsonl").write_text("\n".join(rows))
    flags = ("--datasets", "bbh", "--predictions", "p.jsonl", "--data-dir", "data", "--json")
    subset = ("--dataset-args", '{"bbh": {"subset_list": ["snarks"]}}')
    assert "data_edited" in codes(keju("score", *flags, *subset).json)


def test_edited_answers_of_ceval_in_a_folder_and_in_an_archive(
    keju: Keju, data_dir: Path, data: Path
) -> None:
    for split in ("dev", "val"):
        shutil.copytree(data_dir / "ceval" / split, data / "ceval" / split)
    with zipfile.ZipFile("honest.zip", "w") as archive:
        for path in sorted((data / "ceval").rglob("*_*.csv")):
            archive.write(path, path.relative_to(data / "ceval"))
    assert "data_edited" not in codes(run(keju, "ceval", "law"))
    file = data / "ceval" / "val" / "law_val.csv"
    file.write_text(re.sub(r",[AB](?=\r?\n|$)", ",C", file.read_text(encoding="utf-8")), "utf-8")
    assert codes(run(keju, "ceval", "law"))["data_edited"] == {"files": "val/law_val.csv"}
    with zipfile.ZipFile("edited.zip", "w") as archive:
        for path in sorted((data / "ceval").rglob("*_*.csv")):
            archive.write(path, path.relative_to(data / "ceval"))
    for name, is_edited in (("honest", False), ("edited", True)):
        shutil.rmtree(data / "ceval")
        (data / "ceval").mkdir()
        shutil.copy(f"{name}.zip", data / "ceval" / "ceval-exam.zip")
        assert ("data_edited" in codes(run(keju, "ceval", "law"))) is is_edited


def test_edited_answers_of_mmlu_pro_in_whatever_format(
    keju: Keju, data_dir: Path, data: Path
) -> None:
    (data / "mmlu_pro").mkdir(parents=True)
    shutil.copy(data_dir / "mmlu_pro" / "validation.jsonl", data / "mmlu_pro")
    lines = gzip.decompress((data_dir / "mmlu_pro" / "test.jsonl.gz").read_bytes()).splitlines()
    rows = [json.loads(line) for line in lines]
    (data / "mmlu_pro" / "test.json").write_text(json.dumps(rows))
    assert "golds_edited" not in codes(run(keju, "mmlu_pro", "history"))
    edited = next(row for row in rows if row["category"] == "history")
    edited["answer"], edited["answer_index"] = ("A", 0) if edited["answer"] != "A" else ("B", 1)
    (data / "mmlu_pro" / "test.json").write_text(json.dumps(rows))
    assert codes(run(keju, "mmlu_pro", "history"))["golds_edited"] == {"subsets": "history"}
