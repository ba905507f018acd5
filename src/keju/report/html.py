"""The report as one plain page: no scripts, no network, everything escaped."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from keju.engine.resume import JobRequests, iter_answers, load_requests
from keju.errors import Notice, UsageError
from keju.files import whole_file, write_json
from keju.messages import Language, spoken
from keju.report import format as fmt
from keju.report.format import Labels
from keju.report.gallery import Case, Gallery, Render, choose, excerpt, renderer
from keju.report.judges import judge_rows
from keju.report.meaning import meaning_words
from keju.report.pages import HTML_LANG, Tongues, make_environment
from keju.report.provenance import MANIFEST_ROWS, main_settings, manifest_leaves
from keju.report.spread import Spread, Taken
from keju.results.schema import (
    NO_GOLD,
    Disagreement,
    Entry,
    Results,
    Row,
    Timing,
    Usage,
    to_document,
)
from keju.results.score import current_results
from keju.runs.journal import is_fetched
from keju.runs.manifest import Manifest
from keju.runs.run import REPORT, RESULTS, Run, damage_notices
from keju.types import ALL_OUTCOMES, LABELS, Reading, Record, Sample

REFERENCE_STYLES = 3
"""Kinds of marks that the style sheet has for published figures."""
SHARED_LIMIT = 8_000
"""Characters of what the questions of a subset share, such as worked examples."""
FOLDED = 1_000
"""A reply of more characters than this is opened by a click."""
_ANSWER_LIMIT = 400
_LINE_LIMIT = 1_000


def write_outputs(
    run: Run, results: Results, requests: JobRequests, language: Language | None, *, report: bool
) -> None:
    """Write ``results.json`` and, if asked, ``report.html`` into a run's folder.

    Without a language the report begins with that of the terminal.
    """
    write_json(run.folder / RESULTS, to_document(results))
    if report:
        answers, output = iter_answers(run, requests), run.folder / REPORT
        how: Any = {"manifest": run.manifest, "render": renderer(requests)}
        how["language"] = language or spoken()
        write_report(results, answers, output, **how)


class Written(NamedTuple):
    """A report that was written."""

    path: Path
    notices: list[Notice]
    """What it lacks."""


def report_run(
    run: Run,
    output: str | Path | None = None,
    *,
    language: Language = "en",
    data_dir: str | None = None,
) -> Written:
    """Write the page of a stored run, by default into its folder."""
    if output is None and is_fetched(run.folder):
        raise UsageError("report_fetched")
    results, requests, said = current_results(run, data_dir), None, []
    path = Path(output) if output else run.folder / REPORT
    try:
        requests = load_requests(run, data_dir)
    except UsageError as error:
        said.append(Notice("report_without_data", {"problem": error.notice}))
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
    lacking = len(missing) + sum(not entry.asked for entry in results.benchmarks)
    return Written(path, [*said, *missing, *damage_notices(run.damaged, lacking)])


def write_report(
    results: Results,
    answers: Iterable[tuple[Sample | None, Record]],
    output: Path,
    *,
    manifest: Manifest,
    language: Language = "en",
    render: Render | None = None,
) -> None:
    """Write the page of a run to `output`, whole or not at all.

    `answers` are the records that count, each after its question or, where the data is not at
    hand, None; `render` gives their prompts. They are read once; what is kept of them is bounded.
    """
    own, other = Labels(language), Labels("zh" if language == "en" else "en")
    taken = Taken()
    gallery = choose(taken.noted(answers), results.benchmarks, own, other, render=render)
    tongues = Tongues(own, other)
    contexts = (
        _context(results, gallery, taken, manifest, labels, place)
        for place, labels in enumerate(tongues.both)
    )
    context = tongues.merged(*contexts) | {"t": tongues, "lang": HTML_LANG[language]}
    with whole_file(output) as file:
        for part in make_environment().get_template("report.html.j2").generate(context):
            file.write(part.encode("utf-8", "replace"))


def _context(
    results: Results,
    gallery: Gallery,
    taken: Taken,
    manifest: Manifest,
    labels: Labels,
    place: int,
) -> dict[str, Any]:
    """What the template needs, in the language at `place` of those that cases have titles in."""
    leaves = manifest_leaves(manifest)
    families = fmt.families(results)
    # Answers are counted, and failures told, by the first reader of each benchmark.
    firsts = [family[0] for family in families]
    right = sum(entry.outcomes["correct"] for entry in firsts)
    wrong = sum(sum(entry.outcomes.values()) for entry in firsts) - right
    # By benchmark and subset: where the first failure stands that is shown, e.g. ``failed-7``.
    links: dict[str, dict[str, str]] = {}
    failures = []
    prompts = _Prompts(labels)
    subsets: dict[str, int] = {}  # numbered, as filters have them
    for number, case in enumerate(gallery.failures):
        known = links.setdefault(case.record.bench, {})
        anchor = "" if case.subset in known else f"failed-{number}"
        known.setdefault(case.subset, f"#{anchor}")
        subset = subsets.setdefault(_place_of(case, labels), len(subsets))
        more = {"anchor": anchor, "number": subset, "prompt": prompts.of(case)}
        failures.append(shown_case(case, labels, place) | more)
    disagreements = results.disagreements or ()
    return {
        "languages": [(HTML_LANG[own], Labels(own)("language_name")) for own in ("en", "zh")],
        "model": fmt.printable(results.model, one_line=True),
        "run": fmt.printable(results.run, one_line=True),
        "command": fmt.printable(fmt.named_run(results), one_line=True),
        "ended": fmt.ended_words(results, labels),
        "sections": [
            _section(entry, labels, n, fmt.named_run(results))
            | {"arm": labels.arm(entry.arm) if entry.arm else ""}
            | {"links": links.get(entry.name, {}) if entry in firsts else {}}
            | {"spreads": _spreads(entry, taken, labels) if entry in firsts else []}
            for n, entry in enumerate(results.benchmarks)
        ],
        "overview": [(row, _as_row(row.entry, labels)) for row in fmt.overview(results, labels)],
        "arms": _arms(results, labels),
        "curves": _curves(results, labels) if results.curves else [],
        "endpoints": _endpoints(results, labels) if results.endpoints else None,
        "several_readers": any(len(family) > 1 for family in families),
        "disagreements": [
            _shown_disagreement(row) for row in disagreements[: fmt.DISAGREEMENTS_SHOWN]
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
            shown_case(case, labels, place)
            | {"anchor": "", "number": "", "prompt": prompts.of(case)}
            for case in gallery.successes
        ],
        "prompts": prompts.shown,
        "failure_total": max(wrong, len(gallery.failures)),
        "failures_cut": len(gallery.failures) < wrong
        or any(text.left_out for case in gallery.failures for text in case.texts),
        "success_total": max(right, len(gallery.successes)),
        "version": metadata.version("keju"),
    }


def _shown_disagreement(row: Disagreement) -> dict[str, Any]:
    """A reply that readers read otherwise, made ready for the template."""
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
    """The endpoints of a run that had several."""
    from keju.report.endpoints import endpoint_table

    return endpoint_table(results, labels)


def _curves(results: Results, labels: Labels) -> list[Any]:
    """Accuracy against difficulty."""
    from keju.report.curves import sections

    return list(sections(results, labels))


def _arms(results: Results, labels: Labels) -> dict[str, Any] | None:
    """The arms of a run side by side; difficulties have their curve instead."""
    from keju.report.arms import arm_table, pair_lines, pair_table

    arms = arm_table(results, labels)
    if not arms.rows:
        return None
    tables = [arms, pair_table(results, labels)]
    return {"lines": list(pair_lines(results, labels)), "tables": tables}


def _section(entry: Entry, labels: Labels, number: int, run: str) -> dict[str, Any]:
    """One entry of the results, made ready for the template."""
    metrics = fmt.shown_metrics(entry, labels)
    chance = entry.metrics.get("chance")
    tool_words, tools = "", None
    if entry.tools is not None:
        from keju.report import arms

        tool_words, tools = arms.tool_words(entry, labels), arms.tool_table(entry, labels)
    notes = (
        tool_words,
        fmt.sign_words(entry, labels),
        fmt.error_words(entry.errors, labels),
        *fmt.left_out_words(entry, labels),
    )
    titles = fmt.published_titles(entry, labels)
    return {
        "e": entry,
        "anchor": f"result-{number}",
        "protocol": fmt.protocol_line(entry),
        "errata": fmt.errata_words(entry, run, labels),
        "headline": fmt.headline_of(entry, run, labels),
        "headline_interval": metrics[0].metric.ci95,
        "asked": fmt.asked_words(entry, labels),
        "made": meaning_words(entry, labels),
        "warnings": labels.warnings(entry),
        "answered": bool(fmt.answered([entry])),
        "metrics": [(shown, fmt.metric_notes(shown.metric, labels)) for shown in metrics]
        if entry.gold != NO_GOLD
        else [],
        "chance": chance.value if chance else None,
        "subsets": fmt.answered(entry.subsets),
        "groups": fmt.answered(entry.groups),
        "group_words": fmt.group_words(entry, labels),
        "breakdowns": fmt.breakdowns(entry, labels),
        "published_titles": [*titles.values()],
        "published": [
            (fmt.reference_name(r, labels), [r.overall.get(name) for name in titles])
            for r in entry.reference
        ],
        "outcome_words": fmt.outcome_words(entry.outcomes, labels, cut_right=entry.cut_right),
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


def _amounts(kind: str, amounts: Usage | Timing, labels: Labels) -> list[tuple[str, str]]:
    """The numbers of ``usage`` or ``timing`` with their labels."""
    return [
        (labels.get(f"{kind}.{key}", key), f"{value:,}" if kind == "usage" else f"{value:,.2f}")
        for key, value in msgspec.structs.asdict(amounts).items()
        if value is not None and value is not msgspec.UNSET
    ]


def _as_row(entry: Entry, labels: Labels) -> Row:
    """The headline of an exam as a row of a chart."""
    metric, chance = fmt.shown_metrics(entry, labels)[0].metric, entry.metrics.get("chance")
    return Row(
        name=entry.full_name,
        n=metric.n,
        accuracy=metric.value,
        ci95=metric.ci95,
        outcomes={},
        bounds=metric.bounds,
        chance=chance.value if chance else None,
    )


def _spreads(entry: Entry, taken: Taken, labels: Labels) -> list[tuple[str, Spread, str]]:
    """What the replies of an exam took, each with its title and in words."""
    found = taken.spreads(entry.name, entry.arm)
    return [(labels(f"plot.{kind}"), own, own.words(labels)) for kind, own in found.items()]


class _Prompts:
    """Numbers what questions share, so that a page has it once however many cases need it."""

    def __init__(self, labels: Labels) -> None:
        self.shown: list[dict[str, Any]] = []
        self._labels = labels
        self._numbers: dict[bytes, int] = {}

    def of(self, case: Case) -> dict[str, Any] | None:
        """The prompt of a case: where its shared part stands, and its own."""
        sent = case.prompt
        if sent is None:
            return None
        number, turns = -1, sent.shared
        if turns:
            number = self._numbers.setdefault(sent.prefix.digest, len(self._numbers))
        if number == len(self.shown):
            title = _place_of(case, self._labels)
            cut = [(role, excerpt(text, SHARED_LIMIT)) for role, text in turns]
            size = sum(len(text) for _, text in turns)
            self.shown.append({"title": title, "turns": cut, "size": size})
        return {
            "number": number,
            "role": sent.role,
            "own": sent.own,
            "cue": fmt.printable(sent.cue),
            "as_recorded": sent.as_recorded,
        }


# Single answers.


def _place_of(case: Case, labels: Labels) -> str:
    """The exam and the subset of a case, as its header and the filter have them."""
    return f"{case.record.bench} · {case.subset or labels('no_subset')}"


def shown_case(case: Case, labels: Labels, place: int = 0) -> dict[str, Any]:
    """One answer, made ready for the template; `place` is that of the language in its titles."""
    record = case.record
    first = record.readings[0] if record.readings else None
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
    value = _bare(first.answer.value or "") if first else ""
    return {
        "case": case,
        "id": record.id,
        "bench": record.bench,
        "place": _place_of(case, labels),
        "steps": [(titles[place], text, failed) for titles, text, failed in case.steps],
        "marks": marks,
        "outcome": case.outcome,
        "target": fmt.shorten(fmt.without_canary(record.target), _LINE_LIMIT),
        "read": shown_reading(first, labels) if first else None,
        "others": [
            (other.reader, shown_reading(other, labels))
            for other in record.readings[1:]
            if (_bare(other.answer.value or ""), other.score.outcome) != (value, case.outcome)
        ],
        "reply_folded": case.reply.length if case.reply.length > FOLDED else 0,
        "choices": shown_choices(case),
        "logprobs": sorted((record.reply.label_logprobs or {}).items()),
        "details": details,
        "error": error,
        "error_message": fmt.shorten(fmt.without_canary(error.message), _LINE_LIMIT)
        if error
        else "",
    }


def shown_choices(case: Case) -> list[tuple[str, str, bool, bool]]:
    """The options as they were put: label, text, whether it is the target, and what was read."""
    first = case.record.readings[0] if case.record.readings else None
    target = _bare(case.record.target)
    value = _bare(first.answer.value or "") if first else ""
    return [
        (label, choice, label == target, label == value)
        for label, choice in zip(LABELS, case.choices, strict=False)
    ]


def shown_reading(reading: Reading, labels: Labels) -> dict[str, Any]:
    """What a reader found, how far it had to go, and why it found nothing."""
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
        first = fmt.shorten(answer.first, _ANSWER_LIMIT)
        notes.append(labels("first_marker", value=first))
    if answer.cut:
        notes.append(labels("run_on_cut"))
    if reading.score.grader:
        notes.append(reading.score.grader)
    value = answer.value
    shown = None if value is None else fmt.shorten(fmt.without_canary(value), _LINE_LIMIT)
    told = labels("in_brackets", text=labels("clause_separator").join(notes)).lstrip()
    passage = fmt.shorten(fmt.without_canary(answer.passage), _LINE_LIMIT) if answer.passage else ""
    return {
        "value": shown,
        "notes": told,
        "outcome": reading.score.outcome,
        "passage": passage,
    }


def _bare(answer: str) -> str:
    """A label without brackets: ``(B)`` and ``B`` are the same option."""
    return answer.strip().strip("()")
