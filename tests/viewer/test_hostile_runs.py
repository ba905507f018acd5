"""Run folders, addresses and clients of strangers: the viewer says what is wrong, in one line."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from keju.viewer.app import make_app
from keju.viewer.blocks import blocks
from keju.viewer.run_index import RunIndex
from tests.viewer.runs import mixed, record, write

PATHS = (
    "", "?subsets", "/samples", "/samples?sort=tokens", "/samples?sort=slowest", "/samples?text=a",
    "/samples?least=1", "/sample?id=bbh_snarks_0", "/events",
)  # fmt: skip
LINE = json.dumps(
    {
        **{"bench": "bbh", "id": "bbh_snarks_0", "hash": "0" * 32, "target": "A"},
        "reply": {"text": "a", "usage": {"input": 1, "output": 2}, "seconds": 1.0},
        "readings": [{"reader": "p", "answer": {}, "score": {"value": 1.0, "outcome": "correct"}}],
    }
)


def client_of(runs: Path) -> TestClient:
    return TestClient(make_app(RunIndex(runs)), base_url="http://127.0.0.1")


def visit(runs: Path, name: str) -> None:
    """See that no page of a run is an internal error, and that the others are still listed."""
    write(runs / "plain", list(mixed(5)))
    client = client_of(runs)
    for path in PATHS:
        assert client.get(f"/runs/{name}{path}").status_code in (200, 400, 404, 422), path
    assert client.get(f"/compare?run=plain&run={name}").status_code < 500
    front = client.get("/")
    assert front.status_code == 200
    assert "/runs/plain" in front.text


@pytest.mark.parametrize(
    "config",
    [{"arms": 5}, {"arms": ["x"]}, {"arms": None}, {"judge": 7}, {"price": [1]}],
)
def test_settings_of_any_shape_in_a_manifest(tmp_path: Path, config: dict[str, Any]) -> None:
    write(tmp_path / "odd", [record(0)], config={"model": "m", "datasets": ["bbh"], **config})
    visit(tmp_path, "odd")


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ('"output": 2', '"output": -7'),
        ('"output": 2', f'"output": {10**30}'),
        ('"seconds": 1.0', '"seconds": 1e308'),
        ('"seconds": 1.0', '"seconds": -5'),
        ('"value": 1.0', '"value": 7.5'),
        ('"value": 1.0', '"value": -1e308'),
        ('"A"', "[[]]"),
    ],
)
def test_numbers_of_any_size_in_a_journal(tmp_path: Path, was: str, now: str) -> None:
    folder = write(tmp_path / "odd", [])
    (folder / "records.jsonl").write_text(f"{LINE.replace(was, now)}\n{LINE}\n")
    visit(tmp_path, "odd")


def write_exams(root: Path, count: int) -> None:
    """Write a run ``odd`` with one record in each of ``count`` exams."""
    lines = [LINE.replace('"bbh"', f'"exam-{n}"') for n in range(count)]
    (write(root / "odd", []) / "records.jsonl").write_text("\n".join(lines) + "\n")


def test_more_exams_than_sixteen_bits_can_number(tmp_path: Path) -> None:
    write_exams(tmp_path, 70_000)
    page = client_of(tmp_path).get("/runs/odd/samples?exam=exam-69999")
    assert page.status_code == 200
    assert "exam-69999" in page.text


def test_the_overview_shows_the_first_five_hundred_exams(tmp_path: Path) -> None:
    write_exams(tmp_path, 1_000)
    page = client_of(tmp_path).get("/runs/odd")
    assert page.status_code == 200
    assert "exam-999" not in page.text


@pytest.mark.parametrize("file", ["records.jsonl", "manifest.json", "results.json"])
@pytest.mark.parametrize("kind", ["folder", "link", "loop", "pipe"])
def test_a_file_of_a_run_that_is_no_file(tmp_path: Path, file: str, kind: str) -> None:
    place = write(tmp_path / "odd", [record(0)]) / file
    place.unlink(missing_ok=True)
    if kind == "folder":
        place.mkdir()
    elif kind == "pipe":
        os.mkfifo(place)
    else:
        place.symlink_to("/etc/passwd" if kind == "link" else file)
    if kind != "pipe" or file == "records.jsonl":
        visit(tmp_path, "odd")
    assert "root:x:" not in client_of(tmp_path).get("/runs/odd/samples?text=root").text


def test_a_run_whose_name_is_not_text_hides_no_other(tmp_path: Path) -> None:
    write(tmp_path / "plain", list(mixed(5)))
    write(tmp_path / "odd", [record(0)]).rename(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    client = client_of(tmp_path)
    assert client.get("/runs/plain/sample?id=bbh_snarks_0").status_code in (200, 404)
    assert client.get("/").status_code == 200


def test_a_number_of_five_thousand_digits_in_an_address(tmp_path: Path) -> None:
    write(tmp_path / "plain", [record(3)])
    address = f"/runs/plain/sample?id=bbh_snarks_3&epoch={'9' * 5000}"
    assert client_of(tmp_path).get(address).status_code == 404


def test_a_line_without_an_end_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keju.viewer.blocks.LONGEST_LINE", 1000)
    file = tmp_path / "records.jsonl"
    file.write_bytes(b"one\n" + b"x" * 5000 + b"\ntwo\n" + b"y" * 5000)
    made = list(blocks(file, 0, 100))
    assert [line for block in made for _, line in block.lines()] == [b"one\n", b"two\n"]
    assert made[-1].end == file.stat().st_size
    file.write_bytes(b"one\ntorn")
    assert [block.end for block in blocks(file, 0, 100)] == [4]


def test_holes_of_a_sparse_file_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keju.viewer.blocks.LONGEST_LINE", 1000)
    path = tmp_path / "records.jsonl"
    size = 1 << 40
    with path.open("wb") as file:
        file.write(b"one\n")
        file.truncate(size)
        file.seek(0, os.SEEK_END)
        file.write(b"\ntwo\n")
        file.truncate(2 * size)
    made = list(blocks(path, 0, 100))
    assert [line for block in made for _, line in block.lines()] == [b"one\n", b"two\n"]
    assert [block.end for block in made] == [4, size + 1, size + 5, 2 * size]


def test_pages_come_while_conditions_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty conditions wait for each other; a list without a condition waits for none of them."""
    from concurrent.futures import ThreadPoolExecutor

    from keju.viewer import app

    pool = ThreadPoolExecutor(1)
    monkeypatch.setattr(app, "_conditions", pool)
    held = pool.submit(time.sleep, 3)
    write(tmp_path / "plain", list(mixed(5)))
    client = client_of(tmp_path)
    assert client.get("/runs/plain/samples").status_code == 200
    assert not held.done()
    pool.shutdown()
