"""Whole tool loops over Anthropic's API, each request checked against the published schema."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import SecretStr

from keju.config import AgentLimits, TaskConfig
from keju.engine.channel import Channel, ChannelLimits, ReplyWithAttempts
from keju.errors import ConfigError
from keju.models.anthropic.client import make
from keju.models.anthropic.sampling import fit
from keju.solvers.loop import ToolLoop
from keju.solvers.toolbox import ToolResult
from keju.types import Message, Prefix, Prompt, Request, Sample, Sampling
from tests.support.anthropic_schema import MODELS
from tests.support.anthropic_server import (
    KEY,
    AnthropicMessage,
    AnthropicPlan,
    AnthropicServer,
    RawResponse,
    error,
    tool_use,
)
from tests.support.tools import Functions

SAMPLE = Sample(id="q1", subset="s", index=0, text="2+3?", target="5")
PROMPT = Prompt(Prefix((Message("system", "Use the tools."),), "Examples.\n"), "What is 2+3?")


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def fail() -> ToolResult:
    """Give an error."""
    return ToolResult("no", "tool_error")


def solve(
    server: AnthropicServer, model: str, *, preflight: bool = False, extra: Any = None, **agent: Any
) -> ReplyWithAttempts:
    """One episode."""
    config = TaskConfig(
        model=f"anthropic:{model}",
        datasets=["demo"],
        api_url=server.url,
        api_key=KEY,  # type: ignore[arg-type]
    )
    sampling, _ = fit(config, Sampling(temperature=None, extra=extra or {}))
    loop = ToolLoop(Functions({"add": add, "fail": fail}), AgentLimits(**agent))
    limits = ChannelLimits(
        concurrency=1, timeout=5, attempts=5, give_up_after=5, retry_interval=0.01
    )

    async def scenario() -> ReplyWithAttempts:
        channel = Channel(make(config), limits)
        await loop.open()
        try:
            if preflight:
                await loop.preflight(channel, sampling)
            async with channel.slot():
                return await loop(Request(PROMPT, sampling, hash="h"), channel, SAMPLE, 0)
        finally:
            await loop.close()
            await channel.close()

    return asyncio.run(scenario())


def script(document: dict[str, Any], number: int, thinks: bool) -> Any:
    """Three turns of calls, good and bad, each after some thought; then the answer."""
    thought = f"Thought {number}." if thinks else None
    calls = [
        [tool_use("add", {"a": 2, "b": 3}, "toolu_a"), tool_use("fail", {}, "toolu_b")],
        [tool_use("nothing", {}, "toolu_c"), tool_use("add", {"a": 2, "b": 2}, "toolu_d")],
        [tool_use("add", {"a": 1, "b": 1}, "toolu_e")],
    ]
    turns = sum(message["role"] == "assistant" for message in document["messages"])
    if turns < len(calls) and document["tool_choice"]["type"] == "auto":
        return AnthropicMessage(
            [{"type": "text", "text": "I call."}, *calls[turns]], thinks=thought
        )
    return AnthropicMessage("So the answer is 5.", thinks=thought)


@pytest.mark.parametrize("model", MODELS)
def test_a_loop_with_thinking_fits_the_schema_on_every_model(model: str) -> None:
    thinks = MODELS[model].default_thinking
    with AnthropicServer(AnthropicPlan(lambda document, n: script(document, n, thinks))) as server:
        exchange = solve(server, model)
        assert server.refused == []
        assert all(body["tools"] == server.bodies[0]["tools"] for body in server.bodies)
    reply = exchange.reply
    assert reply.error is None
    assert reply.text == "So the answer is 5."
    assert reply.episode is not None
    assert reply.episode.stop == "final"
    kinds = [turn.kind for turn in reply.episode.turns if turn.role == "tool"]
    assert kinds == ["ok", "tool_error", "unknown_tool", "ok", "ok"]
    thoughts = [turn.reasoning for turn in reply.episode.turns if turn.role == "assistant"]
    assert thoughts[0] == ("Thought 0." if thinks else "")
    assert reply.usage.cached > 0
    assert reply.usage.written > 0


@pytest.mark.parametrize("extra", [{"thinking": {"type": "enabled", "budget_tokens": 2048}}, {}])
def test_the_last_turn_keeps_the_tools_and_calls_none(extra: dict[str, Any]) -> None:
    def answer(document: dict[str, Any], number: int) -> Any:
        return script(document, number, bool(extra))

    with AnthropicServer(AnthropicPlan(answer)) as server:
        exchange = solve(server, "claude-opus-4-6", extra=extra, max_iterations=2)
        assert server.refused == []
        assert [b["tool_choice"] for b in server.bodies] == [
            {"type": t} for t in ("auto", "auto", "none")
        ]
    assert exchange.reply.episode is not None
    assert exchange.reply.episode.stop == "max_iterations_forced"


def test_faults_in_the_middle_never_restart_the_episode() -> None:
    faults = {
        1: RawResponse(529, error("overloaded_error", "busy"), {"retry-after": "0.01"}),
        3: RawResponse(429, error("rate_limit_error", "slow"), {"retry-after": "0.01"}),
    }

    def answer(document: dict[str, Any], number: int) -> Any:
        return faults.get(number) or script(document, number, True)

    with AnthropicServer(AnthropicPlan(answer)) as server:
        exchange = solve(server, "claude-sonnet-5-5")
        assert server.refused == []
        assert len(server.bodies) == 6
    assert [fault.kind for fault in exchange.faults] == ["rate_limit", "rate_limit"]
    assert exchange.reply.text == "So the answer is 5."


def test_a_cut_call_ends_the_episode_without_being_run() -> None:
    calls = [tool_use("add", {"a": 2}, "toolu_a")]
    with AnthropicServer(AnthropicPlan(lambda *_: AnthropicMessage(calls, "max_tokens"))) as server:
        exchange = solve(server, "claude-sonnet-5-5")
        assert len(server.bodies) == 1
    assert exchange.reply.finish == "length"
    assert exchange.reply.episode is not None
    assert [turn.role for turn in exchange.reply.episode.turns] == ["assistant"]


@pytest.mark.parametrize("extra", [{"thinking": {"type": "enabled", "budget_tokens": 2048}}, {}])
def test_the_knock_fits_the_schema(extra: dict[str, Any]) -> None:
    with AnthropicServer() as server:
        solve(server, "claude-haiku-4-5", preflight=True, extra=extra)
        assert server.refused == []


def test_old_states_cannot_be_hidden_where_thinking_is_tied_to_them() -> None:
    loop = ToolLoop(Functions({"add": add}), AgentLimits(hide_old_env_states=True))
    free, bound = (
        make(TaskConfig(model=f"anthropic:{name}", datasets=["demo"], api_key=SecretStr("k")))
        for name in ("claude-opus-4-8", "claude-sonnet-5-5")
    )
    loop.check(free)
    with pytest.raises(ConfigError, match="hide_old_env_states"):
        loop.check(bound)


def test_thinking_that_is_hidden_goes_back_as_it_came() -> None:
    hidden = {"type": "redacted_thinking", "data": "b3BhcXVl/+=="}

    def answer(document: dict[str, Any], number: int) -> Any:
        if number == 0:
            return AnthropicMessage([hidden, tool_use("add", {"a": 2, "b": 3}, "toolu_a")])
        return AnthropicMessage([hidden, {"type": "text", "text": "So the answer is 5."}])

    with AnthropicServer(AnthropicPlan(answer)) as server:
        exchange = solve(server, "claude-opus-5-5")
        assert server.refused == []
        assert server.bodies[1]["messages"][1]["content"][0] == hidden
    assert exchange.reply.text == "So the answer is 5."
    assert exchange.reply.reasoning == ""
