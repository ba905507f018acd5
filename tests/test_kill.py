"""kill -9 at random moments, Ctrl-C once and twice: nothing that was journalled is asked again."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from keju.runs.journal import FILE, Records
from tests.support.endpoint import FaultyEndpoint
from tests.support.processes import environment, finish, numbers, wait_for_records
from tests.support.replies import EndpointRequest, Plan, draw

pytestmark = pytest.mark.slow

IN_FLIGHT = 16
KILLS = 20
SAMPLES = 2000


def answer(asked: EndpointRequest) -> str:
    return f"So the answer is ({'ABCD'[int(draw(asked.text) * 4)]})."


def command(endpoint: FaultyEndpoint, folder: Path, *, samples: int = SAMPLES) -> list[str]:
    settings = {"demo": {"size": samples // 4, "subset_list": KINDS}}
    return [
        *(sys.executable, "-m", "keju", "eval", "--model", "m", "--api-url", endpoint.url),
        *("--datasets", "demo", "--dataset-args", json.dumps(settings), "--json", "--quiet"),
        *("--work-dir", str(folder), "--run-id", "r", "--eval-batch-size", str(IN_FLIGHT)),
    ]


KINDS = ["boolean_expressions", "multistep_arithmetic", "object_counting", "word_sorting"]


def test_twenty_kills_change_no_number_and_repeat_only_what_was_in_flight(tmp_path: Path) -> None:
    chance = random.Random(11)
    journal = tmp_path / "r" / FILE
    with FaultyEndpoint(Plan(answers=answer, latency=0.02)) as endpoint:
        for _ in range(KILLS):
            lines = journal.read_bytes().count(b"\n") if journal.exists() else 0
            child = subprocess.Popen(
                command(endpoint, tmp_path), env=environment(), stdout=subprocess.DEVNULL
            )
            wait_for_records(journal, lines + chance.randrange(60), child)
            time.sleep(chance.random() * 0.05)
            child.send_signal(signal.SIGKILL)
            child.wait()
        interrupted = finish(command(endpoint, tmp_path))
        attempts = endpoint.stats.attempts
        resent = sum(attempts.values()) - SAMPLES
    with FaultyEndpoint(Plan(answers=answer)) as endpoint:
        assert numbers(interrupted) == numbers(finish(command(endpoint, tmp_path / "whole")))
    ids = [record.id for record in Records(tmp_path / "r")]
    assert len(ids) == len(set(ids)) == SAMPLES
    preflights = KILLS + 1
    assert resent - preflights <= KILLS * IN_FLIGHT


def interrupt(endpoint: FaultyEndpoint, folder: Path, times: int) -> tuple[int, str]:
    child = subprocess.Popen(
        command(endpoint, folder, samples=400),
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for_records(folder / "r" / FILE, 20, child)
    for _ in range(times):
        child.send_signal(signal.SIGINT)
        time.sleep(0.1)
    _, told = child.communicate(timeout=30)
    return child.returncode, told


def test_the_first_interrupt_drains_and_saves_what_is_in_flight(tmp_path: Path) -> None:
    with FaultyEndpoint(Plan(answers=answer, latency=0.3)) as endpoint:
        code, told = interrupt(endpoint, tmp_path, 1)
        answered = endpoint.stats.answered
        assert code == 130
        assert "keju eval --config" in told
        assert "--resume" in told
        assert "Traceback" not in told
        assert len(list(Records(tmp_path / "r"))) == answered - 1  # the preflight
        resumed = finish(command(endpoint, tmp_path, samples=400))
    assert resumed["benchmarks"][0]["n"] == 400


def test_the_second_interrupt_stops_at_once_and_keeps_what_was_answered(tmp_path: Path) -> None:
    with FaultyEndpoint(Plan(answers=answer, latency={0.05: 0.9, 20.0: 0.1})) as endpoint:
        code, told = interrupt(endpoint, tmp_path, 2)
    assert code == 130
    assert "--resume" in told
    assert "Traceback" not in told
    assert len(list(Records(tmp_path / "r"))) > 20
