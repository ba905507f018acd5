"""Results as tables for a paper or a page: Markdown and LaTeX, whatever the names in them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from keju.messages import Language
from keju.report import format as fmt
from keju.report.format import Labels, count, interval, share
from keju.results.schema import NO_GOLD, Entry, Results


class _Row(NamedTuple):
    """A number with its interval and the questions behind it."""

    name: str
    figure: str
    ends: str
    n: str
    strong: bool = False

    def cells(self, clean: Callable[[str], str]) -> list[str]:
        return [clean(cell) for cell in self[:4]]


def _rows(entry: Entry, labels: Labels) -> list[list[_Row]]:
    """The headline and the other metrics; the groups; the subsets. Empty without any number."""
    if entry.gold == NO_GOLD or not fmt.answered([entry]):
        return []

    def row(name: str, value: float | None, found: object, *, strong: bool = False) -> _Row:
        bounds, ends = getattr(found, "bounds", None), getattr(found, "ci95", None)
        n = count(getattr(found, "n", None))
        return _Row(name, share(value, bounds), interval(ends), n, strong)

    metrics = [
        row(shown.marked(labels), shown.metric.value, shown.metric, strong=not place)
        for place, shown in enumerate(fmt.shown_metrics(entry, labels))
    ]
    parts = [
        [
            row(labels.row(each), each.accuracy, each)._replace(n=labels.graded(each))
            for each in fmt.answered(rows)
        ]
        for rows in (entry.groups, entry.subsets)
    ]
    return [part for part in (metrics, *parts) if part]


def _title(entry: Entry, results: Results, labels: Labels) -> str:
    reader = f"{labels('reader')} {entry.reader}"
    return " · ".join([results.model, entry.full_name, fmt.protocol_line(entry), reader])


def _said(entry: Entry, results: Results, labels: Labels) -> list[str]:
    """What must not be left out beside the numbers."""
    headline = fmt.headline_of(entry, fmt.named_run(results), labels)
    said = [headline.note] if headline.figure else [headline.title, headline.note]
    ended = fmt.ended_words(results, labels)
    return [text for text in (*said, ended, *labels.warnings(entry)) if text]


# Everything that Markdown or HTML in it could take for a sign of its own.
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+!|~$^-])")


def _markdown(text: str) -> str:
    text = fmt.printable(text, one_line=True).replace("&", "&amp;").replace("<", "&lt;")
    return _MARKDOWN.sub(r"\\\1", text).replace(">", "&gt;")


def markdown(results: Results, language: Language = "en") -> str:
    """A table for each exam and reader, with what is to be said of it below."""
    labels = Labels(language)
    titles = [labels(key) for key in ("metric", "value", "interval", "n")]
    lines: list[str] = []
    for entry in results.benchmarks:
        lines += [f"### {_markdown(_title(entry, results, labels))}", ""]
        if parts := _rows(entry, labels):
            lines += ["| " + " | ".join(map(_markdown, titles)) + " |", "|---|---:|---:|---:|"]
        for row in (row for part in parts for row in part):
            cells = row.cells(_markdown)
            cells = [f"**{cell}**" for cell in cells] if row.strong else cells
            lines.append("| " + " | ".join(cells) + " |")
        lines.append("")
        for text in _said(entry, results, labels):
            lines += [f"> {_markdown(text)}", ""]
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
"""What LaTeX takes for a sign of its own: ``--`` would be a dash, ``[`` a length behind a line."""


def _latex(text: str) -> str:
    return "".join(_LATEX.get(char, char) for char in fmt.printable(text, one_line=True))


def latex(results: Results, language: Language = "en") -> str:
    """A table for each exam and reader, with booktabs' rules; needs the packages named on top."""
    labels = Labels(language)
    titles = [labels(key) for key in ("metric", "value", "interval", "n")]
    lines = [r"% \usepackage{booktabs}, \usepackage{textcomp}, \usepackage[T1]{fontenc}"]
    for entry in results.benchmarks:
        said = [rf"\par {_latex(text)}" for text in _said(entry, results, labels)]
        lines += ["", r"\begin{table}", r"\centering"]
        lines.append(rf"\caption{{{_latex(_title(entry, results, labels))}}}")
        if parts := _rows(entry, labels):
            lines += [r"\begin{tabular}{lrrr}", r"\toprule"]
            lines.append(" & ".join(map(_latex, titles)) + r" \\")
        for part in parts:
            lines.append(r"\midrule")
            for row in part:
                cells = row.cells(_latex)
                cells = [rf"\textbf{{{cell}}}" for cell in cells] if row.strong else cells
                lines.append(" & ".join(cells) + r" \\")
        if parts:
            lines += [r"\bottomrule", r"\end{tabular}"]
        if said:
            lines += [r"{\footnotesize", *said, r"\par}"]
        lines.append(r"\end{table}")
    return "\n".join(lines) + "\n"
