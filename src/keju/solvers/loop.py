"""The tool loop: a model acts until it answers, or until a limit ends the episode.

    prompt ──> reply ──> no calls: the answer                            stop `final`
                 │
               calls ──> all at the same time, answered in order ──> next reply
                 │
               `max_iterations` turns with calls: one more request, the same tools, none callable

Every turn goes through the channel, which repeats what failed: a 429 in turn seven costs a wait and
never the episode. The conversation only grows, so that the endpoint's prefix cache is hit in every
turn. What went wrong with a call is told to the model; what went wrong with the tools themselves,
or with the endpoint, makes the sample an error.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Coroutine, Sequence
from time import monotonic
from typing import Any

import msgspec
from msgspec.structs import replace

from keju.config import Agent, Price
from keju.engine.channel import Channel, Exchange
from keju.engine.question_limits import QuestionLimits, QuestionMeter
from keju.engine.solver import Solver
from keju.errors import ConfigError, EndpointError, KejuError, Notice
from keju.models.base import Model, fault_text
from keju.models.tokens import schema_tokens
from keju.runs.manifest import TOOLS_HASH
from keju.solvers.textual import Textual
from keju.solvers.toolbox import Toolbox, ToolResult, ToolsLost, ToolSource
from keju.solvers.turn_clock import TurnClock
from keju.types import (
    CUT,
    CutBy,
    Episode,
    Fault,
    LimitCut,
    Prefix,
    Prompt,
    Reply,
    Request,
    Sample,
    Sampling,
    Stop,
    Tool,
    ToolCall,
    ToolChoice,
    Turn,
)

ANSWERED: frozenset[Stop] = frozenset(
    {"final", "submitted", "no_tool_call", "forced_answer", "max_iterations_forced"}
)
"""Stop reasons of episodes that the model itself brought to their end."""
LONGEST = 8 << 20
"""Characters of a transcript: more than any context holds, and as much as a journal's line should.
"""
MOST_NOTES = 4 * LONGEST
"""Characters of all notes about the state of the tools in one transcript."""
SILENT_TURNS = 3
"""Replies without a call, in one episode, after which a model that has to submit gives up."""
MOST_CALLS = 64
"""Calls of one turn that are carried out; the model is told that the rest were not."""
PROBE = Prompt(Prefix(), "Say OK.")
PROBE_SECONDS = 60.0


class Native:
    """Tool calls as the endpoint knows them."""

    closing = ""

    def asked(
        self, request: Request, tools: tuple[Tool, ...], turns: tuple[Turn, ...], choice: ToolChoice
    ) -> Request:
        """The request of a turn."""
        return replace(request, tools=tools, turns=turns, tool_choice=choice)

    def said(self, reply: Reply) -> Turn:
        """The model's own turn."""
        return Turn(
            role="assistant",
            text=reply.text,
            reasoning=reply.reasoning,
            calls=reply.calls,
            seconds=round(reply.seconds, 3),
            usage=reply.usage,
            native=reply.native,
        )

    def sent(self, turn: Turn) -> Turn:
        """That turn as it is sent back."""
        return turn

    def told(self, answers: Sequence[Turn]) -> Sequence[Turn]:
        """The results as they are sent."""
        return answers


class ToolLoop(Solver):
    """Lets a model use the tools of a source, within the limits of `agent`."""

    def __init__(self, source: ToolSource, agent: Agent, price: Price | None = None) -> None:
        self.source = source
        self.agent = agent
        self.limits = QuestionLimits.of(agent, price)
        self.protocol = Textual() if agent.protocol == "text" else Native()
        self._overhead: dict[str, Any] = {}
        self._unseen: list[Notice] = []

    def check(self, model: Model) -> None:
        """ConfigError where the model cannot act as the settings say."""
        if not model.acts:
            raise ConfigError("model_without_turns", model=model.name)
        if self.agent.hide_old_env_states and model.fixed_history:
            raise ConfigError("history_is_fixed", model=model.name)

    async def open(self) -> None:
        """Start the tools; an arm without any is a mistake."""
        await self.source.open()
        if not self.source.tools:
            raise ConfigError("arm_without_tools")

    async def close(self) -> None:
        """Stop the tools."""
        await self.source.close()

    async def knock(self, channel: Channel, sampling: Sampling) -> Sequence[Notice]:
        """Find out whether the endpoint takes tools, and how many tokens their definitions take.

        ConfigError where it is certain that the model is not given them.
        """
        model, tools = channel.model, self.source.tools
        self._overhead = {
            "schema_tokens": schema_tokens(tools),
            "schema_tokens_from": "estimate",
        }
        if isinstance(self.protocol, Textual):
            return ()
        probe = Request(PROBE, model.briefly(sampling), hash="")
        plain = await model.ask(probe, timeout=PROBE_SECONDS)
        if plain.error is not None:
            return ()  # what is wrong with it has nothing to do with tools
        offered = await model.ask(replace(probe, tools=tools), timeout=PROBE_SECONDS)
        if offered.error is not None and offered.error.kind == "bad_request":
            raise EndpointError("endpoint_without_tools", problem=fault_text(offered.error))
        taken = offered.usage.input - plain.usage.input
        if offered.error is None and not taken and plain.usage.input:
            if model.counts:
                raise ConfigError("model_not_given_tools", model=model.name)
            self._unseen = [Notice("tools_take_no_tokens")]
        elif plain.usage.input and taken > 0:
            self._overhead = {"schema_tokens": taken, "schema_tokens_from": "endpoint"}
        return self._unseen

    def facts(self) -> dict[str, Any]:
        """The tools by name, the hash of their definitions, and what their source tells."""
        digest = hashlib.sha256(msgspec.json.encode(self.source.tools)).hexdigest()
        names = [tool.name for tool in self.source.tools]
        shown = {"tools": names, TOOLS_HASH: digest[:16], **self._overhead}
        return shown | {"sources": self.source.facts()}

    def statistics(self) -> dict[str, Any]:
        """What the session was like for the tools."""
        return self.source.statistics()

    @property
    def notices(self) -> list[Notice]:
        """What a reader of the results must know of the tools."""
        return self._unseen + self.source.notices

    async def __call__(
        self, request: Request, channel: Channel, sample: Sample, epoch: int
    ) -> Exchange:
        """One episode; an episode that its channel breaks off has no reply."""
        episode = _Episode(self, request, channel)
        box: Toolbox | None = None
        try:
            try:
                async with self.source.episode(sample, epoch) as box:
                    await episode.run(box)
            finally:
                # Only a kernel that has ended knows how it ended and how much memory it took.
                if box is not None:
                    episode.facts = box.facts()
        except ToolsLost as lost:
            episode.fail(lost.stop, Fault("tools", lost.message))
        except KejuError:
            raise
        except Exception as error:  # its text may hold a secret
            problem = f"the tools broke down ({type(error).__name__})"
            episode.fail("server_lost", Fault("tools", problem))
        exchange = episode.exchange()
        self.episodes_finished += exchange.reply.requests > 0
        return exchange


class _Episode:
    """One sample in the hands of a model."""

    def __init__(self, loop: ToolLoop, request: Request, channel: Channel) -> None:
        self._loop = loop
        self._agent, self._protocol = loop.agent, loop.protocol
        self._request, self._channel = request, channel
        self._turns: list[Turn] = []
        """The transcript."""
        self._sent: list[Turn] = []
        """What the model is sent of it."""
        self._note: Turn | None = None
        self._meter = QuestionMeter(loop.limits)
        self._faults: tuple[Fault, ...] = ()
        self._size = 0
        """Characters of what the model and its tools wrote."""
        self._notes_size = 0
        """Characters of the notes about the state of the tools, which repeat much of it."""
        self._reply = Reply()
        self._stop: Stop | None = None
        self._cut_by: CutBy = ""
        self._final: str | None = None
        self.facts: dict[str, Any] = {}

    async def run(self, box: Toolbox) -> None:
        """Ask and call in turns until the episode ends."""
        self._submits = box.submits
        silent = 0
        for _ in range(self._agent.max_iterations):
            turn = await self._ask(box, "auto")
            if turn is not None and turn.calls:
                await self._act(box, turn.calls)
            elif turn is not None:
                silent += 1
                if box.reminder and silent < SILENT_TURNS:
                    self._say(Turn(role="user", text=box.reminder))
                else:
                    self._end("no_tool_call" if box.submits else "final")
            self._look_at_limits()
            if self._stop is not None:
                return
        closing = "\n\n".join(filter(None, (box.closing, self._protocol.closing)))
        if closing:
            self._say(Turn(role="user", text=closing))
        if await self._ask(box, "none") is not None:
            self._end("forced_answer" if box.submits else "max_iterations_forced")

    async def _ask(self, box: Toolbox, choice: ToolChoice) -> Turn | None:
        """The model's next turn; None if there is none, which ends the episode."""
        request = self._protocol.asked(self._request, box.tools, tuple(self._sent), choice)
        exchange = await self._channel.ask(request, time_limit=self._meter.seconds_left)
        self._loop.episodes_begun += not self._meter.replies
        reply, fault = exchange.reply, exchange.reply.error
        self._faults += exchange.faults
        if reply.episode is not None and fault is None:  # one that a stored run has
            self._reply = reply
            self._end("final")
            return None
        cut_by = self._meter.add_exchange(exchange, self._channel)
        if fault is None:
            self._reply = reply
            turn = self._protocol.said(reply)
            self._turns.append(turn)
            self._sent.append(self._protocol.sent(turn))
            self._size += len(turn.text) + len(turn.reasoning)
            self._size += sum(len(call.name) + len(call.arguments) for call in turn.calls)
            if cut_by is None:
                return turn
            self._cut(cut_by)
            return None
        if fault.kind == "context_length" and self._turns:
            self._end("context_overflow", "context")
        elif fault.kind == "context_length":  # the question alone does not fit
            self.fail("context_overflow", fault)
        elif fault.kind == "bad_request" and choice == "none":
            self._end("max_iterations", "turns")  # an endpoint that knows no tool_choice
        elif cut_by is not None:
            self._cut(cut_by)
        else:
            self.fail("provider_error", fault)
        return None

    async def _act(self, box: Toolbox, calls: tuple[ToolCall, ...]) -> None:
        """Carry out the calls of a turn at the same time, and answer each of them, in order."""
        clock = TurnClock(self._meter.seconds_left)
        with self._channel.while_open():
            works = [self._call(box, number, call, clock) for number, call in enumerate(calls)]
            results = [await works[0]] if len(works) == 1 else await _together(works)
        self._meter.seconds += clock.seconds
        answers = [
            Turn(
                role="tool",
                text=_capped(result.text, self._agent.max_result_chars),
                call=call.id,
                kind=result.kind,
                seconds=round(result.seconds, 3),
                queued=round(result.queued, 3),
                images=result.images,
            )
            for call, result in zip(calls, results, strict=True)
        ]
        self._turns += answers
        self._size += sum(len(answer.text) for answer in answers)
        self._sent += self._protocol.told(answers)
        self._final = next((r.final for r in results if r.final is not None), None)
        if self._final is not None:
            self._end("submitted")
        elif (note := box.note()) is not None:
            if self._note is not None and self._agent.hide_old_env_states:
                self._sent.remove(self._note)
            self._note = Turn(role="user", text=note)
            self._notes_size += len(note)
            self._say(self._note)

    async def _call(
        self, box: Toolbox, number: int, call: ToolCall, clock: TurnClock
    ) -> ToolResult:
        """Carry out one call; whatever is wrong with it is told to the model."""
        names = [tool.name for tool in box.tools]
        if number >= MOST_CALLS:
            text = f"Not carried out: more than {MOST_CALLS} calls at once. Call it again."
            return ToolResult(text, "tool_error")
        if not call.name:
            text = "The call names no tool, or is not valid JSON. Write it again."
            return ToolResult(text, "bad_arguments")
        if call.name not in names:
            return ToolResult(
                f"There is no tool '{call.name}'. The tools are: {', '.join(names)}.",
                "unknown_tool",
            )
        try:
            arguments = msgspec.json.decode(call.arguments or "{}")
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
            problem = str(error) or type(error).__name__
            text = f"The arguments are not valid JSON ({problem}). Write the call again."
            return ToolResult(text, "bad_arguments")
        if not isinstance(arguments, dict):
            text = "The arguments must be a JSON object. Write the call again."
            return ToolResult(text, "bad_arguments")
        started = monotonic()
        time: asyncio.Timeout | None = None
        try:
            async with clock.call() as time:
                result = await box.call(call.name, arguments)
        except TimeoutError:
            if time is None or not time.expired():
                raise
            result = ToolResult("The call was broken off: the time is over.", "timeout")
        return result if result.seconds else result._replace(seconds=monotonic() - started)

    def _look_at_limits(self) -> None:
        """End the episode where a limit is reached, or does not pay for another such turn."""
        if self._stop is not None:
            return
        if (limit := self._meter.find_exhausted()) is not None:
            self._cut(limit)
        elif self._size >= LONGEST or self._notes_size >= MOST_NOTES:
            self._end("context_overflow", "context")

    def _say(self, turn: Turn) -> None:
        self._turns.append(turn)
        self._sent.append(turn)

    def _end(self, stop: Stop, cut_by: CutBy = "") -> None:
        self._stop, self._cut_by = stop, cut_by

    def _cut(self, limit: LimitCut) -> None:
        """End the episode at a limit of its question."""
        stop: Stop = "episode_timeout" if self._submits else "timeout"
        self._end(stop if limit == "time" else "budget", limit)

    def fail(self, stop: Stop, fault: Fault) -> None:
        """End the episode with an error, unless it had come to its end before."""
        if self._stop is not None:
            return
        self._stop = stop
        self._reply = replace(self._reply, error=fault)

    def exchange(self) -> Exchange:
        """The episode as a reply: its text is the answer, its usage that of all turns.

        Where a limit ended it before the answer, what was said last is a reply that was cut off.
        """
        meter, reply = self._meter, self._reply
        if reply.episode is not None:  # one that a stored run holds
            return Exchange(reply, self._faults)
        assert self._stop is not None
        finish = reply.finish if self._stop in ANSWERED or reply.error is not None else CUT
        turns = tuple(replace(turn, native=b"", images=()) for turn in self._turns)
        told = Episode(turns, self._stop, meter.replies, self.facts)
        reply = replace(
            reply,
            text=reply.text if self._final is None else self._final,
            finish="stop" if self._final is not None else finish,
            usage=meter.usage,
            seconds=meter.seconds,
            tool_calls=(),
            native=b"",
            episode=told,
            cut_by=self._cut_by,
        )
        return Exchange(reply, self._faults, seconds=meter.seconds)


async def _together(works: Sequence[Coroutine[Any, Any, ToolResult]]) -> list[ToolResult]:
    """The results of calls that run at the same time; none goes on where one ends the episode."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        return await asyncio.gather(*tasks)
    finally:
        left = [task for task in tasks if not task.done()]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


def _capped(text: str, most: int) -> str:
    """A result of at most `most` characters; a note says what is missing."""
    if len(text) <= most:
        return text
    return f"{text[:most]}\n[cut here: {len(text) - most} of {len(text)} characters are left out]"
