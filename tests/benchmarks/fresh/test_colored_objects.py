"""Fresh scenes: kinds, sizes and answers as published; order and names do not matter in a heap."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keju.benchmarks.fresh.task import FreshQuestion, split_options
from keju.benchmarks.fresh.tasks import TASKS
from keju.benchmarks.fresh.tasks.reasoning_about_colored_objects import _plural, _stem
from keju.benchmarks.fresh.vocabulary import vocabulary
from tests.benchmarks.fresh.conftest import Published
from tests.benchmarks.fresh.measures import fresh, length, mean_gap, share_gap
from tests.support.fresh_questions import DIFFICULTIES, SEEDS, question_of

TASK = TASKS["reasoning_about_colored_objects"]
KINDS = (
    "remove", "directly", "furthest", "most", "How many non", "neither", "What color", "Is the",
)  # fmt: skip


def kind(question: FreshQuestion) -> str:
    return next(kind for kind in KINDS if kind in question.text)


def options(question: FreshQuestion) -> int:
    return len(split_options(question.text)[1])


def answer(question: FreshQuestion) -> str:
    """The right option's text, where it is a number or yes or no."""
    choices = split_options(question.text)[1]
    return "colour" if len(choices) == 18 else choices[ord(question.target[1]) - ord("A")]


def object_count(question: FreshQuestion) -> int:
    return question.text.partition(".")[0].count(", ")


def by_kind(questions: list[FreshQuestion], wanted_kind: str) -> list[FreshQuestion]:
    return [question for question in questions if kind(question) == wanted_kind]


def test_scenes_are_like_the_published_ones(published: Published) -> None:
    rows, fresh_questions = published(TASK.subset), fresh(TASK.subset, 2000)
    assert share_gap(kind, rows, fresh_questions) < 0.05
    assert share_gap(options, rows, fresh_questions) < 0.05
    assert share_gap(answer, rows, fresh_questions) < 0.06
    assert mean_gap(length, rows, fresh_questions) < 0.1
    for question_kind in KINDS:
        assert (
            mean_gap(
                object_count, by_kind(rows, question_kind), by_kind(fresh_questions, question_kind)
            )
            < 0.25
        ), question_kind


@pytest.mark.parametrize("name", vocabulary("objects.en"))
def test_one_and_many_of_an_object_are_known_as_the_same(name: str) -> None:
    assert _stem(_plural(name)) == _stem(name) == name


@given(SEEDS, DIFFICULTIES, st.randoms(use_true_random=False))
def test_the_order_of_things_does_not_change_the_answer_unless_they_are_in_a_row(
    seed: int, difficulty: float, shuffle: random.Random
) -> None:
    question = question_of(TASK, seed, difficulty)
    if "arranged in a row" in question.text:
        return
    match = re.fullmatch(
        r"(On the .+?, (?:there is|there are|you see|I see) )(.+?)(\. .+)", question.text, re.S
    )
    assert match is not None
    parts = re.split(r", and |, | and ", match[2])
    shuffle.shuffle(parts)
    text = match[1] + ", ".join(parts[:-1]) + ", and " + parts[-1] + match[3]
    assert TASK.solve(text) == question.target


@given(SEEDS, DIFFICULTIES)
def test_other_names_of_places_and_things_give_the_same_answer(
    seed: int, difficulty: float
) -> None:
    question = question_of(TASK, seed, difficulty)
    renamed = re.sub(r"\b(candle|kettle|bell|drum|lamp)", r"toy \1", question.text)
    place = question.text.partition("On the ")[2].partition(",")[0]
    assert TASK.solve(renamed.replace(f"the {place}", "the quay")) == question.target
