"""Limits of time, tokens and money for one question: the same in every arm, with or without tools.

    an attempt fails when the time is over      the question is cut by `time`
    a reply takes the question over a limit     it is cut by `time`, `tokens` or `cost`
    a limit does not pay for another turn       an episode with tools is cut in the same way

A question that a limit has cut is `truncated` and scores 0 under every reader, even if its text
has an answer. Waits for a slot, a rate limit or an endpoint that is down do not count as time.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from keju.config import AgentLimits, Price
from keju.scores.usage import ROUNDING, compute_cost
from keju.types import CUT, LimitCut, Reply, Stop, Usage

CutCause = Literal["time", "tokens", "cost", "turns", "context", "max_tokens"]
"""The cause that cut a reply: a limit of the question, the number of turns, the model's context, or
the limit of tokens of a single reply."""
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
    """The limits of one question. None means no limit."""

    time: float | None = None
    tokens: int | None = None
    cost: float | None = None
    price: Price | None = None

    @classmethod
    def of(cls, agent: AgentLimits, price: Price | None) -> QuestionLimits | None:
        """Return the limits that the settings `agent` have; None if they have none."""
        limits = cls(agent.timeout_seconds, agent.max_tokens, agent.max_cost, price)
        return limits if any(limits[:3]) else None

    def measure_use(self, seconds: float, usage: Usage) -> dict[LimitCut, float]:
        """Return how much of each limit that is set a question of `seconds` has used."""
        used: dict[LimitCut, float] = {}
        if self.time is not None:
            used["time"] = seconds
        if self.tokens is not None:
            used["tokens"] = usage.input + usage.output
        if self.cost is not None and self.price is not None:
            used["cost"] = compute_cost(usage, self.price)
        return used

    def find_exceeded(self, used: dict[LimitCut, float]) -> LimitCut | None:
        """Return the first limit that is exceeded."""
        exceeded_limits = (
            name for name in used if used[name] > (self.amount_of(name) or 0) * ROUNDING
        )
        return next(exceeded_limits, None)

    def amount_of(self, name: LimitCut) -> float | None:
        """Return the amount of a limit."""
        amount: float | None = getattr(self, name)
        return amount


def find_cut_cause(reply: Reply, limits: QuestionLimits | None) -> CutCause | None:
    """Return the cause that cut a reply, or None if it was not cut.

    Replies of version 1.0 have only the stop reason of their episode, where a model had tools.
    """
    if reply.finish != CUT or reply.fault is not None:
        return None
    if reply.cut_by:
        return reply.cut_by
    if reply.episode is None:
        return "max_tokens"
    if reply.episode.stop == "budget":
        return _find_used_up(reply, limits or QuestionLimits())
    return _BY_STOP.get(reply.episode.stop, "max_tokens")


def _find_used_up(reply: Reply, limits: QuestionLimits) -> CutCause:
    """Return the budget of which an episode used the largest share."""
    used = limits.measure_use(0.0, reply.usage)
    shares: dict[CutCause, float] = {
        name: used[name] / (limits.amount_of(name) or 1) for name in used if name != "time"
    }
    highest: CutCause = "tokens"
    for name, share in shares.items():
        highest = name if share > shares.get(highest, 0.0) else highest
    return highest


def find_stop(reply: Reply) -> str | None:
    """Return why a question ended, in the terms of episodes with tools. None if only its text shows
    it."""
    if reply.episode is not None:
        return reply.episode.stop
    return {"time": "timeout", "tokens": "budget", "cost": "budget"}.get(reply.cut_by)


def find_ignored_limit(reply: Reply, limits: QuestionLimits) -> LimitCut | None:
    """Return a limit that a reply exceeds without being cut, as in runs of version 1.0."""
    if reply.fault is not None or reply.finish == CUT:
        return None
    return limits.find_exceeded(limits.measure_use(reply.seconds, reply.usage))
