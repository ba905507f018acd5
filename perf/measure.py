"""The ruler: child processes whose processor time, peak memory and findings are read off."""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
CACHE = "KEJU_PERF_CACHE"
"""The environment variable that names the cache folder; Keju itself would refuse it."""


class Row(NamedTuple):
    """One line of the table."""

    title: str
    figure: str
    limit: str = ""
    """The budget or the peer that the figure is held against."""
    ratio: float | None = None
    """The figure as a share or multiple of that."""
    ok: bool | None = None
    """Whether it is within the budget; None if there is none, or nothing was measured."""


class NotMeasured(Exception):
    """Something that a benchmark needs is not there; the message says what."""


class ChildUsage(NamedTuple):
    """What a child process used, and what it had to say."""

    cpu: float
    """Seconds of user and system time, all threads."""
    seconds: float
    value: Any = None


def cpu() -> float:
    """Seconds of processor time that this process has used so far, all threads."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def peak_mb() -> float:
    """The most memory this process has held, in MB; not what its parent held before the exec."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise NotMeasured("the kernel does not tell the peak of a process's memory")


def environment_of_children() -> dict[str, str]:
    """This process's environment without what is meant for the benchmarks alone."""
    return {name: value for name, value in os.environ.items() if not name.startswith("KEJU_PERF_")}


def run(command: Sequence[str | Path], **environment: str) -> ChildUsage:
    """Run a command to its end and read off what it used; its output only shows if it fails."""
    with tempfile.TemporaryFile() as output:
        started = time.perf_counter()
        process = subprocess.Popen(
            list(map(str, command)),
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=ROOT,
            env=environment_of_children() | environment,
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            output.seek(0)
            last_line = output.read().decode(errors="replace").strip().rpartition("\n")[2]
            raise NotMeasured(
                f"{Path(command[0]).name} ended with {process.returncode}: {last_line}"
            )
    return ChildUsage(usage.ru_utime + usage.ru_stime, seconds)


def in_child(function: Callable[..., Any], **arguments: Any) -> ChildUsage:
    """Call a function of a module of this package in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder, "answer.json")
        target = f"{function.__module__}:{function.__name__}"
        usage = run([sys.executable, "-m", "perf.child", target, json.dumps(arguments), answer])
        return usage._replace(value=json.loads(answer.read_text()))


class Sides(NamedTuple):
    """Two sides of a comparison: the median of each, and of the ratios of the rounds."""

    keju: float
    peer: float
    ratio: float


def alternate(
    rounds: int, measure_keju: Callable[[], float], measure_peer: Callable[[], float]
) -> Sides:
    """Measure two sides in turns, so that a busy moment of the machine hits both of them."""
    pairs = [(measure_keju(), measure_peer()) for _ in range(rounds)]
    keju_figures, peer_figures = zip(*pairs, strict=True)
    ratio = statistics.median(keju / peer for keju, peer in pairs)
    return Sides(statistics.median(keju_figures), statistics.median(peer_figures), ratio)


def within(title: str, value: float, limit: float, unit: str) -> Row:
    """A row for a figure that has a budget of its own."""
    return Row(title, f"{value:.3g} {unit}", f"{limit:g} {unit}", value / limit, value <= limit)
