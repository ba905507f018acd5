"""Show which tool earns its tokens, for the terminal and for pages."""

from __future__ import annotations

from keju.reporting.arms import TitledTable
from keju.reporting.format import UNKNOWN, Labels, count
from keju.reporting.pairs import p_value, point_ends, points
from keju.results.schema import Results, ToolEffect, ToolSweep
from keju.results.sweep import sweep_sentence


def sweep_lines(results: Results, labels: Labels) -> list[str]:
    """Return the conclusion about the tools of each exam, and notes on the figures."""
    lines = []
    for sweep in results.sweeps:
        text = sweep_sentence(sweep, labels.language)
        is_alone = len(results.sweeps) == 1
        lines.append(text if is_alone else labels("named", name=sweep.exam, text=text))
    return lines


def sweep_notes(results: Results, labels: Labels) -> list[str]:
    """Return what the columns of the table mean, and what was not asked."""
    notes = []
    for sweep in results.sweeps[:1]:
        notes.append(labels(f"sweep.note_{sweep.kind}", base=sweep.base))
        if any(row.looks for row in sweep.rows):
            notes.append(labels("sweep.several_looks"))
        if any(row.tokens_from == "estimate" for row in sweep.rows):
            notes.append(labels("sweep.estimated"))
    return notes


def sweep_table(sweep: ToolSweep, labels: Labels, digits: int = 1) -> TitledTable:
    """Return a row for each tool: points with interval, tokens, latency, calls and failures."""
    names = "tool", "points", "interval", "p", "n", "tokens", "latency", "calls", "failed"
    titles = [labels(f"sweep.{name}") for name in (*names, "verdict")]
    return TitledTable(titles, [_cells(row, sweep, labels, digits) for row in sweep.rows])


def _cells(row: ToolEffect, sweep: ToolSweep, labels: Labels, digits: int) -> list[str]:
    tokens = row.tokens_per_question
    return [
        row.tool,
        points(row.difference, digits),
        point_ends(row.ci95, digits),
        p_value(row.p_holm),
        count(row.n),
        UNKNOWN if tokens is None else count(round(tokens)),
        UNKNOWN if row.seconds_p50 is None else labels("span.seconds", n=f"{row.seconds_p50:.3g}"),
        count(row.calls),
        count(row.failed),
        labels(f"sweep.{sweep.kind}_{row.verdict}"),
    ]
