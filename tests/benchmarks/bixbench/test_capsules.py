"""Capsules become work folders: all of the data, nothing of the solution, nothing outside."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from pathlib import Path

import pytest

from keju.benchmarks.bixbench.capsules import CapsuleFolder
from keju.errors import KejuError
from keju.types import Sample

UUID = "33b801bb-9b47-4a0a-9314-05325c82fde7"
NOTEBOOK = json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
TOP = f"CapsuleFolder-{UUID}"
DATA, SOLUTION = f"CapsuleData-{UUID}", f"CapsuleNotebook-{UUID}"


def question(short: str = "bix-1") -> Sample:
    metadata = {"capsule_uuid": UUID, "short_id": short}
    return Sample(id="bixbench_q", subset="v1.5", index=0, text="?", target="", metadata=metadata)


def zip_of(path: Path, files: dict[str, str | bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def packed(files: dict[str, str | bytes], kind: str) -> bytes:
    buffer = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(buffer, "w") as archive:
            for name, content in files.items():
                archive.writestr(name, content)
    else:
        with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
            for name, content in files.items():
                data = content.encode() if isinstance(content, str) else content
                entry = tarfile.TarInfo(name)
                entry.size = len(data)
                tar.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


CONTENT: dict[str, str | bytes] = {
    f"{DATA}/counts.csv": "a,b\n1,2\n",
    f"{DATA}/deep/er/meta.csv": "x\n",
    f"{DATA}/deep/er/Try.IPYNB": NOTEBOOK,
    f"{DATA}/.ipynb_checkpoints/counts.csv": "x",
    f"{DATA}/results.json": '{"nbformat_like": 1}',
    f"{DATA}/answer.txt": NOTEBOOK,
    f"{DATA}/more.zip": packed({"solution/run.ipynb": NOTEBOOK}, "zip"),
    f"{DATA}/more.tar.gz": packed({"run.ipynb": NOTEBOOK}, "gz"),
    f"{DATA}/data.zip": packed({"rows.csv": "1"}, "zip"),
    "metadata.json": json.dumps({"hypothesis": "?", "answer": True}),
    f"{DATA}/q.json": json.dumps([{"question": "?", "ideal_answer": "42"}]),
    f"{SOLUTION}/run.ipynb": NOTEBOOK,
    f"{SOLUTION}/helper.R": "the solution's code",
}
KEPT = {"counts.csv", "deep/er/meta.csv", "results.json", "data.zip"}


@pytest.mark.parametrize("layout", ["zip", "wrapped zip", "folder", "short id"])
def test_only_data_reaches_the_work_folder(tmp_path: Path, layout: str) -> None:
    capsules, work = tmp_path / "capsules", tmp_path / "work"
    capsules.mkdir()
    work.mkdir()
    if layout == "zip":
        zip_of(capsules / f"{TOP}.zip", CONTENT)
    elif layout == "wrapped zip":
        zip_of(
            capsules / f"{UUID}.zip",
            {f"{TOP}/{name}": file_content for name, file_content in CONTENT.items()},
        )
    else:
        top = capsules / (TOP if layout == "folder" else "bix-1")
        for name, content in CONTENT.items():
            (top / name).parent.mkdir(parents=True, exist_ok=True)
            data = content.encode() if isinstance(content, str) else content
            (top / name).write_bytes(data)
    facts = CapsuleFolder(capsules).prepare(question(), work)
    copied_paths = {path.relative_to(work).as_posix() for path in work.rglob("*") if path.is_file()}
    assert copied_paths == KEPT
    assert facts.files == len(KEPT)
    assert len(facts.left_out) == len(CONTENT) - len(KEPT)
    assert (work / "counts.csv").read_text() == "a,b\n1,2\n"


def test_every_layout_of_the_same_data_has_the_same_hash(tmp_path: Path) -> None:
    hashes = set()
    for number, name in enumerate((f"{TOP}.zip", f"{UUID}.zip", "bix-1.zip")):
        folder, work = tmp_path / str(number), tmp_path / f"work{number}"
        folder.mkdir()
        work.mkdir()
        zip_of(folder / name, CONTENT)
        hashes.add(CapsuleFolder(folder).prepare(question(), work).sha256)
    assert len(hashes) == 1


@pytest.mark.parametrize("name", ["../evil.csv", "/etc/evil", f"{DATA}/../../evil", "a\\..\\evil"])
def test_an_entry_that_leaves_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    zip_of(tmp_path / f"{UUID}.zip", {f"{DATA}/a.csv": "1", name: "evil"})
    work = tmp_path / "work"
    work.mkdir()
    with pytest.raises(KejuError, match="leads out of the folder"):
        CapsuleFolder(tmp_path).prepare(question(), work)
    assert not any(work.iterdir())


def test_links_are_refused_in_both_layouts(tmp_path: Path) -> None:
    entry = zipfile.ZipInfo(f"{DATA}/link")
    entry.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "bix-1.zip", "w") as archive:
        archive.writestr(entry, "/etc/passwd")
    (tmp_path / "bix-2" / DATA).mkdir(parents=True)
    (tmp_path / "bix-2" / DATA / "link").symlink_to("/etc")
    work = tmp_path / "work"
    work.mkdir()
    for short in ("bix-1", "bix-2"):
        with pytest.raises(KejuError, match="is a link"):
            CapsuleFolder(tmp_path).prepare(question(short), work)


def test_what_is_missing_is_said_with_the_command_that_gets_it(tmp_path: Path) -> None:
    with pytest.raises(KejuError, match="keju data pull bixbench --capsules"):
        CapsuleFolder.find(None, tmp_path)
    (tmp_path / "capsules").mkdir()
    with pytest.raises(KejuError, match="no capsule bix-1"):
        CapsuleFolder.find(None, tmp_path).locate(question())
    zip_of(tmp_path / "capsules" / "bix-1.zip", {f"{SOLUTION}/run.ipynb": NOTEBOOK})
    work = tmp_path / "work"
    work.mkdir()
    with pytest.raises(KejuError, match="nothing but the solution"):
        CapsuleFolder.find(None, tmp_path).prepare(question(), work)
