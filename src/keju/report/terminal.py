"""Results in the terminal: the number, what kind of number it is, and what stands beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from keju.report.format import UNKNOWN, count, interval, percent, shorten
from keju.report.strings import Strings
from keju.report.summary import (
    DISAGREEMENTS_SHOWN,
    LEFT_OUT,
    Breakdown,
    Estimate,
    Row,
    Summary,
    by_benchmark,
    error_words,
    estimate_notes,
    gold_words,
    how_it_ended,
    judge_words,
    outcome_words,
    summarise,
)
from keju.report.table import Cell, Column, Screen, render_table
from keju.types import OUTCOMES, Outcome

__all__ = ["render_results", "render_table"]

_ANSWER_WIDTH = 40
_PUBLISHED, _CHANCE, _RIGHT_OR_WRONG, _OTHER_OUTCOME = 4, 3, 2, 1
"""What a narrow screen can spare, the first one first: accuracy and n tell right from wrong."""
_INDENT = 2


def render_results(
    results: Mapping[str, Any], *, file: TextIO | None = None, width: int | None = None
) -> None:
    """Print a results document (the shape of ``results.json``) to `file` (stdout by default).

    Plain text where `file` is not a terminal. Rows keep the order of the document.
    """
    strings = Strings("en")
    screen = Screen(file, width)
    families = by_benchmark(summarise(results, strings))
    disagreements = results.get("disagreements") or ()
    if disagreements:
        _disagreements(screen, disagreements)
    for family in families:
        if len(family) > 1:
            _readers(screen, family)
            _published(screen, family[0])
        for summary in family:
            _entry(screen, summary, strings, brief=len(family) > 1)
    if not families:
        screen.line("No results.")
    ended = how_it_ended(results, strings)
    if ended:
        screen.line(ended, style="bold yellow")
    screen.flush()


def _entry(screen: Screen, summary: Summary, strings: Strings, *, brief: bool) -> None:
    """One reader's results on one benchmark; `brief` leaves out the tables shown side by side."""
    screen.line(_heading(summary), style="bold")
    screen.line(_estimate_line(summary.headline, strings), style="bold green", indent=_INDENT)
    for other in summary.others:
        screen.line(_estimate_line(other, strings), indent=_INDENT)
    if gold := gold_words(summary, strings):
        screen.line(gold, indent=_INDENT)
    screen.line(" · ".join(outcome_words(summary.outcomes, strings)), indent=_INDENT)
    if judge := judge_words(summary.judge, strings):
        screen.line(judge, indent=_INDENT)
    if errors := error_words(summary.errors, strings):
        screen.line(errors, indent=_INDENT)
    if summary.left_out:
        _left_out(screen, summary, strings)
    if summary.chance is not None:
        screen.line(f"chance level {percent(summary.chance)}", indent=_INDENT)
    if summary.errata:
        screen.line(strings("errata_note", n=count(summary.errata)), indent=_INDENT)
    for warning in summary.warnings:
        screen.line(f"warning: {warning}", style="yellow", indent=_INDENT)
    screen.line()
    for breakdown in summary.breakdowns:
        _breakdown(screen, breakdown)
    if not brief:
        _published(screen, summary)
        _subsets(screen, summary)
        _groups(screen, summary.groups)


def _heading(summary: Summary) -> str:
    parts = [summary.name, f"protocol {summary.protocol_line}", f"reader {summary.reader}"]
    if summary.model:
        parts.append(f"model {summary.model}")
    return " · ".join([*parts, f"n {count(summary.n)}"])


def _estimate_line(estimate: Estimate, strings: Strings) -> str:
    told = estimate.name == "accuracy" or estimate.name in estimate.title
    name = "" if told else f" ({estimate.name})"
    line = f"{estimate.title}{name}: {percent(estimate.value)}"
    if estimate.ci95 is not None:
        line += f" (95 % interval {interval(estimate.ci95)})"
    if estimate.n is not None:
        line += f", n {count(estimate.n)}"
    return "; ".join([line, *estimate_notes(estimate, strings)])


def _left_out(screen: Screen, summary: Summary, strings: Strings) -> None:
    counts = {outcome: count(summary.outcomes[outcome]) for outcome in LEFT_OUT}
    screen.line(strings("left_out_note", **counts), indent=_INDENT)
    if summary.bounds is not None:
        worst, best = summary.bounds
        text = strings(
            "bounds", left_out=count(summary.left_out), worst=percent(worst), best=percent(best)
        )
        screen.line(text, indent=_INDENT)


def _published(screen: Screen, summary: Summary) -> None:
    """Published figures of the whole exam: a row each, a column for each mean they are of."""
    metrics = list(dict.fromkeys(m for r in summary.references for m in r.overall))
    if not metrics:
        return
    titles = summary.titles
    columns = [Column("published"), *(Column(titles.get(m, m), "right") for m in metrics)]
    rows: list[list[Cell]] = [
        [r.name, *(percent(r.overall.get(m)) for m in metrics)] for r in summary.references
    ]
    screen.table(columns, rows)
    screen.line()


def _subsets(screen: Screen, summary: Summary) -> None:
    """A row for each subset; an outcome that occurs nowhere has no column."""
    if not summary.subsets:
        return
    shown = [o for o in OUTCOMES if any(row.outcomes[o] for row in summary.subsets)]
    columns = [
        Column("subset"),
        Column("n", "right"),
        Column("accuracy", "right"),
        Column("95 % interval", "right"),
        Column("chance", "right", spare=_CHANCE),
        *(Column(name, "right", spare=_PUBLISHED) for name in summary.subset_references),
        *(Column(outcome, "right", spare=_spare(outcome)) for outcome in shown),
    ]
    screen.table(columns, [_cells(row, shown) for row in summary.subsets])
    screen.line()


def _spare(outcome: Outcome) -> int:
    return _RIGHT_OR_WRONG if outcome in ("correct", "incorrect") else _OTHER_OUTCOME


def _breakdown(screen: Screen, breakdown: Breakdown) -> None:
    """A row for each kind of question."""
    columns = [
        Column(breakdown.kind),
        Column("n", "right"),
        Column(breakdown.metric.lower(), "right"),
        Column("95 % interval", "right"),
    ]
    rows: list[list[Cell]] = [
        [row.name, row.n, percent(row.accuracy), interval(row.ci95)] for row in breakdown.rows
    ]
    screen.table(columns, rows)
    screen.line()


def _cells(row: Row, outcomes: Sequence[Outcome]) -> list[Cell]:
    return [
        row.label,
        row.n,
        percent(row.accuracy),
        interval(row.ci95),
        percent(row.chance),
        *(percent(value) for value in row.references),
        *(row.outcomes[outcome] for outcome in outcomes),
    ]


def _groups(screen: Screen, groups: Sequence[Row]) -> None:
    """A row for each group: the mean of its subsets, and the mean over its questions."""
    if not groups:
        return
    columns = [
        Column("group"),
        Column("n", "right"),
        Column("mean of its subsets", "right"),
        Column("95 % interval", "right"),
        Column("mean over questions", "right"),
    ]
    rows: list[list[Cell]] = [
        [row.label, row.n, percent(row.accuracy), interval(row.ci95), percent(row.micro)]
        for row in groups
    ]
    screen.table(columns, rows)
    screen.line()


def _readers(screen: Screen, family: Sequence[Summary]) -> None:
    """Several readers of the same replies: a column for each."""
    first = family[0]
    screen.line(f"{first.name} · protocol {first.protocol_line} · readers side by side", "bold")
    columns = [Column("subset"), Column("n", "right")]
    columns += [Column(summary.reader, "right") for summary in family]
    rows: list[list[Cell]] = [
        [f"all ({first.headline.name})", first.n, *(_with_interval(s.headline) for s in family)]
    ]
    outcomes = [o for o in OUTCOMES if any(s.outcomes[o] for s in family)]
    rows += [
        [f"{outcome} (count)", None, *(count(s.outcomes[outcome]) for s in family)]
        for outcome in outcomes
    ]
    by_name = [{row.name: row for row in summary.subsets} for summary in family]
    for row in first.subsets:
        values = [percent(rows_of[row.name].accuracy) if row.name in rows_of else UNKNOWN
                  for rows_of in by_name]  # fmt: skip
        rows.append([row.label, row.n, *values])
    screen.table(columns, rows)
    screen.line()


def _with_interval(estimate: Estimate) -> str:
    if estimate.ci95 is None:
        return percent(estimate.value)
    return f"{percent(estimate.value)} ({interval(estimate.ci95)})"


def _disagreements(screen: Screen, disagreements: Sequence[Mapping[str, Any]]) -> None:
    """The replies that the readers read or score differently, the first of them in full."""
    total = len(disagreements)
    shown = disagreements[:DISAGREEMENTS_SHOWN]
    readers = list(dict.fromkeys(name for d in shown for name in d["answers"]))
    title = f"The readers disagree on {count(total)} replies"
    if len(shown) < total:
        title += f"; the first {len(shown)} (--json prints all)"
    columns = [Column("id"), Column("target", fold=True)]
    columns += [Column(reader, fold=True) for reader in readers]
    rows: list[list[Cell]] = [
        [str(d["id"]), shorten(str(d.get("target") or ""), _ANSWER_WIDTH),
         *(_reading(d, reader) for reader in readers)]
        for d in shown
    ]  # fmt: skip
    screen.table(columns, rows, title=title)
    screen.line()


def _reading(disagreement: Mapping[str, Any], reader: str) -> str:
    """What one reader made of a reply, e.g. ``B: incorrect``."""
    outcome = str((disagreement.get("outcomes") or {}).get(reader, UNKNOWN))
    value = (disagreement.get("answers") or {}).get(reader)
    if value is None:
        return outcome
    return f"{shorten(str(value), _ANSWER_WIDTH)}: {outcome}"
