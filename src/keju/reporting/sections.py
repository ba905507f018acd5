"""The contexts of the sections of a run's page: one for each entry of the results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from keju.reporting import format as fmt
from keju.reporting.answers import outcome_words
from keju.reporting.arms import TitledTable
from keju.reporting.format import Labels
from keju.reporting.histograms import Histogram, ReplyCosts
from keju.reporting.judges import judge_rows
from keju.reporting.row_tables import group_table, kind_table, subset_table
from keju.reporting.titles import title_of
from keju.results.schema import NO_GOLD, ResultEntry, Results, Timing, UsageTotals
from keju.types import ALL_OUTCOMES

DIGITS = 1
"""The decimals of percentages on pages."""
REFERENCE_STYLES = 3
"""The number of mark styles for published scores in the style sheet."""


def section_context(
    entry: ResultEntry, labels: Labels, number: int, run: str, links: Mapping[str, str]
) -> dict[str, Any]:
    """Return the context of one entry; `links` are the addresses of the subsets' failures."""
    subsets, groups = fmt.answered_rows(entry.subsets), fmt.answered_rows(entry.groups)
    references = [
        (fmt.reference_name(r, labels), f"reference-{place % REFERENCE_STYLES}", r.subsets)
        for place, r in enumerate(fmt.subset_references(entry))
    ]
    table = subset_table(subsets, labels, links=links, references=references, is_static=True)
    return {
        "e": entry,
        "number": number,
        "arm": labels.arm(entry.arm) if entry.arm else "",
        "anchor": f"result-{number}",
        "title": title_of(entry.name, entry.arm),
        "errata": fmt.describe_errata(entry, run, labels),
        "questions": fmt.describe_questions(entry, title_of(entry.name, entry.arm), labels),
        "warnings": labels.warnings(entry),
        "answered": bool(fmt.answered_rows([entry])),
        "subsets": table if subsets else None,
        "groups": group_table(groups, labels) if groups else None,
        "group_words": fmt.describe_partial_groups(entry, labels),
        "breakdowns": [kind_table(breakdown) for breakdown in fmt.breakdowns(entry, labels)],
        "outcome_words": list(outcome_words(entry, labels).values()),
        "outcomes": {o: entry.outcomes.get(o, 0) for o in ALL_OUTCOMES},
        "references": references,
        "usage": _amounts("usage", entry.usage, labels),
        "timing": _amounts("timing", entry.timing, labels),
        "judge": list(judge_rows(entry.judge, labels)) if entry.judge else [],
        **_means(entry, labels),
        **_tools(entry, labels),
    }


def _means(entry: ResultEntry, labels: Labels) -> dict[str, Any]:
    """Return the metrics, the chance level and the published figures."""
    titles = fmt.published_titles(entry, labels)
    chance = entry.metrics.get("chance")
    metrics = fmt.display_metrics(entry, labels) if entry.gold != NO_GOLD else []
    return {
        "metrics": [(metric, fmt.metric_notes(metric.metric, labels)) for metric in metrics],
        "chance": chance.value if chance else None,
        "published_titles": [*titles.values()],
        "published": [
            (fmt.reference_name(r, labels), [r.overall.get(name) for name in titles])
            for r in entry.reference
        ],
    }


def _tools(entry: ResultEntry, labels: Labels) -> dict[str, Any]:
    """Return the table of tools, and notes about tools, replies, errors and missing grades."""
    tool_words, tools = "", None
    if entry.tools is not None:
        from keju.reporting import arms

        tool_words, tools = arms.describe_tool_use(entry, labels), arms.tool_table(entry, labels)
    notes = (
        tool_words,
        fmt.describe_signs(entry, labels),
        fmt.describe_errors(entry.errors, labels),
        *fmt.describe_ungraded(entry, labels),
    )
    return {"tools": tools, "notes": [note for note in notes if note]}


def _amounts(kind: str, amounts: UsageTotals | Timing, labels: Labels) -> list[tuple[str, str]]:
    """Return the numbers of ``usage`` or ``timing`` with their labels."""
    return [
        (labels.get(f"{kind}.{key}", key), f"{value:,}" if kind == "usage" else f"{value:,.2f}")
        for key, value in msgspec.structs.asdict(amounts).items()
        if value is not None and value is not msgspec.UNSET
    ]


def spreads_of(
    entry: ResultEntry, measurements: ReplyCosts, labels: Labels
) -> list[tuple[str, Histogram, str]]:
    """Return the histograms of an exam's replies, each with its title and description."""
    spreads = measurements.spreads(entry.name, entry.arm)
    return [
        (labels(f"plot.{kind}"), spread, spread.describe(labels))
        for kind, spread in spreads.items()
    ]


def endpoints_of(results: Results, labels: Labels) -> Any:
    """Return the table of endpoints; None without endpoints."""
    if not results.endpoints:
        return None
    from keju.reporting.endpoints import endpoint_table

    return endpoint_table(results, labels)


def curves_of(results: Results, labels: Labels) -> list[Any]:
    """Return the charts of accuracy against difficulty."""
    if not results.curves:
        return []
    from keju.reporting.curves import sections

    return list(sections(results, labels))


def arms_of(results: Results, labels: Labels) -> dict[str, Any] | None:
    """Return the verdicts and tables of arms; difficulties have a curve instead."""
    from keju.reporting.arms import arm_table, pair_lines, pair_table
    from keju.reporting.assertions import assertion_table
    from keju.reporting.sweep import sweep_lines, sweep_notes, sweep_table

    arms = arm_table(results, labels, DIGITS)
    if not arms.rows:
        return None
    lines = list(pair_lines(results, labels))
    pairs = _decisive_first(pair_table(results, labels, DIGITS), labels)
    tables = [arms, assertion_table(results, labels, DIGITS), pairs]
    tables = [table for table in tables if table.rows or table is not tables[1]]
    if results.sweeps:
        lines = [*sweep_lines(results, labels), *sweep_notes(results, labels)]
        tables = [*(sweep_table(sweep, labels, DIGITS) for sweep in results.sweeps), *tables]
    if len({entry.name for entry in results.benchmarks}) == 1:
        prefix = f"{results.benchmarks[0].name} · "
        tables = [_without_prefix(table, prefix) for table in tables]
    return {"lines": lines, "tables": tables}


def _decisive_first(table: TitledTable, labels: Labels) -> TitledTable:
    """Return a table of pairs with the difference, its interval and p before the counts."""
    titles = table.titles
    start, end = titles.index(labels("arms.both")), titles.index(labels("arms.difference"))
    return TitledTable(
        titles[:start] + titles[end:] + titles[start:end],
        [row[:start] + row[end:] + row[start:end] for row in table.rows],
    )


def _without_prefix(table: TitledTable, prefix: str) -> TitledTable:
    """Return a table whose rows do not repeat the name of the only exam."""
    rows = [[row[0].removeprefix(prefix), *row[1:]] for row in table.rows]
    return TitledTable(table.titles, rows)
