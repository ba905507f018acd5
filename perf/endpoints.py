"""Four endpoints of different speeds: prefixes stay together, no endpoint idles, one may die."""

from __future__ import annotations

import heapq
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from perf.exam import bbh
from perf.measure import ROOT, Row, in_child

LATENCIES = (0.2, 0.4, 0.8, 1.6)
"""Seconds that each endpoint takes for a reply."""
SLOTS = 8
QUESTIONS = 27 * 60
ROUNDS = 3
DIES = 1
"""The endpoint that is killed when a quarter of the replies are there, and returns."""
DEAD = 6.0
"""Seconds until it listens again."""
DIGITS = "0123456789"
LIMIT, AFFINITY = 1.1, 0.95
MANY = 20
"""Prefixes that can be shared out; one of six is more than a slow endpoint's part of the work."""


class Outage(NamedTuple):
    """When an endpoint was not there, in seconds from the start of a run."""

    place: int
    since: float
    until: float


def measure() -> Iterator[Row]:
    """The worst of some calm runs, and a run in which an endpoint dies and returns."""
    exam = bbh()
    calm = [in_child(evaluate, settings=exam.settings, stormy=False).value for _ in range(ROUNDS)]
    affinity = min(each["affinity"] for each in calm)
    yield Row(
        f"endpoints: {exam.title}, questions where most of their prefix went",
        f"{affinity:.1%}",
        f"at least {AFFINITY:.0%}, of {MANY} prefixes on",
        affinity / AFFINITY,
        affinity >= AFFINITY if calm[0]["prefixes"] >= MANY else None,
    )
    yield _time("four, calm", max(calm, key=lambda each: each["seconds"] / each["ideal"]))
    storm = in_child(evaluate, settings=exam.settings, stormy=True).value
    yield _time(f"one dies for {storm['dead']:.1f} s", storm)
    done, errors = storm["records"], storm["errors"]
    yield Row(
        "endpoints: one dies, replies; asked again elsewhere; errors",
        f"{done}; {storm['moved']}; {errors}",
        f"{QUESTIONS}; any; 0",
        ok=(done, errors) == (QUESTIONS, 0),
    )


def _time(what: str, taken: dict[str, float]) -> Row:
    ratio = taken["seconds"] / taken["ideal"]
    limit = f"{LIMIT:g}x of {taken['ideal']:.1f} s ideal"
    return Row(f"endpoints: {what}", f"{taken['seconds']:.1f} s", limit, ratio, ratio <= LIMIT)


def ideal_seconds(outage: Outage | None = None) -> float:
    """When the last reply comes if each question goes to the slot that answers it first.

    What is in flight at an endpoint that dies is asked again, and its slots are back when it is.
    """
    slots = [(each, each, place) for place, each in enumerate(LATENCIES) for _ in range(SLOTS)]
    heapq.heapify(slots)
    end, answered = 0.0, 0
    while answered < QUESTIONS:
        end, each, place = heapq.heappop(slots)
        if outage and place == outage.place and end > outage.since and end - each < outage.until:
            heapq.heappush(slots, (outage.until + each, each, place))
            continue
        heapq.heappush(slots, (end + each, each, place))
        answered += 1
    return end


class Endpoints:
    """Endpoints in processes of their own."""

    def __init__(self) -> None:
        self._processes = [self._start(place) for place in range(len(LATENCIES))]
        told = [json.loads((each.stdout or sys.stdin).readline()) for each in self._processes]
        self.urls = [each["url"] for each in told]
        self._ports = [each["port"] for each in told]

    def _start(self, place: int, port: int = 0) -> subprocess.Popen[str]:
        words = ["--port", str(port), "--latency", str(LATENCIES[place]), "--text", "(A)."]
        command = [sys.executable, "-m", "tests.support.endpoint", *words]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)

    def die_and_return(self, place: int, journal: Path, times: list[float]) -> None:
        """Kill one when a quarter of the replies are there, and start it again at its address."""
        while not journal.exists() or journal.read_bytes().count(b"\n") < QUESTIONS / 4:
            time.sleep(0.05)
        self._processes[place].kill()
        self._processes[place].wait()
        times.append(time.time())
        time.sleep(DEAD)
        self._processes[place] = back = self._start(place, self._ports[place])
        assert back.stdout is not None
        back.stdout.readline()
        times.append(time.time())

    def end(self) -> None:
        """End all of them."""
        for process in self._processes:
            process.kill()
            process.wait()


@contextmanager
def running() -> Iterator[Endpoints]:
    """The endpoints, while it is open."""
    endpoints = Endpoints()
    try:
        yield endpoints
    finally:
        endpoints.end()


def evaluate(settings: dict[str, Any], stormy: bool) -> dict[str, float]:
    """One run, and what became of it."""
    from keju.config import TaskConfig
    from keju.runs.journal import FILE, Records
    from keju.task import run_exams

    times: list[float] = []
    with running() as endpoints, tempfile.TemporaryDirectory() as folder:
        own: dict[str, Any] = {"model": "m", "api_url": endpoints.urls, "work_dir": folder}
        own |= {"run_id": "r", "total": QUESTIONS, "eval_batch_size": SLOTS}
        journal = Path(folder, "r", FILE)
        if stormy:
            arguments = (DIES, journal, times)
            threading.Thread(target=endpoints.die_and_return, args=arguments).start()
        finished = run_exams(TaskConfig(**settings | own), report=False)
        (entry,) = finished.results.benchmarks
        manifest = json.loads(Path(folder, "r", "manifest.json").read_text())
        records = list(Records(Path(folder, "r")))
    places: dict[str, Counter[str]] = defaultdict(Counter)
    for record in records:
        places[record.id.rstrip(DIGITS)][record.endpoint] += 1
    started = min(record.at for record in records) - min(LATENCIES)
    outage = Outage(DIES, *(each - started for each in times)) if stormy else None
    return {
        "seconds": manifest["sessions"][-1]["seconds"],
        "ideal": ideal_seconds(outage),
        "dead": outage.until - outage.since if outage else 0.0,
        "records": len(records),
        "prefixes": len(places),
        "errors": entry.outcomes["error"],
        "moved": sum(each.moved for each in finished.results.endpoints),
        "affinity": sum(max(own.values()) for own in places.values()) / len(records),
    }
