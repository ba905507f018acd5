"""The limits of one question: what it has used, and which limit cuts it."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from keju.config import Price
from keju.engine.channel import Channel, ReplyWithAttempts
from keju.engine.limited_solver import LimitedSolver, QuestionMeter
from keju.scores.question_limits import QuestionLimits
from keju.types import CUT, Fault, Prefix, Prompt, Reply, Request, Sampling, Usage
from tests.results.fake_exam import make_sample

PRICE = Price(input=1_000_000, output=1_000_000)


class FakeChannel:
    """Gives the same exchange to every request, and keeps the time limits."""

    def __init__(self, exchange: ReplyWithAttempts) -> None:
        self.exchange = exchange
        self.time_limits: list[float | None] = []

    async def ask(self, _request: Request, *, time_limit: float | None = None) -> ReplyWithAttempts:
        self.time_limits.append(time_limit)
        return self.exchange


def solve(limits: QuestionLimits, exchange: ReplyWithAttempts) -> Reply:
    channel = FakeChannel(exchange)
    request = Request(Prompt(Prefix(), "?"), Sampling(), "0" * 32)
    sample = make_sample("a", 0)
    solving = LimitedSolver(limits)(request, cast(Channel, channel), sample, 0)
    answered = asyncio.run(cast(Any, solving))
    assert channel.time_limits == [limits.time]
    return cast(ReplyWithAttempts, answered).reply


def exchange(seconds: float, tokens: int, error: Fault | None = None) -> ReplyWithAttempts:
    return ReplyWithAttempts(Reply("A", usage=Usage(tokens, tokens), error=error), seconds=seconds)


@pytest.mark.parametrize(
    ("limits", "cut_by"),
    [
        (QuestionLimits(time=10, tokens=100), ""),
        (QuestionLimits(time=1), "time"),
        (QuestionLimits(tokens=10), "tokens"),
        (QuestionLimits(cost=5, price=PRICE), "cost"),
        (QuestionLimits(cost=50, price=PRICE), ""),
    ],
)
def test_the_reply_names_the_limit_that_cut_it(limits: QuestionLimits, cut_by: str) -> None:
    reply = solve(limits, exchange(2.0, 10))
    assert reply.cut_by == cut_by
    assert (reply.finish == CUT) is bool(cut_by)


def test_a_timeout_at_the_limit_is_a_cut_and_an_earlier_one_is_an_error() -> None:
    timeout = Fault("timeout", "no reply")
    late = solve(QuestionLimits(time=2), exchange(2.0, 0, timeout))
    assert (late.error, late.cut_by) == (None, "time")
    early = solve(QuestionLimits(time=5), exchange(2.0, 0, timeout))
    assert (early.error, early.cut_by) == (timeout, "")


def test_the_next_turn_is_refused_if_one_like_the_largest_does_not_fit() -> None:
    meter = QuestionMeter(QuestionLimits(time=10, tokens=100))
    channel = cast(Channel, FakeChannel(exchange(1.0, 20)))
    assert meter.find_exhausted() is None
    assert meter.add_exchange(exchange(4.0, 20), channel) is None
    assert (meter.seconds_left, meter.find_exhausted()) == (6.0, None)
    assert meter.add_exchange(exchange(7.0, 20), channel) == "time"
    assert meter.find_exhausted() == "time"
