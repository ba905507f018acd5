"""The short answer of a gate: pass or fail and by how much, then one row for each exam."""

from __future__ import annotations

from typing import TextIO

from keju.reporting.assertions import gate_assertion_table
from keju.reporting.brief import BriefColumn, BriefScreen, LabelledCommand, known_names
from keju.reporting.format import Labels, count, percent
from keju.reporting.titles import title_of
from keju.reporting.warning_lines import print_warnings, warning_line
from keju.results.gate import WORST, GateResult
from keju.results.gate_rows import AT_LEAST, GateRow

_STYLES = {"pass": "bold green", "fail": "bold red", "inconclusive": "bold yellow"}


def render_gate_summary(
    result: GateResult, *, file: TextIO | None = None, width: int | None = None
) -> None:
    """Print the short answer of a gate to `file` (stdout by default)."""
    screen = BriefScreen(file, width)
    labels = screen.labels
    sentence = _sentence(_deciding_row(result), result, labels)
    word = labels(f"brief.gate.{result.verdict}")
    screen.sentence(f"{word}  {sentence}", _STYLES[result.verdict])
    rows = [_row_cells(row, labels) for row in result.rows]
    columns = [
        BriefColumn("left"),
        BriefColumn("left"),
        BriefColumn("left"),
        BriefColumn(spare=1),
        BriefColumn("left"),
    ]
    screen.rows(columns, rows)
    assertions = gate_assertion_table(result.rows, labels)
    if assertions.rows:
        screen.put()
        screen.sentence(labels("gate.assertions"), None)
        screen.rows(
            [BriefColumn("left"), *(BriefColumn() for _ in assertions.titles[1:])], assertions.rows
        )
    print_warnings(screen, [warning_line(notice, "", labels) for notice in result.notices], "")
    if result.steps:
        screen.put()
        steps = [LabelledCommand(labels(step.label), step.command) for step in result.steps]
        for step in steps:
            screen.next_steps([step], most_lines=1)
    screen.flush()


def _deciding_row(result: GateResult) -> GateRow:
    """Return the row that decides: of those with the worst verdict the one farthest from its
    limit."""
    worst = next(verdict for verdict in WORST if verdict == result.verdict)
    rows = [row for row in result.rows if row.verdict == worst]
    return min(rows, key=lambda row: (row.value or 0.0) - row.limit)


def _sentence(row: GateRow, result: GateResult, labels: Labels) -> str:
    """Return what the gate shows, with the bounds of the deciding exam."""
    if not row.n or row.selected:
        return row.conclusion.text(labels.language)
    models, runs = [result.model, result.baseline_model], [result.run, result.baseline]
    run, baseline = known_names(models, runs) if result.baseline else (result.run, "")
    name = title_of(row.exam, row.arm) if len(result.rows) > 1 else ""
    on_exam = labels("brief.on_exam", exam=name) if name else ""
    values = {"run": run, "baseline": baseline, "on_exam": on_exam}
    if row.gate == AT_LEAST:
        numbers = {"low": row.low, "high": row.high, "limit": row.limit}
        shares = {key: percent(value, 1) for key, value in numbers.items()}
        text = labels(f"brief.gate.least_{row.verdict}", **values, **shares)
    else:
        low, high = -100 * row.high, -100 * row.low  # points by which the run is worse
        kind: str = row.verdict
        if low < 0:
            kind = f"{kind}_around" if high > 0 else f"{kind}_better"
        points = {"least": f"{abs(low):.1f}", "most": f"{abs(high):.1f}"}
        allowed = f"{-100 * row.limit:.1f}"
        if row.sure_of is not None:
            asked = {"asked": count(row.n), "whole": count(row.sure_of)}
            return labels(f"brief.gate.sure_{row.verdict}", allowed=allowed, **asked, **values)
        text = labels(f"brief.gate.worse_{kind}", **values, **points, allowed=allowed)
    if row.verdict == "inconclusive" and row.needed:
        text += labels("brief.gate.needed", n=count(row.needed))
    return text


def _row_cells(row: GateRow, labels: Labels) -> list[str]:
    title, verdict = title_of(row.exam, row.arm), labels(f"gate.{row.verdict}")
    n = labels("brief.questions", n=count(row.n))
    if row.gate == AT_LEAST:
        ends = labels("brief.ends", low=percent(row.low, 1), high=percent(row.high, 1))
        return [title, percent(row.score, 1), ends.strip(), n, verdict]
    scores = f"{_share(row.baseline)} -> {_share(row.score)}"
    difference = ""
    if row.value is not None:
        difference = labels("brief.points", points=f"{100 * row.value:+.1f}")
        low, high = (f"{100 * end:+.1f}" for end in (row.low, row.high))
        difference += labels("brief.ends", low=low, high=high)
    return [title, scores, difference, n, verdict]


def _share(value: float | None) -> str:
    return percent(value, 1).removesuffix(" %")
