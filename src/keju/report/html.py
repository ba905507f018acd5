"""The report as one plain page: no scripts, no network, everything escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keju.files import whole_file
from keju.report import format as fmt
from keju.report.gallery import Case, Gallery, choose
from keju.report.settings import MANIFEST_ROWS, all_settings, main_settings
from keju.report.strings import HTML_LANG, Language, Strings
from keju.report.summary import (
    DISAGREEMENTS_SHOWN,
    LEFT_OUT,
    Summary,
    by_benchmark,
    error_words,
    estimate_notes,
    how_it_ended,
    outcome_words,
    summarise,
)
from keju.types import LABELS, OUTCOMES, Reading, Record, Sample

if TYPE_CHECKING:
    from jinja2 import Template

_ANSWER_LIMIT = 400
_LINE_LIMIT = 1_000
REFERENCE_STYLES = 3
"""Kinds of marks that the style sheet has for published figures."""


def write_report(
    results: Mapping[str, Any],
    answers: Iterable[tuple[Sample | None, Record]],
    output: Path,
    *,
    manifest: Mapping[str, Any],
    language: Language = "en",
) -> None:
    """Write the page of a run to `output`, whole or not at all.

    `answers` are the records that count, each after its question or, where the data is not at
    hand, None. They are read once; what is kept of them is bounded.
    """
    strings = Strings(language)
    summaries = summarise(results, strings)
    gallery = choose(answers, summaries)
    context = _context(results, summaries, gallery, manifest, strings)
    with whole_file(output) as file:
        for part in _template().generate(context):
            file.write(part.encode("utf-8", "replace"))


def _template() -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("keju.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["percent"] = fmt.percent
    environment.filters["published"] = fmt.published
    environment.filters["interval"] = fmt.interval
    environment.filters["count"] = fmt.count
    return environment.get_template("report.html.j2")


def _context(
    results: Mapping[str, Any],
    summaries: Sequence[Summary],
    gallery: Gallery,
    manifest: Mapping[str, Any],
    strings: Strings,
) -> dict[str, Any]:
    leaves = all_settings(manifest)
    counts = _answer_counts(summaries, gallery)
    return {
        "t": strings,
        "lang": HTML_LANG[strings.language],
        "model": fmt.printable(str(results.get("model") or ""), one_line=True),
        "run": fmt.printable(str(results.get("run") or ""), one_line=True),
        "ended": how_it_ended(results, strings),
        "sections": [_section(s, strings, n) for n, s in enumerate(summaries)],
        "families": [f for f in by_benchmark(summaries) if len(f) > 1],
        "disagreements": _disagreements(results),
        "disagreement_readers": ",".join(_readers(results)),
        "disagreement_total": len(results.get("disagreements") or ()),
        "settings": main_settings(manifest, summaries, strings),
        "manifest": leaves[:MANIFEST_ROWS],
        "manifest_total": len(leaves),
        "failures": [_shown_case(case, strings) for case in gallery.failures],
        "successes": [_shown_case(case, strings) for case in gallery.successes],
        "failure_total": counts[0],
        "success_total": counts[1],
        "version": metadata.version("keju"),
    }


def _answer_counts(summaries: Sequence[Summary], gallery: Gallery) -> tuple[int, int]:
    """How many answers were not correct and correct, by the first reader of each benchmark."""
    firsts = [family[0] for family in by_benchmark(summaries)]
    right = sum(s.outcomes["correct"] for s in firsts)
    wrong = sum(sum(s.outcomes.values()) for s in firsts) - right
    return max(wrong, len(gallery.failures)), max(right, len(gallery.successes))


def _section(summary: Summary, strings: Strings, number: int) -> dict[str, Any]:
    """One entry of the results, made ready for the template."""
    counts = {outcome: fmt.count(summary.outcomes[outcome]) for outcome in LEFT_OUT}
    bounds = ""
    if summary.bounds is not None:
        worst, best = (fmt.percent(bound) for bound in summary.bounds)
        bounds = strings("bounds", left_out=fmt.count(summary.left_out), worst=worst, best=best)
    total = sum(summary.outcomes.values())
    return {
        "s": summary,
        "anchor": f"result-{number}",
        "estimates": [(e, estimate_notes(e, strings)) for e in (summary.headline, *summary.others)],
        "errors": error_words(summary.errors, strings),
        "outcome_words": outcome_words(summary.outcomes, strings),
        "outcome_shares": [(o, summary.outcomes[o] / total) for o in OUTCOMES if total],
        "left_out": strings("left_out_note", **counts) if summary.left_out else "",
        "bounds": bounds,
        "published": _published(summary, strings),
        "shown_outcomes": [o for o in OUTCOMES if any(r.outcomes[o] for r in summary.subsets)],
        "references": [
            (name, f"reference-{place % REFERENCE_STYLES}")
            for place, name in enumerate(summary.subset_references)
        ],
        "has_chance": any(row.chance is not None for row in summary.subsets),
        "usage": _amounts("usage", summary.usage, strings),
        "timing": _amounts("timing", summary.timing, strings),
    }


def _published(summary: Summary, strings: Strings) -> dict[str, Any] | None:
    """Published figures of the whole exam: a row each, a column for each mean they are of."""
    metrics = list(dict.fromkeys(m for r in summary.references for m in r.overall))
    if not metrics:
        return None
    titles = summary.titles
    return {
        "titles": [titles.get(metric) or strings.metric(metric, "") for metric in metrics],
        "rows": [(r.name, [r.overall.get(m) for m in metrics]) for r in summary.references],
    }


def _amounts(kind: str, amounts: Mapping[str, Any], strings: Strings) -> list[tuple[str, str]]:
    """Flat numbers of ``usage`` or ``timing`` with their labels."""
    rows = []
    for key, value in amounts.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        shown = f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"
        rows.append((strings.known(f"{kind}.{key}", key), shown))
    return rows


def _disagreements(results: Mapping[str, Any]) -> list[dict[str, Any]]:
    rows = results.get("disagreements") or ()
    return [
        {
            "id": d["id"],
            "target": fmt.shorten(str(d.get("target") or ""), _ANSWER_LIMIT),
            "readings": [
                (reader, None if value is None else fmt.shorten(str(value), _ANSWER_LIMIT),
                 (d.get("outcomes") or {}).get(reader))
                for reader, value in (d.get("answers") or {}).items()
            ],
        }
        for d in rows[:DISAGREEMENTS_SHOWN]
    ]  # fmt: skip


def _readers(results: Mapping[str, Any]) -> list[str]:
    """The readers that disagree, in their order."""
    rows = results.get("disagreements") or ()
    return list(dict.fromkeys(reader for row in rows[:1] for reader in row.get("answers") or {}))


def _shown_case(case: Case, strings: Strings) -> dict[str, Any]:
    """One answer, made ready for the template."""
    record = case.record
    first = record.readings[0] if record.readings else None
    marks = []
    if record.epoch:
        marks.append(strings("epoch", n=record.epoch + 1))
    if record.arm:
        marks.append(strings("arm", arm=record.arm))
    target = _bare(record.target)
    value = _bare(first.answer.value or "") if first else ""
    return {
        "case": case,
        "id": record.id,
        "bench": record.bench,
        "marks": marks,
        "outcome": case.outcome,
        "target": fmt.shorten(fmt.without_canary(record.target), _LINE_LIMIT),
        "read": _reading(first, strings) if first else None,
        "others": [
            (r.reader, _reading(r, strings)) for r in record.readings[1:] if _differs(r, first)
        ],
        "choices": [
            (label, choice, label == target, label == value)
            for label, choice in zip(LABELS, case.choices, strict=False)
        ],
        "logprobs": sorted((record.reply.label_logprobs or {}).items()),
        "details": _reply_details(record, strings),
        "error": record.reply.error,
        "error_message": _error_message(record),
    }


def _differs(reading: Reading, first: Reading | None) -> bool:
    if first is None:
        return True
    same_value = _bare(reading.answer.value or "") == _bare(first.answer.value or "")
    return not same_value or reading.score.outcome != first.score.outcome


def _reading(reading: Reading, strings: Strings) -> dict[str, Any]:
    """What a reader found, how far it had to go, and why it found nothing."""
    answer = reading.answer
    notes = [strings("read_by", reader=reading.reader)]
    if answer.tier:
        notes.append(strings(f"tier.{answer.tier}"))
    if answer.reason:
        notes.append(strings.known(f"reason.{answer.reason}", answer.reason))
    if answer.first is not None:
        first = fmt.shorten(answer.first, _ANSWER_LIMIT)
        notes.append(strings("first_marker", value=first))
    if answer.cut:
        notes.append(strings("run_on_cut"))
    if reading.score.grader:
        notes.append(reading.score.grader)
    value = answer.value
    shown = None if value is None else fmt.shorten(fmt.without_canary(value), _LINE_LIMIT)
    return {"value": shown, "notes": notes, "outcome": reading.score.outcome}


def _reply_details(record: Record, strings: Strings) -> list[str]:
    details = []
    if record.reply.finish and record.reply.finish != "stop":
        details.append(strings("finish", finish=record.reply.finish))
    if record.faults:
        details.append(strings("retried", n=len(record.faults)))
    return details


def _error_message(record: Record) -> str:
    error = record.reply.error
    return fmt.shorten(fmt.without_canary(error.message), _LINE_LIMIT) if error else ""


def _bare(answer: str) -> str:
    """A label without brackets: ``(B)`` and ``B`` are the same option."""
    return answer.strip().strip("()")
