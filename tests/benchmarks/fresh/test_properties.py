"""What holds for the questions of every task, whatever the seed and the difficulty."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keju.benchmarks.fresh.task import OPTIONS, split_options
from keju.benchmarks.fresh.tasks import TASKS
from tests.support.fresh_questions import DIFFICULTIES, SEEDS, question_of

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("subset", TASKS)
@settings(max_examples=30)
@given(SEEDS, DIFFICULTIES)
def test_solving_what_was_generated_gives_what_was_generated(
    subset: str, seed: int, difficulty: float
) -> None:
    task = TASKS[subset]
    problem = task.invent(random.Random(seed), difficulty)
    for language in task.languages:
        question = task.write(problem, language)
        assert task.solve(question.text) == question.target


@pytest.mark.parametrize("subset", TASKS)
@settings(max_examples=30)
@given(SEEDS, DIFFICULTIES, st.randoms(use_true_random=False))
def test_the_order_of_the_options_does_not_change_the_answer(
    subset: str, seed: int, difficulty: float, shuffle: random.Random
) -> None:
    task = TASKS[subset]
    question = question_of(task, seed, difficulty)
    head, options = split_options(question.text)
    if not options:
        return
    assert len(set(options)) == len(options)
    right = options["ABCDEFGHIJKLMNOPQRSTUVWXYZ".index(question.target[1])]
    shuffle.shuffle(options)
    lines = [f"({chr(65 + number)}) {option}" for number, option in enumerate(options)]
    solved = task.solve("\n".join([head, OPTIONS["en"], *lines]))
    assert solved == f"({chr(65 + options.index(right))})"


@pytest.mark.parametrize("subset", TASKS)
@settings(max_examples=5)
@given(SEEDS)
def test_harder_is_longer(subset: str, seed: int) -> None:
    task = TASKS[subset]
    lengths = [
        sum(len(question_of(task, seed + number, level).text) for number in range(80))
        for level in (0.25, 0.5, 1, 2, 4)
    ]
    assert lengths == sorted(set(lengths))
