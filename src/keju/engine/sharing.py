"""What the runs of a plan share: the slots and rates of their endpoints, and one budget.

Each run works on a thread of its own, with channels and books of its own. What is here stands
between them: a `Gate` counts the slots of one endpoint over all runs, a `Purse` the money of all.
A run that came earlier goes first, so that a later one gets the slots that the end of the earlier
one leaves free, and no others.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple

from keju.config import Budget
from keju.engine.limits import ROUNDING, Amounts, Concurrency, Rates
from keju.errors import EndpointError, KejuError, RunIncomplete

if TYPE_CHECKING:
    from keju.engine.limits import Spending


class Gate:
    """The slots of one endpoint; its limit of the moment is that of all runs."""

    def __init__(self, most: int, rates: Rates) -> None:
        self.concurrency = Concurrency(most)
        self.rates = rates
        """Requests and tokens a minute, over all runs."""
        self._lock = threading.Lock()
        self._in_use: Counter[str] = Counter()
        self._waiting: dict[Admission, Callable[[], None]] = {}

    def take(self, who: Admission, wake: Callable[[], None]) -> bool:
        """Take a slot if one is free and nobody goes first; else `wake` is called when to try."""
        with self._lock:
            free = self._in_use.total() < self.concurrency.limit
            if free and self._in_use[who.owner] < who.most and not self._goes_first(who):
                self._in_use[who.owner] += 1
                return True
            self._waiting[who] = wake
            return False

    def force(self, who: Admission) -> None:
        """Take a slot, free or not: its holder is about to give it back."""
        with self._lock:
            self._in_use[who.owner] += 1

    def give(self, who: Admission) -> None:
        """Give a slot back; who comes first is told."""
        with self._lock:
            self._in_use[who.owner] -= 1
        self._wake()

    def forget(self, who: Admission) -> None:
        """Nobody waits there any more."""
        with self._lock:
            if self._waiting.pop(who, None) is None:
                return
        self._wake()

    def may_stay(self, who: Admission) -> bool:
        """Whether a slot may be used once more."""
        with self._lock:
            return self._in_use.total() <= self.concurrency.limit and not self._goes_first(who)

    def _goes_first(self, who: Admission) -> bool:
        return any(
            other.rank < who.rank and self._in_use[other.owner] < other.most
            for other in self._waiting
            if other is not who
        )

    def _wake(self) -> None:
        with self._lock:
            calls = [self._waiting[who] for who in sorted(self._waiting, key=lambda w: w.rank)]
        for call in calls[:2]:  # the first may be held back by the limit of its own model
            call()


class Admission:
    """One channel's way through a gate."""

    def __init__(self, gate: Gate, rank: int, owner: str, most: int) -> None:
        """`owner` is the model, which has `most` slots over all its runs."""
        self.gate, self.rank, self.owner, self.most = gate, rank, owner, most

    @property
    def concurrency(self) -> Concurrency:
        """The limit of the moment."""
        return self.gate.concurrency

    @property
    def may_stay(self) -> bool:
        """Whether who has a slot may keep it."""
        return self.gate.may_stay(self)

    def take(self, again: Callable[[], None]) -> bool:
        """Take a slot; where there is none, `again` is called on this loop when there may be."""
        loop = asyncio.get_running_loop()

        def wake() -> None:
            with suppress(RuntimeError):  # the run is over, and its loop closed
                loop.call_soon_threadsafe(again)

        return self.gate.take(self, wake)

    def force(self) -> None:
        """Take a slot, free or not."""
        self.gate.force(self)

    def give(self) -> None:
        """Give a slot back."""
        self.gate.give(self)

    def forget(self) -> None:
        """Wait no more."""
        self.gate.forget(self)


class Together(Rates):
    """Several rates at once: each of them holds back."""

    def __init__(self, parts: Iterable[Rates]) -> None:
        super().__init__()
        self._parts = [part for part in parts if part.limited]
        self.limited = bool(self._parts)

    def wait(self, tokens: float, now: float) -> float:
        """Seconds until all of them allow one request."""
        return max((part.wait(tokens, now) for part in self._parts), default=0.0)

    def send(self) -> None:
        """Count a request."""
        for part in self._parts:
            part.send()

    def use(self, tokens: int) -> None:
        """Count the tokens of a reply."""
        for part in self._parts:
            part.use(tokens)


class Purse:
    """A budget over several runs, each of which has books of its own.

    As with a run's own budget, a request is paid for only if the budget surely pays for it and for
    all that is in flight, each at the price of the dearest reply of its run so far.
    """

    def __init__(
        self,
        budget: Budget,
        earlier: Mapping[str, Amounts],
        seconds: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """`earlier` is what earlier sessions spent, by run; `seconds` how long all have taken."""
        self.budget = budget
        self._seconds = seconds
        self._earlier = dict(earlier)
        self._sent = sum(each.requests for each in earlier.values())
        self._books: dict[str, Spending] = {}
        self._flying: Counter[str] = Counter()
        self._lock = threading.Lock()

    @property
    def limited(self) -> bool:
        """Whether there is any budget."""
        return self.budget != Budget()

    def open(self, run: str, books: Spending) -> Account:
        """From now on `books` say what a run has spent, its earlier sessions included."""
        with self._lock:
            known = self._earlier.get(run, Amounts())
            self._sent += books.amounts.requests - known.requests
            self._books[run] = books
            self._flying[run] = 0
        return Account(self, run)

    def spent(self) -> Amounts:
        """What all runs have spent together."""
        own = {run: books.amounts for run, books in list(self._books.items())}
        columns = zip(*(self._earlier | own).values(), strict=True)
        requests, tokens, cost = [sum(column) for column in columns] or [0, 0, 0.0]
        return Amounts(int(requests), int(tokens), cost)

    def claim(self, run: str) -> KejuError | None:
        """Let a run send one request, or say why not; what is claimed is in flight."""
        with self._lock:
            refused = self._refused(run)
            if refused is None:
                self._flying[run] += 1
                self._sent += 1
            return refused

    def landed(self, run: str) -> None:
        """A request of a run is over."""
        with self._lock:
            self._flying[run] -= 1

    def unsent(self) -> None:
        """One that is over reached nobody."""
        with self._lock:
            self._sent -= 1

    @property
    def in_flight(self) -> bool:
        """Whether replies may still change what was refused."""
        return self._flying.total() > 0

    def exhausted(self) -> KejuError | None:
        """Why not even one request more is paid for; None while that is not certain."""
        spent = self.spent()._replace(requests=self._sent)
        amounts = {**spent._asdict(), "seconds": self._seconds()}
        for name, amount in amounts.items():
            most = getattr(self.budget, name)
            if most and amount >= most:
                return _over(name, most, amount, 0.0)
        return None

    def _refused(self, run: str) -> KejuError | None:
        """The same for one request of a run that has opened its books."""
        if (error := self.exhausted()) is not None:
            return error
        spent, flying = self.spent(), self._flying + Counter({run: 1})
        for name in ("tokens", "cost"):
            most, amount = getattr(self.budget, name), getattr(spent, name)
            if not most:
                continue
            each = {own: self._books[own].dearest[name] for own in flying if own in self._books}
            expected = amount + sum(each.get(own, 0.0) * n for own, n in flying.items())
            if expected > most * ROUNDING:
                return _over(name, most, amount, each.get(run, 0.0))
            unknown = not self._books[run].dearest["tokens"]
            if unknown and self._books[run].replies:
                return EndpointError("budget_without_usage", budget=name)
            if unknown and self._flying[run]:
                return _over(name, most, amount, 0.0)
        return None


def _over(name: str, most: float, spent: float, each: float) -> KejuError:
    problem = RunIncomplete(f"budget_of_{name}", most=most, spent=spent, each=each)
    return RunIncomplete("plan_budget", problem=problem)


class Account(NamedTuple):
    """A purse as one run sees it."""

    purse: Purse
    run: str

    def claim(self) -> KejuError | None:
        """Let one request be sent, or say why not."""
        return self.purse.claim(self.run)

    def landed(self) -> None:
        """A request is over."""
        self.purse.landed(self.run)

    def unsent(self) -> None:
        """It reached nobody."""
        self.purse.unsent()


class Share(NamedTuple):
    """What one run shares with the others of its plan."""

    run: str
    rank: int
    """A smaller one goes first."""
    model: str
    gates: Mapping[str, Gate]
    """By the address of the endpoint."""
    rates: Rates
    """Those of the model over all its runs."""
    purse: Purse | None = None

    def admission(self, address: str, model: str, most: int) -> Admission | None:
        """The way to an endpoint; None where nobody else of the plan goes there."""
        gate = self.gates.get(address)
        return None if gate is None else Admission(gate, self.rank, model, most)

    def rates_at(self, address: str, model: str) -> Rates | None:
        """The rates of an endpoint and of the model there; None where the channel has its own."""
        gate = self.gates.get(address)
        if gate is None:
            return None
        return Together([gate.rates, self.rates] if model == self.model else [gate.rates])


SHARE: ContextVar[Share | None] = ContextVar("keju_share", default=None)
"""What the run of this context shares with others."""
