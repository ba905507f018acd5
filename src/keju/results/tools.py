"""How the tools of an arm were used, out of the transcripts of its episodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from keju.types import UNSCORED, Record, Reply, Turn

UNUSED_SHARE = 0.05
"""Below this share of samples with a call, tools that were offered say nothing about the model."""


def calls_of(reply: Reply) -> Iterator[tuple[str, Turn]]:
    """The calls of an episode: the name of the tool, and the turn that answers."""
    names: dict[str, str] = {}
    for turn in reply.episode.turns if reply.episode is not None else ():
        names |= {call.id: call.name for call in turn.calls}
        if turn.role == "tool":
            yield names.get(turn.call, ""), turn


def iterations_of(reply: Reply) -> int:
    """How often the model had its turn."""
    if reply.episode is None:
        return 1
    return sum(turn.role == "assistant" for turn in reply.episode.turns)


class ToolUse:
    """Counts over the episodes of one arm; each record is added once."""

    def __init__(self, offered: Iterable[str] = ()) -> None:
        self.offered = list(offered)
        self.samples = 0
        self._tools: dict[str, _OneTool] = {name: _OneTool() for name in self.offered}
        self._iterations = 0
        self._scores: dict[bool, list[float]] = {True: [], False: []}
        """Scores of samples that used a tool, and of those that did not."""

    def add(self, record: Record) -> None:
        """Count an episode."""
        self.samples += 1
        self._iterations += iterations_of(record.reply)
        used: set[str] = set()
        for name, turn in calls_of(record.reply):
            tool = self._tools.setdefault(name, _OneTool())
            tool.kinds[turn.kind] += 1
            tool.seconds.append(turn.seconds)
            tool.queued.append(turn.queued)
            tool.characters += len(turn.text)
            used.add(name)
        for name in used:
            self._tools[name].samples += 1
        score = record.readings[0].score if record.readings else None
        if score is not None and score.outcome not in UNSCORED:
            self._scores[bool(used)].append(score.value)

    @property
    def calls(self) -> int:
        """Calls of all tools."""
        return sum(tool.kinds.total() for tool in self._tools.values())

    @property
    def users(self) -> int:
        """Samples with a call, as far as they have a score."""
        return len(self._scores[True])

    def document(self) -> dict[str, Any]:
        """The counts, tool by tool and in all."""
        known = [name for name in self.offered if self._tools[name].kinds]
        failed = sum(tool.failures for tool in self._tools.values())
        scored = len(self._scores[True]) + len(self._scores[False])
        return {
            "tools": {name: tool.document() for name, tool in self._tools.items()},
            "offered": len(self.offered),
            "used": len(known),
            "coverage": len(known) / len(self.offered) if self.offered else None,
            "calls": self.calls,
            "failures": failed,
            "samples": self.samples,
            "samples_with_calls": self.users,
            "share_with_calls": self.users / scored if scored else None,
            "calls_per_sample": self.calls / self.samples if self.samples else None,
            "iterations_per_sample": self._iterations / self.samples if self.samples else None,
            "score_with_calls": _mean(self._scores[True]),
            "score_without_calls": _mean(self._scores[False]),
        }


class _OneTool:
    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()
        self.seconds: list[float] = []
        self.queued: list[float] = []
        self.characters = 0
        self.samples = 0

    @property
    def failures(self) -> int:
        """Calls that did not end well."""
        return self.kinds.total() - self.kinds["ok"]

    def document(self) -> dict[str, Any]:
        calls = self.kinds.total()
        return {
            "calls": calls,
            "kinds": dict(self.kinds),
            "samples": self.samples,
            "latency_p50": _quantile(self.seconds, 0.5),
            "latency_p95": _quantile(self.seconds, 0.95),
            "latency_max": max(self.seconds, default=None),
            "queued_max": max(self.queued, default=None),
            "result_characters": self.characters // calls if calls else None,
        }


def _quantile(values: list[float], share: float) -> float | None:
    """The smallest value that at least this share does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)] if ordered else None


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None
