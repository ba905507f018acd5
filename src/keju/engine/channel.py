"""A channel is one endpoint: its model, and all that holds a request back or repeats it.

Concurrency, rates, the breaker and retries are decided here and nowhere else, for candidates,
judges and bridges alike. Whoever asks holds a slot; an attempt that has to wait for its repetition
gives the slot back, so that no slot sleeps, and comes before new work when its wait is over.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from time import monotonic, time
from typing import Any, NamedTuple

from keju.config import Budget, TaskConfig
from keju.engine.display import Pause
from keju.engine.limits import Breaker, Concurrency, Rate, Spending
from keju.engine.watching import WORK, Attempt, Follower
from keju.errors import EndpointError, KejuError, Notice, RunIncomplete
from keju.models.base import Model, NotReady, fault_text
from keju.types import Fault, FaultKind, Reading, Reply, Request, Sample, Sampling

FINAL: frozenset[FaultKind] = frozenset({"bad_request", "context_length", "content_filter"})
"""Faults that another attempt cannot mend: the outcome of that sample."""
REFUSALS: frozenset[FaultKind] = frozenset({"auth", "not_found"})
"""Faults that stop the run when they repeat: no sample is to blame for them."""
OVERLOADS: frozenset[FaultKind] = frozenset({"rate_limit", "timeout"})
GATEWAY_STATUS = frozenset({502, 503, 504})

REFUSALS_TO_STOP = 3
BAD_REQUESTS_TO_STOP = 20
LONGEST_BACKOFF = 60.0
KNOCKS = 6
"""Calls before the first question, as patient as a run: one damaged reply in three is no wrong
address."""
LONGEST_KNOCK_WAIT = 30.0
"""Seconds; an endpoint that asks for more patience is not ready for a run."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What the user allows a channel to do."""

    concurrency: int
    timeout: float
    attempts: int
    give_up_after: float
    retry_interval: float = 0.5
    rpm: float | None = None
    tpm: float | None = None

    @classmethod
    def of(cls, config: TaskConfig, model: Model) -> Limits:
        """The limits of a task; a local model has as many slots as it can use."""
        most = config.eval_batch_size
        if model.slots is not None:
            most = model.slots if model.batches else min(most, model.slots)
        return cls(
            concurrency=most,
            timeout=config.timeout,
            attempts=config.attempts,
            give_up_after=config.give_up_after,
            retry_interval=config.retry_interval,
            rpm=config.rpm,
            tpm=config.tpm,
        )


class Exchange(NamedTuple):
    """A reply, and the attempts that failed before it, in order."""

    reply: Reply
    faults: tuple[Fault, ...] = ()
    readings: tuple[Reading, ...] = ()
    """What was read of the reply, where the solver had to read it; else the job does."""
    seconds: float = 0.0
    """What all attempts took, without the waits between them."""


class Channel:
    """Asks one endpoint; every attempt of every request goes through it."""

    def __init__(
        self, model: Model, limits: Limits, spending: Spending | None = None, *, seed: int = 0
    ) -> None:
        self.model = model
        self.limits = limits
        self.spending = spending or Spending(Budget(), None)
        self.concurrency = Concurrency(limits.concurrency)
        self.breaker = Breaker(limits.give_up_after)
        self.in_flight = 0
        """Attempts that wait for their reply."""
        self.retries = 0
        self.shares_prefixes = False
        """Whether the endpoint has told that a part of a prompt came from its cache."""
        self.stop_reason: KejuError | None = None
        """Why nothing more is sent."""
        self.address = str(model.facts().get("endpoint", ""))
        """Where the endpoint is, without credentials; empty for a model in this process."""
        self.follower: Follower | None = None
        """Who is told of every attempt."""
        self._random = random.Random(seed)
        self._requests = Rate(limits.rpm, burst=max(1.0, limits.rpm / 60)) if limits.rpm else None
        self._tokens = Rate(limits.tpm, burst=limits.tpm / 6) if limits.tpm else None
        self._metered = self.spending.limited or bool(limits.rpm or limits.tpm)
        self._slots_in_use = 0
        self._returning: deque[asyncio.Future[None]] = deque()
        self._newcomers: deque[asyncio.Future[None]] = deque()
        self._due: list[float] = []
        self._beside: set[asyncio.Task[Any]] = set()
        self._changed = asyncio.Event()
        self._stopping = asyncio.Event()
        self._rate_limited = 0
        self._successes = 0
        self._refusals = 0
        self._bad_requests = 0
        self._knock = Sampling()
        self._probing: asyncio.Task[None] | None = None
        self._opened = monotonic()

    async def open(self, samplings: Iterable[Sampling]) -> None:
        """Start the model and show with a cheap call for each sampling that it works."""
        await self.model.start()
        different: list[Sampling] = []
        for sampling in samplings:
            if sampling not in different:
                await self._knock_patiently(sampling)
                different.append(sampling)
        self._knock = different[0] if different else self._knock
        if self.model.slots is not None and not self.model.batches:  # some tell it only now
            self.concurrency.most = min(self.concurrency.most, self.model.slots)
            self.concurrency.limit = min(self.concurrency.limit, self.model.slots)
        self._opened = monotonic()

    async def _knock_patiently(self, sampling: Sampling) -> None:
        """Make the preflight's call, again while its failure may pass."""
        for failures in range(1, KNOCKS + 1):
            try:
                return await self.model.preflight(sampling)
            except NotReady as error:
                fault = error.fault
                values = {"url": error.place, "problem": fault_text(fault)}
                lasting = error.lasting
            if (wait := fault.retry_after or 0) > LONGEST_KNOCK_WAIT:
                raise EndpointError("endpoint_asks_to_wait", seconds=wait, **values)
            damaged = fault.kind == "malformed"
            if failures < KNOCKS:  # a damaged reply says nothing of load: the wait stays short
                await asyncio.sleep(self._backoff(fault, 1 if damaged else failures))
        if lasting is not None:
            raise lasting
        if damaged:
            api = Notice(self.model.api)
            raise EndpointError("endpoint_other_format", api=api, address="--api-url", **values)
        raise EndpointError("endpoint_not_ready", attempts=KNOCKS, **values)

    async def close(self) -> None:
        """Let go of the model."""
        if self._probing is not None:
            self._probing.cancel()
        await self.model.close()

    @property
    def seconds(self) -> float:
        """Seconds since the channel was opened."""
        return monotonic() - self._opened

    @property
    def pause(self) -> Pause | None:
        """What keeps the channel from sending more."""
        if self.breaker.since is not None:
            return "down"
        if self.stop_reason is not None:
            return "stopping"
        if self.concurrency.limit < self.concurrency.most and self.in_flight:
            return "overload"
        if self._rate_limited:
            return "rate"
        return "retry" if self._due and not self.in_flight else None

    @property
    def waiting_for(self) -> str:
        """The same in words; empty if nothing does."""
        match self.pause:
            case "down":
                down = monotonic() - (self.breaker.since or 0.0)
                return f"the endpoint is down ({down:.0f} s); the run pauses until it answers"
            case "stopping":
                return f"{self.in_flight} requests in flight to finish"
            case "overload":
                return f"overload: {self.concurrency.limit} of {self.concurrency.most} slots in use"
            case "rate":
                return "the rate limit"
            case "retry":
                return f"a failed request, due in {max(0.0, min(self._due) - monotonic()):.0f} s"
        return ""

    @property
    def waiting(self) -> int:
        """How many requests wait for another attempt."""
        return len(self._due)

    def stop(self, reason: KejuError) -> None:
        """Send nothing more; what is in flight comes in, everybody else gets `reason` raised."""
        if self.stop_reason is None:
            self.stop_reason = reason
        self._stopping.set()
        self._wake()
        while self._beside:
            self._beside.pop().cancel()
        for turn in (*self._returning, *self._newcomers):
            if not turn.done():
                turn.set_exception(self.stop_reason)

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

    # Slots

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """A slot for as long as the block lasts."""
        await self.enter()
        try:
            yield
        finally:
            self.leave()

    async def enter(self, *, returning: bool = False) -> None:
        """Take a slot; one that was given back for a wait is `returning`, before new work."""
        if self.stop_reason is not None:
            raise self.stop_reason
        if self._slots_in_use < self.concurrency.limit and not self._returning:
            self._slots_in_use += 1
            return
        turn = asyncio.get_running_loop().create_future()
        (self._returning if returning else self._newcomers).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self.leave()  # the slot was granted in the very moment of the cancellation
            raise

    def leave(self) -> None:
        """Give a slot back."""
        self._slots_in_use -= 1
        self._grant()

    @property
    def may_stay(self) -> bool:
        """Whether who has a slot may use it for the next request, without asking for one again."""
        return (
            not self._returning
            and self._slots_in_use <= self.concurrency.limit
            and self.stop_reason is None
        )

    def _grant(self) -> None:
        while self._slots_in_use < self.concurrency.limit:
            waiting = self._returning or self._newcomers
            if not waiting:
                return
            turn = waiting.popleft()
            if not turn.done():
                # Counted now, not when the other side runs: nobody slips in between.
                self._slots_in_use += 1
                turn.set_result(None)

    # One request

    async def ask(
        self,
        request: Request,
        check: Callable[[Reply], Reply] | None = None,
        *,
        within: float | None = None,
    ) -> Exchange:
        """The reply to `request`; whoever asks holds a slot.

        A fault that may pass is followed by another attempt, as many as the limits allow. A fault
        that remains is the reply's `error`. Raises what stop_reason the channel, if anything did.
        `check` sees each reply that came and may make a fault of it. `within` are the seconds that
        all attempts may take, waits apart; none is begun when they are over.
        """
        faults: tuple[Fault, ...] = ()
        seconds = 0.0
        while True:
            if self._metered or self.breaker.since is not None or self.stop_reason is not None:
                await self._clearance()
            self.in_flight += 1
            self.spending.requests += 1
            started = monotonic()
            timeout = self.model.patience(request.sampling, self.limits.timeout)
            if within is not None:
                timeout = max(0.001, min(timeout, within - seconds))
            try:
                reply = await self._attempt(request, check, timeout)
            finally:
                self.in_flight -= 1
                seconds += monotonic() - started
                if self._metered:
                    self._wake()
            if self.follower is not None:
                number = len(faults) + 1
                self._told(self.follower, request, reply, monotonic() - started, number)
            fault = reply.error
            if fault is None:
                self._successes += 1
                self.shares_prefixes |= reply.usage.cached > 0
                self._refusals = self._bad_requests = 0
                self._answered(overload=False)
                break
            if not fault.sent:
                self.spending.requests -= 1
            if fault.kind == "connection" or fault.status in GATEWAY_STATUS:
                if self.breaker.failed(monotonic()):
                    self._probing = asyncio.create_task(self._probe())
            else:
                self._answered(overload=fault.kind in OVERLOADS)
            if fault.kind in FINAL:
                self._bad_requests += 1
                hopeless = self._bad_requests >= BAD_REQUESTS_TO_STOP and not self._successes
                if fault.kind == "bad_request" and hopeless:
                    self.stop(EndpointError("endpoint_refuses_all", problem=fault.message))
                break
            self._refusals += fault.kind in REFUSALS
            if fault.kind in REFUSALS and self._refusals >= REFUSALS_TO_STOP:
                self.stop(EndpointError("endpoint_refuses_more", problem=fault.message))
            elif (wait := fault.retry_after or 0) > self.limits.give_up_after:
                self.stop(RunIncomplete("endpoint_pauses", seconds=wait, problem=fault.message))
            # A request that never reached the endpoint is no attempt.
            elif sum(each.sent for each in (*faults, fault)) >= self.limits.attempts or (
                within is not None and seconds >= within
            ):
                break
            if self.stop_reason is not None:
                raise self.stop_reason
            faults += (fault,)
            self.retries += 1
            await self._wait_without_slot(self._backoff(fault, len(faults)))
        self.spending.add(reply.usage, replies=fault is None)
        if self._tokens is not None:
            self._tokens.draw(reply.usage.input + reply.usage.output)
        return Exchange(reply, faults, seconds=seconds)

    def _told(
        self, follower: Follower, request: Request, reply: Reply, seconds: float, number: int
    ) -> None:
        own = self.address, self.model.name, request, reply, time() - seconds, seconds, number
        follower.attempted(Attempt(*own, WORK.get()))

    async def _attempt(
        self, request: Request, check: Callable[[Reply], Reply] | None, timeout: float
    ) -> Reply:
        """One attempt; whatever breaks around its reply is a fault of this attempt alone."""
        try:
            reply = await self.model.ask(request, timeout=timeout)
            return check(reply) if check is not None and reply.error is None else reply
        except KejuError:
            raise
        except Exception as error:  # its text may hold a secret
            problem = f"the reply cannot be used ({type(error).__name__})"
            return Reply(error=Fault("malformed", problem))

    def _backoff(self, fault: Fault, failures: int) -> float:
        """What the endpoint asked for; else exponential. Both with jitter, so that none crowd."""
        if fault.retry_after is not None:
            return fault.retry_after * self._random.uniform(1.0, 1.25)
        doubled = self.limits.retry_interval * 2.0 ** min(failures - 1, 20)
        return min(LONGEST_BACKOFF, doubled) * self._random.uniform(0.5, 1.5)

    async def _wait_without_slot(self, seconds: float) -> None:
        """Give the slot back for `seconds`, then take one again, before any new work."""
        due = monotonic() + seconds
        self._due.append(due)
        self.leave()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._stopping.wait()
            await self.enter(returning=True)
        except BaseException:
            self._slots_in_use += 1  # its holder is about to give back what it took
            raise
        finally:
            self._due.remove(due)

    async def _clearance(self) -> None:
        """Wait until the breaker, the budget and the rates allow one attempt."""
        while True:
            if self.stop_reason is not None:
                raise self.stop_reason
            if self.breaker.since is not None:
                await self._changed.wait()
                continue
            exhausted = self.spending.exhausted(self.in_flight, self.seconds)
            if exhausted is not None and not self.in_flight:
                self.stop(exhausted)
                continue
            if exhausted is not None:
                await self._changed.wait()
                continue
            now, wait = monotonic(), 0.0
            if self._tokens is not None:
                ahead = self.spending.average_tokens() * (self.in_flight + 1)
                wait = self._tokens.wait(ahead, now)
            if self._requests is not None:
                wait = max(wait, self._requests.wait(1, now))
                if wait <= 0:
                    self._requests.draw(1)
            if wait <= 0:
                return
            self._rate_limited += 1
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.001, wait)):
                    await self._changed.wait()
            self._rate_limited -= 1

    def _wake(self) -> None:
        """Let everybody who waits for clearance look again."""
        self._changed.set()
        self._changed = asyncio.Event()

    def _answered(self, *, overload: bool) -> None:
        """Somebody is there: close the breaker, adapt the concurrency."""
        if self.breaker.since is not None:
            self._wake()
        elif self.concurrency.saw(overload=overload):
            self._grant()
        self.breaker.worked()

    async def _probe(self) -> None:
        """Knock with the preflight's cheap call until the endpoint answers or we give up."""
        wait = 1.0
        while self.breaker.since is not None and self.stop_reason is None:
            if monotonic() - self.breaker.since > self.breaker.give_up_after:
                seconds = self.breaker.give_up_after
                self.stop(RunIncomplete("endpoint_stayed_down", seconds=seconds))
                return
            await asyncio.sleep(wait)
            wait = min(15.0, wait * 1.5)
            try:
                await self.model.preflight(self._knock)
            except Exception:  # whatever it is, nobody is there who could go on
                continue
            self.breaker.worked()
            self._wake()


class Solver:
    """Turns a request into a reply by asking a channel: once, or as those below it do."""

    begun = 0
    """Episodes whose first reply has come, where a reply takes several requests."""
    finished = 0
    """Those of them that have their reply."""

    def check(self, model: Model) -> None:
        """ConfigError where the model cannot be asked in this way; before anything is opened."""

    async def open(self) -> None:
        """Make ready, once a session and before any model is asked; UsageError in one line."""

    async def knock(self, channel: Channel, sampling: Sampling) -> None:
        """Find out with a cheap call, after `open`, what the model cannot do; EndpointError."""

    def __call__(
        self, request: Request, channel: Channel, sample: Sample, epoch: int
    ) -> Awaitable[Exchange]:
        """The reply to `request`, which asks `sample` for the time `epoch` (from 0)."""
        return channel.ask(request)

    async def close(self) -> None:
        """Let go of all that `open` took; called once, whatever happened."""

    def facts(self) -> dict[str, Any]:
        """What determines the replies, for the manifest: never a secret."""
        return {}

    def statistics(self) -> dict[str, Any]:
        """What the session was like beside its records, for the manifest; asked at its end."""
        return {}

    @property
    def notices(self) -> list[Notice]:
        """What a reader of the results must know of the session."""
        return []
