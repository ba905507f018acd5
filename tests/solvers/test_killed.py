"""kill -9 in the middle of episodes: whole episodes stay, half ones start again and are counted."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from keju.runs.journal import FILE, Records
from tests.support.arms import ARMS, many_calls
from tests.support.endpoint import FaultyEndpoint
from tests.support.processes import environment, finish, numbers, wait_for_records
from tests.support.replies import Plan

pytestmark = pytest.mark.slow

IN_FLIGHT, KILLS, SIZE = 8, 6, 60
SAID = partial(many_calls, 4)


def command(endpoint: FaultyEndpoint, folder: Path) -> list[str]:
    settings = {
        "model": "m",
        "api_url": endpoint.url,
        "datasets": ["demo"],
        "dataset_args": {"demo": {"size": SIZE, "subset_list": ["object_counting"]}},
        "arms": ARMS,
        "eval_batch_size": IN_FLIGHT,
        "work_dir": str(folder),
        "run_id": "r",
    }
    folder.mkdir(exist_ok=True)
    file = folder / "task.json"
    file.write_text(json.dumps(settings))
    argv = ("eval", "--config", str(file), "--json", "--quiet")
    return [sys.executable, "-m", "tests.solvers.killed", *argv]


def test_half_finished_episodes_start_again_and_are_counted(tmp_path: Path) -> None:
    chance, journal = random.Random(5), tmp_path / "r" / FILE
    with FaultyEndpoint(Plan(answers=SAID, latency=0.01)) as endpoint:
        for _ in range(KILLS):
            lines = journal.read_bytes().count(b"\n") if journal.exists() else 0
            child = subprocess.Popen(
                command(endpoint, tmp_path), env=environment(), stdout=subprocess.DEVNULL
            )
            wait_for_records(journal, lines + chance.randrange(12), child)
            time.sleep(chance.random() * 0.05)
            child.send_signal(signal.SIGKILL)
            child.wait()
        resumed = finish(command(endpoint, tmp_path))
    with FaultyEndpoint(Plan(answers=SAID)) as endpoint:
        assert numbers(resumed) == numbers(finish(command(endpoint, tmp_path / "whole")))
    keys = [(record.id, record.arm) for record in Records(tmp_path / "r")]
    assert len(keys) == len(set(keys)) == 2 * SIZE
    manifest = json.loads((tmp_path / "r" / "manifest.json").read_text())
    *killed, last_session = manifest["sessions"]
    assert last_session["episodes_begun"] == last_session["episodes_finished"]
    assert all(s.get("episodes_begun", 0) >= s.get("episodes_finished", 0) for s in killed)


def begun(manifest: Path) -> int:
    """The episodes that the first session says to have begun."""
    sessions = json.loads(manifest.read_text())["sessions"] if manifest.is_file() else []
    return int(sessions[0].get("episodes_begun", 0)) if sessions else 0


def test_an_interrupt_waits_for_no_call_and_the_run_goes_on_later(tmp_path: Path) -> None:
    slow = environment() | {"KEJU_TEST_TOOL_SECONDS": "600"}
    with FaultyEndpoint(Plan(answers=SAID)) as endpoint:
        child = subprocess.Popen(
            [word for word in command(endpoint, tmp_path) if word != "--quiet"],
            env=slow,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        while begun(tmp_path / "r" / "manifest.json") < IN_FLIGHT:  # all slots wait for a tool
            time.sleep(0.05)
        child.send_signal(signal.SIGINT)
        _, messages = child.communicate(timeout=60)
        assert child.returncode == 130
        assert "--resume" in messages
        assert "Traceback" not in messages
        assert "no request is in flight" in messages  # the models wait for their tools
        assert "0 requests" not in messages
        resumed = finish(command(endpoint, tmp_path))
    assert [entry["n"] for entry in resumed["benchmarks"]] == [SIZE, SIZE]
    told_of = [
        "episodes_broken_off" in [notice["code"] for notice in entry.get("notices", ())]
        for entry in resumed["benchmarks"]
    ]
    assert told_of == [bool(entry.get("tools")) for entry in resumed["benchmarks"]]
    assert any(told_of)
