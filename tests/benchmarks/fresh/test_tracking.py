"""Fresh stories of swaps: like the published ones, whoever tells them of whomever."""

from __future__ import annotations

import random
import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keju.benchmarks.fresh.task import FreshQuestion, split_options
from keju.benchmarks.fresh.tasks import TASKS
from tests.benchmarks.fresh.conftest import Published
from tests.benchmarks.fresh.measures import fresh, length, mean_gap, share_gap
from tests.support.fresh_questions import DIFFICULTIES, SEEDS, question_of

SUBSETS = [name for name in TASKS if name.startswith("tracking_shuffled_objects")]
SWAP = re.compile(r"(?:First|Then|Finally), (\w+) and (\w+) ")


def swaps(question: FreshQuestion) -> list[set[str]]:
    return [set(pair) for pair in SWAP.findall(question.text)]


def people(question: FreshQuestion) -> list[str]:
    return re.split(r", and |, ", question.text.partition(" are ")[0])


def moves(question: FreshQuestion) -> int:
    """How often the person who is asked for takes part in a swap."""
    person = re.findall(r"At the end of the \w+, (\w+) ", question.text + " ")[0]
    return sum(person in pair for pair in swaps(question))


@pytest.mark.parametrize("subset", SUBSETS)
def test_stories_are_like_the_published_ones(published: Published, subset: str) -> None:
    rows, fresh_questions = published(subset), fresh(subset)
    assert share_gap(lambda question: len(swaps(question)), rows, fresh_questions) == 0
    assert share_gap(lambda question: len(people(question)), rows, fresh_questions) == 0
    assert (
        share_gap(lambda question: len(split_options(question.text)[1]), rows, fresh_questions) == 0
    )
    assert share_gap(lambda question: question.target, rows, fresh_questions) < 0.08
    assert share_gap(moves, rows, fresh_questions) < 0.1
    assert mean_gap(length, rows, fresh_questions) < 0.06


@pytest.mark.parametrize("subset", SUBSETS)
@settings(max_examples=30)
@given(SEEDS, DIFFICULTIES)
def test_everybody_swaps_and_nobody_swaps_back_at_once(
    subset: str, seed: int, difficulty: float
) -> None:
    question = question_of(TASKS[subset], seed, difficulty)
    pairs = swaps(question)
    assert all(len(pair) == 2 for pair in pairs)
    assert all(left_pair != right_pair for left_pair, right_pair in pairwise(pairs))
    taking_part = set[str]().union(*pairs)
    assert len(taking_part) == min(len(people(question)), 2 * len(pairs))


@pytest.mark.parametrize("subset", SUBSETS)
@settings(max_examples=30)
@given(SEEDS, st.randoms(use_true_random=False))
def test_names_and_the_order_in_which_people_are_listed_do_not_change_the_answer(
    subset: str, seed: int, shuffle: random.Random
) -> None:
    task = TASKS[subset]
    question = question_of(task, seed, 1)
    head, start, remainder = re.split(r": |\.\n", question.text, maxsplit=2)
    clauses = re.split(r", and |, ", start)
    shuffle.shuffle(clauses)
    start_text = f"{', '.join(clauses[:-1])}, and {clauses[-1]}"
    assert task.solve(f"{head}: {start_text}.\n{remainder}") == question.target
    renamed = question.text
    for number, name in enumerate(people(question)):
        renamed = re.sub(rf"\b{name}\b", f"Wug{number}", renamed)
    assert task.solve(renamed) == question.target


def test_whoever_is_not_in_the_story_has_nothing() -> None:
    task = TASKS[SUBSETS[0]]
    text = question_of(task, 1, 1).text
    unfinished = text.rpartition("At the end")[0]
    assert task.solve(text.replace(people(question_of(task, 1, 1))[0], "Wug", 1)) is None
    assert task.solve(unfinished) is None
