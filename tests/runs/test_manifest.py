"""What one run may be made of."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from keju.config import TaskConfig
from keju.engine.job import make_jobs
from keju.errors import DataError, UsageError
from keju.runs.manifest import Manifest, ManifestFile, StoredSession
from keju.runs.resume_compat import find_differences

FACTS = {
    "sha256": "a", "chat_template_hash": "t", "dtype": "float32", "label_space": False, "threads": 2
}  # fmt: skip


def manifest(folder: Path) -> ManifestFile:
    config = TaskConfig(model="scripted", datasets=["demo"], run_id=folder.name)
    return ManifestFile(folder, config, [job.facts() for job in make_jobs(config)])


@pytest.mark.parametrize(
    ("fact", "value", "difference"),
    [
        ("sha256", "b", "the weights"),
        ("chat_template_hash", "u", "the chat template"),
        ("dtype", "bfloat16", "dtype"),
        ("label_space", True, "the blank before labels"),
    ],
)
def test_a_run_is_of_one_local_model_used_in_one_way(
    tmp_path: Path, fact: str, value: object, difference: str
) -> None:
    manifest(tmp_path).note_endpoint(FACTS)
    with pytest.raises(
        UsageError, match=f"was made with a model of the same name that differs in {difference}"
    ):
        manifest(tmp_path).note_endpoint(FACTS | {fact: value})
    manifest(tmp_path).note_endpoint(FACTS | {"threads": 4})


def test_what_is_described_is_what_comes_back_from_the_file(tmp_path: Path) -> None:
    manifest(tmp_path).write()
    reopened = manifest(tmp_path)
    assert reopened.before is not None
    assert find_differences(reopened.before, reopened.manifest) == []
    assert reopened.trusted_from == 0
    assert reopened.ask_again == frozenset()


def test_a_session_that_asks_nobody_keeps_what_was_known_of_the_endpoint(tmp_path: Path) -> None:
    manifest(tmp_path).note_endpoint(FACTS)
    manifest(tmp_path).finish(complete=False)
    assert Manifest.read(tmp_path).endpoint == FACTS


def test_a_session_grows_and_earlier_ones_stay(tmp_path: Path) -> None:
    manifest_before = manifest(tmp_path)
    manifest_before.note_session(StoredSession(seconds=1.0))
    manifest_before.note_session(StoredSession(seconds=2.0, cost=0.5))
    manifest_after = manifest(tmp_path)
    manifest_after.note_session(StoredSession(seconds=3.0))
    manifest_after.judge_log("judge").note_session(StoredSession(seconds=7.0))
    assert manifest_after.seconds == 5.0
    stored = json.loads((tmp_path / "manifest.json").read_text())
    assert [session["seconds"] for session in stored["sessions"]] == [2.0, 3.0]
    assert [session.get("cost") for session in stored["sessions"]] == [0.5, None]
    assert [session["seconds"] for session in stored["judges"]["judge"]["sessions"]] == [7.0]


def test_a_file_that_is_no_manifest_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"benchmarks": [{"name": 5}]}')
    with pytest.raises(DataError, match=r"is not a run's manifest: .*benchmarks"):
        Manifest.read(tmp_path)


def test_a_key_that_version_1_0_stored_is_neither_shown_nor_a_difference(tmp_path: Path) -> None:
    today = manifest(tmp_path).manifest
    (exam,) = today.benchmarks
    sampling = {**exam.sampling, "extra_body": {"api_key": "sk-secret-1234"}}
    exam = msgspec.structs.replace(exam, sampling=sampling)
    (difference,) = find_differences(msgspec.structs.replace(today, benchmarks=[exam]), today)
    assert "extra_body" in difference.field
    assert "sk-secret" not in f"{difference.stored} {difference.requested}"
