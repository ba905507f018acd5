"""Devices, pipes, links and odd names where a file is expected: one clear line, and no harm."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from keju import bounds
from keju.files import make_file_name
from keju.runs import manifest
from tests.cli.conftest import Keju, Ran

EXAM = json.dumps({"demo": {"size": 2, "subset_list": ["boolean_expressions"]}})


def evaluate(keju: Keju, run: str, *words: str) -> Ran:
    place = ("--work-dir", "runs", "--run-id", run, "--quiet")
    return keju(
        "eval", "--model", "scripted", "--datasets", "demo", "--dataset-args", EXAM, *place, *words
    )


def error_line(ran: Ran, code: int = 2) -> str:
    """The one line that says what is wrong."""
    assert ran.code == code, ran.err
    assert len(ran.err.strip().splitlines()) == 1, ran.err
    assert "internal" not in ran.err
    return ran.err


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "WRITER_SECONDS", 0.05)


def test_settings_and_predictions_that_never_end(
    keju: Keju, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "LONGEST_LINE", 1 << 20)
    os.mkfifo("pipe")
    (tmp_path / "zero.jsonl").symlink_to("/dev/zero")
    assert "larger than 16 MiB" in error_line(keju("eval", "--config", "/dev/zero"))
    assert "nothing is written to the pipe" in error_line(keju("eval", "--config", "pipe"))
    assert "directory" in error_line(keju("eval", "--config", ".")).lower()
    for file in ("/dev/zero", "zero.jsonl", "pipe"):
        error_line(keju("score", "--datasets", "demo", "--predictions", file))


def test_outputs_that_are_no_files_are_never_replaced(keju: Keju) -> None:
    assert evaluate(keju, "r").code == 0
    os.mkfifo("pipe")
    before = Path("/dev/full").stat().st_mode
    for command in (("export", "r", "--format", "csv"), ("report", "r")):
        work = ("--work-dir", "runs")
        line = error_line(keju(*command, *work, "--output", "/dev/full"))
        assert "No space left on device" in line
        assert "cannot write pipe" in error_line(keju(*command, *work, "--output", "pipe"))
        assert keju(*command, *work, "--output", "/dev/null").code == 0
    assert Path("/dev/full").stat().st_mode == before
    assert Path("/dev/null").is_char_device()


def test_names_of_data_never_leave_the_folder(keju: Keju, tmp_path: Path) -> None:
    rows = [
        {"question": "1+1?", "answer": "2", "subset": subset, "id": f"{subset}x"}
        for subset in ("../../out", "/etc/x", "a\0b", "a/b", "a_b", "c" * 300, "plain")
    ]
    Path("q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    before = set(tmp_path.parent.iterdir())
    ran = keju("prompts", "./q.jsonl", "--output", "prompts/here")
    assert ran.code == 0, ran.err
    names = {path.name for path in tmp_path.rglob("*.json")}
    assert names == {f"{make_file_name(row['subset'])}.json" for row in rows}
    assert len(names) == len(rows)
    assert "plain.json" in names
    assert set(tmp_path.parent.iterdir()) == before
    work = ("--work-dir", "runs", "--run-id", "r", "--quiet")
    assert keju("eval", "--model", "scripted", "--datasets", "./q.jsonl", *work).code == 0


def test_a_journal_that_is_a_link_is_neither_written_nor_read(keju: Keju, tmp_path: Path) -> None:
    assert evaluate(keju, "r").code == 0
    journal, target = Path("runs/r/records.jsonl"), tmp_path / "other.jsonl"
    shutil.move(journal, target)
    content = target.read_bytes()
    journal.symlink_to(target)
    line = error_line(evaluate(keju, "r", "--resume", "--limit", "1"), 4)
    assert "symbolic link" in line
    assert "symbolic link" in error_line(keju("score", "r", "--work-dir", "runs"))
    assert target.read_bytes() == content
    journal.unlink()
    os.mkfifo(journal)
    assert "not a file" in error_line(keju("score", "r", "--work-dir", "runs"))
    journal.unlink()
    journal.symlink_to("/dev/zero")
    assert "symbolic link" in error_line(keju("score", "r", "--work-dir", "runs"))


def test_a_journal_with_carriage_returns_is_read_and_not_asked_again(keju: Keju) -> None:
    assert evaluate(keju, "r").code == 0
    journal = Path("runs/r/records.jsonl")
    lines = journal.read_bytes()
    scored = keju("score", "r", "--work-dir", "runs", "--json").json["benchmarks"]
    journal.write_bytes(b"\xef\xbb\xbf" + lines.replace(b"\n", b"\r\n"))
    ran = keju("score", "r", "--work-dir", "runs", "--json")
    assert ran.json["benchmarks"] == scored
    assert "damaged" not in ran.err
    assert evaluate(keju, "r", "--resume").code == 0
    assert journal.read_bytes().count(b"\n") == lines.count(b"\n")


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.ESTALE])
def test_a_file_system_without_locks_is_named(
    keju: Keju, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(fd: int, operation: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    ran = evaluate(keju, "r")
    line = error_line(ran, ran.code)
    assert os.strerror(number) in line
    assert "another process" not in line
    assert "--work-dir" in line


def test_a_clock_beyond_the_calendar_is_named(keju: Keju, monkeypatch: pytest.MonkeyPatch) -> None:
    class Beyond(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return cls.fromtimestamp(253402300800.0 + 86400 * 400, tz)

    monkeypatch.setattr(manifest, "datetime", Beyond)
    assert "after the year 9999" in error_line(evaluate(keju, "r"))


def test_a_tag_in_yaml_is_refused_in_kejus_words(keju: Keju) -> None:
    Path("c.yaml").write_text("model: scripted\ndatasets: !!python/tuple [demo]\n")
    line = error_line(keju("eval", "--config", "c.yaml"))
    assert "line 2: the tag !!python/tuple is not supported" in line
    assert "constructor" not in line


def test_a_file_name_that_is_not_text_is_refused_in_one_line(keju: Keju, tmp_path: Path) -> None:
    """A name of bytes that are not UTF-8, as an archive made elsewhere may leave it."""
    folder = tmp_path / "exam"
    folder.mkdir()
    for number in range(2):
        name = os.fsdecode(b"\xff\xfe%d.jsonl" % number)
        (folder / name).write_text('{"question": "1 + 1?", "answer": "2"}\n')
    ran = keju("eval", "--model", "scripted", "--datasets", str(folder))
    assert ran.code == 2
    assert "is not valid UTF-8; rename the file" in ran.err
