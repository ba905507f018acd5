"""Results in the terminal: the number, what kind of number it is, and what stands beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from msgspec import UNSET

from keju.messages import spoken
from keju.report import arms, curves, meaning
from keju.report import format as fmt
from keju.report.endpoints import endpoint_table
from keju.report.format import UNKNOWN, Labels, Shown, count, interval, percent, share, shorten
from keju.report.judges import judge_words
from keju.report.table import Cell, Column, Screen
from keju.results.curve import Curve
from keju.results.schema import NO_GOLD, Disagreement, Entry, Results

_ANSWER_WIDTH = 40
_SPARED = {"published": 4, "correct": 3, "incorrect": 3, "chance": 2}
"""What a narrow screen can spare, the largest first: accuracy and n tell right from wrong."""
_INDENT = 2
_STYLES: dict[meaning.Standing | None, str] = {
    None: "bold green",
    "above": "bold green",
    "like": "bold",
    "below": "bold yellow",
}
"""Of a headline, by where it stands against guessing."""


def render_results(
    results: Results, *, file: TextIO | None = None, width: int | None = None
) -> None:
    """Print results to `file` (stdout by default).

    Plain text where `file` is not a terminal. Rows keep the order of the document.
    """
    labels = Labels(spoken())
    screen = Screen(file, width)
    together = [entry for entry in results.benchmarks if not results.is_level(entry)]
    if fmt.answered(together):
        _overview(screen, results, labels)
    _arms(screen, results, labels)
    if results.disagreements:
        _disagreements(screen, results.disagreements, labels)
    for family in fmt.families(results):
        if len(family) > 1 and fmt.answered(family):
            _readers(screen, family, labels)
            _published(screen, family[0], labels)
        for entry in family:
            _entry(screen, entry, results, labels)
            if len(family) == 1 and fmt.answered(family) and not results.is_level(entry):
                _published(screen, entry, labels)
                _tables(screen, entry, labels)
    for curve in results.curves:
        _curve(screen, curve, labels)
    if results.endpoints:
        table = endpoint_table(results, labels)
        screen.line(labels("endpoints.title"), style="bold")
        _table(screen, list(table.titles), [list(row) for row in table.rows])
    if not results.benchmarks:
        screen.line(labels("no_results"))
    if ended := fmt.ended_words(results, labels):
        screen.line(ended, style="bold yellow")
    screen.flush()


def _overview(screen: Screen, results: Results, labels: Labels) -> None:
    """Several exams in one table, a row each."""
    rows: list[list[Cell]] = [
        [
            entry.full_name,
            fmt.protocol_line(entry),
            entry.reader,
            figure,
            None if ends is None else interval(ends),
            labels.graded(entry),
            metric or None,
        ]
        for entry, figure, ends, metric in fmt.overview(results, labels)
    ]
    columns: list[str | Column] = [
        labels.word("exam"),
        Column(labels.word("protocol"), "left"),
        Column(labels.word("reader"), "left", spare=2),
        labels.word("headline"),
        labels("interval"),
        "n",
        Column(labels.word("metric"), "left", spare=1),
    ]
    _table(screen, columns, rows)


def _arms(screen: Screen, results: Results, labels: Labels) -> None:
    """The arms side by side, each pair compared, and what that shows."""
    for table in (arms.arm_table(results, labels), arms.pair_table(results, labels)):
        _table(screen, list(table.titles), [list(row) for row in table.rows])
    for line in arms.pair_lines(results, labels):
        screen.line(line, style="bold")
    if results.comparisons and fmt.answered(results.benchmarks):
        screen.line()


def _curve(screen: Screen, curve: Curve, labels: Labels) -> None:
    """Accuracy against difficulty: the whole exam, its subsets, and what that shows."""
    name = labels("curve.of_exam", exam=curve.exam, reader=curve.reader)
    screen.line(labels("named", name=labels("curve.title"), text=name), style="bold")
    levels = curves.level_table(curve, labels)
    plain = not _shows("".join(curves.FINE), screen.file)
    strips = [curves.strip(point, plain=plain) for point in curve.points]
    columns: list[str | Column] = [*levels.titles, Column(labels("curve.strip"), "left", spare=1)]
    _table(screen, columns, [[*row, own] for row, own in zip(levels.rows, strips, strict=True)])
    subsets = curves.subset_table(curve, labels)
    _table(screen, list(subsets.titles), [list(row) for row in subsets.rows])
    for line in curves.curve_lines(curve, labels):
        screen.line(line, style="bold")
    screen.line()


def _shows(characters: str, file: TextIO) -> bool:
    try:
        characters.encode(getattr(file, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _entry(screen: Screen, entry: Entry, results: Results, labels: Labels) -> None:
    """One reader's results on one benchmark, without its subsets and groups."""
    parts = [entry.name, *([labels.arm(entry.arm)] if entry.arm else [])]
    parts.append(f"{labels.word('protocol')} {fmt.protocol_line(entry)}")
    parts.append(labels("read_by", reader=entry.reader))
    if results.model:
        parts.append(f"{labels.word('model')} {results.model}")
    screen.line(" · ".join([*parts, f"n {labels.graded(entry)}"]), style="bold")
    first, *others = fmt.alike(fmt.shown_metrics(entry, labels))
    if entry.gold == NO_GOLD:
        first, others = first[:1], []
    run = fmt.named_run(results)
    words = filter(None, [_headline(entry, run, labels), meaning.remark(entry, run, labels)])
    headline = labels("pair_separator").join(words)
    screen.line(headline, style=_STYLES[meaning.standing(entry, labels)], indent=_INDENT)
    lines = [
        _same(first, labels),
        *(line for own in others for line in (_metric_line(own[0], labels), _same(own, labels))),
        fmt.gold_words(entry, labels),
        " · ".join(fmt.outcome_words(entry.outcomes, labels, cut_right=entry.cut_right)),
        fmt.sign_words(entry, labels),
        judge_words(entry.judge, labels),
        arms.tool_words(entry, labels),
        fmt.spent_words(entry, labels),
        fmt.error_words(entry.errors, labels),
        *fmt.left_out_words(entry, labels),
        meaning.chance_words(entry, labels),
        fmt.errata_words(entry, run, labels),
    ]
    for line in filter(None, lines if fmt.answered([entry]) else ()):
        screen.line(line, indent=_INDENT)
    for warning in labels.warnings(entry):
        screen.line(labels("warning", text=warning), style="yellow", indent=_INDENT)
    screen.line()
    tools = arms.tool_table(entry, labels)
    _table(screen, list(tools.titles), [list(row) for row in tools.rows])
    for kind, metric, rows in fmt.breakdowns(entry, labels):
        columns = [kind, "n", metric.lower(), labels("interval")]
        cells: list[list[Cell]] = [
            [row.name, labels.graded(row), share(row.accuracy, row.bounds), interval(row.ci95)]
            for row in rows
        ]
        _table(screen, columns, cells)


def _headline(entry: Entry, run: str, labels: Labels) -> str:
    headline, shown = fmt.headline_of(entry, run, labels), fmt.shown_metrics(entry, labels)[0]
    if headline.title == shown.title:
        words = filter(None, [_metric_line(shown, labels), headline.note])
        return labels("pair_separator").join(words)
    # What is not the usual number is called by another name: "exact match", "no score".
    line = " ".join(filter(None, [headline.title, headline.figure]))
    line += labels("in_brackets", text=headline.note) if headline.note else ""
    ends = shown.metric.ci95
    beside = [] if ends is None else [labels("interval_of", interval=interval(ends))]
    return labels("pair_separator").join([line, *beside])


def _metric_line(shown: Shown, labels: Labels) -> str:
    metric = shown.metric
    is_named = shown.name == "accuracy" or shown.name in shown.title
    title = shown.title + ("" if is_named else labels("in_brackets", text=shown.name))
    figure = share(metric.value, metric.bounds)
    if metric.ci95 is not None:
        ends = labels("interval_of", interval=interval(metric.ci95))
        figure += labels("in_brackets", text=ends)
    figures = labels("clause_separator").join([figure, f"n {count(metric.n)}"])
    line = labels("named", name=title, text=figures)
    return labels("pair_separator").join([line, *fmt.metric_notes(metric, labels)])


def _same(metrics: Sequence[Shown], labels: Labels) -> str:
    """The titles of the metrics that have the value of the first one, to stand below its line."""
    first, *others = metrics
    named = dict.fromkeys(shown.marked(labels) for shown in others)
    titles = labels("pair_separator").join(named)
    figure = share(first.metric.value, first.metric.bounds)
    return labels("also_metrics", figure=figure, titles=titles) if titles else ""


def _table(
    screen: Screen, columns: Sequence[str | Column], rows: list[list[Cell]], note: str = ""
) -> None:
    """A table whose first column names its rows and whose others stand to the right."""
    if rows:
        named = [c if isinstance(c, Column) else Column(c, "right") for c in columns[1:]]
        screen.table([columns[0], *named], rows)
        if note:
            screen.line(note)
        screen.line()


def _published(screen: Screen, entry: Entry, labels: Labels) -> None:
    """Published figures of the whole exam: a row each, a column for each mean they are of."""
    titles = fmt.published_titles(entry, labels)
    rows: list[list[Cell]] = [
        [fmt.reference_name(r, labels), *(percent(r.overall.get(name)) for name in titles)]
        for r in entry.reference
    ]
    _table(
        screen,
        [labels.word("published"), *titles.values()],
        rows if titles else [],
    )


def _tables(screen: Screen, entry: Entry, labels: Labels) -> None:
    """A row for each subset, then for each group; an outcome that occurs nowhere has no column."""
    occurring = fmt.occurring_outcomes(entry.subsets)
    references = fmt.subset_references(entry)
    columns: list[str | Column] = [
        labels.word("subset"),
        "n",
        labels.word("accuracy"),
        labels("interval"),
        Column(labels.word("chance"), "right", spare=_SPARED["chance"]),
        *(
            Column(fmt.reference_name(r, labels), "right", spare=_SPARED["published"])
            for r in references
        ),
        *(
            Column(labels(f"outcome.{outcome}"), "right", spare=_SPARED.get(outcome, 1))
            for outcome in occurring
        ),
    ]
    rows: list[list[Cell]] = [
        [
            labels.row(row),
            labels.graded(row),
            share(row.accuracy, row.bounds),
            interval(row.ci95),
            percent(row.chance),
            *(percent(r.subsets.get(row.name)) for r in references),
            *(labels.counted(row, outcome) for outcome in occurring),
        ]
        for row in fmt.answered(entry.subsets)
    ]
    _table(screen, columns, rows)
    groups: list[list[Cell]] = [
        [
            labels.row(row),
            labels.graded(row),
            share(row.accuracy, row.bounds),
            interval(row.ci95),
            percent(row.micro_accuracy if row.micro_accuracy is not UNSET else None),
        ]
        for row in fmt.answered(entry.groups)
    ]
    means = (labels("mean_of_subsets"), labels("interval"), labels("mean_of_questions"))
    titles = [labels.word("group"), "n", *means]
    _table(screen, titles, groups, note=fmt.group_words(entry, labels))


def _readers(screen: Screen, family: Sequence[Entry], labels: Labels) -> None:
    """Several readers of the same replies: a column for each."""
    first = family[0]
    protocol = f"{labels.word('protocol')} {fmt.protocol_line(first)}"
    title = f"{first.full_name} · {protocol} · {labels('readers_beside')}"
    screen.line(title, "bold")
    headlines = [fmt.shown_metrics(entry, labels)[0] for entry in family]
    whole = [
        share(metric.value, metric.bounds) + (f" ({interval(metric.ci95)})" if metric.ci95 else "")
        for _, _, metric in headlines
    ]
    accuracies = [
        {row.name: share(row.accuracy, row.bounds) for row in entry.subsets} for entry in family
    ]
    rows: list[list[Cell]] = [
        [labels("all_by", name=headlines[0].name), labels.graded(first), *whole]
    ]
    for outcome in fmt.occurring_outcomes(family):
        rows.append(
            [
                labels("count_of", outcome=labels(f"outcome.{outcome}")),
                None,
                *(labels.counted(e, outcome) for e in family),
            ]
        )
    for row in fmt.answered(first.subsets):
        shares = (by_name.get(row.name, UNKNOWN) for by_name in accuracies)
        rows.append([labels.row(row), labels.graded(row), *shares])
    _table(screen, [labels.word("subset"), "n", *(entry.reader for entry in family)], rows)


def _disagreements(screen: Screen, disagreements: Sequence[Disagreement], labels: Labels) -> None:
    """The replies that the readers score differently, all of them; the others are counted."""
    total = len(disagreements)
    shown = [row for row in disagreements if row.decides]
    readers = list(dict.fromkeys(name for d in disagreements for name in d.answers))
    title = labels("readers_disagree", n=count(total))
    if len(shown) < total:
        title += labels("readers_deciding", n=count(len(shown)))
    names = (labels.word("target"), *readers)
    columns = [Column("id", id=True), *(Column(name, fold=True) for name in names)]
    rows: list[list[Cell]] = []
    for row in shown:
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
