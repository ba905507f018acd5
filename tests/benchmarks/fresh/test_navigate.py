"""Fresh walks: like the published ones; facing forward, the order of the steps does not matter."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keju.benchmarks.fresh.task import FreshQuestion
from keju.benchmarks.fresh.tasks import TASKS
from tests.benchmarks.fresh.conftest import Published
from tests.benchmarks.fresh.measures import fresh, length, mean_gap, share_gap
from tests.support.fresh_questions import SEEDS, question_of

TASK = TASKS["navigate"]
FACING = "Always face forward. "


def instructions(question: FreshQuestion) -> list[str]:
    body = question.text.partition("? ")[2].partition("\nOptions")[0]
    return [f"{instruction.strip('.')}." for instruction in body.removeprefix(FACING).split(". ")]


def facing(question: FreshQuestion) -> bool:
    return FACING in question.text


def turns(question: FreshQuestion) -> int:
    return sum(instruction.startswith("Turn") for instruction in instructions(question))


def lone_sides(question: FreshQuestion) -> bool:
    """Whether a facing walk has steps to one side and none to the other."""
    sides = {
        instruction.strip(".").split()[-1]
        for instruction in instructions(question)
        if facing(question)
    }
    return any(len(sides & pair) == 1 for pair in ({"left", "right"}, {"forward", "backward"}))


def test_walks_are_like_the_published_ones(published: Published) -> None:
    rows, fresh_questions = published(TASK.subset), fresh(TASK.subset)
    assert share_gap(facing, rows, fresh_questions) < 0.05
    assert share_gap(lambda question: len(instructions(question)), rows, fresh_questions) < 0.06
    assert (
        share_gap(lambda question: (facing(question), turns(question)), rows, fresh_questions)
        < 0.08
    )
    assert (
        share_gap(lambda question: (question.target, lone_sides(question)), rows, fresh_questions)
        < 0.1
    )
    assert mean_gap(length, rows, fresh_questions) < 0.05
    # Yes is published 105 times in 250; here it is as likely as No.
    assert share_gap(lambda question: question.target, rows, fresh_questions) < 0.12
    assert {question.target for question in fresh_questions} == {"Yes", "No"}


@given(SEEDS, st.randoms(use_true_random=False))
def test_facing_forward_the_order_does_not_change_the_answer(
    seed: int, shuffle: random.Random
) -> None:
    question = question_of(TASK, seed, 1)
    steps = instructions(question)
    if facing(question):
        shuffle.shuffle(steps)
    head, body = question.text.partition("? ")[0], " ".join(steps)
    tail = question.text.partition("\n")[2]
    forward = FACING if facing(question) else ""
    assert TASK.solve(f"{head}? {forward}{body}\n{tail}") == question.target


@given(SEEDS)
def test_a_mirror_does_not_change_the_answer(seed: int) -> None:
    question = question_of(TASK, seed, 1)
    mirrored = question.text.replace("left", "?!").replace("right", "left").replace("?!", "right")
    assert TASK.solve(mirrored) == question.target


@pytest.mark.parametrize(
    "instruction", ["Take 3 steps up.", "Turn about.", "Take a step.", "Take 3 steps left.", "Go."]
)
def test_what_is_no_instruction_is_not_followed(instruction: str) -> None:
    text = question_of(TASK, 1, 1).text
    head, tail = text.partition("? ")[0], text.partition("\n")[2]
    assert TASK.solve(f"{head}? Take 3 steps. {instruction}\n{tail}") is None
    assert TASK.solve(f"{head}? Take 3 steps. Turn around. Take 3 steps.\n{tail}") == "Yes"
