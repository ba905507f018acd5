"""The endpoints of a round: processes that are given orders, killed, and started again."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from tests.support.replies import Raw

from perf.measure import ROOT
from perf.soak.case import environment
from perf.soak.ledger import Entries
from perf.soak.witness import FAULTS, Order

NOISE: Final = 0.03
"""Share of attempts that fail without an order."""
ODD: Final = ("status", "refusal", "reply", "framing", "close", "abort")
"""The odd replies of `perf.soak.wire` that end at once and may pass."""
LARGEST: Final = 100_000
"""Bytes of the largest of them: the soak is about moments, not sizes."""


def odd_replies() -> list[Raw]:
    """Replies that no client can use, of all kinds."""
    from perf.soak.wire import modes

    return [
        mode.raw
        for mode in modes()
        if mode.name.startswith(ODD) and mode.fate == "retry" and len(mode.raw.data) < LARGEST
    ]


def some_order(chance: random.Random, kinds: Sequence[str] = FAULTS) -> Order:
    """A fault for a while: long enough to take an endpoint out, short enough to see it back."""
    kind = chance.choice(kinds)
    requests = chance.randrange(1, 4) if kind == "stall" else chance.randrange(2, 16)
    return Order(kind, requests, 0.2 + chance.random() * 1.3)


class Post:
    """One endpoint with a ledger; it keeps its port and its ledger through all its lives."""

    def __init__(self, folder: Path, name: str, *options: str) -> None:
        self.ledger, self._orders = folder / f"{name}.ledger", folder / f"{name}.orders"
        self.words = [sys.executable, "-m", "perf.soak.witness"]
        self.words += ["--ledger", str(self.ledger), "--orders", str(self._orders), *options]
        self._process: subprocess.Popen[str] | None = None
        self._port = 0
        self.url = ""
        self.deaths = 0
        """How often it was killed."""

    def start(self) -> None:
        """Listen, at the same port as before."""
        if self._process is not None:
            return
        words = [*self.words, "--port", str(self._port)]
        self._process = subprocess.Popen(
            words, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        address = json.loads(self._process.stdout.readline())
        self.url, self._port = address["url"], address["port"]

    def kill(self) -> None:
        """End it as a crash would."""
        if self._process is not None:
            self.deaths += 1
            self.end()

    def end(self) -> None:
        """Let it go."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def order(self, order: Order) -> None:
        """Have it misbehave for a while; one that is dead does not hear."""
        with self._orders.open("a") as orders:
            orders.write(json.dumps(asdict(order)) + "\n")

    def entries(self) -> Entries:
        """What it has written down."""
        return Entries(self.ledger)
