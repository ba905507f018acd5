"""Fresh days: like the published ones, in whatever order they are told and whoever lives them."""

from __future__ import annotations

import random
import re

from hypothesis import given
from hypothesis import strategies as st

from keju.benchmarks.fresh.task import FreshQuestion
from keju.benchmarks.fresh.tasks import TASKS
from keju.benchmarks.fresh.vocabulary import vocabulary
from tests.benchmarks.fresh.conftest import Published
from tests.benchmarks.fresh.measures import fresh, length, mean_gap, share_gap
from tests.support.fresh_questions import DIFFICULTIES, SEEDS, question_of

TASK = TASKS["temporal_sequences"]


def sightings(question: FreshQuestion) -> int:
    return question.text.count(" saw ")


def options(question: FreshQuestion) -> int:
    return len(re.findall(r"^\(\w\) ", question.text, re.M))


def wake_time(question: FreshQuestion) -> str:
    return question.text.partition("woke up at ")[2].partition(".")[0]


def closed(question: FreshQuestion) -> str:
    return question.text.partition("closed after ")[2].partition(".")[0]


def target(question: FreshQuestion) -> str:
    return question.target


def test_days_are_like_the_published_ones(published: Published) -> None:
    rows, fresh_questions = published(TASK.subset), fresh(TASK.subset)
    for measure in (sightings, options, wake_time, closed, target):
        assert share_gap(measure, rows, fresh_questions) < 0.1, measure
    assert mean_gap(length, rows, fresh_questions) < 0.05


@given(SEEDS, DIFFICULTIES, st.randoms(use_true_random=False))
def test_the_order_of_the_sightings_does_not_change_the_answer(
    seed: int, difficulty: float, shuffle: random.Random
) -> None:
    question = question_of(TASK, seed, difficulty)
    lines = question.text.split("\n")
    first_sighting = lines.index("We know that:") + 1
    until = next(number for number, line in enumerate(lines) if line.startswith("Between"))
    sighting_lines = lines[first_sighting:until]
    shuffle.shuffle(sighting_lines)
    assert (
        TASK.solve("\n".join([*lines[:first_sighting], *sighting_lines, *lines[until:]]))
        == question.target
    )


@given(SEEDS, DIFFICULTIES)
def test_a_renamed_person_could_have_gone_at_the_same_time(seed: int, difficulty: float) -> None:
    question = question_of(TASK, seed, difficulty)
    name = question.text.split()[1]
    assert name in vocabulary("people.en")
    renamed = re.sub(rf"\b{name}\b", "Zacharias", question.text)
    assert TASK.solve(renamed) == question.target
