"""A config file names an exam that lies beside it, whatever folder it is used from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Keju

QUESTIONS = '{"question": "1+1?", "answer": "2", "subset": "%s"}\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder below the current one, with an exam and a task that runs it."""
    folder = tmp_path / "w"
    folder.mkdir()
    (folder / "q.jsonl").write_text(QUESTIONS % "a" + QUESTIONS % "b")
    (folder / "task.yaml").write_text("model: scripted\ndatasets: [./q.jsonl]\n")
    return folder


@pytest.mark.parametrize("command", [("run", "-c"), ("eval", "--config")])
def test_an_exam_beside_its_file_is_found_and_gone_on_with_from_anywhere(
    keju: Keju,
    folder: Path,
    command: tuple[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran = keju(*command, "w/task.yaml", "-q", "--run-id", "r")
    assert ran.code == 0, ran.err
    manifest = tmp_path / "runs/r/manifest.json"
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    ran = keju("eval", "--config", str(manifest), "--resume", "-q", "--json")
    assert (ran.code, ran.json["benchmarks"][0]["n"]) == (0, 2), ran.err


def test_an_exam_in_the_current_folder_goes_before_one_beside_the_file(
    keju: Keju, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "q.jsonl").write_text(QUESTIONS % "a")
    ran = keju("eval", "--config", "w/task.yaml", "--dry-run", "--json")
    assert ran.json["benchmarks"][0]["n"] == 1


@pytest.mark.parametrize("name", ["./q.jsonl", "q"])
def test_settings_of_an_exam_beside_its_file_go_by_its_names(
    keju: Keju, folder: Path, name: str
) -> None:
    task = {"model": "scripted", "datasets": ["./q.jsonl"]}
    args = {"dataset_args": {name: {"subset_list": ["a"]}}}
    (folder / "own.json").write_text(json.dumps(task | args))
    for extra_flags in ((), ("--dataset-args", json.dumps({name: {"subset_list": ["b"]}}))):
        ran = keju("eval", "--config", "w/own.json", "--dry-run", "--json", *extra_flags)
        assert ran.json["benchmarks"][0]["n"] == 1, ran.err


@pytest.mark.parametrize("name", ["./q.jsonl", "q"])
def test_a_plan_finds_exams_beside_it(keju: Keju, folder: Path, name: str) -> None:
    plan = {"models": ["scripted"], "datasets": [{"dataset": "./q.jsonl"}, "demo"]}
    args = {"dataset_args": {name: {"subset_list": ["a"]}}}
    (folder / "plan.json").write_text(json.dumps(plan | args))
    ran = keju("eval", "--config", "w/plan.json", "--datasets", name, "-q", "--json")
    assert ran.code == 0, ran.err
    assert [(cell["exam"], cell["n"]) for cell in ran.json["cells"]] == [("q", 1)]
