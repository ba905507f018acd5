"""Runs with a baseline arm and an arm that can look answers up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from keju.config import TaskConfig
from keju.runs.journal import Records
from keju.task import FinishedTask
from keju.types import Record, Sample
from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import EndpointRequest, draw
from tests.support.tools import calling, results_in

ARMS: list[dict[str, Any]] = [{"name": "baseline"}, {"name": "calc", "tools": ["python"]}]


def lookup(sample: Sample) -> str:
    """Look the answer up."""
    return sample.target


def answers(request: EndpointRequest) -> Any:
    """Right where it has a tool and calls it; else (A)."""
    if "tools" in request.body and not results_in(request):
        return calling(("lookup", {}))
    label = results_in(request)[-1] if results_in(request) else "A"
    return f"So the answer is ({label})."


def config(endpoint: FaultyEndpoint, folder: Path, **changes: Any) -> TaskConfig:
    settings: dict[str, Any] = {
        "model": "m",
        "api_url": endpoint.url,
        "datasets": ["demo"],
        "dataset_args": {"demo": {"size": 4}},
        "work_dir": str(folder),
        "run_id": "r",
        "eval_batch_size": 8,
        "retry_interval": 0.02,
        "arms": ARMS,
    }
    return TaskConfig(**(settings | changes))


def records(folder: Path) -> list[Record]:
    return list(Records(folder / "r"))


def by_arm(finished: FinishedTask) -> dict[str, dict[str, Any]]:
    return {entry["arm"]: entry for entry in finished.document["benchmarks"]}


def many_calls(wanted_calls: int, request: EndpointRequest) -> Any:
    """Calls several times, alone and in pairs, and only then answers."""
    finished_calls = len(results_in(request))
    if "tools" not in request.body or finished_calls >= wanted_calls:
        return answers(request)
    calls = 1 + int(draw(request.text, finished_calls) * 2)
    return calling(*[("lookup", {})] * calls, first_number=finished_calls)
