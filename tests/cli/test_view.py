"""Which folder ``keju view`` shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Keju

pytest.importorskip("uvicorn")


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders that were served, each at once given up again."""
    folders: list[Path] = []

    def serve(folder: Path, **_: Any) -> None:
        folders.append(folder)

    monkeypatch.setattr("keju.viewer.app.serve", serve)
    return folders


def evaluate(keju: Keju, *flags: str) -> None:
    words = ("-m", "scripted", "--datasets", "demo", "--limit", "1", "-q", "--no-report")
    assert keju("eval", *words, "--run-id", "tuesday", *flags).code == 0


def test_a_run_is_named_by_its_id_or_its_folder(keju: Keju, served: list[Path]) -> None:
    evaluate(keju)
    evaluate(keju, "--work-dir", "other")
    for words in ((), ("tuesday",), ("runs/tuesday",), ("tuesday", "--work-dir", "other")):
        assert keju("view", *words).code == 0
    assert [*map(str, served)] == ["runs", "runs/tuesday", "runs/tuesday", "other/tuesday"]


def test_what_is_no_folder_and_no_run_is_told_the_run_that_is_near(
    keju: Keju, served: list[Path]
) -> None:
    evaluate(keju)
    ran = keju("view", "tuesdy")
    assert (ran.code, served) == (2, [])
    assert "no run tuesdy (did you mean 'tuesday'?)" in ran.err
    assert "tuesday" in keju("--language", "zh", "view", "tuesdy").err
    assert keju("view", "--work-dir", "nowhere").code == 2
