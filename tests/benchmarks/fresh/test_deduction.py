"""Fresh paragraphs about an order: like the published ones, and never more than one order."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keju.benchmarks.fresh.task import FreshQuestion, split_options
from keju.benchmarks.fresh.tasks import TASKS
from tests.benchmarks.fresh.checks.deduction import orders
from tests.benchmarks.fresh.conftest import Published
from tests.benchmarks.fresh.measures import fresh, length, mean_gap, share_gap
from tests.support.fresh_questions import DIFFICULTIES, SEEDS, question_of

SUBSETS = [name for name in TASKS if name.startswith("logical_deduction")]
PAIR = re.compile(r" (?:to the left of|to the right of|than|above|below) ")


def clues(question: FreshQuestion) -> list[str]:
    return split_options(question.text)[0].removesuffix(".").split(". ")[3:]


def places(question: FreshQuestion) -> int:
    """How many clues tell a place."""
    return sum(PAIR.search(clue) is None for clue in clues(question))


def tells_order(question: FreshQuestion) -> bool:
    """Whether a clue is the answer."""
    option = split_options(question.text)[1]["ABCDEFG".index(question.target[1])]
    return option in clues(question)


@pytest.mark.parametrize("subset", SUBSETS)
def test_paragraphs_are_like_the_published_ones(published: Published, subset: str) -> None:
    rows, fresh_questions = published(subset), fresh(subset)
    assert (
        share_gap(lambda question: len(split_options(question.text)[1]), rows, fresh_questions) == 0
    )
    assert share_gap(lambda question: len(clues(question)), rows, fresh_questions) < 0.06
    assert share_gap(places, rows, fresh_questions) < 0.12
    assert mean_gap(places, rows, fresh_questions) < 0.1
    assert share_gap(tells_order, rows, fresh_questions) < 0.1
    assert share_gap(lambda question: question.target, rows, fresh_questions) < 0.08
    assert mean_gap(length, rows, fresh_questions) < 0.06


@pytest.mark.parametrize("subset", SUBSETS)
def test_published_and_fresh_paragraphs_leave_one_order(published: Published, subset: str) -> None:
    for question in (*published(subset)[:60], *fresh(subset, 100)):
        assert len(orders(question.text)) == 1


@pytest.mark.parametrize("subset", SUBSETS)
@settings(max_examples=20)
@given(SEEDS, DIFFICULTIES)
def test_no_clue_can_be_left_out(subset: str, seed: int, difficulty: float) -> None:
    question = question_of(TASKS[subset], seed, min(difficulty, 1.5))
    head, all_clues = split_options(question.text)[0], clues(question)
    for clue in all_clues:
        remaining_clues = [candidate for candidate in all_clues if candidate != clue]
        shorter = ". ".join([*head.split(". ")[:3], *remaining_clues])
        assert len(orders(f"{shorter}.")) > 1


@pytest.mark.parametrize("subset", SUBSETS)
@settings(max_examples=30)
@given(SEEDS, DIFFICULTIES, st.randoms(use_true_random=False))
def test_the_order_of_clues_and_things_does_not_change_the_answer(
    subset: str, seed: int, difficulty: float, shuffle: random.Random
) -> None:
    task = TASKS[subset]
    question = question_of(task, seed, difficulty)
    head, options = question.text.split("\n", maxsplit=1)
    opening, all_clues = head.split(". ")[:3], clues(question)
    shuffle.shuffle(all_clues)
    scene, object_list = opening[2].split(": ")
    object_names = re.split(r",? and |, ", object_list)
    shuffle.shuffle(object_names)
    opening[2] = f"{scene}: {', '.join(object_names[:-1])}, and {object_names[-1]}"
    assert task.solve(". ".join([*opening, *all_clues]) + f".\n{options}") == question.target


@pytest.mark.parametrize("subset", SUBSETS)
@settings(max_examples=30)
@given(SEEDS)
def test_other_names_do_not_change_the_answer(subset: str, seed: int) -> None:
    task = TASKS[subset]
    question = question_of(task, seed, 1)
    renamed = question.text
    object_names = re.split(r",? and |, ", renamed.split(". ")[2].split(": ")[1])
    for number, object_name in enumerate(sorted(object_names, key=len, reverse=True)):
        renamed = re.sub(rf"\b{re.sub('^an? ', '', object_name)}\b", f"wug{number}", renamed)
    assert task.solve(renamed) == question.target


def test_clues_that_leave_it_open_or_cannot_be_give_no_answer() -> None:
    text = (
        "The following paragraphs each describe a set of three objects arranged in a fixed order. "
        "The statements are logically consistent within each paragraph. On a wall, there are three "
        "maps: a red map, a green map, and a blue map. {}.\nOptions:\n(A) The red map is the "
        "leftmost\n(B) The green map is the leftmost\n(C) The blue map is the leftmost"
    )
    task = TASKS["logical_deduction_three_objects"]
    before = "The red map is to the left of the {} map"
    assert task.solve(text.format(before.format("green"))) is None
    assert task.solve(text.format(f"{before.format('green')}. {before.format('blue')}")) == "(A)"
    assert (
        task.solve(text.format(f"{before.format('green')}. The red map is the rightmost")) is None
    )
    assert task.solve(text.format("The red map is the fourth from the left")) is None
    assert task.solve(text.format("The wug is the leftmost")) is None
