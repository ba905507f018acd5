"""The harness of verifiers 0.4 that plays an exam inside the process of ``vf-eval``.

verifiers' own chat harness starts a Python process for every rollout. This one sends the calls
itself, to the endpoint that the rollout is given, which records them and passes them on.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from time import perf_counter
from typing import Any

import msgspec
import verifiers.v1 as vf
from pydantic import Field
from verifiers.v1.dialects.chat import message_to_wire

from keju.engine.loop import BACKOFF_MOST, FINAL, REFUSALS
from keju.errors import EndpointError
from keju.interop.verifiers.proctor import unanswered
from keju.interop.verifiers.tools import Tool, answer_call, choose
from keju.models.faults import Redactor, refused
from keju.models.normalise import normalise
from keju.models.transport import HttpReply, Transport, TransportError
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
        line = _Line(self.config, trace, f"{endpoint}/chat/completions", secret)
        tools = choose(getattr(data, "tools", ()))
        body = getattr(data, "sampling", {}) | {"model": ctx.model}
        messages = self._opening(data)
        while True:
            request = body | {"messages": messages} | _offer(tools, last=_is_last_turn(trace))
            raw = await line.ask(request)
            if raw is None:
                break
            reply = normalise(raw, _PLAIN, line.seconds, line.redact)
            if reply.error is not None:
                raise EndpointError(reply.error.message)
            if not reply.tool_calls:
                trace.info[REPLY] = msgspec.to_builtins(reply)
                break
            trace.info[REPLY] = msgspec.to_builtins(unanswered())
            messages = [*messages, _message_of(raw), *_results(tools, reply)]
        return vf.ProgramResult(exit_code=0, stdout="", stderr="")

    def _opening(self, data: vf.TaskData) -> list[dict[str, Any]]:
        system, prompt = self.resolve_prompt(data)
        turns = [{"role": "system", "content": system}] if system else []
        if isinstance(prompt, str):
            return [*turns, {"role": "user", "content": prompt}]
        return [*turns, *(message_to_wire(message) for message in prompt or [])]


class _Line:
    """The way to the model: one call at a time, repeated where that may help."""

    def __init__(
        self, config: KejuHarnessConfig, trace: vf.Trace, address: str, secret: str
    ) -> None:
        self._config = config
        self._trace = trace
        self._address = address
        self._secret = secret
        self.redact = Redactor([secret])
        self.seconds = 0.0
        """How long the last attempt took."""

    async def ask(self, request: dict[str, Any]) -> bytes | None:
        """The body of the reply; None where verifiers has stopped the rollout (``max_turns``)."""
        body = msgspec.json.encode(request)
        fault: Fault | None = None
        for attempt in range(self._config.attempts):
            if fault is not None:
                await asyncio.sleep(
                    min(BACKOFF_MOST, 2.0 ** (attempt - 2)) * random.uniform(0.5, 1.5)
                )
            try:
                reply = await self._post(body, attempt)
            except TransportError as error:
                fault = Fault(error.kind, error.message)
                continue
            if reply.status == 200:
                return reply.body
            if self._trace.stop_condition is not None:
                return None
            fault = refused(reply.status, reply.body, reply.header, self.redact)
            if fault.kind in FINAL or fault.kind in REFUSALS:
                break
        assert fault is not None
        raise EndpointError(fault.message)

    async def _post(self, body: bytes, attempt: int) -> HttpReply:
        headers = {"Authorization": f"Bearer {self._secret}"}
        if attempt:
            headers[RETRY_COUNT] = str(attempt)
        started = perf_counter()
        try:
            return await _transport().post(
                self._address, body, self._config.timeout, headers=headers
            )
        finally:
            self.seconds = perf_counter() - started


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
