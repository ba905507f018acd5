"""A channel is one endpoint: its model, and all that holds a request back or repeats it.

Concurrency, rates, the breaker and retries are decided here and nowhere else, for candidates,
judges and bridges alike. Whoever asks holds a slot; an attempt that has to wait for its repetition
gives the slot back, so that no slot sleeps, and comes before new work when its wait is over. Only
a request that a rate limit refused keeps its slot, so that no new work starts (`rate_limit.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count, takewhile
from time import monotonic, time
from typing import Any, NamedTuple

from keju.config import Budget
from keju.engine.company import NOTHING, Carried, Company, Moved
from keju.engine.display import ActorStanding, Pause
from keju.engine.faults import FAILURES, OVERLOADS, RATE_LIMIT, REFUSALS, is_attempt, is_sent
from keju.engine.faults import FINAL as FINAL
from keju.engine.limits import Limits as Limits
from keju.engine.limits import Meter, Pace, Rates, Spending
from keju.engine.presence import Presence, nobody_there
from keju.engine.rate_limit import RateLimitLine, Sent
from keju.engine.watching import WORK, Attempt, Follower
from keju.errors import EndpointError, KejuError, Notice
from keju.models.base import Model, fault_text
from keju.types import Fault, Reading, Reply, Request

REFUSALS_TO_STOP = 3
BAD_REQUESTS_TO_STOP = 20
ELSEWHERE = 0.05
"""Seconds between two looks at what other runs spend."""
MOST_OUTAGES = 8
"""Endpoints that may go down under one request before its attempts there count."""


class Exchange(NamedTuple):
    """A reply, and the attempts that failed before it, in order."""

    reply: Reply
    faults: tuple[Fault, ...] = ()
    readings: tuple[Reading, ...] = ()
    """What was read of the reply, where the solver had to read it; else the job does."""
    seconds: float = 0.0
    """What all attempts took, without the waits between them."""
    endpoint: str = ""
    """Which endpoint gave the reply, where there are several."""


class Channel(Presence):
    """Asks one endpoint; every attempt of every request goes through it."""

    def __init__(
        self,
        model: Model,
        limits: Limits,
        spending: Spending | None = None,
        *,
        seed: int = 0,
        company: Company | None = None,
    ) -> None:
        """`company` are the channels of the session; this one joins them."""
        super().__init__(model, limits, company or Company(), seed)
        self.company.channels.append(self)
        self.spending = spending or Spending(Budget(), None)
        self.in_flight = 0
        """Attempts that wait for their reply."""
        self._begun: dict[int, float] = {}
        """When each of them was sent, the first one first."""
        self._numbers = count()
        self.retries = 0
        self.shares_prefixes = False
        """Whether the endpoint has told that a part of a prompt came from its cache."""
        self.follower: Follower | None = None
        """Who is told of every attempt."""
        self.heard = monotonic()
        """When an attempt last ended."""
        self.pace = Pace()
        self.meter = Meter()
        """What it was asked and told, where it is one of several."""
        self.moved = 0
        """Units that went from here to another endpoint."""
        shared = self._share and self._share.rates_at(self.address, model.name)
        self._rates = shared or Rates(limits.rpm, limits.tpm)
        limited = self._rates.limited or self.company.rates.limited
        self._metered = self.spending.limited or limited
        self.line = RateLimitLine(self.rate_limit, limits.give_up_after, self._give_up_on_limit)
        """The requests that wait because of the endpoint's rate limit."""
        self._due: list[float] = []
        self._asking: set[asyncio.Task[Any]] = set()
        self._beside: set[asyncio.Task[Any]] = set()
        self._rate_limited = 0
        self._successes = 0
        self._refusals = 0
        self._bad_requests = 0

    def facts(self) -> dict[str, Any]:
        """What determines the replies, for the manifest: never a secret."""
        return self.model.facts()

    def standings(self) -> tuple[ActorStanding, ...]:
        """How the actors stand, where there are any."""
        return ()

    def statistics(self) -> dict[str, Any]:
        """What the session was like beside its requests, for the manifest."""
        return {}

    @property
    def addresses(self) -> dict[str, int]:
        """How many requests are in flight, by address."""
        return {self.address: self.in_flight}

    @property
    def oldest(self) -> float:
        """Seconds since the oldest attempt that waits for its reply was sent; 0 without one."""
        began = next(iter(self._begun.values()), None)
        return 0.0 if began is None else monotonic() - began

    @property
    def limit(self) -> int:
        """The most requests in flight at present."""
        return self.concurrency.limit

    @property
    def pause(self) -> Pause | None:
        """What keeps the channel from sending more."""
        if self.breaker.since is not None:
            return "down"
        if self.stop_reason is not None:
            return "stopping"
        if self._rate_limited or self.line:
            return "rate"
        if self.concurrency.limit < self.concurrency.most and self.in_flight:
            return "overload"
        return "retry" if self._due and not self.in_flight else None

    @property
    def obstacle(self) -> Notice | None:
        """The same with its values, for whoever says it in a language."""
        match self.pause:
            case "down":
                down = monotonic() - (self.breaker.since or 0.0)
                return Notice("waiting_down", {"seconds": down})
            case "stopping" if self.in_flight:
                return Notice("waiting_stopping", {"requests": self.in_flight})
            case "overload":
                values = {"limit": self.concurrency.limit, "most": self.concurrency.most}
                return Notice("waiting_overload", values)
            case "rate" if self.rate_limit.since is not None:
                limited = monotonic() - self.rate_limit.since
                return Notice("waiting_limited", {"seconds": limited})
            case "rate":
                return Notice("waiting_rate")
            case "retry":
                due = max(0.0, min(self._due) - monotonic())
                return Notice("waiting_retry", {"seconds": due})
        return None

    @property
    def waiting_for(self) -> str:
        """The same in words; empty if nothing does."""
        obstacle = self.obstacle
        return "" if obstacle is None else obstacle.said

    @property
    def waiting(self) -> int:
        """How many requests wait for another attempt."""
        return len(self._due)

    def stop(self, reason: KejuError) -> None:
        """Send nothing more; what is in flight comes in, everybody else gets `reason` raised."""
        if self.stop_reason is None:
            self.stop_reason = reason
        self._roused.set()
        self.wake()
        while self._beside:
            self._beside.pop().cancel()
        self._dismiss(self.stop_reason)

    @contextmanager
    def while_open(self) -> Iterator[None]:
        """Work beside the endpoint, of somebody who will ask again.

        It is broken off where the channel stops, and raises the reason, as `ask` would.
        """
        if self.stop_reason is not None:
            raise self.stop_reason
        task = asyncio.current_task()
        assert task is not None
        self._beside.add(task)
        try:
            yield
        except asyncio.CancelledError:
            # One that `stop` took out was cancelled by it, unless somebody else did so too.
            if task in self._beside or self.stop_reason is None or task.uncancel():
                raise
            raise self.stop_reason from None
        finally:
            self._beside.discard(task)

    # One request

    async def ask(
        self,
        request: Request,
        check: Callable[[Reply], Reply] | None = None,
        *,
        within: float | None = None,
        attempts: int | None = None,
    ) -> Exchange:
        """The reply to `request`; whoever asks holds a slot.

        A fault that may pass is followed by another attempt, as many as the limits allow. A fault
        that remains is the reply's `error`. Raises what stop_reason the channel, if anything did.
        `check` sees each reply that came and may make a fault of it. `within` are the seconds that
        all attempts may take, waits apart; none is begun when they are over. `attempts` are the
        most, where they are not those of the limits.
        """
        most = attempts or self.limits.attempts
        carried, seconds = NOTHING, 0.0
        faults: tuple[Fault, ...] = ()
        if self.company.carried:
            carried = self.company.carried.pop(request.hash, NOTHING)
        place, wait = next(self._numbers), 0.0
        try:
            while True:
                sent = await self._permission(place, wait)
                timeout = self.model.patience(request.sampling, self.limits.timeout)
                if within is not None:
                    timeout = max(0.001, min(timeout, within - seconds))
                reply = await self._send(request, check, timeout, sent)
                took = monotonic() - sent.at
                seconds += took
                if self.follower is not None:
                    number = len(carried.faults) + len(faults) + 1
                    self._told(self.follower, request, reply, took, number)
                fault = reply.error
                wait = self._settle(sent, fault, faults)
                if fault is None:
                    self._succeeded(reply)
                    break
                if self._failed(fault):
                    assert self.stop_reason is not None
                    raise self.stop_reason
                if fault.kind in FINAL:
                    break
                faults += (fault,)
                # A budget may pay for fewer requests than a question may have attempts.
                tried = sum(map(is_attempt if attempts is None else is_sent, faults))
                over = carried.attempts + tried >= most
                if over or (within is not None and seconds >= within):
                    faults = faults[:-1]
                    break
                if self.stop_reason is not None:
                    raise self.stop_reason
                self.retries += 1
                if fault.kind != RATE_LIMIT:
                    self._move_on(tired=not carried.attempts and 2 * tried > self.limits.attempts)
                    await self._wait_without_slot(self._backoff(fault, tried))
        except Moved as moved:
            moved.carried = _with_faults(carried, faults, outage=not self.usable)
            raise
        self.spending.add(reply.usage, replies=fault is None)
        for rates in (self._rates, self.company.rates) if self._metered else ():
            rates.use(reply.usage.input + reply.usage.output)
        if self.company.several:
            self.meter.add(reply.usage, replies=fault is None)
        elif fault is None:
            self.pace.total += took
        return Exchange(reply, carried.faults + faults, seconds=seconds)

    async def _permission(self, place: int, wait: float) -> Sent:
        """Wait until a request may be sent.

        `place` is its place in line, `wait` the seconds that a rate limit makes it wait.
        """
        sent: Sent | None = None
        due = monotonic() + wait if wait else 0.0
        while sent is None:
            if self.stop_reason is not None:
                raise self.stop_reason
            if not wait and not self.rate_limit.is_active:
                sent = Sent()
            else:
                self._leave_storm()
                sent = await self.line.turn(place, due)
        if self._metered or self.breaker.since is not None or self.stop_reason is not None:
            try:
                await self._clearance()
            except BaseException:
                self.line.lost(sent)
                raise
        return self.line.sent(sent)

    def _leave_storm(self) -> None:
        """Raise Moved where another endpoint accepts requests; one request stays as a probe."""
        if self.rate_limit.is_closed and self.line and self.company.unlimited_elsewhere(self):
            raise Moved
        self._move_on()

    async def _send(
        self,
        request: Request,
        check: Callable[[Reply], Reply] | None,
        timeout: float,
        sent: Sent,
    ) -> Reply:
        """Make one attempt and keep the books on it."""
        self.in_flight += 1
        self.spending.requests += 1
        number = next(self._numbers)
        self._begun[number] = sent.at
        try:
            return await self._attempt(request, check, timeout)
        except BaseException:
            self.line.lost(sent)
            raise
        finally:
            self.in_flight -= 1
            del self._begun[number]
            if self._metered:
                self.spending.landed()
                self.company.wake()

    def _settle(self, sent: Sent, fault: Fault | None, before: tuple[Fault, ...]) -> float:
        """Learn from an attempt how fast the endpoint may be asked.

        `before` are the earlier faults of its request. Return how long that waits because of a
        rate limit.
        """
        if fault is not None:
            self._note_odd_wait(fault)
        if fault is None or not (fault.kind == RATE_LIMIT or nobody_there(fault)):
            self.line.accepted(sent)
        elif fault.kind != RATE_LIMIT:
            self.line.lost(sent)
        else:
            earlier = takewhile(lambda each: each.kind == RATE_LIMIT, reversed(before))
            was_closed = self.rate_limit.is_closed
            wait = self.line.refused(sent, self.asked_wait(fault), 1 + len([*earlier]))
            if self.rate_limit.is_closed and not was_closed and self.company.several:
                self.line.wake()
            return wait
        return 0.0

    def _give_up_on_limit(self) -> None:
        """Stop where the endpoint has refused every request for too long."""
        if (reason := self.company.limited_too_long(self)) is not None:
            self.company.stop(reason)

    def wake(self) -> None:
        """Let everybody who waits for clearance look again."""
        super().wake()
        if self.stop_reason is not None or self.breaker.since is not None:
            self.line.wake()

    def _told(
        self, follower: Follower, request: Request, reply: Reply, seconds: float, number: int
    ) -> None:
        own = self.address, self.model.name, request, reply, time() - seconds, seconds, number
        follower.attempted(Attempt(*own, WORK.get()))

    def _succeeded(self, reply: Reply) -> None:
        """A reply came."""
        self._successes += 1
        self.shares_prefixes |= reply.usage.cached > 0
        self._refusals = self._bad_requests = self._outages = 0
        self._answered(overload=False)

    def _failed(self, fault: Fault) -> bool:
        """Draw conclusions on the endpoint from an attempt that gave no reply.

        Return whether it cannot be asked any more because of that.
        """
        if not fault.sent:
            self.spending.unsent()
        lost = nobody_there(fault)
        if lost or (self.company.several and fault.kind in FAILURES):
            if self.breaker.failed(monotonic()):
                self._go_down(fault_text(fault))
            elif not lost and self.concurrency.saw(overload=fault.kind in OVERLOADS):
                self._grant()
        elif fault.kind == RATE_LIMIT:
            self._heard()
        else:
            self._answered(overload=fault.kind in OVERLOADS)
        if fault.kind in FINAL:
            self._bad_requests += 1
            hopeless = self._bad_requests >= BAD_REQUESTS_TO_STOP and not self._successes
            if fault.kind == "bad_request" and hopeless:
                reason = EndpointError("endpoint_refuses_all", problem=fault.message)
                self.company.lose(self, reason)
            return False
        self._refusals += fault.kind in REFUSALS
        if fault.kind in REFUSALS and self._refusals >= REFUSALS_TO_STOP:
            reason = EndpointError("endpoint_refuses_more", problem=fault.message)
            self.company.lose(self, reason)
            return True
        return False

    def _move_on(self, *, tired: bool = False) -> None:
        """Raise Moved where another endpoint does better: this one is down, or the request is
        `tired` of it, having failed here more than half of the times that it may."""
        if (tired or self.breaker.since is not None) and self.company.elsewhere(self):
            raise Moved

    async def _attempt(
        self, request: Request, check: Callable[[Reply], Reply] | None, timeout: float
    ) -> Reply:
        """One attempt; whatever breaks around its reply is a fault of this attempt alone."""
        try:
            if self.company.several:
                reply = await self._ask_one_of_several(request, timeout)
            else:
                reply = await self.model.ask(request, timeout=timeout)
            return check(reply) if check is not None and reply.error is None else reply
        except KejuError:
            raise
        except Exception as error:  # its text may hold a secret
            problem = f"the reply cannot be used ({type(error).__name__})"
            return Reply(error=Fault("malformed", problem))

    async def _ask_one_of_several(self, request: Request, timeout: float) -> Reply:
        """One attempt that `take_out` may break off, of a model that may turn out another one."""
        task = asyncio.current_task()
        assert task is not None
        if not self._asking:
            self.heard = monotonic()
        self._asking.add(task)
        self.meter.requests += 1
        started = monotonic()
        try:
            reply = await self.model.ask(request, timeout=timeout)
        except asyncio.CancelledError:
            # One that `take_out` let go was cancelled by it, unless somebody else did so too.
            if task in self._asking or task.uncancel():
                raise
            raise Moved from None
        finally:
            self._asking.discard(task)
            self.heard = monotonic()
        if reply.error is not None:
            self.meter.requests -= not reply.error.sent
            return reply
        self.pace.saw(self.heard - started, self.concurrency.limit)
        if self.company.accepts(self, reply.model):
            return reply
        self.spending.add(reply.usage)  # it was paid for
        self.take_out(Notice("endpoint_reports", {"name": reply.model}))
        return Reply(error=Fault("server", f"the endpoint reports the model '{reply.model}'"))

    def break_off(self) -> None:
        """Let go of the attempts that wait for a reply, where another endpoint can take them."""
        while self._asking:
            self._asking.pop().cancel()

    async def _wait_without_slot(self, seconds: float) -> None:
        """Give the slot back for `seconds`, then take one again, before any new work."""
        due = monotonic() + seconds
        self._due.append(due)
        self.leave()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._roused.wait()
            self._move_on()
            await self.enter(returning=True)
        except BaseException:
            self._hold()
            raise
        finally:
            self._due.remove(due)

    async def _clearance(self) -> None:
        """Wait until the breaker, the budget and the rates allow one attempt."""
        while True:
            if self.stop_reason is not None:
                raise self.stop_reason
            if self.breaker.since is not None:
                self._move_on()
                await self._changed.wait()
                continue
            in_flight = self.company.in_flight
            exhausted = self.spending.exhausted(in_flight, self.company.seconds)
            if exhausted is not None:
                await self._hold_back(exhausted, in_flight)
                continue
            now, each = monotonic(), self.spending.average_tokens()
            wait = max(
                self._rates.wait(each * (self.in_flight + 1), now),
                self.company.rates.wait(each * (in_flight + 1), now),
            )
            if wait <= 0:
                # The last to be asked, since what it allows is in flight from then on.
                if (refused := self.spending.claim()) is not None:
                    await self._hold_back(refused, in_flight)
                    continue
                self._rates.send()
                self.company.rates.send()
                return
            self._rate_limited += 1
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.001, wait)):
                    await self._changed.wait()
            self._rate_limited -= 1

    async def _hold_back(self, exhausted: KejuError, in_flight: int) -> None:
        """Stop where a budget is spent; wait where replies in flight may still change that."""
        account = self.spending.account
        if in_flight:
            await self._changed.wait()
        elif account is not None and account.purse.in_flight:
            await asyncio.sleep(ELSEWHERE)  # they are of other runs, on other loops
        else:
            self.company.stop(exhausted)


def _with_faults(carried: Carried, faults: tuple[Fault, ...], *, outage: bool) -> Carried:
    """What a request takes along that moves after these faults.

    Attempts that an outage ended do not count, unless that happens to the request again and again:
    then it may be the request that brings the endpoints down.
    """
    outages = carried.outages + outage
    free = outage and outages <= MOST_OUTAGES
    counted = [each for each in faults if is_attempt(each) and not (free and nobody_there(each))]
    return Carried(carried.faults + faults, carried.attempts + len(counted), outages)
