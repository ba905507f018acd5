"""Everything that holds requests back: concurrency, rates, the breaker and the user's budget.

The counts of requests and tokens are here too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from keju.config import Budget, Endpoint, Price, TaskConfig
from keju.errors import EndpointError, KejuError, RunIncomplete
from keju.models.base import Model
from keju.scores.usage import ROUNDING, UsageMeter, compute_cost
from keju.types import Usage

if TYPE_CHECKING:
    from keju.engine.run_sharing import RunBudget


@dataclass(frozen=True, kw_only=True)
class ChannelLimits:
    """The limits that the user sets for a channel."""

    concurrency: int
    timeout: float
    attempts: int
    give_up_after: float
    retry_interval: float = 0.5
    rpm: float | None = None
    tpm: float | None = None

    @classmethod
    def of(cls, config: TaskConfig, model: Model) -> ChannelLimits:
        """Return the limits of a task. A local model has as many slots as it can use."""
        slots = config.eval_batch_size
        if model.slots is not None:
            slots = model.slots if model.batches else min(slots, model.slots)
        limits = cls(
            concurrency=slots,
            timeout=config.timeout,
            attempts=config.attempts,
            give_up_after=config.give_up_after,
            retry_interval=config.retry_interval,
            rpm=config.rpm,
            tpm=config.tpm,
        )
        return limits.restrict_to(config.endpoints[0]) if len(config.endpoints) == 1 else limits

    def restrict_to(self, endpoint: Endpoint) -> ChannelLimits:
        """Return these limits combined with an endpoint's limits."""
        rate_pairs = (self.rpm, endpoint.rpm), (self.tpm, endpoint.tpm)
        rpm, tpm = (min(filter(None, pair), default=None) for pair in rate_pairs)
        concurrency = endpoint.concurrency or self.concurrency
        return replace(self, concurrency=concurrency, rpm=rpm, tpm=tpm)


class ConcurrencyLimit:
    """The number of requests that may be in flight. It grows by steps and shrinks with overloads.

    A window of replies shrinks the limit by the share that was refused for overload or stalled. A
    window without any lets it grow by a tenth, and by at least one.
    """

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum
        self.limit = maximum
        self._replies = 0
        self._overloads = 0

    def record_reply(self, *, overload: bool) -> bool:
        """Count one reply. Return whether the limit has grown."""
        self._replies += 1
        self._overloads += overload
        if self._replies < max(8, self.limit):
            return False
        overload_share = self._overloads / self._replies
        old_limit = self.limit
        # Of 64 with all overloaded: 20; half of them: 42; none of them: 70, or `maximum`.
        target = old_limit * (1 - 0.7 * overload_share) + max(
            1.0, 0.1 * old_limit * (overload_share == 0)
        )
        self.limit = max(1, min(self.maximum, int(target)))
        self._replies = self._overloads = 0
        return self.limit > old_limit


class MinuteRate:
    """A bucket that refills by `per_minute` and cannot be drawn below zero in advance."""

    def __init__(self, per_minute: float, *, burst: float) -> None:
        self._per_second = per_minute / 60
        self._capacity = burst
        self._level = burst
        self._refilled_at: float | None = None

    def wait(self, amount: float, now: float) -> float:
        """Return the seconds until `amount` may be drawn."""
        if self._refilled_at is not None:
            self._level = min(
                self._capacity, self._level + (now - self._refilled_at) * self._per_second
            )
        self._refilled_at = now
        required = min(amount, self._capacity)
        return max(0.0, (required - self._level) / self._per_second)

    def draw(self, amount: float) -> None:
        """Take `amount`. The level may become negative if more was used than expected."""
        self._level -= amount


class RateLimits:
    """The requests and tokens per minute that may be sent. Each may be unlimited."""

    def __init__(self, rpm: float | None = None, tpm: float | None = None) -> None:
        self._requests = MinuteRate(rpm, burst=max(1.0, rpm / 60)) if rpm else None
        self._tokens = MinuteRate(tpm, burst=tpm / 6) if tpm else None
        self.limited = bool(rpm or tpm)

    def wait(self, tokens: float, now: float) -> float:
        """Return the seconds until one request may be sent that is expected to use `tokens`."""
        wait = self._tokens.wait(tokens, now) if self._tokens is not None else 0.0
        return max(wait, self._requests.wait(1, now)) if self._requests is not None else wait

    def count_request(self) -> None:
        """Count a request."""
        if self._requests is not None:
            self._requests.draw(1)

    def count_tokens(self, tokens: int) -> None:
        """Count the tokens of a reply."""
        if self._tokens is not None:
            self._tokens.draw(tokens)


class ReplyLatency:
    """How long replies take at present: a mean that gives recent replies more weight."""

    def __init__(self) -> None:
        self.seconds: float | None = None
        self.longest = 0.0
        self.total = 0.0
        self._reply_count = 0

    def record_reply(self, seconds: float, in_flight: int) -> None:
        """Add one reply, while `in_flight` requests are in flight. The mean covers about two
        rounds."""
        self._reply_count += 1
        self.total += seconds
        self.longest = max(self.longest, seconds)
        weight = max(1 / self._reply_count, 1 / (2.0 * in_flight))
        self.seconds = (
            seconds if self.seconds is None else (self.seconds + weight * (seconds - self.seconds))
        )


class CircuitBreaker:
    """Opens when an endpoint is down, so that the run pauses and its samples do not fail."""

    def __init__(self, give_up_after: float, *, threshold: int = 8) -> None:
        self.give_up_after = give_up_after
        self._threshold = threshold
        self._failures = 0
        self.since: float | None = None
        """When the endpoint was first seen down, or None while it works."""

    def record_failure(self, now: float) -> bool:
        """Count an attempt that did not reach the endpoint. Return whether that opened the
        breaker."""
        self._failures += 1
        return self._failures >= self._threshold and self.open(now)

    def open(self, now: float) -> bool:
        """Open the breaker. Return whether it was closed."""
        if self.since is not None:
            return False
        self.since = now
        return True

    def record_success(self) -> None:
        """Close the breaker after a reply."""
        self._failures = 0
        self.since = None


class SpentAmounts(NamedTuple):
    """Amounts that were spent."""

    requests: int = 0
    tokens: int = 0
    cost: float = 0.0


class SpendingMeter(UsageMeter):
    """The spending of a session, and whether the user's budget certainly pays for one more request.

    A budget covers all sessions of a run: `earlier_meter` holds the spending of earlier ones. Each
    request in flight, and the next one, is expected to cost as much as the most expensive reply so
    far. Until the first reply has shown a cost, requests go one at a time. So a budget is overspent
    only if replies in flight cost more than the most expensive one before them.
    """

    def __init__(
        self,
        budget: Budget,
        price: Price | None,
        earlier_meter: UsageMeter | None = None,
        seconds: float = 0.0,
    ) -> None:
        """Create a meter. `earlier_meter` and `seconds` are the spending of earlier sessions."""
        super().__init__()
        self._seconds = seconds
        self.price = price
        self._budget = budget
        self._earlier_meter = earlier_meter = earlier_meter or UsageMeter()
        self.account: RunBudget | None = None
        """The account in a budget over several runs, if there is one."""
        earlier_replies = max(
            1, earlier_meter.requests
        )  # only the mean of earlier replies is known
        self.highest = {
            "tokens": earlier_meter.tokens / earlier_replies,
            "cost": (earlier_meter.cost(price) or 0.0) / earlier_replies,
        }

    def add(self, usage: Usage, replies: int = 1) -> None:
        """Count the tokens of one reply."""
        super().add(usage, replies)
        highest = self.highest
        highest["tokens"] = max(highest["tokens"], usage.input + usage.output)
        if self.price is not None:
            highest["cost"] = max(highest["cost"], compute_cost(usage, self.price))

    @property
    def limited(self) -> bool:
        """Whether the user set any budget."""
        return self._budget != Budget() or self.account is not None

    @property
    def amounts(self) -> SpentAmounts:
        """The amounts that all sessions of the run spent."""
        earlier_meter, cost = self._earlier_meter, self.cost(self.price) or 0.0
        requests, tokens = (
            earlier_meter.requests + self.requests,
            earlier_meter.tokens + self.tokens,
        )
        return SpentAmounts(requests, tokens, (earlier_meter.cost(self.price) or 0.0) + cost)

    def claim(self) -> KejuError | None:
        """Claim one request. Return an error if a budget over several runs does not pay for it."""
        return None if self.account is None else self.account.claim()

    def finish_request(self) -> None:
        """Note that a request has ended."""
        if self.account is not None:
            self.account.finish_request()

    def refund_request(self) -> None:
        """Give back the claim of a request that did not reach the endpoint and costs nothing."""
        self.requests -= 1
        if self.account is not None:
            self.account.refund_request()

    @property
    def remaining_requests(self) -> int | None:
        """The requests that the budget still pays for, or None where it does not count them."""
        limit = self._budget.requests
        return None if limit is None else limit - self._earlier_meter.requests - self.requests

    def average_tokens(self) -> float:
        """Return the mean tokens of a reply so far, or 0 before the first one."""
        return self.tokens / self.replies if self.replies else 0.0

    def _limited_amounts(self, seconds: float) -> Iterator[tuple[str, float, float]]:
        """Yield the name, the spent amount and the limit of each budget."""
        amounts = self.amounts
        spent_amounts = {
            "requests": amounts.requests,
            "seconds": self._seconds + seconds,
            "tokens": amounts.tokens,
            "cost": amounts.cost,
        }
        for name, amount in spent_amounts.items():
            limit = getattr(self._budget, name)
            if limit and (name != "cost" or self.price is not None):
                yield name, amount, limit

    def exhausted(self, in_flight: int, seconds: float) -> KejuError | None:
        """Return an error if a budget does not certainly pay for another request, else None.

        Where requests are in flight, their replies may change that.
        """
        for name, amount, limit in self._limited_amounts(seconds):
            per_request = self.highest.get(name, 0.0)
            is_unknown = name in self.highest and not self.highest["tokens"]
            if is_unknown and self.replies:
                return EndpointError("budget_without_usage", budget=name)
            expected_amount = amount + per_request * (in_flight + 1)
            if amount >= limit or expected_amount > limit * ROUNDING or (is_unknown and in_flight):
                return RunIncomplete(
                    f"budget_of_{name}", most=limit, spent=amount, each=per_request
                )
        return None
