"""The table for a paper: one row for each model, one column for each exam.

Every column shows the main number of the results. A note below the table names it. If the exam's
publication reports another metric, the note has that one, too. Further notes hold warnings about
single values, and no commands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from keju.benchmarks import registry
from keju.errors import KejuError
from keju.messages import Language
from keju.reporting import format as fmt
from keju.reporting.format import Labels
from keju.reporting.tables import escape_latex, escape_markdown, without_command
from keju.reporting.titles import title_of
from keju.reporting.warning_lines import SHOWN, points_at_stake
from keju.results.schema import NO_GOLD, ResultEntry, Results

MISSING = "–"
"""The cell of an exam that a model was not evaluated on."""
ColumnKey = tuple[str, str, str]
"""The exam, the protocol with its version, and the reader."""


class PaperCell(NamedTuple):
    """One value, in percent."""

    value: str
    ends: tuple[str, str] | None = None
    """The ends of its interval."""
    note: int = 0
    """The number of its note; 0 if there is none."""


class PaperRow(NamedTuple):
    """One model, or one arm of a run."""

    name: str
    cells: list[PaperCell]


class PaperTable(NamedTuple):
    """The table, in one language."""

    columns: list[str]
    rows: list[PaperRow]
    metrics: list[str]
    """For each column: the metric, protocol, reader and number of questions."""
    notes: list[str]
    """The numbered notes about single values."""


def make_paper_table(runs: Sequence[Results], language: Language) -> PaperTable:
    """Return the table of several runs; runs of one model on different exams share a row."""
    labels = Labels(language)
    entries_by_row = _group_rows(runs)
    keys = list(dict.fromkeys(key for entries in entries_by_row.values() for key in entries))
    notes: list[str] = []
    rows = []
    for name, entries in entries_by_row.items():
        cells = []
        for key in keys:
            stored = entries.get(key)
            cell = PaperCell(MISSING)
            if stored is not None:
                results, entry = stored
                cell = _make_cell(entry, labels)
                if note := _describe_doubts(results, entry, labels):
                    notes.append(f"{name}, {title_of(entry.name)}: {note}")
                    cell = cell._replace(note=len(notes))
            cells.append(cell)
        rows.append(PaperRow(name, cells))
    metrics = [
        _describe_metric({row: e[key][1] for row, e in entries_by_row.items() if key in e}, labels)
        for key in keys
    ]
    return PaperTable(_name_columns(keys), rows, metrics, notes)


RowEntries = dict[ColumnKey, tuple[Results, ResultEntry]]


def _group_rows(runs: Sequence[Results]) -> dict[str, RowEntries]:
    """Return the entries of each row; a second run of a model on an exam gets its own row."""
    groups: list[tuple[str, str, RowEntries]] = []
    for results in runs:
        for arm, entries in _entries_by_arm(results).items():
            model = results.model.rstrip("/").rpartition("/")[2] or results.run or "?"
            name = f"{model}, {arm}" if arm else model
            row = next(
                (r for n, _, r in groups if n == name and not r.keys() & entries.keys()), None
            )
            if row is None:
                row = {}
                groups.append((name, results.run or "", row))
            row.update({key: (results, entry) for key, entry in entries.items()})
    counts = Counter(name for name, _, _ in groups)
    return {
        name if counts[name] == 1 else f"{name} ({run})": entries for name, run, entries in groups
    }


def _entries_by_arm(results: Results) -> dict[str, dict[ColumnKey, ResultEntry]]:
    """Return the entries of each arm, of the first reader of each exam."""
    by_arm: dict[str, dict[ColumnKey, ResultEntry]] = {}
    seen_exams = set()
    for entry in results.benchmarks:
        protocol = fmt.protocol_line(entry)
        if (entry.name, protocol, entry.arm) not in seen_exams:
            seen_exams.add((entry.name, protocol, entry.arm))
            by_arm.setdefault(entry.arm, {})[entry.name, protocol, entry.reader] = entry
    return by_arm


def _name_columns(keys: Sequence[ColumnKey]) -> list[str]:
    """Return the titles of the exams, with the protocol and the reader where they differ."""
    exams = Counter(name for name, _, _ in keys)
    protocols = Counter((name, protocol) for name, protocol, _ in keys)
    columns = []
    for name, protocol, reader in keys:
        distinctions = [protocol] if exams[name] > protocols[name, protocol] else []
        if protocols[name, protocol] > 1:
            distinctions.append(reader)
        columns.append(" ".join([title_of(name), *(f"({part})" for part in distinctions)]))
    return columns


def _make_cell(entry: ResultEntry, labels: Labels) -> PaperCell:
    if entry.gold == NO_GOLD or not fmt.answered_rows([entry]):
        return PaperCell(MISSING)
    metric = fmt.display_metrics(entry, labels)[0].metric
    if metric.value is None:
        ends = "–".join(f"{100 * end:.2f}" for end in metric.bounds or ())
        return PaperCell(ends or MISSING)
    interval = metric.ci95
    return PaperCell(f"{100 * metric.value:.2f}", None if interval is None else _ends(interval))


def _ends(interval: Sequence[float]) -> tuple[str, str]:
    low, high = interval
    return f"{100 * low:.2f}", f"{100 * high:.2f}"


def _describe_metric(entries: Mapping[str, ResultEntry], labels: Labels) -> str:
    """Return the metric of a column, how its values were measured, and the paper's metric."""
    entry = next(iter(entries.values()))
    counts = sorted({each.n for each in entries.values()})
    n = fmt.count(counts[0])
    if len(counts) > 1:
        n = f"{n}–{fmt.count(counts[-1])}"
    published = fmt.published_metrics(entry)
    is_paper_metric = not published or entry.headline in published
    text = labels(
        "paper.metric" if is_paper_metric and _is_published(entry.name) else "paper.own_metric",
        exam=title_of(entry.name),
        metric=fmt.display_metrics(entry, labels)[0].marked_title(labels),
        protocol=fmt.protocol_line(entry),
        reader=entry.reader,
        n=n,
    )
    return text if is_paper_metric else text + _describe_paper_metric(published[0], entries, labels)


def _describe_paper_metric(name: str, entries: Mapping[str, ResultEntry], labels: Labels) -> str:
    """Return the paper's metric with its value for each row that has all of its tasks."""
    title = labels.metric(name, next(iter(entries.values())).metrics[name].title)
    values = []
    for row, entry in entries.items():
        metric = entry.metrics.get(name)
        if metric is not None and metric.value is not None and not metric.partial:
            value = f"{100 * metric.value:.2f}"
            values.append(value if len(entries) == 1 else f"{row} {value}")
    text = labels("paper.other_metric", title=title)
    return text + labels("paper.values", values=", ".join(values)) if values else text


def _is_published(name: str) -> bool:
    """Whether an exam has published data, and so a publication that chooses the metric."""
    try:
        return registry.get(name).layout is not None
    except (KejuError, OSError):
        return False


def _describe_doubts(results: Results, entry: ResultEntry, labels: Labels) -> str:
    """Return what a reader of the table must know about a value, the most important first."""
    parts = [text for text in (fmt.describe_incomplete(results, labels),) if text]
    notices = sorted(entry.notices, key=points_at_stake, reverse=True)[:SHOWN]
    parts += [without_command(notice, labels) for notice in notices]
    return "; ".join(dict.fromkeys(part.rstrip(".。") for part in parts))


def _text_of(cell: PaperCell, *, intervals: bool) -> str:
    if not intervals or cell.ends is None:
        return cell.value
    return f"{cell.value} [{cell.ends[0]}, {cell.ends[1]}]"


def _note_lines(table: PaperTable, labels: Labels, *, intervals: bool) -> Iterator[str]:
    yield labels("paper.percent_intervals" if intervals else "paper.percent")
    yield from table.metrics


def paper_markdown(table: PaperTable, language: Language, *, intervals: bool) -> str:
    """Return the table in Markdown, with its notes."""
    labels = Labels(language)

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cells) + " |"

    titles = [labels("paper.model"), *table.columns]
    lines = [line([escape_markdown(title) for title in titles])]
    lines.append("|---|" + "---:|" * len(table.columns))
    for row in table.rows:
        cells = [
            escape_markdown(_text_of(cell, intervals=intervals))
            + (f"<sup>{cell.note}</sup>" if cell.note else "")
            for cell in row.cells
        ]
        lines.append(line([escape_markdown(row.name), *cells]))
    lines.append("")
    for text in _note_lines(table, labels, intervals=intervals):
        lines += [escape_markdown(text), ""]
    for number, note in enumerate(table.notes, 1):
        lines += [f"<sup>{number}</sup> {escape_markdown(note)}", ""]
    return "\n".join(lines).rstrip() + "\n"


def paper_latex(table: PaperTable, language: Language, *, intervals: bool) -> str:
    """Return the table in LaTeX, with booktabs rules and its notes."""
    labels = Labels(language)
    titles = [labels("paper.model"), *table.columns]
    lines = [
        r"% \usepackage{booktabs}, \usepackage{textcomp}, \usepackage[T1]{fontenc}",
        r"\begin{table}",
        r"\centering",
        rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}",
        r"\toprule",
        " & ".join(map(escape_latex, titles)) + r" \\",
        r"\midrule",
    ]
    for row in table.rows:
        cells = [
            escape_latex(_text_of(cell, intervals=intervals))
            + (rf"\textsuperscript{{{cell.note}}}" if cell.note else "")
            for cell in row.cells
        ]
        lines.append(" & ".join([escape_latex(row.name), *cells]) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}", r"{\footnotesize"]
    lines += [rf"\par {escape_latex(t)}" for t in _note_lines(table, labels, intervals=intervals)]
    lines += [
        rf"\par \textsuperscript{{{number}}} {escape_latex(note)}"
        for number, note in enumerate(table.notes, 1)
    ]
    return "\n".join([*lines, r"\par}", r"\end{table}"]) + "\n"


def paper_rows(table: PaperTable, *, intervals: bool) -> list[list[str]]:
    """Return the rows of a CSV file, the titles first: values in percent, empty if missing."""
    ends = ("", " low", " high") if intervals else ("",)
    titles = ["model", *(f"{column}{end}" for column in table.columns for end in ends)]
    rows = [titles]
    for row in table.rows:
        values = [row.name]
        for cell in row.cells:
            values.append("" if cell.value == MISSING else cell.value)
            if intervals:
                values += cell.ends or ("", "")
        rows.append(values)
    return rows
