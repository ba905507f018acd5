"""Files that never end, or that need far more memory than bytes; names made of data."""

from __future__ import annotations

import csv
import io
import lzma
import os
import tarfile
import threading
import tracemalloc
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keju import bounds
from keju.benchmarks.bixbench.capsules import CapsuleFolder
from keju.errors import DataError
from keju.files import LONGEST_NAME, make_file_name
from keju.sources.files import csv_rows, table_rows
from keju.sources.tar import tar_names
from keju.types import Sample

MIB = 1 << 20


@contextmanager
def at_most(size: int) -> Iterator[None]:
    """Check that the block takes no more than `size` bytes of memory at any time."""
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < size


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "LONGEST_LINE", MIB)
    monkeypatch.setattr(bounds, "ALWAYS_UNPACKED", MIB)
    monkeypatch.setattr(bounds, "MOST_BLANK_LINES", 1000)
    monkeypatch.setattr(bounds, "MOST_COLUMNS", 1000)


TABLES = {
    "carriage returns": b"a,b\n" + b"\r" * (MIB - 1),
    "empty lines": b"a,b\n" + b"\n" * MIB,
    "commas": b"a,b\n" + b"," * (MIB - 1),
    "columns": b"," * (MIB - 1) + b"\n1",
    "one row without an end": b"a,b\n" + b'"x\n",' * 300_000,
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_that_is_none_is_refused_in_little_memory(name: str) -> None:
    with at_most(12 * MIB), pytest.raises(DataError, match=r"q\.csv"):
        list(csv_rows(TABLES[name], "q.csv"))


def test_ordinary_tables_are_read_as_before() -> None:
    text = 'a,b\r\n"1\r\n2",x\r\n\r\n\r\n3,"y,z"\r\n'
    read = list(csv_rows(text.encode(), "q.csv"))
    assert read == list(csv.DictReader(io.StringIO(text, newline="")))


def test_a_parquet_file_whose_values_stand_for_many_rows_is_refused(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    file = tmp_path / "q.parquet"
    wide = "SELECT repeat('x', 20000) AS question, i AS id FROM range(4000) t(i)"
    duckdb.sql(f"COPY ({wide}) TO '{file}' (FORMAT parquet)")
    assert file.stat().st_size < MIB // 4
    small = tmp_path / "small.parquet"
    duckdb.sql(f"COPY (SELECT 'x' AS question, [1, 2] AS id) TO '{small}' (FORMAT parquet)")
    with small.open("rb") as stream:  # what is imported for the first file is not counted
        rows = list(table_rows(stream, "q.parquet", "q.parquet"))
    assert rows == [{"question": "x", "id": [1, 2]}]
    with at_most(8 * MIB), file.open("rb") as stream, pytest.raises(DataError, match="250 times"):
        list(table_rows(stream, "q.parquet", "q.parquet"))


def test_a_tar_file_that_unpacks_without_an_end_is_refused(tmp_path: Path) -> None:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w:xz") as archive:
        for name, size in (("big", 64 * MIB), ("run.ipynb", 0)):
            entry = tarfile.TarInfo(name)
            entry.size = size
            archive.addfile(entry, io.BytesIO(bytes(size)))
    data = tmp_path / "capsules" / "bix-1" / "Data"
    data.mkdir(parents=True)
    (data / "more.tar.xz").write_bytes(whole.getvalue())
    sample = Sample(
        id="q",
        subset="s",
        index=0,
        text="?",
        target="!",
        metadata={"capsule_uuid": "u", "short_id": "bix-1"},
    )
    with at_most(32 * MIB), pytest.raises(DataError, match=r"more.tar.xz.*250 times"):
        CapsuleFolder(tmp_path / "capsules").prepare(sample, tmp_path / "work")


@pytest.mark.parametrize("form", ["", "gz", "bz2", "xz"])
def test_the_names_in_tar_files_are_found(tmp_path: Path, form: str) -> None:
    file = tmp_path / "a.tar"
    with tarfile.open(file, f"w:{form}") as archive:  # type: ignore[call-overload]
        for name in ("a" * 300, "b/c.ipynb"):
            entry = tarfile.TarInfo(name)
            entry.size = 700
            archive.addfile(entry, io.BytesIO(os.urandom(700)))
    assert list(tar_names(file)) == ["a" * 300, "b/c.ipynb"]


def test_tar_files_with_huge_headers_or_dictionaries_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = tarfile.TarInfo("././@PaxHeader")
    header.type, header.size = tarfile.XHDTYPE, 1 << 33
    (tmp_path / "long.tar").write_bytes(header.tobuf(tarfile.GNU_FORMAT) + bytes(10_240))
    with pytest.raises(DataError, match="about one entry"):
        list(tar_names(tmp_path / "long.tar"))
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 8 * MIB}]
    (tmp_path / "wide.tar.xz").write_bytes(lzma.compress(bytes(20_480), filters=filters))
    monkeypatch.setattr(bounds, "UNPACKING_MEMORY", MIB)
    with pytest.raises(DataError, match="of memory"):
        list(tar_names(tmp_path / "wide.tar.xz"))
    (tmp_path / "text.csv").write_text("a,b\n")
    assert list(tar_names(tmp_path / "text.csv")) == []


def test_a_zip_file_with_an_endless_list_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from keju.sources.archive import ZipEntries

    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for number in range(2000):
            archive.writestr(f"{number}", b"")
    assert len(ZipEntries(tmp_path / "a.zip").entries) == 2000
    monkeypatch.setattr(bounds, "LONGEST_DIRECTORY", 10_000)
    with at_most(2 * MIB), pytest.raises(DataError, match="more than 200000 entries"):
        ZipEntries(tmp_path / "a.zip")


def test_pipes_are_read_but_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "WRITER_SECONDS", 0.05)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="nothing is written"):
        bounds.read_file(pipe)
    monkeypatch.setattr(bounds, "WRITER_SECONDS", 20.0)
    writer = threading.Thread(target=lambda: pipe.write_bytes(b"a: 1\n"))
    writer.start()
    assert bounds.read_file(pipe) == b"a: 1\n"
    writer.join()
    with pytest.raises(OSError, match="larger than 1 MiB"):
        bounds.read_file("/dev/zero", MIB)


NAMES = ["../x", "/etc/passwd", "a/b", "a_b", "..", ".", "", "a\0b", "con", "NUL.txt", "a" * 300]
NAMES += ["x\\y", "~x", "-x", " a", "a.", "\ud800", "é" * 100, "a:b", "\u202ea", "a\nb"]


@given(st.text(max_size=40))
def test_a_name_of_data_is_one_name(text: str) -> None:
    for each in (text, *NAMES, make_file_name(text)):
        name = make_file_name(each)
        assert len(name.encode()) <= LONGEST_NAME
        assert name
        assert not set(name) & set("/\\\0")
        assert name not in (".", "..")


def test_names_of_data_stay_distinct_and_ordinary_ones_stay_as_they_are(tmp_path: Path) -> None:
    texts = [*NAMES, *map(make_file_name, NAMES)]
    assert len({make_file_name(text) for text in texts}) == len(set(texts))
    for text in texts:
        (tmp_path / make_file_name(text)).touch()
    assert len(list(tmp_path.iterdir())) == len(set(texts))
    for text in ("q1", "bix-1-q1", "mmlu_pro_70", "初中语文 (上)", "a b.c", "math&more"):
        assert make_file_name(text) == text
