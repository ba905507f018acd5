"""Print results in the terminal: the score, the kind of score, and the notes about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from msgspec import UNSET

from keju.messages import current_language
from keju.reporting import arms, curves, score_interpretation
from keju.reporting import format as fmt
from keju.reporting.assertions import assertion_table
from keju.reporting.curve_summary import can_encode
from keju.reporting.endpoints import endpoint_table
from keju.reporting.format import (
    UNKNOWN,
    Labels,
    ShownMetric,
    count,
    interval,
    percent,
    share,
    shorten,
)
from keju.reporting.judges import describe_judge
from keju.reporting.sweep import sweep_lines, sweep_notes, sweep_table
from keju.reporting.table import Cell, TableColumn, TerminalScreen
from keju.results.curve import Curve
from keju.results.schema import NO_GOLD, Disagreement, ResultEntry, Results

_ANSWER_WIDTH = 40
_SPARE_COLUMNS = {"published": 4, "correct": 3, "incorrect": 3, "chance": 2}
"""Columns that a narrow screen can drop, the largest number first."""
_INDENT = 2
_STYLES: dict[score_interpretation.Standing | None, str] = {
    None: "bold green",
    "above": "bold green",
    "like": "bold",
    "below": "bold yellow",
}
"""The style of a headline, depending on how the score compares with guessing."""


def render_results(
    results: Results, *, file: TextIO | None = None, width: int | None = None
) -> None:
    """Print results to `file` (stdout by default).

    The output is plain text if `file` is not a terminal. Rows keep the order of the document.
    """
    labels = Labels(current_language())
    screen = TerminalScreen(file, width)
    exam_entries = [entry for entry in results.benchmarks if not results.is_level(entry)]
    if fmt.answered_rows(exam_entries):
        _print_overview(screen, results, labels)
    _print_arms(screen, results, labels)
    if results.disagreements:
        _print_disagreements(screen, results.disagreements, labels)
    for family in fmt.families(results):
        if len(family) > 1 and fmt.answered_rows(family):
            _print_readers(screen, family, labels)
            _print_published(screen, family[0], labels)
        for entry in family:
            _print_entry(screen, entry, results, labels)
            if len(family) == 1 and fmt.answered_rows(family) and not results.is_level(entry):
                _print_published(screen, entry, labels)
                _print_subsets_and_groups(screen, entry, labels)
    for curve in results.curves:
        _print_curve(screen, curve, labels)
    if results.endpoints:
        table = endpoint_table(results, labels)
        screen.line(labels("endpoints.title"), style="bold")
        _print_table(screen, list(table.titles), [list(row) for row in table.rows])
    if not results.benchmarks:
        screen.line(labels("no_results"))
    if ended := fmt.describe_incomplete(results, labels):
        screen.line(ended, style="bold yellow")
    screen.flush()


def _print_overview(screen: TerminalScreen, results: Results, labels: Labels) -> None:
    """Print several exams in one table, one row for each exam."""
    rows: list[list[Cell]] = [
        [
            entry.full_name,
            fmt.protocol_line(entry),
            entry.reader,
            figure,
            None if ends is None else interval(ends),
            labels.graded_count(entry),
            metric or None,
        ]
        for entry, figure, ends, metric in fmt.overview(results, labels)
    ]
    columns: list[str | TableColumn] = [
        labels.word("exam"),
        TableColumn(labels.word("protocol"), "left"),
        TableColumn(labels.word("reader"), "left", spare=2),
        labels.word("headline"),
        labels("interval"),
        "n",
        TableColumn(labels.word("metric"), "left", spare=1),
    ]
    _print_table(screen, columns, rows)


def _print_arms(screen: TerminalScreen, results: Results, labels: Labels) -> None:
    """Print the arms next to each other, the comparison of each pair, and the conclusions."""
    tables = arms.arm_table(results, labels), assertion_table(results, labels)
    for table in (*tables, arms.pair_table(results, labels)):
        _print_table(screen, list(table.titles), [list(row) for row in table.rows])
    for sweep in results.sweeps:
        table = sweep_table(sweep, labels)
        _print_table(screen, list(table.titles), [list(row) for row in table.rows])
    for line in sweep_lines(results, labels) or arms.pair_lines(results, labels):
        screen.line(line, style="bold")
    for line in sweep_notes(results, labels):
        screen.line(line)
    if results.comparisons and fmt.answered_rows(results.benchmarks):
        screen.line()


def _print_curve(screen: TerminalScreen, curve: Curve, labels: Labels) -> None:
    """Print accuracy against difficulty for the whole exam and its subsets, and the conclusions."""
    name = labels("curve.of_exam", exam=curve.exam, reader=curve.reader)
    screen.line(labels("named", name=labels("curve.title"), text=name), style="bold")
    levels = curves.level_table(curve, labels)
    is_ascii = not can_encode("".join(curves.UNICODE_MARKS), screen.file)
    strips = [curves.draw_strip(point, is_ascii=is_ascii) for point in curve.points]
    columns: list[str | TableColumn] = [
        *levels.titles,
        TableColumn(labels("curve.strip"), "left", spare=1),
    ]
    _print_table(
        screen,
        columns,
        [[*row, strip_text] for row, strip_text in zip(levels.rows, strips, strict=True)],
    )
    subsets = curves.subset_table(curve, labels)
    _print_table(screen, list(subsets.titles), [list(row) for row in subsets.rows])
    for line in curves.curve_lines(curve, labels):
        screen.line(line, style="bold")
    screen.line()


def _print_entry(
    screen: TerminalScreen, entry: ResultEntry, results: Results, labels: Labels
) -> None:
    """Print one reader's results on one benchmark, without subsets and groups."""
    parts = [entry.name, *([labels.arm(entry.arm)] if entry.arm else [])]
    parts.append(f"{labels.word('protocol')} {fmt.protocol_line(entry)}")
    parts.append(labels("read_by", reader=entry.reader))
    if results.model:
        parts.append(f"{labels.word('model')} {results.model}")
    screen.line(" · ".join([*parts, f"n {labels.graded_count(entry)}"]), style="bold")
    headline_group, *other_groups = fmt.group_equal_metrics(fmt.display_metrics(entry, labels))
    if entry.gold == NO_GOLD:
        headline_group, other_groups = headline_group[:1], []
    run = fmt.run_command_name(results)
    words = filter(
        None,
        [
            _headline_text(entry, run, labels),
            score_interpretation.remark_on_chance(entry, run, labels),
        ],
    )
    headline = labels("pair_separator").join(words)
    screen.line(
        headline,
        style=_STYLES[score_interpretation.compare_with_chance(entry, labels)],
        indent=_INDENT,
    )
    lines = [
        _equal_metrics_line(headline_group, labels),
        *(
            line
            for group in other_groups
            for line in (_metric_line(group[0], labels), _equal_metrics_line(group, labels))
        ),
        fmt.describe_gold(entry, labels),
        " · ".join(fmt.describe_outcomes(entry.outcomes, labels, cut_right=entry.cut_right)),
        fmt.describe_signs(entry, labels),
        describe_judge(entry.judge, labels),
        arms.describe_tool_use(entry, labels),
        fmt.describe_usage(entry, labels),
        fmt.describe_errors(entry.errors, labels),
        *fmt.describe_ungraded(entry, labels),
        score_interpretation.describe_chance(entry, labels),
        fmt.describe_errata(entry, run, labels),
    ]
    for line in filter(None, lines if fmt.answered_rows([entry]) else ()):
        screen.line(line, indent=_INDENT)
    for warning in labels.warnings(entry):
        screen.line(labels("warning", text=warning), style="yellow", indent=_INDENT)
    screen.line()
    tools = arms.tool_table(entry, labels)
    _print_table(screen, list(tools.titles), [list(row) for row in tools.rows])
    for kind, metric, rows in fmt.breakdowns(entry, labels):
        columns = [kind, "n", metric.lower(), labels("interval")]
        cells: list[list[Cell]] = [
            [
                row.name,
                labels.graded_count(row),
                share(row.accuracy, row.bounds),
                interval(row.ci95),
            ]
            for row in rows
        ]
        _print_table(screen, columns, cells)


def _headline_text(entry: ResultEntry, run: str, labels: Labels) -> str:
    headline, headline_metric = (
        fmt.headline_of(entry, run, labels),
        fmt.display_metrics(entry, labels)[0],
    )
    if headline.title == headline_metric.title:
        words = filter(None, [_metric_line(headline_metric, labels), headline.note])
        return labels("pair_separator").join(words)
    # An unusual kind of score has its own title, such as "exact match" or "no score".
    line = " ".join(filter(None, [headline.title, headline.figure]))
    line += labels("in_brackets", text=headline.note) if headline.note else ""
    ends = headline_metric.metric.ci95
    interval_note = [] if ends is None else [labels("interval_of", interval=interval(ends))]
    return labels("pair_separator").join([line, *interval_note])


def _metric_line(shown_metric: ShownMetric, labels: Labels) -> str:
    metric = shown_metric.metric
    is_named = shown_metric.name == "accuracy" or shown_metric.name in shown_metric.title
    title = shown_metric.title + ("" if is_named else labels("in_brackets", text=shown_metric.name))
    figure = fmt.metric_figure(metric)
    if metric.ci95 is not None:
        ends = labels("interval_of", interval=fmt.metric_interval(metric))
        figure += labels("in_brackets", text=ends)
    figures = labels("clause_separator").join([figure, f"n {count(metric.n)}"])
    line = labels("named", name=title, text=figures)
    return labels("pair_separator").join([line, *fmt.metric_notes(metric, labels)])


def _equal_metrics_line(metrics: Sequence[ShownMetric], labels: Labels) -> str:
    """Return the titles of the metrics that equal the first one; they follow its line."""
    shown_metric, *equal_metrics = metrics
    marked_titles = dict.fromkeys(
        equal_metric.marked_title(labels) for equal_metric in equal_metrics
    )
    titles = labels("pair_separator").join(marked_titles)
    figure = fmt.metric_figure(shown_metric.metric)
    return labels("also_metrics", figure=figure, titles=titles) if titles else ""


def _print_table(
    screen: TerminalScreen,
    columns: Sequence[str | TableColumn],
    rows: list[list[Cell]],
    note: str = "",
) -> None:
    """Print a table; all columns except the first are aligned to the right."""
    if rows:
        value_columns = [
            c if isinstance(c, TableColumn) else TableColumn(c, "right") for c in columns[1:]
        ]
        screen.table([columns[0], *value_columns], rows)
        if note:
            screen.line(note)
        screen.line()


def _print_published(screen: TerminalScreen, entry: ResultEntry, labels: Labels) -> None:
    """Print published scores of the whole exam: a row for each source, a column for each mean."""
    titles = fmt.published_titles(entry, labels)
    rows: list[list[Cell]] = [
        [fmt.reference_name(r, labels), *(percent(r.overall.get(name)) for name in titles)]
        for r in entry.reference
    ]
    _print_table(
        screen,
        [labels.word("published"), *titles.values()],
        rows if titles else [],
    )


def _print_subsets_and_groups(screen: TerminalScreen, entry: ResultEntry, labels: Labels) -> None:
    """Print a row for each subset, then for each group; skip outcomes that never occur."""
    occurring = fmt.occurring_outcomes(entry.subsets)
    references = fmt.subset_references(entry)
    columns: list[str | TableColumn] = [
        labels.word("subset"),
        "n",
        labels.word("accuracy"),
        labels("interval"),
        TableColumn(labels.word("chance"), "right", spare=_SPARE_COLUMNS["chance"]),
        *(
            TableColumn(fmt.reference_name(r, labels), "right", spare=_SPARE_COLUMNS["published"])
            for r in references
        ),
        *(
            TableColumn(labels(f"outcome.{outcome}"), "right", spare=_SPARE_COLUMNS.get(outcome, 1))
            for outcome in occurring
        ),
    ]
    rows: list[list[Cell]] = [
        [
            labels.row(row),
            labels.graded_count(row),
            share(row.accuracy, row.bounds),
            interval(row.ci95),
            percent(row.chance),
            *(percent(r.subsets.get(row.name)) for r in references),
            *(labels.outcome_count(row, outcome) for outcome in occurring),
        ]
        for row in fmt.answered_rows(entry.subsets)
    ]
    _print_table(screen, columns, rows)
    groups: list[list[Cell]] = [
        [
            labels.row(row),
            labels.graded_count(row),
            share(row.accuracy, row.bounds),
            interval(row.ci95),
            percent(row.micro_accuracy if row.micro_accuracy is not UNSET else None),
        ]
        for row in fmt.answered_rows(entry.groups)
    ]
    means = (labels("mean_of_subsets"), labels("interval"), labels("mean_of_questions"))
    titles = [labels.word("group"), "n", *means]
    _print_table(screen, titles, groups, note=fmt.describe_partial_groups(entry, labels))


def _print_readers(screen: TerminalScreen, family: Sequence[ResultEntry], labels: Labels) -> None:
    """Compare several readers of the same replies, with one column for each reader."""
    first_entry = family[0]
    protocol = f"{labels.word('protocol')} {fmt.protocol_line(first_entry)}"
    title = f"{first_entry.full_name} · {protocol} · {labels('readers_beside')}"
    screen.line(title, "bold")
    headlines = [fmt.display_metrics(entry, labels)[0] for entry in family]
    overall_figures = [
        fmt.metric_figure(metric) + (f" ({fmt.metric_interval(metric)})" if metric.ci95 else "")
        for _, _, metric in headlines
    ]
    accuracies = [
        {row.name: share(row.accuracy, row.bounds) for row in entry.subsets} for entry in family
    ]
    rows: list[list[Cell]] = [
        [
            labels("all_by", name=headlines[0].name),
            labels.graded_count(first_entry),
            *overall_figures,
        ]
    ]
    for outcome in fmt.occurring_outcomes(family):
        rows.append(
            [
                labels("count_of", outcome=labels(f"outcome.{outcome}")),
                None,
                *(labels.outcome_count(e, outcome) for e in family),
            ]
        )
    for row in fmt.answered_rows(first_entry.subsets):
        shares = (by_name.get(row.name, UNKNOWN) for by_name in accuracies)
        rows.append([labels.row(row), labels.graded_count(row), *shares])
    _print_table(screen, [labels.word("subset"), "n", *(entry.reader for entry in family)], rows)


def _print_disagreements(
    screen: TerminalScreen, disagreements: Sequence[Disagreement], labels: Labels
) -> None:
    """Print the disagreements that change a score; only count the others."""
    total = len(disagreements)
    deciding_rows = [row for row in disagreements if row.decides]
    readers = list(dict.fromkeys(name for d in disagreements for name in d.answers))
    title = labels("readers_disagree", n=count(total))
    if len(deciding_rows) < total:
        title += labels("readers_deciding", n=count(len(deciding_rows)))
    names = (labels.word("target"), *readers)
    columns = [TableColumn("id", id=True), *(TableColumn(name, fold=True) for name in names)]
    rows: list[list[Cell]] = []
    for row in deciding_rows:
        rows.append([row.id, shorten(row.target, _ANSWER_WIDTH)])
        for reader in readers:  # ``B: incorrect``
            value = row.answers.get(reader)
            answer = "" if value is None else f"{shorten(value, _ANSWER_WIDTH)}: "
            rows[-1].append(answer + labels.get(f"outcome.{row.outcomes.get(reader)}", UNKNOWN))
    if rows:
        screen.table(columns, rows, title=title)
    else:
        screen.line(title, style="bold")
    screen.line()
