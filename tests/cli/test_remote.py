"""Runs on other stores: every command that reads a run takes its address, and none writes to it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import fsspec
import pytest

from tests.cli.conftest import Keju

pytestmark = pytest.mark.slow

ADDRESS = "memory://bucket/runs/tuesday"


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keju: Keju) -> None:
    monkeypatch.setenv("KEJU_CACHE_DIR", str(tmp_path / "cache"))
    store = fsspec.filesystem("memory")
    if store.exists("/bucket"):
        store.rm("/bucket", recursive=True)


def evaluate(keju: Keju, run: str, size: int = 3, flags: tuple[str, ...] = ()) -> None:
    args = json.dumps({"demo": {"size": size}})
    words = ("eval", "-m", "scripted", "--datasets", "demo", "--dataset-args", args, "-q")
    assert keju(*words, "--run-id", run, "--no-report", *flags).code == 0


def upload(run: str, address: str = ADDRESS) -> Any:
    store, root = fsspec.core.url_to_fs(address)
    if store.exists(root):
        store.rm(root, recursive=True)
    store.put(f"runs/{run}", root, recursive=True)
    return store


def copies() -> list[Path]:
    return sorted(Path("cache").rglob("records.jsonl"))


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_commands_that_read_a_run_take_an_address(keju: Keju, tmp_path: Path, kind: str) -> None:
    evaluate(keju, "tuesday")
    evaluate(keju, "monday")
    address = ADDRESS if kind == "memory" else f"file://{tmp_path}/bucket/tuesday"
    upload("tuesday", address)
    local = keju("score", "tuesday", "--json")
    shutil.rmtree("runs/tuesday")
    remote = keju("score", address, "--json")
    assert remote.code == 0, remote.err
    (entry,), (local_entry,) = remote.json["benchmarks"], local.json["benchmarks"]
    assert entry["metrics"] == local_entry["metrics"]
    assert f"keju audit {address} shows" in entry["warnings"][0]
    assert keju("audit", address).code == 0
    compared = keju("compare", "monday", address, "--json")
    assert compared.code == 0, compared.err
    assert keju("report", address, "-o", "page.html").code == 0
    assert "tuesday" in Path("page.html").read_text()
    assert keju("export", address, "-o", "answers.csv").code == 0
    assert len(copies()) == 1, "one copy for all of them"


def test_parts_that_lie_elsewhere_are_merged(keju: Keju) -> None:
    evaluate(keju, "whole")
    for part in "12":
        evaluate(keju, part, flags=("--shard", f"{part}/2"))
        upload(part, f"memory://bucket/{part}")
    merged = keju("merge", "memory://bucket/1", "memory://bucket/2", "-o", "merged", "--json")
    assert merged.code == 0, merged.err
    full_run = keju("score", "whole", "--json").json["benchmarks"]
    assert [e["metrics"] for e in merged.json["benchmarks"]] == [e["metrics"] for e in full_run]
    evaluate(keju, "merged")  # it is a run of its own, and may go on


def test_only_what_changed_is_fetched_again(keju: Keju) -> None:
    evaluate(keju, "tuesday")
    upload("tuesday")
    assert keju("score", ADDRESS, "--json").json["benchmarks"][0]["n"] == 18
    (journal,) = copies()
    manifest = journal.with_name("manifest.json")
    before = journal.stat().st_ino, manifest.stat().st_ino
    keju("score", ADDRESS)
    assert (journal.stat().st_ino, manifest.stat().st_ino) == before
    evaluate(keju, "tuesday", size=5)
    upload("tuesday")
    assert keju("score", ADDRESS, "--json").json["benchmarks"][0]["n"] == 30


def test_results_of_a_run_that_was_killed_are_not_taken_for_its_own(keju: Keju) -> None:
    evaluate(keju, "tuesday")
    manifest = json.loads(Path("runs/tuesday/manifest.json").read_text())
    Path("runs/tuesday/manifest.json").write_text(json.dumps(manifest | {"complete": False}))
    results = Path("runs/tuesday/results.json")
    results.write_text(results.read_text().replace('"model": "scripted"', '"model": "stale"'))
    upload("tuesday")
    assert keju("report", ADDRESS, "-o", "page.html").code == 0
    assert "stale" not in Path("page.html").read_text()


def test_a_copy_is_not_written_to(keju: Keju) -> None:
    evaluate(keju, "tuesday")
    store = upload("tuesday")
    before = {path: store.cat(path) for path in store.find("/bucket")}
    for argv, words in (
        (("rm", ADDRESS, "--yes"), "is read-only"),
        (("judge", ADDRESS, "--model", "judge", "--api-url", "http://127.0.0.1:9"), ""),
        (("report", ADDRESS), "-o FILE"),
    ):
        ran = keju(*argv)
        assert (ran.code, len(ran.err.splitlines())) == (2, 1), (argv, ran.err)
        assert words in ran.err
    assert {path: store.cat(path) for path in store.find("/bucket")} == before


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("memory://bucket/runs/none", "no run at memory://bucket/runs/none"),
        ("nosuch://bucket/run", "nosuch://bucket/run cannot be read"),
        ("ftp://me:secret@127.0.0.1/run", "is refused"),
        ("s3://", ""),
    ],
)
def test_what_is_not_there_is_one_line(keju: Keju, address: str, words: str) -> None:
    for command in ("report", "compare", "score", "view"):
        ran = keju(command, address)
        assert ran.code != 0
        assert len(ran.err.splitlines()) == 1, ran.err
        assert words in ran.err
        assert "secret" not in ran.err


def test_names_that_would_leave_the_folder_are_refused(
    keju: Keju, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate(keju, "tuesday")
    store = upload("tuesday")
    objects = store.find("/bucket/runs/tuesday")
    bad = "/bucket/runs/tuesday/../../../escaped"
    monkeypatch.setattr(type(store), "find", lambda *_, **__: [*objects, bad])
    ran = keju("report", ADDRESS, "-o", "page.html")
    assert (ran.code != 0, len(ran.err.splitlines())) == (True, 1)
    assert "leave its folder" in ran.err
    assert copies() == []
