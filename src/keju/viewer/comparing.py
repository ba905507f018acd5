"""Runs against each other: the comparison of several, and two replies to one question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote, urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse

from keju.report import format as fmt
from keju.report.diffing import differing
from keju.report.format import Labels
from keju.report.gallery import case_of
from keju.report.html import shown_choices, shown_reading
from keju.report.pairs import answers, gained, lost, shown_pairs
from keju.results.compare import Compared, compare
from keju.results.schema import Comparison, Flip
from keju.types import Record
from keju.viewer.index import Part
from keju.viewer.pages import TEXT, Pages
from keju.viewer.shelf import Stored

MOST_RUNS: Final = 6
"""Runs that are compared on one page."""
FLIPS: Final = 200
"""Questions each way that a page lists."""
_KEPT: Final = 16
_LONG: Final = 100_000
"""Replies above which a comparison is the only one that is kept."""
_ANSWER: Final = 60


class Comparing:
    """Makes the pages that have more than one run on them."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._made: dict[tuple[object, ...], Compared] = {}

    def compared(self, request: Request) -> HTMLResponse:
        """Several runs, or the arms of one, question by question; of fewer, what to choose from."""
        pages, labels = self._pages, self._pages.labels(request)
        pages.shelf.refresh()
        names = list(dict.fromkeys(request.query_params.getlist("run")))[:MOST_RUNS]
        runs = [pages.stored(name, request) for name in names if name]
        comparable = len(runs) > 1 or any(len(run.arms) > 1 for run in runs)
        found = self._found(runs) if comparable else None
        shown = shown_pairs(found.comparisons if found else (), labels)
        for each in shown["pairs"]:
            pair: Comparison = each["pair"]
            each["flips"] = [
                (title, many, _rows(pair, first(pair.flips, FLIPS), runs, labels))
                for title, many, first in (
                    ("view.gained", pair.arm_only, gained),
                    ("view.lost", pair.base_only, lost),
                )
            ]
        return pages.page(
            request,
            "compare.html.j2",
            here="compare",
            runs=[stored.name for stored in pages.shelf],
            chosen=[stored.name for stored in runs],
            choose=not comparable,
            **shown,
            notices=[n.text(labels.language) for n in found.notices] if found else [],
        )

    def _found(self, runs: Sequence[Stored]) -> Compared:
        """The comparison, kept until one of the runs grows."""
        key = tuple((run.name, run.index.generation, run.index.end) for run in runs)
        if key not in self._made:
            if len(self._made) >= _KEPT or sum(run.total for run in runs) > _LONG:
                self._made.clear()
            folders = [run.run.folder for run in runs]
            self._made[key] = compare(*folders, data_dir=self._pages.shelf.data_dir)
        return self._made[key]

    def sides(self, request: Request) -> HTMLResponse:
        """Two runs' replies to one question, with the words that differ."""
        pages, labels = self._pages, self._pages.labels(request)
        names = request.query_params.getlist("run")
        if len(names) != 2:
            raise HTTPException(400, labels("view.two_runs"))
        runs = [pages.stored(name, request) for name in names]
        # Two arms have a part each: ``of=bbh/plain&of=bbh/calculator``.
        parts = (request.query_params.getlist("of") or [""]) * 2
        records = [
            pages.record(run, request, part)[1] for run, part in zip(runs, parts, strict=False)
        ]
        texts = [fmt.printable(fmt.without_canary(r.reply.text[:TEXT])) for r in records]
        asked = runs[0].questions().asked(records[0])
        question = fmt.printable(fmt.without_canary(asked.sample.text)) if asked else None
        options = [_options(run, record, labels) for run, record in zip(runs, records, strict=True)]
        alike = [own[:3] for own in options[0]] == [own[:3] for own in options[1]]
        return pages.page(
            request,
            "sides.html.j2",
            here="compare",
            id=fmt.printable(records[0].id, one_line=True),
            compare=f"/compare?{urlencode([('run', name) for name in dict.fromkeys(names)])}",
            question=question,
            # What a side read is told beside its reply.
            choices=[(*own[:3], False) for own in options[0]] if alike else [],
            target=fmt.shorten(fmt.without_canary(records[0].target), _ANSWER),
            sides=[
                _side(run, record, pieces, labels) | {"choices": [] if alike else own}
                for run, record, pieces, own in zip(
                    runs, records, differing(*texts), options, strict=True
                )
            ],
        )


def _options(run: Stored, record: Record, labels: Labels) -> list[tuple[str, str, bool, bool]]:
    """The options in the order in which this run put them."""
    asked = run.questions().asked(record)
    return shown_choices(case_of(record, asked.sample, "", labels, limit=TEXT)) if asked else []


def _side(run: Stored, record: Record, pieces: Any, labels: Labels) -> dict[str, Any]:
    first = record.readings[0] if record.readings else None
    query = urlencode({"of": Part(record.bench, record.arm).name, "id": record.id})
    epoch = f"&epoch={record.epoch}" if record.epoch else ""
    return {
        "run": f"{run.name} · {record.arm}" if record.arm else run.name,
        "model": fmt.printable(run.manifest.model, one_line=True),
        "href": f"/runs/{quote(run.name)}/sample?{query}{epoch}",
        "outcome": first.score.outcome if first else "error",
        "read": shown_reading(first, labels) if first else None,
        "pieces": pieces,
        "error": record.reply.error.kind if record.reply.error else "",
    }


def _rows(
    pair: Comparison, flips: Sequence[Flip], runs: Sequence[Stored], labels: Labels
) -> list[dict[str, Any]]:
    """Flips as rows of a list, each with the address of both replies."""
    named = {run.name for run in runs}
    sides = []
    for label in (pair.base, pair.arm):
        # A comparison's name is that of the run, of an arm, or both: ``tuesday · calculator``.
        run, _, arm = label.partition(" · ")
        own = (run, arm) if run in named else (runs[0].name, label)
        sides += [("run", own[0]), ("of", Part(pair.exam, own[1]).name)]
    rows = []
    for flip in flips:
        read = (fmt.shorten(fmt.without_canary(own), _ANSWER) for own in answers(flip, labels))
        href = f"/compare/sample?{urlencode([*sides, ('id', flip.id)])}"
        rows.append(
            {
                "id": fmt.printable(flip.id, one_line=True),
                "href": href,
                "subset": flip.subset,
                "target": fmt.shorten(fmt.without_canary(flip.target), _ANSWER),
                "read": list(read),
            }
        )
    return rows
