"""An audit in the terminal: readers side by side, then the replies to look at, by cause."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from keju.errors import Notice
from keju.messages import first_of, format_p, spoken
from keju.report.format import Labels, count, interval, percent, share, shorten
from keju.report.table import Cell, Column, Screen
from keju.results.audit import Audit, ExamAudit, Finding
from keju.stats.estimate import Ends
from keju.types import SIGNS

SHOWN = 3
"""Replies that are shown under each cause."""
SHARED = 10
"""Questions that are shown of those that all runs fail alike."""
_END, _ANSWER = 100, 30


def render_audit(audit: Audit, *, file: TextIO | None = None, width: int | None = None) -> None:
    """Print an audit to `file` (stdout by default), in the language of the terminal."""
    labels, screen = Labels(spoken()), Screen(file, width)
    for exam in audit.exams:
        _exam(screen, exam, labels)
    if audit.beside:
        _shared(screen, audit, labels)
    _warnings(screen, audit.notices, labels)
    screen.flush()


def _exam(screen: Screen, exam: ExamAudit, labels: Labels) -> None:
    name = f"{exam.name} · {exam.arm}" if exam.arm else exam.name
    facts = {"protocol": exam.protocol, "reader": exam.reader, "replies": count(exam.replies)}
    screen.line(labels("audit.title", exam=name, **facts), style="bold")
    if not exam.replies:
        screen.line(labels("no_answers"), indent=2)
        return
    if exam.range is not None:
        line = accuracy_range(exam, exam.range, labels)
        knowing = sum(row.knows_form for row in exam.readers)
        if exam.form_range is not None and 1 < knowing < len(exam.readers):
            line += labels("audit.form_range", n=knowing, ends=_ends(exam.form_range, labels))
        screen.line(line, style="bold green", indent=2)
    _warnings(screen, exam.notices, labels)
    screen.line()
    _readers(screen, exam, labels)
    _labels(screen, exam, labels)
    if exam.cap_hits:
        screen.line(labels("audit.cap", n=exam.cap_hits), indent=2)
    if signs := [f"{labels(f'sign.{s}')} {count(exam.signs[s])}" for s in SIGNS if s in exam.signs]:
        screen.line(" · ".join(signs), indent=2)
    if exam.errata:
        names = labels("list_separator").join(erratum.id for erratum in exam.errata)
        screen.line(labels("audit.errata", names=names), indent=2)
    _findings(screen, exam, labels)


def accuracy_range(exam: ExamAudit, ends: Ends, labels: Labels) -> str:
    """The accuracy by the headline's reader, and the least and the largest by any."""
    own = exam.readers[0].accuracy
    values = {"own": share(own.value, own.bounds), "n": len(exam.readers)}
    return labels("audit.range", reader=exam.reader, ends=_ends(ends, labels), **values)


def _ends(ends: Ends, labels: Labels) -> str:
    """A range of shares; one share where its ends look the same."""
    low, high = map(percent, ends)
    return low if low == high else labels("audit.ends", low=low, high=high)


def _readers(screen: Screen, exam: ExamAudit, labels: Labels) -> None:
    """Each reader's accuracy, and how far two of them agree."""
    titles = ("reader", "accuracy", "interval", "unread", "cut", "apart", "kappa")
    spared = {"kappa": 2, "cut": 1}  # the matrix below has kappa too
    columns = [
        Column(labels(f"audit.{name}"), "right" if at else "", spare=spared.get(name, 0))
        for at, name in enumerate(titles)
    ]
    rows: list[list[Cell]] = [
        [
            f"{row.reader} *" if row.outside else row.reader,
            share(row.accuracy.value, row.accuracy.bounds),
            interval(row.accuracy.ci95),
            row.outcomes["unparsed"],
            row.outcomes["truncated"],
            row.apart,
            None if row.kappa is None else f"{row.kappa:.3f}",
        ]
        for row in exam.readers
    ]
    screen.table(columns, rows)
    if any(row.outside for row in exam.readers):
        code = "audit.outside" if exam.readers[0].accuracy.se else "audit.otherwise"
        screen.line(labels(code, reader=exam.reader), indent=2)
    names = [row.reader for row in exam.readers]
    known = {(pair.first, pair.second): pair for pair in exam.pairs}
    cells: list[list[Cell]] = []
    for first in names[:-1]:
        cells.append([first])
        for second in names[1:]:
            pair = known.get((first, second))
            kappa = "" if pair is None or pair.kappa is None else f" ({pair.kappa:.2f})"
            cells[-1].append("" if pair is None else f"{count(pair.apart)}{kappa}")
    screen.line()
    columns = [Column(labels("audit.reader")), *(Column(name, "right") for name in names[1:])]
    screen.table(columns, cells, title=labels("audit.matrix"))
    screen.line()


def _labels(screen: Screen, exam: ExamAudit, labels: Labels) -> None:
    """The labels read against the gold ones."""
    own = exam.labels
    if own is None:
        return
    test = labels("audit.no_test")
    if own.chi_squared is not None and own.p is not None:
        values = {"value": f"{own.chi_squared:.1f}", "df": own.df, "p": format_p(own.p, 2)}
        test = labels("audit.test", **values)
    spread = "" if own.rstd is None else labels("audit.rstd", value=f"{own.rstd:.3f}")
    columns = [Column(labels(f"audit.{name}")) for name in ("label", "gold", "read", "recall")]
    rows: list[list[Cell]] = [
        [row.label, row.gold, row.read, percent(row.recall)] for row in own.rows
    ]
    screen.table(
        columns, rows, title=labels("audit.labels", reader=exam.reader, test=test, rstd=spread)
    )
    for metric in own.rotations.values():
        screen.line(metric.title, indent=2)
    screen.line()


def _findings(screen: Screen, exam: ExamAudit, labels: Labels) -> None:
    """The causes in a table, then some replies of each, those that decide about the score first."""
    if not exam.findings:
        screen.line(labels("audit.nothing"), indent=2)
        screen.line()
        return
    decides = sum(each.decides for each in exam.findings)
    values = {"flagged": count(exam.flagged), "replies": count(exam.replies), "decides": decides}
    part = percent(exam.flagged / max(1, exam.replies))
    alone = exam.beside == exam.reader  # then there is no second reader to score otherwise
    title = "audit.flagged_alone" if alone else "audit.flagged"
    screen.line(labels(title, share=part, beside=exam.beside, **values), style="bold")
    columns = [
        Column(labels("audit.cause")),
        *(Column(labels(f"audit.{name}"), "right") for name in ("replies", "wrong")),
        Column(labels("audit.also"), "right", meaning=labels("audit.also_means")),
        Column(labels("audit.meaning"), fold=True),
    ]
    rows: list[list[Cell]] = [
        [labels(f"cause.{row.cause}"), row.n, row.wrong, row.also, _meaning(row.cause, labels)]
        for row in exam.causes
    ]
    screen.table(columns, rows)
    screen.line()
    for title, some in (
        ("audit.disagree", [each for each in exam.findings if each.decides]),
        ("audit.others", [each for each in exam.findings if not each.decides]),
    ):
        if some:
            if decides:
                screen.line(labels(title), style="bold")
            _listed(screen, some, exam, labels)
            screen.line()


def _listed(screen: Screen, findings: Sequence[Finding], exam: ExamAudit, labels: Labels) -> None:
    by_cause: dict[str, list[Finding]] = {}
    for each in findings:
        by_cause.setdefault(each.cause, []).append(each)
    for cause, own in by_cause.items():
        name, meaning = labels(f"cause.{cause}"), _meaning(cause, labels)
        listed = labels("audit.listed", cause=name, n=count(len(own)), explanation=meaning)
        screen.line(listed, indent=2)
        shown = first_of(own, SHOWN)
        for each in shown:
            names = dict.fromkeys((exam.reader, exam.beside))
            read = " · ".join(
                labels("named", name=name, text=_answer(each.answers.get(name), labels))
                + _rule(each.rules.get(name, ""), labels)
                for name in names
            )
            target = shorten(each.target, _ANSWER)
            screen.line(f"{each.id} · {labels('audit.gold')} {target} · {read}", indent=4)
            end = f"… {' '.join(each.end.split())[-_END:]}"
            if each.in_reasoning:
                end = labels("audit.in_reasoning", end=end)
            screen.line(end, indent=6, style="dim")
            screen.commands([(each.command, "")], indent=6)
        if len(own) > len(shown):
            screen.line(labels("audit.more", n=count(len(own) - len(shown))), indent=4)


def _rule(rule: str, labels: Labels) -> str:
    """The rule that decided, in brackets; empty where a reader has only one."""
    return labels("in_brackets", text=labels("read_rule", rule=rule)) if rule else ""


def _answer(value: str | None, labels: Labels) -> str:
    return labels("audit.nothing_read") if value is None else shorten(value, _ANSWER)


def _meaning(cause: str, labels: Labels) -> str:
    return Notice(f"cause_{cause}").text(labels.language)


def _shared(screen: Screen, audit: Audit, labels: Labels) -> None:
    """The questions that all runs fail with the same answer."""
    rows: list[list[Cell]] = [
        [each.id, each.target, each.answer, each.known] for each in audit.shared_failures
    ]
    shown = first_of(rows, SHARED)
    values = {"failed": count(audit.failed_by_all), "same": count(len(rows))}
    runs = labels("list_separator").join(audit.beside)
    screen.line(labels("audit.shared", runs=runs, **values), style="bold")
    names = ("question", "gold", "shared_answer", "known")
    if rows:
        columns = [
            Column(labels(f"audit.{name}"), "left", fold=name != "question", id=name == "question")
            for name in names
        ]
        screen.table(columns, shown)
    if len(rows) > len(shown):
        screen.line(labels("audit.more", n=count(len(rows) - len(shown))), indent=2)
    screen.line()


def _warnings(screen: Screen, notices: Sequence[Notice], labels: Labels) -> None:
    for notice in notices:
        text = labels("warning", text=notice.text(labels.language))
        screen.line(text, style="yellow", indent=2)
