"""Whether an endpoint answers: opening it, probing it while it is down, and using it again."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Collection, Iterable
from time import monotonic
from typing import TYPE_CHECKING, Any

from keju.engine.endpoint_group import EndpointGroup
from keju.engine.limits import CircuitBreaker
from keju.engine.preflight_checks import preflight_notices
from keju.engine.rate_limit import EndpointRateLimit
from keju.engine.run_sharing import SHARE
from keju.engine.slots import Slots
from keju.errors import EndpointError, Notice
from keju.models.base import Model, NotReady, fault_text
from keju.types import Fault, Sampling

if TYPE_CHECKING:
    from keju.engine.channel import ChannelLimits

GATEWAY_STATUS = frozenset({502, 503, 504})
LONGEST_BACKOFF = 60.0
PREFLIGHT_ATTEMPTS = 6
"""Attempts before the first question. They are as patient as a run, because one damaged reply in
three does not mean a wrong address."""
LONGEST_PREFLIGHT_WAIT = 30.0
"""Seconds. An endpoint that asks for a longer wait is not ready for a run."""


class EndpointHealth(Slots):
    """An endpoint, and whether it answers."""

    def __init__(
        self, model: Model, limits: ChannelLimits, group: EndpointGroup, seed: int
    ) -> None:
        self.address = str(model.facts().get("endpoint", ""))
        """The address of the endpoint, without credentials; "" for a model in this process."""
        self._share = SHARE.get()
        claim = None
        if self._share is not None:
            claim = self._share.claim(self.address, model.name, limits.concurrency)
        super().__init__(limits.concurrency, claim)
        self.model = model
        self.limits = limits
        self.group = group
        self.breaker = CircuitBreaker(limits.give_up_after)
        self._random = random.Random(seed)
        self.rate_limit = EndpointRateLimit(limits.retry_interval, self._random)
        self.odd_wait = ""
        """A Retry-After of the endpoint that Keju cannot follow."""
        self.on_wait: Callable[[Notice], None] = lambda _: None
        """Called with the reason if the first question has to wait for long."""
        self._clearance_changed = asyncio.Event()
        self._retry_wakeup = asyncio.Event()
        """Set when requests should stop waiting for their next attempt."""
        self._samplings: list[Sampling] = []
        self._has_answered = False
        self.outages = 0
        """The number of outages."""
        self.problem: Any = ""
        """The cause of the latest outage, as far as is known."""
        self._outages_in_a_row = 0
        """The number of outages since the last reply."""
        self._down_before = 0.0
        """Seconds that it was down before the present outage."""
        self._probe_task: asyncio.Task[None] | None = None
        self._opened_at = monotonic()

    async def open(self, samplings: Iterable[Sampling]) -> None:
        """Start the model and make a cheap call for each sampling to show that it works."""
        for sampling in samplings:
            if sampling not in self._samplings:
                self._samplings.append(sampling)
        if self.model.server is not None:
            await self.model.server.start(self.take_out, self.group.stop)
        await self.model.start()
        for sampling in self._samplings:
            await self._run_preflight(sampling)
        self._learn_slots()
        self._opened_at = monotonic()

    async def _run_preflight(self, sampling: Sampling) -> None:
        """Make the preflight's call and repeat it while its failure may be temporary. Its errors
        include the prompt."""
        try:
            await self._preflight_with_retries(sampling)
        except EndpointError as error:
            sent_prompt = self.model.sent(sampling)
            if sent_prompt is None:
                raise
            raise EndpointError(error.code, **{"sent": sent_prompt} | error.values) from None

    async def _preflight_with_retries(self, sampling: Sampling) -> None:
        """Make the call. Wait for a rate limit as long as `give_up_after` allows."""
        failures = refusals = 0
        started = monotonic()
        while True:
            try:
                return await self.model.preflight(sampling)
            except NotReady as error:
                fault = error.fault
                values = {"url": error.place, "problem": fault_text(fault)}
                permanent_error = error.lasting
            self._note_odd_wait(fault)
            is_limited = fault.kind == "rate_limit"
            if is_limited:
                refusals += 1
                wait = self.rate_limit.wait(self.requested_wait(fault), refusals)
                if monotonic() - started + wait > self.limits.give_up_after:
                    break
                if refusals == 1:
                    patience_values = {"seconds": self.limits.give_up_after}
                    self.on_wait(Notice("preflight_limited", values | patience_values))
                await asyncio.sleep(wait)
                continue
            if (requested_seconds := self.requested_wait(fault) or 0) > LONGEST_PREFLIGHT_WAIT:
                raise EndpointError("endpoint_asks_to_wait", seconds=requested_seconds, **values)
            failures += 1
            if failures >= PREFLIGHT_ATTEMPTS:
                break
            # A damaged reply is not a sign of load, so the wait stays short.
            await asyncio.sleep(self._backoff_seconds(fault, 1 if _is_damaged(fault) else failures))
        if is_limited and fault.retry_after and self.requested_wait(fault) is None:
            raise EndpointError("endpoint_asks_to_wait", seconds=fault.retry_after, **values)
        if permanent_error is not None:
            raise permanent_error
        if is_limited:
            patience_values = {"seconds": self.limits.give_up_after}
            raise EndpointError("endpoint_limited_at_start", **values, **patience_values)
        if _is_damaged(fault):
            api = Notice(self.model.api)
            raise EndpointError("endpoint_other_format", api=api, address="--api-url", **values)
        raise EndpointError("endpoint_not_ready", attempts=failures + refusals, **values)

    def preflight_notices(self, declared: Collection[str] = ()) -> list[Notice]:
        """Return the notices of the preflight's replies. `declared` are further names of the
        model."""
        return [*preflight_notices(self.model, declared)]

    async def close(self) -> None:
        """Close the model."""
        if self._probe_task is not None:
            self._probe_task.cancel()
        await self.model.close()
        if self.model.server is not None:
            await self.model.server.close()

    @property
    def usable(self) -> bool:
        """Whether the endpoint answers at present, as far as is known."""
        return self._has_answered and self.breaker.since is None and self.stop_reason is None

    @property
    def seconds(self) -> float:
        """Seconds since the channel was opened."""
        return monotonic() - self._opened_at

    def wake(self) -> None:
        """Let all requests that wait for clearance check again."""
        self._clearance_changed.set()
        self._clearance_changed = asyncio.Event()

    def _backoff_seconds(self, fault: Fault, failures: int) -> float:
        """Return the wait that the endpoint asked for, else an exponential one. Both vary at
        random, so that retries do not come together."""
        if (requested_seconds := self.requested_wait(fault)) is not None:
            return requested_seconds * self._random.uniform(1.0, 1.25)
        backoff = self.limits.retry_interval * 2.0 ** min(failures - 1, 20)
        return min(LONGEST_BACKOFF, backoff) * self._random.uniform(0.5, 1.5)

    def requested_wait(self, fault: Fault) -> float | None:
        """Return the seconds that the endpoint asks to wait, or None if Keju cannot wait that long.

        A run gives up after `give_up_after` seconds, so it ignores a longer wait.
        """
        requested_seconds = fault.retry_after
        return (
            None
            if requested_seconds is None or requested_seconds > self.limits.give_up_after
            else requested_seconds
        )

    def _note_odd_wait(self, fault: Fault) -> None:
        """Store a requested wait that Keju ignores, for the results."""
        if fault.odd_wait:
            self.odd_wait = fault.odd_wait
        elif fault.retry_after is not None and self.requested_wait(fault) is None:
            self.odd_wait = f"{fault.retry_after:.15g}"

    def _note_answer(self, *, overload: bool) -> None:
        """Close the breaker and adapt the concurrency after an answer."""
        if self.breaker.since is None and self.concurrency.record_reply(overload=overload):
            self._grant()
        self._close_breaker()

    def _close_breaker(self) -> None:
        """Close the breaker, because the endpoint answered."""
        if self.breaker.since is not None:
            self._come_back()
        self.breaker.record_success()

    @property
    def down_seconds(self) -> float:
        """The seconds of all outages."""
        since = self.breaker.since
        return self._down_before + (monotonic() - since if since is not None else 0.0)

    def take_out(self, problem: Any) -> None:
        """Send nothing more until a cheap call shows that the endpoint answers and has not
        changed."""
        if self.breaker.open(monotonic()):
            self._go_down(problem)

    def _go_down(self, problem: Any) -> None:
        """Handle that the breaker has just opened."""
        self.problem = problem
        self.outages += 1
        self._outages_in_a_row += 1
        self._probe_task = asyncio.create_task(self._probe())
        if self.group.is_group:
            self._retry_wakeup.set()
            self.group.handle_change(self)
            self.group.wake()

    def _come_back(self) -> None:
        """Handle that the endpoint answers again."""
        self._down_before = self.down_seconds
        self.breaker.record_success()
        if self.group.is_group and self.stop_reason is None:
            self._retry_wakeup = asyncio.Event()
            self.group.handle_change(self)
        self.group.wake()

    async def _probe(self) -> None:
        """Repeat the preflight's cheap call until the endpoint answers or Keju gives up.

        If it answers cheap calls but fails at all others, the probes become rarer.
        """
        wait = (
            min(LONGEST_BACKOFF, 2.0 ** (self._outages_in_a_row - 1))
            if self.group.is_group
            else 1.0
        )
        while self.breaker.since is not None and self.stop_reason is None:
            if (reason := self.group.down_too_long(self)) is not None:
                self.group.stop(reason)
                return
            await asyncio.sleep(wait)
            wait = max(wait, min(15.0, wait * 1.5))
            try:
                await self.call_preflight()
                if await self.group.can_be_asked(self):
                    self._come_back()
            except Exception:  # any exception means that the endpoint cannot be used
                continue

    async def call_preflight(self) -> None:
        """Make the preflight's cheap call, or all of them if it never answered. Raise if one
        fails."""
        for sampling in self._samplings[: 1 if self._has_answered else None] or [Sampling()]:
            await self.model.preflight(sampling)
        if not self._has_answered:
            self._learn_slots()

    def _learn_slots(self) -> None:
        """Store the number of useful slots, which some endpoints report only with their first
        answer."""
        self._has_answered = True
        if self.model.slots is not None and not self.model.batches:
            self.concurrency.maximum = min(self.concurrency.maximum, self.model.slots)
            self.concurrency.limit = min(self.concurrency.limit, self.model.slots)


def found_no_server(fault: Fault) -> bool:
    """Whether an attempt did not reach the server: no connection, or a gateway without a server."""
    if fault.kind == "rate_limit":  # 503 with Retry-After
        return False
    return fault.kind == "connection" or fault.status in GATEWAY_STATUS


def _is_damaged(fault: Fault) -> bool:
    return fault.kind == "malformed"
