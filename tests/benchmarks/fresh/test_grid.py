"""Fresh questions: the solver is right on all, a second opinion agrees, nothing is there twice."""

from __future__ import annotations

import pytest

from keju.benchmarks.fresh.making import make_questions
from keju.benchmarks.fresh.task import Language
from keju.benchmarks.fresh.tasks import TASKS
from tests.benchmarks.fresh.conftest import Published
from tests.benchmarks.fresh.grid import bare, cell_faults

pytestmark = pytest.mark.slow

CELL = 120
GRID = [
    pytest.param(subset, language, seed, difficulty, id=f"{subset}-{language}-{seed}-{difficulty}")
    for subset, task in TASKS.items()
    for language in task.languages
    for seed in (11, 12)
    for difficulty in (0.5, 1.0, 3.0)
]


@pytest.mark.parametrize(("subset", "language", "seed", "difficulty"), GRID)
def test_questions_of_a_cell_are_right(
    subset: str, language: Language, seed: int, difficulty: float
) -> None:
    task = TASKS[subset]
    n = min(CELL, task.space(difficulty) or CELL)
    assert not cell_faults(task, n=n, seed=seed, difficulty=difficulty, language=language)


@pytest.mark.parametrize("subset", TASKS)
def test_no_question_is_a_published_one(published: Published, subset: str) -> None:
    published_texts = {bare(question.text) for question in published(subset)}
    questions = make_questions(TASKS[subset], CELL, seed=3, difficulty=1.0)
    assert not [question.text for question in questions if bare(question.text) in published_texts]
