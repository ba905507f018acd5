"""Runs with more requests in flight than the system allows open files."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import Plan

IN_FLIGHT = 300
FEW = 256


@pytest.mark.parametrize(("hard", "is_told"), [(FEW, True), (4096, False)])
def test_a_run_with_more_requests_than_open_files_ends_well(
    tmp_path: Path, hard: int, is_told: bool
) -> None:
    """The soft limit is raised; where the hard limit is too low, fewer requests are in flight."""
    settings = {"demo": {"size": 400, "subset_list": ["boolean_expressions"]}}
    with FaultyEndpoint(Plan(answers="So the answer is (A).", latency=3.0)) as endpoint:
        words = ["eval", "--model", "m", "--api-url", endpoint.url, "--datasets", "demo"]
        words += ["--dataset-args", json.dumps(settings), "--work-dir", str(tmp_path)]
        words += ["--run-id", "r", "--eval-batch-size", str(IN_FLIGHT), "--quiet"]
        process = subprocess.run(
            [sys.executable, "-m", "keju", *words],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (FEW, hard)),
        )
    assert process.returncode == 0, process.stderr
    assert process.stderr.count("open files") == is_told
    lines = (tmp_path / "r" / "records.jsonl").read_text().splitlines()
    assert len(lines) == 400
    assert all("error" not in json.loads(line)["reply"] for line in lines)
    most_in_flight = endpoint.stats.max_in_flight
    assert most_in_flight < FEW if is_told else most_in_flight > FEW
