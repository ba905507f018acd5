"""Write the report of a run as one plain page: no scripts, no network, all text escaped."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from keju.errors import Notice, UsageError
from keju.files import whole_file, write_json
from keju.messages import Language, current_language
from keju.reporting import format as fmt
from keju.reporting.answers import exam_answer, page_question, placebo_arms
from keju.reporting.cases import case_context, describe_place
from keju.reporting.findings import READERS_DIFFER
from keju.reporting.format import Labels
from keju.reporting.gallery import AnswerGallery, Render, ShownAnswer, choose, excerpt, renderer
from keju.reporting.histograms import ReplyCosts
from keju.reporting.pages import HTML_LANG, BilingualLabels, make_environment
from keju.reporting.provenance import MANIFEST_ROWS, main_settings, manifest_leaves
from keju.reporting.sections import (
    arms_of,
    curves_of,
    endpoints_of,
    section_context,
    spreads_of,
)
from keju.results.schema import Disagreement, ResultEntry, Results, to_document
from keju.results.score import current_results
from keju.runs.journal import is_fetched
from keju.runs.manifest import Manifest
from keju.runs.run import REPORT, RESULTS, Run, damage_notices
from keju.scores.stored_replies import ExamRequests, iter_answers, load_requests
from keju.types import ALL_OUTCOMES, Record, Sample

SHARED_LIMIT = 8_000
"""The number of characters of the text that the questions of a subset share."""
FAILURES_IN_SIGHT = 5
"""The number of failures that are listed before the others are unfolded."""
_ANSWER_LIMIT = 400


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
    run, arms = fmt.run_command_name(results), arms_of(results, labels)
    answers = _AnswerLists(results, gallery, labels, place)
    return {
        "languages": [
            (HTML_LANG[language], Labels(language)("language_name")) for language in ("en", "zh")
        ],
        "model": fmt.printable(results.model, one_line=True),
        "run": fmt.printable(results.run, one_line=True),
        "command": fmt.printable(run, one_line=True),
        "question": page_question(results, placebo_arms(manifest.config), labels),
        "ended": fmt.describe_incomplete(results, labels),
        "exam_answers": [
            (f"result-{results.benchmarks.index(family[0])}",
             exam_answer(family, run, labels, answers.find))
            for family in fmt.families(results)
        ],
        "sections": [
            section_context(entry, labels, n, run, answers.links_of(entry))
            | {"spreads": answers.is_primary(entry) and spreads_of(entry, measurements, labels)}
            for n, entry in enumerate(results.benchmarks)
        ],
        "arms": arms,
        "curves": curves_of(results, labels),
        "endpoints": endpoints_of(results, labels),
        "several_readers": any(len(family) > 1 for family in fmt.families(results)),
        "settings": list(main_settings(manifest, results, labels)),
        "manifest": leaves[:MANIFEST_ROWS],
        "manifest_total": len(leaves),
        "version": metadata.version("keju"),
        **_disagreements(results),
        **answers.context(),
    }  # fmt: skip


class _AnswerLists:
    """The answers that the page shows, and the addresses of subsets and outcomes in them."""

    def __init__(
        self, results: Results, gallery: AnswerGallery, labels: Labels, place: int
    ) -> None:
        self._gallery = gallery
        self._labels = labels
        # The first reader of each benchmark decides which answers count as failures.
        self._primary_entries = [family[0] for family in fmt.families(results)]
        self._links: dict[str, dict[str, str]] = {}
        """The address of the first failure, by benchmark and subset, e.g. ``#failed-7``."""
        self._subsets: dict[str, int] = {}
        self._prompts = _PromptNumbers(labels)
        self._failures = [
            self._failure(number, case, place) for number, case in enumerate(gallery.failures)
        ]
        self._successes = [
            case_context(case, labels, place)
            | {"anchor": "", "number": "", "prompt": self._prompts.of(case)}
            for case in gallery.successes
        ]
        self._exams = list(dict.fromkeys(case.record.bench for case in gallery.failures))
        pairs = {(case["bench"], case["outcome"]) for case in self._failures}
        self._shown_outcomes: list[tuple[str, str]] = [
            (exam, outcome)
            for exam in self._exams
            for outcome in ALL_OUTCOMES
            if (exam, outcome) in pairs
        ]
        self._has_disagreements = bool(results.disagreements)

    def _failure(self, number: int, case: ShownAnswer, place: int) -> dict[str, Any]:
        subset_links = self._links.setdefault(case.record.bench, {})
        anchor = "" if case.subset in subset_links else f"failed-{number}"
        subset_links.setdefault(case.subset, f"#{anchor}")
        subset = self._subsets.setdefault(describe_place(case, self._labels), len(self._subsets))
        page_fields = {"anchor": anchor, "number": subset, "prompt": self._prompts.of(case)}
        return case_context(case, self._labels, place) | page_fields

    def is_primary(self, entry: ResultEntry) -> bool:
        """Return whether the failures are those of this entry's reader."""
        return entry in self._primary_entries

    def links_of(self, entry: ResultEntry) -> dict[str, str]:
        """Return the addresses of the first failures of an entry's subsets."""
        return self._links.get(entry.name, {}) if self.is_primary(entry) else {}

    def find(self, exam: str, _arm: str, reply_filter: str) -> str:
        """Return the address of the replies with an outcome; empty if the page lists none."""
        if reply_filter == READERS_DIFFER:
            return "#disagreements" if self._has_disagreements else ""
        addresses = {pair: f"#only-{number}" for number, pair in enumerate(self._shown_outcomes)}
        return addresses.get((exam, reply_filter), "")

    def context(self) -> dict[str, Any]:
        """Return the lists of failures and successes with their filters."""
        correct_total = sum(entry.outcomes["correct"] for entry in self._primary_entries)
        reply_total = sum(sum(entry.outcomes.values()) for entry in self._primary_entries)
        failures, failure_total = self._gallery.failures, reply_total - correct_total
        has_cut_text = any(text.left_out for case in failures for text in case.texts)
        outcomes = {outcome for _, outcome in self._shown_outcomes}
        return {
            "failures": self._failures,
            "failures_in_sight": FAILURES_IN_SIGHT,
            "shown_outcomes": self._shown_outcomes,
            "exam_numbers": {exam: number for number, exam in enumerate(self._exams)},
            "subset_options": list(self._subsets),
            "outcome_options": [outcome for outcome in ALL_OUTCOMES if outcome in outcomes],
            "successes": self._successes,
            "prompts": self._prompts.shown,
            "failure_total": max(failure_total, len(failures)),
            "failures_cut": len(failures) < failure_total or has_cut_text,
            "success_total": max(correct_total, len(self._gallery.successes)),
        }


def _disagreements(results: Results) -> dict[str, Any]:
    """Return the replies that the readers score differently."""
    disagreements = results.disagreements or ()
    return {
        "disagreements": [
            _disagreement_context(row) for row in disagreements[: fmt.DISAGREEMENTS_SHOWN]
        ],
        "disagreement_readers": ",".join(disagreements[0].answers) if disagreements else "",
        "disagreement_total": len(disagreements),
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
            title = describe_place(case, self._labels)
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
