"""Limits of time, tokens and money for one question: the same in every arm, with or without tools.

    an attempt fails when the time is over      the question is cut by `time`
    a reply takes the question over a limit     it is cut by `time`, `tokens` or `cost`
    a limit does not pay for another turn       an episode with tools is cut in the same way

A question that a limit has cut is `truncated` and scores 0 under every reader, whatever its text
says. Waits for a slot, a rate limit or an endpoint that is down do not count as time.
"""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple

from msgspec.structs import replace

from keju.config import Agent, Budget, Price
from keju.engine.channel import FINAL, Channel, Exchange
from keju.engine.limits import ROUNDING, Spending, cost_of
from keju.engine.solver import Solver
from keju.errors import EndpointError
from keju.runs.manifest import LIMITS
from keju.types import CUT, LimitCut, Reply, Request, Sample, Stop, Usage

CutCause = Literal["time", "tokens", "cost", "turns", "context", "max_tokens"]
"""What cut a reply: a limit of the question, the number of turns, the model's context, or the
limit of tokens of a single reply."""
SETTINGS: Final[dict[LimitCut, str]] = {
    "time": "timeout_seconds",
    "tokens": "max_tokens",
    "cost": "max_cost",
}
"""The setting of `agent` behind each limit."""
_BY_STOP: Final[dict[Stop, CutCause]] = {
    "timeout": "time",
    "episode_timeout": "time",
    "max_iterations": "turns",
    "context_overflow": "context",
}


class QuestionLimits(NamedTuple):
    """What one question may take; None is no limit."""

    time: float | None = None
    tokens: int | None = None
    cost: float | None = None
    price: Price | None = None

    @classmethod
    def of(cls, agent: Agent, price: Price | None) -> QuestionLimits | None:
        """Return the limits that the settings `agent` have; None if they have none."""
        limits = cls(agent.timeout_seconds, agent.max_tokens, agent.max_cost, price)
        return limits if any(limits[:3]) else None

    def taken(self, seconds: float, usage: Usage) -> dict[LimitCut, float]:
        """Return what a question that took `seconds` has used of each limit that is set."""
        used: dict[LimitCut, float] = {}
        if self.time is not None:
            used["time"] = seconds
        if self.tokens is not None:
            used["tokens"] = usage.input + usage.output
        if self.cost is not None and self.price is not None:
            used["cost"] = cost_of(usage, self.price)
        return used

    def exceeded(self, used: dict[LimitCut, float]) -> LimitCut | None:
        """Return the first limit that is exceeded."""
        over = (name for name in used if used[name] > (self.most(name) or 0) * ROUNDING)
        return next(over, None)

    def most(self, name: LimitCut) -> float | None:
        """Return the amount of a limit."""
        amount: float | None = getattr(self, name)
        return amount


class QuestionMeter(Spending):
    """What one question has taken so far, and which limit has cut it."""

    def __init__(self, limits: QuestionLimits | None) -> None:
        self.limits = limits or QuestionLimits()
        budget = Budget(tokens=self.limits.tokens, cost=self.limits.cost)
        super().__init__(budget, self.limits.price)
        self.seconds = 0.0
        """Time of replies and calls, without waits."""

    @property
    def seconds_left(self) -> float | None:
        """The rest of the time; None without a limit."""
        return None if self.limits.time is None else self.limits.time - self.seconds

    def add_exchange(self, exchange: Exchange, channel: Channel) -> LimitCut | None:
        """Count a request; return the limit that has cut the question with it.

        Raises the reason that stops the channel where a limit cannot be kept, since the endpoint
        does not report tokens.
        """
        reply, left = exchange.reply, self.seconds_left
        self.seconds += exchange.seconds
        self.add(reply.usage)
        if reply.error is not None:
            over = left is not None and exchange.seconds >= left
            return "time" if over and reply.error.kind not in FINAL else None
        exhausted = self.exhausted(0, 0.0)
        if isinstance(exhausted, EndpointError):
            channel.company.lose(channel, exhausted)
            raise channel.stop_reason or exhausted
        return self.limits.exceeded(self.limits.taken(self.seconds, self.usage))

    def out_of(self) -> LimitCut | None:
        """Return the limit that is used up, or does not pay for another turn like the dearest."""
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
    ) -> Exchange:
        """Return the reply to `request`; one that a limit has cut says which."""
        meter = QuestionMeter(self.limits)
        exchange = await channel.ask(request, within=meter.seconds_left)
        if exchange.reply.cut_by:  # a stored run has it
            return exchange
        cut_by = meter.add_exchange(exchange, channel)
        if cut_by is None:
            return exchange
        reply = exchange.reply
        cut = replace(reply, error=None, finish=CUT, cut_by=cut_by, seconds=meter.seconds)
        return exchange._replace(reply=cut)

    def facts(self) -> dict[str, Any]:
        """Return the limits, for the manifest."""
        return {LIMITS: {setting: self.limits.most(name) for name, setting in SETTINGS.items()}}


def cut_cause(reply: Reply, limits: QuestionLimits | None) -> CutCause | None:
    """Return what cut a reply; None if nothing did.

    Replies of version 1.0 have only the stop reason of their episode, where a model had tools.
    """
    if reply.finish != CUT or reply.fault is not None:
        return None
    if reply.cut_by:
        return reply.cut_by
    stop = reply.episode.stop if reply.episode is not None else None
    if stop == "budget":
        limits = limits or QuestionLimits()
        used = limits.taken(0.0, reply.usage)
        shares: dict[CutCause, float] = {
            name: used[name] / (limits.most(name) or 1) for name in used if name != "time"
        }
        dearest: CutCause = "tokens"
        for name, share in shares.items():
            dearest = name if share > shares.get(dearest, 0.0) else dearest
        return dearest
    return _BY_STOP.get(stop, "max_tokens") if stop is not None else "max_tokens"


def stop_of(reply: Reply) -> str | None:
    """Return why a question ended, as episodes with tools say it; None if only its text says so."""
    if reply.episode is not None:
        return reply.episode.stop
    return {"time": "timeout", "tokens": "budget", "cost": "budget"}.get(reply.cut_by)


def ignored_limit(reply: Reply, limits: QuestionLimits) -> LimitCut | None:
    """Return a limit that a reply exceeds without being cut, as in runs of version 1.0."""
    if reply.fault is not None or reply.finish == CUT:
        return None
    return limits.exceeded(limits.taken(reply.seconds, reply.usage))
