"""Which questions a limit keeps: the answers in their proportions, small groups not forgotten."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from keju import run_task
from keju.runs.journal import Records

SIZES = {"A": 3, "B": 9, "C": 48}
"""How many questions have which answer."""
TOTAL = sum(SIZES.values())


def draw_targets(folder: Path, limit: int, **options: Any) -> Counter[str]:
    """The right answers of the questions that were asked."""
    settings = {"model": "scripted", "datasets": [f"custom:{folder / 'quiz.csv'}"]}
    options |= {"work_dir": str(folder), "run_id": f"r{limit}", "limit": limit}
    run_task(settings | options)
    return Counter(record.target for record in Records(folder / f"r{limit}"))


@pytest.fixture
def quiz(tmp_path: Path) -> Path:
    """A folder with one table of questions."""
    answers = "".join(letter * size for letter, size in SIZES.items())
    rows = "".join(f"Question {n}?,x{n},y{n},z{n},{gold}\n" for n, gold in enumerate(answers))
    (tmp_path / "quiz.csv").write_text("question,A,B,C,answer\n" + rows)
    return tmp_path


@pytest.mark.slow
def test_a_stratified_draw_favours_no_answer(quiz: Path) -> None:
    limits = range(5, TOTAL, 5)
    off: dict[str, list[float]] = {letter: [] for letter in SIZES}
    for limit in limits:
        counts = draw_targets(quiz, limit, sample="stratified")
        assert counts.total() == limit
        for letter, size in SIZES.items():
            off[letter].append(counts[letter] - limit * size / TOTAL)
    for letter, errors in off.items():
        assert max(map(abs, errors)) < 1, letter
        assert abs(sum(errors) / len(errors)) < 0.15, letter


def test_a_small_group_is_drawn_as_early_as_its_share_asks(quiz: Path) -> None:
    assert draw_targets(quiz, 14, sample="stratified")["A"] == 1
    assert draw_targets(quiz, 32, sample="stratified")["A"] == 2
    assert draw_targets(quiz, 52, sample="stratified")["A"] == 3
