"""Files are written whole or not at all, and killed writers leave nothing for ever; what is stored
in temporary files comes back."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from keju.files import LONGEST_WRITING, SpooledSequence, iter_json_pieces, whole_file

KILLED = """
import os, sys
from pathlib import Path
from keju.files import whole_file
with whole_file(Path(sys.argv[1])) as stream:
    stream.write(b"half")
    stream.flush()
    os.kill(os.getpid(), 9)
"""


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def write(path: Path) -> None:
    with whole_file(path) as stream:
        stream.write(b"whole")


def test_the_next_writer_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert [name.startswith(".report.html.") for name in names(tmp_path)] == [True]
    write(path)
    assert names(tmp_path) == ["report.html"]


def test_the_part_of_a_writer_that_still_runs_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    with whole_file(path) as stream:
        write(path)
        assert len(names(tmp_path)) == 2
        stream.write(b"the last")
    assert path.read_bytes() == b"the last"


@pytest.mark.parametrize("name", [".report.html.other-1-ab.part", ".report.html.x.part"])
def test_a_part_of_nobody_knows_whom_goes_after_a_day(tmp_path: Path, name: str) -> None:
    part = tmp_path / name
    part.touch()
    write(tmp_path / "report.html")
    assert part.exists()
    os.utime(part, (1, part.stat().st_mtime - LONGEST_WRITING - 60))
    write(tmp_path / "report.html")
    assert not part.exists()


@pytest.mark.parametrize("in_memory", [10, 1 << 20])
def test_what_is_stored_comes_back_in_its_order(
    monkeypatch: pytest.MonkeyPatch, in_memory: int
) -> None:
    monkeypatch.setattr("keju.files.IN_MEMORY", in_memory)
    rows = [{"number": number, "text": "é" * number} for number in range(9)]
    stored: SpooledSequence[dict[str, Any]] = SpooledSequence(dict)
    for row in rows[:4]:
        stored.append(row)
    assert list(stored) == rows[:4]
    others: SpooledSequence[dict[str, Any]] = SpooledSequence(dict)
    for row in rows[4:]:
        others.append(row)
    stored.extend(others)
    assert (len(stored), list(stored), stored[6:1:-2]) == (9, rows, rows[6:1:-2])
    with pytest.raises(IndexError):
        stored[9]


@pytest.mark.parametrize("indent", [1, 2])
def test_a_document_whose_lists_are_stored_is_written_like_any_other(indent: int) -> None:
    rows: list[Any] = [{"a": ["line\nend", []]}, 5, "é", {}]
    stored: SpooledSequence[Any] = SpooledSequence(Any)
    for row in rows:
        stored.append(row)
    empty: SpooledSequence[Any] = SpooledSequence(Any)

    def document(long: Any, none: Any) -> Any:
        return {"x": [{"long": long, "none": none, "n": None}, [1, 2]], "y": {"none": none}}

    plain = msgspec.json.format(msgspec.json.encode(document(rows, [])), indent=indent)
    assert b"".join(iter_json_pieces(document(stored, empty), indent)) == plain
    assert b"".join(iter_json_pieces(document(rows, []), indent)) == plain
