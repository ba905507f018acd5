"""A channel is one endpoint: its model, its limits and its retries.

Concurrency, rates, the breaker and retries are decided only here, for candidates, judges and
bridges alike. A request holds a slot. An attempt that waits for its retry gives the slot back, so
that no slot is idle, and comes before new work when its wait is over. Only a request that a rate
limit refused keeps its slot, so that no new work starts (`rate_limit.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count, takewhile
from time import monotonic, time
from typing import Any, NamedTuple

from keju.config import Budget
from keju.engine.endpoint_group import NOTHING, EndpointGroup, Rerouted, RetryHistory
from keju.engine.endpoint_health import EndpointHealth, found_no_server
from keju.engine.faults import FAILURES, OVERLOADS, RATE_LIMIT, REFUSALS, is_attempt, is_sent
from keju.engine.faults import FINAL as FINAL
from keju.engine.limits import ChannelLimits as ChannelLimits
from keju.engine.limits import RateLimits, ReplyLatency, SpendingMeter
from keju.engine.rate_limit import RateLimitQueue, SentRequest
from keju.errors import EndpointError, KejuError, Notice
from keju.models.base import Model, fault_text
from keju.progress.display import ActorStatus, Pause
from keju.progress.watching import WORK, Follower, RequestAttempt
from keju.scores.usage import UsageMeter
from keju.types import Fault, Reading, Reply, Request

REFUSALS_TO_STOP = 3
BAD_REQUESTS_TO_STOP = 20
OTHER_RUNS_INTERVAL = 0.05
"""Seconds between two checks of the budget that other runs spend."""
MAX_OUTAGES = 8
"""If more endpoints go down under one request, its attempts there count."""


class ReplyWithAttempts(NamedTuple):
    """A reply, and the attempts that failed before it, in order."""

    reply: Reply
    faults: tuple[Fault, ...] = ()
    readings: tuple[Reading, ...] = ()
    """The readings of the reply, where the solver had to read it. Otherwise the job reads it."""
    seconds: float = 0.0
    """The duration of all attempts, without the waits between them."""
    endpoint: str = ""
    """The endpoint that gave the reply, where there are several."""


class Channel(EndpointHealth):
    """Asks one endpoint. Every attempt of every request goes through it."""

    def __init__(
        self,
        model: Model,
        limits: ChannelLimits,
        spending: SpendingMeter | None = None,
        *,
        seed: int = 0,
        group: EndpointGroup | None = None,
    ) -> None:
        """Create a channel and add it to `group`, the channels of the session."""
        super().__init__(model, limits, group or EndpointGroup(), seed)
        self.group.channels.append(self)
        self.spending = spending or SpendingMeter(Budget(), None)
        self.in_flight = 0
        """Attempts that wait for their reply."""
        self._sent_at: dict[int, float] = {}
        """The time at which each of them was sent, the first one first."""
        self._numbers = count()
        self.retries = 0
        self.shares_prefixes = False
        """Whether the endpoint has reported that a part of a prompt came from its cache."""
        self.follower: Follower | None = None
        """Called with every attempt."""
        self.last_heard = monotonic()
        """When an attempt last ended."""
        self.pace = ReplyLatency()
        self.meter = UsageMeter()
        """Requests and tokens of this endpoint, where it is one of several."""
        self.moved_count = 0
        """Units that went from here to another endpoint."""
        shared_rates = self._share and self._share.find_rates(self.address, model.name)
        self._rates = shared_rates or RateLimits(limits.rpm, limits.tpm)
        is_limited = self._rates.limited or self.group.rates.limited
        self._is_metered = self.spending.limited or is_limited
        self.line = RateLimitQueue(self.rate_limit, limits.give_up_after, self._give_up_on_limit)
        """The requests that wait because of the endpoint's rate limit."""
        self._retry_times: list[float] = []
        self._asking_tasks: set[asyncio.Task[Any]] = set()
        self._outside_tasks: set[asyncio.Task[Any]] = set()
        self._rate_limited = 0
        self._successes = 0
        self._refusals = 0
        self._bad_requests = 0

    def facts(self) -> dict[str, Any]:
        """Return the settings that determine the replies, for the manifest. They never include a
        secret."""
        return self.model.facts()

    def actor_standings(self) -> tuple[ActorStatus, ...]:
        """Return the state of each actor, where there are any."""
        return ()

    def statistics(self) -> dict[str, Any]:
        """Return facts about the session for the manifest, in addition to its requests."""
        return {}

    @property
    def addresses(self) -> dict[str, int]:
        """The number of requests in flight, by address."""
        return {self.address: self.in_flight}

    @property
    def oldest(self) -> float:
        """Seconds since the oldest attempt that waits for its reply was sent, or 0 if there is
        none."""
        sent_at = next(iter(self._sent_at.values()), None)
        return 0.0 if sent_at is None else monotonic() - sent_at

    @property
    def limit(self) -> int:
        """The most requests in flight at present."""
        return self.concurrency.limit

    @property
    def pause(self) -> Pause | None:
        """The reason why the channel sends no more, if there is one."""
        if self.breaker.since is not None:
            return "down"
        if self.stop_reason is not None:
            return "stopping"
        if self._rate_limited or self.line:
            return "rate"
        if self.concurrency.limit < self.concurrency.maximum and self.in_flight:
            return "overload"
        return "retry" if self._retry_times and not self.in_flight else None

    @property
    def obstacle(self) -> Notice | None:
        """The reason why the channel sends no more, as a notice with values."""
        match self.pause:
            case "down":
                seconds = monotonic() - (self.breaker.since or 0.0)
                return Notice("waiting_down", {"seconds": seconds})
            case "stopping" if self.in_flight:
                return Notice("waiting_stopping", {"requests": self.in_flight})
            case "overload":
                values = {"limit": self.concurrency.limit, "most": self.concurrency.maximum}
                return Notice("waiting_overload", values)
            case "rate" if self.rate_limit.since is not None:
                limited_seconds = monotonic() - self.rate_limit.since
                return Notice("waiting_limited", {"seconds": limited_seconds})
            case "rate":
                return Notice("waiting_rate")
            case "retry":
                retry_seconds = max(0.0, min(self._retry_times) - monotonic())
                return Notice("waiting_retry", {"seconds": retry_seconds})
        return None

    @property
    def waiting_for(self) -> str:
        """The obstacle as text, or an empty string."""
        obstacle = self.obstacle
        return "" if obstacle is None else obstacle.message

    @property
    def waiting(self) -> int:
        """The number of requests that wait for another attempt."""
        return len(self._retry_times)

    def stop(self, reason: KejuError) -> None:
        """Send nothing more. Requests in flight finish; all others get `reason` raised."""
        if self.stop_reason is None:
            self.stop_reason = reason
        self._retry_wakeup.set()
        self.wake()
        while self._outside_tasks:
            self._outside_tasks.pop().cancel()
        self._fail_waiters(self.stop_reason)

    @contextmanager
    def while_open(self) -> Iterator[None]:
        """Run work outside the endpoint whose caller will send further requests.

        If the channel stops, the work is cancelled and the reason is raised, as in `ask`.
        """
        if self.stop_reason is not None:
            raise self.stop_reason
        task = asyncio.current_task()
        assert task is not None
        self._outside_tasks.add(task)
        try:
            yield
        except asyncio.CancelledError:
            # `stop` cancelled the tasks that it removed, unless another caller cancelled them too.
            if task in self._outside_tasks or self.stop_reason is None or task.uncancel():
                raise
            raise self.stop_reason from None
        finally:
            self._outside_tasks.discard(task)

    # One request

    async def ask(
        self,
        request: Request,
        check: Callable[[Reply], Reply] | None = None,
        *,
        time_limit: float | None = None,
        attempts: int | None = None,
    ) -> ReplyWithAttempts:
        """Return the reply to `request`. The caller must hold a slot.

        A temporary fault is followed by another attempt, as often as the limits allow. A fault that
        remains is the reply's `error`. Raises the reason that stopped the channel, if there is one.

        `check` sees each reply that came and may turn it into a fault. `time_limit` is the number
        of seconds that all attempts may take, without waits. No attempt begins after that.
        `attempts` replaces the number of attempts in the limits.
        """
        max_attempts = attempts or self.limits.attempts
        history, seconds = NOTHING, 0.0
        faults: tuple[Fault, ...] = ()
        if self.group.histories:
            history = self.group.histories.pop(request.hash, NOTHING)
        place, wait = next(self._numbers), 0.0
        try:
            while True:
                sent = await self._wait_for_turn(place, wait)
                timeout = self.model.patience(request.sampling, self.limits.timeout)
                if time_limit is not None:
                    timeout = max(0.001, min(timeout, time_limit - seconds))
                reply = await self._send(request, check, timeout, sent)
                attempt_seconds = monotonic() - sent.at
                seconds += attempt_seconds
                if self.follower is not None:
                    number = len(history.faults) + len(faults) + 1
                    self._notify_follower(self.follower, request, reply, attempt_seconds, number)
                fault = reply.error
                wait = self._settle(sent, fault, faults)
                if fault is None:
                    self._note_success(reply)
                    break
                if self._note_failure(fault):
                    assert self.stop_reason is not None
                    raise self.stop_reason
                if fault.kind in FINAL:
                    break
                faults += (fault,)
                # A budget may pay for fewer requests than a question may have attempts.
                attempt_count = sum(map(is_attempt if attempts is None else is_sent, faults))
                is_late = time_limit is not None and seconds >= time_limit
                if is_late or history.attempts + attempt_count >= max_attempts:
                    faults = faults[:-1]
                    break
                if self.stop_reason is not None:
                    raise self.stop_reason
                self.retries += 1
                if fault.kind != RATE_LIMIT:
                    self._move_on(
                        prefer_other=not history.attempts
                        and 2 * attempt_count > self.limits.attempts
                    )
                    await self._wait_without_slot(self._backoff_seconds(fault, attempt_count))
        except Rerouted as reroute:
            reroute.history = _extend_history(history, faults, is_outage=not self.usable)
            raise
        self._count_reply(reply, attempt_seconds)
        return ReplyWithAttempts(reply, history.faults + faults, seconds=seconds)

    def _count_reply(self, reply: Reply, seconds: float) -> None:
        """Count the tokens of a last reply and the time that it took."""
        is_answer = reply.error is None
        self.spending.add(reply.usage, replies=is_answer)
        for rates in (self._rates, self.group.rates) if self._is_metered else ():
            rates.count_tokens(reply.usage.input + reply.usage.output)
        if self.group.is_group:
            self.meter.add(reply.usage, replies=is_answer)
        elif is_answer:
            self.pace.total += seconds

    async def _wait_for_turn(self, place: int, wait: float) -> SentRequest:
        """Wait until a request may be sent.

        `place` is its place in line. `wait` is the number of seconds for which a rate limit delays
        it.
        """
        sent: SentRequest | None = None
        due = monotonic() + wait if wait else 0.0
        while sent is None:
            if self.stop_reason is not None:
                raise self.stop_reason
            if not wait and not self.rate_limit.is_active:
                sent = SentRequest()
            else:
                self._leave_storm()
                sent = await self.line.wait_turn(place, due)
        if self._is_metered or self.breaker.since is not None or self.stop_reason is not None:
            try:
                await self._wait_for_clearance()
            except BaseException:
                self.line.note_lost(sent)
                raise
        return self.line.mark_sent(sent)

    def _leave_storm(self) -> None:
        """Raise Rerouted where another endpoint accepts requests. One request stays as a probe."""
        if self.rate_limit.is_closed and self.line and self.group.has_unlimited_peer(self):
            raise Rerouted
        self._move_on()

    async def _send(
        self,
        request: Request,
        check: Callable[[Reply], Reply] | None,
        timeout: float,
        sent: SentRequest,
    ) -> Reply:
        """Make one attempt and count it."""
        self.in_flight += 1
        self.spending.requests += 1
        number = next(self._numbers)
        self._sent_at[number] = sent.at
        try:
            return await self._attempt(request, check, timeout)
        except BaseException:
            self.line.note_lost(sent)
            raise
        finally:
            self.in_flight -= 1
            del self._sent_at[number]
            if self._is_metered:
                self.spending.finish_request()
                self.group.wake()

    def _settle(
        self, sent: SentRequest, fault: Fault | None, earlier_faults: tuple[Fault, ...]
    ) -> float:
        """Adjust the rate of requests after an attempt.

        `earlier_faults` are the earlier faults of its request. Return how long the request waits
        because of a rate limit.
        """
        if fault is not None:
            self._note_odd_wait(fault)
        if fault is None or not (fault.kind == RATE_LIMIT or found_no_server(fault)):
            self.line.note_accepted(sent)
        elif fault.kind != RATE_LIMIT:
            self.line.note_lost(sent)
        else:
            refusals = takewhile(
                lambda earlier_fault: earlier_fault.kind == RATE_LIMIT, reversed(earlier_faults)
            )
            was_closed = self.rate_limit.is_closed
            wait = self.line.note_refusal(sent, self.requested_wait(fault), 1 + len([*refusals]))
            if self.rate_limit.is_closed and not was_closed and self.group.is_group:
                self.line.wake()
            return wait
        return 0.0

    def _give_up_on_limit(self) -> None:
        """Stop if the endpoint has refused every request for too long."""
        if (reason := self.group.limited_too_long(self)) is not None:
            self.group.stop(reason)

    def wake(self) -> None:
        """Let all requests that wait for clearance check again."""
        super().wake()
        if self.stop_reason is not None or self.breaker.since is not None:
            self.line.wake()

    def _notify_follower(
        self, follower: Follower, request: Request, reply: Reply, seconds: float, number: int
    ) -> None:
        details = self.address, self.model.name, request, reply, time() - seconds, seconds, number
        follower.attempted(RequestAttempt(*details, WORK.get()))

    def _note_success(self, reply: Reply) -> None:
        """Update the state of the endpoint after a reply."""
        self._successes += 1
        self.shares_prefixes |= reply.usage.cached > 0
        self._refusals = self._bad_requests = self._outages_in_a_row = 0
        self._note_answer(overload=False)

    def _note_failure(self, fault: Fault) -> bool:
        """Update the state of the endpoint after an attempt without a reply.

        Return whether the endpoint cannot be asked any more because of that.
        """
        if not fault.sent:
            self.spending.refund_request()
        is_unreachable = found_no_server(fault)
        if is_unreachable or (self.group.is_group and fault.kind in FAILURES):
            self._note_outage(fault, is_unreachable=is_unreachable)
        elif fault.kind == RATE_LIMIT:
            self._close_breaker()
        else:
            self._note_answer(overload=fault.kind in OVERLOADS)
        if fault.kind in FINAL:
            self._note_bad_request(fault)
            return False
        self._refusals += fault.kind in REFUSALS
        if fault.kind in REFUSALS and self._refusals >= REFUSALS_TO_STOP:
            reason = EndpointError("endpoint_refuses_more", problem=fault.message)
            self.group.lose(self, reason)
            return True
        return False

    def _note_outage(self, fault: Fault, *, is_unreachable: bool) -> None:
        """Update the breaker and the concurrency after a failure of the endpoint."""
        is_overload = fault.kind in OVERLOADS
        if self.breaker.record_failure(monotonic()):
            self._go_down(fault_text(fault))
        elif not is_unreachable and self.concurrency.record_reply(overload=is_overload):
            self._grant()

    def _note_bad_request(self, fault: Fault) -> None:
        """Give the endpoint up if it has refused every request so far."""
        self._bad_requests += 1
        refuses_all = self._bad_requests >= BAD_REQUESTS_TO_STOP and not self._successes
        if fault.kind == "bad_request" and refuses_all:
            reason = EndpointError("endpoint_refuses_all", problem=fault.message)
            self.group.lose(self, reason)

    def _move_on(self, *, prefer_other: bool = False) -> None:
        """Raise Rerouted if another endpoint is better: this one is down, or `prefer_other`.

        `prefer_other` is true for a request that has used more than half of its attempts here.
        """
        if (prefer_other or self.breaker.since is not None) and self.group.can_reroute(self):
            raise Rerouted

    async def _attempt(
        self, request: Request, check: Callable[[Reply], Reply] | None, timeout: float
    ) -> Reply:
        """Make one attempt. Any exception around its reply is a fault of this attempt alone."""
        try:
            if self.group.is_group:
                reply = await self._ask_pool_member(request, timeout)
            else:
                reply = await self.model.ask(request, timeout=timeout)
            return check(reply) if check is not None and reply.error is None else reply
        except KejuError:
            raise
        except Exception as error:  # its text may hold a secret
            problem = f"the reply cannot be used ({type(error).__name__})"
            return Reply(error=Fault("malformed", problem))

    async def _ask_pool_member(self, request: Request, timeout: float) -> Reply:
        """Make one attempt that `take_out` may cancel, and check which model replied."""
        task = asyncio.current_task()
        assert task is not None
        if not self._asking_tasks:
            self.last_heard = monotonic()
        self._asking_tasks.add(task)
        self.meter.requests += 1
        started = monotonic()
        try:
            reply = await self.model.ask(request, timeout=timeout)
        except asyncio.CancelledError:
            # `take_out` cancelled the tasks that it removed, unless another caller cancelled them
            # too.
            if task in self._asking_tasks or task.uncancel():
                raise
            raise Rerouted from None
        finally:
            self._asking_tasks.discard(task)
            self.last_heard = monotonic()
        if reply.error is not None:
            self.meter.requests -= not reply.error.sent
            return reply
        self.pace.record_reply(self.last_heard - started, self.concurrency.limit)
        if self.group.accepts(self, reply.model):
            return reply
        self.spending.add(reply.usage)  # it was paid for
        self.take_out(Notice("endpoint_reports", {"name": reply.model}))
        return Reply(error=Fault("server", f"the endpoint reports the model '{reply.model}'"))

    def break_off(self) -> None:
        """Cancel the attempts that wait for a reply, where another endpoint can take them."""
        while self._asking_tasks:
            self._asking_tasks.pop().cancel()

    async def _wait_without_slot(self, seconds: float) -> None:
        """Give the slot back for `seconds`, then take one again, before any new work."""
        retry_time = monotonic() + seconds
        self._retry_times.append(retry_time)
        self.leave()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._retry_wakeup.wait()
            self._move_on()
            await self.enter(returning=True)
        except BaseException:
            self._hold()
            raise
        finally:
            self._retry_times.remove(retry_time)

    async def _wait_for_clearance(self) -> None:
        """Wait until the breaker, the budget and the rates allow one attempt."""
        while True:
            if self.stop_reason is not None:
                raise self.stop_reason
            if self.breaker.since is not None:
                self._move_on()
                await self._clearance_changed.wait()
                continue
            in_flight = self.group.in_flight
            exhausted = self.spending.exhausted(in_flight, self.group.seconds)
            if exhausted is not None:
                await self._hold_back(exhausted, in_flight)
                continue
            now, average_tokens = monotonic(), self.spending.average_tokens()
            wait = max(
                self._rates.wait(average_tokens * (self.in_flight + 1), now),
                self.group.rates.wait(average_tokens * (in_flight + 1), now),
            )
            if wait <= 0:
                # Check this last, since the request that it allows is in flight from then on.
                if (refusal := self.spending.claim()) is not None:
                    await self._hold_back(refusal, in_flight)
                    continue
                self._rates.count_request()
                self.group.rates.count_request()
                return
            self._rate_limited += 1
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.001, wait)):
                    await self._clearance_changed.wait()
            self._rate_limited -= 1

    async def _hold_back(self, exhausted: KejuError, in_flight: int) -> None:
        """Stop where a budget is spent. Wait where replies in flight may still change that."""
        account = self.spending.account
        if in_flight:
            await self._clearance_changed.wait()
        elif account is not None and account.shared_budget.in_flight:
            await asyncio.sleep(OTHER_RUNS_INTERVAL)  # they belong to other runs, on other loops
        else:
            self.group.stop(exhausted)


def _extend_history(
    history: RetryHistory, faults: tuple[Fault, ...], *, is_outage: bool
) -> RetryHistory:
    """Return the history that a request takes to another endpoint after these faults.

    Attempts that an outage ended do not count, unless it happens to the request repeatedly. In that
    case the request may be the one that brings the endpoints down.
    """
    outages = history.outages + is_outage
    is_free = is_outage and outages <= MAX_OUTAGES
    counted_faults = [
        fault for fault in faults if is_attempt(fault) and not (is_free and found_no_server(fault))
    ]
    return RetryHistory(history.faults + faults, history.attempts + len(counted_faults), outages)
