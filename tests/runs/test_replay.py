"""Replies of a stored run as a model."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from keju.config import TaskConfig
from keju.errors import ConfigError, DataError
from keju.files import write_json
from keju.runs.journal import FILE, Journal
from keju.runs.manifest import MANIFEST, Manifest
from keju.runs.replay import ReplayModel, make
from keju.types import Fault, Prefix, Prompt, Record, Reply, Request, Sampling

HASHES = [digit * 32 for digit in "abc"]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with two replies, of which the second is an error."""
    folder = tmp_path / "monday"
    folder.mkdir()
    with Journal(folder) as journal:
        replies = (Reply("A"), Reply(error=Fault("server", "500")))
        for name, reply in zip(HASHES, replies, strict=False):
            journal.append([Record(bench="demo", id=name[0], hash=name, reply=reply)])
    manifest = Manifest(run="monday", model="small", config={"model_args": {"x": 1}})
    write_json(folder / MANIFEST, manifest)
    return folder


def ask(model: ReplayModel, name: str) -> Reply:
    request = Request(Prompt(Prefix(), "?"), Sampling(), name)
    return asyncio.run(model.ask(request, timeout=1))


def test_a_request_gets_the_reply_that_counts(run: Path) -> None:
    model = ReplayModel(run)
    assert (model.name, model.model_args) == ("small", {"x": 1})
    assert ask(model, HASHES[0]).text == "A"
    for name in HASHES[1:]:
        error = ask(model, name).error
        assert error is not None
        assert (error.kind, "monday" in error.message) == ("not_found", True)


def test_a_run_is_named_by_its_id_or_its_folder(run: Path) -> None:
    folder = str(run.parent)
    by_id = make(TaskConfig(model="replay:monday", datasets=["demo"], work_dir=folder))
    by_path = make(TaskConfig(model=f"replay:{run}", datasets=["demo"]))
    assert by_id.facts() == by_path.facts() == {"name": "small", "replayed_from": "monday"}
    with pytest.raises(ConfigError, match="tuesday") as unknown:
        make(TaskConfig(model="replay:tuesday", datasets=["demo"], work_dir=folder))
    assert unknown.value.code == "replay_no_run"


def test_a_journal_without_a_readable_line_is_an_error(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("{broken\n")
    with pytest.raises(DataError) as broken:
        asyncio.run(ReplayModel(tmp_path).start())
    assert broken.value.code == "replay_no_records"
