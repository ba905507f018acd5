"""What is spent, and budgets."""

from __future__ import annotations

import pytest

from keju.config import Budget, Price
from keju.engine.limits import SpendingMeter
from keju.scores.usage import UnitTokens, UsageMeter
from keju.types import Usage


def meter_after(
    requests: int, tokens: int, budget: Budget, price: Price | None = None
) -> SpendingMeter:
    spending = SpendingMeter(budget, price)
    for _ in range(requests):
        spending.requests += 1
        spending.add(Usage(input=tokens, output=0))
    return spending


def test_each_budget_stops_at_its_limit() -> None:
    assert not meter_after(9, 10, Budget(requests=10)).exhausted(0, 0)
    assert "10 requests" in str(meter_after(10, 10, Budget(requests=10)).exhausted(0, 0))
    assert "100 tokens" in str(meter_after(10, 10, Budget(tokens=100)).exhausted(0, 0))
    assert "2 seconds" in str(meter_after(1, 1, Budget(seconds=2)).exhausted(0, 2.5))
    price = Price(input=1.0, output=2.0)
    assert "in cost" in str(meter_after(10, 100_000, Budget(cost=1.0), price).exhausted(0, 0))


def test_what_is_in_flight_counts_against_tokens() -> None:
    spending = meter_after(5, 10, Budget(tokens=100))
    assert not spending.exhausted(4, 0)
    assert spending.exhausted(5, 0)


def test_the_dearest_reply_counts_and_not_the_last_one() -> None:
    price = Price(input=1.0, output=1.0)
    for budget in (Budget(tokens=200), Budget(cost=200 / 1e6)):
        spending = SpendingMeter(budget, price)
        for tokens in (90, 5):  # 95 are spent; the next reply may take 90 again
            spending.requests += 1
            spending.add(Usage(input=tokens, output=0))
        assert spending.exhausted(0, 0) is None
        assert spending.exhausted(1, 0) is not None


def test_what_earlier_sessions_spent_counts() -> None:
    already = UsageMeter()
    already.requests = 7
    spending = SpendingMeter(Budget(requests=10), None, already)
    spending.requests = 2
    assert not spending.exhausted(0, 0)
    spending.requests = 3
    assert spending.exhausted(0, 0)


def test_cached_tokens_have_their_own_price() -> None:
    meter = UsageMeter()
    meter.add(Usage(input=1_000_000, output=500_000, cached=400_000))
    assert meter.cost(Price(input=2, output=8, cached=0.5)) == pytest.approx(1.2 + 0.2 + 4)
    assert meter.cost(Price(input=2, output=8)) == pytest.approx(2 + 4)
    assert meter.cost(None) is None


def test_what_a_cache_keeps_and_gives_has_prices_of_its_own() -> None:
    usage = Usage(input=11_100, output=10, cached=10_000, written=1000)
    price = Price(input=10, output=100, cached=1, written=12.5)
    meter, ledger = UsageMeter(), UnitTokens(1)
    meter.add(usage)
    ledger.enter(0, usage)
    money = (100 * 10 + 10_000 * 1 + 1000 * 12.5 + 10 * 100) / 1e6
    assert meter.cost(price) == pytest.approx(money)
    assert ledger.cost(0, price) == pytest.approx(money)
    assert meter.usage == usage
    plain = Price(input=10, output=100)
    assert meter.cost(plain) == pytest.approx((11_100 * 10 + 10 * 100) / 1e6)
