"""Which gold a file of predictions is scored with, and that the results say so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Keju, keju

pytestmark = pytest.mark.slow

__all__ = ["keju"]

QUIZ = "question,A,B,answer,id\nOne?,x,y,A,q1\nTwo?,x,y,A,q2\n"
REPLY = "ANSWER: A"


@pytest.fixture
def quiz(tmp_path: Path) -> Path:
    folder = tmp_path / "quiz"
    folder.mkdir()
    (folder / "q.csv").write_text(QUIZ)
    return folder


def predict(folder: Path, *rows: dict[str, Any]) -> str:
    file = folder.parent / "p.jsonl"
    texts = [json.dumps({"id": f"q{i}", "output": REPLY} | row) for i, row in enumerate(rows, 1)]
    file.write_text("\n".join(texts) + "\n")
    return str(file)


SHOWN = {"choices": ["x", "y"], "answer": "B"}


@pytest.mark.parametrize(
    ("rows", "flags", "gold", "accuracy", "other_accuracies"),
    [
        (({}, {}), (), "current", 1.0, {}),
        (({"answer": "A"}, {"answer": "B"}), (), "current", 1.0, {"recorded": 0.5}),
        (({"answer": "A"}, {"answer": "B"}), ("--gold", "recorded"), "recorded", 0.5, {"current": 1.0}),
        ((SHOWN, SHOWN), (), "recorded", 0.0, {"current": 1.0}),
        ((SHOWN, {}), (), "mixed", 0.5, {"current": 1.0, "recorded": 0.5}),
        (({"answer": "A"}, {"answer": "A"}), ("--gold", "recorded"), "recorded", 1.0, {}),
    ],
)  # fmt: skip
def test_the_results_say_which_gold_counted(
    keju: Keju,
    quiz: Path,
    rows: tuple[dict[str, Any], ...],
    flags: tuple[str, ...],
    gold: str,
    accuracy: float,
    other_accuracies: dict[str, float],
) -> None:
    arguments = ("score", "--datasets", str(quiz), "--predictions", predict(quiz, *rows), *flags)
    ran = keju(*arguments, "--json")
    assert ran.code == 0, ran.err
    (entry,) = ran.json["benchmarks"]
    metrics = entry["metrics"]
    found_accuracies = {
        kind: metrics[f"accuracy_{kind}_gold"]["value"]
        for kind in ("recorded", "current")
        if f"accuracy_{kind}_gold" in metrics
    }
    assert (entry["gold"], metrics["accuracy"]["value"], found_accuracies) == (
        gold,
        accuracy,
        other_accuracies,
    )
    text = keju(*arguments).out
    assert "gold answers: " in text
    assert ("carry another one" in text) is bool(other_accuracies)


def test_a_row_that_cannot_be_is_named_by_its_line(keju: Keju, quiz: Path) -> None:
    file = predict(quiz, {}, {"choices": "xy"})
    ran = keju("score", "--datasets", str(quiz), "--predictions", file)
    assert ran.code == 2
    assert f"{file}, line 2: 'choices' should be a list of texts" in ran.err
