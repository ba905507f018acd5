"""What a part of the soak is made of: cases, each of which says what went wrong, or nothing.

A part is a module of this package with a function ``cases()``, and ``summary()`` if it has more to
tell than how many of them went wrong; its name stands in `PARTS`. The tests run a seeded tenth of
every part, ``make soak`` all of it.
"""

from __future__ import annotations

import importlib
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from perf.measure import ROOT

PARTS = ("faults", "inputs", "kills", "episodes", "hostile", "outbreaks")
LONGEST = 120.0
"""Seconds after which a command hangs; none of them needs a tenth of it on a busy machine."""
INTERNAL_ERROR, HUNG = 70, -1


@dataclass(frozen=True)
class Case:
    """One attack."""

    name: str
    """What is done, in a few words: no two cases of a part share it."""
    attack: Callable[[Path], str]
    """Does it, in an empty folder of its own; returns what went wrong, or an empty text."""


class CommandResult(NamedTuple):
    """How a command ended."""

    code: int
    """Its exit code, or `HUNG`."""
    out: str
    err: str
    peak: int = 0
    """The most memory that it had, in KiB; 0 if that was not measured."""

    @property
    def broken(self) -> str:
        """What no command may ever do, whatever is done to it; empty if it did none of it."""
        last_line = self.err.strip().rpartition("\n")[2]
        if self.code == HUNG:
            return f"it hangs: {last_line}"
        if self.code == INTERNAL_ERROR or "Traceback" in self.err:
            return f"internal error: {self.err[self.err.find('Traceback') :].strip() or last_line}"
        return ""


def environment() -> dict[str, str]:
    """The environment of a command, without the settings of whoever runs the soak."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("KEJU_", "OPENAI_"))}
    return clean | {"PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))}


def keju(folder: Path, *argv: str, seconds: float = LONGEST) -> CommandResult:
    """Run ``keju ARGV...`` in a folder, as a process of its own."""
    words = [sys.executable, "-m", "keju", *argv]
    try:
        ran = subprocess.run(
            words, cwd=folder, env=environment(), capture_output=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired as late:
        return CommandResult(HUNG, "", (late.stderr or b"").decode("utf-8", "replace"))
    out, err = (stream.decode("utf-8", "replace") for stream in (ran.stdout, ran.stderr))
    return CommandResult(ran.returncode, out, err)


def cases_of(part: str, share: float = 1.0, seed: int = 0) -> list[Case]:
    """The cases of a part, or a seeded share of them, in their order."""
    cases: Sequence[Case] = importlib.import_module(f"perf.soak.{part}").cases()
    count = max(1, round(share * len(cases)))
    return [cases[i] for i in sorted(random.Random(seed).sample(range(len(cases)), count))]


def summary_of(part: str) -> str:
    """Return what a part adds to its summary line, from its function ``summary`` if it has one."""
    module = importlib.import_module(f"perf.soak.{part}")
    return f" ({module.summary()})" if hasattr(module, "summary") else ""


def problems(cases: Sequence[Case], folder: Path, workers: int = 2) -> Iterator[str]:
    """Run the cases, a few at a time; yield a line for each that went wrong."""
    from perf.soak.zygote import end_all

    def attack(number: int) -> str:
        place = folder / str(number)
        place.mkdir()
        problem = cases[number].attack(place)
        return f"{cases[number].name}: {problem}" if problem else ""

    try:
        with ThreadPoolExecutor(workers) as pool:
            yield from filter(None, pool.map(attack, range(len(cases))))
    finally:
        end_all()
