"""Work by all cores: the order of the items, errors at their turn, and nothing lost with a process.

Each case is a process of its own, since one with threads, as pytest's may be, is never forked.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from typing import Any

import pytest

from keju.scores.parallel import THREADS, map_on_all_cores

FORKS = pytest.mark.skipif(not THREADS.is_dir(), reason="nothing is forked here")
HEAD = """
import json, os, signal
from keju.scores.parallel import map_on_all_cores
from keju.errors import DataError, MissingExtra

def twice(item): return 2 * item
parent = os.getpid()
"""


def run_script(script: str, cores: str = "3") -> Any:
    """What a script prints as JSON; `KEJU_CORES` processes may share its work."""
    ran = subprocess.run(
        [sys.executable, "-c", HEAD + script],
        env=os.environ | {"KEJU_CORES": cores},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return json.loads(ran.stdout)


@FORKS
@pytest.mark.parametrize("items", [0, 10, 11, 500])
def test_items_keep_their_order_wherever_they_are_worked_on(items: int) -> None:
    results = run_script(
        "work = lambda sent: (sent, os.getpid() == parent)\n"
        f"print(json.dumps(list(map_on_all_cores(work, range({items}), twice, direct_items=10, batch_size=7))))"
    )
    assert results == [[item, [2 * item, item < 10]] for item in range(items)]


@FORKS
@pytest.mark.parametrize(
    "error", ['DataError("score_no_rows", file="f")', 'MissingExtra("r", "x")']
)
def test_what_is_raised_is_raised_at_the_items_turn(error: str) -> None:
    code, started_items = run_script(
        f"""
def work(sent):
    if sent == 200: raise {error}
    return sent

seen = []
try:
    for item, _ in map_on_all_cores(work, range(500), twice, direct_items=10, batch_size=7):
        seen.append(item)
except {error.partition("(")[0]} as error:
    print(json.dumps([str(error), seen]))
"""
    )
    assert code
    assert 90 <= len(started_items) <= 100
    assert started_items == list(range(len(started_items)))


@FORKS
def test_processes_that_are_killed_lose_nothing() -> None:
    results = run_script(
        """
def work(sent):
    if sent == 100 and os.getpid() != parent: os.kill(os.getpid(), signal.SIGKILL)
    return sent

print(json.dumps(list(map_on_all_cores(work, range(300), twice, direct_items=10, batch_size=7))))
"""
    )
    assert results == [[item, 2 * item] for item in range(300)]


@FORKS
def test_a_reader_of_the_results_that_stops_leaves_no_process() -> None:
    process = run_script(
        """
found = map_on_all_cores(lambda _: os.getpid(), range(10_000), twice, direct_items=1, batch_size=5)
next(found)
_, process = next(found)
found.close()
print(process)
"""
    )
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_beside_other_threads_nothing_is_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEJU_CORES", "3")
    release = threading.Event()
    thread = threading.Thread(target=release.wait)
    thread.start()
    try:
        results = map_on_all_cores(
            lambda _: os.getpid(), range(100), lambda item: item, direct_items=1, batch_size=5
        )
        assert {process for _, process in results} == {os.getpid()}
    finally:
        release.set()
        thread.join()
