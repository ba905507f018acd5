"""Render the page of each address."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec
from markupsafe import Markup
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse

from keju.bounds import parse_whole_number
from keju.errors import KejuError, UsageError
from keju.messages import Language
from keju.reporting import curves
from keju.reporting import format as fmt
from keju.reporting.format import Labels
from keju.reporting.gallery import case_of
from keju.reporting.html import case_context, reading_context
from keju.reporting.pages import HTML_LANG, make_environment
from keju.results.schema import SubsetRow
from keju.runs.manifest import TOOLS_HASH
from keju.runs.run import command_name
from keju.types import ALL_OUTCOMES, Outcome, Record
from keju.viewer import filters, search, summary
from keju.viewer.damage import with_data_errors
from keju.viewer.filters import FAILED, PAGE, MatchingReplies, ReplySelection
from keju.viewer.index import ExamArm
from keju.viewer.leaderboard import leaderboards
from keju.viewer.run_index import IndexedRun, RunIndex
from keju.viewer.summary import RunSummary

LANGUAGE: Final = "keju_language"
"""The cookie that stores the language."""
TEXT: Final = 200_000
"""The maximum number of characters of a text on a page."""
EXCERPT: Final = 160
RUNS_SEARCHED: Final = 20
"""The number of other runs in which a question is searched, the newest first."""
_ANSWER: Final = 60
# Templates of the viewer's pages, e.g. ``run.html.j2``, not those of reports and figures.
_PAGE_TEMPLATE = re.compile(r"(?!report|comparison|page|figure|filters).*\.j2")
_FOLDED: Final = 2_000
"""A part of the prompt with more characters than this is folded."""


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
        self._environment.filters["breakable"] = breakable
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
        """Show all runs, grouped by exam and settings, the best first."""
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
        ranked = list(leaderboards(summaries, labels))
        folder = fmt.printable(str(self.run_index.folder), one_line=True)
        return self.page(
            request,
            "runs.html.j2",
            here="runs",
            tables=ranked,
            total=total,
            folder=folder,
            damaged=damaged,
        )

    def run(self, request: Request) -> HTMLResponse:
        """Show a run: its scores, its warnings, its subsets."""
        labels = self.labels(request)
        stored = self.stored(request.path_params["run"], request)
        summaries = summary.run_summaries(stored, labels)
        wait = "subsets" in request.query_params
        if not wait and any(run_summary.entry is None for run_summary in summaries):
            stored.wait_for_questions()
        tables = list(self._subset_tables(stored, summaries, wait=wait))
        return self.page(
            request,
            "run.html.j2",
            after=BackgroundTask(_read_ahead, stored),
            run=stored.name,
            model=fmt.printable(stored.manifest.model, one_line=True),
            created=stored.manifest.created,
            command=command_name(stored.run.folder),
            run_summaries=summaries,
            warnings=list(_warnings(stored, summaries, labels)),
            running=stored.state == "running",
            subsets=tables,
            waiting=not tables and any(g.answered for g in summaries),
            has_arms=len(stored.arms) > 1,
            curves=curves.sections(stored.results, labels) if stored.results else [],
        )

    def live(self, stored: IndexedRun, language: Language) -> str:
        """Return the part of a run's page that changes while the run is going on."""
        labels = self._labels[language]
        template = self._environment.get_template("live.html.j2")
        return template.render(t=labels, run_summaries=summary.run_summaries(stored, labels))

    def _subset_tables(
        self, stored: IndexedRun, summaries: list[RunSummary], *, wait: bool
    ) -> Iterator[Any]:
        for run_summary in summaries:
            rows: Sequence[SubsetRow] = ()
            if run_summary.entry is not None:
                rows = fmt.answered_rows(run_summary.entry.subsets)
            elif wait or stored.questions_are_loaded:
                rows = summary.subset_rows(stored, run_summary.part)
            if rows:
                base = f"/runs/{quote(stored.name)}/samples?"
                links = {
                    row.name: base
                    + ReplySelection(
                        exam=run_summary.part.name, outcome=FAILED, subset=row.name
                    ).query()
                    for row in rows
                }
                chance = any(row.chance is not None for row in rows)
                yield run_summary.part, rows, links, fmt.occurring_outcomes(rows), chance

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
        exams = [part.name for part in stored.index.parts]
        loaded = stored.questions_are_loaded
        subsets = stored.subset_names(_part(selection.exam, stored)) if loaded else []
        return self.page(
            request,
            "samples.html.j2",
            after=BackgroundTask(_read_ahead, stored),
            run=stored.name,
            s=selection,
            exams=[(name, name) for name in exams],
            outcome_options=[(FAILED, labels("view.failed"))]
            + [(o, labels(f"outcome.{o}")) for o in ALL_OUTCOMES],
            subset_options=[(name, name) for name in subsets],
            tier_options=[
                (tier, labels.get(f"tier.{tier}", labels("view.tier_none")))
                for tier in filters.TIER_CHOICES
            ],
            sort_options=[(sort, labels(f"view.sort.{sort}")) for sort in filters.SORTS[1:]],
            acts=bool(stored.arms)
            or any(TOOLS_HASH in arm for arm in (stored.manifest.arms or {}).values()),
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
            rows=[_list_row(stored, record, selection, labels) for record in records],
        )

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
        neighbour_numbers = [
            numbers[place] if position and 0 <= place < len(numbers) else -1
            for place in (position - 2, position)
        ]
        neighbours = iter(stored.index.records([n for n in neighbour_numbers if n >= 0]))
        previous, following = (
            _sample_path(stored, next(neighbours), selection) if n >= 0 else ""
            for n in neighbour_numbers
        )
        questions = stored.questions()
        current_question = questions.find_question(record)
        sample = current_question.sample if current_question else None
        case = case_of(record, sample, sample.subset if sample else "", labels, limit=TEXT)
        context = case_context(case, labels) | {"reply_folded": 0, "anchor": ""}
        context["others"] = [(r.reader, reading_context(r, labels)) for r in record.readings[1:]]
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
            prompt=_prompt(current_question) if current_question else None,
            no_prompt=questions.problem.text(labels.language)
            if questions.problem
            else labels("question_missing"),
            as_recorded=current_question is not None and current_question.as_recorded,
            facts=list(_facts(record, labels)),
            others=list(_other_runs(self.run_index, stored, record)),
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


def _read_ahead(stored: IndexedRun) -> None:
    """Load the data that the next page may need; errors are reported by the next page."""
    with suppress(KejuError):
        with_data_errors(stored.details)()


def breakable(name: str) -> Markup:
    """Allow line breaks after each part of a name: ``demo_``, ``sorting_``, ``3``."""
    return Markup("_<wbr>").join(name.split("_"))


def _part(name: str, stored: IndexedRun) -> ExamArm | None:
    """Return the exam and arm with this name, or the only one if the name is empty."""
    parts = stored.index.parts
    if not name:
        return parts[0] if len(parts) == 1 else None
    return next((part for part in parts if part.name == name), None)


def _sample_path(stored: IndexedRun, record: Record, selection: ReplySelection) -> str:
    """Return the address of a reply inside a selection."""
    parameters: dict[str, Any] = {"of": ExamArm(record.bench, record.arm).name, "id": record.id}
    if record.epoch:
        parameters["epoch"] = record.epoch
    query = urlencode(parameters) + "&" + selection.query()
    return f"/runs/{quote(stored.name)}/sample?{query.rstrip('&')}"


def _list_row(
    stored: IndexedRun, record: Record, selection: ReplySelection, labels: Labels
) -> dict[str, Any]:
    """Return a reply as a row of the list."""
    headline_reading = record.readings[0] if record.readings else None
    subset = ""
    if stored.questions_are_loaded:
        questions = stored.questions()
        place = questions.place(record)
        names = questions.subsets.get(record.bench, [])
        subset = names[place.subset - 1] if place and place.subset else ""
    outcomes = {reading.score.outcome for reading in record.readings}
    value = headline_reading.answer.value if headline_reading else None
    error = record.reply.error
    text = record.reply.text
    if error is not None:
        kind = labels.get(f"fault.{error.kind}", error.kind)
        text = labels("named", name=kind, text=error.message)
    marks = [labels("epoch", n=record.epoch + 1)] if record.epoch else []
    marks += [labels.arm(record.arm)] if record.arm else []
    return {
        "href": _sample_path(stored, record, selection),
        "id": fmt.printable(record.id, one_line=True),
        "marks": marks,
        "subset": subset,
        "outcome": headline_reading.score.outcome if headline_reading else "error",
        "differ": len(outcomes) > 1,
        "read": fmt.shorten(fmt.without_canary(value or ""), _ANSWER),
        "target": fmt.shorten(fmt.without_canary(record.target), _ANSWER),
        "excerpt": _end_excerpt(fmt.without_canary(text)),
        "seconds": record.reply.seconds,
        "tokens": record.reply.usage.output,
    }


def _end_excerpt(text: str) -> str:
    """Return the end of a text on one line, where the answer usually is."""
    text = fmt.printable(text[-4 * EXCERPT :], one_line=True)
    return text if len(text) <= EXCERPT else "…" + text[1 - EXCERPT :]


def _other_runs(
    run_index: RunIndex, stored: IndexedRun, record: Record
) -> Iterator[tuple[str, Outcome, str]]:
    """Yield the newest other runs with the same question: name, outcome, address."""
    part = ExamArm(record.bench, record.arm)
    searched_count = 0
    for other_run in run_index:
        exams = {exam.name for exam in other_run.manifest.benchmarks}
        if other_run is stored or record.bench not in exams or searched_count == RUNS_SEARCHED:
            continue
        searched_count += 1
        other_run.index.refresh()
        number = other_run.index.find(part, record.id, record.epoch)
        if number >= 0:
            query = urlencode(
                [
                    ("run", stored.name),
                    ("run", other_run.name),
                    ("of", part.name),
                    ("id", record.id),
                ]
                + ([("epoch", record.epoch)] if record.epoch else [])
            )
            outcome = other_run.index.kinds[other_run.index.kind[number]].outcome
            yield other_run.name, outcome, f"/compare/sample?{query}"


def _prompt(current_question: Any) -> list[tuple[str, str, bool]]:
    """Return the turns of a prompt with their roles; long turns except the last one are folded."""
    exam, prompt = (
        current_question.job.exam,
        current_question.job.exam.render(current_question.sample),
    )
    if exam.protocol.form == "completion":
        return [("text", fmt.printable(fmt.without_canary(prompt.text)), False)]
    turns = [(m.role, fmt.printable(fmt.without_canary(m.content))) for m in prompt.cued_messages]
    last_place = len(turns) - 1
    return [
        (role, text, place != last_place and len(text) > _FOLDED)
        for place, (role, text) in enumerate(turns)
    ]


def _facts(record: Record, labels: Labels) -> Iterator[tuple[str, str]]:
    """Yield the usage and the identifiers of a reply."""
    reply = record.reply
    values: Mapping[str, Any] = {
        "finish": reply.finish,
        "seconds": f"{reply.seconds:.2f}",
        "tokens_in": fmt.count(reply.usage.input),
        "tokens_out": fmt.count(reply.usage.output),
        "attempts": 1 + len(record.faults),
        "model": reply.model,
        "origin": record.origin,
        "hash": record.hash,
    }
    for name, value in values.items():
        if value:
            yield labels(f"view.fact.{name}"), fmt.printable(str(value), one_line=True)


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
