"""Markdown about the documents that Keju's commands print with ``--json``."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

LONGEST = 300
MOST_ROWS = 45
_MARKS = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_[]|~#"} | {"@": "@\u200b", "\n": " "})


def escape(text: object) -> str:
    """Return a text that Markdown shows as it is, in one line, without links or mentions."""
    words = " ".join(str(text).split())
    words = words if len(words) <= LONGEST else words[:LONGEST] + "…"
    return html.escape(words, quote=False).translate(_MARKS)


def describe(document: Mapping[str, Any], problem: str = "") -> str:
    """Return the results of a run as Markdown: the conclusions, and a table of scores."""
    lines = [f"**{escape(problem)}**", ""] if problem else []
    lines += [
        f"**{code_marks(sweep.get('sentence', ''))}**\n" for sweep in document.get("sweeps", ())
    ]
    if not document.get("sweeps"):
        lines += [f"- {escape(text)}" for text in conclusions(document)]
    for sweep in document.get("sweeps", ()):
        lines += ["", *sweep_table(sweep)]
    rows = [score_row(entry) for entry in document.get("benchmarks", ())][:MOST_ROWS]
    if rows:
        titles = ["exam", "score", "95 %", "n", "tokens a question", "calls", "failed calls"]
        lines += [""]
        scores = table(titles, rows)
        is_long = bool(document.get("sweeps"))
        lines += fold("Scores of all arms", scores) if is_long else scores
    warnings = dict.fromkeys(
        text for entry in document.get("benchmarks", ()) for text in entry.get("warnings", ())
    )
    lines += (
        ["", *(f"- warning: {escape(text)}" for text in list(warnings)[:5])] if warnings else []
    )
    return "\n".join(lines).strip() + "\n"


def fold(title: str, lines: Sequence[str]) -> list[str]:
    """Return lines that a reader unfolds."""
    return [f"<details><summary>{title}</summary>", "", *lines, "", "</details>"]


def code_marks(text: str) -> str:
    """Return an escaped sentence in which names between backticks are code."""
    parts = str(text).split("`")
    return "".join(
        f"`{part.replace('|', '')}`" if place % 2 else escape_part(part)
        for place, part in enumerate(parts)
    )


def escape_part(text: str) -> str:
    """Return an escaped part of a sentence with the blanks at its ends."""
    blank = " " if text.endswith(" ") else ""
    start = " " if text.startswith(" ") and text.strip() else ""
    return f"{start}{escape(text)}{blank}"


def conclusions(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each arm compared with the first one."""
    for pair in document.get("comparisons", ()):
        if not pair.get("base_is_first", True) or pair.get("difference") is None:
            continue
        points, ends = 100 * pair["difference"], pair.get("ci95")
        p = pair.get("p_holm", pair.get("p"))
        is_sure = ends and not ends[0] <= 0 <= ends[1] and p is not None and p < 0.05
        verb = ("helps" if points > 0 else "hurts") if is_sure else "shows no difference"
        span = f" (95 % {100 * ends[0]:+.1f} to {100 * ends[1]:+.1f})" if ends else ""
        yield f"{pair['arm']} {verb}: {points:+.1f} points over {pair['base']}{span}"
    for row in document.get("gates", ()):
        if isinstance(row, dict) and row.get("conclusion"):
            yield str(row["conclusion"])


def score_row(entry: Mapping[str, Any]) -> list[str]:
    """Return the cells of one exam, or of one arm of it."""
    metric = entry.get("metrics", {}).get(entry.get("headline"), {})
    value, ends = metric.get("value"), metric.get("ci95")
    usage, tools = entry.get("usage", {}), entry.get("tools") or {}
    replies = max(1, sum(entry.get("outcomes", {}).values()))
    tokens = round((usage.get("input_tokens", 0) + usage.get("output_tokens", 0)) / replies)
    name = " · ".join(filter(None, (entry.get("name", ""), entry.get("arm", ""))))
    return [
        escape(name),
        "–" if value is None else f"{100 * value:.1f} %",
        "–" if not ends else f"{100 * ends[0]:.1f}–{100 * ends[1]:.1f}",
        str(entry.get("n", 0)),
        f"{tokens:,}",
        f"{tools.get('calls', 0):,}",
        f"{tools.get('failed', 0):,}",
    ]


VERDICTS = {
    ("left_out", "earns"): "earns its tokens",
    ("left_out", "harms"): "hurts",
    ("left_out", "small"): "nothing lost without it",
    ("alone", "earns"): "earns its tokens",
    ("alone", "harms"): "hurts",
    ("alone", "small"): "nothing gained",
}


def sweep_table(sweep: Mapping[str, Any]) -> list[str]:
    """Return a row for each tool that was left out, or offered alone."""
    rows = []
    for row in sweep.get("rows", ())[:MOST_ROWS]:
        points, ends, tokens = (
            row.get("difference"),
            row.get("ci95"),
            row.get("tokens_per_question"),
        )
        rows.append(
            [
                escape(row["tool"]),
                "–" if points is None else f"{100 * points:+.1f}",
                "–" if not ends else f"{100 * ends[0]:+.1f} … {100 * ends[1]:+.1f}",
                "–" if tokens is None else f"{round(tokens):,}",
                str(row.get("calls", 0)),
                str(row.get("failed", 0)),
                VERDICTS.get((sweep.get("kind", ""), row.get("verdict", "")), "open"),
            ]
        )
    return table(
        ["tool", "points", "95 %", "tokens a question", "calls", "failed", "verdict"], rows
    )


def table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table."""
    lines = [f"| {' | '.join(titles)} |", "|---" + "|--:" * (len(titles) - 1) + "|"]
    return lines + [f"| {' | '.join(row)} |" for row in rows]
