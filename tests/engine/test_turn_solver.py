"""Several replies to one question; the last is the answer."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from keju.engine.channel import Channel, ReplyWithAttempts
from keju.engine.turn_solver import CONTINUE, TurnSolver
from keju.types import Fault, Prefix, Prompt, Reply, Request, Sampling, Usage
from tests.results.fake_exam import make_sample


class TalkingChannel:
    """Replies with the number of turns so far; fails at the turn `fails_at`."""

    def __init__(self, fails_at: int = -1) -> None:
        self.requests: list[Request] = []
        self.fails_at = fails_at

    async def ask(self, request: Request) -> ReplyWithAttempts:
        self.requests.append(request)
        number = len(self.requests)
        error = Fault("server", "500") if number == self.fails_at else None
        reply = Reply(f"turn {number}", usage=Usage(10, 5), seconds=1.0, error=error)
        return ReplyWithAttempts(reply, (Fault("timeout", "slow"),), seconds=2.0)


def solve(turns: int, channel: TalkingChannel) -> ReplyWithAttempts:
    request = Request(Prompt(Prefix(), "?"), Sampling(), "0" * 32)
    sample = make_sample("a", 0)
    solving = TurnSolver(turns)(request, cast(Channel, channel), sample, 0)
    return cast(ReplyWithAttempts, asyncio.run(cast(Any, solving)))


@pytest.mark.parametrize("turns", [1, 3])
def test_the_last_reply_counts_with_the_tokens_of_all(turns: int) -> None:
    channel = TalkingChannel()
    answered = solve(turns, channel)
    assert answered.reply.text == f"turn {turns}"
    assert answered.reply.usage == Usage(10 * turns, 5 * turns)
    assert (answered.reply.seconds, answered.seconds) == (1.0 * turns, 2.0 * turns)
    assert len(answered.faults) == turns
    last_turns = channel.requests[-1].turns
    assert [turn.text for turn in last_turns[1::2]] == [CONTINUE] * (turns - 1)
    assert [turn.role for turn in last_turns] == ["assistant", "user"] * (turns - 1)


def test_an_error_ends_the_conversation() -> None:
    channel = TalkingChannel(fails_at=2)
    answered = solve(4, channel)
    assert answered.reply.error is not None
    assert len(channel.requests) == 2
