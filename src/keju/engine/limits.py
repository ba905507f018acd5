"""What holds requests back: concurrency, rates, budgets and an endpoint that is down."""

from __future__ import annotations

from collections.abc import Sequence

from keju.config import Budget, Price
from keju.types import Fault, Usage


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
        grown = self.limit * (1 - 0.7 * share) + max(1.0, 0.1 * self.limit * (share == 0))
        self.limit = max(1, min(self.most, int(grown)))
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

    def add(self, usage: Usage) -> None:
        """Count the tokens of one reply."""
        self.replies += 1
        self.input += usage.input
        self.output += usage.output
        self.cached += usage.cached
        self.reasoning += usage.reasoning

    def count(self, usage: Usage, faults: Sequence[Fault]) -> None:
        """Count one record: its reply, and the attempts that failed before it."""
        self.add(usage)
        self.requests += 1 + (sum(fault.sent for fault in faults) if faults else 0)

    def include(self, other: Meter) -> None:
        """Add all that another meter has counted."""
        for name, value in vars(other).items():
            if isinstance(value, int):
                setattr(self, name, getattr(self, name) + value)

    @property
    def tokens(self) -> int:
        """Input and output tokens."""
        return self.input + self.output

    def cost(self, price: Price | None) -> float | None:
        """Money, where a price is known."""
        if price is None:
            return None
        cached = price.cached if price.cached is not None else price.input
        fresh = (self.input - self.cached) * price.input + self.cached * cached
        return (fresh + self.output * price.output) / 1e6


class Spending(Meter):
    """What this sitting has spent, and whether the user's budget allows one request more.

    A budget covers all sittings of a run: `already` holds what earlier ones spent. What is in
    flight counts at the average of what has come back, so that a budget is never overspent by
    more than the requests that were in flight when it was reached.
    """

    def __init__(
        self,
        budget: Budget,
        price: Price | None,
        already: Meter | None = None,
        seconds: float = 0.0,
    ) -> None:
        """`already` and `seconds` are what earlier sittings took."""
        super().__init__()
        self._seconds = seconds
        self.price = price
        self._budget = budget
        self._already = already or Meter()

    @property
    def limited(self) -> bool:
        """Whether the user set any budget."""
        return self._budget != Budget()

    def average_tokens(self) -> float:
        """Tokens of a reply so far; 0 before the first one."""
        return self.tokens / self.replies if self.replies else 0.0

    def exhausted(self, in_flight: int, seconds: float) -> str:
        """Which budget allows no further request, in words; empty if all do."""
        budget, already = self._budget, self._already
        if budget.requests and already.requests + self.requests >= budget.requests:
            return f"the budget of {budget.requests} requests"
        if budget.seconds and self._seconds + seconds >= budget.seconds:
            return f"the budget of {budget.seconds:g} seconds"
        ahead = 1 + in_flight / self.replies if self.replies else 1.0
        if budget.tokens and already.tokens + self.tokens * ahead >= budget.tokens:
            return f"the budget of {budget.tokens} tokens"
        if budget.cost and self.price:
            before, now = already.cost(self.price) or 0.0, self.cost(self.price) or 0.0
            if before + now * ahead >= budget.cost:
                return f"the budget of {budget.cost:g} in cost"
        return ""


class Breaker:
    """Opens when an endpoint is down, so that the run pauses instead of failing its samples."""

    def __init__(self, give_up_after: float, *, threshold: int = 8) -> None:
        self.give_up_after = give_up_after
        self._threshold = threshold
        self._failures = 0
        self.since: float | None = None
        """When the endpoint was first seen down; None while it works."""

    @property
    def open(self) -> bool:
        """Whether requests are held back."""
        return self.since is not None

    def failed(self, now: float) -> bool:
        """Count an attempt that found nobody there; return whether that opened the breaker."""
        self._failures += 1
        if self._failures < self._threshold or self.open:
            return False
        self.since = now
        return True

    def worked(self) -> None:
        """Somebody answered."""
        self._failures = 0
        self.since = None
