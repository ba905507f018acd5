"""Fresh arguments: sizes and forms as published; what is told first, and of whom, does not matter."""

from __future__ import annotations

import random
import re
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keju.benchmarks.fresh.task import FreshQuestion
from keju.benchmarks.fresh.tasks import TASKS
from keju.benchmarks.fresh.tasks.fallacies_logic import (
    And,
    Argument,
    LogicStatement,
    Not,
    Or,
    Predicate,
    is_valid,
    list_atoms,
)
from keju.benchmarks.fresh.tasks.fallacies_solver import read_argument, read_statement
from tests.benchmarks.fresh.conftest import Published
from tests.benchmarks.fresh.measures import fresh, length, mean_gap, share_gap
from tests.support.fresh_questions import DIFFICULTIES, SEEDS, question_of

TASK = TASKS["formal_fallacies"]


def argument(question: FreshQuestion) -> Argument:
    read = read_argument(question.text.split('"\nIs the argument')[0])
    assert read is not None
    return read


def premises(question: FreshQuestion) -> int:
    return len(argument(question).premises)


def kinds(question: FreshQuestion) -> int:
    """How many different predicates an argument has."""
    read = argument(question)
    statements = (*read.premises, read.conclusion)
    return len({atom for statement in statements for atom in list_atoms(statement.predicate)})


def concluded(question: FreshQuestion) -> str:
    return argument(question).conclusion.quantifier


def target(question: FreshQuestion) -> str:
    return question.target


def conditions(question: FreshQuestion) -> int:
    """How many sentences speak of what is sufficient or necessary."""
    return len(re.findall("is sufficient for|is necessary for", question.text))


def test_arguments_are_like_the_published_ones(published: Published) -> None:
    rows, fresh_questions = published(TASK.subset), fresh(TASK.subset)
    for measure in (premises, kinds, concluded, target, conditions):
        assert share_gap(measure, rows, fresh_questions) < 0.1, measure
    assert mean_gap(kinds, rows, fresh_questions) < 0.06
    assert mean_gap(length, rows, fresh_questions) < 0.06


@given(SEEDS, DIFFICULTIES, st.randoms(use_true_random=False))
def test_the_order_of_the_premises_does_not_change_the_answer(
    seed: int, difficulty: float, shuffle: random.Random
) -> None:
    question = question_of(TASK, seed, difficulty)
    opening, premises, closing = re.split(
        r"(?<=argument: )|(?<=question: )|(?<=relations: )|(?=\"\nIs)", question.text
    )
    *sentences, conclusion = premises.removesuffix(".").split(". ")
    shuffle.shuffle(sentences)
    assert (
        TASK.solve(f"{opening}{'. '.join([*sentences, conclusion])}.{closing}") == question.target
    )


@given(SEEDS, DIFFICULTIES)
def test_other_names_give_the_same_answer(seed: int, difficulty: float) -> None:
    question = question_of(TASK, seed, difficulty)
    head, body = question.text.split(": ", 1)
    renamed = re.sub(r"\b(of|to) (?:the )?([A-Z])", r"\1 Old \2", body)
    assert TASK.solve(f"{head}: {renamed}") == question.target


A, B, C = "tenant of ada", "tenant of bo", "tenant of cy"


@pytest.mark.parametrize(
    ("sentence", "read"),
    [
        ("every tenant of Ada is not a tenant of Bo or a tenant of Cy", Or((Not(A), Or((Not(B), C))))),
        ("no tenant of Ada who is a tenant of Bo is a tenant of Cy", Or((Not(And((A, B))), Not(C)))),
        ("whoever is none of this: a tenant of Ada or tenant of Bo, is a tenant of Cy", Or((Not(Not(Or((A, B)))), C))),
        ("there is no tenant of Ada who is a tenant of Bo yet not a tenant of Cy", Not(And((A, And((B, Not(C))))))),
        ("someone who is not a tenant of Ada is a tenant of Bo", Or((Not(Not(A)), B))),
        ("nobody is neither a tenant of Ada nor a tenant of Bo", Not(Not(Or((A, B))))),
        ("to be a tenant of Ada or a tenant of Bo is necessary for being a tenant of Cy", Or((Not(C), Or((A, B))))),
    ],
)  # fmt: skip
def test_sentences_on_everyone_mean_what_they_say(sentence: str, read: Predicate) -> None:
    assert read_statement(sentence) == LogicStatement("all", read)


@pytest.mark.parametrize(
    "sentence",
    ["every tenant of Ada is", "perhaps a tenant of Ada is a tenant of Bo", "most are tenants", ""],
)
def test_a_sentence_of_another_form_is_not_guessed_at(sentence: str) -> None:
    assert read_statement(sentence) is None


ATOMS = ("p", "q", "r")
PREDICATES: st.SearchStrategy[Predicate] = st.recursive(
    st.sampled_from(ATOMS),
    lambda parts: st.one_of(
        parts.map(Not), st.tuples(parts, parts).map(And), st.tuples(parts, parts).map(Or)
    ),
    max_leaves=4,
)
STATEMENTS = st.builds(
    lambda quantifier, predicate: LogicStatement(
        quantifier, predicate, "n" * (quantifier == "one")
    ),
    st.sampled_from(["all", "some", "one"]),
    PREDICATES,
)


def true(predicate: Predicate, individual: frozenset[str]) -> bool:
    if isinstance(predicate, str):
        return predicate in individual
    if isinstance(predicate, Not):
        return not true(predicate.part, individual)
    return (all if isinstance(predicate, And) else any)(
        true(p, individual) for p in predicate.parts
    )


@given(st.lists(STATEMENTS, max_size=2), STATEMENTS)
def test_validity_is_what_all_models_with_three_individuals_say(
    premises: list[LogicStatement], conclusion: LogicStatement
) -> None:
    individuals = [
        frozenset(a for a, is_true in zip(ATOMS, bits, strict=True) if is_true)
        for bits in product((0, 1), repeat=3)
    ]

    def holds(statement: LogicStatement, model: tuple[frozenset[str], ...]) -> bool:
        values = [true(statement.predicate, individual) for individual in model]
        return {"all": all(values), "some": any(values), "one": values[0]}[statement.quantifier]

    # Two premises and a counterexample need no more than three; the first has the name.
    valid = all(
        holds(conclusion, model)
        for model in product(individuals, repeat=3)
        if all(holds(statement, model) for statement in premises)
    )
    assert is_valid(Argument(tuple(premises), conclusion)) == valid
