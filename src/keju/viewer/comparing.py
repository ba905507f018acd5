"""Pages that compare runs: several runs or arms, and two replies to one question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote, urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse

from keju.reporting import format as fmt
from keju.reporting.cases import choice_rows, reading_context
from keju.reporting.diffing import diff_words
from keju.reporting.findings import Finding
from keju.reporting.format import Labels
from keju.reporting.gallery import case_of
from keju.reporting.pair_contexts import pairs_context
from keju.reporting.pairs import answers, first_gains, first_losses
from keju.results.compare import Compared, compare
from keju.results.schema import ChangedQuestion, Comparison
from keju.types import Notice, Record
from keju.viewer.index import ExamArm
from keju.viewer.pages import TEXT, ViewerPages
from keju.viewer.run_index import IndexedRun

MOST_RUNS: Final = 6
"""The maximum number of runs on one page."""
FLIPS_SHOWN: Final = 200
"""The maximum number of gains and of losses on a page."""
_MAX_CACHED: Final = 16
_LARGE_COMPARISON: Final = 100_000
"""A comparison with more replies than this is the only one in the cache."""
_ANSWER: Final = 60


class ComparisonPages:
    """Renders the pages that show more than one run."""

    def __init__(self, pages: ViewerPages) -> None:
        self._pages = pages
        self._comparisons: dict[tuple[object, ...], Compared] = {}

    def show_comparison(self, request: Request) -> HTMLResponse:
        """Compare several runs, or the arms of one; with fewer runs, show what can be selected."""
        pages, labels = self._pages, self._pages.labels(request)
        pages.run_index.refresh()
        names = list(dict.fromkeys(request.query_params.getlist("run")))[:MOST_RUNS]
        runs = [pages.stored(name, request) for name in names if name]
        comparable = len(runs) > 1 or any(len(run.arms) > 1 for run in runs)
        compared_runs = self._comparison(runs) if comparable else None
        context = pairs_context(compared_runs.comparisons if compared_runs else (), labels)
        if compared_runs:
            for pair_context, pair in zip(context["pairs"], compared_runs.comparisons, strict=True):
                _add_links(pair_context, pair, runs, labels)
        notices = compared_runs.notices if compared_runs else ()
        return pages.page(
            request,
            "compare.html.j2",
            here="compare",
            runs=[stored.name for stored in pages.run_index],
            chosen=[stored.name for stored in runs],
            choose=not comparable,
            question=_question(context["pairs"], labels),
            **context,
            notices=[notice.text(labels.language) for notice in notices],
        )

    def _comparison(self, runs: Sequence[IndexedRun]) -> Compared:
        """Return the comparison; it is cached until one of the runs grows."""
        key = tuple((run.name, run.index.generation, run.index.end) for run in runs)
        if key not in self._comparisons:
            if (
                len(self._comparisons) >= _MAX_CACHED
                or sum(run.total for run in runs) > _LARGE_COMPARISON
            ):
                self._comparisons.clear()
            folders = [run.run.folder for run in runs]
            self._comparisons[key] = compare(*folders, data_dir=self._pages.run_index.data_dir)
        return self._comparisons[key]

    def show_replies(self, request: Request) -> HTMLResponse:
        """Show the replies of two runs to one question, with the words that differ."""
        pages, labels = self._pages, self._pages.labels(request)
        names = request.query_params.getlist("run")
        if len(names) != 2:
            raise HTTPException(400, labels("view.two_runs"))
        runs = [pages.stored(name, request) for name in names]
        # Two arms have one part each: ``of=demo/plain&of=demo/calculator``.
        parts = (request.query_params.getlist("of") or [""]) * 2
        records = [
            pages.record(run, request, part)[1] for run, part in zip(runs, parts, strict=False)
        ]
        question, options = _question_and_options(runs, records, labels)
        return pages.page(
            request,
            "sides.html.j2",
            here="compare",
            id=fmt.printable(records[0].id, one_line=True),
            compare=f"/compare?{urlencode([('run', name) for name in dict.fromkeys(names)])}",
            question=question,
            # The answer of each side is shown with its reply.
            choices=[(*option[:3], False) for option in options[0]] if len(options) == 1 else [],
            target=fmt.shorten(fmt.without_canary(records[0].target), _ANSWER),
            sides=_sides(runs, records, options, labels),
        )


def _add_links(
    pair_context: dict[str, Any], pair: Comparison, runs: Sequence[IndexedRun], labels: Labels
) -> None:
    """Add the questions that only one side gets right, and the addresses of warnings' replies."""
    pair_context["notices"] = [
        finding._replace(href=_unread_path(pair, notice, finding, runs))
        for notice, finding in zip(pair.notices, pair_context["notices"], strict=True)
    ]
    pair_context["flips"] = [
        (title, count, _rows(pair, select_flips(pair.flips, FLIPS_SHOWN), runs, labels))
        for title, count, select_flips in (
            ("view.gained", pair.arm_only, first_gains),
            ("view.lost", pair.base_only, first_losses),
        )
    ]


_Options = list[tuple[str, str, bool, bool]]


def _question_and_options(
    runs: Sequence[IndexedRun], records: Sequence[Record], labels: Labels
) -> tuple[str | None, list[_Options]]:
    """Return the question, if it is known, and the options of both sides, or once if equal."""
    current_question = runs[0].questions().find_question(records[0])
    question = None
    if current_question:
        question = fmt.printable(fmt.without_canary(current_question.sample.text))
    options = [_options(run, record, labels) for run, record in zip(runs, records, strict=True)]
    presented = [[option[:3] for option in side_options] for side_options in options]
    return question, options[:1] if presented[0] == presented[1] else options


def _sides(
    runs: Sequence[IndexedRun],
    records: Sequence[Record],
    options: Sequence[_Options],
    labels: Labels,
) -> list[dict[str, Any]]:
    """Return both replies, with the words marked that the other one does not have."""
    texts = [fmt.printable(fmt.without_canary(r.reply.text[:TEXT])) for r in records]
    side_options: Sequence[_Options] = options if len(options) > 1 else [[], []]
    columns = zip(runs, records, diff_words(*texts), side_options, strict=True)
    return [
        _side(run, record, pieces, labels) | {"choices": choices}
        for run, record, pieces, choices in columns
    ]


def _question(pair_contexts: Sequence[Any], labels: Labels) -> str:
    """Return the question of the page; several pairs of runs have a plain title."""
    sides = {(context["pair"].base, context["pair"].arm) for context in pair_contexts}
    if len(sides) != 1:
        return labels("view.compare")
    ((base, arm),) = sides
    return labels("page.is_better", arm=arm, base=base)


def _unread_path(
    pair: Comparison, notice: Notice, finding: Finding, runs: Sequence[IndexedRun]
) -> str:
    """Return the address of the replies that a warning is about; empty if it names no run."""
    run, _, arm = str(notice.values.get("name", "")).partition(" · ")
    if not finding.reply_filter or run not in {stored.name for stored in runs}:
        return ""
    query = {"exam": ExamArm(pair.exam, arm).name, "outcome": finding.reply_filter}
    return f"/runs/{quote(run)}/samples?{urlencode(query)}"


def _options(run: IndexedRun, record: Record, labels: Labels) -> _Options:
    """Return the options in the order in which this run presented them."""
    current_question = run.questions().find_question(record)
    return (
        choice_rows(case_of(record, current_question.sample, "", labels, limit=TEXT))
        if current_question
        else []
    )


def _side(run: IndexedRun, record: Record, pieces: Any, labels: Labels) -> dict[str, Any]:
    headline_reading = record.readings[0] if record.readings else None
    query = urlencode({"of": ExamArm(record.bench, record.arm).name, "id": record.id})
    epoch = f"&epoch={record.epoch}" if record.epoch else ""
    return {
        "run": f"{run.name} · {record.arm}" if record.arm else run.name,
        "model": fmt.printable(run.manifest.model, one_line=True),
        "href": f"/runs/{quote(run.name)}/sample?{query}{epoch}",
        "outcome": headline_reading.score.outcome if headline_reading else "error",
        "read": reading_context(headline_reading, labels) if headline_reading else None,
        "pieces": pieces,
        "error": record.reply.error.kind if record.reply.error else "",
    }


def _rows(
    pair: Comparison, flips: Sequence[ChangedQuestion], runs: Sequence[IndexedRun], labels: Labels
) -> list[dict[str, Any]]:
    """Return flips as rows of a list, each with the address of both replies."""
    run_names = {run.name for run in runs}
    sides = []
    for label in (pair.base, pair.arm):
        # The name of a side is a run, an arm, or both: ``tuesday · calculator``.
        run, _, arm = label.partition(" · ")
        source = (run, arm) if run in run_names else (runs[0].name, label)
        sides += [("run", source[0]), ("of", ExamArm(pair.exam, source[1]).name)]
    rows = []
    for flip in flips:
        answer_texts = (
            fmt.shorten(fmt.without_canary(answer), _ANSWER) for answer in answers(flip, labels)
        )
        href = f"/compare/sample?{urlencode([*sides, ('id', flip.id)])}"
        rows.append(
            {
                "id": fmt.printable(flip.id, one_line=True),
                "href": href,
                "subset": flip.subset,
                "target": fmt.shorten(fmt.without_canary(flip.target), _ANSWER),
                "read": list(answer_texts),
            }
        )
    return rows
