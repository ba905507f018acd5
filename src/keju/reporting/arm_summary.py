"""The short answer about arms: first whether an arm helps, then a row for each arm."""

from __future__ import annotations

from collections.abc import Sequence

from keju.reporting import format as fmt
from keju.reporting.assertions import assertion_title
from keju.reporting.brief import BriefColumn, BriefScreen, short_model
from keju.reporting.format import Labels, count, interval, percent
from keju.reporting.sweep import sweep_lines, sweep_notes, sweep_table
from keju.results.assertions import in_order
from keju.results.schema import Comparison, ResultEntry, Results

SENTENCES = 4
"""The number of pairs about which a summary prints a sentence."""
ASSERTIONS = 14
"""The most scores of assertions that a summary lists."""
SWEEP_SPARE = (0, 0, 1, 3, 2, 0, 5, 4, 6, 0)
"""Which columns of the table of tools a narrow screen leaves out first."""
_RANK = {"above": 0, "below": 1, "tie": 2}


def arm_sentence(pair: Comparison, labels: Labels, subject: str = "") -> str:
    """Return the verdict about a pair of arms: ``calculator helps: +6.9 points over baseline``."""
    names = {"arm": pair.arm, "base": pair.base}
    if pair.difference is None or pair.ci95 is None:
        text = pair.conclusion.text(labels.language)
    else:
        low, high = (f"{100 * end:+.1f}" for end in pair.ci95)
        points = f"{100 * pair.difference:+.1f}"
        kind = {"above": "better", "below": "worse"}.get(pair.verdict, "tie")
        if not pair.base_is_first and kind != "tie":
            kind = "above" if kind == "better" else "below"
        values = {"points": points, "low": low, "high": high}
        text = labels(f"brief.arm_{kind}", **names, **values)
    return labels("named", name=subject, text=text) if subject else text


def print_arms(screen: BriefScreen, results: Results) -> None:
    """Print the verdict on each arm against the first one, then all arms."""
    labels = screen.labels
    entries = [entry for entry in results.benchmarks if entry.arm and not results.is_level(entry)]
    entries = _first_readers(entries)
    has_several_exams = len({entry.name for entry in entries}) > 1
    if results.sweeps:
        _print_sweeps(screen, results)
        return
    pairs = [pair for pair in results.comparisons if pair.base_is_first] or results.comparisons
    ranked = sorted(pairs, key=lambda pair: _RANK.get(pair.verdict, 3))
    for number, pair in enumerate(ranked[:SENTENCES]):
        subject = pair.exam if has_several_exams else ""
        screen.sentence(arm_sentence(pair, labels, subject), "bold" if number == 0 else None)
    screen.put()
    _print_rows(screen, entries, results, has_several_exams=has_several_exams)
    _print_assertions(screen, entries, has_several_exams=has_several_exams)


def _print_sweeps(screen: BriefScreen, results: Results) -> None:
    """Print which tools earn their tokens, and then a row for each tool."""
    labels = screen.labels
    for number, line in enumerate(sweep_lines(results, labels)):
        screen.sentence(line, "bold" if number == 0 else None)
    for sweep in results.sweeps:
        table = sweep_table(sweep, labels)
        title = f"{sweep.exam} · {table.titles[0]}" if len(results.sweeps) > 1 else table.titles[0]
        spares = dict(zip(table.titles, SWEEP_SPARE, strict=True))
        columns = [
            BriefColumn("left" if name == table.titles[-1] else "right", name, spares[name])
            for name in table.titles[1:]
        ]
        screen.put()
        screen.rows([BriefColumn("left", title), *columns], table.rows)
    screen.put()
    for line in sweep_notes(results, labels):
        screen.sentence(line, "dim")


def _print_assertions(
    screen: BriefScreen, entries: Sequence[ResultEntry], *, has_several_exams: bool
) -> None:
    """Print the scores of assertions about the arms with tools, if they are not too many."""
    labels = screen.labels
    rows = [
        [
            entry.full_name if has_several_exams else entry.arm,
            assertion_title(name, labels),
            percent(metric.value, 1),
            interval(metric.ci95, 1),
            count(metric.n),
        ]
        for entry in entries
        for name in in_order(entry.metrics)
        if entry.tools is not None and (metric := entry.metrics[name]).n
    ]
    if not rows:
        return
    screen.put()
    if len(rows) > ASSERTIONS:
        screen.sentence(labels("brief.assertions_more", n=len(rows)), None)
        return
    columns = [
        BriefColumn("left"),
        BriefColumn("left", labels("arms.assertion")),
        BriefColumn(title=labels("brief.score")),
        BriefColumn(title="95 %", spare=1),
        BriefColumn(title=labels("n")),
    ]
    screen.rows(columns, rows)


def _first_readers(entries: Sequence[ResultEntry]) -> list[ResultEntry]:
    """Return the entries by the first reader of each arm."""
    by_name: dict[str, ResultEntry] = {}
    for entry in entries:
        by_name.setdefault(entry.full_name, entry)
    return list(by_name.values())


def _print_rows(
    screen: BriefScreen,
    entries: Sequence[ResultEntry],
    results: Results,
    *,
    has_several_exams: bool,
) -> None:
    labels = screen.labels
    has_calls = any(entry.tools and entry.tools.calls for entry in entries)
    rows = []
    for entry in entries:
        metric = fmt.display_metrics(entry, labels)[0].metric
        replies = max(1, sum(entry.outcomes.values()))
        tokens = round((entry.usage.input_tokens + entry.usage.output_tokens) / replies)
        calls, failed = (entry.tools.calls, entry.tools.failed) if entry.tools else (0, 0)
        rows.append(
            [
                entry.full_name if has_several_exams else entry.arm,
                percent(metric.value, 1),
                interval(metric.ci95, 1) if metric.ci95 else "",
                labels.graded_count(entry),
                count(calls) if has_calls else "",
                count(failed) if has_calls else "",
                count(tokens),
            ]
        )
    title = short_model(results.model) if results.model else labels("arms.arm")
    exams = {entry.name for entry in entries}
    columns = [
        BriefColumn("left", " · ".join([*exams, title]) if len(exams) == 1 else title),
        BriefColumn(title=labels("brief.score")),
        BriefColumn(title="95 %", spare=1),
        BriefColumn(title=labels("n")),
        BriefColumn(title=labels("brief.calls") if has_calls else "", spare=2),
        BriefColumn(title=labels("brief.failed_calls") if has_calls else "", spare=3),
        BriefColumn(title=labels("brief.tokens_each"), spare=4),
    ]
    screen.rows(columns, rows)
