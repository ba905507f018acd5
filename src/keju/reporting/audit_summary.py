"""The short answer of an audit: why the score may be too low, and the causes with an example."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TextIO

from keju.messages.wrapping import cells
from keju.reporting.brief import BriefScreen, LabelledCommand, fit_text
from keju.reporting.format import Labels, count, percent
from keju.reporting.titles import title_of
from keju.reporting.warning_lines import WarningLine, print_warnings, warning_line
from keju.results.audit import Audit, AuditFinding, CauseRow, ExamAudit, ReaderRow

CAUSES = 5
"""The number of causes that are shown for all exams together."""
NOTABLE = 0.5
"""Points from which a loss is worth a diagnosis."""
_END = 60
_READER_CODES = ("audit_reader_outside", "audit_reader_otherwise")
"""Warnings that the diagnosis replaces."""
_NOT_IN_FORM = frozenset(
    {
        "as_json", "full_width", "lower_case", "bold", "boxed", "quoted", "next_line", "open_tag",
        "after_hashes", "option_text", "other_language", "in_sentence", "plain_statement",
        "place_for_label", "other_marker", "other_spelling", "more_than_answer",
    }
)  # fmt: skip
"""Causes that mean that a reply states its answer, but not in the requested form."""


class Diagnosis(NamedTuple):
    """The likely reason for a low score, and the points at stake."""

    text: str
    points: float


def render_audit_summary(
    audit: Audit, *, run: str = "", file: TextIO | None = None, width: int | None = None
) -> None:
    """Print the short answer of an audit. `run` is the name of the run in commands."""
    screen = BriefScreen(file, width)
    labels = screen.labels
    exams = sorted(audit.exams, key=lambda exam: -diagnose(exam, labels).points)
    has_several = len(exams) > 1
    causes_left = CAUSES
    for number, exam in enumerate(exams[:CAUSES]):
        subject = title_of(exam.name, exam.arm) if has_several else ""
        text = diagnose(exam, labels).text
        screen.sentence(labels("named", name=subject, text=text) if subject else text, "bold")
        if not has_several:
            screen.facts(_accuracy_facts(exam, labels))
            screen.put()
        _print_rules(screen, exam)
        share = max(1, causes_left // (min(len(exams), CAUSES) - number))
        causes_left -= _print_causes(screen, exam, share)
    if audit.beside:
        text = labels(
            "audit.shared",
            runs=labels("list_separator").join(audit.beside),
            failed=count(audit.failed_by_all),
            same=count(len(audit.shared_failures)),
        )
        screen.sentence(text)
    lines = list(_warning_lines(audit, labels))
    print_warnings(screen, lines[:2] if has_several else lines, "")
    if run:
        screen.put()
        screen.next_steps(_next_steps(run, labels))
    screen.flush()


def diagnose(exam: ExamAudit, labels: Labels) -> Diagnosis:
    """Return one sentence about what the score may lose, and the points at stake."""
    if not exam.replies or exam.range is None:
        return Diagnosis(labels("no_answers"), 0.0)
    causes = {row.cause: row for row in exam.causes}
    cut = causes.get("cut_off", CauseRow(cause="", n=0, also=0, wrong=0, explanation=""))
    cut_points = 100 * cut.wrong / exam.replies
    gained_points = _points_gained(exam)
    if gained_points >= NOTABLE:
        return Diagnosis(_format_sentence(exam, gained_points, cut.n, labels), gained_points)
    if cut_points >= NOTABLE:
        values = {"n": count(cut.n), "points": f"{cut_points:.1f}"}
        return Diagnosis(labels("brief.audit.cut", **values), cut_points)
    if gained_points <= -NOTABLE:
        values = {"reader": exam.reader, "points": f"{-gained_points:.1f}", "other": exam.beside}
        return Diagnosis(labels("brief.audit.guessed", **values), -gained_points)
    worst = max(exam.causes, key=lambda row: row.wrong, default=None)
    points = 100 * worst.wrong / exam.replies if worst else 0.0
    if worst is not None and points >= NOTABLE:
        name = labels(f"cause.{worst.cause}")
        values = {"n": count(worst.wrong), "points": f"{points:.1f}", "cause": name}
        return Diagnosis(labels("brief.audit.other", **values), points)
    values = {"part": count(exam.flagged), "whole": count(exam.replies)}
    return Diagnosis(labels("brief.audit.sound", **values), 0.0)


def _points_gained(exam: ExamAudit) -> float:
    """Return how many points the secondary reader gives more than the headline's reader."""
    by_name: dict[str, ReaderRow] = {row.reader: row for row in exam.readers}
    headline_value = exam.readers[0].accuracy.value
    second_value = by_name[exam.beside].accuracy.value
    if headline_value is None or second_value is None:
        return 0.0
    return 100 * (second_value - headline_value)


def _format_sentence(exam: ExamAudit, points: float, cut: int, labels: Labels) -> str:
    """Return how many points are lost to the form of the answers."""
    misread = sum(
        finding.decides and finding.outcomes.get(exam.beside) == "correct"
        for finding in exam.findings
    )
    text = labels("brief.audit.format", points=f"{points:.1f}", n=count(misread))
    return text + (labels("brief.audit.and_cut", n=count(cut)) if cut else labels("brief.stop"))


def _accuracy_facts(exam: ExamAudit, labels: Labels) -> list[str]:
    """Return the accuracy by the headline's reader, and the range of readers that know the form."""
    accuracy = percent(exam.readers[0].accuracy.value, 1)
    facts = [
        title_of(exam.name, exam.arm),
        labels("brief.audit.by", figure=accuracy, reader=exam.reader),
    ]
    knowing = [row for row in exam.readers if row.knows_form]
    if exam.form_range is not None and len(knowing) > 1:
        low, high = (percent(end, 1) for end in exam.form_range)
        facts.append(labels("brief.audit.range", low=low, high=high, n=len(knowing)))
    return facts


def _print_rules(screen: BriefScreen, exam: ExamAudit) -> None:
    """Print what all rule changes and several attempts are worth, one sentence each."""
    table, labels = exam.rules, screen.labels
    if table is None:
        return
    first, *changes = table.rows
    if changes:
        values = {
            "rules": first.rule,
            "points": f"{changes[-1].points:.1f}",
            "share": percent(changes[-1].accuracy, 1),
            "strict": percent(first.accuracy, 1),
        }
        screen.sentence(labels("brief.audit.rules", n=len(changes) - 1, **values))
    if table.attempts > 1:
        shares = {"any": percent(first.any_accuracy, 1), "one": percent(first.accuracy, 1)}
        screen.sentence(labels("brief.audit.attempts", k=table.attempts, **shares))


def _print_causes(screen: BriefScreen, exam: ExamAudit, limit: int) -> int:
    """Print the most frequent causes, each with an example; return their number."""
    labels = screen.labels
    rows = [row for row in exam.causes if row.n]
    rows.sort(key=lambda row: -row.n)
    visible_rows = rows[:limit]
    width = max((len(count(row.n)) for row in visible_rows), default=0)
    by_cause: dict[str, AuditFinding] = {}
    for finding in exam.findings:
        by_cause.setdefault(finding.cause, finding)
    for row in visible_rows:
        name, meaning = labels(f"cause.{row.cause}"), _meaning(row.cause, labels)
        text = f"{count(row.n).rjust(width)}  {name}"
        explained = labels("named", name=text, text=meaning)
        screen.put(explained if cells(explained) <= screen.room else text)
        finding = by_cause[row.cause]
        example = _example_text(finding, labels)
        indent = " " * (width + 2)
        command = finding.command
        screen.hinted(
            indent + fit_text(example, min(_END, screen.room - len(indent))), command, "dim"
        )
    hidden_rows = rows[limit:]
    if hidden_rows:
        n = count(sum(row.n for row in hidden_rows))
        screen.put(labels("brief.audit.more", n=n, causes=len(hidden_rows)))
    return len(visible_rows)


def _meaning(cause: str, labels: Labels) -> str:
    from keju.errors import Notice

    return Notice(f"cause_{cause}").text(labels.language)


def _example_text(finding: AuditFinding, labels: Labels) -> str:
    """Return the end of a reply and the right answer."""
    end = " ".join(finding.end.split())
    target = labels("brief.audit.right", target=finding.target)
    room = max(12, _END - cells(target) - 2)
    words = end.split(" ")
    while len(words) > 1 and cells(" ".join(words)) + 2 > room:
        words = words[1:]
    shortened = " ".join(words)
    return f"{target}  {shortened if shortened == end else f'… {shortened}'}"


def _warning_lines(audit: Audit, labels: Labels) -> Iterator[WarningLine]:
    has_several = len(audit.exams) > 1
    for exam in audit.exams:
        subject = title_of(exam.name, exam.arm) if has_several else ""
        for notice in exam.notices:
            if notice.code not in _READER_CODES:
                yield warning_line(notice, "", labels, subject)
    for notice in audit.notices:
        yield warning_line(notice, "", labels)


def _next_steps(run: str, labels: Labels) -> Sequence[LabelledCommand]:
    return [
        LabelledCommand(labels("brief.next.view"), f"keju view {run}"),
        LabelledCommand(labels("brief.next.show"), f"keju audit {run} --verbose"),
    ]
