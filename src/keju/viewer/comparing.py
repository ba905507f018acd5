"""Runs against each other: the comparison of several, and two replies to one question."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote, urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse

from keju.report import format as fmt
from keju.report.format import Labels
from keju.report.html import shown_reading
from keju.types import Record
from keju.viewer.diffing import differing
from keju.viewer.index import Part
from keju.viewer.pages import TEXT, Pages
from keju.viewer.shelf import Stored

_ANSWER: Final = 60


class Comparing:
    """Makes the pages that have more than one run on them."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages

    def sides(self, request: Request) -> HTMLResponse:
        """Two runs' replies to one question, with the words that differ."""
        pages, labels = self._pages, self._pages.labels(request)
        names = request.query_params.getlist("run")
        if len(names) != 2:
            raise HTTPException(400, labels("view.two_runs"))
        runs = [pages.stored(name, request) for name in names]
        records = [pages.record(run, request)[1] for run in runs]
        texts = [fmt.printable(fmt.without_canary(r.reply.text[:TEXT])) for r in records]
        asked = runs[0].questions().asked(records[0])
        question = fmt.printable(fmt.without_canary(asked.sample.text)) if asked else None
        return pages.page(
            request,
            "sides.html.j2",
            here="compare",
            id=fmt.printable(records[0].id, one_line=True),
            compare=f"/compare?{urlencode([('run', name) for name in names])}",
            question=question,
            target=fmt.shorten(fmt.without_canary(records[0].target), _ANSWER),
            sides=[
                _side(run, record, pieces, labels)
                for run, record, pieces in zip(runs, records, differing(*texts), strict=True)
            ],
        )


def _side(run: Stored, record: Record, pieces: Any, labels: Labels) -> dict[str, Any]:
    first = record.readings[0] if record.readings else None
    query = urlencode({"of": Part(record.bench, record.arm).name, "id": record.id})
    epoch = f"&epoch={record.epoch}" if record.epoch else ""
    return {
        "run": run.name,
        "model": fmt.printable(run.manifest.model, one_line=True),
        "href": f"/runs/{quote(run.name)}/sample?{query}{epoch}",
        "outcome": first.score.outcome if first else "error",
        "read": shown_reading(first, labels) if first else None,
        "pieces": pieces,
        "error": record.reply.error.kind if record.reply.error else "",
    }
