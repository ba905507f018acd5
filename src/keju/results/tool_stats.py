"""Statistics of the tools of an arm: counts by tool, times, errors and costs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from keju.benchmarks.grading import GRADED
from keju.errors import Notice
from keju.results.schema import ToolRow, ToolStats
from keju.scores.exam_scores import ExamScores
from keju.scores.tally import ToolCallStats
from keju.stats.intervals import mean, quantile

RARELY = 0.05
"""If the share of episodes with a call is below this, the offered tools hardly matter."""
MANY_FAIL, FEWEST_CALLS = 0.5, 5
"""Tools seem broken if more than this share of at least this many calls failed."""
UNKNOWN = "unknown_tool"
"""The kind of calls of tools that do not exist. They are counted, but belong to no row of a
tool."""


def tool_stats(job: ExamScores, facts: Mapping[str, Any]) -> ToolStats:
    """Return how the tools of an arm were used.

    `facts` comes from the manifest of the run: the names of the arm's tools and their costs.
    """
    offered = [str(name) for name in facts.get("tools", ())]
    uses = job.uses.values()
    by_tool: dict[str, list[ToolCallStats]] = defaultdict(list)
    users: Counter[str] = Counter()
    for use in uses:
        for call in use.calls:
            by_tool[call.tool].append(call)
        users.update({call.tool for call in use.calls})
    used_tools = [name for name in by_tool if name in offered or not offered]
    with_calls = sum(bool(use.calls) for use in uses)
    tally = job.tallies[0]
    scores: dict[bool, list[float]] = {True: [], False: []}
    for unit, use in job.uses.items():
        if tally.outcomes[unit] in GRADED:
            scores[bool(use.calls)].append(tally.values[unit])
    return ToolStats(
        offered=len(offered),
        used=len(used_tools),
        episodes=len(job.uses),
        with_calls=with_calls,
        calls=sum(len(use.calls) for use in uses),
        failed=sum(call.kind != "ok" for use in uses for call in use.calls),
        requests=sum(use.requests for use in uses),
        stops=dict(Counter(use.stop for use in uses).most_common()),
        unknown=sum(call.kind == UNKNOWN for calls in by_tool.values() for call in calls),
        tools=tuple(
            _tool_row(name, by_tool.get(name, []), users[name]) for name in offered or used_tools
        ),
        score_with_calls=mean(scores[True]),
        score_without_calls=mean(scores[False]),
        schema_tokens=facts.get("schema_tokens"),
        schema_tokens_from=str(facts.get("schema_tokens_from", "")),
    )


def tool_notices(job: ExamScores, stats: ToolStats, facts: Mapping[str, Any]) -> Iterator[Notice]:
    """Yield notices about anything that could mislead about an arm with tools.

    Calls of a placebo are meant to fail, so they cause no notice.
    """
    if stats.offered and stats.with_calls < RARELY * stats.episodes:
        yield Notice("tools_hardly_used", {"part": stats.with_calls, "whole": stats.episodes})
    if facts.get("placebo"):
        return
    if stats.calls >= FEWEST_CALLS and stats.failed > MANY_FAIL * stats.calls:
        kinds = Counter(call.kind for use in job.uses.values() for call in use.calls)
        del kinds["ok"]
        ((kind, n),) = kinds.most_common(1)
        values = {"part": stats.failed, "whole": stats.calls, "kind": kind, "n": n}
        yield Notice("tools_failing", values)


def _tool_row(name: str, calls: Sequence[ToolCallStats], users: int) -> ToolRow:
    spans = sorted(call.seconds for call in calls)
    return ToolRow(
        name=name,
        calls=len(calls),
        samples=users,
        kinds=dict(Counter(call.kind for call in calls).most_common()),
        seconds_p50=quantile(spans, 0.5),
        seconds_p95=quantile(spans, 0.95),
        seconds_max=spans[-1] if spans else None,
        queued=sum(call.queued for call in calls),
        result_chars=sum(call.size for call in calls),
    )
