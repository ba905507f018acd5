"""The pace of an earlier run as a forecast."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from keju.config import TaskConfig
from keju.files import write_json
from keju.runs.journal import FILE
from keju.runs.manifest import MANIFEST, Manifest, StoredExam, StoredSession
from keju.runs.throughput import SessionThroughput, find_earlier_pace

EXAMS = [StoredExam(name="demo")]
SESSION = StoredSession(endpoint="http://a", seconds=10.0, ended=True, requests=22, retries=2)


def store(folder: Path, session: StoredSession = SESSION, **fields: Any) -> None:
    folder.mkdir()
    (folder / FILE).touch()
    manifest = Manifest(
        run=folder.name, model="m", complete=True, benchmarks=EXAMS, sessions=[session],
        created=folder.name,
    )  # fmt: skip
    write_json(folder / MANIFEST, replace(manifest, **fields))


def find(work_dir: Path, **settings: Any) -> SessionThroughput | None:
    task = {"model": "m", "api_url": "http://a", "datasets": ["demo"], "work_dir": str(work_dir)}
    return find_earlier_pace(TaskConfig(**task | settings), EXAMS, in_flight=4)


def test_the_replies_of_a_session_forecast_more_of_them(tmp_path: Path) -> None:
    assert find(tmp_path) is None
    store(tmp_path / "one")
    pace = find(tmp_path)
    assert pace == SessionThroughput("one", 20, 10.0)
    assert pace.forecast(100) == 50.0


@pytest.mark.parametrize(
    "settings", [{"model": "other"}, {"api_url": "http://b"}, {"eval_batch_size": 3}]
)
def test_another_model_address_or_concurrency_has_another_pace(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    store(tmp_path / "one")
    assert find(tmp_path, **settings) is None


@pytest.mark.parametrize(
    "session",
    [replace(SESSION, ended=False), replace(SESSION, requests=9), replace(SESSION, seconds=0.0)],
)
def test_interrupted_and_idle_sessions_have_no_pace(tmp_path: Path, session: StoredSession) -> None:
    store(tmp_path / "one", session)
    assert find(tmp_path) is None


def test_few_replies_count_only_if_no_run_has_more(tmp_path: Path) -> None:
    store(tmp_path / "b", replace(SESSION, requests=11))
    assert find(tmp_path) == SessionThroughput("b", 9, 10.0)
    store(tmp_path / "a")
    assert find(tmp_path) == SessionThroughput("a", 20, 10.0)
