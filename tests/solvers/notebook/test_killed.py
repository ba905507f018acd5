"""kill -9 of Keju while code of a model runs: nothing is lost, and nothing is left running."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from keju.runs.journal import FILE, Records
from tests.solvers.sandbox.rooms import SMALL, opened, run
from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import Asked, Plan
from tests.support.tools import calling, results_in
from tests.test_kill import environment, finish, numbers, wait_for_records

KILLS, SIZE, IN_FLIGHT = 3, 8, 3
CODE = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(600)\nprint(6 * 7)"
"""Leaves a grandchild in a session of its own."""


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A folder for everything temporary; sockets need a short path."""

    async def works() -> None:
        await (await opened(SMALL)).close()

    run(works())
    folder = Path(tempfile.mkdtemp(prefix="kj-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def coder(asked: Asked) -> Any:
    """Runs code once where it can, and answers."""
    results = results_in(asked)
    if asked.body.get("tools") and not results and len(asked.body["messages"]) < 3:
        return calling(("python", {"code": CODE}))
    return "So the answer is 42." if results else "So the answer is 41."


def command(endpoint: FaultyEndpoint, folder: Path) -> list[str]:
    exam = {"demo": {"size": SIZE, "subset_list": ["object_counting"]}}
    return [
        *(sys.executable, "-m", "keju", "eval", "--model", "m", "--api-url", endpoint.url),
        *("--datasets", "demo", "--dataset-args", json.dumps(exam), "--tools", "python"),
        *("--eval-batch-size", str(IN_FLIGHT), "--work-dir", str(folder), "--run-id", "r"),
        *("--sandbox", "memory=400MiB", "--json", "--quiet"),
    ]


def left_behind(scratch: Path) -> list[str]:
    """Files below the temporary folder, and processes that know of it."""
    found = [path.name for path in scratch.iterdir()]
    for process in Path("/proc").glob("[0-9]*/environ"):
        try:
            if (
                str(scratch).encode()
                in process.read_bytes() + (process.parent / "cmdline").read_bytes()
            ):
                found.append((process.parent / "cmdline").read_bytes().decode())
        except OSError:
            continue  # gone in the meantime
    return found


def until(holds: Callable[[], bool], seconds: float = 60) -> bool:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def test_a_killed_run_leaves_nothing_running_and_loses_nothing(
    tmp_path: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(scratch))
    chance, journal = random.Random(7), tmp_path / "r" / FILE
    with FaultyEndpoint(Plan(answers=coder, latency=0.05)) as endpoint:
        for _ in range(KILLS):
            lines = journal.read_bytes().count(b"\n") if journal.exists() else 0
            child = subprocess.Popen(
                command(endpoint, tmp_path),
                env=environment() | {"TMPDIR": str(scratch)},
                stdout=subprocess.DEVNULL,
            )
            wait_for_records(journal, lines + chance.randrange(3))
            time.sleep(chance.random())
            child.send_signal(signal.SIGKILL)
            child.wait()
            assert until(lambda: not left_behind(scratch)), left_behind(scratch)
        resumed = finish(command(endpoint, tmp_path))
    assert until(lambda: not left_behind(scratch)), left_behind(scratch)
    with FaultyEndpoint(Plan(answers=coder)) as endpoint:
        assert numbers(resumed) == numbers(finish(command(endpoint, tmp_path / "whole")))
    keys = [(record.id, record.arm) for record in Records(tmp_path / "r")]
    assert len(keys) == len(set(keys)) == 2 * SIZE
    used = [record for record in Records(tmp_path / "r") if record.arm == "python"]
    assert all(record.reply.text == "So the answer is 42." for record in used)
