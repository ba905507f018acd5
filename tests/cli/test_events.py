"""``--events``: what a run tells programs while it goes on, and that nobody can stop it thereby."""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from keju.interop.watchers import stream
from keju.interop.watchers.events import EVENTS
from tests.cli.conftest import Keju
from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import Plan

pytestmark = pytest.mark.slow

KEY = "sk-a-key-that-nobody-sees"
SECRET_REPLY = "Zeppelin. The answer is (A)."


@pytest.fixture
def plan() -> Plan:
    """How the endpoint answers."""
    return Plan(key=KEY, answers=SECRET_REPLY, faults={"500": 0.3}, first_faults=("500",))


def task(endpoint: FaultyEndpoint, *flags: str) -> tuple[str, ...]:
    words = ("eval", "-m", "m", "--api-url", endpoint.url, "--api-key", KEY, "--datasets", "demo")
    return (
        *words,
        "--retry-interval",
        "0.001",
        "--attempts",
        "12",
        "--limit",
        "10",
        "--run-id",
        "r",
        "-q",
        *flags,
    )


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_every_answer_and_every_fault_is_told_once(
    endpoint: FaultyEndpoint, keju: Keju, tmp_path: Path
) -> None:
    file = tmp_path / "events.jsonl"
    ran = keju(*task(endpoint, "--events", str(file), "--price", "input=1,output=2", "--json"))
    assert ran.code == 0, ran.err
    text = file.read_text()
    msgspec.json.decode(b"[" + b",".join(file.read_bytes().splitlines()) + b"]", type=list[EVENTS])
    events = lines(text)
    kinds = Counter(event["event"] for event in events)
    assert {event["v"] for event in events} == {1}
    assert {event["run"] for event in events} == {"r"}
    assert [events[0]["event"], events[-1]["event"]] == ["session_started", "run_finished"]
    assert events[0]["endpoints"] == [endpoint.url]
    n = ran.json["benchmarks"][0]["n"]
    samples = [event for event in events if event["event"] == "sample"]
    assert (
        len({(event["exam"], event["id"], event["epoch"]) for event in samples})
        == len(samples)
        == n
    )
    outcomes = Counter(event["outcome"] for event in samples)
    assert outcomes == +Counter(ran.json["benchmarks"][0]["outcomes"])
    # Each prompt met one fault at least; the preflight is no question, and no event.
    faults = Counter(event["status"] for event in events if event["event"] == "fault")
    assert faults[500] == sum(event["faults"].count("server") for event in samples) > n
    assert sum(event["requests"] for event in samples) == n + faults.total()
    progress = [event for event in events if event["event"] == "progress"][-1]
    assert (progress["done"], progress["total"], progress["requests"]) == (n, n, n + faults.total())
    assert progress["cost"] == pytest.approx(
        (progress["input_tokens"] + 2 * progress["output_tokens"]) / 1e6, rel=1e-6
    )
    assert kinds["session_ended"] == 1
    assert events[-1]["complete"] is True
    headline = ran.json["benchmarks"][0]["metrics"]["accuracy"]
    assert events[-1]["headlines"][0]["value"] == headline["value"]
    assert KEY not in text
    assert "Zeppelin" not in text
    assert "injected" not in text, "what an endpoint says is a text too"
    question = keju("show", "demo", "--json").json["input"][0]["content"]
    assert question[-40:] not in text
    assert "events" not in json.loads((tmp_path / "runs/r/manifest.json").read_text())["config"]


def test_a_run_that_stops_early_says_why_and_a_resumed_one_goes_on_in_the_same_file(
    endpoint: FaultyEndpoint, keju: Keju, tmp_path: Path
) -> None:
    file = tmp_path / "events.jsonl"
    words = task(endpoint, "--events", str(file))
    stopped = keju(*words, "--budget", "requests=20")
    assert stopped.code == 4
    events = lines(file.read_text())
    session_end = next(event for event in events if event["event"] == "session_ended")
    assert (session_end["stop"], session_end["exit_code"]) == ("budget_of_requests", 4)
    assert events[-1]["complete"] is False
    with file.open("a") as torn:
        torn.write('{"v":1,"event":"sam')  # as a full disk leaves it
    assert keju(*words).code == 0
    event_lines = file.read_text().splitlines()
    assert event_lines[len(events)] == '{"v":1,"event":"sam'
    later = lines("\n".join(event_lines[len(events) + 1 :]))
    assert later[0]["known"] == session_end["done"]
    assert (
        sum(event["event"] == "sample" for event in later)
        == later[0]["total"] - session_end["done"]
    )


def test_a_pipe_gets_everything_and_never_holds_the_run_up(
    endpoint: FaultyEndpoint, keju: Keju, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    assert keju(*task(endpoint, "--events", str(pipe))).code == 0
    reader.join(20)
    events = lines(read[0])
    assert [events[0]["event"], events[-1]["event"]] == ["session_started", "run_finished"]


F_SETPIPE_SZ = 1031
"""Linux's number; Python has a name for it since 3.10, but not on every system."""


@pytest.mark.parametrize("reader", ["none", "leaves", "sleeps"])
def test_a_pipe_without_a_good_reader_is_said_once(
    reader: str,
    endpoint: FaultyEndpoint,
    keju: Keju,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody opens it; somebody leaves after a few bytes; somebody opens it and never reads."""
    monkeypatch.setattr(stream, "LAST_WAIT", 0.05)
    monkeypatch.setattr(stream, "MAX_WAITING", 1 << 14)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def leave() -> None:
        with pipe.open("rb", buffering=0) as file:
            file.read(10)

    fd = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK) if reader == "sleeps" else -1
    if fd >= 0:
        fcntl.fcntl(fd, F_SETPIPE_SZ, 4096)
    if reader == "leaves":
        threading.Thread(target=leave).start()
    words = [word for word in task(endpoint, "--events", str(pipe)) if word != "-q"]
    ran = keju(*words, "--repeats", "6")  # more lines than a pipe holds
    assert ran.code == 0
    assert ran.err.count("--events") == 1
    if fd >= 0:
        os.close(fd)


@pytest.mark.parametrize("left_out", ["-q", ""])
def test_a_full_disk_is_said_once_without_progress_too(
    left_out: str, endpoint: FaultyEndpoint, keju: Keju
) -> None:
    words = [word for word in task(endpoint, "--events", "/dev/full") if word != left_out]
    ran = keju(*words)
    assert ran.code == 0
    assert ran.err.count("--events") == 1
    assert "No space left" in ran.err


@pytest.mark.parametrize("place", ["-", "not/there.jsonl", "."])
def test_a_place_that_cannot_be_written_is_refused_before_anybody_is_asked(
    place: str, endpoint: FaultyEndpoint, keju: Keju
) -> None:
    ran = keju(*task(endpoint, "--events", place))
    assert ran.code == 2
    assert len(ran.err.splitlines()) == 1
    assert endpoint.stats.requests == 0
    assert not Path("runs").exists()
