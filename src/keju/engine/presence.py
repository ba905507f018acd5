"""Whether an endpoint is there: opening it, knocking while it is down, taking it back."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Collection, Iterable
from time import monotonic
from typing import TYPE_CHECKING, Any

from keju.engine.company import Company
from keju.engine.limits import Breaker
from keju.engine.preflight_checks import preflight_notices
from keju.engine.rate_limit import RateLimit
from keju.engine.sharing import SHARE
from keju.engine.slots import Slots
from keju.errors import EndpointError, Notice
from keju.models.base import Model, NotReady, fault_text
from keju.types import Fault, Sampling

if TYPE_CHECKING:
    from keju.engine.channel import Limits

GATEWAY_STATUS = frozenset({502, 503, 504})
LONGEST_BACKOFF = 60.0
KNOCKS = 6
"""Calls before the first question, as patient as a run: one damaged reply in three is no wrong
address."""
LONGEST_KNOCK_WAIT = 30.0
"""Seconds; an endpoint that asks for more patience is not ready for a run."""


class Presence(Slots):
    """An endpoint, and whether it answers."""

    def __init__(self, model: Model, limits: Limits, company: Company, seed: int) -> None:
        self.address = str(model.facts().get("endpoint", ""))
        """Where the endpoint is, without credentials; empty for a model in this process."""
        self._share = SHARE.get()
        admission = None
        if self._share is not None:
            admission = self._share.admission(self.address, model.name, limits.concurrency)
        super().__init__(limits.concurrency, admission)
        self.model = model
        self.limits = limits
        self.company = company
        self.breaker = Breaker(limits.give_up_after)
        self._random = random.Random(seed)
        self.rate_limit = RateLimit(limits.retry_interval, self._random)
        self.odd_wait = ""
        """A Retry-After of the endpoint that is no sensible wait."""
        self.on_wait: Callable[[Notice], None] = lambda _: None
        """Called with the reason if the first question has to wait for long."""
        self._changed = asyncio.Event()
        self._roused = asyncio.Event()
        """Set where nobody should wait for another attempt any more."""
        self._samplings: list[Sampling] = []
        self._ready = False
        self.outages = 0
        """How often it went down."""
        self.problem: Any = ""
        """Why it went down, as far as is known."""
        self._outages = 0
        """How often it did since the last reply."""
        self._down_before = 0.0
        """Seconds that it was down before the present outage."""
        self._probing: asyncio.Task[None] | None = None
        self._opened = monotonic()

    async def open(self, samplings: Iterable[Sampling]) -> None:
        """Start the model and show with a cheap call for each sampling that it works."""
        for sampling in samplings:
            if sampling not in self._samplings:
                self._samplings.append(sampling)
        if self.model.server is not None:
            await self.model.server.start(self.take_out, self.company.stop)
        await self.model.start()
        for sampling in self._samplings:
            await self._knock_patiently(sampling)
        self._know_slots()
        self._opened = monotonic()

    async def _knock_patiently(self, sampling: Sampling) -> None:
        """Make the preflight's call, again while its failure may pass; it says what was sent."""
        try:
            await self._knock(sampling)
        except EndpointError as error:
            sent = self.model.sent(sampling)
            if sent is None:
                raise
            raise EndpointError(error.code, **{"sent": sent} | error.values) from None

    async def _knock(self, sampling: Sampling) -> None:
        """Make the call; a rate limit is waited for as long as `give_up_after` allows."""
        failures = refusals = 0
        began = monotonic()
        while True:
            try:
                return await self.model.preflight(sampling)
            except NotReady as error:
                fault = error.fault
                values = {"url": error.place, "problem": fault_text(fault)}
                lasting = error.lasting
            self._note_odd_wait(fault)
            limited = fault.kind == "rate_limit"
            if limited:
                refusals += 1
                wait = self.rate_limit.wait(self.asked_wait(fault), refusals)
                if monotonic() - began + wait > self.limits.give_up_after:
                    break
                if refusals == 1:
                    patience = {"seconds": self.limits.give_up_after}
                    self.on_wait(Notice("preflight_limited", values | patience))
                await asyncio.sleep(wait)
                continue
            if (asked := self.asked_wait(fault) or 0) > LONGEST_KNOCK_WAIT:
                raise EndpointError("endpoint_asks_to_wait", seconds=asked, **values)
            failures += 1
            if failures >= KNOCKS:
                break
            # A damaged reply says nothing of load: the wait stays short.
            await asyncio.sleep(self._backoff(fault, 1 if _is_damaged(fault) else failures))
        if limited and fault.retry_after and self.asked_wait(fault) is None:
            raise EndpointError("endpoint_asks_to_wait", seconds=fault.retry_after, **values)
        if lasting is not None:
            raise lasting
        if limited:
            patience = {"seconds": self.limits.give_up_after}
            raise EndpointError("endpoint_limited_at_start", **values, **patience)
        if _is_damaged(fault):
            api = Notice(self.model.api)
            raise EndpointError("endpoint_other_format", api=api, address="--api-url", **values)
        raise EndpointError("endpoint_not_ready", attempts=failures + refusals, **values)

    def preflight_notices(self, declared: Collection[str] = ()) -> list[Notice]:
        """Return what the preflight's replies show; `declared` are further names of the model."""
        return [*preflight_notices(self.model, declared)]

    async def close(self) -> None:
        """Let go of the model."""
        if self._probing is not None:
            self._probing.cancel()
        await self.model.close()
        if self.model.server is not None:
            await self.model.server.close()

    @property
    def usable(self) -> bool:
        """Whether the endpoint answers at present, as far as is known."""
        return self._ready and self.breaker.since is None and self.stop_reason is None

    @property
    def seconds(self) -> float:
        """Seconds since the channel was opened."""
        return monotonic() - self._opened

    def wake(self) -> None:
        """Let everybody who waits for clearance look again."""
        self._changed.set()
        self._changed = asyncio.Event()

    def _backoff(self, fault: Fault, failures: int) -> float:
        """What the endpoint asked for; else exponential. Both with jitter, so that none crowd."""
        if (asked := self.asked_wait(fault)) is not None:
            return asked * self._random.uniform(1.0, 1.25)
        doubled = self.limits.retry_interval * 2.0 ** min(failures - 1, 20)
        return min(LONGEST_BACKOFF, doubled) * self._random.uniform(0.5, 1.5)

    def asked_wait(self, fault: Fault) -> float | None:
        """Return the seconds that the endpoint asks to wait; None if Keju cannot wait that long.

        A run gives up after `give_up_after` seconds, so a longer wait is not kept.
        """
        asked = fault.retry_after
        return None if asked is None or asked > self.limits.give_up_after else asked

    def _note_odd_wait(self, fault: Fault) -> None:
        """Keep a wait that the endpoint asks for and Keju does not keep, for the results."""
        if fault.odd_wait:
            self.odd_wait = fault.odd_wait
        elif fault.retry_after is not None and self.asked_wait(fault) is None:
            self.odd_wait = f"{fault.retry_after:.15g}"

    def _answered(self, *, overload: bool) -> None:
        """Somebody is there: close the breaker, adapt the concurrency."""
        if self.breaker.since is None and self.concurrency.saw(overload=overload):
            self._grant()
        self._heard()

    def _heard(self) -> None:
        """Somebody is there: close the breaker."""
        if self.breaker.since is not None:
            self._come_back()
        self.breaker.worked()

    @property
    def down_seconds(self) -> float:
        """For how long it was down, over all."""
        since = self.breaker.since
        return self._down_before + (monotonic() - since if since is not None else 0.0)

    def take_out(self, problem: Any) -> None:
        """Send nothing more until a cheap call shows that the endpoint is there, and as it was."""
        if self.breaker.open(monotonic()):
            self._go_down(problem)

    def _go_down(self, problem: Any) -> None:
        """The breaker has just opened."""
        self.problem = problem
        self.outages += 1
        self._outages += 1
        self._probing = asyncio.create_task(self._probe())
        if self.company.several:
            self._roused.set()
            self.company.changed(self)
            self.company.wake()

    def _come_back(self) -> None:
        """Somebody answers again."""
        self._down_before = self.down_seconds
        self.breaker.worked()
        if self.company.several and self.stop_reason is None:
            self._roused = asyncio.Event()
            self.company.changed(self)
        self.company.wake()

    async def _probe(self) -> None:
        """Knock with the preflight's cheap call until the endpoint answers or we give up.

        One that answers cheap calls and fails at all others is asked less and less.
        """
        wait = min(LONGEST_BACKOFF, 2.0 ** (self._outages - 1)) if self.company.several else 1.0
        while self.breaker.since is not None and self.stop_reason is None:
            if (reason := self.company.patience_over(self)) is not None:
                self.company.stop(reason)
                return
            await asyncio.sleep(wait)
            wait = max(wait, min(15.0, wait * 1.5))
            try:
                await self.answers()
                if await self.company.welcomes(self):
                    self._come_back()
            except Exception:  # whatever it is, nobody is there who could go on
                continue

    async def answers(self) -> None:
        """Make the preflight's cheap call, or all of them if it never answered; raises."""
        for sampling in self._samplings[: 1 if self._ready else None] or [Sampling()]:
            await self.model.preflight(sampling)
        if not self._ready:
            self._know_slots()

    def _know_slots(self) -> None:
        """The endpoint has answered for the first time; some tell only now how many slots help."""
        self._ready = True
        if self.model.slots is not None and not self.model.batches:
            self.concurrency.most = min(self.concurrency.most, self.model.slots)
            self.concurrency.limit = min(self.concurrency.limit, self.model.slots)


def nobody_there(fault: Fault) -> bool:
    """Whether an attempt found nobody there: no connection, or a gateway without a server."""
    if fault.kind == "rate_limit":  # 503 with Retry-After
        return False
    return fault.kind == "connection" or fault.status in GATEWAY_STATUS


def _is_damaged(fault: Fault) -> bool:
    return fault.kind == "malformed"
