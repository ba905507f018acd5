"""What each address shows."""

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
from keju.report import curves
from keju.report import format as fmt
from keju.report.format import Labels
from keju.report.gallery import case_of
from keju.report.html import shown_case, shown_reading
from keju.report.pages import HTML_LANG, make_environment
from keju.results.schema import Row
from keju.runs.manifest import TOOLS_HASH
from keju.runs.run import command_name
from keju.types import ALL_OUTCOMES, Outcome, Record
from keju.viewer import filters, search, summary
from keju.viewer.damage import in_words
from keju.viewer.filters import FAILED, PAGE, Found, Selection
from keju.viewer.index import Part
from keju.viewer.leaderboard import leaderboards
from keju.viewer.shelf import Shelf, Stored
from keju.viewer.summary import Glance

LANGUAGE: Final = "keju_language"
"""The cookie that keeps the language."""
TEXT: Final = 200_000
"""Characters of a text that a page shows."""
EXCERPT: Final = 160
LOOKED_AT: Final = 20
"""Other runs in which a question is looked for, the newest first."""
_ANSWER: Final = 60
# Templates that pages are made of, e.g. ``run.html.j2``, not those of reports and figures.
_OF_PAGES = re.compile(r"(?!report|comparison|page|figure|filters).*\.j2")
_FOLDED: Final = 2_000
"""Characters of a part of the prompt above which it is opened by a click."""


HasLeft = Callable[[], bool]
"""Whether the browser that asked has closed its connection."""


def _stays() -> bool:
    return False


class Pages:
    """Makes the pages of a shelf of runs."""

    def __init__(self, shelf: Shelf, language: Language | None = None) -> None:
        self.shelf = shelf
        self._language = language
        self._environment = make_environment("keju.viewer")
        self._environment.filters["query"] = urlencode
        self._environment.filters["breakable"] = breakable
        for name in filter(_OF_PAGES.fullmatch, self._environment.list_templates()):
            self._environment.get_template(name)  # compiled before the first visit
        self._labels: dict[Language, Labels] = {"en": Labels("en"), "zh": Labels("zh")}

    # --- what all pages share

    def language(self, request: Request) -> Language:
        """As the address says, then the cookie, then who started the viewer, then the browser."""
        here = (request.query_params.get("lang"), request.cookies.get(LANGUAGE))
        for wanted in (*here, self._language, request.headers.get("accept-language", "")[:2]):
            if wanted in ("en", "zh"):
                return "zh" if wanted == "zh" else "en"
        return "en"

    def labels(self, request: Request) -> Labels:
        """The words of the language that is asked for."""
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
        """A template with what it needs and what all pages need; `after` is done behind it."""
        language = self.language(request)
        other: Language = "zh" if language == "en" else "en"
        query = [(k, v) for k, v in request.query_params.multi_items() if k != "lang"]
        html = self._environment.get_template(template).render(
            t=self._labels[language],
            html_lang=HTML_LANG[language],
            other_lang=HTML_LANG[other],
            other_language=f"?{urlencode([*query, ('lang', other)])}",
            here=context.pop("here", ""),
            **context,
        )
        response = HTMLResponse(html.encode("utf-8", "replace"), status, background=after)
        if "lang" in request.query_params:
            response.set_cookie(LANGUAGE, language, samesite="strict", httponly=True)
        return response

    def problem(self, request: Request, status: int, problem: str) -> HTMLResponse:
        """A page that says what is wrong."""
        return self.page(request, "problem.html.j2", status=status, code=status, problem=problem)

    def stored(self, name: str, request: Request) -> Stored:
        """The run of an address, up to date; 404 where there is none of this name."""
        stored = self.shelf.find(name)
        if stored is None:
            raise HTTPException(404, self.labels(request)("view.no_run", run=name))
        stored.index.refresh()
        return stored

    # --- pages

    def runs(self, request: Request) -> HTMLResponse:
        """All runs, by exam and by what their numbers share, the best first."""
        labels = self.labels(request)
        self.shelf.refresh()
        shown: list[Glance] = []
        total = 0
        glances = in_words(summary.glances)
        damaged: list[str] = []
        for stored in self.shelf:
            total += 1
            try:
                shown += glances(stored, labels)
            except KejuError:
                damaged.append(stored.name)
        ranked = list(leaderboards(shown, labels))
        folder = fmt.printable(str(self.shelf.folder), one_line=True)
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
        """A run: its numbers, its warnings, its subsets."""
        labels = self.labels(request)
        stored = self.stored(request.path_params["run"], request)
        shown = summary.glances(stored, labels)
        wait = "subsets" in request.query_params
        if not wait and any(glance.entry is None for glance in shown):
            stored.wait_for_questions()
        tables = list(self._subsets(stored, shown, wait=wait))
        return self.page(
            request,
            "run.html.j2",
            after=BackgroundTask(_read_ahead, stored),
            run=stored.name,
            model=fmt.printable(stored.manifest.model, one_line=True),
            created=stored.manifest.created,
            command=command_name(stored.run.folder),
            glances=shown,
            warnings=list(_warnings(stored, shown, labels)),
            running=stored.state == "running",
            subsets=tables,
            waiting=not tables and any(g.done for g in shown),
            has_arms=len(stored.arms) > 1,
            curves=curves.sections(stored.results, labels) if stored.results else [],
        )

    def live(self, stored: Stored, language: Language) -> str:
        """The part of a run's page that changes while the run goes on."""
        labels = self._labels[language]
        template = self._environment.get_template("live.html.j2")
        return template.render(t=labels, glances=summary.glances(stored, labels))

    def _subsets(self, stored: Stored, shown: list[Glance], *, wait: bool) -> Iterator[Any]:
        for glance in shown:
            rows: Sequence[Row] = ()
            if glance.entry is not None:
                rows = fmt.answered(glance.entry.subsets)
            elif wait or stored.questions_are_loaded:
                rows = summary.subset_rows(stored, glance.part)
            if rows:
                base = f"/runs/{quote(stored.name)}/samples?"
                links = {
                    row.name: base
                    + Selection(exam=glance.part.name, outcome=FAILED, subset=row.name).query()
                    for row in rows
                }
                chance = any(row.chance is not None for row in rows)
                yield glance.part, rows, links, fmt.occurring_outcomes(rows), chance

    def samples(self, request: Request, has_left: HasLeft = _stays) -> HTMLResponse:
        """The replies of a run that a selection takes, a page of them."""
        labels = self.labels(request)
        stored = self.stored(request.path_params["run"], request)
        chosen = Selection.of(request.query_params)
        stored.wait_for_questions()
        problem = ""
        try:
            found, ordered = self._found(stored, chosen, has_left)
        except UsageError as error:
            if not chosen.where:
                raise
            found, ordered, problem = Found([], {}), True, error.text(labels.language)
        page = min(chosen.page, found.pages)
        chosen = msgspec.structs.replace(chosen, page=page)
        numbers = found.numbers[PAGE * (page - 1) : PAGE * page]
        records = stored.index.records(numbers)
        exams = [part.name for part in stored.index.parts]
        loaded = stored.questions_are_loaded
        subsets = stored.subset_names(_part(chosen.exam, stored)) if loaded else []
        return self.page(
            request,
            "samples.html.j2",
            after=BackgroundTask(_read_ahead, stored),
            run=stored.name,
            s=chosen,
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
            outcomes=found.outcomes,
            can_query=search.can_query(),
            fields=list(search.FIELDS),
            problem=problem,
            not_applied=labels("list_separator").join(Selection.unknown(request.query_params)),
            known=labels("list_separator").join(Selection.__struct_fields__),
            total=len(found.numbers),
            pages=found.pages,
            ordered=ordered,
            rows=[_list_row(stored, record, chosen, labels) for record in records],
        )

    def _found(self, stored: Stored, chosen: Selection, has_left: HasLeft) -> tuple[Found, bool]:
        """The replies of a selection in its order, and whether that is the order of the exam.

        The exam's data is waited for only where the selection needs it. The last selection of a run
        is kept, since people turn its pages.
        """
        index, loaded = stored.index, stored.questions_are_loaded
        key = (index.generation, index.end, loaded, chosen.query())
        last, found = stored.chosen
        if last != key:
            found = self._select(stored, chosen, has_left)
            stored.chosen = (key, found)
        selected: tuple[Found, bool] = found
        return selected

    def _select(self, stored: Stored, chosen: Selection, has_left: HasLeft) -> tuple[Found, bool]:
        def subsets() -> Sequence[str]:
            return stored.subset_names(_part(chosen.exam, stored))

        def holding(text: str) -> bytearray:
            return search.holding(stored.index, text)

        def matching(where: str) -> bytearray:
            return search.matching(
                stored.index, stored.details(), stored.questions().subsets, where, has_left
            )

        found = filters.find(chosen, stored.index, stored.details, subsets, holding, matching)
        details = None
        if chosen.needs_details or stored.questions_are_loaded:
            details = stored.details()
        numbers = filters.in_order(chosen, stored.index, found.numbers, details)
        known = details is not None and bool(details.places)
        return msgspec.structs.replace(found, numbers=numbers), known

    def sample(self, request: Request, has_left: HasLeft = _stays) -> HTMLResponse:
        """One reply: the question, the reply, what was read, the prompt as it was sent."""
        labels = self.labels(request)
        stored = self.stored(request.path_params["run"], request)
        chosen = Selection.of(request.query_params)
        number, record = self.record(stored, request)
        found, _ = self._found(stored, chosen, has_left)
        numbers = found.numbers
        position = numbers.index(number) + 1 if number in numbers else 0
        around = [
            numbers[place] if position and 0 <= place < len(numbers) else -1
            for place in (position - 2, position)
        ]
        near = iter(stored.index.records([n for n in around if n >= 0]))
        previous, following = (
            _sample_path(stored, next(near), chosen) if n >= 0 else "" for n in around
        )
        questions = stored.questions()
        asked = questions.asked(record)
        sample = asked.sample if asked else None
        case = case_of(record, sample, sample.subset if sample else "", labels, limit=TEXT)
        shown = shown_case(case, labels) | {"reply_folded": 0, "anchor": ""}
        shown["others"] = [(r.reader, shown_reading(r, labels)) for r in record.readings[1:]]
        return self.page(
            request,
            "sample.html.j2",
            run=stored.name,
            s=chosen,
            page=max(1, -(-position // PAGE)),
            a=shown,
            previous=previous,
            following=following,
            position=position,
            total=len(numbers),
            prompt=_prompt(asked) if asked else None,
            no_prompt=questions.problem.text(labels.language)
            if questions.problem
            else labels("question_missing"),
            as_recorded=asked is not None and asked.as_recorded,
            facts=list(_facts(record, labels)),
            others=list(_others(self.shelf, stored, record)),
        )

    def record(self, stored: Stored, request: Request, of: str = "") -> tuple[int, Record]:
        """The reply that an address names, in the part `of` the run; 404 where there is none."""
        query = request.query_params
        part = _part(of or query.get("of", "") or query.get("exam", ""), stored)
        epoch = query.get("epoch", "0")
        number = -1
        if part is not None and (repeat := parse_whole_number(epoch)) is not None:
            number = stored.index.find(part, query.get("id", ""), repeat)
        if number < 0:
            text = self.labels(request)("view.no_reply", id=query.get("id", ""))
            raise HTTPException(404, text)
        return number, stored.index.records([number])[0]


def _read_ahead(stored: Stored) -> None:
    """Read what the next page may need; the next page says what is wrong with it."""
    with suppress(KejuError):
        in_words(stored.details)()


def breakable(name: str) -> Markup:
    """A name that lines may break after each of its parts: ``bbh_``, ``snarks_``, ``3``."""
    return Markup("_<wbr>").join(name.split("_"))


def _part(name: str, stored: Stored) -> Part | None:
    """The exam and arm of this name; the only one where none is named."""
    parts = stored.index.parts
    if not name:
        return parts[0] if len(parts) == 1 else None
    return next((part for part in parts if part.name == name), None)


def _sample_path(stored: Stored, record: Record, chosen: Selection) -> str:
    """The address of a reply inside a selection."""
    own: dict[str, Any] = {"of": Part(record.bench, record.arm).name, "id": record.id}
    if record.epoch:
        own["epoch"] = record.epoch
    query = urlencode(own) + "&" + chosen.query()
    return f"/runs/{quote(stored.name)}/sample?{query.rstrip('&')}"


def _list_row(stored: Stored, record: Record, chosen: Selection, labels: Labels) -> dict[str, Any]:
    """A reply as a row of the list."""
    first = record.readings[0] if record.readings else None
    subset = ""
    if stored.questions_are_loaded:
        questions = stored.questions()
        place = questions.place(record)
        names = questions.subsets.get(record.bench, [])
        subset = names[place.subset - 1] if place and place.subset else ""
    outcomes = {reading.score.outcome for reading in record.readings}
    value = first.answer.value if first else None
    error = record.reply.error
    text = record.reply.text
    if error is not None:
        kind = labels.get(f"fault.{error.kind}", error.kind)
        text = labels("named", name=kind, text=error.message)
    marks = [labels("epoch", n=record.epoch + 1)] if record.epoch else []
    marks += [labels.arm(record.arm)] if record.arm else []
    return {
        "href": _sample_path(stored, record, chosen),
        "id": fmt.printable(record.id, one_line=True),
        "marks": marks,
        "subset": subset,
        "outcome": first.score.outcome if first else "error",
        "differ": len(outcomes) > 1,
        "read": fmt.shorten(fmt.without_canary(value or ""), _ANSWER),
        "target": fmt.shorten(fmt.without_canary(record.target), _ANSWER),
        "excerpt": _end_of(fmt.without_canary(text)),
        "seconds": record.reply.seconds,
        "tokens": record.reply.usage.output,
    }


def _end_of(text: str) -> str:
    """The end of a text on one line: the answer usually stands there."""
    text = fmt.printable(text[-4 * EXCERPT :], one_line=True)
    return text if len(text) <= EXCERPT else "…" + text[1 - EXCERPT :]


def _others(shelf: Shelf, stored: Stored, record: Record) -> Iterator[tuple[str, Outcome, str]]:
    """The newest other runs that were asked the same question: name, outcome, address."""
    part = Part(record.bench, record.arm)
    looked_at = 0
    for other in shelf:
        exams = {exam.name for exam in other.manifest.benchmarks}
        if other is stored or record.bench not in exams or looked_at == LOOKED_AT:
            continue
        looked_at += 1
        other.index.refresh()
        number = other.index.find(part, record.id, record.epoch)
        if number >= 0:
            query = urlencode(
                [("run", stored.name), ("run", other.name), ("of", part.name), ("id", record.id)]
                + ([("epoch", record.epoch)] if record.epoch else [])
            )
            outcome = other.index.kinds[other.index.kind[number]].outcome
            yield other.name, outcome, f"/compare/sample?{query}"


def _prompt(asked: Any) -> list[tuple[str, str, bool]]:
    """The turns of a prompt with their roles; all but the last are folded where they are long."""
    exam, prompt = asked.job.exam, asked.job.exam.render(asked.sample)
    if exam.protocol.form == "completion":
        return [("text", fmt.printable(fmt.without_canary(prompt.text)), False)]
    turns = [(m.role, fmt.printable(fmt.without_canary(m.content))) for m in prompt.cued_messages]
    last = len(turns) - 1
    return [
        (role, text, place != last and len(text) > _FOLDED)
        for place, (role, text) in enumerate(turns)
    ]


def _facts(record: Record, labels: Labels) -> Iterator[tuple[str, str]]:
    """What a reply took, and what tells it from others."""
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


def _warnings(stored: Stored, shown: list[Glance], labels: Labels) -> Iterator[str]:
    """What a reader of the page must know about the whole run; exams have their own warnings."""
    results = stored.results
    if results is not None and (ended := fmt.ended_words(results, labels)):
        yield ended
    for glance in shown:
        if glance.entry and (apart := summary.differing_counts(stored, glance.entry)):
            yield labels("view.read_otherwise", n=fmt.count(apart), exam=glance.part.name)
    if stored.index.damaged:
        yield labels("view.damaged", n=fmt.count(stored.index.damaged))
