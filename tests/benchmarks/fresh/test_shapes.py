"""Fresh paths: figures and sizes as published; moved, turned and reordered they stay what they are."""

from __future__ import annotations

import random
import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keju.benchmarks.fresh.task import FreshQuestion, split_options
from keju.benchmarks.fresh.tasks import TASKS
from tests.benchmarks.fresh.conftest import Published
from tests.benchmarks.fresh.measures import fresh, length, mean_gap, share_gap
from tests.support.fresh_questions import DIFFICULTIES, SEEDS, question_of

TASK = TASKS["geometric_shapes"]
FAMILY = {"ellipse": "circle", "trapezoid": "rectangle"}


def name(question: FreshQuestion) -> str:
    """The figure, where the two names of one kind count as one."""
    right = split_options(question.text)[1]["ABCDEFGHIJK".index(question.target[1])]
    return FAMILY.get(right, right)


def options(question: FreshQuestion) -> int:
    return len(split_options(question.text)[1])


def path(question: FreshQuestion) -> str:
    return question.text.split('"')[1]


def has_whole_steps(question: FreshQuestion) -> bool:
    return all(number.endswith(".00") for number in re.findall(r"\d+\.\d\d", path(question)))


def moves(question: FreshQuestion) -> int:
    return path(question).count("M")


def test_paths_are_like_the_published_ones(published: Published) -> None:
    rows, fresh_questions = published(TASK.subset), fresh(TASK.subset)
    assert share_gap(name, rows, fresh_questions) < 0.06
    assert share_gap(options, rows, fresh_questions) < 0.06
    assert share_gap(has_whole_steps, rows, fresh_questions) < 0.08
    assert mean_gap(moves, rows, fresh_questions) < 0.2
    assert mean_gap(length, rows, fresh_questions) < 0.06


def test_every_figure_is_drawn() -> None:
    fresh_questions = fresh(TASK.subset)
    answers = Counter(
        split_options(question.text)[1]["ABCDEFGHIJK".index(question.target[1])]
        for question in fresh_questions
    )
    assert len(answers) == 12
    assert min(answers.values()) > 20


def test_the_broader_name_counts_where_both_are_offered() -> None:
    square = 'This SVG path element <path d="M 1.00,1.00 L {0},1.00 L {0},9.00 L 1.00,9.00 L 1.00,1.00"/> draws a\nOptions:\n(A) rectangle\n(B) {1}'
    assert TASK.solve(square.format("5.00", "trapezoid")) == "(B)"
    assert TASK.solve(square.format("5.00", "kite")) == "(A)"
    assert TASK.solve(square.format("9.00", "kite")) is None  # a square is both


@pytest.mark.parametrize(
    "strokes",
    [
        "M 1.00,1.00 L 5.00,1.00 L 5.00,9.00",  # open, with a bend
        "M 1.00,1.00 L 5.00,1.00 L 1.00,1.00",  # there and back
        "M 0.00,0.00 L 9.00,0.00 L 9.00,5.00 L 2.00,7.00 L 0.00,0.00",  # four corners, no name
        "M 1.00,1.00 A 5.00,5.00 0.00 0,1 8.00,4.00 A 9.00,9.00 0.00 0,1 1.00,1.00",
        "M 1.00,1.00 Q 5.00,5.00 8.00,4.00",
        "L 1.00,1.00",
    ],
)
def test_what_is_no_figure_of_the_list_has_no_name(strokes: str) -> None:
    names = ("line", "triangle", "kite", "rectangle", "trapezoid", "circle", "ellipse", "sector")
    options = "\n".join(f"({'ABCDEFGH'[n]}) {figure_name}" for n, figure_name in enumerate(names))
    text = f'This SVG path element <path d="{strokes}"/> draws a\nOptions:\n{options}'
    assert TASK.solve(text) is None


STROKE = re.compile(r"(M|L|A [\d.]+,[\d.]+ [\d.]+ \d,\d) ([\d.]+,[\d.]+)")


@given(SEEDS, DIFFICULTIES, st.randoms(use_true_random=False))
def test_the_order_of_the_strokes_does_not_change_the_answer(
    seed: int, difficulty: float, shuffle: random.Random
) -> None:
    question = question_of(TASK, seed, difficulty)
    strokes, pen = [], ""
    for command, to in STROKE.findall(path(question)):
        if command != "M":
            strokes.append(f"M {pen} {command} {to}")
        pen = to
    shuffle.shuffle(strokes)
    assert TASK.solve(question.text.replace(path(question), " ".join(strokes))) == question.target


@given(SEEDS, DIFFICULTIES, st.integers(1, 90), st.integers(1, 90))
def test_a_figure_that_is_moved_keeps_its_name(
    seed: int, difficulty: float, right: int, down: int
) -> None:
    question = question_of(TASK, seed, difficulty)

    def shift_point(match: re.Match[str]) -> str:
        x, y = map(float, match[2].split(","))
        return f"{match[1]} {x + right:.2f},{y + down:.2f}"

    text = question.text.replace(path(question), STROKE.sub(shift_point, path(question)))
    assert TASK.solve(text) == question.target
