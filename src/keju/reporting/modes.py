"""Print the two modes of an exam side by side: categories first, then subjects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from keju.messages import current_language
from keju.reporting.brief import BriefColumn, BriefScreen, LabelledCommand
from keju.reporting.format import Labels, count, percent
from keju.reporting.table import UNBOUNDED_WIDTH
from keju.reporting.warning_lines import print_warnings, warning_line
from keju.results.modes import ModesComparison, ModesRow

NAMED = 3
"""The number of subjects that a sentence names."""
SUBJECTS = 4
"""The number of subjects that a short answer lists."""


def render_modes(
    comparison: ModesComparison,
    runs: Sequence[str] = (),
    *,
    brief: bool,
    file: TextIO | None = None,
    width: int | None = None,
) -> None:
    """Print two runs in the two modes. `runs` are their names in commands.

    A short answer lists the subjects with the clearest differences only.
    """
    screen = BriefScreen(file, width)
    labels = screen.labels
    if not brief and not screen.terminal:
        screen.width = UNBOUNDED_WIDTH
    for sentence in _sentences(comparison, labels):
        screen.sentence(sentence, "bold")
    screen.put()
    rows = [comparison.overall, *comparison.categories]
    clearest = _clearest(comparison.subjects)
    subjects = clearest[:SUBJECTS] if brief and len(comparison.subjects) > SUBJECTS else None
    subjects_shown = comparison.subjects if subjects is None else subjects
    _print_rows(screen, [*rows, *subjects_shown], (len(rows) - 1,), brief=brief)
    if brief:
        lines = [warning_line(notice, "", labels) for notice in comparison.notices()]
        print_warnings(screen, lines, "")
    else:
        for notice in comparison.notices():
            screen.sentence(labels("warning", text=notice.text(labels.language)), "yellow")
    if brief and runs:
        screen.put()
        names = " ".join(runs)
        steps = [LabelledCommand(labels("brief.next.view"), f"keju view {names}")]
        if subjects is not None:
            command = f"keju modes {names} --verbose"
            steps.append(LabelledCommand(labels("brief.next.subjects"), command))
        screen.next_steps(steps)
    screen.flush()


def _clearest(rows: Sequence[ModesRow]) -> list[ModesRow]:
    """Return the rows whose difference is more than noise, the largest first."""
    return sorted((row for row in rows if row.apart), key=lambda row: -abs(row.difference))


def _sentences(comparison: ModesComparison, labels: Labels) -> list[str]:
    """Return whether reasoning helps, and in which subjects."""
    overall = comparison.overall
    points = f"{100 * overall.difference:+.1f}"
    key = "format" if overall.is_due_to_format else "none"
    if overall.apart and not overall.is_due_to_format:
        key = "helps" if overall.difference > 0 else "hurts"
    sentences = [labels(f"brief.modes.{key}", points=points, n=count(overall.n))]
    clearest = [row for row in _clearest(comparison.subjects) if not row.is_due_to_format]
    gaining = [row for row in clearest if row.difference > 0]
    losing = [row for row in clearest if row.difference < 0]
    for kind, rows in (("gain", gaining), ("lose", losing)):
        if rows:
            subjects = labels("list_separator").join(
                _name_with_points(row, labels) for row in rows[:NAMED]
            )
            values = {"part": len(rows), "whole": len(comparison.subjects), "named": subjects}
            sentences.append(labels(f"brief.modes.{kind}", **values))
    if not gaining and not losing and key != "format":
        sentences.append(labels("brief.modes.no_subject", whole=len(comparison.subjects)))
    return sentences


def _name_with_points(row: ModesRow, labels: Labels) -> str:
    return f"{_title(row, labels)} {100 * row.difference:+.0f}"


def _title(row: ModesRow, labels: Labels, *, brief: bool = True) -> str:
    """Return the name of a subject; in Chinese its title, and both in a complete table."""
    if row.subject == "all":
        return labels("brief.modes.all")
    if not brief and row.title not in ("", row.subject):
        return f"{row.subject} {row.title}"
    if labels.language == "en":
        return row.subject
    return row.title or labels.get(f"metric.{row.subject}", row.subject)


def _print_rows(
    screen: BriefScreen, rows: Sequence[ModesRow], separators: Sequence[int], *, brief: bool
) -> None:
    labels = Labels(current_language())
    cells = [
        [
            _title(row, labels, brief=brief),
            count(row.n),
            percent(row.answer_only, 1),
            percent(row.cot, 1),
            f"{100 * row.difference:+.1f}",
            _ends(row),
            _mark(row, labels),
            "" if brief or row.robust is None else f"{100 * row.robust.difference:+.1f}",
        ]
        for row in rows
    ]
    columns = [
        BriefColumn("left", labels("brief.modes.points"), shrinks=True),
        BriefColumn(title=labels("n")),
        BriefColumn(title=labels("brief.modes.direct")),
        BriefColumn(title=labels("brief.modes.reasoned")),
        BriefColumn(title=labels("brief.modes.difference")),
        BriefColumn("left", title="95 %", spare=2),
        BriefColumn("left", spare=1),
        BriefColumn(title="" if brief else labels("brief.modes.robust"), spare=3),
    ]
    screen.rows(columns, cells, blank_after=separators)


def _ends(row: ModesRow) -> str:
    if row.ci95 is None:
        return ""
    return f"{100 * row.ci95.low:+.1f} … {100 * row.ci95.high:+.1f}"


def _mark(row: ModesRow, labels: Labels) -> str:
    if row.is_due_to_format:
        return labels("modes.by_format")
    return labels("brief.modes.clear") if row.apart else ""
