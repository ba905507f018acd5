"""The harness for verifiers 0.4 that runs an exam inside the process of ``vf-eval``.

verifiers' own chat harness starts a Python process for every rollout. This one sends the calls
itself to the rollout's endpoint, which records and forwards them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import perf_counter

import msgspec
import verifiers.v1 as vf
from pydantic import Field

from keju.config import AgentLimits
from keju.engine.channel import Channel, ChannelLimits
from keju.engine.solver import Solver
from keju.errors import KejuError
from keju.interop.verifiers.exam import UNANSWERED, ExamSpec, RewardMissing, open_exam
from keju.interop.verifiers.tools import FunctionTool, FunctionTools, choose_tools
from keju.models.base import Model, Redactor, refusal
from keju.models.openai.wire import BodyBuilder, normalise
from keju.models.transport import Transport, TransportError
from keju.solvers.loop import ToolLoop
from keju.solvers.toolbox import CombinedTools, ToolSource
from keju.types import Fault, Message, Prefix, Prompt, Reply, Request, Sample, Sampling

REPLY = "keju_reply"
"""The key of `Trace.info` with the reply to grade."""
RETRY_COUNT = "x-stainless-retry-count"
"""Informs verifiers that a call repeats a failed one."""
MAX_TURNS = 10
"""The most turns with tools that the user gives the model, unless verifiers sets another number
(``--env.agent.max-turns``)."""
_DONE = vf.ProgramResult(exit_code=0, stdout="", stderr="")
_NO_SAMPLE = Sample(id="", subset="", index=0, text="", target="")
"""The question of a task that is not one of Keju's."""

_transports: dict[asyncio.AbstractEventLoop, Transport] = {}


def _get_transport() -> Transport:
    """Return the connections of the running loop. Every episode has its own harness, so they share
    it."""
    loop = asyncio.get_running_loop()
    if loop not in _transports:
        _transports[loop] = Transport({"Content-Type": "application/json"})
    return _transports[loop]


async def close_transport() -> None:
    """Close the connections of the running loop."""
    transport = _transports.pop(asyncio.get_running_loop(), None)
    if transport is not None:
        await transport.close()


class KejuHarnessConfig(vf.HarnessConfig):
    """Settings of single calls."""

    attempts: int = Field(5, ge=1)
    """Attempts for one call, the first included."""
    timeout: float = Field(600.0, gt=0)
    """Seconds for one attempt."""


class KejuHarness(vf.Harness[KejuHarnessConfig]):
    """Sends requests, and runs the tool loop if the exam or the user provides tools.

    A rollout with tools is an episode of Keju's own loop. The model's code runs in Keju's sandbox,
    not in the rollout's runtime. `EXECUTES_CODE` is only about the runtime. With it, verifiers
    would warn that the code runs unprotected on this machine, which is wrong.
    """

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
        """Run one rollout, and leave the reply to grade in ``trace.info``."""
        limits = ChannelLimits(
            concurrency=1,
            timeout=self.config.timeout,
            attempts=self.config.attempts,
            give_up_after=self.config.timeout,
        )
        line = _RolloutModel(trace, f"{endpoint}/chat/completions", secret, ctx.model)
        channel = Channel(line, limits)
        spec = getattr(data, "exam", None)
        exam = open_exam(msgspec.convert(spec, ExamSpec)) if spec is not None else None
        loop = await exam.open_tool_loop() if exam is not None else None
        sample = exam.sample(str(data.id)) if exam is not None else _NO_SAMPLE
        solver = _make_solver(
            loop, choose_tools(getattr(data, "tools", ())), trace.agent.config.max_turns
        )
        # Stays if verifiers stops the rollout before an answer.
        trace.info[REPLY] = msgspec.to_builtins(UNANSWERED)
        try:
            async with channel.slot():
                reply = (await solver(self._make_request(data), channel, sample, 0)).reply
        except _StoppedRollout:
            return _DONE
        if reply.error is not None:
            raise RewardMissing(reply.error.message)
        trace.info[REPLY] = msgspec.to_builtins(reply)
        return _DONE

    def _make_request(self, data: vf.TaskData) -> Request:
        """Return the prompt of a task, whose last message is the user's text."""
        system, prompt = self.resolve_prompt(data)
        messages = [Message("system", system)] if system else []
        if isinstance(prompt, str):
            messages.append(Message("user", prompt))
        else:
            messages += [Message(message.role, message.content) for message in prompt or []]
        *earlier_messages, last_message = messages
        fields = getattr(data, "sampling", {})
        sampling = Sampling(temperature=None, extra=fields)
        return Request(Prompt(Prefix(tuple(earlier_messages)), last_message.content), sampling, "")


def _make_solver(
    loop: ToolLoop | None, functions: Sequence[FunctionTool], max_turns: int | None
) -> Solver:
    """Return the solver of a rollout with at most `max_turns` turns; the last turn is an answer."""
    sources: list[ToolSource] = [loop.source] if loop is not None else []
    if functions:
        sources.append(FunctionTools(functions))
    if not sources:
        return Solver()
    turns = loop.agent.max_iterations if loop is not None else max_turns or MAX_TURNS
    if max_turns is not None:
        turns = max(1, min(turns, max_turns - 1))
    agent = loop.agent if loop is not None else AgentLimits()
    return ToolLoop(CombinedTools(sources), agent.model_copy(update={"max_iterations": turns}))


class _StoppedRollout(KejuError):
    """verifiers has ended the rollout (``max_turns``)."""


class _RolloutModel(Model):
    """The model behind verifiers' endpoint."""

    name = "policy"
    acts = True

    def __init__(self, trace: vf.Trace, address: str, secret: str, model: str) -> None:
        self._trace = trace
        self._address = address
        self._secret = secret
        self._redact = Redactor([secret])
        self._bodies = BodyBuilder(model)
        self._last_request: Request | None = None
        self._attempts = 0
        """How often `_last_request` was sent."""

    async def ask(self, request: Request, *, timeout: float) -> Reply:
        """Send a request once, with the number of the attempt for verifiers."""
        self._attempts = self._attempts + 1 if request is self._last_request else 0
        self._last_request = request
        headers = {"Authorization": f"Bearer {self._secret}"}
        if self._attempts:
            headers[RETRY_COUNT] = str(self._attempts)
        started = perf_counter()
        body = self._bodies.build(request)
        try:
            reply = await _get_transport().post(self._address, body, timeout, headers=headers)
        except TransportError as error:
            return Reply(error=Fault(error.kind, error.message))
        if reply.status == 200:
            return normalise(reply.body, request, perf_counter() - started, self._redact)
        if self._trace.stop_condition is not None:
            raise _StoppedRollout(
                f"verifiers has stopped the rollout: {self._trace.stop_condition}"
            )
        return Reply(error=refusal(reply.status, reply.body, reply.header, self._redact))
