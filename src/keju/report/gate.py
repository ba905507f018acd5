"""What a gate says: in the terminal, as JUnit XML, as Markdown for a pull request, as a badge."""

from __future__ import annotations

from html import escape
from typing import TextIO
from xml.etree import ElementTree as ET

from keju.messages import printable, spoken
from keju.report.format import Labels, count, percent
from keju.report.pairs import mean_words
from keju.report.table import Cell, Column, Screen
from keju.results.gate import GateResult
from keju.results.gate_rows import AT_LEAST, NO_WORSE, GateRow
from keju.stats.gate import Verdict

COLOURS: dict[Verdict, str] = {"pass": "#2e7d32", "fail": "#c62828", "inconclusive": "#9e6a00"}
_CHARACTER, _PADDING, _HEIGHT = 6.6, 12, 20
"""Width of a character of a badge, and the room around its words, in pixels."""


def gate_titles(labels: Labels) -> list[str]:
    """The heads of the table."""
    names = "gate", "n", "baseline", "score", "value", "bounds", "limit", "verdict"
    return [labels(f"gate.{name}") for name in names]


def gate_cells(row: GateRow, labels: Labels) -> list[str]:
    """One gate as a row of the table."""
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
    """What a gate is about, in its one unit: a score in percent, a difference in points."""
    if row.gate == AT_LEAST or value is None:
        return percent(value)
    return labels("gate.points", points=f"{100 * value:+.2f}")


def render_gate(
    result: GateResult, *, file: TextIO | None = None, width: int | None = None
) -> None:
    """Print a gate to `file` (stdout by default)."""
    labels, screen = Labels(spoken()), Screen(file, width)
    first, *others = gate_titles(labels)
    rows: list[list[Cell]] = [[*gate_cells(row, labels)] for row in result.rows]
    screen.table([first, *(Column(title, "right") for title in others)], rows)
    screen.line()
    for notice in result.notices:
        screen.line(labels("warning", text=notice.text(labels.language)), style="yellow")
    for row in result.rows:
        screen.line(row.conclusion.text(labels.language), style="bold")
    for words in _means(result, labels):
        screen.line(words)
    if _against_baseline(result):
        screen.line(labels("gate.question"), style="dim")
    if result.steps:
        screen.line(labels("next"))
        screen.commands([(step.command, labels(step.label)) for step in result.steps])
    screen.flush()


def _means(result: GateResult, labels: Labels) -> list[str]:
    """Which mean is tested, of exams whose headline is another one."""
    words = (mean_words(row, labels) for row in result.rows)
    return list(dict.fromkeys(filter(None, words)))


def _against_baseline(result: GateResult) -> bool:
    """Whether it is asked how much worse a run is, which is not whether it differs."""
    return any(row.gate == NO_WORSE for row in result.rows)


def junit(result: GateResult) -> str:
    """A test suite with one case for each gate; one that decides nothing is an error."""
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
        said = printable(row.conclusion.text(), one_line=True)
        if row.verdict == "pass":
            ET.SubElement(case, "system-out").text = said
        else:
            kind = "failure" if row.verdict == "fail" else "error"
            ET.SubElement(case, kind, message=said, type=row.verdict).text = said
    ET.indent(suite)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(suite, encoding="unicode")}\n'


def markdown(result: GateResult) -> str:
    """A table and a sentence for each gate, as a comment of a pull request has them."""
    labels = Labels("en")
    against = f" against `{_plain(result.baseline)}`" if result.baseline else ""
    lines = [f"### Keju gate: {result.verdict}", "", f"`{_plain(result.run)}`{against}", ""]
    titles = gate_titles(labels)
    lines += [f"| {' | '.join(titles)} |", "|---" + "|--:" * (len(titles) - 1) + "|"]
    for row in result.rows:
        lines.append(f"| {' | '.join(_plain(cell) for cell in gate_cells(row, labels))} |")
    lines += ["", *(f"- {_plain(row.conclusion.text())}" for row in result.rows)]
    lines += [f"- {_plain(words)}" for words in _means(result, labels)]
    lines += [f"- warning: {_plain(notice.text())}" for notice in result.notices]
    if _against_baseline(result):
        lines += ["", _plain(labels("gate.question"))]
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """Text that is no markup in a table of Markdown."""
    shown = escape(printable(text, one_line=True), quote=False)
    return shown.replace("|", "\\|").replace("`", "'")


def badge(result: GateResult) -> str:
    """A badge as SVG: two fields, the colour says the verdict."""
    words, colour = ("keju gate", result.verdict), COLOURS[result.verdict]
    left, right = (round(len(word) * _CHARACTER + _PADDING) for word in words)
    said = escape("; ".join(row.conclusion.text() for row in result.rows))
    text = 'y="14" text-anchor="middle" fill="#fff" font-family="Verdana,sans-serif" font-size="11"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="{_HEIGHT}" '
        f'role="img" aria-label="{words[0]}: {words[1]}"><title>{printable(said)}</title>'
        f'<rect width="{left}" height="{_HEIGHT}" fill="#424242"/>'
        f'<rect x="{left}" width="{right}" height="{_HEIGHT}" fill="{colour}"/>'
        f'<text x="{left / 2:g}" {text}>{words[0]}</text>'
        f'<text x="{left + right / 2:g}" {text}>{words[1]}</text></svg>\n'
    )
