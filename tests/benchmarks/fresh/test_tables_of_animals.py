"""Fresh tables: changes and questions as often as published; the order of rows does not matter."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keju.benchmarks.fresh.task import FreshQuestion, split_options
from keju.benchmarks.fresh.tasks import TASKS
from tests.benchmarks.fresh.conftest import Published
from tests.benchmarks.fresh.measures import fresh, length, mean_gap, share_gap
from tests.support.fresh_questions import DIFFICULTIES, SEEDS, question_of

TASK = TASKS["penguins_in_a_table"]
FORMS = {
    "count": "How many .*(more|less) than", "listed": "How many", "total": "cumulated|average",
    "place": "(first|fist|second|third|th|last) [a-z]+( sorted .*)?\\?", "utmost": "Which is|other ones",
    "compared": "Which .* than", "who": "What is the name", "value": "What is the",
    "other": "",
}  # fmt: skip


def question_line(question: FreshQuestion) -> str:
    return split_options(question.text)[0].split("\n")[-1].split(".  ")[-1]


def form(question: FreshQuestion) -> str:
    return next(
        name for name, pattern in FORMS.items() if re.search(pattern, question_line(question))
    )


def changes(question: FreshQuestion) -> tuple[bool, ...]:
    return tuple(f"We {adverb}" in question.text for adverb in ("now", "then"))


def has_second_table(question: FreshQuestion) -> bool:
    return "similar table" in question.text


def options(question: FreshQuestion) -> int:
    return len(split_options(question.text)[1])


@pytest.mark.parametrize("measure", [form, changes, has_second_table, options])
def test_tables_are_like_the_published_ones(
    published: Published, measure: Callable[[FreshQuestion], object]
) -> None:
    rows, fresh_questions = published(TASK.subset), fresh(TASK.subset)
    assert share_gap(measure, rows, fresh_questions) < 0.06
    assert mean_gap(length, rows, fresh_questions) < 0.05


def test_the_place_of_the_right_option_is_even() -> None:
    fresh_questions = fresh(TASK.subset, 2000)
    targets = [question.target for question in fresh_questions]
    assert all(
        abs(targets.count(f"({label})") / len(fresh_questions) - 0.2) < 0.04 for label in "ABCDE"
    )


RECORD = re.compile(r"[A-Z]\w*(?:, \d+)+")


@given(SEEDS, DIFFICULTIES, st.randoms(use_true_random=False))
def test_the_order_of_the_rows_does_not_change_the_answer(
    seed: int, difficulty: float, shuffle: random.Random
) -> None:
    question = question_of(TASK, seed, difficulty)
    if form(question) == "place" and "sorted" not in question_line(question):
        return
    # Rows stay in their table; what is added or deleted stays what it is.
    head, middle, tail = question.text.partition("For example")
    rows = RECORD.findall(head)
    assert rows
    start = head.index(rows[0])
    shuffle.shuffle(rows)
    text = f"{head[:start]}{' '.join(rows)}  {middle}{tail}"
    assert TASK.solve(text) == question.target


@given(SEEDS, DIFFICULTIES)
def test_animals_of_another_name_give_the_same_answer(seed: int, difficulty: float) -> None:
    question = question_of(TASK, seed, difficulty)
    match = re.search(r"subsequent line is an? (\w+):", question.text)
    assert match is not None
    renamed = re.sub(rf"\b{match[1]}(s?)\b", r"quokka\1", question.text)
    assert TASK.solve(renamed) == question.target


@pytest.mark.parametrize(
    "asked_line",
    ["Which is the oldest whale?", "What is the width of Nobody?", "Which has a song?"],
)
def test_a_question_that_the_table_does_not_answer_has_no_answer(asked_line: str) -> None:
    question = question_of(TASK, 1, 1)
    question_start = question.text.index(
        split_options(question.text)[0].split("\n")[-1].split(".  ")[-1]
    )
    _, _, options = question.text.partition("\nOptions:")
    assert TASK.solve(f"{question.text[:question_start]}{asked_line}\nOptions:{options}") is None
