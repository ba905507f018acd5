"""A solver that lets a model reply several times in a row, without tools."""

from __future__ import annotations

from operator import add

from msgspec.structs import astuple, replace

from keju.engine.channel import Channel, ReplyWithAttempts
from keju.engine.solver import Solver
from keju.types import Fault, Request, Sample, Turn, Usage

CONTINUE = "Continue. End with your answer in the form that was asked for."
"""The message that the model reads between two of its replies."""


class TurnSolver(Solver):
    """Asks a model for several replies to one question; the last one is the answer.

    Some environments of verifiers call this their agentic mode.
    """

    def __init__(self, turns: int) -> None:
        self.turns = turns

    async def __call__(
        self, request: Request, channel: Channel, sample: Sample, epoch: int
    ) -> ReplyWithAttempts:
        """Return the last reply, with the tokens and the time of all of them."""
        turns: list[Turn] = []
        faults: list[Fault] = []
        usage, reply_seconds, seconds = Usage(), 0.0, 0.0
        while True:
            exchange = await channel.ask(replace(request, turns=tuple(turns)))
            reply = exchange.reply
            usage = Usage(*map(add, astuple(usage), astuple(reply.usage)))
            reply_seconds += reply.seconds
            seconds += exchange.seconds
            faults += exchange.faults
            turns.append(Turn(role="assistant", text=reply.text, native=reply.native))
            if reply.error is not None or len(turns) >= 2 * self.turns - 1:
                break
            turns.append(Turn(role="user", text=CONTINUE))
        return exchange._replace(
            reply=replace(reply, usage=usage, seconds=reply_seconds, native=b""),
            faults=tuple(faults),
            seconds=seconds,
        )
