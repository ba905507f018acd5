"""The ids of runs without a name, and the run that the same command continues."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from keju.config import TaskConfig
from keju.runs.journal import Journal
from keju.runs.manifest import Manifest
from keju.task import FinishedTask, run_exams
from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import Plan


@pytest.fixture
def plan() -> Plan:
    """How the endpoint answers."""
    return Plan(answers="So the answer is (A).")


def evaluate(endpoint: FaultyEndpoint, folder: Path, **settings: Any) -> FinishedTask:
    usual_settings: dict[str, Any] = {
        "model": "acme/tiny-7b",
        "api_url": endpoint.url,
        "datasets": ["demo"],
        "limit": 2,
        "work_dir": str(folder),
        "retry_interval": 0.01,
        "attempts": 1,
    }
    return run_exams(TaskConfig(**(usual_settings | settings)))


def leave_unfinished(folder: Path) -> None:
    """Make a complete run look as if it had been killed before its end."""
    manifest = json.loads((folder / "manifest.json").read_bytes())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"complete": False}), "utf-8")
    lines = (folder / "records.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "records.jsonl").write_bytes(b"".join(lines[: len(lines) // 2]))


def test_an_id_is_short_and_a_complete_run_is_never_taken_again(
    endpoint: FaultyEndpoint, tmp_path: Path
) -> None:
    names = [evaluate(endpoint, tmp_path).folder.name for _ in range(3)]
    assert names == ["demo-tiny-7b", "demo-tiny-7b-2", "demo-tiny-7b-3"]


def test_the_same_command_continues_its_unfinished_run(
    endpoint: FaultyEndpoint, tmp_path: Path
) -> None:
    folder = evaluate(endpoint, tmp_path).folder
    total = endpoint.stats.answered
    leave_unfinished(folder)
    finished = evaluate(endpoint, tmp_path)
    assert finished.folder == folder
    assert Manifest.read(folder).complete
    assert 0 < endpoint.stats.answered - total < total


def test_another_pace_continues_and_other_questions_do_not(
    endpoint: FaultyEndpoint, tmp_path: Path
) -> None:
    folder = evaluate(endpoint, tmp_path).folder
    leave_unfinished(folder)
    assert evaluate(endpoint, tmp_path, limit=3).folder.name == "demo-tiny-7b-2"
    assert not Manifest.read(folder).complete
    assert evaluate(endpoint, tmp_path, eval_batch_size=2).folder == folder
    assert Manifest.read(folder).complete


def test_a_named_run_keeps_its_meaning(endpoint: FaultyEndpoint, tmp_path: Path) -> None:
    leave_unfinished(evaluate(endpoint, tmp_path).folder)
    assert evaluate(endpoint, tmp_path, run_id="mine").folder.name == "mine"
    assert evaluate(endpoint, tmp_path, run_id="mine").folder.name == "mine"


def test_an_unfinished_run_of_another_process_is_not_taken(
    endpoint: FaultyEndpoint, tmp_path: Path
) -> None:
    folder = evaluate(endpoint, tmp_path).folder
    leave_unfinished(folder)
    with Journal(folder):
        assert evaluate(endpoint, tmp_path).folder.name == "demo-tiny-7b-2"
    assert evaluate(endpoint, tmp_path).folder == folder


def test_processes_at_once_never_get_one_folder(tmp_path: Path) -> None:
    words = ["eval", "-m", "scripted", "--datasets", "demo", "--limit", "2", "-q", "--json"]
    command = [sys.executable, "-m", "keju", *words, "--work-dir", str(tmp_path)]
    environment = {key: value for key, value in os.environ.items() if key != "KEJU_WORK_DIR"}
    processes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) for _ in range(4)
    ]
    outputs = [process.communicate(timeout=120)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * 4
    runs = {json.loads(output)["run"] for output in outputs}
    assert runs == {"demo-scripted", *(f"demo-scripted-{number}" for number in (2, 3, 4))}
