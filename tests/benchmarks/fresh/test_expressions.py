"""Fresh expressions, sums and sequences of brackets: like the published ones."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable

import pytest
from hypothesis import given

from keju.benchmarks.fresh.making import make_questions
from keju.benchmarks.fresh.task import FreshQuestion
from keju.benchmarks.fresh.tasks import TASKS
from keju.errors import ConfigError
from tests.benchmarks.fresh.conftest import Published
from tests.benchmarks.fresh.measures import fresh, length, mean_gap, share_gap
from tests.support.fresh_questions import SEEDS, question_of

pytestmark = pytest.mark.slow

BOOLEAN, ARITHMETIC, DYCK = (
    TASKS[name] for name in ("boolean_expressions", "multistep_arithmetic_two", "dyck_languages")
)


def target(question: FreshQuestion) -> str:
    return question.target


def depth(question: FreshQuestion) -> int:
    """Open brackets of the input at the deepest place."""
    sequence = question.text.rpartition(": ")[2]
    heights = [0]
    for bracket in re.findall(r"[][(){}<>]", sequence):
        heights.append(heights[-1] + (1 if bracket in "([{<" else -1))
    return max(heights)


def counted(token: str) -> Callable[[FreshQuestion], int]:
    """How often a token stands in a question."""
    return lambda question: question.text.split().count(token)


def test_boolean_expressions_are_like_the_published_ones(published: Published) -> None:
    rows, fresh_questions = published(BOOLEAN.subset), fresh(BOOLEAN.subset)
    assert share_gap(lambda question: len(question.text.split()), rows, fresh_questions) == 0
    assert share_gap(target, rows, fresh_questions) < 0.1
    assert share_gap(depth, rows, fresh_questions) < 0.1
    assert mean_gap(length, rows, fresh_questions) < 0.03
    for token in ("not", "(", "and", "or", "True", "False"):
        assert mean_gap(counted(token), rows, fresh_questions) < 0.15


@pytest.mark.parametrize("difficulty", [0.5, 1, 2, 4])
def test_boolean_answers_are_balanced(difficulty: float) -> None:
    n = min(400, BOOLEAN.space(difficulty) or 400)
    answers = [q.target for q in make_questions(BOOLEAN, n, seed=4, difficulty=difficulty)]
    assert abs(answers.count("True") / n - 0.5) < 0.08


@pytest.mark.parametrize("difficulty", [0.25, 0.5, 1])
def test_every_boolean_expression_of_a_length_can_be_had(difficulty: float) -> None:
    space = BOOLEAN.space(difficulty)
    assert space in (2, 22, 1872)
    texts = [q.text for q in make_questions(BOOLEAN, space, seed=4, difficulty=difficulty)]
    assert len(set(texts)) == space
    with pytest.raises(ConfigError):
        list(make_questions(BOOLEAN, space + 1, seed=4, difficulty=difficulty))


def test_arithmetic_is_like_the_published_one(published: Published) -> None:
    rows, fresh_questions = published(ARITHMETIC.subset), fresh(ARITHMETIC.subset)
    shapes = {
        re.sub(r"-?\d+", "n", re.sub(r" [-+*] ", " o ", q.text)) for q in (*rows, *fresh_questions)
    }
    assert shapes == {"((n o n o n o n) o (n o n o n o n)) ="}
    assert mean_gap(length, rows, fresh_questions) < 0.03
    assert share_gap(lambda question: question.target.startswith("-"), rows, fresh_questions) < 0.1
    assert share_gap(lambda question: len(question.target.strip("-")), rows, fresh_questions) < 0.1
    for sign in "+", "-", "*":
        assert mean_gap(counted(sign), rows, fresh_questions) < 0.1


def test_dyck_words_are_like_the_published_ones(published: Published) -> None:
    rows, fresh_questions = published(DYCK.subset), fresh(DYCK.subset)

    def size(question: FreshQuestion) -> int:
        return len(question.text.rpartition(": ")[2].split())

    assert min(map(size, fresh_questions)) == min(map(size, rows)) == 2
    assert max(map(size, (*fresh_questions, *rows))) < 100
    assert share_gap(lambda question: len(question.target.split()), rows, fresh_questions) < 0.1
    assert share_gap(lambda question: int(math.log2(size(question))), rows, fresh_questions) < 0.1
    assert mean_gap(lambda question: math.log(size(question)), rows, fresh_questions) < 0.1
    assert mean_gap(depth, rows, fresh_questions) < 0.2
    assert mean_gap(length, rows, fresh_questions) < 0.1


@given(SEEDS)
def test_renaming_the_kinds_of_brackets_renames_the_answer(seed: int) -> None:
    question = question_of(DYCK, seed, 1)
    kinds = ["()", "[]", "{}", "<>"]
    renamed = str.maketrans("".join(kinds), "".join(random.Random(seed).sample(kinds, 4)))
    instruction, colon, sequence = question.text.rpartition(": ")
    solved = DYCK.solve(instruction + colon + sequence.translate(renamed))
    assert solved == question.target.translate(renamed)


@pytest.mark.parametrize(
    "text", ["1 +", "(1 + 2", "1 2", "1 +2", "1 + x", "(1 + 2))", "()", "1 / 2"]
)
def test_what_is_no_sum_has_no_value(text: str) -> None:
    assert ARITHMETIC.solve(f"{text} =") is None
    assert ARITHMETIC.solve("(1 + 2) =") == "3"


@pytest.mark.parametrize("sequence", ["( ]", ")", "( )", "( a"])
def test_what_is_no_open_sequence_is_not_closed(sequence: str) -> None:
    before = question_of(DYCK, 1, 1).text.rpartition(": ")[0]
    assert DYCK.solve(f"{before}: {sequence}") is None
    assert DYCK.solve(f"{before}: ( [") == "] )"
