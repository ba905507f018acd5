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
SLOWEST, PER_WAIT = 0.8, 3.0
"""While some requests are accepted, at least so many are sent: a second, or in the time that the
endpoint asks to wait. Where it refuses at random, a slower rate would not help."""
MANY, FORGIVEN = 3, 0.8
"""Refusals after which a free rate is limited; with each accepted request the earlier ones count
less by this factor. So a few refusals at random do not slow a run down."""
FASTEST = 1000.0
"""Requests a second from which on nothing is held back."""
FAST_GROWTH, SLOW_GROWTH = 0.5, 0.0003
"""Growth of the rate with each accepted request. Below the rate learnt from refusals it is the
first number; above, it is the second one times the accepted requests since the last refusal."""
CUT, MUCH_TOO_FAST = 0.95, 2.0
"""Factor of the rate after a refusal. A rate that is more than so many times that of accepted
requests is divided by that number."""
MEMORY = 5.0
"""Seconds over which accepted requests are averaged."""
SHORTEST_WAIT, LONGEST_WAIT = 0.001, 5.0
"""Seconds between two attempts at a request where the endpoint does not say how long to wait."""
LONGEST_PROBE_WAIT = 60.0
"""Seconds between two probes in a storm that lasts long, see `STORM_SHARE`."""
STORM_SHARE = 0.05
"""The wait between two requests of a long storm, as a share of its duration."""
FIRST_LOOK = 8.0
"""Requests a second until the first look at what became of them."""
LOOK, SLOWER, FEW = 24, 0.55, 0.97
"""After so many outcomes the share of accepted requests is compared with that at a rate of which
the present one is at most the second number. If it did not grow, refusals come at random, and a
slower rate does not help. A share above the third number is not compared."""
CATCH_UP = 0.05
"""Seconds by which a late timer may be caught up."""
SHORTEST_PATIENCE, PATIENCE = 0.2, 4.0
"""A request that has no refusal after so many seconds, and so many times longer than refusals
take, counts as accepted. A reply of a slow model takes minutes, a refusal does not."""


class Sent:
    """One request on its way."""

    __slots__ = ("at", "is_probe", "is_settled", "timer")

    def __init__(self, at: float = 0.0, *, is_probe: bool = False) -> None:
        self.at = at
        """When it was sent."""
        self.is_probe = is_probe
        self.is_settled = False
        self.timer: asyncio.TimerHandle | None = None


class Look(NamedTuple):
    """What became of some requests."""

    rate: float
    """Requests a second."""
    share: float
    """The share that was accepted."""


class RateLimit:
    """The rate that an endpoint allows, as far as it is known."""

    def __init__(self, retry_interval: float, chance: random.Random) -> None:
        """`retry_interval` is the first wait where the endpoint does not say how long to wait."""
        self.rate = math.inf
        """Requests a second that may be sent."""
        self.is_closed = False
        self.since: float | None = None
        """When the refusals began that no accepted request has followed."""
        self.patience = SHORTEST_PATIENCE
        """Seconds after which a request without a refusal counts as accepted."""
        self._retry_interval = max(SHORTEST_WAIT, retry_interval)
        self._chance = chance
        self._learnt_rate = math.inf
        self._slowest = SLOWEST
        self._refusals = 0
        self._accepted = 0
        self._recent_refusals = 0.0
        self._probes = 0
        self._probe: Sent | None = None
        self._next = 0.0
        self._slowest_refusal = 0.0
        self._outcomes = [0, 0]
        """Requests that were refused and accepted since the last look."""
        self._looked_at = 0.0
        self._faster: Look | None = None
        self._was_closed = False
        """Whether a storm has shown, since the rate was last free, that the rate is limited."""
        self._usual_share: float | None = None
        """The share of accepted requests where refusals come at random."""
        self._goodput = 0.0
        self._first_accepted = self._last_accepted = 0.0

    @property
    def is_active(self) -> bool:
        """Whether requests are held back."""
        return self.rate != math.inf

    def wait(self, asked: float | None, failures: int) -> float:
        """Return the seconds until a refused request may be sent again.

        `asked` is what the endpoint asks for. Zero and no value mean an exponential wait.
        """
        own = min(LONGEST_WAIT, self._retry_interval * 2.0 ** min(failures - 1, 30))
        if asked is not None and asked >= self._retry_interval:
            return asked * self._chance.uniform(1.0, 1.25)
        return max(asked or 0.0, own * self._chance.uniform(0.5, 1.0))

    def delay(self, now: float) -> float:
        """Return the seconds until the next request may be sent; infinite while a probe is out."""
        if not self.is_active:
            return 0.0
        if self.is_closed and self._probe is not None:
            return math.inf
        return max(0.0, self._next - now)

    def send(self, now: float) -> Sent:
        """Note that a request is sent."""
        sent = Sent(now, is_probe=self.is_closed)
        if self.is_closed:
            self._probe = sent
        elif self.is_active:
            self._next = max(self._next, now - CATCH_UP) + 1.0 / self.rate
        return sent

    def refused(self, sent: Sent, asked: float | None, failures: int, now: float) -> float:
        """Slow down after a refusal; return how long its request waits.

        `failures` is how often that request was refused in a row.
        """
        self._slowest_refusal = max(0.9 * self._slowest_refusal, now - sent.at)
        self.patience = max(SHORTEST_PATIENCE, PATIENCE * self._slowest_refusal)
        if self.since is None:
            self.since = now
        self._refusals += 1
        self._slowest = PER_WAIT / asked if asked else SLOWEST
        self._look(now, accepted=False)
        if self.is_closed:
            if sent is self._probe:
                self._retry_probe(asked, now)
        elif self._is_too_fast():
            self._slow_down(now)
        elif self._refusals >= STORM:
            self.is_closed = self._was_closed = True
            self._probes = 0
            self._retry_probe(asked, now)
        return self.wait(asked, failures)

    def accepted(self, sent: Sent, now: float) -> None:
        """Speed up after a request that was not refused."""
        if sent.is_settled:
            return
        sent.is_settled = True
        self._recent_refusals *= FORGIVEN
        self._count(now)
        self._look(now, accepted=True)
        if not self.is_active or (self.since is not None and sent.at < self.since):
            return  # it was sent before the refusals began
        self._refusals, self.since = 0, None
        if self.is_closed:
            self.is_closed, self._probe = False, None
            self._goodput, self._first_accepted = 0.0, now
            self.rate = max(self._slowest, min(self.rate, self._learnt_rate))
            self._next = sent.at + 1.0 / self.rate
            self._outcomes, self._looked_at = [0, 0], now
            return
        self._accepted += 1
        is_low = self.rate < self._learnt_rate
        self.rate *= 1 + (FAST_GROWTH if is_low else SLOW_GROWTH * self._accepted)
        if self.rate >= FASTEST:
            self.rate = self._learnt_rate = math.inf
            self._was_closed = False

    def lost(self, sent: Sent, now: float) -> None:
        """Note that a request came to no end that says anything about the limit."""
        sent.is_settled = True
        if sent is self._probe:
            self._retry_probe(None, now)

    def _retry_probe(self, asked: float | None, now: float) -> None:
        """Let the next probe be sent after a wait."""
        self._probe = None
        self._probes += 1
        wait = self.wait(asked, self._probes)
        if not asked and wait >= LONGEST_WAIT / 2 and self.since is not None:
            wait = max(wait, min(LONGEST_PROBE_WAIT, STORM_SHARE * (now - self.since)))
        self._next = now + wait

    def _is_too_fast(self) -> bool:
        """Whether a refusal lowers the rate: the first in a row, or many after a free time."""
        self._recent_refusals += 1
        return self._refusals == 1 if self.is_active else self._recent_refusals >= MANY

    def _slow_down(self, now: float) -> None:
        """Lower the rate after the first refusal that follows an accepted request."""
        if self._usual_share is not None:
            return
        self._accepted = 0
        goodput = self._current_goodput(now)
        if not self.is_active:
            self.rate, self._next = goodput, now
            self._looked_at = now
        else:
            is_near = self.rate <= MUCH_TOO_FAST * goodput
            self.rate = CUT * self.rate if is_near else max(goodput, self.rate / MUCH_TOO_FAST)
            self._learnt_rate = self.rate
        # Each look compares with one at a rate that is at most twice as high.
        looked = FIRST_LOOK if self._faster is None else self._faster.rate / MUCH_TOO_FAST
        self.rate = max(self._slowest, self.rate, 0.0 if self._was_closed else looked)

    def _look(self, now: float, *, accepted: bool) -> None:
        """Count an outcome; find out from time to time whether a slower rate helps."""
        if self.is_closed or (accepted and not self.is_active and self._usual_share is None):
            return
        self._outcomes[accepted] += 1
        total = sum(self._outcomes)
        if total < LOOK:
            return
        seconds = max(now - self._looked_at, 1e-6)
        look = Look(total / seconds, self._outcomes[True] / total)
        self._outcomes, self._looked_at = [0, 0], now
        if self._usual_share is not None:
            if look.share < self._usual_share / 2 or look.share >= FEW:
                self._usual_share = None
            return
        faster = self._faster
        if look.share >= FEW:
            self._faster = None
        elif faster is None or look.rate > SLOWER * faster.rate:
            self._faster = look if faster is None or look.rate >= faster.rate else faster
        else:
            # A limit of the rate accepts the same number of requests, so a larger share.
            expected = min(1.0, faster.share * faster.rate / look.rate)
            self._faster = look
            if look.share < (faster.share + expected) / 2:
                self._usual_share, self._faster = look.share, None
                self.rate, self._learnt_rate = faster.rate, math.inf

    def _count(self, now: float) -> None:
        """Count an accepted request."""
        if not self._first_accepted:
            self._first_accepted = now
        faded = math.exp((self._last_accepted - now) / MEMORY)
        self._goodput = self._goodput * faded + 1.0 / MEMORY
        self._last_accepted = now

    def _current_goodput(self, now: float) -> float:
        """Return the accepted requests a second of the last seconds."""
        if not self._first_accepted:
            return 0.0
        known = 1.0 - math.exp((self._first_accepted - now) / MEMORY)
        return self._goodput * math.exp((self._last_accepted - now) / MEMORY) / max(known, 0.2)


class Waiter(NamedTuple):
    """A request in line."""

    place: int
    """The order of the line: the number of its first attempt."""
    due: float
    """When it may be sent at the earliest."""
    turn: asyncio.Future[Sent | None]


class RateLimitLine:
    """The requests that wait because of a rate limit, the oldest first."""

    def __init__(self, limit: RateLimit, give_up_after: float, give_up: Callable[[], None]) -> None:
        """`give_up` is called if the endpoint only refuses for more than `give_up_after` seconds.

        It is called again while that lasts.
        """
        self.limit = limit
        self._give_up_after = give_up_after
        self._give_up = give_up
        self._waiters: list[Waiter] = []
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._waiters)

    async def turn(self, place: int, due: float) -> Sent | None:
        """Wait until a request may be sent; None where its owner must look at the endpoint again.

        A request that is returned must be passed to `sent` or `lost`.
        """
        waiter = Waiter(place, due, asyncio.get_running_loop().create_future())
        insort(self._waiters, waiter, key=lambda each: each.place)
        self._look()
        try:
            return await waiter.turn
        except asyncio.CancelledError:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
            elif not waiter.turn.cancelled() and (sent := waiter.turn.result()) is not None:
                self.lost(sent)
            raise

    def wake(self) -> None:
        """Let every request that waits look at the endpoint again."""
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.turn.done():
                waiter.turn.set_result(None)

    def sent(self, sent: Sent) -> Sent:
        """Note that a request leaves now."""
        sent.at = monotonic()
        if self.limit.is_active:
            loop = asyncio.get_running_loop()
            sent.timer = loop.call_later(self.limit.patience, self.accepted, sent)
        return sent

    def accepted(self, sent: Sent) -> None:
        """Note that a request was not refused."""
        self._settle(sent)
        self.limit.accepted(sent, monotonic())
        if self._waiters:
            self._look()

    def refused(self, sent: Sent, asked: float | None, failures: int) -> float:
        """Note a refusal; return how long its request waits."""
        self._settle(sent)
        wait = self.limit.refused(sent, asked, failures, monotonic())
        self._look()
        return wait

    def lost(self, sent: Sent) -> None:
        """Note that a request came to no end that says anything about the limit."""
        self._settle(sent)
        self.limit.lost(sent, monotonic())
        if self._waiters:
            self._look()

    def close(self) -> None:
        """Stop the clock."""
        if self._timer is not None:
            self._timer.cancel()

    def _settle(self, sent: Sent) -> None:
        if sent.timer is not None:
            sent.timer.cancel()
            sent.timer = None

    def _look(self) -> None:
        """Send whatever may be sent now; look again when the next request may be."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        limit, now = self.limit, monotonic()
        patience = self._patience_left(now)
        if patience <= 0:
            self._give_up()
            patience = self._give_up_after
        while self._waiters:
            wait = limit.delay(now)
            if wait <= 0 and (ready := self._first_due(now)) is not None:
                self._waiters.remove(ready)
                if not ready.turn.done():
                    ready.turn.set_result(limit.send(now))
                continue
            if wait <= 0:
                wait = min(waiter.due for waiter in self._waiters) - now
            wait = max(0.001, min(wait, patience))
            self._timer = asyncio.get_running_loop().call_later(wait, self._look)
            return

    def _first_due(self, now: float) -> Waiter | None:
        return next((waiter for waiter in self._waiters if waiter.due <= now), None)

    def _patience_left(self, now: float) -> float:
        """Return the seconds after which Keju gives up."""
        since = self.limit.since
        return self._give_up_after if since is None else since + self._give_up_after - now
