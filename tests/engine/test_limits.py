"""Concurrency, rates, budgets and the breaker."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keju.config import Budget, Price
from keju.engine.limits import Breaker, Concurrency, Meter, Rate, Spending
from keju.types import Usage


def feed(limit: Concurrency, replies: int, overloads: int) -> None:
    for number in range(replies):
        limit.saw(overload=number < overloads)


def test_concurrency_backs_off_under_overload_and_grows_again() -> None:
    limit = Concurrency(64)
    feed(limit, 64, 64)
    assert limit.limit < 32
    for _ in range(20):
        feed(limit, limit.limit + 8, limit.limit + 8)
    assert limit.limit == 1
    for _ in range(100):
        feed(limit, max(8, limit.limit), 0)
    assert limit.limit == 64


@given(st.lists(st.booleans(), max_size=500), st.integers(1, 64))
def test_concurrency_stays_between_one_and_the_users_number(seen: list[bool], most: int) -> None:
    limit = Concurrency(most)
    for overload in seen:
        limit.saw(overload=overload)
        assert 1 <= limit.limit <= most


def test_a_rate_lets_the_stated_number_through_in_a_minute() -> None:
    rate = Rate(120, burst=2)
    now, sent = 0.0, 0
    while now < 60:
        wait = rate.wait(1, now)
        if wait <= 0:
            rate.draw(1)
            sent += 1
        else:
            now += wait
    assert 120 <= sent <= 123


def test_a_rate_makes_up_for_a_reply_that_used_more_than_foreseen() -> None:
    rate = Rate(600, burst=100)
    rate.wait(0, 0.0)
    rate.draw(1100)
    assert rate.wait(50, 0.0) == pytest.approx(105.0)


def spent(requests: int, tokens: int, budget: Budget, price: Price | None = None) -> Spending:
    spending = Spending(budget, price)
    for _ in range(requests):
        spending.requests += 1
        spending.add(Usage(input=tokens, output=0))
    return spending


def test_each_budget_stops_at_its_limit() -> None:
    assert not spent(9, 10, Budget(requests=10)).exhausted(0, 0)
    assert "10 requests" in spent(10, 10, Budget(requests=10)).exhausted(0, 0)
    assert "100 tokens" in spent(10, 10, Budget(tokens=100)).exhausted(0, 0)
    assert "2 seconds" in spent(1, 1, Budget(seconds=2)).exhausted(0, 2.5)
    price = Price(input=1.0, output=2.0)
    assert "in cost" in spent(10, 100_000, Budget(cost=1.0), price).exhausted(0, 0)


def test_what_is_in_flight_counts_against_tokens() -> None:
    spending = spent(5, 10, Budget(tokens=100))
    assert not spending.exhausted(4, 0)
    assert spending.exhausted(5, 0)


def test_what_earlier_sittings_spent_counts() -> None:
    already = Meter()
    already.requests = 7
    spending = Spending(Budget(requests=10), None, already)
    spending.requests = 2
    assert not spending.exhausted(0, 0)
    spending.requests = 3
    assert spending.exhausted(0, 0)


def test_cached_tokens_have_their_own_price() -> None:
    meter = Meter()
    meter.add(Usage(input=1_000_000, output=500_000, cached=400_000))
    assert meter.cost(Price(input=2, output=8, cached=0.5)) == pytest.approx(1.2 + 0.2 + 4)
    assert meter.cost(Price(input=2, output=8)) == pytest.approx(2 + 4)
    assert meter.cost(None) is None


def test_the_breaker_opens_only_on_failures_in_a_row() -> None:
    breaker = Breaker(60, threshold=3)
    breaker.failed(1)
    breaker.failed(2)
    breaker.worked()
    assert not breaker.failed(3)
    assert not breaker.failed(4)
    assert breaker.failed(5)
    assert breaker.since == 5
    assert not breaker.failed(6)
    breaker.worked()
    assert not breaker.open
