"""Fresh lists of words: like the published ones, whatever their order."""

from __future__ import annotations

import random
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from keju.benchmarks.fresh.task import FreshQuestion
from keju.benchmarks.fresh.tasks import TASKS
from keju.benchmarks.fresh.vocabulary import vocabulary
from tests.benchmarks.fresh.conftest import Published
from tests.benchmarks.fresh.measures import fresh, length, mean_gap, share_gap
from tests.support.fresh_questions import SEEDS, question_of

TASK = TASKS["word_sorting"]


def words(question: FreshQuestion) -> int:
    return len(question.target.split())


def letters(question: FreshQuestion) -> float:
    return len("".join(question.target.split())) / words(question)


def same_beginnings(question: FreshQuestion) -> float:
    """How many neighbours begin with the same letter, where more than the first decides."""
    ordered = question.target.split()
    return sum(left_word[0] == right_word[0] for left_word, right_word in pairwise(ordered))


def test_lists_are_like_the_published_ones(published: Published) -> None:
    rows, fresh_questions = published(TASK.subset), fresh(TASK.subset)
    assert share_gap(words, rows, fresh_questions) < 0.06
    assert mean_gap(words, rows, fresh_questions) < 0.1
    assert mean_gap(letters, rows, fresh_questions) < 0.1
    assert mean_gap(same_beginnings, rows, fresh_questions) < 0.15
    assert mean_gap(length, rows, fresh_questions) < 0.1


def test_words_are_plain_and_known_once() -> None:
    entries = vocabulary("words.en")
    assert len(set(entries)) == len(entries) > 1000
    assert all(entry.isascii() and entry.isalpha() and entry.islower() for entry in entries)


@given(SEEDS, st.randoms(use_true_random=False))
def test_the_order_of_the_words_does_not_change_the_answer(
    seed: int, shuffle: random.Random
) -> None:
    question = question_of(TASK, seed, 1)
    instruction, _, word_list = question.text.rpartition(": ")
    names = word_list.split()
    shuffle.shuffle(names)
    assert TASK.solve(f"{instruction}: {' '.join(names)}") == question.target
