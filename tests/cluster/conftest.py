"""A cluster of Ray for the tests, and commands that use it, in an environment that has Ray.

``make test-ray`` builds that environment; elsewhere the tests use Ray where it is installed, and
are skipped where it is not.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 120.0
"""Seconds that the tests wait for anything."""


@pytest.fixture(scope="session")
def python() -> str:
    """A Python that has Ray."""
    environment = os.environ.get("KEJU_TEST_RAY")
    if environment:
        return str(Path(environment, "bin", "python"))
    if find_spec("ray") is None:
        pytest.skip("Ray is not installed: run make test-ray")
    return sys.executable


class Ran(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one document on stdout."""
        return json.loads(self.out)


class Keju:
    """Runs commands of Keju in processes of their own, in one folder."""

    def __init__(self, python: str, folder: Path, around: dict[str, str]) -> None:
        self._python = python
        self.folder = folder
        self.around = around

    def start(self, *words: str, **around: str) -> subprocess.Popen[str]:
        """Start a command."""
        return subprocess.Popen(
            [self._python, "-m", "keju", *words],
            cwd=self.folder,
            env=self.around | around,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def finish(self, child: subprocess.Popen[str]) -> Ran:
        """Wait for its end."""
        out, err = child.communicate(timeout=PATIENCE)
        return Ran(child.returncode, out, err)

    def __call__(self, *words: str, **around: str) -> Ran:
        return self.finish(self.start(*words, **around))

    def records(self, run: str) -> int:
        """Lines of a run's journal."""
        journal = self.folder / "runs" / run / "records.jsonl"
        return journal.read_bytes().count(b"\n") if journal.exists() else 0

    def wait_for_records(self, run: str, more_than: int) -> None:
        """Wait until a journal has so many lines."""
        wait_until(lambda: self.records(run) > more_than)


def wait_until(true: Callable[[], bool]) -> None:
    """Wait until something is true."""
    until = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < until, "it took too long"
        time.sleep(0.02)


def clean() -> dict[str, str]:
    """The environment without settings of Keju and of Ray."""
    names = ("KEJU_", "OPENAI_", "ANTHROPIC_", "RAY_")
    environ = {k: v for k, v in os.environ.items() if not k.startswith(names)}
    if cache := os.environ.get("KEJU_CACHE_DIR"):
        environ["KEJU_CACHE_DIR"] = cache
    return environ


class Raylets:
    """The nodes of the cluster, each a process with children."""

    def __init__(
        self, python: str, nodes: int = 3, around: Mapping[str, str] | None = None
    ) -> None:
        """`around` is added to the environment of all nodes, and of commands that join them."""
        self.folder = Path(tempfile.mkdtemp(prefix="kr-", dir="/tmp"))
        (self.folder / "ray").mkdir()
        token = self.folder / "token"
        token.touch(mode=0o600)
        token.write_text(secrets.token_hex(32))
        self.around = clean() | {
            "RAY_TMPDIR": str(self.folder),
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(token),
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
            "RAY_USAGE_STATS_ENABLED": "0",
            **(around or {}),
        }
        script = Path(__file__).with_name("raylets.py")
        errors = (self.folder / "stderr").open("w")
        self._process = subprocess.Popen(
            [python, str(script), str(nodes)],
            env=self.around,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        errors.close()
        try:
            self.cluster_state: dict[str, Any] = self._hear()
        except BaseException:
            self._process.kill()
            self._process.communicate()
            raise

    def _hear(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, (self.folder / "stderr").read_text()
        return json.loads(line)

    @property
    def address(self) -> str:
        """Where drivers join."""
        return str(self.cluster_state["address"])

    def ask(self, word: str) -> Any:
        """Have the process do something."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word}\n")
        self._process.stdin.flush()
        return self._hear()

    def add(self) -> None:
        """Add a node."""
        self.cluster_state = self.ask("add")

    def alive(self) -> list[int]:
        """The raylets that live, the head's apart."""
        return [pid for pid in self.cluster_state["raylets"] if Path(f"/proc/{pid}").exists()]

    def actors(self, of: int | None = None) -> list[int]:
        """The processes of Keju's actors: all, or those of one raylet."""
        raylets = [of] if of else [*self.alive(), self.cluster_state["head"]]
        return [pid for raylet in raylets for pid in children(raylet, "ray::KejuActor")]

    def kill_node(self, raylet: int) -> None:
        """End a node as a loss of power would."""
        processes = [raylet, *children(raylet)]
        for pid in processes:
            with_signal(pid, signal.SIGKILL)
        wait_until(lambda: not Path(f"/proc/{raylet}").exists())

    def close(self) -> None:
        """End all of it."""
        self._process.communicate(timeout=60)
        shutil.rmtree(self.folder, ignore_errors=True)


def with_signal(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process that may be gone."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def children(parent: int, title: str = "") -> list[int]:
    """The children of a process whose command begins with `title`."""
    pids = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent_pid = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            command = (folder / "cmdline").read_bytes().decode("utf-8", "replace")
        except OSError:
            continue
        if parent_pid == parent and command.startswith(title):
            pids.append(int(folder.name))
    return pids


@pytest.fixture(scope="session")
def raylets(python: str) -> Iterator[Raylets]:
    """A head and three nodes with one CPU each."""
    running = Raylets(python)
    yield running
    running.close()


@pytest.fixture
def keju(python: str, raylets: Raylets, tmp_path: Path) -> Keju:
    """Commands that can join the cluster; it has three nodes again before each test."""
    while len(raylets.alive()) < 3:
        raylets.add()
    return Keju(python, tmp_path, raylets.around)
