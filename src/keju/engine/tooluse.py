"""What the episodes of a job did with their tools, by unit, as the transcripts tell it."""

from __future__ import annotations

from typing import NamedTuple

from keju.types import CallKind, Episode, Stop, ToolCall

LOST: frozenset[Stop] = frozenset({"server_lost", "kernel_died"})
"""Stop reasons of episodes whose last calls took the tools with them."""


class Call(NamedTuple):
    """One call of a tool."""

    tool: str
    kind: CallKind
    seconds: float
    queued: float
    size: int
    """Characters of its result."""


class ToolUse(NamedTuple):
    """One episode."""

    stop: Stop
    requests: int
    calls: tuple[Call, ...]
    unsafe: bool = False
    """Whether its code ran without a sandbox."""


def tool_use(episode: Episode) -> ToolUse:
    """What an episode did: every call of the model, also those that were never answered.

    A call without an answer crashed its server, or the episode ended before it was carried out.
    """
    unanswered: list[ToolCall] = []
    calls: list[Call] = []
    for turn in episode.turns:
        if turn.role == "assistant":
            unanswered += turn.calls
        elif turn.role == "tool":
            call = next((call for call in unanswered if call.id == turn.call), None)
            if call is not None:
                unanswered.remove(call)
            tool = call.name if call is not None else ""
            calls.append(Call(tool, turn.kind, turn.seconds, turn.queued, len(turn.text)))
    kind: CallKind = "server_crash" if episode.stop in LOST else "broken_off"
    calls += [Call(call.name, kind, 0.0, 0.0, 0) for call in unanswered]
    kernel = episode.facts.get("kernel", {})
    return ToolUse(episode.stop, episode.requests, tuple(calls), bool(kernel.get("unsafe")))
