"""How fast an endpoint that limits requests may be asked.

Keju learns the rate from refusals (429, overload) and from requests that were accepted:

    free     nothing was refused lately: requests are sent at once
    paced    requests are sent at a rate that grows with each accepted request and falls with each
             refusal
    closed   a storm, many refusals in a row: one request at a time tests whether the endpoint
             accepts requests again

A refused request keeps its slot and its place in line. So no new question starts while older ones
wait, and a refusal never counts as an attempt of its question.
"""

from __future__ import annotations

import asyncio
import math
import random
from bisect import insort
from collections.abc import Callable
from time import monotonic
from typing import NamedTuple

STORM = 24
"""Refusals in a row after which one request at a time is sent."""
MIN_RATE, REQUESTS_PER_WAIT = 0.8, 3.0
"""The lowest rate while some requests are accepted: requests per second, or requests in the time
that the endpoint asks to wait. Where it refuses at random, a slower rate would not help."""
REFUSALS_TO_SLOW, REFUSAL_DECAY = 3, 0.8
"""The number of refusals after which a free rate is limited. Each accepted request multiplies the
weight of earlier refusals by the second number. So a few random refusals do not slow a run down."""
UNLIMITED_RATE = 1000.0
"""Requests per second above which nothing is held back."""
FAST_GROWTH, SLOW_GROWTH = 0.5, 0.0003
"""Growth of the rate with each accepted request. Below the rate learnt from refusals, the first
number applies. Above it, growth is the second number times the accepted requests since the last
refusal."""
CUT, MUCH_TOO_FAST = 0.95, 2.0
"""Factor of the rate after a refusal. A rate that is more than `MUCH_TOO_FAST` times the rate of
accepted requests is divided by that number."""
MEMORY = 5.0
"""Seconds over which accepted requests are averaged."""
SHORTEST_WAIT, LONGEST_WAIT = 0.001, 5.0
"""Seconds between two attempts at a request where the endpoint does not say how long to wait."""
LONGEST_PROBE_WAIT = 60.0
"""Seconds between two probes in a long storm, see `STORM_SHARE`."""
STORM_SHARE = 0.05
"""The wait between two requests of a long storm, as a share of its duration."""
FIRST_LOOK_RATE = 8.0
"""Requests per second until the first look at their outcomes."""
OUTCOMES_PER_LOOK, COMPARED_RATE, FEW_REFUSALS = 24, 0.55, 0.97
"""After this many outcomes, the share of accepted requests is compared with the share at a higher
rate. The present rate must be at most `COMPARED_RATE` times that rate. If the share did not grow,
refusals come at random, and a slower rate does not help. A share above `FEW_REFUSALS` is not
compared."""
CATCH_UP = 0.05
"""Seconds by which a late timer may be caught up."""
SHORTEST_PATIENCE, PATIENCE = 0.2, 4.0
"""A request without a refusal counts as accepted after a time: at least the first number of
seconds, and the second number times the duration of refusals. A reply of a slow model takes
minutes, a refusal does not."""


class SentRequest:
    """One request that was sent."""

    __slots__ = ("at", "is_probe", "is_settled", "timer")

    def __init__(self, at: float = 0.0, *, is_probe: bool = False) -> None:
        self.at = at
        """When it was sent."""
        self.is_probe = is_probe
        self.is_settled = False
        self.timer: asyncio.TimerHandle | None = None


class RequestOutcomes(NamedTuple):
    """The outcomes of some requests."""

    rate: float
    """Requests per second."""
    share: float
    """The share that was accepted."""


class EndpointRateLimit:
    """The rate that an endpoint allows, as far as it is known."""

    def __init__(self, retry_interval: float, chance: random.Random) -> None:
        """Create a rate limit. `retry_interval` is the first wait where the endpoint does not ask
        for one."""
        self.rate = math.inf
        """Requests per second that may be sent."""
        self.is_closed = False
        self.since: float | None = None
        """When the present refusals began; None if a request was accepted since then."""
        self.patience = SHORTEST_PATIENCE
        """Seconds after which a request without a refusal counts as accepted."""
        self._retry_interval = max(SHORTEST_WAIT, retry_interval)
        self._chance = chance
        self._learnt_rate = math.inf
        self._min_rate = MIN_RATE
        self._refusals = 0
        self._accepted = 0
        self._recent_refusals = 0.0
        self._probes = 0
        self._probe: SentRequest | None = None
        self._next_send = 0.0
        self._slowest_refusal = 0.0
        self._outcomes = [0, 0]
        """Requests that were refused and accepted since the last look."""
        self._looked_at = 0.0
        self._limited_at = 0.0
        """When the rate was last limited after it had been free."""
        self._faster: RequestOutcomes | None = None
        self._was_closed = False
        """Whether a storm has shown, since the rate was last free, that the rate is limited."""
        self._random_share: float | None = None
        """The share of accepted requests where refusals come at random."""
        self._goodput = 0.0
        self._first_accepted = self._last_accepted = 0.0

    @property
    def is_active(self) -> bool:
        """Whether requests are held back."""
        return self.rate != math.inf

    @property
    def _is_paced(self) -> bool:
        """Whether requests are sent at a rate that was learnt from refusals."""
        return self.is_active and not self.is_closed and self._random_share is None

    def wait(self, requested_wait: float | None, failures: int) -> float:
        """Return the seconds until a refused request may be sent again.

        `requested_wait` is the wait that the endpoint asks for. Zero and None mean an exponential
        wait. But at a limited rate, a request that was refused once only waits for its turn: a
        longer wait leaves a part of the limit unused, since it keeps its slot.
        """
        backoff = min(LONGEST_WAIT, self._retry_interval * 2.0 ** min(failures - 1, 30))
        if requested_wait is not None and requested_wait >= self._retry_interval:
            return requested_wait * self._chance.uniform(1.0, 1.25)
        if failures == 1 and self._is_paced:
            return requested_wait or 0.0
        return max(requested_wait or 0.0, backoff * self._chance.uniform(0.5, 1.0))

    def delay_seconds(self, now: float) -> float:
        """Return the seconds until the next request may be sent, or infinity while a probe is in
        flight."""
        if not self.is_active:
            return 0.0
        if self.is_closed and self._probe is not None:
            return math.inf
        return max(0.0, self._next_send - now)

    def send(self, now: float) -> SentRequest:
        """Note that a request is sent."""
        sent = SentRequest(now, is_probe=self.is_closed)
        if self.is_closed:
            self._probe = sent
        elif self.is_active:
            self._next_send = max(self._next_send, now - CATCH_UP) + 1.0 / self.rate
        return sent

    def note_refusal(
        self, sent: SentRequest, requested_wait: float | None, failures: int, now: float
    ) -> float:
        """Slow down after a refusal. Return how long its request waits.

        `failures` is how often that request was refused in a row.
        """
        self._slowest_refusal = max(0.9 * self._slowest_refusal, now - sent.at)
        self.patience = max(SHORTEST_PATIENCE, PATIENCE * self._slowest_refusal)
        if self.since is None:
            self.since = now
        self._refusals += 1
        self._min_rate = REQUESTS_PER_WAIT / requested_wait if requested_wait else MIN_RATE
        self._count_outcome(now, accepted=False)
        if self.is_closed:
            if sent is self._probe:
                self._retry_probe(requested_wait, now)
        elif self._is_too_fast():
            self._slow_down(now)
        elif self._refusals >= STORM:
            self.is_closed = self._was_closed = True
            self._probes = 0
            self._retry_probe(requested_wait, now)
        return self.wait(requested_wait, failures)

    def note_accepted(self, sent: SentRequest, now: float) -> None:
        """Speed up after a request that was not refused."""
        if sent.is_settled:
            return
        sent.is_settled = True
        self._recent_refusals *= REFUSAL_DECAY
        self._count_accepted(now)
        if sent.at >= self._limited_at:  # before that, requests used what the endpoint had saved up
            self._count_outcome(now, accepted=True)
        if not self.is_active or (self.since is not None and sent.at < self.since):
            return  # it was sent before the refusals began
        self._refusals, self.since = 0, None
        if self.is_closed:
            self.is_closed, self._probe = False, None
            self._goodput, self._first_accepted = 0.0, now
            self.rate = max(self._min_rate, min(self.rate, self._learnt_rate))
            self._next_send = sent.at + 1.0 / self.rate
            self._outcomes, self._looked_at = [0, 0], now
            return
        self._accepted += 1
        is_low = self.rate < self._learnt_rate
        self.rate *= 1 + (FAST_GROWTH if is_low else SLOW_GROWTH * self._accepted)
        if self.rate >= UNLIMITED_RATE:
            self.rate = self._learnt_rate = math.inf
            self._was_closed = False

    def note_lost(self, sent: SentRequest, now: float) -> None:
        """Note that a request ended without any information about the limit."""
        sent.is_settled = True
        if sent is self._probe:
            self._retry_probe(None, now)

    def _retry_probe(self, requested_wait: float | None, now: float) -> None:
        """Let the next probe be sent after a wait."""
        self._probe = None
        self._probes += 1
        wait = self.wait(requested_wait, self._probes)
        if not requested_wait and wait >= LONGEST_WAIT / 2 and self.since is not None:
            wait = max(wait, min(LONGEST_PROBE_WAIT, STORM_SHARE * (now - self.since)))
        self._next_send = now + wait

    def _is_too_fast(self) -> bool:
        """Whether a refusal lowers the rate: the first in a row, or many at a free rate."""
        self._recent_refusals += 1
        return self._refusals == 1 if self.is_active else self._recent_refusals >= REFUSALS_TO_SLOW

    def _slow_down(self, now: float) -> None:
        """Lower the rate after the first refusal that follows an accepted request."""
        if self._random_share is not None:
            return
        self._accepted = 0
        goodput = self._current_goodput(now)
        if not self.is_active:
            self.rate, self._next_send = goodput, now
            self._looked_at = self._limited_at = now
        else:
            is_near = self.rate <= MUCH_TOO_FAST * goodput
            self.rate = CUT * self.rate if is_near else max(goodput, self.rate / MUCH_TOO_FAST)
            self._learnt_rate = self.rate
        # Each look compares with one at a rate that is at most twice as high.
        lowest_rate = FIRST_LOOK_RATE if self._faster is None else self._faster.rate / MUCH_TOO_FAST
        self.rate = max(self._min_rate, self.rate, 0.0 if self._was_closed else lowest_rate)

    def _count_outcome(self, now: float, *, accepted: bool) -> None:
        """Count an outcome. Find out at intervals whether a slower rate helps."""
        if self.is_closed or (accepted and not self.is_active and self._random_share is None):
            return
        self._outcomes[accepted] += 1
        total = sum(self._outcomes)
        if total < OUTCOMES_PER_LOOK:
            return
        seconds = max(now - self._looked_at, 1e-6)
        look = RequestOutcomes(total / seconds, self._outcomes[True] / total)
        self._outcomes, self._looked_at = [0, 0], now
        if self._random_share is not None:
            if look.share < self._random_share / 2 or look.share >= FEW_REFUSALS:
                self._random_share = None
            return
        faster = self._faster
        if look.share >= FEW_REFUSALS:
            self._faster = None
        elif faster is None or look.rate > COMPARED_RATE * faster.rate:
            self._faster = look if faster is None or look.rate >= faster.rate else faster
        else:
            # A limit of the rate accepts the same number of requests, so a larger share.
            expected = min(1.0, faster.share * faster.rate / look.rate)
            self._faster = look
            if look.share < (faster.share + expected) / 2:
                self._random_share, self._faster = look.share, None
                self.rate, self._learnt_rate = faster.rate, math.inf

    def _count_accepted(self, now: float) -> None:
        """Count an accepted request."""
        if not self._first_accepted:
            self._first_accepted = now
        decay = math.exp((self._last_accepted - now) / MEMORY)
        self._goodput = self._goodput * decay + 1.0 / MEMORY
        self._last_accepted = now

    def _current_goodput(self, now: float) -> float:
        """Return the accepted requests per second of the last seconds."""
        if not self._first_accepted:
            return 0.0
        observed_share = 1.0 - math.exp((self._first_accepted - now) / MEMORY)
        return (
            self._goodput
            * math.exp((self._last_accepted - now) / MEMORY)
            / max(observed_share, 0.2)
        )


class WaitingRequest(NamedTuple):
    """A request in line."""

    place: int
    """The order of the line: the number of its first attempt."""
    due: float
    """The earliest time at which it may be sent."""
    turn: asyncio.Future[SentRequest | None]


class RateLimitQueue:
    """The requests that wait because of a rate limit, the oldest first."""

    def __init__(
        self, limit: EndpointRateLimit, give_up_after: float, give_up: Callable[[], None]
    ) -> None:
        """Create a line. `give_up` is called if the endpoint refuses for `give_up_after` seconds.

        It is called again while the refusals last.
        """
        self.limit = limit
        self._give_up_after = give_up_after
        self._give_up = give_up
        self._waiters: list[WaitingRequest] = []
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._waiters)

    async def wait_turn(self, place: int, due: float) -> SentRequest | None:
        """Wait until a request may be sent. Return None where its owner must check the endpoint
        again.

        A returned request must be passed to `mark_sent` or `note_lost`.
        """
        waiter = WaitingRequest(place, due, asyncio.get_running_loop().create_future())
        insort(self._waiters, waiter, key=lambda queued: queued.place)
        self._send_due()
        try:
            return await waiter.turn
        except asyncio.CancelledError:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
            elif not waiter.turn.cancelled() and (sent := waiter.turn.result()) is not None:
                self.note_lost(sent)
            raise

    def wake(self) -> None:
        """Let every request that waits check the endpoint again."""
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.turn.done():
                waiter.turn.set_result(None)

    def mark_sent(self, sent: SentRequest) -> SentRequest:
        """Note that a request leaves now."""
        sent.at = monotonic()
        if self.limit.is_active:
            loop = asyncio.get_running_loop()
            sent.timer = loop.call_later(self.limit.patience, self.note_accepted, sent)
        return sent

    def note_accepted(self, sent: SentRequest) -> None:
        """Note that a request was not refused."""
        self._settle(sent)
        self.limit.note_accepted(sent, monotonic())
        if self._waiters:
            self._send_due()

    def note_refusal(self, sent: SentRequest, requested_wait: float | None, failures: int) -> float:
        """Note a refusal. Return how long its request waits."""
        self._settle(sent)
        wait = self.limit.note_refusal(sent, requested_wait, failures, monotonic())
        self._send_due()
        return wait

    def note_lost(self, sent: SentRequest) -> None:
        """Note that a request ended without any information about the limit."""
        self._settle(sent)
        self.limit.note_lost(sent, monotonic())
        if self._waiters:
            self._send_due()

    def close(self) -> None:
        """Cancel the timer."""
        if self._timer is not None:
            self._timer.cancel()

    def _settle(self, sent: SentRequest) -> None:
        if sent.timer is not None:
            sent.timer.cancel()
            sent.timer = None

    def _send_due(self) -> None:
        """Send every request that may be sent now. Set a timer for the next one."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        limit, now = self.limit, monotonic()
        patience = self._patience_left(now)
        if patience <= 0:
            self._give_up()
            patience = self._give_up_after
        while self._waiters:
            wait = limit.delay_seconds(now)
            if wait <= 0 and (ready := self._first_due(now)) is not None:
                self._waiters.remove(ready)
                if not ready.turn.done():
                    ready.turn.set_result(limit.send(now))
                continue
            if wait <= 0:
                wait = min(waiter.due for waiter in self._waiters) - now
            wait = max(0.001, min(wait, patience))
            self._timer = asyncio.get_running_loop().call_later(wait, self._send_due)
            return

    def _first_due(self, now: float) -> WaitingRequest | None:
        return next((waiter for waiter in self._waiters if waiter.due <= now), None)

    def _patience_left(self, now: float) -> float:
        """Return the seconds after which Keju gives up."""
        since = self.limit.since
        return self._give_up_after if since is None else since + self._give_up_after - now
