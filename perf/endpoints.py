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
    affinity = min(run["affinity"] for run in calm)
    yield Row(
        f"endpoints: {exam.title}, questions where most of their prefix went",
        f"{affinity:.1%}",
        f"at least {AFFINITY:.0%}, of {MANY} prefixes on",
        affinity / AFFINITY,
        affinity >= AFFINITY if calm[0]["prefixes"] >= MANY else None,
    )
    yield _time("four, calm", max(calm, key=lambda run: run["seconds"] / run["ideal"]))
    storm = in_child(evaluate, settings=exam.settings, stormy=True).value
    yield _time(f"one dies for {storm['dead']:.1f} s", storm)
    answered, errors = storm["records"], storm["errors"]
    yield Row(
        "endpoints: one dies, replies; asked again elsewhere; errors",
        f"{answered}; {storm['moved']}; {errors}",
        f"{QUESTIONS}; any; 0",
        ok=(answered, errors) == (QUESTIONS, 0),
    )


def _time(title: str, timing: dict[str, float]) -> Row:
    ratio = timing["seconds"] / timing["ideal"]
    limit = f"{LIMIT:g}x of {timing['ideal']:.1f} s ideal"
    return Row(f"endpoints: {title}", f"{timing['seconds']:.1f} s", limit, ratio, ratio <= LIMIT)


def ideal_seconds(outage: Outage | None = None) -> float:
    """When the last reply comes if each question goes to the slot that answers it first.

    What is in flight at an endpoint that dies is asked again, and its slots are back when it is.
    """
    slots = [
        (latency, latency, place) for place, latency in enumerate(LATENCIES) for _ in range(SLOTS)
    ]
    heapq.heapify(slots)
    end, answered = 0.0, 0
    while answered < QUESTIONS:
        end, latency, place = heapq.heappop(slots)
        if outage and place == outage.place and end > outage.since and end - latency < outage.until:
            heapq.heappush(slots, (outage.until + latency, latency, place))
            continue
        heapq.heappush(slots, (end + latency, latency, place))
        answered += 1
    return end


class Endpoints:
    """Endpoints in processes of their own."""

    def __init__(self) -> None:
        self._processes = [self._start(place) for place in range(len(LATENCIES))]
        greetings = [
            json.loads((process.stdout or sys.stdin).readline()) for process in self._processes
        ]
        self.urls = [process["url"] for process in greetings]
        self._ports = [process["port"] for process in greetings]

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
        run_settings: dict[str, Any] = {"model": "m", "api_url": endpoints.urls, "work_dir": folder}
        run_settings |= {"run_id": "r", "total": QUESTIONS, "eval_batch_size": SLOTS}
        journal = Path(folder, "r", FILE)
        if stormy:
            arguments = (DIES, journal, times)
            threading.Thread(target=endpoints.die_and_return, args=arguments).start()
        finished = run_exams(TaskConfig(**settings | run_settings), report=False)
        (entry,) = finished.results.benchmarks
        manifest = json.loads(Path(folder, "r", "manifest.json").read_text())
        records = list(Records(Path(folder, "r")))
    places: dict[str, Counter[str]] = defaultdict(Counter)
    for record in records:
        places[record.id.rstrip(DIGITS)][record.endpoint] += 1
    started = min(record.at for record in records) - min(LATENCIES)
    outage = Outage(DIES, *(moment - started for moment in times)) if stormy else None
    return {
        "seconds": manifest["sessions"][-1]["seconds"],
        "ideal": ideal_seconds(outage),
        "dead": outage.until - outage.since if outage else 0.0,
        "records": len(records),
        "prefixes": len(places),
        "errors": entry.outcomes["error"],
        "moved": sum(endpoint.moved for endpoint in finished.results.endpoints),
        "affinity": sum(max(run_settings.values()) for run_settings in places.values())
        / len(records),
    }
