"""Fresh lists of things: like the published ones, whatever their order."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keju.benchmarks.fresh.task import FreshQuestion
from keju.benchmarks.fresh.tasks import TASKS
from keju.benchmarks.fresh.tasks.object_counting import KINDS
from keju.benchmarks.fresh.vocabulary import vocabulary
from tests.benchmarks.fresh.conftest import Published
from tests.benchmarks.fresh.measures import fresh, length, mean_gap, share_gap
from tests.support.fresh_questions import SEEDS, question_of

TASK = TASKS["object_counting"]


def items(question: FreshQuestion) -> list[str]:
    return re.split(r", and |, ", question.text.partition(". ")[0].removeprefix("I have "))


def sorts(question: FreshQuestion) -> int:
    return len(items(question))


def single(question: FreshQuestion) -> float:
    """The share of sorts that are there once."""
    return sum(item.startswith(("a ", "an ")) for item in items(question)) / sorts(question)


def test_lists_are_like_the_published_ones(published: Published) -> None:
    rows, fresh_questions = published(TASK.subset), fresh(TASK.subset)
    assert share_gap(sorts, rows, fresh_questions) < 0.06
    assert mean_gap(sorts, rows, fresh_questions) < 0.06
    assert mean_gap(single, rows, fresh_questions) < 0.05
    assert mean_gap(lambda question: int(question.target), rows, fresh_questions) < 0.08
    assert share_gap(lambda question: question.target, rows, fresh_questions) < 0.06
    assert mean_gap(length, rows, fresh_questions) < 0.1


def test_things_are_known_once_and_in_both_languages() -> None:
    for language in TASK.languages:
        nouns = [noun for kind in KINDS for noun in vocabulary(f"{kind}.{language}")]
        assert len(set(nouns)) == len(nouns)
    for kind in KINDS:
        assert len(vocabulary(f"{kind}.en")) == len(vocabulary(f"{kind}.zh")) >= 40


@given(SEEDS, st.randoms(use_true_random=False))
def test_the_order_of_the_things_does_not_change_the_answer(
    seed: int, shuffle: random.Random
) -> None:
    question = question_of(TASK, seed, 1)
    item_texts = items(question)
    shuffle.shuffle(item_texts)
    question_text = question.text.partition(". ")[2]
    assert (
        TASK.solve(f"I have {', '.join(item_texts[:-1])}, and {item_texts[-1]}. {question_text}")
        == question.target
    )


@pytest.mark.parametrize(
    "text",
    [
        "I have a wug, and a horse. How many animals do I have?",
        "I have six horses, and a fox. How many animals do I have?",
        "I have a fox, and an owl. How many wugs do I have?",
        "我有一只怪兽和一只狼。我一共有多少只动物？",
    ],
)
def test_what_is_not_known_is_not_counted(text: str) -> None:
    assert TASK.solve(text) is None
