"""Return results as Markdown and LaTeX tables; all names are escaped."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from keju.errors import Notice
from keju.messages import Language
from keju.reporting import format as fmt
from keju.reporting.format import Labels, count, interval, share
from keju.reporting.warning_lines import warning_line
from keju.results.schema import NO_GOLD, ResultEntry, Results


class _IntervalRow(NamedTuple):
    """A number with its interval and the number of questions."""

    name: str
    figure: str
    ends: str
    n: str
    strong: bool = False

    def cells(self, clean: Callable[[str], str]) -> list[str]:
        return [clean(cell) for cell in self[:4]]


def _rows(entry: ResultEntry, labels: Labels) -> list[list[_IntervalRow]]:
    """Return the rows of the metrics, the groups and the subsets; empty if there is no number."""
    if entry.gold == NO_GOLD or not fmt.answered_rows([entry]):
        return []

    def row(
        name: str, value: float | None, source: object, *, strong: bool = False
    ) -> _IntervalRow:
        bounds, ends = getattr(source, "bounds", None), getattr(source, "ci95", None)
        n = count(getattr(source, "n", None))
        return _IntervalRow(name, share(value, bounds), interval(ends), n, strong)

    metrics = [
        row(
            metric.marked_title(labels), metric.metric.value, metric.metric, strong=not place
        )._replace(figure=fmt.metric_figure(metric.metric), ends=fmt.metric_interval(metric.metric))
        for place, metric in enumerate(fmt.display_metrics(entry, labels))
    ]
    parts = [
        [
            row(labels.row(table_row), table_row.accuracy, table_row)._replace(
                n=labels.graded_count(table_row)
            )
            for table_row in fmt.answered_rows(rows)
        ]
        for rows in (entry.groups, entry.subsets)
    ]
    return [part for part in (metrics, *parts) if part]


def _title(entry: ResultEntry, results: Results, labels: Labels) -> str:
    reader = f"{labels('reader')} {entry.reader}"
    return " · ".join([results.model, entry.full_name, fmt.protocol_line(entry), reader])


def _notes(entry: ResultEntry, results: Results, labels: Labels) -> list[str]:
    """Return the notes that must accompany the numbers."""
    headline = fmt.headline_of(entry, fmt.run_command_name(results), labels)
    notes = [] if headline.figure else [headline.title]
    if entry.grader and headline.figure:
        bounds = fmt.display_metrics(entry, labels)[0].metric.bounds
        notes.append(labels("paper.exact", best=fmt.percent(bounds[1])) if bounds else "")
    elif not _names_command(headline.note):
        notes.append(headline.note)
    ended = fmt.describe_incomplete(results, labels)
    pairs = zip(entry.notices, labels.warnings(entry), strict=False)
    warnings = [without_command(notice, labels, sentence) for notice, sentence in pairs]
    warnings += labels.warnings(entry)[len(entry.notices) :]
    return [text for text in (*notes, ended, *warnings) if text]


def without_command(notice: Notice, labels: Labels, sentence: str = "") -> str:
    """Return a warning without the command that shows more: for tables that others read."""
    text = sentence or notice.text(labels.language)
    return warning_line(notice, "", labels).text if _names_command(text) else text


def _names_command(text: str) -> bool:
    return "keju " in text


# The characters that Markdown or HTML would interpret. A hyphen inside a word, as in `qwen-7b`, and
# round brackets, which make a link only after a square one, stay as they are.
_MARKDOWN = re.compile(r"([\\`*_{}\[\]#+!|~$^]|(?<![A-Za-z0-9])-|-(?![A-Za-z0-9]))")


def escape_markdown(text: str) -> str:
    """Return a text as Markdown shows it unchanged, on one line."""
    text = fmt.printable(text, one_line=True).replace("&", "&amp;").replace("<", "&lt;")
    return _MARKDOWN.sub(r"\\\1", text).replace(">", "&gt;")


def markdown(results: Results, language: Language = "en") -> str:
    """Return a table for each exam and reader, followed by its notes."""
    labels = Labels(language)
    titles = [labels(key) for key in ("metric", "value", "interval", "n")]
    lines: list[str] = []
    for entry in results.benchmarks:
        lines += [f"### {escape_markdown(_title(entry, results, labels))}", ""]
        if parts := _rows(entry, labels):
            lines += [
                "| " + " | ".join(map(escape_markdown, titles)) + " |",
                "|---|---:|---:|---:|",
            ]
        for row in (row for part in parts for row in part):
            cells = row.cells(escape_markdown)
            cells = [f"**{cell}**" for cell in cells] if row.strong else cells
            lines.append("| " + " | ".join(cells) + " |")
        lines.append("")
        for text in _notes(entry, results, labels):
            lines += [f"> {escape_markdown(text)}", ""]
    return "\n".join(lines).rstrip() + "\n"


_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "`": r"\textasciigrave{}",
    "'": r"\textquotesingle{}",
    '"': r"\textquotedbl{}",
    "–": "--",
    "—": "---",
    "·": r"\textperiodcentered{}",
    "…": r"\dots{}",
    "-": "{-}",
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
}
"""The characters that LaTeX would interpret: ``--`` would be a dash, ``[`` an optional argument."""
# The hyphen of `qwen-7b`: between two letters or digits it needs no braces.
_INNER_HYPHEN = re.compile(r"(?<=[A-Za-z0-9])\{-\}(?=[A-Za-z0-9])")


def escape_latex(text: str) -> str:
    """Return a text as LaTeX prints it unchanged."""
    escaped = "".join(_LATEX.get(char, char) for char in fmt.printable(text, one_line=True))
    return _INNER_HYPHEN.sub("-", escaped)


def _render_tabular(
    titles: Sequence[str], parts: Sequence[Sequence[_IntervalRow]]
) -> Iterator[str]:
    """Yield the lines of a table; a rule separates its parts."""
    yield from (r"\begin{tabular}{lrrr}", r"\toprule")
    yield " & ".join(map(escape_latex, titles)) + r" \\"
    for part in parts:
        yield r"\midrule"
        for row in part:
            cells = row.cells(escape_latex)
            cells = [rf"\textbf{{{cell}}}" for cell in cells] if row.strong else cells
            yield " & ".join(cells) + r" \\"
    yield from (r"\bottomrule", r"\end{tabular}")


def latex(results: Results, language: Language = "en") -> str:
    """Return a table for each exam and reader with booktabs rules; a comment names the packages."""
    labels = Labels(language)
    titles = [labels(key) for key in ("metric", "value", "interval", "n")]
    lines = [r"% \usepackage{booktabs}, \usepackage{textcomp}, \usepackage[T1]{fontenc}"]
    for entry in results.benchmarks:
        notes = [rf"\par {escape_latex(text)}" for text in _notes(entry, results, labels)]
        lines += ["", r"\begin{table}", r"\centering"]
        lines.append(rf"\caption{{{escape_latex(_title(entry, results, labels))}}}")
        if parts := _rows(entry, labels):
            lines += _render_tabular(titles, parts)
        if notes:
            lines += [r"{\footnotesize", *notes, r"\par}"]
        lines.append(r"\end{table}")
    return "\n".join(lines) + "\n"
