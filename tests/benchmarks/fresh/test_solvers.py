"""Solvers read the published questions, and agree with the published targets."""

from __future__ import annotations

import pytest

from keju.benchmarks.fresh.tasks import TASKS
from tests.benchmarks.fresh.conftest import Published


@pytest.mark.parametrize("subset", TASKS)
def test_every_published_row_is_solved_or_its_exception_explained(
    published: Published, subset: str
) -> None:
    task = TASKS[subset]
    rows = published(subset)
    missed = [i for i, row in enumerate(rows) if task.solve(row.text) != row.target]
    assert missed == sorted(task.exceptions)


@pytest.mark.parametrize("subset", TASKS)
@pytest.mark.parametrize("text", ["", "What is this?", "Options:\n(A) one\n(B) two", "a\nb\nc"])
def test_what_is_no_question_of_the_task_gets_no_answer(subset: str, text: str) -> None:
    assert TASKS[subset].solve(text) is None
