"""Counts of requests and tokens, and their cost."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from keju.config import Price
from keju.types import Fault, Reply, Usage

COUNTED = ("input", "output", "cached", "written")
"""The counts of tokens that a price depends on."""
ROUNDING = 1 + 1e-9
"""Allows for rounding: ten times 0.1 is within a budget of 1."""


class UsageMeter:
    """Counts of requests and tokens."""

    def __init__(self) -> None:
        self.requests = 0
        """Requests that were sent, including failed ones."""
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

    def include(self, meter: UsageMeter) -> None:
        """Add everything that another meter has counted."""
        for name, value in vars(meter).items():
            if isinstance(value, int):
                setattr(self, name, getattr(self, name) + value)

    def raise_to(self, **minimums: int) -> None:
        """Raise counts to at least these values."""
        for name, value in minimums.items():
            setattr(self, name, max(value, getattr(self, name)))

    @property
    def tokens(self) -> int:
        """Input and output tokens."""
        return self.input + self.output

    @property
    def usage(self) -> Usage:
        """The tokens as the usage of one reply."""
        return Usage(self.input, self.output, self.cached, self.reasoning, self.written)

    def cost(self, price: Price | None) -> float | None:
        """Return the cost, or None where no price is known."""
        return None if price is None else compute_cost(self, price)


def compute_cost(tokens: Usage | UsageMeter, price: Price) -> float:
    """Return the cost of some tokens. Tokens read from or written to a cache are part of the
    input."""
    cached = price.cached if price.cached is not None else price.input
    written = price.written if price.written is not None else price.input
    uncached = tokens.input - tokens.cached - tokens.written
    money = uncached * price.input + tokens.cached * cached + tokens.written * written
    return (money + tokens.output * price.output) / 1e6


class UnitTokens:
    """Tokens by unit, so that the use of two arms can be compared question by question."""

    def __init__(self, units: int) -> None:
        self._units = units
        self._counts: dict[str, array[int] | array[float]] = {}
        """By name, where any reply used some. Integers, or floats where a count is too large."""

    def enter(self, unit: int, usage: Usage) -> None:
        """Store the tokens of a unit's reply. A later reply of the unit replaces them."""
        for name in COUNTED:
            amount, counts = getattr(usage, name), self._counts.get(name)
            if counts is None:
                if not amount:
                    continue
                counts = self._counts[name] = array("I", bytes(4 * self._units))
            try:
                counts[unit] = amount
            except OverflowError:
                self._counts[name] = float_counts = array("d", counts)
                float_counts[unit] = amount

    def tokens(self, unit: int) -> float:
        """Return the input and output tokens of a unit."""
        return self.count_of(unit, "input") + self.count_of(unit, "output")

    def count_of(self, unit: int, name: str) -> float:
        """Return one of the `COUNTED` of a unit."""
        counts = self._counts.get(name)
        return float(counts[unit]) if counts is not None else 0.0

    def cost(self, unit: int, price: Price) -> float:
        """Return the cost of a unit."""
        return compute_cost(
            Usage(**{name: int(self.count_of(unit, name)) for name in COUNTED}), price
        )
