"""What holds requests back: how many at once, how many a minute, whether anybody is there, and what
the user's budget still pays for. The books on requests and tokens are here too.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from keju.config import Budget, Endpoint, Price, TaskConfig
from keju.errors import EndpointError, KejuError, RunIncomplete
from keju.models.base import Model
from keju.types import Fault, Reply, Usage

if TYPE_CHECKING:
    from keju.engine.sharing import Account


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
        limits = cls(
            concurrency=most,
            timeout=config.timeout,
            attempts=config.attempts,
            give_up_after=config.give_up_after,
            retry_interval=config.retry_interval,
            rpm=config.rpm,
            tpm=config.tpm,
        )
        return limits.within(config.endpoints[0]) if len(config.endpoints) == 1 else limits

    def within(self, endpoint: Endpoint) -> Limits:
        """The same, and those that an endpoint has of its own."""
        own = (self.rpm, endpoint.rpm), (self.tpm, endpoint.tpm)
        rpm, tpm = (min(filter(None, pair), default=None) for pair in own)
        most = endpoint.concurrency or self.concurrency
        return replace(self, concurrency=most, rpm=rpm, tpm=tpm)


class Concurrency:
    """How many requests may be in flight: grows by adding, shrinks by a share of overloads.

    After each window of replies the share that was refused for overload, or stalled, shrinks the
    limit; a clean window lets it grow by a tenth, and by at least one.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.limit = most
        self._replies = 0
        self._overloads = 0

    def saw(self, *, overload: bool) -> bool:
        """Count one reply; return whether the limit has grown."""
        self._replies += 1
        self._overloads += overload
        if self._replies < max(8, self.limit):
            return False
        share = self._overloads / self._replies
        before = self.limit
        # All of 64 overloaded: 20; half of them: 42; none of them: 70, or `most`.
        target = before * (1 - 0.7 * share) + max(1.0, 0.1 * before * (share == 0))
        self.limit = max(1, min(self.most, int(target)))
        self._replies = self._overloads = 0
        return self.limit > before


class Rate:
    """A bucket that refills by `per_minute` and may not be drawn below zero."""

    def __init__(self, per_minute: float, *, burst: float) -> None:
        self._per_second = per_minute / 60
        self._most = burst
        self._level = burst
        self._at: float | None = None

    def wait(self, amount: float, now: float) -> float:
        """Seconds until `amount` may be drawn."""
        if self._at is not None:
            self._level = min(self._most, self._level + (now - self._at) * self._per_second)
        self._at = now
        needed = min(amount, self._most)
        return max(0.0, (needed - self._level) / self._per_second)

    def draw(self, amount: float) -> None:
        """Take `amount`, going into debt if more was used than foreseen."""
        self._level -= amount


class Rates:
    """How many requests and tokens a minute may be sent; each may be unlimited."""

    def __init__(self, rpm: float | None = None, tpm: float | None = None) -> None:
        self._requests = Rate(rpm, burst=max(1.0, rpm / 60)) if rpm else None
        self._tokens = Rate(tpm, burst=tpm / 6) if tpm else None
        self.limited = bool(rpm or tpm)

    def wait(self, tokens: float, now: float) -> float:
        """Seconds until one request may be sent, when `tokens` are expected to be used."""
        wait = self._tokens.wait(tokens, now) if self._tokens is not None else 0.0
        return max(wait, self._requests.wait(1, now)) if self._requests is not None else wait

    def send(self) -> None:
        """Count a request."""
        if self._requests is not None:
            self._requests.draw(1)

    def use(self, tokens: int) -> None:
        """Count the tokens of a reply."""
        if self._tokens is not None:
            self._tokens.draw(tokens)


class Pace:
    """How long replies take at present: a mean in which each weighs less than the one after it."""

    def __init__(self) -> None:
        self.seconds: float | None = None
        self.longest = 0.0
        self.total = 0.0
        self._seen = 0

    def saw(self, seconds: float, at_once: int) -> None:
        """Note one reply, where `at_once` requests are in flight; about two rounds are recalled."""
        self._seen += 1
        self.total += seconds
        self.longest = max(self.longest, seconds)
        weight = max(1 / self._seen, 1 / (2.0 * at_once))
        self.seconds = (
            seconds if self.seconds is None else (self.seconds + weight * (seconds - self.seconds))
        )


class Breaker:
    """Opens when an endpoint is down, so that the run pauses instead of failing its samples."""

    def __init__(self, give_up_after: float, *, threshold: int = 8) -> None:
        self.give_up_after = give_up_after
        self._threshold = threshold
        self._failures = 0
        self.since: float | None = None
        """When the endpoint was first seen down; None while it works."""

    def failed(self, now: float) -> bool:
        """Count an attempt that found nobody there; return whether that opened the breaker."""
        self._failures += 1
        return self._failures >= self._threshold and self.open(now)

    def open(self, now: float) -> bool:
        """Open it; return whether it was closed."""
        if self.since is not None:
            return False
        self.since = now
        return True

    def worked(self) -> None:
        """Somebody answered."""
        self._failures = 0
        self.since = None


COUNTED = ("input", "output", "cached", "written")
"""The counts of tokens that money depends on."""
ROUNDING = 1 + 1e-9
"""Ten times 0.1 is a budget of 1."""


class Meter:
    """Requests and tokens, added up."""

    def __init__(self) -> None:
        self.requests = 0
        """Requests that were sent, failed ones included."""
        self.replies = 0
        self.input = 0
        self.output = 0
        self.cached = 0
        self.reasoning = 0
        self.written = 0

    def add(self, usage: Usage, replies: int = 1) -> None:
        """Count the tokens of one reply, or of several."""
        self.replies += replies
        self.input += usage.input
        self.output += usage.output
        self.cached += usage.cached
        self.reasoning += usage.reasoning
        self.written += usage.written

    def count(self, reply: Reply, faults: Sequence[Fault]) -> None:
        """Count one record: its reply, and the attempts that failed before it."""
        self.add(reply.usage, reply.requests)
        self.requests += reply.requests + (sum(fault.sent for fault in faults) if faults else 0)

    def include(self, other: Meter) -> None:
        """Add all that another meter has counted."""
        for name, value in vars(other).items():
            if isinstance(value, int):
                setattr(self, name, getattr(self, name) + value)

    def raise_to(self, **least: int) -> None:
        """Let counts be no less than these."""
        for name, value in least.items():
            setattr(self, name, max(value, getattr(self, name)))

    @property
    def tokens(self) -> int:
        """Input and output tokens."""
        return self.input + self.output

    @property
    def usage(self) -> Usage:
        """The tokens as those of one reply."""
        return Usage(self.input, self.output, self.cached, self.reasoning, self.written)

    def cost(self, price: Price | None) -> float | None:
        """Money, where a price is known."""
        return None if price is None else cost_of(self, price)


def cost_of(tokens: Usage | Meter, price: Price) -> float:
    """Money for so many tokens; what a cache gave or kept is a part of the input."""
    cached = price.cached if price.cached is not None else price.input
    written = price.written if price.written is not None else price.input
    plain = tokens.input - tokens.cached - tokens.written
    money = plain * price.input + tokens.cached * cached + tokens.written * written
    return (money + tokens.output * price.output) / 1e6


class Ledger:
    """Tokens by unit, so that what two arms take can be compared question by question."""

    def __init__(self, units: int) -> None:
        self._units = units
        self._counts: dict[str, array[int] | array[float]] = {}
        """By name, where any reply took some: whole numbers, or floats where one is too large."""

    def enter(self, unit: int, usage: Usage) -> None:
        """Note what a unit's reply took; a later reply of it replaces that."""
        for name in COUNTED:
            taken, counts = getattr(usage, name), self._counts.get(name)
            if counts is None:
                if not taken:
                    continue
                counts = self._counts[name] = array("I", bytes(4 * self._units))
            try:
                counts[unit] = taken
            except OverflowError:
                self._counts[name] = larger = array("d", counts)
                larger[unit] = taken

    def tokens(self, unit: int) -> float:
        """Input and output tokens."""
        return self.of(unit, "input") + self.of(unit, "output")

    def of(self, unit: int, name: str) -> float:
        """One of the `COUNTED`."""
        counts = self._counts.get(name)
        return float(counts[unit]) if counts is not None else 0.0

    def cost(self, unit: int, price: Price) -> float:
        """Money."""
        return cost_of(Usage(**{name: int(self.of(unit, name)) for name in COUNTED}), price)


class Amounts(NamedTuple):
    """What was spent."""

    requests: int = 0
    tokens: int = 0
    cost: float = 0.0


class Spending(Meter):
    """What the session has spent, and whether the user's budget surely pays for one request more.

    A budget covers all sessions of a run: `already` holds what earlier ones spent. Whatever is in
    flight, and the next request, are expected to take as much as the dearest reply so far; until
    the first reply has told what one takes, requests go one at a time. So a budget is overspent
    only by what replies in flight take beyond the dearest one before them.
    """

    def __init__(
        self,
        budget: Budget,
        price: Price | None,
        already: Meter | None = None,
        seconds: float = 0.0,
    ) -> None:
        """`already` and `seconds` are what earlier sessions took."""
        super().__init__()
        self._seconds = seconds
        self.price = price
        self._budget = budget
        self._already = already = already or Meter()
        self.account: Account | None = None
        """What pays beside the run's own budget, where it is one of several."""
        earlier = max(1, already.requests)  # of earlier replies only the mean is known
        self.dearest = {
            "tokens": already.tokens / earlier,
            "cost": (already.cost(price) or 0.0) / earlier,
        }

    def add(self, usage: Usage, replies: int = 1) -> None:
        """Count the tokens of one reply."""
        super().add(usage, replies)
        dearest = self.dearest
        dearest["tokens"] = max(dearest["tokens"], usage.input + usage.output)
        if self.price is not None:
            dearest["cost"] = max(dearest["cost"], cost_of(usage, self.price))

    @property
    def limited(self) -> bool:
        """Whether the user set any budget."""
        return self._budget != Budget() or self.account is not None

    @property
    def amounts(self) -> Amounts:
        """What all sessions of the run spent."""
        already, cost = self._already, self.cost(self.price) or 0.0
        requests, tokens = already.requests + self.requests, already.tokens + self.tokens
        return Amounts(requests, tokens, (already.cost(self.price) or 0.0) + cost)

    def claim(self) -> KejuError | None:
        """Let one request be sent; say why not where a budget over several runs does not pay."""
        return None if self.account is None else self.account.claim()

    def landed(self) -> None:
        """A request is over."""
        if self.account is not None:
            self.account.landed()

    def unsent(self) -> None:
        """The request that is over reached nobody, and costs nothing."""
        self.requests -= 1
        if self.account is not None:
            self.account.unsent()

    @property
    def room(self) -> int | None:
        """Requests that the budget still pays for; None where it does not count them."""
        most = self._budget.requests
        return None if most is None else most - self._already.requests - self.requests

    def average_tokens(self) -> float:
        """Tokens of a reply so far; 0 before the first one."""
        return self.tokens / self.replies if self.replies else 0.0

    def exhausted(self, in_flight: int, seconds: float) -> KejuError | None:
        """Why a budget does not surely pay for a further request; None if all do.

        Where requests are in flight, their replies may change that.
        """
        amounts = self.amounts
        spent = {
            "requests": amounts.requests,
            "seconds": self._seconds + seconds,
            "tokens": amounts.tokens,
            "cost": amounts.cost,
        }
        for name, amount in spent.items():
            most = getattr(self._budget, name)
            if not most or (name == "cost" and self.price is None):
                continue
            each = self.dearest.get(name, 0.0)
            unknown = name in self.dearest and not self.dearest["tokens"]
            if unknown and self.replies:
                return EndpointError("budget_without_usage", budget=name)
            expected = amount + each * (in_flight + 1)
            if amount >= most or expected > most * ROUNDING or (unknown and in_flight):
                return RunIncomplete(f"budget_of_{name}", most=most, spent=amount, each=each)
        return None
