"""Runs at addresses of fsspec, fetched from a store in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from keju.errors import DataError, UsageError
from keju.runs.journal import is_fetched
from keju.runs.remote import fetch_run

fsspec = pytest.importorskip("fsspec")
ADDRESS = "memory://runs/tuesday"


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    memory = fsspec.filesystem("memory")
    if memory.exists("/runs"):
        memory.rm("/runs", recursive=True)
    return memory


def write(store: Any, **files: str) -> None:
    for name, text in files.items():
        store.pipe(f"/runs/tuesday/{name}.json", text.encode())


def test_a_run_is_copied_and_kept_up_to_date(store: Any) -> None:
    write(store, manifest="{}", results="1", old="x")
    folder = fetch_run(ADDRESS)
    assert (folder.name, is_fetched(folder)) == ("tuesday", True)
    assert (folder / "results.json").read_text() == "1"
    unchanged = (folder / "manifest.json").stat().st_mtime_ns
    write(store, results="2")
    store.rm("/runs/tuesday/old.json")
    assert fetch_run(ADDRESS) == folder
    assert (folder / "results.json").read_text() == "2"
    assert not (folder / "old.json").exists()
    assert (folder / "manifest.json").stat().st_mtime_ns == unchanged


def test_a_folder_without_a_manifest_is_no_run(store: Any) -> None:
    write(store, results="1")
    with pytest.raises(UsageError) as missing:
        fetch_run(ADDRESS)
    assert missing.value.code == "remote_none"


def test_credentials_in_an_address_are_refused_and_not_repeated() -> None:
    with pytest.raises(UsageError) as refused:
        fetch_run("ftp://user:word@host/run")
    assert refused.value.code == "remote_credentials"
    assert "word@" not in str(refused.value)


def test_a_store_that_fails_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: str) -> Any:
        raise RuntimeError("first line\nsecond line")

    monkeypatch.setattr(fsspec.core, "url_to_fs", fail)
    with pytest.raises(DataError, match="first line") as failed:
        fetch_run(ADDRESS)
    assert "second" not in str(failed.value)
