"""The harness of verifiers 0.4 that plays an exam inside the process of ``vf-eval``.

verifiers' own chat harness starts a Python process for every rollout. This one sends the calls
itself, to the endpoint that the rollout is given, which records them and passes them on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import perf_counter
from typing import Any

import msgspec
import verifiers.v1 as vf
from pydantic import Field
from verifiers.v1.dialects.chat import message_to_wire

from keju.engine.channel import Channel, Limits
from keju.errors import EndpointError
from keju.interop.verifiers.proctor import unanswered
from keju.interop.verifiers.tools import Tool, answer_call, choose
from keju.models.base import Model
from keju.models.faults import Redactor, refused
from keju.models.openai.client import Transport, TransportError
from keju.models.openai.wire import normalise
from keju.types import Fault, Prefix, Prompt, Reply, Request, Sampling

REPLY = "keju_reply"
"""Key of `Trace.info` that holds the reply to be graded."""
RETRY_COUNT = "x-stainless-retry-count"
"""Tells verifiers that a call is the repetition of one that failed."""
_PLAIN = Request(Prompt(Prefix(), ""), Sampling(), "")
"""What `normalise` has to know of a request whose answer is text."""

_transports: dict[asyncio.AbstractEventLoop, Transport] = {}


def _transport() -> Transport:
    """The connections of the running loop: one pool, as every episode has a harness of its own."""
    loop = asyncio.get_running_loop()
    if loop not in _transports:
        _transports[loop] = Transport({"Content-Type": "application/json"})
    return _transports[loop]


async def hang_up() -> None:
    """Close the connections of the running loop."""
    transport = _transports.pop(asyncio.get_running_loop(), None)
    if transport is not None:
        await transport.close()


class KejuHarnessConfig(vf.HarnessConfig):
    """How single calls are made."""

    attempts: int = Field(5, ge=1)
    """Attempts for one call, the first included."""
    timeout: float = Field(600.0, gt=0)
    """Seconds for one attempt."""


class KejuHarness(vf.Harness[KejuHarnessConfig]):
    """Asks, runs the tools that are called, and asks again until there is an answer in words."""

    APPENDS_SYSTEM_PROMPT = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: vf.TaskData,
    ) -> vf.ProgramResult:
        """Play one rollout; the reply to be graded is left in ``trace.info``."""
        line = _Line(trace, f"{endpoint}/chat/completions", secret)
        limits = Limits(
            concurrency=1,
            timeout=self.config.timeout,
            attempts=self.config.attempts,
            give_up_after=self.config.timeout,
        )
        channel = Channel(line, limits)
        tools = choose(getattr(data, "tools", ()))
        body = getattr(data, "sampling", {}) | {"model": ctx.model}
        messages = self._opening(data)
        async with channel.slot():
            while True:
                turn = body | {"messages": messages} | _offer(tools, last=_is_last_turn(trace))
                line.body, line.attempts = msgspec.json.encode(turn), 0
                try:
                    reply = (await channel.ask(_PLAIN)).reply
                except _StoppedRollout:
                    break
                if reply.error is not None:
                    raise EndpointError(reply.error.message)
                if not reply.tool_calls:
                    trace.info[REPLY] = msgspec.to_builtins(reply)
                    break
                trace.info[REPLY] = msgspec.to_builtins(unanswered())
                messages = [*messages, _message_of(line.received), *_results(tools, reply)]
        return vf.ProgramResult(exit_code=0, stdout="", stderr="")

    def _opening(self, data: vf.TaskData) -> list[dict[str, Any]]:
        system, prompt = self.resolve_prompt(data)
        turns = [{"role": "system", "content": system}] if system else []
        if isinstance(prompt, str):
            return [*turns, {"role": "user", "content": prompt}]
        return [*turns, *(message_to_wire(message) for message in prompt or [])]


class _StoppedRollout(Exception):
    """verifiers has ended the rollout (``max_turns``)."""


class _Line(Model):
    """The way to the model through verifiers' endpoint, which takes the body of a turn as it is."""

    name = "policy"

    def __init__(self, trace: vf.Trace, address: str, secret: str) -> None:
        self._trace = trace
        self._address = address
        self._secret = secret
        self._redact = Redactor([secret])
        self.body = b""
        """What is sent next."""
        self.received = b""
        """What came back."""
        self.attempts = 0
        """How often `body` was sent."""

    async def ask(self, request: Request, *, timeout: float) -> Reply:
        """Send the body once; verifiers is told which attempt it is."""
        headers = {"Authorization": f"Bearer {self._secret}"}
        if self.attempts:
            headers[RETRY_COUNT] = str(self.attempts)
        self.attempts += 1
        started = perf_counter()
        try:
            reply = await _transport().post(self._address, self.body, timeout, headers=headers)
        except TransportError as error:
            return Reply(error=Fault(error.kind, error.message))
        if reply.status == 200:
            self.received = reply.body
            return normalise(reply.body, request, perf_counter() - started, self._redact)
        if self._trace.stop_condition is not None:
            raise _StoppedRollout
        return Reply(error=refused(reply.status, reply.body, reply.header, self._redact))


def _is_last_turn(trace: vf.Trace) -> bool:
    """Whether the limit on turns leaves room for just one more."""
    limit = trace.agent.config.max_turns
    return limit is not None and trace.num_turns >= limit - 1


def _offer(tools: Sequence[Tool], *, last: bool) -> dict[str, Any]:
    """The fields that offer tools; in the last turn the model has to answer without them."""
    if not tools:
        return {}
    offered: dict[str, Any] = {"tools": [tool.schema() for tool in tools]}
    return offered | {"tool_choice": "none"} if last else offered


def _message_of(raw: bytes) -> dict[str, Any]:
    """The assistant's turn as it came, reasoning and all, to be sent back with the results."""
    message: dict[str, Any] = msgspec.json.decode(raw)["choices"][0]["message"]
    return message


def _results(tools: Sequence[Tool], reply: Reply) -> list[dict[str, Any]]:
    results = []
    for call in reply.tool_calls:
        function = call.get("function") or {}
        name, arguments = str(function.get("name", "")), str(function.get("arguments") or "{}")
        content = answer_call(tools, name, arguments)
        results.append(
            {"role": "tool", "tool_call_id": call.get("id", ""), "name": name, "content": content}
        )
    return results
