"""What a page says of a score in sentences: true also at the ends of the scale."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from keju.models.scripted import ScriptedModel
from tests.cli.conftest import Keju

PLURALS = "".join(f'{{"question": "Plural of n{n}?", "answer": "n{n}s"}}\n' for n in range(60))


@pytest.fixture
def nothing_right(keju: Keju, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """The terminal and the page of a run in which no answer is right, and chance is 0."""
    Path("own.jsonl").write_text(PLURALS)
    model = ScriptedModel(script=lambda _: "The answer is: none")
    monkeypatch.setattr("keju.task.make_model", lambda _: model)
    ran = keju("eval", "-m", "scripted", "--datasets", "./own.jsonl", "-q", "--run-id", "r")
    assert ran.code == 0, ran.err
    return ran.out, Path("runs/r/report.html").read_text("utf-8")


def test_a_lopsided_interval_is_told_by_both_its_sides(nothing_right: tuple[str, str]) -> None:
    _, page = nothing_right
    assert "0.0–6.0" in page
    assert "Sure to within about 0.0 points below and 6.0 points above." in page
    assert "误差约为向下 0.0、向上 6.0 个百分点。" in page
    assert "either way" not in page


def test_guessing_that_gives_nothing_is_no_measure(nothing_right: tuple[str, str]) -> None:
    assert "guessing, which gives" not in nothing_right[1]


def test_that_nothing_is_right_has_its_column(nothing_right: tuple[str, str]) -> None:
    out, page = nothing_right
    heads = re.findall(r"^subset .*$", out, re.MULTILINE)
    assert len(heads) == 1
    assert "correct" in heads[0].split()
    assert '<th class="number name spare"><span lang="en">correct</span>' in page


def test_an_even_interval_is_told_by_one_number(keju: Keju) -> None:
    assert keju("eval", "-m", "scripted", "--datasets", "demo", "-q", "--run-id", "r").code == 0
    page = Path("runs/r/report.html").read_text("utf-8")
    assert re.search(r"Sure to within about \d+\.\d points (either way|below and)", page)
    assert "guessing, which gives" in page
