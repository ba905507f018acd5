"""Everything that the runs of a matrix share: slots and rates of endpoints, and one budget.

Each run works in its own thread, with its own channels and counts. A `SharedSlots` counts the slots
of one endpoint over all runs. A `SharedBudget` counts the money of all runs. Earlier runs have
precedence. A later run gets only the slots that the end of an earlier one leaves free.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

from keju.config import Budget
from keju.engine.limits import ConcurrencyLimit, RateLimits, SpentAmounts
from keju.errors import EndpointError, KejuError, RunIncomplete
from keju.scores.usage import ROUNDING

if TYPE_CHECKING:
    from keju.engine.limits import SpendingMeter


class SharedSlots:
    """The slots of one endpoint. Its current limit covers all runs."""

    def __init__(self, slots: int, rates: RateLimits) -> None:
        self.concurrency = ConcurrencyLimit(slots)
        self.rates = rates
        """Requests and tokens per minute, over all runs."""
        self._lock = threading.Lock()
        self._in_use: Counter[str] = Counter()
        self._waiting: dict[SlotClaim, Callable[[], None]] = {}

    def take(self, claim: SlotClaim, wake: Callable[[], None]) -> bool:
        """Take a slot if one is free and no other run has precedence. Otherwise call `wake` when to
        try again."""
        with self._lock:
            has_free_slot = self._in_use.total() < self.concurrency.limit
            if (
                has_free_slot
                and self._in_use[claim.owner] < claim.slots
                and not self._has_precedence(claim)
            ):
                self._in_use[claim.owner] += 1
                return True
            self._waiting[claim] = wake
            return False

    def force(self, claim: SlotClaim) -> None:
        """Take a slot, free or not, because its holder is about to give it back."""
        with self._lock:
            self._in_use[claim.owner] += 1

    def release(self, claim: SlotClaim) -> None:
        """Give a slot back and wake the waiters with precedence."""
        with self._lock:
            self._in_use[claim.owner] -= 1
        self._wake()

    def stop_waiting(self, claim: SlotClaim) -> None:
        """Stop waiting for a slot."""
        with self._lock:
            if self._waiting.pop(claim, None) is None:
                return
        self._wake()

    def may_stay(self, claim: SlotClaim) -> bool:
        """Whether a slot may be used once more."""
        with self._lock:
            return self._in_use.total() <= self.concurrency.limit and not self._has_precedence(
                claim
            )

    def _has_precedence(self, claim: SlotClaim) -> bool:
        return any(
            waiter.rank < claim.rank and self._in_use[waiter.owner] < waiter.slots
            for waiter in self._waiting
            if waiter is not claim
        )

    def _wake(self) -> None:
        with self._lock:
            callbacks = [
                self._waiting[waiter] for waiter in sorted(self._waiting, key=lambda w: w.rank)
            ]
        for callback in callbacks[:2]:  # the limit of its model may hold the first back
            callback()


class SlotClaim:
    """The access of one channel to shared slots."""

    def __init__(self, shared: SharedSlots, rank: int, owner: str, slots: int) -> None:
        """Create a claim. `owner` is the model, which has `slots` slots over all its runs."""
        self.shared, self.rank, self.owner, self.slots = shared, rank, owner, slots

    @property
    def concurrency(self) -> ConcurrencyLimit:
        """The current limit."""
        return self.shared.concurrency

    @property
    def may_stay(self) -> bool:
        """Whether the holder of a slot may keep it."""
        return self.shared.may_stay(self)

    def take(self, on_free: Callable[[], None]) -> bool:
        """Take a slot. If there is none, call `on_free` on this loop when there may be one."""
        loop = asyncio.get_running_loop()

        def wake() -> None:
            with suppress(RuntimeError):  # the run is over, and its loop closed
                loop.call_soon_threadsafe(on_free)

        return self.shared.take(self, wake)

    def force(self) -> None:
        """Take a slot, free or not."""
        self.shared.force(self)

    def release(self) -> None:
        """Give a slot back."""
        self.shared.release(self)

    def stop_waiting(self) -> None:
        """Stop waiting for a slot."""
        self.shared.stop_waiting(self)


class CombinedRateLimits(RateLimits):
    """Several rates at once. Each of them holds requests back."""

    def __init__(self, parts: Iterable[RateLimits]) -> None:
        super().__init__()
        self._parts = [part for part in parts if part.limited]
        self.limited = bool(self._parts)

    def wait(self, tokens: float, now: float) -> float:
        """Return the seconds until all of them allow one request."""
        return max((part.wait(tokens, now) for part in self._parts), default=0.0)

    def count_request(self) -> None:
        """Count a request."""
        for part in self._parts:
            part.count_request()

    def count_tokens(self, tokens: int) -> None:
        """Count the tokens of a reply."""
        for part in self._parts:
            part.count_tokens(tokens)


class SharedBudget:
    """A budget over several runs, each of which counts its own spending.

    As with the budget of one run, a request is allowed only if the budget certainly pays for it and
    for all requests in flight. Each counts as much as the most expensive reply of its run so far.
    """

    def __init__(
        self,
        budget: Budget,
        earlier: Mapping[str, SpentAmounts],
        seconds: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """Create a budget. `earlier` is the spending of earlier sessions, by run. `seconds` returns
        the time so far."""
        self.budget = budget
        self._seconds = seconds
        self._earlier = dict(earlier)
        self._sent_count = sum(amounts.requests for amounts in earlier.values())
        self._run_spending: dict[str, SpendingMeter] = {}
        self._requests_in_flight: Counter[str] = Counter()
        self._lock = threading.Lock()

    @property
    def limited(self) -> bool:
        """Whether there is any budget."""
        return self.budget != Budget()

    def open(self, run: str, spending: SpendingMeter) -> RunBudget:
        """Use `spending` from now on as the amounts of a run, including its earlier sessions."""
        with self._lock:
            earlier_amounts = self._earlier.get(run, SpentAmounts())
            self._sent_count += spending.amounts.requests - earlier_amounts.requests
            self._run_spending[run] = spending
            self._requests_in_flight[run] = 0
        return RunBudget(self, run)

    def total_spent(self) -> SpentAmounts:
        """Return the amounts that all runs have spent together."""
        run_amounts = {run: books.amounts for run, books in list(self._run_spending.items())}
        columns = zip(*(self._earlier | run_amounts).values(), strict=True)
        requests, tokens, cost = [sum(column) for column in columns] or [0, 0, 0.0]
        return SpentAmounts(int(requests), int(tokens), cost)

    def claim(self, run: str) -> KejuError | None:
        """Claim one request for a run, which is then in flight. Return an error if it is not paid
        for."""
        with self._lock:
            refusal = self._find_refusal(run)
            if refusal is None:
                self._requests_in_flight[run] += 1
                self._sent_count += 1
            return refusal

    def finish_request(self, run: str) -> None:
        """Note that a request of a run has ended."""
        with self._lock:
            self._requests_in_flight[run] -= 1

    def refund_request(self) -> None:
        """Give back the claim of a request that did not reach the endpoint."""
        with self._lock:
            self._sent_count -= 1

    @property
    def in_flight(self) -> bool:
        """Whether requests are in flight, whose replies may still change a refusal."""
        return self._requests_in_flight.total() > 0

    def exhausted(self) -> KejuError | None:
        """Return an error if not even one more request is paid for, or None while that is not
        certain."""
        totals = self.total_spent()._replace(requests=self._sent_count)
        amounts = {**totals._asdict(), "seconds": self._seconds()}
        for name, amount in amounts.items():
            limit = getattr(self.budget, name)
            if limit and amount >= limit:
                return _budget_error(name, limit, amount, 0.0)
        return None

    def _find_refusal(self, run: str) -> KejuError | None:
        """Return the same for one request of a run that was opened."""
        if (error := self.exhausted()) is not None:
            return error
        totals, in_flight = self.total_spent(), self._requests_in_flight + Counter({run: 1})
        for name in ("tokens", "cost"):
            limit, amount = getattr(self.budget, name), getattr(totals, name)
            if not limit:
                continue
            meters = list(self._run_spending.items())
            prices = {flying: meter.highest[name] for flying, meter in meters if in_flight[flying]}
            expected = amount + sum(prices.get(flying, 0.0) * n for flying, n in in_flight.items())
            if expected > limit * ROUNDING:
                return _budget_error(name, limit, amount, prices.get(run, 0.0))
            is_unknown = not self._run_spending[run].highest["tokens"]
            if is_unknown and self._run_spending[run].replies:
                return EndpointError("budget_without_usage", budget=name)
            if is_unknown and self._requests_in_flight[run]:
                return _budget_error(name, limit, amount, 0.0)
        return None


def _budget_error(name: str, limit: float, spent_amount: float, per_request: float) -> KejuError:
    problem = RunIncomplete(f"budget_of_{name}", most=limit, spent=spent_amount, each=per_request)
    return RunIncomplete("plan_budget", problem=problem)


class RunBudget(NamedTuple):
    """A shared budget as one run sees it."""

    shared_budget: SharedBudget
    run: str

    def claim(self) -> KejuError | None:
        """Claim one request. Return an error if it is not paid for."""
        return self.shared_budget.claim(self.run)

    def finish_request(self) -> None:
        """Note that a request has ended."""
        self.shared_budget.finish_request(self.run)

    def refund_request(self) -> None:
        """Give back the claim of a request that did not reach the endpoint."""
        self.shared_budget.refund_request()


class RunSharing(NamedTuple):
    """Everything that one run shares with the others of its matrix."""

    run: str
    rank: int
    """A smaller rank has precedence."""
    model: str
    gates: Mapping[str, SharedSlots]
    """By the address of the endpoint."""
    rates: RateLimits
    """The rates of the model over all its runs."""
    shared_budget: SharedBudget | None = None
    make_rule: Callable[..., Any] | None = None
    """Makes the rule that stops all runs together; its arguments are those of
    `keju.results.stopping_rule.make_rule`, without the configuration."""

    def claim(self, address: str, model: str, slots: int) -> SlotClaim | None:
        """Return the access to an endpoint, or None where no other run of the matrix uses it."""
        gate = self.gates.get(address)
        return None if gate is None else SlotClaim(gate, self.rank, model, slots)

    def find_rates(self, address: str, model: str) -> RateLimits | None:
        """Return the rates of an endpoint and of the model there, or None where the channel has its
        own."""
        gate = self.gates.get(address)
        if gate is None:
            return None
        return CombinedRateLimits([gate.rates, self.rates] if model == self.model else [gate.rates])


SHARE: ContextVar[RunSharing | None] = ContextVar("keju_share", default=None)
"""The resources that the run of this context shares with others."""
