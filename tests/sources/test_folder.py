"""Reading tables from every layout and format a benchmark's folder may have."""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import duckdb
import pytest

from keju.errors import DataError, MissingExtra
from keju.sources.folder import DataFolder, NoFolder, count_missing_parts, stem_of
from tests.sources.layouts import LAYOUTS, open_published

ROWS: list[dict[str, Any]] = [
    {"id": 0, "question": 'Ein "Satz",\r\nzwei Zeilen', "options": ["x", " y"]},
    {"id": 1, "question": "问题\u2028 NaN", "options": []},
]


def write_parquet(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    source = path.with_suffix(".source")
    source.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with duckdb.connect(":memory:") as database:
        database.execute(
            f"COPY (SELECT * FROM read_json('{source}', format='newline_delimited'))"
            f" TO '{path}' (FORMAT PARQUET)"
        )
    source.unlink()


def write(path: Path, content: bytes | str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


JSONL = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("test.jsonl", JSONL),
        ("test.jsonl.gz", gzip.compress(JSONL.encode(), mtime=0)),
        ("data/test.jsonl", JSONL),
        ("test.json", json.dumps(ROWS)),
        ("test.json", json.dumps({"canary": "c", "examples": ROWS})),
        ("test.json.gz", gzip.compress(json.dumps(ROWS).encode(), mtime=0)),
    ],
)
def test_json_in_every_wrapping_gives_the_same_rows(
    tmp_path: Path, name: str, content: bytes | str
) -> None:
    write(tmp_path / name, content)
    folder = DataFolder(tmp_path, LAYOUTS["mmlu_pro"])
    assert list(folder.rows("test")) == ROWS
    assert folder.hashes == {name: hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()}
    assert folder.name_of("test") == str(tmp_path / name)


def test_parquet_parts_of_a_hub_snapshot_are_read_in_order(tmp_path: Path) -> None:
    for part, row in enumerate(ROWS):
        write_parquet(tmp_path / f"data/test-0000{part}-of-00002.parquet", [row])
    folder = DataFolder(tmp_path, LAYOUTS["mmlu_pro"])
    assert list(folder.rows("test")) == ROWS
    assert len(folder.hashes) == 2


def test_a_part_that_is_missing_is_an_error(tmp_path: Path) -> None:
    write_parquet(tmp_path / "data/test-00000-of-00003.parquet", ROWS)
    with pytest.raises(DataError, match="2 of its parts are missing"):
        list(DataFolder(tmp_path, LAYOUTS["mmlu_pro"]).rows("test"))


@pytest.mark.parametrize(
    ("benchmark", "file", "table"),
    [
        ("bbh", "snarks/test-00000-of-00001.parquet", "snarks"),
        ("ceval", "law/val-00000-of-00001.parquet", "val/law"),
        ("mmlu_pro", "data/validation-00000-of-00001.parquet", "validation"),
    ],
)
def test_hub_snapshots_answer_to_logical_names(
    tmp_path: Path, benchmark: str, file: str, table: str
) -> None:
    write_parquet(tmp_path / file, ROWS)
    assert list(DataFolder(tmp_path, LAYOUTS[benchmark]).rows(table)) == ROWS


def test_parquet_without_its_reader_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_parquet(tmp_path / "test.parquet", ROWS)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MissingExtra, match=r"keju\[data\]"):
        list(DataFolder(tmp_path, LAYOUTS["mmlu_pro"]).rows("test"))


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("test.parquet", b"PAR1 not really", "not a whole Parquet file"),
        ("test.jsonl", b'{"a": 1}\n{"a": ', "line 2"),
        ("test.jsonl", b'{"a": 1}\n[1]\n', "line 2"),
        ("test.jsonl.gz", gzip.compress(b"{}", mtime=0)[:-4], "not a whole gzip file"),
        ("test.jsonl.gz", b"plain", "not a whole gzip file"),
        ("test.json", b'{"a": [{}], "b": [{}]}', "no list of rows"),
        ("test.json", b"[1, 2]", "no list of rows"),
        ("test.csv", b"id,question\r\n1,a,b\r\n", "row 1: more values than columns"),
        ("test.csv", b"id,question,A\r\n1\r\n", "row 1: no value for column question, A"),
        ("test.csv", b"id,question\r\n1,\xff\r\n", "not UTF-8"),
    ],
)
def test_broken_files_are_one_line(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    write(tmp_path / name, content)
    with pytest.raises(DataError, match=words) as error:
        list(DataFolder(tmp_path, LAYOUTS["mmlu_pro"]).rows("test"))
    assert "\n" not in str(error.value)
    assert name in str(error.value)


def test_csv_keeps_line_breaks_and_quotes(tmp_path: Path) -> None:
    write(tmp_path / "val/law_val.csv", 'id,question,A\r\n0,"a\r\nb\n""c""",x\r\n')
    folder = DataFolder(tmp_path, LAYOUTS["ceval"])
    assert list(folder.rows("val/law")) == [{"id": "0", "question": 'a\r\nb\n"c"', "A": "x"}]
    assert list(folder.file_rows("val/law_val.csv")) == list(folder.rows("val/law"))


def test_a_table_that_is_missing_says_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no table 'snarks' .*bbh/snarks\.\*, snarks\.\*"):
        list(DataFolder(tmp_path, LAYOUTS["bbh"]).rows("snarks"))


def test_the_better_place_wins_and_the_other_is_noted(tmp_path: Path) -> None:
    write(tmp_path / "test.jsonl", '{"a": 1}\n')
    write(tmp_path / "data/test.json", '[{"a": 2}]')
    folder = DataFolder(tmp_path, LAYOUTS["mmlu_pro"])
    assert list(folder.rows("test")) == [{"a": 1}]
    assert folder.notes == ["test.jsonl was read, data/test.json next to it was not"]
    assert list(folder.hashes) == ["test.jsonl"]


def zipped(path: Path, entries: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)


@pytest.mark.parametrize("top", ["", "ceval-exam/"])
def test_a_zip_is_read_in_place(tmp_path: Path, top: str) -> None:
    entries = {f"{top}val/law_val.csv": b"id,A\n0,x\n", f"{top}dev/law_dev.csv": b"id,A\n1,y\n"}
    zipped(tmp_path / "ceval-exam.zip", entries)
    folder = DataFolder(tmp_path, LAYOUTS["ceval"])
    assert list(folder.rows("val/law")) == [{"id": "0", "A": "x"}]
    assert list(folder.file_rows("dev/law_dev.csv")) == [{"id": "1", "A": "y"}]
    assert folder.exists("dev/law_dev.csv")
    assert not folder.exists("test/law_test.csv")
    archive = tmp_path / "ceval-exam.zip"
    assert folder.hashes == {archive.name: hashlib.sha256(archive.read_bytes()).hexdigest()}
    assert [entry.name for entry in tmp_path.iterdir()] == [archive.name]


def link_entry() -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo("val/law_val.csv")
    entry.external_attr = 0o120777 << 16
    return entry


@pytest.mark.parametrize(
    "name", ["../law_val.csv", "/etc/law_val.csv", "val/../../x.csv", "C:/x.csv", "..\\x.csv"]
)
def test_a_zip_that_leaves_its_folder_is_refused(tmp_path: Path, name: str) -> None:
    zipped(tmp_path / "ceval.zip", {"val/law_val.csv": b"id,A\n0,x\n", name: b"evil"})
    with pytest.raises(DataError, match="leaves the folder"):
        list(DataFolder(tmp_path, LAYOUTS["ceval"]).rows("val/law"))


def test_a_zip_with_a_link_or_a_cut_end_is_refused(tmp_path: Path) -> None:
    archive = tmp_path / "ceval.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr(link_entry(), "/etc/passwd")
    with pytest.raises(DataError, match="leaves the folder"):
        list(DataFolder(tmp_path, LAYOUTS["ceval"]).rows("val/law"))
    zipped(archive, {"val/law_val.csv": b"id,A\n0,x\n"})
    archive.write_bytes(archive.read_bytes()[:-10])
    with pytest.raises(DataError, match="not a whole zip file"):
        list(DataFolder(tmp_path, LAYOUTS["ceval"]).rows("val/law"))


def test_a_folder_that_is_not_there_needs_no_files_but_gives_none() -> None:
    folder = NoFolder("demo")
    assert folder.origin == "built in"
    assert not folder.exists("README.md")
    with pytest.raises(DataError, match=r"demo needs rows\.json"):
        folder.json("rows.json")


@pytest.mark.parametrize("benchmark", list(LAYOUTS))
def test_the_real_data_is_complete(data_dir: Path, benchmark: str) -> None:
    layout = LAYOUTS[benchmark]
    folder = open_published(data_dir, benchmark)
    counts = {table: sum(1 for _ in folder.rows(table)) for table in layout.tables}
    assert counts == layout.rows
    assert folder.notes == []


def test_the_published_totals() -> None:
    assert sum(LAYOUTS["bbh"].rows.values()) == 6511
    splits = {"dev": 260, "val": 1346, "test": 12342}
    for split, total in splits.items():
        counts = LAYOUTS["ceval"].rows.items()
        assert sum(n for table, n in counts if table.startswith(f"{split}/")) == total
    assert all(set(layout.tables) == set(layout.rows) for layout in LAYOUTS.values())


def test_only_the_benchmarks_own_files_are_wanted() -> None:
    assert LAYOUTS["bixbench"].wants("BixBench.jsonl")
    assert not LAYOUTS["bixbench"].wants("CapsuleFolder-1.zip")
    assert LAYOUTS["ceval"].wants("law/dev-00000-of-00001.parquet")
    assert LAYOUTS["ceval"].wants("ceval-exam.zip")
    assert not LAYOUTS["ceval"].wants("ceval-exam.py")
    assert not LAYOUTS["bbh"].wants("../snarks.json")


def test_names_of_parts() -> None:
    assert stem_of("data/test-00000-of-00001.parquet") == "data/test"
    assert stem_of("BixBench_v1.5.jsonl") == "BixBench_v1.5"
    assert stem_of("README.md") is None
    assert count_missing_parts(["v1.5/test-00001-of-00002.parquet"]) == 1
    assert count_missing_parts(["test.jsonl"]) == 0


@pytest.mark.parametrize("name", ["test.jsonl", "data/test-00000-of-00001.parquet"])
def test_a_git_lfs_pointer_is_told_from_the_file(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    with pytest.raises(DataError, match=rf"{name} is a Git LFS pointer, not the file itself"):
        list(DataFolder(tmp_path, LAYOUTS["mmlu_pro"]).rows("test"))


def test_a_git_lfs_pointer_may_stand_for_an_archive(tmp_path: Path) -> None:
    (tmp_path / "ceval-exam.zip").write_text("version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(DataError, match=r"ceval-exam.zip is a Git LFS pointer"):
        DataFolder(tmp_path, LAYOUTS["ceval"]).has("val/law")
