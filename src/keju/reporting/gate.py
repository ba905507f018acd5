"""Show the result of a gate: in the terminal, as JUnit XML, as Markdown, and as a badge."""

from __future__ import annotations

from html import escape
from typing import TextIO
from xml.etree import ElementTree as ET

from keju.messages import current_language, printable
from keju.reporting.assertions import gate_assertion_table
from keju.reporting.format import Labels, count, decimals, percent
from keju.reporting.pairs import describe_tested_mean
from keju.reporting.table import Cell, TableColumn, TerminalScreen
from keju.results.gate import GateResult
from keju.results.gate_rows import AT_LEAST, NO_WORSE, GateRow
from keju.stats.gate import Verdict

COLOURS: dict[Verdict, str] = {"pass": "#2e7d32", "fail": "#c62828", "inconclusive": "#9e6a00"}
_CHARACTER, _PADDING, _HEIGHT = 6.6, 12, 20
"""The width of a character of a badge, and the padding around its words, in pixels."""


def gate_titles(labels: Labels) -> list[str]:
    """Return the column titles of the table."""
    names = "gate", "n", "baseline", "score", "value", "bounds", "limit", "verdict"
    return [labels(f"gate.{name}") for name in names]


def gate_cells(row: GateRow, labels: Labels) -> list[str]:
    """Return one gate as a row of the table."""
    title = f"{row.exam} · {row.arm}" if row.arm else row.exam
    return [
        labels("named", name=title, text=labels(f"gate.{row.gate}")),
        count(row.n),
        percent(row.baseline),
        percent(row.score),
        _amount(row, row.value, labels),
        f"{_amount(row, row.low, labels)} … {_amount(row, row.high, labels)}",
        _amount(row, row.limit, labels),
        labels(f"gate.{row.verdict}"),
    ]


def _amount(row: GateRow, value: float | None, labels: Labels) -> str:
    """Format the value of a gate: a score in percent, a difference in percentage points."""
    if row.gate == AT_LEAST or value is None:
        return percent(value)
    return labels("gate.points", points=f"{100 * value:+.{decimals()}f}")


def render_gate(
    result: GateResult, *, file: TextIO | None = None, width: int | None = None
) -> None:
    """Print a gate to `file` (stdout by default)."""
    labels, screen = Labels(current_language()), TerminalScreen(file, width)
    gate_title, *other_titles = gate_titles(labels)
    rows: list[list[Cell]] = [[*gate_cells(row, labels)] for row in result.rows]
    screen.table([gate_title, *(TableColumn(title, "right") for title in other_titles)], rows)
    screen.line()
    for notice in result.notices:
        screen.line(labels("warning", text=notice.text(labels.language)), style="yellow")
    for row in result.rows:
        screen.line(row.conclusion.text(labels.language), style="bold")
    for words in _mean_notes(result, labels):
        screen.line(words)
    assertions = gate_assertion_table(result.rows, labels)
    if assertions.rows:
        screen.line(labels("gate.assertions"))
        first_title, *number_titles = assertions.titles
        columns = [TableColumn(first_title), *(TableColumn(t, "right") for t in number_titles)]
        screen.table(columns, [[*row] for row in assertions.rows])
        screen.line()
    if _compares_with_baseline(result):
        screen.line(labels("gate.question"), style="dim")
    if result.steps:
        screen.line(labels("next"))
        screen.commands([(step.command, labels(step.label)) for step in result.steps])
    screen.flush()


def _mean_notes(result: GateResult, labels: Labels) -> list[str]:
    """Return which mean was tested, for exams whose headline is another metric."""
    words = (describe_tested_mean(row, labels) for row in result.rows)
    return list(dict.fromkeys(filter(None, words)))


def _compares_with_baseline(result: GateResult) -> bool:
    """Return whether a gate compares the run with a baseline: it asks how much worse the run is."""
    return any(row.gate == NO_WORSE for row in result.rows)


def junit(result: GateResult) -> str:
    """Return a test suite with one case for each gate; an inconclusive gate is an error."""
    counts = [row.verdict for row in result.rows]
    suite = ET.Element(
        "testsuite",
        name="keju gate",
        tests=str(len(counts)),
        failures=str(counts.count("fail")),
        errors=str(counts.count("inconclusive")),
        skipped="0",
    )
    labels = Labels("en")
    for row in result.rows:
        title = printable(gate_cells(row, labels)[0], one_line=True)
        case = ET.SubElement(suite, "testcase", classname=f"keju.{row.exam}", name=title)
        message = printable(row.conclusion.text(), one_line=True)
        if row.verdict == "pass":
            ET.SubElement(case, "system-out").text = message
        else:
            kind = "failure" if row.verdict == "fail" else "error"
            ET.SubElement(case, kind, message=message, type=row.verdict).text = message
    ET.indent(suite)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(suite, encoding="unicode")}\n'


def markdown(result: GateResult) -> str:
    """Return a table and a sentence for each gate, for a comment on a pull request."""
    labels = Labels("en")
    against = f" against `{_plain(result.baseline)}`" if result.baseline else ""
    lines = [f"### Keju gate: {result.verdict}", "", f"`{_plain(result.run)}`{against}", ""]
    titles = gate_titles(labels)
    lines += [f"| {' | '.join(titles)} |", "|---" + "|--:" * (len(titles) - 1) + "|"]
    for row in result.rows:
        lines.append(f"| {' | '.join(_plain(cell) for cell in gate_cells(row, labels))} |")
    lines += ["", *(f"- {_plain(row.conclusion.text())}" for row in result.rows)]
    lines += [f"- {_plain(words)}" for words in _mean_notes(result, labels)]
    lines += [f"- warning: {_plain(notice.text())}" for notice in result.notices]
    assertions = gate_assertion_table(result.rows, labels)
    if assertions.rows:
        lines += ["", _plain(labels("gate.assertions")), ""]
        lines += [f"| {' | '.join(assertions.titles)} |"]
        lines += ["|---" + "|--:" * (len(assertions.titles) - 1) + "|"]
        lines += [f"| {' | '.join(map(_plain, cells))} |" for cells in assertions.rows]
    if _compares_with_baseline(result):
        lines += ["", _plain(labels("gate.question"))]
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """Escape a text for a Markdown table."""
    escaped = escape(printable(text, one_line=True), quote=False)
    return escaped.replace("|", "\\|").replace("`", "'")


def badge(result: GateResult) -> str:
    """Return an SVG badge with two fields; the colour shows the verdict."""
    words, colour = ("keju gate", result.verdict), COLOURS[result.verdict]
    label_width, verdict_width = (round(len(word) * _CHARACTER + _PADDING) for word in words)
    summary = escape("; ".join(row.conclusion.text() for row in result.rows))
    text = 'y="14" text-anchor="middle" fill="#fff" font-family="Verdana,sans-serif" font-size="11"'
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" '
        f'width="{label_width + verdict_width}" height="{_HEIGHT}" '
        f'role="img" aria-label="{words[0]}: {words[1]}"><title>{printable(summary)}</title>'
        f'<rect width="{label_width}" height="{_HEIGHT}" fill="#424242"/>'
        f'<rect x="{label_width}" width="{verdict_width}" height="{_HEIGHT}" fill="{colour}"/>'
        f'<text x="{label_width / 2:g}" {text}>{words[0]}</text>'
        f'<text x="{label_width + verdict_width / 2:g}" {text}>{words[1]}</text></svg>\n'
    )
