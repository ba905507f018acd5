"""``--events``: what a run tells programs while it goes on, and that nobody can stop it thereby."""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from keju.interop.watchers import stream
from keju.interop.watchers.events import EVENTS
from tests.cli.conftest import Keju
from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import Plan

KEY = "sk-a-key-that-nobody-sees"
SECRET_REPLY = "Zeppelin. The answer is (A)."


@pytest.fixture
def endpoint() -> Iterator[FaultyEndpoint]:
    plan = Plan(key=KEY, answers=SECRET_REPLY, faults={"500": 0.3}, first_faults=("500",))
    with FaultyEndpoint(plan) as running:
        yield running


def task(endpoint: FaultyEndpoint, *more: str) -> tuple[str, ...]:
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
        *more,
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
    told = lines(text)
    kinds = Counter(each["event"] for each in told)
    assert {each["v"] for each in told} == {1}
    assert {each["run"] for each in told} == {"r"}
    assert [told[0]["event"], told[-1]["event"]] == ["session_started", "run_finished"]
    assert told[0]["endpoints"] == [endpoint.url]
    n = ran.json["benchmarks"][0]["n"]
    samples = [each for each in told if each["event"] == "sample"]
    assert len({(each["exam"], each["id"], each["epoch"]) for each in samples}) == len(samples) == n
    outcomes = Counter(each["outcome"] for each in samples)
    assert outcomes == +Counter(ran.json["benchmarks"][0]["outcomes"])
    # Each prompt met one fault at least; the preflight is no question, and no event.
    faults = Counter(each["status"] for each in told if each["event"] == "fault")
    assert faults[500] == sum(each["faults"].count("server") for each in samples) > n
    assert sum(each["requests"] for each in samples) == n + faults.total()
    last = [each for each in told if each["event"] == "progress"][-1]
    assert (last["done"], last["total"], last["requests"]) == (n, n, n + faults.total())
    assert last["cost"] == pytest.approx(
        (last["input_tokens"] + 2 * last["output_tokens"]) / 1e6, rel=1e-6
    )
    assert kinds["session_ended"] == 1
    assert told[-1]["complete"] is True
    headline = ran.json["benchmarks"][0]["metrics"]["accuracy"]
    assert told[-1]["headlines"][0]["value"] == headline["value"]
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
    told = lines(file.read_text())
    ended = next(each for each in told if each["event"] == "session_ended")
    assert (ended["stop"], ended["exit_code"]) == ("budget_of_requests", 4)
    assert told[-1]["complete"] is False
    with file.open("a") as torn:
        torn.write('{"v":1,"event":"sam')  # as a full disk leaves it
    assert keju(*words).code == 0
    whole = file.read_text().splitlines()
    assert whole[len(told)] == '{"v":1,"event":"sam'
    later = lines("\n".join(whole[len(told) + 1 :]))
    assert later[0]["known"] == ended["done"]
    assert sum(each["event"] == "sample" for each in later) == later[0]["total"] - ended["done"]


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
    told = lines(read[0])
    assert [told[0]["event"], told[-1]["event"]] == ["session_started", "run_finished"]


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
