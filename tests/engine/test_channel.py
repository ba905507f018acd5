"""One endpoint: slots, rates, the breaker, and retries that block nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from keju.engine.channel import Channel, ChannelLimits, ReplyWithAttempts
from keju.engine.endpoint_group import EndpointGroup
from keju.engine.limits import CircuitBreaker, ConcurrencyLimit, MinuteRate
from keju.errors import EndpointError, Interrupted
from keju.models.base import Model
from keju.types import Fault, Prefix, Prompt, Reply, Request, Sampling

BUSY = Fault("rate_limit", "busy", 429, retry_after=0.02)
BROKEN = Fault("server", "broken", 500)


def feed(limit: ConcurrencyLimit, replies: int, overloads: int) -> None:
    for number in range(replies):
        limit.record_reply(overload=number < overloads)


def test_concurrency_backs_off_under_overload_and_grows_again() -> None:
    limit = ConcurrencyLimit(64)
    feed(limit, 64, 64)
    assert limit.limit < 32
    for _ in range(20):
        feed(limit, limit.limit + 8, limit.limit + 8)
    assert limit.limit == 1
    for _ in range(100):
        feed(limit, max(8, limit.limit), 0)
    assert limit.limit == 64


@given(st.lists(st.booleans(), max_size=500), st.integers(1, 64))
def test_concurrency_stays_between_one_and_the_users_number(
    overloads: list[bool], most_slots: int
) -> None:
    limit = ConcurrencyLimit(most_slots)
    for overload in overloads:
        limit.record_reply(overload=overload)
        assert 1 <= limit.limit <= most_slots


def test_a_rate_lets_the_stated_number_through_in_a_minute() -> None:
    rate = MinuteRate(120, burst=2)
    now, sent_count = 0.0, 0
    while now < 60:
        wait = rate.wait(1, now)
        if wait <= 0:
            rate.draw(1)
            sent_count += 1
        else:
            now += wait
    assert 120 <= sent_count <= 123


def test_a_rate_makes_up_for_a_reply_that_used_more_than_foreseen() -> None:
    rate = MinuteRate(600, burst=100)
    rate.wait(0, 0.0)
    rate.draw(1100)
    assert rate.wait(50, 0.0) == pytest.approx(105.0)


def test_the_breaker_opens_only_on_failures_in_a_row() -> None:
    breaker = CircuitBreaker(60, threshold=3)
    breaker.record_failure(1)
    breaker.record_failure(2)
    breaker.record_success()
    assert not breaker.record_failure(3)
    assert not breaker.record_failure(4)
    assert breaker.record_failure(5)
    assert breaker.since == 5
    assert not breaker.record_failure(6)
    breaker.record_success()
    assert breaker.since is None


class Endpoint(Model):
    """Answers with the prompt; `fault` may say which attempt at which prompt fails, and how."""

    name = "echo"

    def __init__(self, fault: Callable[[str, int], Fault | None], seconds: float = 0.0) -> None:
        self.fault = fault
        self._seconds = seconds
        self.asked_texts: list[str] = []
        self.most_in_flight = 0
        self._now = 0

    async def ask(self, request: Request, *, timeout: float) -> Reply:
        text = request.prompt.text
        self.asked_texts.append(text)
        self._now += 1
        self.most_in_flight = max(self.most_in_flight, self._now)
        await asyncio.sleep(self._seconds)
        self._now -= 1
        return Reply(text, error=self.fault(text, self.asked_texts.count(text)))


def make(model: Model, slots: int, **limits: float) -> Channel:
    settings = {"timeout": 5, "attempts": 5, "give_up_after": 5, "retry_interval": 0.01} | limits
    return Channel(model, ChannelLimits(concurrency=slots, **settings))  # type: ignore[arg-type]


def request(text: str) -> Request:
    return Request(Prompt(Prefix(), text), Sampling(), hash=text)


async def solve(channel: Channel, text: str) -> ReplyWithAttempts:
    async with channel.slot():
        return await channel.ask(request(text))


def test_a_retry_gives_its_slot_back_and_comes_before_new_work() -> None:
    def fault(text: str, attempt: int) -> Fault | None:
        return BROKEN if text == "0" and attempt == 1 else None

    async def scenario() -> None:
        endpoint = Endpoint(fault, seconds=0.05)
        channel = make(endpoint, 1, retry_interval=0.2)
        replies = await asyncio.gather(*(solve(channel, str(n)) for n in range(20)))
        assert [reply.text for reply, *_ in replies] == [str(n) for n in range(20)]
        assert replies[0].faults == (BROKEN,)
        # Others were asked during the wait, and none of the rest before the repetition was due.
        second_attempt = endpoint.asked_texts.index("0", 1)
        assert 1 < second_attempt < 20
        assert endpoint.most_in_flight == 1
        assert channel.retries == 1

    asyncio.run(scenario())


def test_waits_double_up_to_a_minute_and_follow_the_endpoint_where_it_asks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits: list[float] = []

    async def note(channel: Channel, seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr(Channel, "_wait_without_slot", note)
    channel = make(Endpoint(lambda _, n: BROKEN if n < 12 else None), 1, attempts=20)
    asyncio.run(solve(channel, "q"))
    assert len(waits) == 11
    for failures, wait in enumerate(waits):
        usual = min(60.0, 0.01 * 2**failures)
        assert 0.5 * usual <= wait <= 1.5 * usual
    waits.clear()
    wait_fault = replace(BROKEN, retry_after=0.2)
    asyncio.run(solve(make(Endpoint(lambda _, n: wait_fault if n < 4 else None), 1), "q"))
    assert all(0.2 <= wait <= 0.25 for wait in waits)
    assert len(waits) == 3
    waits.clear()
    absurd = replace(BROKEN, retry_after=1e9)
    channel = make(Endpoint(lambda _, n: absurd if n < 4 else None), 1)
    asyncio.run(solve(channel, "q"))
    assert all(0 < wait <= 0.06 for wait in waits)
    assert len(waits) == 3
    assert channel.odd_wait == "1000000000"


def test_a_refused_request_keeps_its_slot_and_no_new_work_starts() -> None:
    def fault(text: str, attempt: int) -> Fault | None:
        return BUSY if text == "0" and attempt <= 7 else None

    async def scenario() -> None:
        endpoint = Endpoint(fault)
        channel = make(endpoint, 1, attempts=2)
        replies = await asyncio.gather(*(solve(channel, str(n)) for n in range(4)))
        assert endpoint.asked_texts == ["0"] * 8 + ["1", "2", "3"]
        assert replies[0].faults == (BUSY,) * 7
        assert replies[0].reply.error is None

    asyncio.run(scenario())


def test_only_requests_that_the_endpoint_saw_are_attempts() -> None:
    unsent = Fault("connection", "no connection", sent=False)

    async def scenario() -> None:
        endpoint = Endpoint(lambda _, n: unsent if n <= 6 else BROKEN)
        exchange = await solve(make(endpoint, 1, attempts=3), "q")
        assert exchange.reply.error == BROKEN
        assert exchange.faults == (unsent,) * 6 + (BROKEN,) * 2

    asyncio.run(scenario())


def test_timeouts_lower_the_number_in_flight_and_replies_raise_it() -> None:
    late = Fault("timeout", "too late", 408)

    async def scenario() -> None:
        endpoint = Endpoint(lambda _, n: late if n == 1 else None)
        channel = make(endpoint, 16)
        await asyncio.gather(*(solve(channel, str(n)) for n in range(16)))
        assert channel.limit < 16
        lowest = channel.limit
        endpoint.fault = lambda *_: None
        await asyncio.gather(*(solve(channel, f"later {n}") for n in range(200)))
        assert channel.limit > lowest

    asyncio.run(scenario())


class SeveralEndpoints(EndpointGroup):
    """A group with more than one endpoint."""

    is_group = True


def test_timeouts_at_one_of_several_endpoints_lower_its_number_in_flight() -> None:
    late = Fault("timeout", "too late", 408)

    async def scenario() -> None:
        endpoint = Endpoint(lambda text, n: late if n == 1 and int(text) % 4 == 0 else None)
        limits = ChannelLimits(
            concurrency=16, timeout=5, attempts=5, give_up_after=5, retry_interval=0.01
        )
        channel = Channel(endpoint, limits, group=SeveralEndpoints())
        lowest = channel.limit

        async def solve_and_look(number: int) -> None:
            nonlocal lowest
            await solve(channel, str(number))
            lowest = min(lowest, channel.limit)

        await asyncio.gather(*(solve_and_look(number) for number in range(16)))
        assert lowest < 16

    asyncio.run(scenario())


def test_a_reply_forgives_earlier_refusals_of_the_key() -> None:
    wrong_key = Fault("auth", "wrong key", 401)

    async def scenario() -> None:
        # Two refusals, a reply, two refusals, a reply: never three in a row.
        endpoint = Endpoint(lambda _, n: wrong_key if n % 3 else None)
        channel = make(endpoint, 1)
        for number in range(4):
            exchange = await solve(channel, str(number))
            assert exchange.reply.error is None
        assert channel.stop_reason is None

    asyncio.run(scenario())


def test_a_fault_in_turn_seven_is_repeated_there_and_never_restarts_the_episode() -> None:
    async def episode(first_request: Request, channel: Channel) -> ReplyWithAttempts:
        faults: tuple[Fault, ...] = ()
        for turn in range(1, 11):
            reply, new_faults, *_ = await channel.ask(request(f"turn {turn}"))
            faults += new_faults
        return ReplyWithAttempts(reply, faults)

    async def scenario() -> None:
        endpoint = Endpoint(lambda text, n: BUSY if text == "turn 7" and n < 3 else None)
        channel = make(endpoint, 1)
        async with channel.slot():
            reply, faults, *_ = await episode(request("start"), channel)
        assert (reply.text, faults) == ("turn 10", (BUSY, BUSY))
        assert endpoint.asked_texts == [f"turn {n}" for n in (1, 2, 3, 4, 5, 6, 7, 7, 7, 8, 9, 10)]

    asyncio.run(scenario())


def test_never_more_in_flight_than_slots_whatever_fails() -> None:
    def fault(text: str, attempt: int) -> Fault | None:
        return Fault("server", "broken", 500) if (int(text) + attempt) % 3 == 0 else None

    async def scenario() -> None:
        endpoint = Endpoint(fault, seconds=0.001)
        channel = make(endpoint, 4)
        replies = await asyncio.gather(*(solve(channel, str(n)) for n in range(200)))
        assert all(reply.error is None for reply, *_ in replies)
        assert endpoint.most_in_flight == 4
        assert channel.in_flight == 0

    asyncio.run(scenario())


def test_attempts_are_counted_and_the_last_fault_is_the_reply() -> None:
    async def scenario() -> None:
        endpoint = Endpoint(lambda *_: Fault("server", "broken", 500))
        reply, faults, *_ = await solve(make(endpoint, 1, attempts=3), "x")
        assert reply.error == Fault("server", "broken", 500)
        assert len(faults) == 2
        assert len(endpoint.asked_texts) == 3

    asyncio.run(scenario())


def test_a_stopped_channel_raises_its_reason_and_loses_no_slot() -> None:
    async def scenario() -> None:
        endpoint = Endpoint(lambda text, _: BUSY if text == "0" else None, seconds=0.05)
        channel = make(endpoint, 2)
        tasks = [asyncio.create_task(solve(channel, str(n))) for n in range(6)]
        await asyncio.sleep(0.07)  # one waits for its repetition, two are in flight, three stand by
        tasks[5].cancel()
        reason = Interrupted("interrupted")
        channel.stop(reason)
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert outcomes[0] is reason
        assert isinstance(outcomes[5], asyncio.CancelledError)
        assert [
            outcome.reply.text
            for outcome in outcomes[1:4]
            if isinstance(outcome, ReplyWithAttempts)
        ]
        with pytest.raises(Interrupted):
            await solve(channel, "later")

    asyncio.run(scenario())


def test_a_cancelled_newcomer_leaves_its_slot_to_others() -> None:
    async def scenario() -> None:
        channel = make(Endpoint(lambda *_: None, seconds=0.01), 1)
        for _ in range(20):
            tasks = [asyncio.create_task(solve(channel, str(n))) for n in range(5)]
            await asyncio.sleep(0.011)
            for task in tasks[1:3]:
                task.cancel()
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
            assert sum(isinstance(outcome, ReplyWithAttempts) for outcome in outcomes) >= 3
        assert (await asyncio.wait_for(solve(channel, "last"), 1)).reply.text == "last"

    asyncio.run(scenario())


def test_a_withdrawn_key_stops_everybody() -> None:
    async def scenario() -> None:
        endpoint = Endpoint(lambda *_: Fault("auth", "no such key", 401))
        channel = make(endpoint, 8)
        outcomes = await asyncio.gather(
            *(solve(channel, str(n)) for n in range(30)), return_exceptions=True
        )
        assert {str(outcome) for outcome in outcomes} == {
            "the endpoint refuses to go on: no such key"
        }
        assert all(isinstance(outcome, EndpointError) for outcome in outcomes)
        assert len(endpoint.asked_texts) <= 8

    asyncio.run(scenario())


def test_seven_failures_in_a_row_are_no_outage_and_eight_are() -> None:
    breaker = CircuitBreaker(60)
    assert [breaker.record_failure(now) for now in range(1, 9)] == [False] * 7 + [True]
    assert breaker.since == 8


def test_a_model_that_breaks_down_on_a_reply_costs_attempts_of_that_sample_alone() -> None:
    def fault(text: str, attempt: int) -> Fault | None:
        if text == "odd" or attempt == 1:
            raise ValueError("sk-in-the-text")
        return None

    async def work() -> tuple[ReplyWithAttempts, ReplyWithAttempts]:
        channel = make(Endpoint(fault), 2, attempts=3)
        return await solve(channel, "odd"), await solve(channel, "plain")

    odd, plain = asyncio.run(work())
    malformed = Fault("malformed", "the reply cannot be used (ValueError)")
    assert (odd.reply.error, odd.faults) == (malformed, (malformed, malformed))
    assert (plain.reply.text, plain.faults) == ("plain", (malformed,))
