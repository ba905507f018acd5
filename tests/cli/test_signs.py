"""What is noticed about replies is counted and shown in every result."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Keju

CHOICES = ["iron", "gold", "zinc", "lead"]
REPLIES = {
    "plain": "It shines. ANSWER: B",
    "run-on": "ANSWER: B\n\nQuestion: What is heavy?\nANSWER: D",
    "order": "ANSWER: B\n\nTo sum up the chapter on metals.\n\nANSWER: D",
    "corrected": "ANSWER: D\n\nWait, that is not right. ANSWER: B",
    "echo": "A) iron\nB) gold\nC) zinc\nD) lead",
}


@pytest.fixture
def predictions(tmp_path: Path) -> list[str]:
    """An exam of five questions, one for each reply, and the flags that score these."""
    exam = tmp_path / "metals"
    exam.mkdir()
    rows = [
        {"id": name, "question": f"Which shines, {name}?", "choices": CHOICES, "answer": "B"}
        for name in REPLIES
    ]
    (exam / "q.jsonl").write_text("\n".join(map(json.dumps, rows)))
    prediction_rows = [{"id": name, "output": reply} for name, reply in REPLIES.items()]
    (tmp_path / "p.jsonl").write_text("\n".join(map(json.dumps, prediction_rows)))
    return ["score", "--datasets", "./metals", "--predictions", "p.jsonl"]


def test_signs_are_counted_and_order_decides_is_listed(keju: Keju, predictions: list[str]) -> None:
    ran = keju(*predictions, "--reader", "robust", "--json")
    (entry,) = ran.json["benchmarks"]
    assert entry["outcomes"]["correct"] == 4
    assert entry["signs"] == {
        "two_answers": 2,
        "order_decides": 1,
        "echoed_options": 1,
        "replayed_examples": 0,
        "run_on": 2,
    }
    assert [sample_id.rpartition("_")[2] for sample_id in entry["order_decides"]] == ["order"]


def test_signs_are_told_on_the_terminal(keju: Keju, predictions: list[str]) -> None:
    output = keju(*predictions).out
    assert "2 with two different answers" in output
    assert "1 that repeat the options" in output
