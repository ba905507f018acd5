"""Fresh chains of people: like the published ones, in whatever order and whoever they are."""

from __future__ import annotations

import random
import re

from hypothesis import given
from hypothesis import strategies as st

from keju.benchmarks.fresh.task import FreshQuestion
from keju.benchmarks.fresh.tasks import TASKS
from tests.benchmarks.fresh.conftest import Published
from tests.benchmarks.fresh.measures import fresh, length, mean_gap, share_gap
from tests.support.fresh_questions import DIFFICULTIES, SEEDS, question_of

TASK = TASKS["web_of_lies"]


def sentences(question: FreshQuestion) -> list[str]:
    return re.findall(r"[^.:]+\.", question.text)


def lies(question: FreshQuestion) -> int:
    return sum("lies" in sentence for sentence in sentences(question))


def test_chains_are_like_the_published_ones(published: Published) -> None:
    rows, fresh_questions = published(TASK.subset), fresh(TASK.subset)
    assert share_gap(lambda question: len(sentences(question)), rows, fresh_questions) == 0
    assert share_gap(lambda question: question.target, rows, fresh_questions) < 0.08
    assert share_gap(lies, rows, fresh_questions) < 0.08
    assert mean_gap(length, rows, fresh_questions) < 0.1


@given(SEEDS, DIFFICULTIES, st.randoms(use_true_random=False))
def test_neither_order_nor_names_change_the_answer(
    seed: int, difficulty: float, shuffle: random.Random
) -> None:
    question = question_of(TASK, seed, difficulty)
    sentence_list = sentences(question)
    shuffle.shuffle(sentence_list)
    question_line = question.text.rpartition(". ")[2]
    shuffled = f"Question:{''.join(sentence_list)} {question_line}"
    assert TASK.solve(shuffled) == question.target
    names = sorted(
        {re.split(" says | tells| lies", sentence.strip())[0] for sentence in sentence_list}
    )
    renamed = shuffled
    for number, name in enumerate(names):
        renamed = re.sub(rf"\b{name}\b", f"Wug{number}", renamed)
    assert TASK.solve(renamed) == question.target


def test_whoever_is_not_known_gets_no_answer() -> None:
    assert TASK.solve("Question: Ada lies. Ben says Ida lies. Does Ben tell the truth?") is None
    assert TASK.solve("Question: Ada lies. Ben says Ada lies. Does Ida tell the truth?") is None
    assert TASK.solve("Question: Ada lies. Ben says Ada lies. Does Ben tell the truth?") == "Yes"
