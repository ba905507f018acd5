"""The harness of verifiers 0.4 that plays an exam inside the process of ``vf-eval``.

verifiers' own chat harness starts a Python process for every rollout. This one sends the calls
itself, to the endpoint that the rollout is given, which records them and passes them on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

import msgspec
import verifiers.v1 as vf
from pydantic import Field
from verifiers.v1.dialects.chat import message_to_wire

from keju.engine.channel import Channel, Limits
from keju.errors import EndpointError
from keju.interop.verifiers.exam import UNANSWERED
from keju.interop.verifiers.tools import Tool, answer_call, choose
from keju.models.base import Model
from keju.models.faults import Redactor, refusal
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
        if tools:
            body["tools"] = [tool.schema() for tool in tools]
        system, prompt = self.resolve_prompt(data)
        messages = [{"role": "system", "content": system}] if system else []
        if isinstance(prompt, str):
            messages.append({"role": "user", "content": prompt})
        else:
            messages += [message_to_wire(message) for message in prompt or []]
        most = trace.agent.config.max_turns
        async with channel.slot():
            while True:
                if tools and most is not None and trace.num_turns >= most - 1:
                    body["tool_choice"] = "none"  # the last turn has to be an answer
                line.body = msgspec.json.encode(body | {"messages": messages})
                line.attempts = 0
                try:
                    reply = (await channel.ask(_PLAIN)).reply
                except _StoppedRollout:
                    break
                if reply.error is not None:
                    raise EndpointError(reply.error.message)
                # Kept in every turn: the rollout may be stopped before it comes to an answer.
                answer = UNANSWERED if reply.tool_calls else reply
                trace.info[REPLY] = msgspec.to_builtins(answer)
                if not reply.tool_calls:
                    break
                # The turn goes back as it came, reasoning and all, with the results of its calls.
                turn = msgspec.json.decode(line.received)["choices"][0]["message"]
                messages = [*messages, turn, *(_result(tools, call) for call in reply.tool_calls)]
        return vf.ProgramResult(exit_code=0, stdout="", stderr="")


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
        return Reply(error=refusal(reply.status, reply.body, reply.header, self._redact))


def _result(tools: Sequence[Tool], call: Mapping[str, Any]) -> dict[str, Any]:
    """The message that answers a call."""
    function = call.get("function") or {}
    name, arguments = str(function.get("name", "")), str(function.get("arguments") or "{}")
    content = answer_call(tools, name, arguments)
    return {"role": "tool", "tool_call_id": call.get("id", ""), "name": name, "content": content}
