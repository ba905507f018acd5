"""A run with arms in the format of mcpbr's results file: `metadata`, `summary`, `tasks`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import add
from typing import Any

import msgspec

from keju.config import Price
from keju.files import natural_key
from keju.messages import label_text
from keju.results.schema import ResultEntry, Results, ToolStats
from keju.runs.manifest import Manifest, format_now
from keju.scores.question_limits import find_stop
from keju.scores.tally import summarize_tool_use
from keju.scores.usage import UsageMeter
from keju.types import Record

NO_TARGET = "No target answer available"
WITHOUT_ARM = "baseline"
"""The name of the only arm of a run without arms."""
JOINED: Mapping[str, Callable[[Any, Any], Any]] = {
    "starts": add,
    "restarts": add,
    "noise_bytes": add,
    "start_seconds": max,
}
"""How the figures of a server are combined with those of earlier sessions."""


def mcpbr_document(
    results: Results,
    manifest: Manifest,
    records: Iterable[Record],
    price: Price | None = None,
) -> dict[str, Any]:
    """Return the whole file; `records` are the graded records that count."""
    arms = {str(arm["name"]): arm for arm in manifest.config.get("arms", [])}
    sessions = [session.tools for session in manifest.sessions if session.tools]
    entries = {entry.arm or WITHOUT_ARM: entry for entry in reversed(results.benchmarks)}
    summary: dict[str, Any] = {
        name: _summarise_arm(entry, _merge_servers([tools.get(name) or {} for tools in sessions]))
        for name, entry in reversed(entries.items())
    }
    if results.comparisons:
        summary["paired"] = msgspec.to_builtins(results.comparisons)
    return {
        "metadata": _build_metadata(results, manifest, arms),
        "summary": summary,
        "tasks": _describe_tasks(records, price),
    }


def _describe_tasks(records: Iterable[Record], price: Price | None) -> list[dict[str, Any]]:
    """Return the questions in natural order, each with its replies by arm."""
    tasks: dict[tuple[str, int], dict[str, Any]] = {}
    for record in records:
        task = tasks.setdefault((record.id, record.epoch), {"instance_id": record.id})
        if record.epoch:
            task["repeat"] = record.epoch
        task[record.arm or WITHOUT_ARM] = _describe_task(record, price)
    return [tasks[key] for key in sorted(tasks, key=lambda key: (natural_key(key[0]), key[1]))]


def _build_metadata(
    results: Results, manifest: Manifest, arms: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    servers = {name: arm["servers"] for name, arm in arms.items() if arm.get("servers")}
    server_metadata: dict[str, Any] = {"mcp_servers": servers}
    if len(servers) == 1:
        server_metadata = {"mcp_server": next(iter(servers.values()))[0]}
    elif all(name.startswith("mcp_server_") for name in servers):
        server_metadata = {name: server_list[0] for name, server_list in servers.items()}
    return {
        "timestamp": format_now(),
        "config": manifest.config,
        **(server_metadata if servers else {}),
        "run": results.run,
        "model": results.model,
        "complete": results.complete,
    }


def _merge_servers(
    sessions: Sequence[Mapping[str, Mapping[str, Any]]],
) -> dict[str, dict[str, Any]]:
    """Return the figures of an arm's servers over all sessions: counts are added up.

    The longest start time is kept. For values that cannot be added, such as the last output, the
    latest one counts.
    """
    servers: dict[str, dict[str, Any]] = {}
    for session in sessions:
        for name, figures in session.items():
            earlier = servers.get(name, {})
            merged = {
                key: join(earlier.get(key) or 0, figures.get(key) or 0)
                for key, join in JOINED.items()
                if key in figures
            }
            servers[name] = {**earlier, **figures, **merged}
    return servers


def _summarise_arm(entry: ResultEntry, servers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of one arm under the headline's reader, with its servers."""
    counts = entry.outcomes
    unscored = sum(counts.get(name, 0) for name in ("error", "ungraded", "unlabelled"))
    total, resolved = sum(counts.values()), counts["correct"]
    scored, usage = total - unscored, entry.usage
    metric = entry.metrics.get("accuracy")
    figures: dict[str, Any] = {
        "resolved": resolved,
        "total": total,
        "scored": scored,
        "errors": counts["error"],
        "rate": resolved / scored if scored else None,
        "ci95": list(metric.ci95) if metric is not None and metric.ci95 is not None else None,
        "outcomes": dict(counts),
        "tokens": {"input": usage.input_tokens, "output": usage.output_tokens},
        "cost": usage.cost if usage.cost is not msgspec.UNSET else None,
        "warnings": list(entry.warnings),
    }
    if isinstance(figures["cost"], float):
        figures["cost_per_resolved"] = figures["cost"] / resolved if resolved else None
    if entry.tools is not None:
        figures["tool_stats"] = _summarise_tools(entry.tools)
        if servers:
            figures["servers"] = servers
    return figures


def _summarise_tools(stats: ToolStats) -> dict[str, Any]:
    """Return how the tools were used, with each tool under its name."""
    document: dict[str, Any] = msgspec.to_builtins(stats)
    document["tools"] = {row.pop("name"): row for row in document.pop("tools", ())}
    return document | {"coverage": stats.used / stats.offered if stats.offered else None}


def _describe_task(record: Record, price: Price | None) -> dict[str, Any]:
    """Return one task in one arm."""
    reply, reading = record.reply, record.readings[0]
    outcome, episode = reading.score.outcome, record.reply.episode
    calls = summarize_tool_use(episode).calls if episode is not None else ()
    usage = Counter(call.tool for call in calls)
    failures = Counter(call.tool for call in calls if call.kind != "ok")
    document: dict[str, Any] = {"resolved": outcome == "correct"}
    if outcome == "unlabelled":
        document["error"] = NO_TARGET
    else:
        document |= {"agent_answer": reply.text, "target": record.target}
        document["extracted"] = reading.answer.value
    if reply.fault is not None:
        document["error"] = reply.fault.message
    tokens = reply.usage
    document |= {
        "outcome": outcome,
        "tokens": {"input": tokens.input, "output": tokens.output},
        "iterations": reply.requests,
        "tool_calls": usage.total(),
        "tool_usage": dict(usage),
        "tool_failures": dict(failures),
        "runtime_seconds": round(reply.seconds, 3),
        "stop_reason": find_stop(reply) or reply.finish,
    }
    if reply.cut_by:
        document["cut_by"] = reply.cut_by
    meter = UsageMeter()
    meter.add(tokens)
    if (cost := meter.cost(price)) is not None:
        document["cost"] = cost
    return document


def task_line(task: Mapping[str, Any], arms: Sequence[str]) -> str:
    """Return one task as a line of text."""
    parts = []
    for arm in arms:
        arm_result = task.get(arm)
        if arm_result is not None:
            label = "run.resolved" if arm_result["resolved"] else f"outcome.{arm_result['outcome']}"
            values = {"arm": arm, "outcome": label_text(label), "calls": arm_result["tool_calls"]}
            parts.append(label_text("run.arm", **values))
    return f"{task['instance_id']}  {label_text('list_separator').join(parts)}"
