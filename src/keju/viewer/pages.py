"""Render the page of each address."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final, cast
from urllib.parse import quote, urlencode

import msgspec
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse

from keju.bounds import parse_whole_number
from keju.errors import KejuError, UsageError
from keju.messages import Language
from keju.reporting import format as fmt
from keju.reporting import sections
from keju.reporting.answers import FindReplies, ask_about, page_question, placebo_arms
from keju.reporting.cases import case_context, reading_context
from keju.reporting.findings import READERS_DIFFER
from keju.reporting.format import Labels
from keju.reporting.gallery import case_of
from keju.reporting.pages import HTML_LANG, make_environment
from keju.reporting.provenance import main_settings
from keju.reporting.row_tables import RowTable, subset_table
from keju.reporting.titles import title_of
from keju.results.schema import SubsetRow
from keju.runs.manifest import TOOLS_HASH
from keju.runs.run import command_name
from keju.types import Outcome, Record
from keju.viewer import filters, search, summary
from keju.viewer.damage import with_data_errors
from keju.viewer.filters import FAILED, PAGE, MatchingReplies, ReplySelection
from keju.viewer.home import home_table
from keju.viewer.index import ExamArm
from keju.viewer.live import live_progress
from keju.viewer.replies import list_row, other_runs, prompt_turns, reply_facts, sample_path
from keju.viewer.run_index import IndexedRun, RunIndex
from keju.viewer.summary import RunSummary

LANGUAGE: Final = "keju_language"
"""The cookie that stores the language."""
TEXT: Final = 200_000
"""The maximum number of characters of a text on a page."""
# Templates of the viewer's pages, e.g. ``run.html.j2``, not those of reports and figures.
_PAGE_TEMPLATE = re.compile(r"(?!report|comparison|page|figure|filters).*\.j2")


HasLeft = Callable[[], bool]
"""Returns whether the browser has closed its connection."""


def _never_left() -> bool:
    return False


class ViewerPages:
    """Renders the pages of a folder of runs."""

    def __init__(self, run_index: RunIndex, language: Language | None = None) -> None:
        self.run_index = run_index
        self._language = language
        self._environment = make_environment("keju.viewer")
        self._environment.filters["query"] = urlencode
        for name in filter(_PAGE_TEMPLATE.fullmatch, self._environment.list_templates()):
            self._environment.get_template(name)  # compiled before the first visit
        self._labels: dict[Language, Labels] = {"en": Labels("en"), "zh": Labels("zh")}

    # --- what all pages share

    def language(self, request: Request) -> Language:
        """Return the language: from the address, the cookie, the command line, or the browser."""
        requested_languages = (request.query_params.get("lang"), request.cookies.get(LANGUAGE))
        for candidate in (
            *requested_languages,
            self._language,
            request.headers.get("accept-language", "")[:2],
        ):
            if candidate in ("en", "zh"):
                return "zh" if candidate == "zh" else "en"
        return "en"

    def labels(self, request: Request) -> Labels:
        """Return the labels in the language of the request."""
        return self._labels[self.language(request)]

    def page(
        self,
        request: Request,
        template: str,
        *,
        status: int = 200,
        after: BackgroundTask | None = None,
        **context: Any,
    ) -> HTMLResponse:
        """Render a template with the shared context; `after` runs when the page has been sent."""
        language = self.language(request)
        alternative: Language = "zh" if language == "en" else "en"
        query = [(k, v) for k, v in request.query_params.multi_items() if k != "lang"]
        html = self._environment.get_template(template).render(
            t=self._labels[language],
            html_lang=HTML_LANG[language],
            other_lang=HTML_LANG[alternative],
            other_language=f"?{urlencode([*query, ('lang', alternative)])}",
            here=context.pop("here", ""),
            **context,
        )
        response = HTMLResponse(html.encode("utf-8", "replace"), status, background=after)
        if "lang" in request.query_params:
            response.set_cookie(LANGUAGE, language, samesite="strict", httponly=True)
        return response

    def problem(self, request: Request, status: int, problem: str) -> HTMLResponse:
        """Return a page that describes a problem."""
        return self.page(request, "problem.html.j2", status=status, code=status, problem=problem)

    def stored(self, name: str, request: Request) -> IndexedRun:
        """Return the run of an address, up to date; respond with 404 if it does not exist."""
        stored = self.run_index.find(name)
        if stored is None:
            raise HTTPException(404, self.labels(request)("view.no_run", run=name))
        stored.index.refresh()
        return stored

    # --- pages

    def runs(self, request: Request) -> HTMLResponse:
        """Show all runs, one row each, with a column for each exam."""
        labels = self.labels(request)
        self.run_index.refresh()
        summaries: list[RunSummary] = []
        total = 0
        run_summaries = with_data_errors(summary.run_summaries)
        damaged: list[str] = []
        for stored in self.run_index:
            total += 1
            try:
                summaries += run_summaries(stored, labels)
            except KejuError:
                damaged.append(stored.name)
        query = request.query_params.get("q", "")
        return self.page(
            request,
            "runs.html.j2",
            here="runs",
            table=home_table(summaries, labels, query),
            query=query,
            total=total,
            folder=fmt.printable(str(self.run_index.folder), one_line=True),
            damaged=damaged,
        )

    def run(self, request: Request) -> HTMLResponse:
        """Show a run: the question, its scores, its warnings, its subsets."""
        labels = self.labels(request)
        stored = self.stored(request.path_params["run"], request)
        summaries = summary.run_summaries(stored, labels)
        wait = "subsets" in request.query_params
        if not wait and any(run_summary.entry is None for run_summary in summaries):
            stored.wait_for_questions()
        tables = list(self._subset_tables(stored, summaries, labels, wait=wait))
        return self.page(
            request,
            "run.html.j2",
            after=BackgroundTask(_read_ahead, stored),
            run=stored.name,
            model=fmt.printable(stored.manifest.model, one_line=True),
            question=_question(stored, labels),
            created=stored.manifest.created,
            state=stored.state,
            command=command_name(stored.run.folder),
            warnings=list(_warnings(stored, summaries, labels)),
            notes=[text for g in summaries if g.entry for text in labels.warnings(g.entry)],
            running=stored.state == "running",
            subsets=tables,
            waiting=not tables and any(g.answered for g in summaries),
            has_arms=len(stored.arms) > 1,
            **_result_sections(stored, labels),
            **self._live_context(stored, summaries, labels),
        )

    def live(self, stored: IndexedRun, language: Language) -> str:
        """Return the part of a run's page that changes while the run is going on."""
        labels = self._labels[language]
        template = self._environment.get_template("live.html.j2")
        summaries = summary.run_summaries(stored, labels)
        context = self._live_context(stored, summaries, labels)
        return template.render(t=labels, run=stored.name, **context)

    def _live_context(
        self, stored: IndexedRun, summaries: Sequence[RunSummary], labels: Labels
    ) -> dict[str, Any]:
        """Return the scores of a run and, while it is going on, its speed and latest replies."""
        progress = live_progress(stored) if stored.state == "running" else None
        selection = ReplySelection()
        return {
            "exam_answers": [
                (f"exam-{number}", summary.answer_of(g, labels, _reply_finder(stored)))
                for number, g in enumerate(summaries)
            ],
            "total_replies": sum(g.answered for g in summaries),
            "progress": progress,
            "time_left": labels.duration(progress.seconds_left) if progress else "",
            "silent": labels.duration(progress.silent) if progress and progress.silent else "",
            "latest": [list_row(stored, record, selection, labels) for record in progress.latest]
            if progress
            else [],
        }

    def _subset_tables(
        self, stored: IndexedRun, summaries: list[RunSummary], labels: Labels, *, wait: bool
    ) -> Iterator[tuple[str, str, RowTable]]:
        """Yield the anchor, the name and the table of each exam that has subsets."""
        for number, run_summary in enumerate(summaries):
            part = run_summary.part
            rows: Sequence[SubsetRow] = ()
            if run_summary.entry is not None:
                rows = fmt.answered_rows(run_summary.entry.subsets)
            elif wait or stored.questions_are_loaded:
                rows = summary.subset_rows(stored, part)
            if rows:
                links = {row.name: _failures_path(stored, part, row.name) for row in rows}
                yield (
                    f"exam-{number}",
                    title_of(part.exam, part.arm),
                    subset_table(rows, labels, links=links),
                )

    def samples(self, request: Request, has_left: HasLeft = _never_left) -> HTMLResponse:
        """Show one page of the replies that a selection accepts."""
        labels = self.labels(request)
        stored = self.stored(request.path_params["run"], request)
        selection = ReplySelection.of(request.query_params)
        stored.wait_for_questions()
        problem = ""
        try:
            matches, ordered = self._cached_matches(stored, selection, has_left)
        except UsageError as error:
            if not selection.where:
                raise
            matches, ordered, problem = MatchingReplies([], {}), True, error.text(labels.language)
        page = min(selection.page, matches.pages)
        selection = msgspec.structs.replace(selection, page=page)
        numbers = matches.numbers[PAGE * (page - 1) : PAGE * page]
        records = stored.index.records(numbers)
        return self.page(
            request,
            "samples.html.j2",
            after=BackgroundTask(_read_ahead, stored),
            run=stored.name,
            s=selection,
            **self._filter_options(stored, selection, labels),
            outcomes=matches.outcomes,
            can_query=search.can_query(),
            fields=list(search.FIELDS),
            problem=problem,
            not_applied=labels("list_separator").join(
                ReplySelection.unknown_parameters(request.query_params)
            ),
            known=labels("list_separator").join(ReplySelection.__struct_fields__),
            total=len(matches.numbers),
            pages=matches.pages,
            ordered=ordered,
            rows=[list_row(stored, record, selection, labels) for record in records],
        )

    def _filter_options(
        self, stored: IndexedRun, selection: ReplySelection, labels: Labels
    ) -> dict[str, Any]:
        """Return the values that the filters offer."""
        loaded = stored.questions_are_loaded
        subsets = stored.subset_names(_part(selection.exam, stored)) if loaded else []
        arms = (stored.manifest.arms or {}).values()
        return {
            "exams": [(part.name, part.name) for part in stored.index.parts],
            "subset_options": [(name, name) for name in subsets],
            "tier_options": [
                (tier, labels.get(f"tier.{tier}", labels("view.tier_none")))
                for tier in filters.TIER_CHOICES
            ],
            "sort_options": [(sort, labels(f"view.sort.{sort}")) for sort in filters.SORTS[1:]],
            "acts": bool(stored.arms) or any(TOOLS_HASH in arm for arm in arms),
        }

    def _cached_matches(
        self, stored: IndexedRun, selection: ReplySelection, has_left: HasLeft
    ) -> tuple[MatchingReplies, bool]:
        """Return the replies of a selection in order, and whether this is the order of the exam.

        The exam's data is loaded only if the selection needs it. The last selection of a run is
        cached for its next page.
        """
        index, loaded = stored.index, stored.questions_are_loaded
        key = (index.generation, index.end, loaded, selection.query())
        cached_key, matches = stored.last_selection
        if cached_key != key:
            matches = self._select(stored, selection, has_left)
            stored.last_selection = (key, matches)
        selected: tuple[MatchingReplies, bool] = matches
        return selected

    def _select(
        self, stored: IndexedRun, selection: ReplySelection, has_left: HasLeft
    ) -> tuple[MatchingReplies, bool]:
        def subsets() -> Sequence[str]:
            return stored.subset_names(_part(selection.exam, stored))

        def find_text(text: str) -> bytearray:
            return search.find_text(stored.index, text)

        def evaluate_condition(where: str) -> bytearray:
            return search.evaluate_condition(
                stored.index, stored.details(), stored.questions().subsets, where, has_left
            )

        matches = filters.find(
            selection, stored.index, stored.details, subsets, find_text, evaluate_condition
        )
        details = None
        if selection.needs_details or stored.questions_are_loaded:
            details = stored.details()
        numbers = filters.sort_replies(selection, stored.index, matches.numbers, details)
        is_exam_order = details is not None and bool(details.places)
        return msgspec.structs.replace(matches, numbers=numbers), is_exam_order

    def sample(self, request: Request, has_left: HasLeft = _never_left) -> HTMLResponse:
        """Show one reply: the question, the reply, the answer, and the prompt as it was sent."""
        labels = self.labels(request)
        stored = self.stored(request.path_params["run"], request)
        selection = ReplySelection.of(request.query_params)
        number, record = self.record(stored, request)
        matches, _ = self._cached_matches(stored, selection, has_left)
        numbers = matches.numbers
        position = numbers.index(number) + 1 if number in numbers else 0
        previous, following = _neighbour_paths(stored, selection, numbers, position)
        questions = stored.questions()
        current_question = questions.find_question(record)
        sample = current_question.sample if current_question else None
        case = case_of(record, sample, sample.subset if sample else "", labels, limit=TEXT)
        context = case_context(case, labels) | {"reply_folded": 0, "anchor": ""}
        context["others"] = [(r.reader, reading_context(r, labels)) for r in record.readings[1:]]
        problem = questions.problem
        return self.page(
            request,
            "sample.html.j2",
            run=stored.name,
            s=selection,
            page=max(1, -(-position // PAGE)),
            a=context,
            previous=previous,
            following=following,
            position=position,
            total=len(numbers),
            prompt=prompt_turns(current_question) if current_question else None,
            no_prompt=problem.text(labels.language) if problem else labels("question_missing"),
            as_recorded=current_question is not None and current_question.as_recorded,
            facts=list(reply_facts(record, labels)),
            others=list(other_runs(self.run_index, stored, record)),
        )

    def record(
        self, stored: IndexedRun, request: Request, part_name: str = ""
    ) -> tuple[int, Record]:
        """Return the reply of an address; respond with 404 if it is missing."""
        query = request.query_params
        part = _part(part_name or query.get("of", "") or query.get("exam", ""), stored)
        epoch = query.get("epoch", "0")
        number = -1
        if part is not None and (repeat := parse_whole_number(epoch)) is not None:
            number = stored.index.find(part, query.get("id", ""), repeat)
        if number < 0:
            text = self.labels(request)("view.no_reply", id=query.get("id", ""))
            raise HTTPException(404, text)
        return number, stored.index.records([number])[0]


def _neighbour_paths(
    stored: IndexedRun, selection: ReplySelection, numbers: Sequence[int], position: int
) -> list[str]:
    """Return the addresses of the replies before and after a position; empty where none is."""
    places = (position - 2, position) if position else ()
    neighbour_numbers = [numbers[n] if 0 <= n < len(numbers) else -1 for n in places]
    neighbours = iter(stored.index.records([n for n in neighbour_numbers if n >= 0]))
    paths = [
        sample_path(stored, next(neighbours), selection) if n >= 0 else ""
        for n in neighbour_numbers
    ]
    return paths or ["", ""]


def _read_ahead(stored: IndexedRun) -> None:
    """Load the data that the next page may need; errors are reported by the next page."""
    with suppress(KejuError):
        with_data_errors(stored.details)()


def _question(stored: IndexedRun, labels: Labels) -> str:
    """Return the question that a run answers."""
    manifest, results = stored.manifest, stored.results
    if results is not None and results.benchmarks:
        return page_question(results, placebo_arms(manifest.config), labels)
    exams = [title_of(exam.name) for exam in manifest.benchmarks]
    return ask_about(manifest.model, exams, labels)


def _result_sections(stored: IndexedRun, labels: Labels) -> dict[str, Any]:
    """Return the parts of a run's page that need its results."""
    results = stored.results
    if results is None:
        return {"curves": [], "arms": None, "settings": []}
    return {
        "curves": sections.curves_of(results, labels),
        "arms": sections.arms_of(results, labels),
        "settings": list(main_settings(stored.manifest, results, labels)),
    }


def _reply_finder(stored: IndexedRun) -> FindReplies:
    """Return the function that gives the address of replies with an outcome."""

    def find(exam: str, arm: str, reply_filter: str) -> str:
        name = ExamArm(exam, arm).name
        if reply_filter == READERS_DIFFER:
            return _replies_path(stored, ReplySelection(exam=name, readers="differ"))
        return _replies_path(stored, ReplySelection(exam=name, outcome=cast(Outcome, reply_filter)))

    return find


def _replies_path(stored: IndexedRun, selection: ReplySelection) -> str:
    return f"/runs/{quote(stored.name)}/samples?{selection.query()}"


def _failures_path(stored: IndexedRun, part: ExamArm, subset: str) -> str:
    """Return the address of the replies of a subset that are not correct."""
    selection = ReplySelection(exam=part.name, outcome=FAILED, subset=subset)
    return _replies_path(stored, selection)


def _part(name: str, stored: IndexedRun) -> ExamArm | None:
    """Return the exam and arm with this name, or the only one if the name is empty."""
    parts = stored.index.parts
    if not name:
        return parts[0] if len(parts) == 1 else None
    return next((part for part in parts if part.name == name), None)


def _warnings(stored: IndexedRun, summaries: list[RunSummary], labels: Labels) -> Iterator[str]:
    """Yield warnings about the whole run; each exam has separate warnings."""
    results = stored.results
    if results is not None and (ended := fmt.describe_incomplete(results, labels)):
        yield ended
    for run_summary in summaries:
        if run_summary.entry and (
            differing_count := summary.count_differences(stored, run_summary.entry)
        ):
            yield labels(
                "view.read_otherwise", n=fmt.count(differing_count), exam=run_summary.part.name
            )
    if stored.index.damaged:
        yield labels("view.damaged", n=fmt.count(stored.index.damaged))
