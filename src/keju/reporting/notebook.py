"""HTML and text of results in a notebook: comparisons, gates, plans, audits, and samples."""

from __future__ import annotations

from functools import singledispatch
from html import escape
from itertools import islice

from keju.reporting import format as fmt
from keju.reporting import pairs
from keju.reporting.audit import accuracy_range
from keju.reporting.brief import known_names
from keju.reporting.charts import differences
from keju.reporting.format import Labels, count, interval, percent
from keju.reporting.gate import gate_cells, gate_titles
from keju.reporting.pair_contexts import name_sides
from keju.reporting.plan import plan_notes, plan_rows, plan_title, plan_titles
from keju.reporting.runs import html_table
from keju.results.audit import Audit, ExamAudit
from keju.results.compare import Compared
from keju.results.gate import GateResult
from keju.results.plan import Plan
from keju.results.samples import Samples

ROWS = 20
"""The number of answers that a notebook shows."""
_ANSWER, _END_LENGTH = 60, 160
_COLUMNS = ("question", "reply", "answer", "target", "outcome", "id")


@fmt.one_decimal()
def html_of(value: object) -> str:
    """Return a value as HTML with all text escaped."""
    return _html_of(value)


@fmt.one_decimal()
def text_of(value: object) -> str:
    """Return a value as a few lines of text."""
    return _text_of(value)


@singledispatch
def _html_of(value: object) -> str:
    raise TypeError(type(value))


@singledispatch
def _text_of(value: object) -> str:
    raise TypeError(type(value))


def _paragraph(text: str, mark: str = "") -> str:
    return f"<p>{mark}{escape(fmt.printable(text, one_line=True))}</p>"


def _warning(text: str) -> str:
    return _paragraph(text, "⚠ ")


@_html_of.register
def _(value: Compared) -> str:
    labels = Labels()
    names = ("pair", "reader", "n", "base_rate", "arm_rate", "points", "interval", "p", "verdict")
    named_pairs = name_sides(value.comparisons)
    rows = [
        [
            pairs.pair_title(pair, labels),
            pairs.pair_readers(pair),
            count(pair.n) if pair.obstacle is None else fmt.UNKNOWN,
            percent(pair.base_rate),
            percent(pair.arm_rate),
            pairs.points(pair.difference),
            pairs.point_ends(pair.ci95),
            pairs.p_value(pair.p if pair.p_holm is None else pair.p_holm),
            labels(f"compare.verdict.{pair.verdict}"),
        ]
        for pair in named_pairs
    ]
    parts = [html_table([labels(f"compare.{name}") for name in names], rows)]
    for pair in named_pairs:
        parts.append(_paragraph(pair.conclusion.text()))
        parts += [_warning(notice.text()) for notice in pair.notices]
    parts += [_warning(notice.text()) for notice in value.notices]
    comparable_pairs = [pair for pair in value.comparisons if pair.difference is not None]
    if comparable_pairs:
        parts.append(differences(comparable_pairs)._repr_html_())
    return "\n".join(parts)


@_text_of.register
def _(value: Compared) -> str:
    return "\n".join(pair.conclusion.text() for pair in name_sides(value.comparisons))


@_html_of.register
def _(value: GateResult) -> str:
    labels = Labels()
    rows = [gate_cells(row, labels) for row in value.rows]
    parts = [_paragraph(_gate_line(value, labels)), html_table(gate_titles(labels), rows)]
    parts += [_paragraph(row.conclusion.text()) for row in value.rows]
    return "\n".join([*parts, *(_warning(notice.text()) for notice in value.notices)])


@_text_of.register
def _(value: GateResult) -> str:
    lines = [_gate_line(value, Labels()), *(row.conclusion.text() for row in value.rows)]
    return "\n".join(lines)


def _gate_line(result: GateResult, labels: Labels) -> str:
    """Return the name of the model, or of its run, and the verdict in a word."""
    models, runs = [result.model, result.baseline_model], [result.run, result.baseline]
    name = known_names(models, runs)[0] if result.baseline else result.run
    return f"{name}: {labels(f'gate.{result.verdict}')}"


@_html_of.register
def _(value: Plan) -> str:
    labels = Labels()
    table = html_table(plan_titles(labels), plan_rows(value, labels))
    words = map(_paragraph, plan_notes(value, labels))
    return "\n".join([_paragraph(plan_title(value, labels)), table, *words])


@_text_of.register
def _(value: Plan) -> str:
    labels = Labels()
    rows = (" ".join(cell for cell in row if cell) for row in plan_rows(value, labels))
    return "\n  ".join([plan_title(value, labels), *rows])


@_html_of.register
def _(value: Audit) -> str:
    labels = Labels()
    parts = [_warning(notice.text()) for notice in value.notices]
    for exam in value.exams:
        parts.append(_paragraph(_exam_line(exam, labels)))
        parts += [_warning(notice.text()) for notice in exam.notices]
        titles = [labels(f"audit.{name}") for name in ("reader", "accuracy", "interval", "apart")]
        readers = [
            [
                row.reader,
                fmt.share(row.accuracy.value, row.accuracy.bounds),
                interval(row.accuracy.ci95),
                count(row.apart),
            ]
            for row in exam.readers
        ]
        causes = [
            [labels(f"cause.{row.cause}"), count(row.n), row.explanation]
            for row in exam.causes
            if row.n
        ]
        parts.append(html_table(titles, readers))
        if causes:
            names = ("cause", "replies", "meaning")
            parts.append(html_table([labels(f"audit.{name}") for name in names], causes))
    return "\n".join(parts)


@_text_of.register
def _(value: Audit) -> str:
    labels = Labels()
    return "\n".join(_exam_line(exam, labels) for exam in value.exams)


def _exam_line(exam: ExamAudit, labels: Labels) -> str:
    name = f"{exam.name} · {exam.arm}" if exam.arm else exam.name
    facts = {"protocol": exam.protocol, "reader": exam.reader, "replies": count(exam.replies)}
    words = [labels("audit.title", exam=name, **facts)]
    if exam.range is not None:
        words.append(accuracy_range(exam, exam.range, labels))
    return ": ".join(words)


@_html_of.register
def _(value: Samples) -> str:
    labels = Labels()
    rows = [
        [
            fmt.shorten(fmt.without_canary(row.question or ""), _END_LENGTH),
            fmt.shorten(fmt.without_canary(row.reply)[-_END_LENGTH:], _END_LENGTH),
            fmt.shorten(row.answer or "", _ANSWER),
            fmt.shorten(fmt.without_canary(row.target or ""), _ANSWER),
            labels(f"outcome.{row.outcome}"),
            row.id,
        ]
        for row in islice(value, ROWS + 1)
    ]
    table = html_table([labels(f"samples.{name}") for name in _COLUMNS], rows[:ROWS])
    hint = labels("notebook.first", n=ROWS)
    return f"{table}\n{_paragraph(hint)}" if len(rows) > ROWS else table
