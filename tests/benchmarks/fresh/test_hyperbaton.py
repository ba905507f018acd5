"""Fresh phrases: as many adjectives as published; other words of a class give the same answer."""

from __future__ import annotations

import random
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from keju.benchmarks.fresh.task import FreshQuestion, split_options
from keju.benchmarks.fresh.tasks import TASKS
from keju.benchmarks.fresh.tasks.hyperbaton import (
    CLASS_OF,
    CLASSES,
    FRESH_ADJECTIVES,
    PUBLISHED_ADJECTIVES,
)
from tests.benchmarks.fresh.conftest import Published
from tests.benchmarks.fresh.measures import fresh, length, mean_gap, share_gap
from tests.support.fresh_questions import DIFFICULTIES, SEEDS, question_of

TASK = TASKS["hyperbaton"]


def phrases(question: FreshQuestion) -> list[list[str]]:
    """The adjectives of the right phrase, then those of the wrong one."""
    options = [option.split()[:-1] for option in split_options(question.text)[1]]
    return options if question.target == "(A)" else options[::-1]


def adjectives(question: FreshQuestion) -> int:
    return len(phrases(question)[0])


def misplaced(question: FreshQuestion) -> float:
    """Pairs in the wrong order, of all pairs."""
    pairs = list(combinations(phrases(question)[1], 2))
    return sum(CLASS_OF[left_word] > CLASS_OF[right_word] for left_word, right_word in pairs) / len(
        pairs
    )


def target(question: FreshQuestion) -> str:
    return question.target


def test_phrases_are_like_the_published_ones(published: Published) -> None:
    rows, fresh_questions = published(TASK.subset), fresh(TASK.subset)
    assert share_gap(adjectives, rows, fresh_questions) < 0.06
    assert share_gap(target, rows, fresh_questions) < 0.06
    assert mean_gap(misplaced, rows, fresh_questions) < 0.1
    assert mean_gap(length, rows, fresh_questions) < 0.06


def test_no_adjective_belongs_to_two_classes() -> None:
    words = [word for group in (*FRESH_ADJECTIVES, *PUBLISHED_ADJECTIVES) for word in group.split()]
    assert len(set(words)) == len(words)


@given(SEEDS, DIFFICULTIES, st.randoms(use_true_random=False))
def test_other_adjectives_of_the_classes_give_the_same_answer(
    seed: int, difficulty: float, shuffle: random.Random
) -> None:
    question = question_of(TASK, seed, difficulty)
    replacements: dict[str, str] = {}
    for words in CLASSES:
        shuffled = words.copy()
        shuffle.shuffle(shuffled)
        replacements |= dict(zip(words, shuffled, strict=True))
    lines = [
        " ".join(replacements.get(word, word) for word in line.split(" "))
        for line in question.text.split("\n")
    ]
    assert TASK.solve("\n".join(lines)) == question.target


def test_an_unknown_adjective_gets_no_guess() -> None:
    text = "Which sentence has the correct adjective order:\nOptions:\n(A) red frobnic hat\n(B) frobnic red hat"
    assert TASK.solve(text) is None
