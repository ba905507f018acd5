"""What the episodes of a job did with their tools, by unit, as the transcripts tell it."""

from __future__ import annotations

from typing import NamedTuple

from keju.types import CallKind, Episode, Stop


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
    """What an episode did; calls that were never answered are none."""
    names: dict[str, str] = {}
    calls: list[Call] = []
    for turn in episode.turns:
        if turn.role == "assistant":
            names = {call.id: call.name for call in turn.calls}
        elif turn.role == "tool":
            tool = names.get(turn.call, "")
            calls.append(Call(tool, turn.kind, turn.seconds, turn.queued, len(turn.text)))
    kernel = episode.facts.get("kernel", {})
    return ToolUse(episode.stop, episode.requests, tuple(calls), bool(kernel.get("unsafe")))
