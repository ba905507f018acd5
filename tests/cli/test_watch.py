"""``keju watch``: runs of other processes, followed to their end without touching them."""

from __future__ import annotations

import fcntl
import json
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Keju
from tests.matrix.conftest import Asking
from tests.matrix.conftest import asking as asking
from tests.matrix.conftest import exams as exams
from tests.matrix.conftest import write_plan as write_plan
from tests.support.endpoint import FaultyEndpoint
from tests.support.processes import environment

pytestmark = pytest.mark.slow


def start(*argv: str, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "keju", *argv],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_plan_of_another_process_is_followed_to_its_end(
    keju: Keju, asking: Asking, write_plan: Any, exams: list[str], tmp_path: Path
) -> None:
    with FaultyEndpoint(asking.plan(latency=0.05)) as endpoint:
        file = write_plan(
            plan="p", models=["good", "poor"], datasets=exams[:2], api_url=endpoint.url
        )
        child = start("eval", "-c", file, "--eval-batch-size", "4", folder=tmp_path)
        while not keju("watch", "--once", "--json").json["running"]:
            assert child.poll() is None, child.communicate()
            time.sleep(0.05)
        look = keju("watch", "p", "--once", "--json").json
        states = {line["run"]: line["state"] for line in look["runs"]}
        assert len(states) == 4
        assert set(states.values()) <= {"running", "waiting", "complete"}
        assert states["p--poor--east"] == "waiting"
        followed = keju("watch", "p", "--json")
        _, err = child.communicate(timeout=60)
        assert child.returncode == 0, err
    assert followed.code == 0, followed.out
    lines = {line["run"]: line for line in followed.json["runs"]}
    assert {line["state"] for line in lines.values()} == {"complete"}
    assert lines["p--poor--north"]["done"] == lines["p--poor--north"]["total"] == 40
    assert lines["p--poor--north"]["score"] == 0.25
    low, high = lines["p--poor--north"]["ci95"]
    assert low < 0.25 < high
    assert (lines["p--good--north"]["model"], lines["p--good--north"]["exam"]) == ("good", "north")
    before = snapshot(tmp_path / "runs")
    output = keju("watch", "p")
    assert output.code == 0
    assert "p--good--east" in output.out
    assert "4 of 4 runs over, 160/160 answers" in output.out
    assert snapshot(tmp_path / "runs") == before, "nothing is written"
    assert not {"oldest", "pause", "why", "was_complete"} & {*lines["p--good--east"]}, (
        "nobody can know"
    )
    shutil.rmtree(tmp_path / "runs/p--poor--east")
    assert "3 of 4 runs over, 120/160 answers" in keju("watch", "p", "--once").out
    shutil.rmtree(tmp_path / "runs/p--good--east")  # how large the exam is stands nowhere now
    assert "2 of 4 runs over, 80 of at least 80 answers" in keju("watch", "p", "--once").out


def test_a_run_with_several_exams_that_is_killed(
    keju: Keju,
    asking: Asking,
    exams: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("keju.viewer.run_index.STILL_FRESH", 0.0)
    with FaultyEndpoint(asking.plan(latency=0.1)) as endpoint:
        words = ["eval", "-m", "good", "--api-url", endpoint.url, "--run-id", "r", "-q"]
        words += ["--eval-batch-size", "2", "--datasets", *exams[:2]]
        child = start(*words, folder=tmp_path)
        while True:
            look = keju("watch", "r", "--once", "--json")
            if look.code == 0 and any(line["done"] for line in look.json["runs"]):
                break
            assert child.poll() is None, child.communicate()
            time.sleep(0.05)
        killing = threading.Timer(1.0, child.kill)
        killing.start()
        followed = keju("watch", "r", "--json")
        child.communicate()
    assert followed.code == 4, "it was followed, and ended incomplete"
    assert {line["state"] for line in followed.json["runs"]} == {"incomplete"}
    assert {line["in_flight"] for line in followed.json["runs"]} == {0}
    later = keju("watch", "r", "--json")
    assert (later.code, later.json["running"]) == (0, 0), "nothing is followed any more"
    assert look.json["running"] == 1
    lines = look.json["runs"]
    assert [line["run"] for line in lines] == ["r", "r"]
    assert [line["exam"] for line in lines] == ["north", "east"]
    assert [line["total"] for line in lines] == [40, 40]
    assert lines[0]["state"] == "running"
    assert lines[0]["in_flight"] <= 2


def test_requests_without_a_reply_are_no_speed(keju: Keju) -> None:
    """A first look knows no more than the books of the session."""
    keju("eval", "-m", "scripted", "--datasets", "demo", "--no-report", "--run-id", "r")
    manifest = Path("runs/r/manifest.json")
    stored = json.loads(manifest.read_text())
    waiting = {"requests": 8, "in_flight": 8, "retries": 0, "seconds": 1.6, "ended": False}
    stored["sessions"][-1] |= waiting
    manifest.write_text(json.dumps(stored | {"complete": False}))
    journal = Path("runs/r/records.jsonl")
    journal.write_text("")
    with journal.open() as locked_journal:
        fcntl.flock(locked_journal, fcntl.LOCK_EX)
        line = keju("watch", "r", "--once", "--json").json["runs"][0]
    assert (line["state"], line["in_flight"]) == ("running", 8)
    assert (line["speed"], line["left"]) == (0.0, None)


def test_what_is_not_there_is_one_line(keju: Keju) -> None:
    ran = keju("watch", "nowhere")
    assert ran.code == 2
    assert len(ran.err.splitlines()) == 1
    Path("runs").mkdir()
    no_runs = keju("watch", "--json")
    assert (no_runs.code, no_runs.json) == (0, {"running": 0, "runs": []})
    assert "no run is active" in keju("watch").out


def test_events_and_watch_agree(keju: Keju, asking: Asking, exams: list[str]) -> None:
    with FaultyEndpoint(asking.plan()) as endpoint:
        words = ("eval", "-m", "poor", "--api-url", endpoint.url, "--run-id", "r", "-q")
        assert keju(*words, "--datasets", exams[0], "--events", "e.jsonl").code == 0
    events = [json.loads(line) for line in Path("e.jsonl").read_text().splitlines()]
    line = keju("watch", "r", "--json").json["runs"][0]
    progress = [event for event in events if event["event"] == "progress"][-1]
    assert line["score"] == progress["exams"][0]["score"]
    assert (line["requests"], line["done"]) == (progress["requests"], progress["done"])
