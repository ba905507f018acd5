"""Rate limiters: real endpoints over loopback that refuse requests, in real time.

Every cell is one command with the default number of attempts. A cell is right if no question ends
in an error and if, once the endpoint accepts requests, at least 0.9 of what it allows is used. All
cells run at once, since they wait most of the time.
"""

from __future__ import annotations

import functools
import json
import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from time import monotonic
from typing import Final, NamedTuple

from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import EndpointRequest, Plan, Raw

from perf.soak.case import keju

STORM: Final = 60.0
IN_FLIGHT: Final = (1, 8, 32, 128)
PAST: Final = format_datetime(datetime(2020, 1, 1, tzinfo=UTC), usegmt=True)
RETRY_AFTER: Final = (None, "0", "1", "5", PAST, "1e9")
SHARE: Final = 0.9
LATENCY: Final = 0.1
LONGEST: Final = 420.0
ANSWER: Final = "So the answer is (A)."

Allows = Callable[[float], bool]


class LimitCell(NamedTuple):
    """One endpoint and how it is asked."""

    name: str
    allows: Allows
    """Decides at a time, counted from the first request, whether a request is accepted."""
    questions: int
    in_flight: int
    retry_after: str | None
    check: Callable[[Traffic], str]
    """Returns what is wrong with the times, or an empty text."""


class Traffic:
    """What an endpoint has seen, in seconds since its first request."""

    def __init__(self) -> None:
        self.accepted: list[float] = []
        self.refused: list[float] = []


def cells() -> Iterator[LimitCell]:
    """Yield all cells."""
    for retry_after in RETRY_AFTER:
        for concurrency in IN_FLIGHT:
            name = (
                f"60 s of 429, Retry-After {'a past date' if retry_after == PAST else retry_after}"
            )
            check = functools.partial(_recovers, storm_start=2.0)
            storm = functools.partial(_outside, 2.0)
            questions = 40 if concurrency == 1 else 60 * concurrency if concurrency < 128 else 4800
            yield LimitCell(
                f"{name}, {concurrency} in flight",
                storm,
                questions,
                concurrency,
                retry_after,
                check,
            )
        check = functools.partial(_recovers, storm_start=0.0)
        storm = functools.partial(_outside, 0.0)
        yield LimitCell(
            f"{name}, 32 in flight, from the first call on", storm, 600, 32, retry_after, check
        )
    for concurrency in IN_FLIGHT:
        yield LimitCell(
            f"60 a minute, {concurrency} in flight",
            _Window(60),
            180,
            concurrency,
            None,
            _fills_windows,
        )
        yield LimitCell(
            f"4 a second, {concurrency} in flight",
            _Bucket(4.0),
            300,
            concurrency,
            None,
            _fills_bucket,
        )
    chance = random.Random(1)
    yield LimitCell(
        "80 % at random, 16 in flight", lambda _: chance.random() < 0.2, 108, 16, "1", _soon
    )


def soak(workers: int = 48) -> int:
    """Run all cells at once and print a line for each; return how many went wrong."""
    from tempfile import TemporaryDirectory

    wrong = 0
    with TemporaryDirectory() as folder, ThreadPoolExecutor(workers) as pool:
        places = [(cell, Path(folder) / str(n)) for n, cell in enumerate(cells())]
        for line in pool.map(lambda pair: _run(*pair), places):
            print(f"  {line}", flush=True)
            wrong += " WRONG " in line
    print(f"limits: {len(places)} cells, {wrong} went wrong", flush=True)
    return wrong


def _run(cell: LimitCell, folder: Path) -> str:
    """Run one cell; return what happened, in one line."""
    folder.mkdir()
    traffic, lock, start = Traffic(), threading.Lock(), [0.0]

    def raw(_: EndpointRequest, _attempt: int) -> Raw | None:
        with lock:
            start[0] = start[0] or monotonic()
            now = monotonic() - start[0]
            accepted = cell.allows(now)
            (traffic.accepted if accepted else traffic.refused).append(now)
        return None if accepted else Raw(data=_refusal(cell.retry_after), then="close")

    settings = {"demo": {"size": cell.questions, "subset_list": ["boolean_expressions"]}}
    with FaultyEndpoint(Plan(answers=ANSWER, raw=raw, latency=LATENCY)) as endpoint:
        words = ["eval", "--model", "m", "--api-url", endpoint.url, "--datasets", "demo"]
        words += ["--dataset-args", json.dumps(settings), "--work-dir", ".", "--run-id", "r"]
        words += ["--eval-batch-size", str(cell.in_flight), "--json", "--quiet"]
        started = monotonic()
        process = keju(folder, *words, seconds=LONGEST)
        duration = monotonic() - started
    problem = process.broken or (
        "" if process.code == 0 else f"exit {process.code}: {process.err[-200:]}"
    )
    if not problem:
        outcomes = json.loads(process.out)["benchmarks"][0]["outcomes"]
        problem = f"{outcomes['error']} errors" if outcomes["error"] else cell.check(traffic)
    figures = f"{duration:.1f} s, {len(traffic.accepted)} accepted, {len(traffic.refused)} refused"
    return f"{cell.name}: {figures}" + (f" WRONG {problem}" if problem else " ok")


def _refusal(retry_after: str | None) -> bytes:
    body = b'{"error": {"message": "Too many requests", "type": "requests"}}'
    retry_header = f"Retry-After: {retry_after}\r\n" if retry_after is not None else ""
    head = f"HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\n{retry_header}"
    return f"{head}Connection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def _outside(storm_start: float, now: float) -> bool:
    return not storm_start <= now < storm_start + STORM


class _Window:
    """Accepts a number of requests in each minute."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._counts: dict[int, int] = {}

    def __call__(self, now: float) -> bool:
        minute = int(now // 60)
        self._counts[minute] = count = self._counts.get(minute, 0) + 1
        return count <= self._limit


class _Bucket:
    """Accepts a number of requests a second; what is not used is kept for a second."""

    def __init__(self, rate: float) -> None:
        self._rate = self._level = rate
        self._at = 0.0

    def __call__(self, now: float) -> bool:
        self._level = min(self._rate, self._level + (now - self._at) * self._rate)
        self._at = now
        if self._level < 1:
            return False
        self._level -= 1
        return True


def _recovers(traffic: Traffic, storm_start: float) -> str:
    over = storm_start + STORM
    late = [at for at in traffic.accepted if at >= over]
    if not late or late[0] - over > 8.0:
        return f"it goes on {late[0] - over if late else 0:.1f} s after the end"
    return ""


def _fills_windows(traffic: Traffic) -> str:
    counts: dict[int, int] = {}
    for at in traffic.accepted:
        counts[int(at // 60)] = counts.get(int(at // 60), 0) + 1
    full_minutes = sorted(counts)[1:-1]
    return (
        "" if all(counts[minute] >= SHARE * 60 for minute in full_minutes) else f"windows {counts}"
    )


def _fills_bucket(traffic: Traffic) -> str:
    late = [at for at in traffic.accepted if at >= 15.0]
    rate = (len(late) - 1) / (late[-1] - late[0])
    return "" if rate >= SHARE * 4.0 else f"{rate:.2f} a second"


def _soon(traffic: Traffic) -> str:
    return "" if traffic.accepted[-1] <= 300 else f"{traffic.accepted[-1]:.0f} s"
