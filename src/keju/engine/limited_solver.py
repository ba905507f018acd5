"""A meter for the limits of one question, and the solver that applies them to a single reply."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from keju.config import Budget
from keju.engine.channel import FINAL, Channel, ReplyWithAttempts
from keju.engine.limits import SpendingMeter
from keju.engine.solver import Solver
from keju.errors import EndpointError
from keju.runs.manifest import LIMITS
from keju.scores.question_limits import SETTINGS, QuestionLimits
from keju.types import CUT, LimitCut, Request, Sample


class QuestionMeter(SpendingMeter):
    """The time, tokens and money of one question so far, and the limit that has cut it."""

    def __init__(self, limits: QuestionLimits | None) -> None:
        self.limits = limits or QuestionLimits()
        budget = Budget(tokens=self.limits.tokens, cost=self.limits.cost)
        super().__init__(budget, self.limits.price)
        self.seconds = 0.0
        """Time of replies and calls, without waits."""

    @property
    def seconds_left(self) -> float | None:
        """The remaining time, or None without a limit."""
        return None if self.limits.time is None else self.limits.time - self.seconds

    def add_exchange(self, exchange: ReplyWithAttempts, channel: Channel) -> LimitCut | None:
        """Count a request. Return the limit that has cut the question with it.

        If a limit cannot be applied, because the endpoint does not report tokens, this stops the
        channel and raises the reason.
        """
        reply, seconds_left = exchange.reply, self.seconds_left
        self.seconds += exchange.seconds
        self.add(reply.usage)
        if reply.error is not None:
            is_timeout = seconds_left is not None and exchange.seconds >= seconds_left
            return "time" if is_timeout and reply.error.kind not in FINAL else None
        exhausted = self.exhausted(0, 0.0)
        if isinstance(exhausted, EndpointError):
            channel.group.lose(channel, exhausted)
            raise channel.stop_reason or exhausted
        return self.limits.find_exceeded(self.limits.measure_use(self.seconds, self.usage))

    def find_exhausted(self) -> LimitCut | None:
        """Return a limit that is used up, or that does not pay for another turn like the most
        expensive."""
        if self.seconds_left is not None and self.seconds_left <= 0:
            return "time"
        exhausted = self.exhausted(0, 0.0)
        if exhausted is None:
            return None
        return "cost" if exhausted.code == "budget_of_cost" else "tokens"


class LimitedSolver(Solver):
    """Asks once, within the limits of a question."""

    def __init__(self, limits: QuestionLimits) -> None:
        self.limits = limits

    async def __call__(
        self, request: Request, channel: Channel, sample: Sample, epoch: int
    ) -> ReplyWithAttempts:
        """Return the reply to `request`. If a limit has cut it, the reply names the limit."""
        meter = QuestionMeter(self.limits)
        exchange = await channel.ask(request, time_limit=meter.seconds_left)
        if exchange.reply.cut_by:  # a stored run has it
            return exchange
        cut_by = meter.add_exchange(exchange, channel)
        if cut_by is None:
            return exchange
        reply = exchange.reply
        cut_reply = replace(reply, error=None, finish=CUT, cut_by=cut_by, seconds=meter.seconds)
        return exchange._replace(reply=cut_reply)

    def facts(self) -> dict[str, Any]:
        """Return the limits, for the manifest."""
        return {
            LIMITS: {setting: self.limits.amount_of(name) for name, setting in SETTINGS.items()}
        }
