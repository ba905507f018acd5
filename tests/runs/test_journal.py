"""The journal: whole lines, one writer, a full disk."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keju import run_task
from keju.errors import RunIncomplete, UsageError
from keju.runs.journal import FILE, Journal, Records
from keju.types import Answer, Reading, Record, Reply, Score
from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import Plan

SYNC_EVERY = "keju.engine.loop.SYNC_EVERY"
"""Seconds between two syncs while a run goes on."""


def record(number: int, text: str = "yes") -> Record:
    reading = Reading("robust", Answer("yes", "strict"), Score(1.0, "correct"))
    return Record(
        bench="demo",
        id=f"demo_{number}",
        hash=f"{number:032x}",
        reply=Reply(text),
        readings=(reading,),
    )


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    records = [record(number, "line\nbreak \u2028 字") for number in range(5)]
    with Journal(tmp_path) as journal:
        journal.append(records[:2])
        journal.append(records[2:])
    assert list(Records(tmp_path)) == records


def test_a_write_that_stops_short_again_and_again_is_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records, write = [record(number) for number in range(5)], os.write
    with Journal(tmp_path) as journal:
        monkeypatch.setattr(os, "write", lambda fd, data: write(fd, bytes(data[:37])))
        journal.append(records)
        monkeypatch.undo()
        journal.check()
    assert list(Records(tmp_path)) == records


@given(cut=st.integers(min_value=1, max_value=400))
def test_a_torn_last_line_is_repaired_and_nothing_else(
    cut: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("torn")
    with Journal(folder) as journal:
        journal.append([record(1), record(2)])
    content = (folder / FILE).read_bytes()
    lines = content.splitlines(keepends=True)
    (folder / FILE).write_bytes(content[: max(0, len(content) - cut)])
    intact = 1 if cut <= len(lines[1]) else 0
    with Journal(folder) as journal:
        journal.append([record(3)])
    ids = [record.id for record in Records(folder)]
    assert ids == [f"demo_{n}" for n in range(1, intact + 1)] + ["demo_3"]


@given(place=st.integers(min_value=0), byte=st.integers(min_value=0, max_value=255))
def test_a_byte_that_is_another_is_found_out_or_changes_nothing(
    place: int, byte: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("other")
    written_records = [record(number, f"the answer is {number}") for number in range(3)]
    with Journal(folder) as journal:
        journal.append(written_records)
    data = bytearray((folder / FILE).read_bytes())
    data[place % len(data)] = byte
    (folder / FILE).write_bytes(data)
    read_records = list(Records(folder))
    assert all(record in written_records for record in read_records)
    assert len(read_records) >= 1


def test_a_line_that_was_written_anew_is_not_believed(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.append([record(1), record(2)])
    lines = [json.loads(line) for line in (tmp_path / FILE).read_bytes().splitlines()]
    lines[0]["reply"]["text"] = "no"
    (tmp_path / FILE).write_text("".join(json.dumps(line) + "\n" for line in lines))
    records = Records(tmp_path)
    assert (list(records), records.damaged) == ([], 2)


def test_lines_of_0_1_are_read_and_have_no_checksum(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.append([record(1)])
    line = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(line + line.rpartition(b',"crc":')[0] + b"}\n")
    records = Records(tmp_path)
    assert [(stored.id, records.is_sealed) for stored in records] == [
        ("demo_1", True),
        ("demo_1", False),
    ]


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    with Journal(tmp_path), pytest.raises(UsageError, match="another process"):
        Journal(tmp_path)
    Journal(tmp_path).close()


def test_unreadable_lines_are_counted_and_passed_over(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.append([record(1)])
    with (tmp_path / FILE).open("ab") as file:
        file.write(b"\0\0\0garbage\n" + b'{"bench":"b","id":"\xff"}\n' + b"[" * 100_000 + b"\n")
        file.write(b'{"bench":5}\n')
    with Journal(tmp_path) as journal:
        journal.append([record(2)])
    records = Records(tmp_path)
    assert [stored.id for stored in records] == ["demo_1", "demo_2"]
    assert records.damaged == 4


FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from keju.runs.journal import Journal
from tests.runs.test_journal import record
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))
journal = Journal(Path(sys.argv[1]))
try:
    for number in range(1000):
        journal.append([record(number, "x" * 300)])
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="needs file size limits")
def test_a_full_disk_stops_cleanly_with_whole_lines(tmp_path: Path) -> None:
    assert resource.RLIMIT_FSIZE
    result = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert result.stdout.startswith(RunIncomplete.__name__)
    assert "no space left" in result.stdout
    raw = (tmp_path / FILE).read_bytes()
    assert raw.endswith(b"\n")
    assert len(raw) <= 4000
    assert len(list(Records(tmp_path))) == raw.count(b"\n") > 3


def test_reading_a_folder_without_a_journal_says_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a run folder"):
        list(Records(tmp_path))


def test_the_lock_is_freed_when_the_writer_is_killed(tmp_path: Path) -> None:
    child = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys,time;from pathlib import Path;from keju.runs.journal import Journal;"
            "journal=Journal(Path(sys.argv[1]));print('open',flush=True);time.sleep(60)",
            str(tmp_path),
        ],
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"open\n"
    with pytest.raises(UsageError):
        Journal(tmp_path)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    child.stdout.close()
    Journal(tmp_path).close()


Synced = dict[int, list[int]]


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> Synced:
    """The sizes at which files were made to survive a loss of power, by inode."""
    sizes: Synced = {}

    def watch(name: str) -> None:
        really = getattr(os, name)

        def sync(fd: int) -> None:
            facts = os.fstat(fd)
            sizes.setdefault(facts.st_ino, []).append(facts.st_size)
            really(fd)

        monkeypatch.setattr(os, name, sync)

    watch("fdatasync")
    watch("fsync")
    return sizes


def test_what_is_synced_is_on_the_disk(tmp_path: Path, synced: Synced) -> None:
    with Journal(tmp_path) as journal:
        path = journal.path
        for number in range(3):
            journal.append([record(number)])
            journal.sync()
            assert synced[path.stat().st_ino][-1] == path.stat().st_size
        journal.append([record(3)])
    assert synced[path.stat().st_ino][-1] == path.stat().st_size
    assert len(synced[path.stat().st_ino]) == 4


def test_a_run_is_synced_while_it_goes_on_and_at_its_end(
    tmp_path: Path, synced: Synced, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SYNC_EVERY, 0.01)
    with FaultyEndpoint(Plan(answers="So the answer is (A).", latency=0.03)) as endpoint:
        settings = {"model": "m", "api_url": endpoint.url, "datasets": ["demo"], "limit": 1}
        run_task({**settings, "work_dir": str(tmp_path), "run_id": "r", "eval_batch_size": 1})
    facts = (tmp_path / "r" / FILE).stat()
    sizes = synced[facts.st_ino]
    assert sizes[-1] == facts.st_size
    assert 0 < sizes[0] < facts.st_size
