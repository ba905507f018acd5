"""kill -9 and Ctrl-C of a plan: nothing is lost, nothing counts twice, the same command goes on."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from keju.runs.journal import FILE, Records
from tests.matrix.conftest import SIZE, Asking, WritePlan
from tests.support.endpoint import FaultyEndpoint
from tests.support.processes import environment

pytestmark = pytest.mark.slow


def lines(folder: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in folder.glob(f"runs/*/{FILE}"))


def started(file: str, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "keju", "eval", "-c", file, "--json"],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_plan_goes_on_where_it_was_ended(
    number: signal.Signals, asking: Asking, write_plan: WritePlan, exams: list[str], tmp_path: Path
) -> None:
    with (
        FaultyEndpoint(asking.plan(latency=0.02)) as first_endpoint,
        FaultyEndpoint(asking.plan()) as second_endpoint,
    ):
        models: list[Any] = ["good", "poor", {"model": "good-2", "api_url": second_endpoint.url}]
        how: dict[str, Any] = {"plan": "p", "api_url": first_endpoint.url, "eval_batch_size": 4}
        file = write_plan(models=models, datasets=exams[:2], **how)
        for new_lines in (10, 40) if number is signal.SIGKILL else (30,):
            before = lines(tmp_path)
            child = started(file, tmp_path)
            while child.poll() is None and lines(tmp_path) < before + new_lines:
                time.sleep(0.01)
            child.send_signal(number)
            output, messages = child.communicate(timeout=60)
            assert "Traceback" not in messages
            if number is signal.SIGINT:
                assert child.returncode == 130
                assert f"keju eval --config {file}" in messages
                assert not json.loads(output)["complete"]
                assert lines(tmp_path) == sum(asking.questions.values()), (
                    "what was in flight came in"
                )
        output, messages = started(file, tmp_path).communicate(timeout=60)
        document = json.loads(output)
    assert document["complete"], messages
    assert {cell["done"] for cell in document["cells"]} == {SIZE}
    keys: Counter[tuple[str, str]] = Counter()
    for path in tmp_path.glob(f"runs/*/{FILE}"):
        keys.update((path.parent.name, record.id) for record in Records(path.parent))
    assert len(keys) == 6 * SIZE
    assert set(keys.values()) == {1}, "no question has two records"
    resent = sum(asking.questions.values()) - 6 * SIZE
    assert resent <= (2 * 2 * 4 if number is signal.SIGKILL else 0), "only what was in flight"
