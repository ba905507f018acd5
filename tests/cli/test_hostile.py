"""Attacks that were not stopped before: bombs of values, and characters that drive a terminal."""

from __future__ import annotations

import gzip
import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from perf.soak.case import cases_of
from perf.soak.zygote import end_all

from keju import bounds
from tests.cli.conftest import Keju

STOPPED = (
    "openai: status: 502 with a page of 8 MiB of unclosed titles",
    "openai: text: 300 KiB of 'canary' in one line",
)
"""Cases of ``python -m perf.soak hostile`` that hung."""
OBEYED = "a\x9b31m\u202e\x7fb"
"""DEL, the one character that begins an escape, and one that turns the direction of writing."""


@pytest.fixture(autouse=True, scope="module")
def _end() -> Iterator[None]:
    yield
    end_all()


@pytest.mark.parametrize("name", STOPPED)
def test_an_attack_that_was_not_stopped_before_is_stopped(name: str, tmp_path: Path) -> None:
    case = next(case for case in cases_of("hostile") if case.name == name)
    assert case.attack(tmp_path) == ""


def write_exam(row: str) -> None:
    Path("exam").mkdir()
    Path("exam/q.jsonl").write_text(row)


def evaluate(keju: Keju) -> str:
    row = {"question": "2?", "A": "4", "B": "5", "answer": "A", "id": "x", "subset": OBEYED}
    write_exam(json.dumps(row) + "\n")
    words = [
        "eval",
        "--model",
        "scripted",
        "--datasets",
        "./exam",
        "--work-dir",
        "runs",
        "--run-id",
        "r",
        "--json",
    ]
    ran = keju(*words)
    assert ran.code == 0, ran.err
    return ran.out


def test_json_on_a_terminal_cannot_drive_it_and_means_the_same(keju: Keju) -> None:
    out = evaluate(keju)
    assert not set(OBEYED) - {*"a31mb"} & set(out)
    assert json.loads(out)["benchmarks"][0]["subsets"][0]["name"] == OBEYED


def test_an_export_to_a_terminal_cannot_drive_it_and_a_file_is_exact(keju: Keju) -> None:
    evaluate(keju)
    words = [sys.executable, "-m", "keju", "export", "r", "--work-dir", "runs", "--format", "csv"]
    assert OBEYED in subprocess.run(words, capture_output=True, check=True).stdout.decode()
    controller, terminal = pty.openpty()
    subprocess.run(words, stdout=terminal, stderr=subprocess.DEVNULL, check=True)
    os.close(terminal)
    with os.fdopen(controller, "rb") as stream:
        screen_text = stream.read1(65536).decode()
    assert "31m" in screen_text
    assert not set(OBEYED) - {*"a31mb"} & set(screen_text)


@pytest.mark.parametrize(
    ("name", "limit", "message"),
    [("q.yaml", "MOST_YAML_VALUES", "1000 values"), ("q.json.gz", "MOST_VALUES", "JSON Lines")],
)
def test_a_document_of_too_many_values_is_refused_in_one_line(
    keju: Keju, monkeypatch: pytest.MonkeyPatch, name: str, limit: str, message: str
) -> None:
    monkeypatch.setattr(bounds, limit, 1000)
    content = b"[" + b"[]," * 2000 + b"1]"
    write_exam("")
    Path("exam/q.jsonl").unlink()
    Path("exam", name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    ran = keju("stats", "./exam")
    assert ran.code == 2
    assert message in ran.err
    assert len(ran.err.strip().splitlines()) == 1


def test_a_long_yaml_is_refused_in_one_line(keju: Keju, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "LONGEST_YAML", bounds.MIB)
    Path("c.yaml").write_bytes(b"model: " + b"x" * 2 * bounds.MIB)
    ran = keju("eval", "--config", "c.yaml")
    assert ran.code == 2
    assert "limited to 1 MiB" in ran.err
