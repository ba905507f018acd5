"""Keju in a process of its own: its environment, waiting for records, its end."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any


def environment() -> dict[str, str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("KEJU_", "OPENAI_"))}
    root = Path(__file__).parents[2]
    return clean | {"PYTHONPATH": os.pathsep.join((str(root / "src"), str(root)))}


def finish(argv: list[str]) -> dict[str, Any]:
    done = subprocess.run(argv, capture_output=True, check=True, env=environment())
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def numbers(results: dict[str, Any]) -> Any:
    return [(e["n"], e["metrics"], e["outcomes"], e["subsets"]) for e in results["benchmarks"]]


def wait_for_records(path: Path, more_than: int, child: subprocess.Popen[Any]) -> None:
    """Wait for a journal to grow, or for the end of who writes it: a slow test may come too late."""
    while child.poll() is None:
        if path.exists() and path.read_bytes().count(b"\n") > more_than:
            return
        time.sleep(0.005)
