"""Fresh hints about today's date: like the published ones; wrong published targets are told."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keju.benchmarks.bbh.metadata import ERRATA
from keju.benchmarks.fresh.task import FreshQuestion, split_options
from keju.benchmarks.fresh.tasks import TASKS
from keju.benchmarks.fresh.tasks.date_hints import STYLES
from keju.benchmarks.fresh.vocabulary import vocabulary
from tests.benchmarks.fresh.checks import date_understanding as check
from tests.benchmarks.fresh.conftest import Published
from tests.benchmarks.fresh.measures import fresh, length, mean_gap, share_gap
from tests.support.fresh_questions import DIFFICULTIES, SEEDS, question_of

TASK = TASKS["date_understanding"]


def relation(question: FreshQuestion) -> str:
    return str(re.findall(r"What is the date (.+) in MM", question.text)[0])


def year(question: FreshQuestion) -> int:
    option = split_options(question.text)[1]["ABCDEF".index(question.target[1])]
    return int(option[-4:])


def same_year(question: FreshQuestion) -> float:
    """The share of options of the year of the right one."""
    options = split_options(question.text)[1]
    return sum(option.endswith(str(year(question))) for option in options) / len(options)


def test_questions_are_like_the_published_ones(published: Published) -> None:
    rows, fresh_questions = published(TASK.subset), fresh(TASK.subset)
    assert (
        share_gap(lambda question: len(split_options(question.text)[1]), rows, fresh_questions)
        < 0.05
    )
    assert share_gap(relation, rows, fresh_questions) < 0.05
    assert share_gap(lambda question: question.target, rows, fresh_questions) < 0.08
    assert mean_gap(length, rows, fresh_questions) < 0.06
    assert mean_gap(year, rows, fresh_questions) < 0.02
    assert mean_gap(same_year, rows, fresh_questions) < 0.2


def test_rows_with_a_wrong_target_are_known_errata() -> None:
    wrong = {
        f"bbh_date_understanding_{row}" for row, why in TASK.exceptions.items() if "eggs" not in why
    }
    assert wrong == {name for name in ERRATA if "date_understanding" in name}
    assert len(TASK.exceptions) == 24


@pytest.mark.parametrize(
    ("year", "month", "day", "days", "expected"),
    [
        (1958, 1, 2, 0, (1963, 1, 2)),  # five years
        (2012, 1, 31, 7, (2012, 2, 7)),
        (2014, 12, 30, 1, (2014, 12, 31)),
    ],
)
def test_the_errata_by_counting_days(
    year: int, month: int, day: int, days: int, expected: check.Day
) -> None:
    months = 60 if year == 1958 else 0
    assert check.plus_days(check.plus_months((year, month, day), months), days) == expected


@given(SEEDS, DIFFICULTIES)
def test_the_way_a_date_is_written_does_not_change_the_answer(seed: int, difficulty: float) -> None:
    problem = TASK.invent(random.Random(seed), difficulty)
    for language in TASK.languages:
        for style in range(STYLES):
            question = TASK.write(problem._replace(style=style), language)
            assert TASK.solve(question.text) == question.target


@given(SEEDS, st.permutations(range(100)))
def test_other_names_do_not_change_the_answer(seed: int, numbers: list[int]) -> None:
    question = question_of(TASK, seed, 1)
    renamed = question.text
    for name, number in zip(vocabulary("people.en"), numbers, strict=True):
        renamed = re.sub(rf"\b{name}\b", f"Wug{number}", renamed)
    assert TASK.solve(renamed) == question.target


@pytest.mark.parametrize(
    ("hint", "answer"),
    [
        ("Today is Feb 30, 2001.", None),
        ("People celebrate Wugmas of 2001 today.", None),
        ("Tomorrow is Wug 3, 2001.", None),
        ("The bridge was opened on 5/3/2001. Today is 2 days after the opening of the wug.", None),
        (
            "On May 1st, 2001 Ada bought 3 eggs. She ate one per day. Today she ran out of eggs.",
            None,
        ),
        ("Yesterday was 5/3/2001.", "(A)"),
        (
            "The bridge was opened on 5/3/2001. Today is 2 days after the opening of the bridge.",
            "(B)",
        ),
    ],
)
def test_a_hint_that_leaves_it_open_gets_no_answer(hint: str, answer: str | None) -> None:
    text = f"{hint} What is the date today in MM/DD/YYYY?\nOptions:\n(A) 05/04/2001\n(B) 05/05/2001"
    options = "\n(C) 05/03/2001\n(D) 03/02/2001"
    assert TASK.solve(text + options) == answer
