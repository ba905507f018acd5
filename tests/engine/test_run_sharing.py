"""Slots and budgets that several runs share."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from keju.config import Budget
from keju.engine.limits import RateLimits, SpendingMeter, SpentAmounts
from keju.engine.run_sharing import CombinedRateLimits, SharedBudget, SharedSlots, SlotClaim
from keju.types import Usage


def never() -> None:
    raise AssertionError("nothing was released")


def test_an_earlier_run_goes_first_and_a_model_keeps_to_its_slots() -> None:
    shared = SharedSlots(3, RateLimits())
    first, second = SlotClaim(shared, 0, "a", 2), SlotClaim(shared, 1, "b", 2)
    assert shared.take(first, never)
    assert shared.take(second, never)
    assert shared.take(first, never)
    woken: list[str] = []

    def waits(name: str) -> Callable[[], None]:
        return lambda: woken.append(name)

    assert not shared.take(second, waits("second"))
    shared.release(second)
    assert woken == ["second"]
    assert not shared.take(first, waits("first")), "a model never has more than its slots"
    assert shared.take(second, never)


def test_a_later_run_gives_its_slot_back_where_an_earlier_one_waits() -> None:
    shared = SharedSlots(1, RateLimits())
    first, second = SlotClaim(shared, 0, "a", 1), SlotClaim(shared, 1, "b", 1)
    assert shared.take(second, never)
    assert second.may_stay
    assert not shared.take(first, lambda: None)
    assert not second.may_stay
    first.stop_waiting()
    assert second.may_stay


class FixedRate(RateLimits):
    """Always asks to wait for the same time."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.limited, self.seconds, self.requests = True, seconds, 0

    def wait(self, _tokens: float, _now: float) -> float:
        return self.seconds

    def count_request(self) -> None:
        self.requests += 1


def test_the_slowest_of_several_rates_decides_and_all_count() -> None:
    slow, fast = FixedRate(3.0), FixedRate(1.0)
    combined = CombinedRateLimits([fast, slow, RateLimits()])
    assert combined.limited
    assert combined.wait(0, 0) == 3.0
    combined.count_request()
    assert (slow.requests, fast.requests) == (1, 1)
    assert not CombinedRateLimits([RateLimits()]).limited


def test_a_budget_of_requests_covers_all_runs_and_earlier_sessions() -> None:
    budget = SharedBudget(Budget(requests=4), {"one": SpentAmounts(requests=2)})
    meters = [SpendingMeter(Budget(), None) for _ in range(2)]
    meters[0].requests = 2
    one, two = (budget.open(name, m) for name, m in zip(("one", "two"), meters, strict=True))
    assert one.claim() is None
    assert two.claim() is None
    refusal = two.claim()
    assert refusal is not None
    assert "4" in str(refusal)
    two.refund_request()
    assert two.claim() is None


def test_a_budget_of_tokens_expects_the_most_expensive_reply_again() -> None:
    budget = SharedBudget(Budget(tokens=100), {})
    meter = SpendingMeter(Budget(), None)
    run = budget.open("one", meter)
    assert run.claim() is None
    assert run.claim() is not None, "the first reply shows the price"
    meter.add(Usage(20, 20))
    run.finish_request()
    assert run.claim() is None
    assert run.claim() is not None
    assert budget.in_flight
    assert budget.total_spent().tokens == 40


@pytest.mark.parametrize(("seconds", "over"), [(9.0, False), (10.0, True)])
def test_a_budget_of_time_ends_all_runs(seconds: float, over: bool) -> None:
    budget = SharedBudget(Budget(seconds=10), {}, lambda: seconds)
    assert (budget.exhausted() is not None) is over
