"""``keju plot``: runs as figures, and what cannot be drawn said in one line."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.conftest import Keju

pytestmark = pytest.mark.slow


@pytest.fixture
def runs(keju: Keju) -> list[str]:
    for name in ("one", "two"):
        ran = keju("eval", "-m", "scripted", "--datasets", "demo", "--limit", "2", "-q",
                   "--run-id", name, "--no-report")  # fmt: skip
        assert ran.code == 0
    return ["one", "two"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["forest", "latency", "tokens", "outcomes"])
def test_figures_of_runs(keju: Keju, runs: list[str], tmp_path: Path, kind: str) -> None:
    ran = keju("plot", *runs, "--kind", kind, "-o", "both.svg", "--json")
    assert (ran.code, ran.err) == (0, "")
    assert ran.json == {"runs": runs, "kind": kind, "file": "both.svg"}
    text = (tmp_path / "both.svg").read_text()
    ElementTree.fromstring(text)
    assert "scripted · two" in text


def test_a_killed_run_is_drawn_as_far_as_it_came(
    keju: Keju, runs: list[str], tmp_path: Path
) -> None:
    folder = tmp_path / "runs" / "one"
    (folder / "results.json").unlink()
    lines = (folder / "records.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "records.jsonl").write_bytes(b"".join(lines[:7]))
    assert keju("plot", "one").code == 0
    assert "n 7" in (tmp_path / "figure.svg").read_text()


def test_differences_of_two_runs(keju: Keju, runs: list[str], tmp_path: Path) -> None:
    assert keju("plot", *runs, "--kind", "difference", "-o", "d.svg").code == 0
    text = (tmp_path / "d.svg").read_text()
    assert "two − one" in text
    assert text.count("<circle") == 7
    assert "compar" in keju("plot", "one", "--kind", "difference").err


def test_runs_that_are_not_comparable_are_not_drawn_as_a_difference(
    keju: Keju, runs: list[str], tmp_path: Path
) -> None:
    keju("eval", "-m", "scripted", "--datasets", "demo", "--limit", "2", "-q",
         "--run-id", "other", "--no-report", "--protocol", "letters")  # fmt: skip
    ran = keju("plot", "one", "other", "--kind", "difference", "-o", "d.svg")
    assert ran.code == 2
    assert "protocol" in ran.err
    assert not (tmp_path / "d.svg").exists()


def test_what_cannot_be_drawn(keju: Keju, runs: list[str], tmp_path: Path) -> None:
    assert "a figure is written as .svg, .png, .pdf" in keju("plot", "one", "-o", "x.jpg").err
    assert "no run 'three'" in keju("plot", "three").err
    assert "RUN" in keju("plot").err
    assert "'forest'" in keju("plot", "one", "--kind", "pie").err
    assert not list(tmp_path.glob("*.svg"))
