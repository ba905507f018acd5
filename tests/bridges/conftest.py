"""The bridges run in virtual environments of their own, which ``make test-bridges`` builds."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.endpoint import FaultyEndpoint

CACHE = "KEJU_TEST_BRIDGES"
REPOSITORY = Path(__file__).resolve().parents[2]
KEY = "bridge-key-1234"
VARIABLES = {"KEJU_TEST_KEY": KEY}
MODEL = "m"


class Ran(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    """Both streams, in the order in which they were written."""
    folder: Path
    """Where it put its results."""

    def traces(self) -> dict[str, dict[str, Any]]:
        """The traces of a run of verifiers 0.4 by the id of their question."""
        (path,) = self.folder.rglob("traces.jsonl")
        episodes = map(json.loads, path.read_text("utf-8").splitlines())
        traces = [trace for episode in episodes for trace in episode["traces"]]
        return {trace["task"]["data"]["id"]: trace for trace in traces}

    def rows(self) -> dict[str, dict[str, Any]]:
        """The rollouts of a run of verifiers 0.3 by the id of their question."""
        (path,) = self.folder.rglob("results.jsonl")
        rows = map(json.loads, path.read_text("utf-8").splitlines())
        return {row["info"]["id"]: row for row in rows}


Command = Callable[..., Ran]


def environment_of(version: str) -> Path:
    """The folder of commands of one version's environment; skips the test where it is missing."""
    cache = os.environ.get(CACHE)
    if not cache:
        pytest.skip(f"{CACHE} is not set: run 'make test-bridges' to test against verifiers")
    commands = Path(cache).expanduser() / f"verifiers-{version}" / "bin"
    if not (commands / "vf-eval").exists():
        pytest.skip(f"no verifiers {version} in {commands}: run 'make test-bridges'")
    return commands


def run(command: Path, arguments: list[str], home: Path, **variables: str) -> Ran:
    """Run a command in an empty home with this checkout of Keju, away from other settings."""
    home.mkdir(exist_ok=True)
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": str(REPOSITORY / "src")}
    process = subprocess.run(
        [str(command), *arguments],
        cwd=home,
        env=environ | VARIABLES | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    return Ran(process.returncode, process.stdout, home / "out")


@pytest.fixture
def vf_eval(tmp_path: Path) -> Command:
    """Run ``vf-eval ENV ARGUMENTS...`` of verifiers 0.4 against an endpoint."""
    commands = environment_of("0.4")

    def call(env: str, endpoint: FaultyEndpoint, *arguments: str, **variables: str) -> Ran:
        client = ["--client.base-url", endpoint.url, "--client.api-key-var", "KEJU_TEST_KEY"]
        fixed = ["-m", MODEL, *client, "--no-push", "--no-rich", "-o", "out"]
        return run(commands / "vf-eval", [env, *fixed, *arguments], tmp_path / "vf", **variables)

    return call


@pytest.fixture
def old_vf_eval(tmp_path: Path) -> Command:
    """Run ``vf-eval ENV ARGUMENTS...`` of verifiers 0.3 against an endpoint."""
    commands = environment_of("0.3")

    def call(env: str, endpoint: FaultyEndpoint, *arguments: str, **variables: str) -> Ran:
        client = ["-b", endpoint.url, "-k", "KEJU_TEST_KEY"]
        fixed = ["-m", MODEL, *client, "-n", "-1", "-r", "1", "-s", "-d", "-A", "-o", "out"]
        return run(commands / "vf-eval", [env, *fixed, *arguments], tmp_path / "vf", **variables)

    return call
