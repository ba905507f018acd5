"""How many questions a goal needs, on exams and gates made of structs."""

from __future__ import annotations

import pytest

from keju.config import Price
from keju.errors import UsageError
from keju.results import plan as plans
from keju.results.gate import GateForecast
from keju.results.plan import CostPerReply, ForecastRange, PlanBasis
from keju.stats.power import items_needed_exactly, minimal_detectable_effect
from tests.results.fake_exam import make_exam, make_row


def make_basis(size: int = 1000, *, cost: float | None = None, deff: float = 1.0) -> PlanBasis:
    price = ForecastRange(cost, cost, cost) if cost is not None else None
    usage = CostPerReply(ForecastRange(10, 5, 20), ForecastRange(30, 10, 90), price, None)
    return PlanBasis(make_exam({"a": size}), None, None, usage, 0.2, "assumed", deff)


def test_forecasts_are_scaled_and_added_with_their_intervals() -> None:
    forecast = ForecastRange(2, 1, 4).times(3).plus(ForecastRange(1, 0, 2))
    assert forecast == ForecastRange(7, 3, 14)


def test_a_difference_needs_as_many_questions_as_the_exact_test() -> None:
    size = plans._choose_sample_size(make_basis(10_000), "mde", 0.05, 1)
    assert size.questions == size.in_general == items_needed_exactly(0.125, 0.075)
    assert size.on_set is not None
    assert size.on_set < size.questions
    clustered = plans._choose_sample_size(make_basis(10_000, deff=2.0), "mde", 0.05, 1)
    assert clustered.in_general == pytest.approx(2 * size.questions, abs=1)


def test_an_exam_that_is_too_small_is_asked_as_a_whole() -> None:
    basis = make_basis(100)
    size = plans._choose_sample_size(basis, "mde", 0.05, 1)
    assert (size.questions, (size.in_general or 0) > 100) == (100, True)
    assert [notice.code for notice in plans._notices(basis, size)] == [
        "plan_beyond",
        "plan_guessed",
    ]


def test_money_pays_for_whole_questions_with_all_their_repeats() -> None:
    basis = make_basis(cost=0.01)
    assert plans._choose_sample_size(basis, "max_cost", 1.0, 1).questions == 100
    assert plans._choose_sample_size(basis, "max_cost", 1.0, 4).questions == 25
    with pytest.raises(UsageError) as little:
        plans._choose_sample_size(basis, "max_cost", 0.001, 1)
    assert little.value.code == "plan_too_little"
    with pytest.raises(UsageError) as unpriced:
        plans._choose_sample_size(make_basis(), "max_cost", 1.0, 1)
    assert unpriced.value.code == "plan_without_price"


@pytest.mark.parametrize(
    ("verdict", "planned", "questions"),
    [("inconclusive", 300, 300), ("inconclusive", 5000, 1000), ("pass", None, 100)],
)
def test_a_gate_needs_the_questions_that_decide_it(
    verdict: str, planned: int | None, questions: int
) -> None:
    row = make_row(verdict=verdict, planned=planned, needed=planned)
    basis = make_basis()._replace(gated=GateForecast(row, "base", 0.1))
    assert plans._choose_sample_size(basis, "margin", None, 1).questions == questions


def test_a_plan_lists_the_effects_of_smaller_and_larger_exams() -> None:
    basis = make_basis(600)
    plan = plans._build_plan(basis, plans._choose_sample_size(basis, "limit", 120, 1), 2, 8)
    assert [row.questions for row in plan.sizes] == [50, 100, 120, 250, 500, 600]
    assert plan.effect == pytest.approx(minimal_detectable_effect(120, 0.2))
    assert (plan.requests, plan.input_tokens.value, plan.at_once) == (240, 2400, 0)
    effects = [row.effect for row in plan.sizes]
    assert effects == sorted(effects, reverse=True)


@pytest.mark.parametrize(
    ("share", "goals", "code"),
    [
        (1.5, {}, "plan_discordance"),
        (0.1, {"mde": 0.2}, "plan_mde"),
        (0.1, {"max_cost": -1.0}, "plan_max_cost"),
        (0.1, {"mde": 0.05, "limit": 3.0}, "plan_two_goals"),
    ],
)
def test_goals_that_make_no_sense_are_refused(
    share: float, goals: dict[str, float], code: str
) -> None:
    every_goal = dict.fromkeys(("mde", "max_cost", "limit", "margin")) | goals
    with pytest.raises(UsageError) as refused:
        plans._choose_goal(share, **every_goal)
    assert refused.value.code == code


def test_a_guess_depends_on_the_length_of_prompts_and_the_price() -> None:
    usage = plans._guess_usage(make_exam({"a": 2}), Price(input=1.0, output=2.0))
    assert usage.input.value == pytest.approx(1 / plans.BYTES_PER_TOKEN)
    assert usage.cost is not None
    assert usage.cost.value == pytest.approx((usage.input.value + 2 * plans.REPLY) / 1e6)
