"""Samples a second: by one driver alone, with actors of Ray, by several drivers with a part each.

The endpoint answers every call after 50 ms, in a process of its own. Rates and processor time are
those between a tenth and nine tenths of a run, so that neither the start of a cluster nor the
last replies count.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

from perf.measure import ROOT, NotMeasured, Row, cpu, environment_of_children
from perf.nginx import REPLY

LATENCY = 0.05
QUESTIONS = 6 * 1500
IN_FLIGHT = (64, 512)
ACTORS = (1, 2, 4)
DRIVERS = 2
ROUNDS = 3
"""Of each figure the best round counts: a busy machine only ever takes away."""
H200 = 371.0
"""Label questions a second of a 7B shape on one H200; see docs/performance.md."""
RAY = "KEJU_PERF_RAY"
"""The environment variable that names an environment with Ray, as ``make test-ray`` builds it."""
_TICKS = os.sysconf("SC_CLK_TCK")


class Pace(NamedTuple):
    """What one driver did in the middle of its run."""

    rate: float
    """Samples a second."""
    driver: float
    """Seconds of processor time a sample, of the driver alone."""
    actors: float
    """The same of its actors together."""


def measure() -> Iterator[Row]:
    """A row for each number in flight and each way to ask."""
    python = Path(os.environ.get(RAY, Path.home() / ".cache/keju-bridges/ray"), "bin", "python")
    paces: list[Pace] = []
    with slow_endpoint() as url:
        for in_flight in IN_FLIGHT:
            yield _row("plain", in_flight, best(Path(sys.executable), url, in_flight))
            title = f"plain, {DRIVERS} drivers with a part each"
            yield _row(
                title, in_flight, best(Path(sys.executable), url, in_flight, drivers=DRIVERS)
            )
            for actors in ACTORS if python.is_file() else ():
                paces.append(best(python, url, in_flight, actors=actors))
                yield _row(f"Ray, actors: {actors}", in_flight, paces[-1])
    if not paces:
        raise NotMeasured(f"Ray: {RAY} names no environment with it; make test-ray builds one")
    cost = min(pace.driver for pace in paces)
    yield Row("scaling: one core of a driver with actors, by calculation", f"{1 / cost:,.0f}/s")
    yield Row(
        f"scaling: H200s that it feeds, {H200:g} label questions/s each, by calculation",
        f"{int(1 / cost / H200)}",
    )


def _row(ways_title: str, in_flight: int, pace: Pace) -> Row:
    ideal = in_flight / LATENCY
    costs = f"{pace.driver * 1e6:.0f} µs driver"
    if pace.actors:
        costs += f", {pace.actors * 1e6:.0f} µs actors"
    title = f"scaling: {ways_title}, {in_flight} in flight"
    return Row(title, f"{pace.rate:,.0f}/s", f"{ideal:,.0f}/s; {costs}", pace.rate / ideal)


def best(python: Path, url: str, in_flight: int, *, actors: int = 0, drivers: int = 1) -> Pace:
    """The best of some rounds; rates of several drivers are added up."""
    rounds = []
    for _ in range(ROUNDS):
        paces = evaluate(python, url, in_flight // drivers, actors=actors, drivers=drivers)
        cost = statistics.mean(pace.driver for pace in paces)
        rounds.append(Pace(sum(pace.rate for pace in paces), cost, paces[0].actors))
    rates, costs, other_costs = zip(*rounds, strict=True)
    return Pace(max(rates), min(costs), min(other_costs))


def evaluate(
    python: Path, url: str, in_flight: int, *, actors: int = 0, drivers: int = 1
) -> list[Pace]:
    """Sit the exam in one process or in several at once, each with its part."""
    with tempfile.TemporaryDirectory(prefix="ks-", dir="/tmp") as folder:
        children = []
        for part in range(1, drivers + 1):
            answer = Path(folder, f"{part}.json")
            settings: dict[str, Any] = {
                "model": "constant",
                "api_url": url,
                "datasets": ["demo"],
                "dataset_args": {"demo": {"size": QUESTIONS * drivers // 6}},
                "eval_batch_size": in_flight,
                "work_dir": str(Path(folder, "runs")),
                "run_id": f"part-{part}",
            }
            if drivers > 1:
                settings["shard"] = f"{part}/{drivers}"
            if actors:
                settings |= {"executor": "ray", "ray": {"address": "local", "actors": actors}}
            words = ["-m", "perf.child", "perf.scaling:session", json.dumps({"settings": settings})]
            around = {"PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))}
            children.append(
                subprocess.Popen(
                    [python, *words, answer],
                    cwd=ROOT,
                    env=environment_of_children() | around,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                )
            )
        for child in children:
            output, _ = child.communicate()
            if child.returncode:
                raise NotMeasured(output.strip().rpartition("\n")[2])
        return [
            Pace(**json.loads(path.read_text())) for path in sorted(Path(folder).glob("*.json"))
        ]


def session(settings: dict[str, Any]) -> dict[str, float]:
    """Sit the exam; return the pace of the middle."""
    from keju import task
    from keju.config import TaskConfig
    from keju.progress.display import Display, Progress

    looks: list[tuple[float, float, float, int]] = []

    class Clock(Display):
        def update(self, snapshot: Progress) -> None:
            if 0.1 * snapshot.total <= snapshot.done <= 0.9 * snapshot.total:
                looks.append((perf_counter(), cpu(), actors_cpu(), snapshot.done))

    finished = task.run_exams(TaskConfig(**settings), display=Clock(), report=False)
    assert finished.exit_code == 0, finished.message
    start, end = looks[0], looks[-1]
    seconds, driver_seconds, other_seconds, samples = (
        after - before for before, after in zip(start, end, strict=True)
    )
    assert samples, "the run was too short"
    return Pace(samples / seconds, driver_seconds / samples, other_seconds / samples)._asdict()


def actors_cpu() -> float:
    """Seconds of processor time that the actors on this machine have used so far."""
    ticks = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "cmdline").read_bytes().startswith(b"ray::KejuActor"):
                stat_fields = (folder / "stat").read_text().rpartition(")")[2].split()
                ticks += int(stat_fields[11]) + int(stat_fields[12])
        except OSError:
            continue
    return ticks / _TICKS


@contextmanager
def slow_endpoint() -> Iterator[str]:
    """An endpoint in a process of its own; gives the base URL."""
    words = [sys.executable, "-m", "perf.scaling"]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        finally:
            server.kill()


class _Answers(asyncio.Protocol):
    """Answers every whole request on a connection after a while, with one constant reply."""

    body = json.dumps(REPLY).encode()
    reply = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
    data = reply % (len(body), body)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport  # uvloop's are no asyncio.Transport
        self._read = b""

    def data_received(self, data: bytes) -> None:
        self._read += data
        head, gap, body = self._read.partition(b"\r\n\r\n")
        length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
        if gap and len(body) >= int(length or 0):
            self._read = b""
            asyncio.get_running_loop().call_later(LATENCY, self._transport.write, self.data)


def serve() -> None:
    """Print the port and answer until the process is killed."""
    import uvloop

    async def forever() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(_Answers, "127.0.0.1", 0, backlog=4096)
        print(server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()

    uvloop.run(forever())


if __name__ == "__main__":
    serve()
