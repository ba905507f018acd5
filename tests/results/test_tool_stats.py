"""How the tools of an arm were used, from the episodes of a job."""

from __future__ import annotations

from keju.results.tool_stats import tool_notices, tool_stats
from keju.scores.tally import EpisodeToolUse, ToolCallStats
from keju.types import CallKind
from tests.results.fake_exam import make_job


def call(tool: str, kind: CallKind = "ok", seconds: float = 1.0) -> ToolCallStats:
    return ToolCallStats(tool, kind, seconds, 0.5, 10)


def test_calls_are_counted_by_tool_and_by_how_they_ended() -> None:
    job = make_job("110", arm="tools")
    job.uses[0] = EpisodeToolUse("final", 3, (call("calc"), call("calc", "tool_error", 3.0)))
    job.uses[1] = EpisodeToolUse("final", 2, (call("nothing", "unknown_tool"),))
    job.uses[2] = EpisodeToolUse("final", 1, ())
    stats = tool_stats(job, {"tools": ["calc", "search"]})
    assert (stats.offered, stats.used, stats.episodes, stats.with_calls) == (2, 1, 3, 2)
    assert (stats.calls, stats.failed, stats.unknown, stats.requests) == (3, 2, 1, 6)
    calc, search = stats.tools
    assert (calc.calls, calc.samples, calc.kinds) == (2, 1, {"ok": 1, "tool_error": 1})
    assert (calc.seconds_max, calc.queued, calc.result_chars) == (3.0, 1.0, 20)
    assert (search.calls, search.seconds_max) == (0, None)
    assert (stats.score_with_calls, stats.score_without_calls) == (1.0, 0.0)


def test_unused_and_failing_tools_are_reported() -> None:
    job = make_job("1" * 30, arm="tools")
    for unit in range(30):
        job.uses[unit] = EpisodeToolUse("final", 1, ())
    facts = {"tools": ["calc"]}
    assert [n.code for n in tool_notices(job, tool_stats(job, facts), facts)] == [
        "tools_hardly_used"
    ]
    for unit in range(10):
        job.uses[unit] = EpisodeToolUse("final", 2, (call("calc", "timeout"),))
    (failing,) = tool_notices(job, tool_stats(job, facts), facts)
    assert (failing.code, failing.values["kind"], failing.values["n"]) == (
        "tools_failing",
        "timeout",
        10,
    )
    placebo = {**facts, "placebo": True}
    assert not list(tool_notices(job, tool_stats(job, placebo), placebo))
