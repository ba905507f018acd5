"""Write the report of a run as one plain page: no scripts, no network, all text escaped."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from keju.errors import Notice, UsageError
from keju.files import whole_file, write_json
from keju.messages import Language, current_language
from keju.reporting import format as fmt
from keju.reporting.format import Labels
from keju.reporting.gallery import AnswerGallery, Render, ShownAnswer, choose, excerpt, renderer
from keju.reporting.histograms import Histogram, ReplyCosts
from keju.reporting.judges import judge_rows
from keju.reporting.pages import HTML_LANG, BilingualLabels, make_environment
from keju.reporting.provenance import MANIFEST_ROWS, main_settings, manifest_leaves
from keju.reporting.score_interpretation import interpret_score
from keju.results.schema import (
    NO_GOLD,
    Disagreement,
    ResultEntry,
    Results,
    SubsetRow,
    Timing,
    UsageTotals,
    to_document,
)
from keju.results.score import current_results
from keju.runs.journal import is_fetched
from keju.runs.manifest import Manifest
from keju.runs.run import REPORT, RESULTS, Run, damage_notices
from keju.scores.stored_replies import ExamRequests, iter_answers, load_requests
from keju.types import ALL_OUTCOMES, LABELS, Reading, Record, Sample

REFERENCE_STYLES = 3
"""The number of mark styles for published scores in the style sheet."""
SHARED_LIMIT = 8_000
"""The number of characters of the text that the questions of a subset share."""
FOLDED = 1_000
"""A reply with more characters than this is folded."""
_ANSWER_LIMIT = 400
_LINE_LIMIT = 1_000


def write_outputs(
    run: Run, results: Results, requests: ExamRequests, language: Language | None, *, report: bool
) -> None:
    """Write ``results.json`` and optionally ``report.html`` into a run's folder.

    Without a language the report opens in the language of the terminal.
    """
    write_json(run.folder / RESULTS, to_document(results))
    if report:
        answers, output = iter_answers(run, requests), run.folder / REPORT
        how: Any = {"manifest": run.manifest, "render": renderer(requests)}
        how["language"] = language or current_language()
        write_report(results, answers, output, **how)


class WrittenReport(NamedTuple):
    """A report that was written."""

    path: Path
    notices: list[Notice]
    """Notices about missing replies or data."""


def report_run(
    run: Run,
    output: str | Path | None = None,
    *,
    language: Language = "en",
    data_dir: str | None = None,
) -> WrittenReport:
    """Write the page of a stored run, by default into its folder."""
    if output is None and is_fetched(run.folder):
        raise UsageError("report_fetched")
    results, requests, notices = current_results(run, data_dir), None, []
    path = Path(output) if output else run.folder / REPORT
    try:
        requests = load_requests(run, data_dir)
    except UsageError as error:
        notices.append(Notice("report_without_data", {"problem": error.notice}))
    answers = iter_answers(run, requests)
    render = renderer(requests) if requests is not None else None
    how: Any = {"manifest": run.manifest, "language": language, "render": render}
    write_report(results, answers, path, **how)
    missing = [
        notice
        for entry in results.benchmarks
        for notice in entry.notices
        if notice.code == "replies_missing"
    ]
    missing_count = len(missing) + sum(
        not entry.questions_with_reply for entry in results.benchmarks
    )
    return WrittenReport(path, [*notices, *missing, *damage_notices(run.damaged, missing_count)])


def write_report(
    results: Results,
    answers: Iterable[tuple[Sample | None, Record]],
    output: Path,
    *,
    manifest: Manifest,
    language: Language = "en",
    render: Render | None = None,
) -> None:
    """Write the page of a run to `output`, completely or not at all.

    `answers` are the records that count, each with its question or, if the data is not available,
    None; `render` returns their prompts. They are read once, and only a bounded part is kept.
    """
    primary_labels, secondary_labels = Labels(language), Labels("zh" if language == "en" else "en")
    measurements = ReplyCosts()
    gallery = choose(
        measurements.observe(answers),
        results.benchmarks,
        primary_labels,
        secondary_labels,
        render=render,
    )
    tongues = BilingualLabels(primary_labels, secondary_labels)
    contexts = (
        _context(results, gallery, measurements, manifest, labels, place)
        for place, labels in enumerate(tongues.all_labels)
    )
    context = tongues.merge_contexts(*contexts) | {"t": tongues, "lang": HTML_LANG[language]}
    with whole_file(output) as file:
        for part in make_environment().get_template("report.html.j2").generate(context):
            file.write(part.encode("utf-8", "replace"))


def _context(
    results: Results,
    gallery: AnswerGallery,
    measurements: ReplyCosts,
    manifest: Manifest,
    labels: Labels,
    place: int,
) -> dict[str, Any]:
    """Return the template context; `place` selects the language of the titles in the cases."""
    leaves = manifest_leaves(manifest)
    families = fmt.families(results)
    # The first reader of each benchmark decides which answers count as failures.
    first_entries = [family[0] for family in families]
    correct_total = sum(entry.outcomes["correct"] for entry in first_entries)
    failure_total = sum(sum(entry.outcomes.values()) for entry in first_entries) - correct_total
    # The anchor of the first shown failure, by benchmark and subset, e.g. ``failed-7``.
    links: dict[str, dict[str, str]] = {}
    failures = []
    prompts = _PromptNumbers(labels)
    subsets: dict[str, int] = {}  # the numbers that the filters use
    for number, case in enumerate(gallery.failures):
        subset_links = links.setdefault(case.record.bench, {})
        anchor = "" if case.subset in subset_links else f"failed-{number}"
        subset_links.setdefault(case.subset, f"#{anchor}")
        subset = subsets.setdefault(_location(case, labels), len(subsets))
        page_fields = {"anchor": anchor, "number": subset, "prompt": prompts.of(case)}
        failures.append(case_context(case, labels, place) | page_fields)
    disagreements = results.disagreements or ()
    return {
        "languages": [
            (HTML_LANG[language], Labels(language)("language_name")) for language in ("en", "zh")
        ],
        "model": fmt.printable(results.model, one_line=True),
        "run": fmt.printable(results.run, one_line=True),
        "command": fmt.printable(fmt.run_command_name(results), one_line=True),
        "ended": fmt.describe_incomplete(results, labels),
        "sections": [
            _section(entry, labels, n, fmt.run_command_name(results))
            | {"arm": labels.arm(entry.arm) if entry.arm else ""}
            | {"links": links.get(entry.name, {}) if entry in first_entries else {}}
            | {"spreads": _spreads(entry, measurements, labels) if entry in first_entries else []}
            for n, entry in enumerate(results.benchmarks)
        ],
        "overview": [
            (row, _headline_row(row.entry, labels)) for row in fmt.overview(results, labels)
        ],
        "arms": _arms(results, labels),
        "curves": _curves(results, labels) if results.curves else [],
        "endpoints": _endpoints(results, labels) if results.endpoints else None,
        "several_readers": any(len(family) > 1 for family in families),
        "disagreements": [
            _disagreement_context(row) for row in disagreements[: fmt.DISAGREEMENTS_SHOWN]
        ],
        "disagreement_readers": ",".join(disagreements[0].answers) if disagreements else "",
        "disagreement_total": len(disagreements),
        "settings": list(main_settings(manifest, results, labels)),
        "manifest": leaves[:MANIFEST_ROWS],
        "manifest_total": len(leaves),
        "failures": failures,
        "subset_options": list(subsets),
        "outcome_options": [
            outcome for outcome in ALL_OUTCOMES if any(f["outcome"] == outcome for f in failures)
        ],
        "successes": [
            case_context(case, labels, place)
            | {"anchor": "", "number": "", "prompt": prompts.of(case)}
            for case in gallery.successes
        ],
        "prompts": prompts.shown,
        "failure_total": max(failure_total, len(gallery.failures)),
        "failures_cut": len(gallery.failures) < failure_total
        or any(text.left_out for case in gallery.failures for text in case.texts),
        "success_total": max(correct_total, len(gallery.successes)),
        "version": metadata.version("keju"),
    }


def _disagreement_context(row: Disagreement) -> dict[str, Any]:
    """Return the context of a reply that the readers score differently."""
    readings = [
        (reader, value and fmt.shorten(value, _ANSWER_LIMIT), row.outcomes.get(reader))
        for reader, value in row.answers.items()
    ]
    return {
        "id": row.id,
        "target": fmt.shorten(row.target, _ANSWER_LIMIT),
        "readings": readings,
    }


def _endpoints(results: Results, labels: Labels) -> Any:
    """Return the table of endpoints."""
    from keju.reporting.endpoints import endpoint_table

    return endpoint_table(results, labels)


def _curves(results: Results, labels: Labels) -> list[Any]:
    """Return the charts of accuracy against difficulty."""
    from keju.reporting.curves import sections

    return list(sections(results, labels))


def _arms(results: Results, labels: Labels) -> dict[str, Any] | None:
    """Return the tables of arms; difficulties have a curve instead."""
    from keju.reporting.arms import arm_table, pair_lines, pair_table

    arms = arm_table(results, labels)
    if not arms.rows:
        return None
    tables = [arms, pair_table(results, labels)]
    return {"lines": list(pair_lines(results, labels)), "tables": tables}


def _section(entry: ResultEntry, labels: Labels, number: int, run: str) -> dict[str, Any]:
    """Return the context of one entry of the results."""
    metrics = fmt.display_metrics(entry, labels)
    chance = entry.metrics.get("chance")
    tool_words, tools = "", None
    if entry.tools is not None:
        from keju.reporting import arms

        tool_words, tools = arms.describe_tool_use(entry, labels), arms.tool_table(entry, labels)
    notes = (
        tool_words,
        fmt.describe_signs(entry, labels),
        fmt.describe_errors(entry.errors, labels),
        *fmt.describe_ungraded(entry, labels),
    )
    titles = fmt.published_titles(entry, labels)
    return {
        "e": entry,
        "anchor": f"result-{number}",
        "protocol": fmt.protocol_line(entry),
        "errata": fmt.describe_errata(entry, run, labels),
        "headline": fmt.headline_of(entry, run, labels),
        "headline_interval": metrics[0].metric.ci95,
        "questions": fmt.describe_questions(entry, labels),
        "interpretation": interpret_score(entry, labels),
        "warnings": labels.warnings(entry),
        "answered": bool(fmt.answered_rows([entry])),
        "metrics": [
            (shown_metric, fmt.metric_notes(shown_metric.metric, labels))
            for shown_metric in metrics
        ]
        if entry.gold != NO_GOLD
        else [],
        "chance": chance.value if chance else None,
        "subsets": fmt.answered_rows(entry.subsets),
        "groups": fmt.answered_rows(entry.groups),
        "group_words": fmt.describe_partial_groups(entry, labels),
        "breakdowns": fmt.breakdowns(entry, labels),
        "published_titles": [*titles.values()],
        "published": [
            (fmt.reference_name(r, labels), [r.overall.get(name) for name in titles])
            for r in entry.reference
        ],
        "outcome_words": fmt.describe_outcomes(entry.outcomes, labels, cut_right=entry.cut_right),
        "outcomes": {o: entry.outcomes.get(o, 0) for o in ALL_OUTCOMES},
        "notes": [note for note in notes if note],
        "shown_outcomes": fmt.occurring_outcomes(entry.subsets),
        "references": [
            (fmt.reference_name(r, labels), f"reference-{place % REFERENCE_STYLES}", r.subsets)
            for place, r in enumerate(fmt.subset_references(entry))
        ],
        "has_chance": any(row.chance is not None for row in entry.subsets),
        "usage": _amounts("usage", entry.usage, labels),
        "timing": _amounts("timing", entry.timing, labels),
        "tools": tools,
        "judge": list(judge_rows(entry.judge, labels)) if entry.judge else [],
    }


def _amounts(kind: str, amounts: UsageTotals | Timing, labels: Labels) -> list[tuple[str, str]]:
    """Return the numbers of ``usage`` or ``timing`` with their labels."""
    return [
        (labels.get(f"{kind}.{key}", key), f"{value:,}" if kind == "usage" else f"{value:,.2f}")
        for key, value in msgspec.structs.asdict(amounts).items()
        if value is not None and value is not msgspec.UNSET
    ]


def _headline_row(entry: ResultEntry, labels: Labels) -> SubsetRow:
    """Return the headline of an exam as a row of a chart."""
    metric, chance = fmt.display_metrics(entry, labels)[0].metric, entry.metrics.get("chance")
    return SubsetRow(
        name=entry.full_name,
        n=metric.n,
        accuracy=metric.value,
        ci95=metric.ci95,
        outcomes={},
        bounds=metric.bounds,
        chance=chance.value if chance else None,
    )


def _spreads(
    entry: ResultEntry, measurements: ReplyCosts, labels: Labels
) -> list[tuple[str, Histogram, str]]:
    """Return the histograms of an exam's replies, each with its title and description."""
    spreads = measurements.spreads(entry.name, entry.arm)
    return [
        (labels(f"plot.{kind}"), spread, spread.describe(labels))
        for kind, spread in spreads.items()
    ]


class _PromptNumbers:
    """Numbers the shared parts of prompts, so that a page contains each of them once."""

    def __init__(self, labels: Labels) -> None:
        self.shown: list[dict[str, Any]] = []
        self._labels = labels
        self._numbers: dict[bytes, int] = {}

    def of(self, case: ShownAnswer) -> dict[str, Any] | None:
        """Return the prompt of a case: the number of its shared part, and the rest."""
        prompt = case.prompt
        if prompt is None:
            return None
        number, turns = -1, prompt.shared
        if turns:
            number = self._numbers.setdefault(prompt.prefix.digest, len(self._numbers))
        if number == len(self.shown):
            title = _location(case, self._labels)
            excerpts = [(role, excerpt(text, SHARED_LIMIT)) for role, text in turns]
            size = sum(len(text) for _, text in turns)
            self.shown.append({"title": title, "turns": excerpts, "size": size})
        return {
            "number": number,
            "role": prompt.role,
            "tail": prompt.tail,
            "cue": fmt.printable(prompt.cue),
            "as_recorded": prompt.as_recorded,
        }


# Single answers.


def _location(case: ShownAnswer, labels: Labels) -> str:
    """Return the exam and the subset of a case, as its header and the filter show them."""
    return f"{case.record.bench} · {case.subset or labels('no_subset')}"


def case_context(case: ShownAnswer, labels: Labels, place: int = 0) -> dict[str, Any]:
    """Return the context of one answer; `place` selects the language of its titles."""
    record = case.record
    headline_reading = record.readings[0] if record.readings else None
    marks = []
    if record.epoch:
        marks.append(labels("epoch", n=record.epoch + 1))
    if record.arm:
        marks.append(labels.arm(record.arm))
    details = []
    if record.reply.finish and record.reply.finish != "stop":
        details.append(labels("finish", finish=record.reply.finish))
    if record.reply.refusal:
        refusal = fmt.shorten(fmt.without_canary(record.reply.refusal), _LINE_LIMIT)
        details.append(labels("refusal_line", text=refusal))
    if record.faults:
        details.append(labels("retried", n=len(record.faults)))
    error = record.reply.error
    value = _without_brackets(headline_reading.answer.value or "") if headline_reading else ""
    return {
        "case": case,
        "id": record.id,
        "bench": record.bench,
        "place": _location(case, labels),
        "steps": [(titles[place], text, failed) for titles, text, failed in case.steps],
        "marks": marks,
        "outcome": case.outcome,
        "target": fmt.shorten(fmt.without_canary(record.target), _LINE_LIMIT),
        "read": reading_context(headline_reading, labels) if headline_reading else None,
        "others": [
            (reading.reader, reading_context(reading, labels))
            for reading in record.readings[1:]
            if (_without_brackets(reading.answer.value or ""), reading.score.outcome)
            != (value, case.outcome)
        ],
        "reply_folded": case.reply.length if case.reply.length > FOLDED else 0,
        "choices": choice_rows(case),
        "logprobs": sorted((record.reply.label_logprobs or {}).items()),
        "details": details,
        "error": error,
        "error_message": fmt.shorten(fmt.without_canary(error.message), _LINE_LIMIT)
        if error
        else "",
    }


def choice_rows(case: ShownAnswer) -> list[tuple[str, str, bool, bool]]:
    """Return the options in the order of the prompt: label, text, is target, is the answer."""
    headline_reading = case.record.readings[0] if case.record.readings else None
    target = _without_brackets(case.record.target)
    value = _without_brackets(headline_reading.answer.value or "") if headline_reading else ""
    return [
        (label, choice, label == target, label == value)
        for label, choice in zip(LABELS, case.choices, strict=False)
    ]


def reading_context(reading: Reading, labels: Labels) -> dict[str, Any]:
    """Return the context of a reading: the answer, how it was found, or why nothing was read."""
    answer = reading.answer
    notes = [labels("read_by", reader=reading.reader)]
    if answer.tier:
        notes.append(labels(f"tier.{answer.tier}"))
    if answer.rule:
        notes.append(labels("read_rule", rule=answer.rule))
    if answer.reason:
        notes.append(labels.reason(answer.reason))
    notes += [labels(f"sign.{sign}") for sign in answer.signs]
    if answer.other is not None:
        notes.append(labels("also_states", answer=fmt.shorten(answer.other, _ANSWER_LIMIT)))
    if answer.first is not None:
        marker = fmt.shorten(answer.first, _ANSWER_LIMIT)
        notes.append(labels("first_marker", value=marker))
    if answer.cut:
        notes.append(labels("run_on_cut"))
    if reading.score.grader:
        notes.append(reading.score.grader)
    value = answer.value
    value_text = None if value is None else fmt.shorten(fmt.without_canary(value), _LINE_LIMIT)
    notes_text = labels("in_brackets", text=labels("clause_separator").join(notes)).lstrip()
    passage = fmt.shorten(fmt.without_canary(answer.passage), _LINE_LIMIT) if answer.passage else ""
    return {
        "value": value_text,
        "notes": notes_text,
        "outcome": reading.score.outcome,
        "passage": passage,
    }


def _without_brackets(answer: str) -> str:
    """Return a label without brackets: ``(B)`` and ``B`` are the same option."""
    return answer.strip().strip("()")
