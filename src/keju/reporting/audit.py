"""Print an audit: a comparison of the readers, then the replies to check, grouped by cause."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from keju.benchmarks.base import ALL_CHANGES
from keju.errors import Notice
from keju.messages import current_language, first_of, format_p
from keju.reporting.format import Labels, count, interval, percent, share, shorten
from keju.reporting.table import Cell, TableColumn, TerminalScreen
from keju.results.audit import Audit, AuditFinding, ExamAudit
from keju.results.rule_changes import RuleRow, RuleTable
from keju.stats.estimate import Ends
from keju.types import SIGNS

EXAMPLES_SHOWN = 3
"""The number of replies that are shown for each cause."""
SHARED_FAILURES_SHOWN = 10
"""The number of shown questions that all runs fail with the same answer."""
_END_LENGTH, _ANSWER = 100, 30


def render_audit(audit: Audit, *, file: TextIO | None = None, width: int | None = None) -> None:
    """Print an audit to `file` (stdout by default), in the language of the terminal."""
    labels, screen = Labels(current_language()), TerminalScreen(file, width)
    for exam in audit.exams:
        _print_exam(screen, exam, labels)
    if audit.beside:
        _print_shared_failures(screen, audit, labels)
    _print_warnings(screen, audit.notices, labels)
    screen.flush()


def _print_exam(screen: TerminalScreen, exam: ExamAudit, labels: Labels) -> None:
    name = f"{exam.name} · {exam.arm}" if exam.arm else exam.name
    facts = {"protocol": exam.protocol, "reader": exam.reader, "replies": count(exam.replies)}
    screen.line(labels("audit.title", exam=name, **facts), style="bold")
    if not exam.replies:
        screen.line(labels("no_answers"), indent=2)
        return
    if exam.range is not None:
        line = accuracy_range(exam, exam.range, labels)
        reader_count = sum(row.knows_form for row in exam.readers)
        if exam.form_range is not None and 1 < reader_count < len(exam.readers):
            line += labels(
                "audit.form_range", n=reader_count, ends=_format_range(exam.form_range, labels)
            )
        screen.line(line, style="bold green", indent=2)
    _print_warnings(screen, exam.notices, labels)
    screen.line()
    _print_readers(screen, exam, labels)
    if exam.rules is not None:
        _print_rules(screen, exam.rules, labels)
    _print_labels(screen, exam, labels)
    if exam.cap_hits:
        screen.line(labels("audit.cap", n=exam.cap_hits), indent=2)
    if signs := [f"{labels(f'sign.{s}')} {count(exam.signs[s])}" for s in SIGNS if s in exam.signs]:
        screen.line(" · ".join(signs), indent=2)
    if exam.errata:
        names = labels("list_separator").join(erratum.id for erratum in exam.errata)
        screen.line(labels("audit.errata", names=names), indent=2)
    _print_findings(screen, exam, labels)


def accuracy_range(exam: ExamAudit, ends: Ends, labels: Labels) -> str:
    """Return the accuracy according to the headline's reader, and the range over all readers."""
    accuracy = exam.readers[0].accuracy
    values = {"own": share(accuracy.value, accuracy.bounds), "n": len(exam.readers)}
    return labels("audit.range", reader=exam.reader, ends=_format_range(ends, labels), **values)


def _format_range(ends: Ends, labels: Labels) -> str:
    """Format a range of shares, or one share if both ends look the same."""
    low, high = map(percent, ends)
    return low if low == high else labels("audit.ends", low=low, high=high)


def _print_readers(screen: TerminalScreen, exam: ExamAudit, labels: Labels) -> None:
    """Print the accuracy of each reader and the agreement between readers."""
    titles = ("reader", "accuracy", "interval", "unread", "cut", "apart", "kappa")
    spared = {"kappa": 2, "cut": 1}  # the matrix below has kappa too
    columns = [
        TableColumn(labels(f"audit.{name}"), "right" if at else "", spare=spared.get(name, 0))
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
    pairs_by_names = {(pair.first, pair.second): pair for pair in exam.pairs}
    cells: list[list[Cell]] = []
    for left_reader in names[:-1]:
        cells.append([left_reader])
        for right_reader in names[1:]:
            pair = pairs_by_names.get((left_reader, right_reader))
            kappa = "" if pair is None or pair.kappa is None else f" ({pair.kappa:.2f})"
            cells[-1].append("" if pair is None else f"{count(pair.apart)}{kappa}")
    screen.line()
    columns = [
        TableColumn(labels("audit.reader")),
        *(TableColumn(name, "right") for name in names[1:]),
    ]
    screen.table(columns, cells, title=labels("audit.matrix"))
    screen.line()


def _print_rules(screen: TerminalScreen, table: RuleTable, labels: Labels) -> None:
    """Print what rule changes, and several attempts, are worth in points."""
    has_several = table.attempts > 1
    any_column = [TableColumn(labels("audit.in_any", k=table.attempts), "right")]
    columns = [
        TableColumn(labels("audit.rule")),
        TableColumn(labels("audit.in_one"), "right"),
        TableColumn(labels("audit.points"), "right"),
        *(any_column if has_several else []),
        TableColumn(labels("audit.accepts"), fold=True),
    ]
    rows: list[list[Cell]] = [
        [
            labels("audit.all_rules") if row.rule == ALL_CHANGES else row.rule,
            labels("audit.right_share", right=row.right, share=percent(row.accuracy)),
            f"+{row.points:.1f}" if number else "",
            *(
                [
                    labels(
                        "audit.right_share",
                        right=row.right_in_any,
                        share=percent(row.any_accuracy),
                    )
                ]
                if has_several
                else []
            ),
            _rule_meaning(row, labels),
        ]
        for number, row in enumerate(table.rows)
    ]
    rules = table.rows[0].rule
    values = {"rules": rules, "answers": table.answers, "questions": table.questions}
    code = "audit.rules" if len(rows) > 1 else "audit.attempts"
    screen.table(columns, rows, title=labels(code, **values))
    if table.ungraded:
        screen.line(labels("audit.rules_ungraded", n=table.ungraded), indent=2)
    screen.line()


def _rule_meaning(row: RuleRow, labels: Labels) -> str:
    """Return what a rule accepts, in the language of the terminal."""
    if row.code:
        return Notice(row.code).text(labels.language)
    return labels("audit.all_rules_accept") if row.rule == ALL_CHANGES else ""


def _print_labels(screen: TerminalScreen, exam: ExamAudit, labels: Labels) -> None:
    """Compare the labels of the answers with the gold labels."""
    label_stats = exam.labels
    if label_stats is None:
        return
    test = labels("audit.no_test")
    if label_stats.chi_squared is not None and label_stats.p is not None:
        values = {
            "value": f"{label_stats.chi_squared:.1f}",
            "df": label_stats.df,
            "p": format_p(label_stats.p, 2),
        }
        test = labels("audit.test", **values)
    spread = (
        "" if label_stats.rstd is None else labels("audit.rstd", value=f"{label_stats.rstd:.3f}")
    )
    columns = [TableColumn(labels(f"audit.{name}")) for name in ("label", "gold", "read", "recall")]
    rows: list[list[Cell]] = [
        [row.label, row.gold, row.read, percent(row.recall)] for row in label_stats.rows
    ]
    screen.table(
        columns, rows, title=labels("audit.labels", reader=exam.reader, test=test, rstd=spread)
    )
    for metric in label_stats.rotations.values():
        screen.line(metric.title, indent=2)
    screen.line()


def _print_findings(screen: TerminalScreen, exam: ExamAudit, labels: Labels) -> None:
    """Print a table of causes, then examples of each; those that change the score come first."""
    if not exam.findings:
        screen.line(labels("audit.nothing"), indent=2)
        screen.line()
        return
    decides = sum(finding.decides for finding in exam.findings)
    values = {"flagged": count(exam.flagged), "replies": count(exam.replies), "decides": decides}
    part = percent(exam.flagged / max(1, exam.replies))
    has_no_second_reader = (
        exam.beside == exam.reader
    )  # without a second reader no other score exists
    title = "audit.flagged_alone" if has_no_second_reader else "audit.flagged"
    screen.line(labels(title, share=part, beside=exam.beside, **values), style="bold")
    columns = [
        TableColumn(labels("audit.cause")),
        *(TableColumn(labels(f"audit.{name}"), "right") for name in ("replies", "wrong")),
        TableColumn(labels("audit.also"), "right", meaning=labels("audit.also_means")),
        TableColumn(labels("audit.meaning"), fold=True),
    ]
    rows: list[list[Cell]] = [
        [
            labels(f"cause.{row.cause}"),
            row.n,
            row.wrong,
            row.also,
            _cause_meaning(row.cause, labels),
        ]
        for row in exam.causes
    ]
    screen.table(columns, rows)
    screen.line()
    for title, group in (
        ("audit.disagree", [finding for finding in exam.findings if finding.decides]),
        ("audit.others", [finding for finding in exam.findings if not finding.decides]),
    ):
        if group:
            if decides:
                screen.line(labels(title), style="bold")
            _print_examples(screen, group, exam, labels)
            screen.line()


def _print_examples(
    screen: TerminalScreen, findings: Sequence[AuditFinding], exam: ExamAudit, labels: Labels
) -> None:
    by_cause: dict[str, list[AuditFinding]] = {}
    for finding in findings:
        by_cause.setdefault(finding.cause, []).append(finding)
    for cause, cause_findings in by_cause.items():
        name, meaning = labels(f"cause.{cause}"), _cause_meaning(cause, labels)
        listed = labels(
            "audit.listed", cause=name, n=count(len(cause_findings)), explanation=meaning
        )
        screen.line(listed, indent=2)
        examples = first_of(cause_findings, EXAMPLES_SHOWN)
        for finding in examples:
            names = dict.fromkeys((exam.reader, exam.beside))
            readings = " · ".join(
                labels("named", name=name, text=_answer_text(finding.answers.get(name), labels))
                + _rule_in_brackets(finding.rules.get(name, ""), labels)
                for name in names
            )
            target = shorten(finding.target, _ANSWER)
            screen.line(f"{finding.id} · {labels('audit.gold')} {target} · {readings}", indent=4)
            end = f"… {' '.join(finding.end.split())[-_END_LENGTH:]}"
            if finding.in_reasoning:
                end = labels("audit.in_reasoning", end=end)
            screen.line(end, indent=6, style="dim")
            screen.commands([(finding.command, "")], indent=6)
        if len(cause_findings) > len(examples):
            screen.line(
                labels("audit.more", n=count(len(cause_findings) - len(examples))), indent=4
            )


def _rule_in_brackets(rule: str, labels: Labels) -> str:
    """Return the rule that decided, in brackets; empty if the reader has only one rule."""
    return labels("in_brackets", text=labels("read_rule", rule=rule)) if rule else ""


def _answer_text(value: str | None, labels: Labels) -> str:
    return labels("audit.nothing_read") if value is None else shorten(value, _ANSWER)


def _cause_meaning(cause: str, labels: Labels) -> str:
    return Notice(f"cause_{cause}").text(labels.language)


def _print_shared_failures(screen: TerminalScreen, audit: Audit, labels: Labels) -> None:
    """Print the questions that all runs fail with the same answer."""
    rows: list[list[Cell]] = [
        [failure.id, failure.target, failure.answer, failure.known]
        for failure in audit.shared_failures
    ]
    visible_rows = first_of(rows, SHARED_FAILURES_SHOWN)
    values = {"failed": count(audit.failed_by_all), "same": count(len(rows))}
    runs = labels("list_separator").join(audit.beside)
    screen.line(labels("audit.shared", runs=runs, **values), style="bold")
    names = ("question", "gold", "shared_answer", "known")
    if rows:
        columns = [
            TableColumn(
                labels(f"audit.{name}"), "left", fold=name != "question", id=name == "question"
            )
            for name in names
        ]
        screen.table(columns, visible_rows)
    if len(rows) > len(visible_rows):
        screen.line(labels("audit.more", n=count(len(rows) - len(visible_rows))), indent=2)
    screen.line()


def _print_warnings(screen: TerminalScreen, notices: Sequence[Notice], labels: Labels) -> None:
    for notice in notices:
        text = labels("warning", text=notice.text(labels.language))
        screen.line(text, style="yellow", indent=2)
