"""The tool loop: a model calls tools until it answers, or until a limit ends the episode.

    prompt ──> reply ──> no calls: the answer                            stop `final`
                 │
               calls ──> all at the same time, answered in order ──> next reply
                 │
               `max_iterations` turns with calls: one more request, the same tools, none callable

Every turn goes through the channel, which retries failures: a 429 in turn seven costs a wait and
never the episode. The conversation only grows, so every turn can use the endpoint's prefix cache.
The model receives the error of a failed call. A failure of the tools themselves, or of the
endpoint, makes the sample an error.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Coroutine, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from keju.benchmarks.expectations import STATE
from keju.config import AgentLimits, Price
from keju.engine.channel import Channel, ReplyWithAttempts
from keju.engine.limited_solver import QuestionMeter
from keju.engine.solver import Solver
from keju.errors import ConfigError, EndpointError, KejuError, Notice
from keju.models.base import Model, fault_text
from keju.models.tokens import schema_tokens
from keju.runs.manifest import TOOLS_HASH
from keju.scores.question_limits import QuestionLimits
from keju.solvers.text_tool_calls import TextualToolCalls
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

if TYPE_CHECKING:
    from keju.solvers.state_checks import StateChecker

ANSWERED: frozenset[Stop] = frozenset(
    {"final", "submitted", "no_tool_call", "forced_answer", "max_iterations_forced"}
)
"""Stop reasons of episodes that the model itself ended."""
LONGEST = 8 << 20
"""Longest transcript in characters: more than any context, and a sensible limit for a line of the
journal."""
MOST_NOTES = 4 * LONGEST
"""Most characters of all notes about the state of the tools in one transcript."""
SILENT_TURNS = 3
"""Replies without a call, in one episode, after which an episode that needs a submission ends."""
MOST_CALLS = 64
"""Calls of one turn that are executed; the model is informed that the remaining ones were not."""
PROBE = Prompt(Prefix(), "Say OK.")
PROBE_SECONDS = 60.0


class NativeToolCalls:
    """Tool calls in the endpoint's own format."""

    closing = ""

    def encode_request(
        self, request: Request, tools: tuple[Tool, ...], turns: tuple[Turn, ...], choice: ToolChoice
    ) -> Request:
        """Return the request of a turn."""
        return replace(request, tools=tools, turns=turns, tool_choice=choice)

    def decode_reply(self, reply: Reply) -> Turn:
        """Return the model's own turn."""
        return Turn(
            role="assistant",
            text=reply.text,
            reasoning=reply.reasoning,
            calls=reply.calls,
            seconds=round(reply.seconds, 3),
            usage=reply.usage,
            native=reply.native,
        )

    def encode_turn(self, turn: Turn) -> Turn:
        """Return that turn as it is sent back."""
        return turn

    def encode_results(self, answers: Sequence[Turn]) -> Sequence[Turn]:
        """Return the results as they are sent."""
        return answers


class ToolLoop(Solver):
    """Lets a model use the tools of a source, within the limits of `agent`."""

    def __init__(
        self,
        source: ToolSource,
        agent: AgentLimits,
        price: Price | None = None,
        state_checker: StateChecker | None = None,
    ) -> None:
        self.source = source
        self.agent = agent
        self.limits = QuestionLimits.of(agent, price)
        self.protocol = TextualToolCalls() if agent.protocol == "text" else NativeToolCalls()
        self.state_checker = state_checker
        """Checks the state after each episode, if questions ask for that."""
        self._overhead: dict[str, Any] = {}
        self._notices: list[Notice] = []

    def check(self, model: Model) -> None:
        """Raise ConfigError if the model cannot act with these settings."""
        if not model.acts:
            raise ConfigError("model_without_turns", model=model.name)
        if self.agent.hide_old_env_states and model.fixed_history:
            raise ConfigError("history_is_fixed", model=model.name)

    async def open(self) -> None:
        """Start the tools; raise ConfigError if the arm has none."""
        await self.source.open()
        if not self.source.tools:
            raise ConfigError("arm_without_tools")
        if self.state_checker is not None:
            await self.state_checker.open()

    async def close(self) -> None:
        """Stop the tools."""
        try:
            if self.state_checker is not None:
                await self.state_checker.close()
        finally:
            await self.source.close()

    async def preflight(self, channel: Channel, sampling: Sampling) -> Sequence[Notice]:
        """Find out whether the endpoint accepts tools, and how many tokens their definitions take.

        Raises ConfigError if the model certainly does not receive the tools.
        """
        model, tools = channel.model, self.source.tools
        self._overhead = {
            "schema_tokens": schema_tokens(tools),
            "schema_tokens_from": "estimate",
        }
        if isinstance(self.protocol, TextualToolCalls):
            return ()
        probe = Request(PROBE, model.briefly(sampling), hash="")
        plain = await model.ask(probe, timeout=PROBE_SECONDS)
        if plain.error is not None:
            return ()  # its failure has nothing to do with tools
        offered = await model.ask(replace(probe, tools=tools), timeout=PROBE_SECONDS)
        if offered.error is not None and offered.error.kind == "bad_request":
            raise EndpointError("endpoint_without_tools", problem=fault_text(offered.error))
        tool_tokens = offered.usage.input - plain.usage.input
        if offered.error is None and not tool_tokens and plain.usage.input:
            if model.counts:
                raise ConfigError("model_not_given_tools", model=model.name)
            self._notices = [Notice("tools_take_no_tokens")]
        elif plain.usage.input and tool_tokens > 0:
            self._overhead = {"schema_tokens": tool_tokens, "schema_tokens_from": "endpoint"}
        return self._notices

    def facts(self) -> dict[str, Any]:
        """Return the tools by name, the hash of their definitions, and the facts of their
        source."""
        digest = hashlib.sha256(msgspec.json.encode(self.source.tools)).hexdigest()
        names = [tool.name for tool in self.source.tools]
        tool_facts = {"tools": names, TOOLS_HASH: digest[:16], **self._overhead}
        return tool_facts | {"sources": self.source.facts()}

    def statistics(self) -> dict[str, Any]:
        """Return the statistics of the session's tools."""
        return self.source.statistics()

    @property
    def notices(self) -> list[Notice]:
        """Notices about the tools for readers of the results."""
        return self._notices + self.source.notices

    async def __call__(
        self, request: Request, channel: Channel, sample: Sample, epoch: int
    ) -> ReplyWithAttempts:
        """Run one episode; an episode that its channel breaks off has no reply."""
        episode = _RunningEpisode(self, request, channel)
        box: Toolbox | None = None
        state: dict[str, Any] | None = None
        try:
            try:
                async with self.source.episode(sample, epoch) as box:
                    await episode.run(box)
                    if self.state_checker is not None and episode.has_reply:
                        state = await self.state_checker.check(sample, box.folder)
            finally:
                # Only a kernel that has ended knows its exit reason and peak memory.
                if box is not None:
                    episode.facts = box.facts() | ({} if state is None else {STATE: state})
        except ToolsLost as error:
            episode.fail(error.stop, Fault("tools", error.message))
        except KejuError:
            raise
        except Exception as error:  # its text may hold a secret
            problem = f"the tools broke down ({type(error).__name__})"
            episode.fail("server_lost", Fault("tools", problem))
        exchange = episode.exchange()
        self.episodes_finished += exchange.reply.requests > 0
        return exchange


class _RunningEpisode:
    """One sample that a model works on with tools."""

    def __init__(self, loop: ToolLoop, request: Request, channel: Channel) -> None:
        self._loop = loop
        self._agent, self._protocol = loop.agent, loop.protocol
        self._request, self._channel = request, channel
        self._turns: list[Turn] = []
        """The transcript."""
        self._sent_turns: list[Turn] = []
        """The turns that the model receives."""
        self._note: Turn | None = None
        self._meter = QuestionMeter(loop.limits)
        self._faults: tuple[Fault, ...] = ()
        self._size = 0
        """Characters that the model and its tools wrote."""
        self._notes_size = 0
        """Characters of the notes about the state of the tools, which are very repetitive."""
        self._reply = Reply()
        self._stop: Stop | None = None
        self._cut_by: CutBy = ""
        self._final: str | None = None
        self.facts: dict[str, Any] = {}

    async def run(self, box: Toolbox) -> None:
        """Alternate requests and tool calls until the episode ends."""
        self._submits = box.submits
        silent_turns = 0
        for _ in range(self._agent.max_iterations):
            turn = await self._ask(box, "auto")
            if turn is not None and turn.calls:
                await self._run_calls(box, turn.calls)
            elif turn is not None:
                silent_turns += 1
                if box.reminder and silent_turns < SILENT_TURNS:
                    self._add_turn(Turn(role="user", text=box.reminder))
                else:
                    self._set_stop("no_tool_call" if box.submits else "final")
            self._check_limits()
            if self._stop is not None:
                return
        closing = "\n\n".join(filter(None, (box.closing, self._protocol.closing)))
        if closing:
            self._add_turn(Turn(role="user", text=closing))
        if await self._ask(box, "none") is not None:
            self._set_stop("forced_answer" if box.submits else "max_iterations_forced")

    async def _ask(self, box: Toolbox, choice: ToolChoice) -> Turn | None:
        """Return the model's next turn; None if there is none, which ends the episode."""
        request = self._protocol.encode_request(
            self._request, box.tools, tuple(self._sent_turns), choice
        )
        exchange = await self._channel.ask(request, time_limit=self._meter.seconds_left)
        self._loop.episodes_begun += not self._meter.replies
        reply, fault = exchange.reply, exchange.reply.error
        self._faults += exchange.faults
        if reply.episode is not None and fault is None:  # a reply of a stored run
            self._reply = reply
            self._set_stop("final")
            return None
        cut_by = self._meter.add_exchange(exchange, self._channel)
        if fault is None:
            self._reply = reply
            turn = self._protocol.decode_reply(reply)
            self._turns.append(turn)
            self._sent_turns.append(self._protocol.encode_turn(turn))
            self._size += len(turn.text) + len(turn.reasoning)
            self._size += sum(len(call.name) + len(call.arguments) for call in turn.calls)
            if cut_by is None:
                return turn
            self._end_at_limit(cut_by)
            return None
        if fault.kind == "context_length" and self._turns:
            self._set_stop("context_overflow", "context")
        elif fault.kind == "context_length":  # the question alone does not fit
            self.fail("context_overflow", fault)
        elif fault.kind == "bad_request" and choice == "none":
            self._set_stop("max_iterations", "turns")  # an endpoint without tool_choice
        elif cut_by is not None:
            self._end_at_limit(cut_by)
        else:
            self.fail("provider_error", fault)
        return None

    async def _run_calls(self, box: Toolbox, calls: tuple[ToolCall, ...]) -> None:
        """Run the calls of a turn at the same time, and answer each of them, in order."""
        clock = TurnClock(self._meter.seconds_left)
        with self._channel.while_open():
            calls_to_run = [
                self._run_call(box, number, call, clock) for number, call in enumerate(calls)
            ]
            results = (
                [await calls_to_run[0]]
                if len(calls_to_run) == 1
                else await _run_together(calls_to_run)
            )
        self._meter.seconds += clock.seconds
        answers = [
            Turn(
                role="tool",
                text=_cap_text(result.text, self._agent.max_result_chars),
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
        self._sent_turns += self._protocol.encode_results(answers)
        self._final = next((result.final for result in results if result.final is not None), None)
        if self._final is not None:
            self._set_stop("submitted")
        elif (note := box.note()) is not None:
            if self._note is not None and self._agent.hide_old_env_states:
                self._sent_turns.remove(self._note)
            self._note = Turn(role="user", text=note)
            self._notes_size += len(note)
            self._add_turn(self._note)

    async def _run_call(
        self, box: Toolbox, number: int, call: ToolCall, clock: TurnClock
    ) -> ToolResult:
        """Run one call; the model receives the error of a wrong call."""
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
        timeout: asyncio.Timeout | None = None
        try:
            async with clock.call() as timeout:
                result = await box.call(call.name, arguments)
        except TimeoutError:
            if timeout is None or not timeout.expired():
                raise
            result = ToolResult("The call was broken off: the time is over.", "timeout")
        return result if result.seconds else result._replace(seconds=monotonic() - started)

    def _check_limits(self) -> None:
        """End the episode if a limit is reached, or if another such turn would exceed it."""
        if self._stop is not None:
            return
        if (limit := self._meter.find_exhausted()) is not None:
            self._end_at_limit(limit)
        elif self._size >= LONGEST or self._notes_size >= MOST_NOTES:
            self._set_stop("context_overflow", "context")

    def _add_turn(self, turn: Turn) -> None:
        self._turns.append(turn)
        self._sent_turns.append(turn)

    def _set_stop(self, stop: Stop, cut_by: CutBy = "") -> None:
        self._stop, self._cut_by = stop, cut_by

    def _end_at_limit(self, limit: LimitCut) -> None:
        """End the episode at a limit of its question."""
        stop: Stop = "episode_timeout" if self._submits else "timeout"
        self._set_stop(stop if limit == "time" else "budget", limit)

    @property
    def has_reply(self) -> bool:
        """Whether the episode has a new reply without an error."""
        return self._reply.error is None and self._reply.episode is None

    def fail(self, stop: Stop, fault: Fault) -> None:
        """End the episode with an error, unless it has ended already."""
        if self._stop is not None:
            return
        self._stop = stop
        self._reply = replace(self._reply, error=fault)

    def exchange(self) -> ReplyWithAttempts:
        """Return the episode as a reply: its text is the answer, its usage the sum of all turns.

        If a limit ended the episode before the answer, the last text counts as a reply that was cut
        off.
        """
        meter, reply = self._meter, self._reply
        if reply.episode is not None:  # a reply of a stored run
            return ReplyWithAttempts(reply, self._faults)
        assert self._stop is not None
        finish = reply.finish if self._stop in ANSWERED or reply.error is not None else CUT
        turns = tuple(replace(turn, native=b"", images=()) for turn in self._turns)
        episode = Episode(turns, self._stop, meter.replies, self.facts)
        reply = replace(
            reply,
            text=reply.text if self._final is None else self._final,
            finish="stop" if self._final is not None else finish,
            usage=meter.usage,
            seconds=meter.seconds,
            tool_calls=(),
            native=b"",
            episode=episode,
            cut_by=self._cut_by,
        )
        return ReplyWithAttempts(reply, self._faults, seconds=meter.seconds)


async def _run_together(calls: Sequence[Coroutine[Any, Any, ToolResult]]) -> list[ToolResult]:
    """Return the results of concurrent calls; if one of them ends the episode, cancel the
    others."""
    tasks = [asyncio.ensure_future(work) for work in calls]
    try:
        return await asyncio.gather(*tasks)
    finally:
        unfinished = [task for task in tasks if not task.done()]
        for task in unfinished:
            task.cancel()
        await asyncio.gather(*unfinished, return_exceptions=True)


def _cap_text(text: str, limit: int) -> str:
    """Return a result of at most `limit` characters, with a note about the missing part."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[cut here: {len(text) - limit} of {len(text)} characters are left out]"
