"""Runs against each other: the comparison of several, and two replies to one question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote, urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse

from keju.messages import Language
from keju.report import format as fmt
from keju.report.format import Labels
from keju.report.html import shown_reading
from keju.results.compare import Compared, compare
from keju.results.schema import Comparison, Flip
from keju.types import Record
from keju.viewer.diffing import differing
from keju.viewer.index import Part
from keju.viewer.pages import TEXT, Pages
from keju.viewer.shelf import Stored

MOST_RUNS: Final = 6
"""Runs that are compared on one page."""
FLIPS: Final = 200
"""Questions each way that a page lists."""
_KEPT: Final = 16
_ANSWER: Final = 60


class Comparing:
    """Makes the pages that have more than one run on them."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._made: dict[tuple[object, ...], Compared] = {}

    def compared(self, request: Request) -> HTMLResponse:
        """Several runs, question by question; fewer than two can be chosen from."""
        pages, labels = self._pages, self._pages.labels(request)
        pages.shelf.refresh()
        names = list(dict.fromkeys(request.query_params.getlist("run")))[:MOST_RUNS]
        runs = [pages.stored(name, request) for name in names if name]
        found = self._found(runs) if len(runs) > 1 else None
        shown = [_shown(pair, labels) for pair in found.comparisons] if found else []
        return pages.page(
            request,
            "compare.html.j2",
            here="compare",
            runs=[stored.name for stored in pages.shelf],
            chosen=[stored.name for stored in runs],
            pairs=shown,
            notices=[n.text(labels.language) for n in found.notices] if found else [],
        )

    def _found(self, runs: Sequence[Stored]) -> Compared:
        """The comparison, kept until one of the runs grows."""
        key = tuple((run.name, run.index.generation, run.index.end) for run in runs)
        if key not in self._made:
            if len(self._made) >= _KEPT:
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


def _shown(pair: Comparison, labels: Labels) -> dict[str, Any]:
    """A comparison, made ready for the template."""
    language: Language = labels.language
    flips = pair.flips
    gained = [flip for flip in flips if flip.arm > flip.base]
    lost = [flip for flip in flips if flip.arm < flip.base]
    return {
        "pair": pair,
        "conclusion": pair.conclusion.text(language),
        "notices": [notice.text(language) for notice in pair.notices],
        "difference": _points(pair.difference),
        "interval": _ends(pair.ci95),
        "p": _p(pair.p),
        "p_holm": _p(pair.p_holm),
        "subsets": [(row, _points(row.difference), _p(row.p_adjusted)) for row in pair.subsets],
        "flips": [
            ("view.gained", len(gained), _rows(pair, gained)),
            ("view.lost", len(lost), _rows(pair, lost)),
        ],
        "unlike": [(own.field, str(own.first), str(own.second)) for own in pair.unlike],
    }


def _rows(pair: Comparison, flips: Sequence[Flip]) -> list[dict[str, Any]]:
    base, base_arm = _named(pair.base)
    other, arm = _named(pair.arm)
    rows = []
    for flip in flips[:FLIPS]:
        href = ""
        if base != other and base_arm == arm:
            of = Part(pair.exam, arm).name
            query = [("run", base), ("run", other), ("of", of), ("id", flip.id)]
            href = f"/compare/sample?{urlencode(query)}"
        rows.append(
            {
                "id": fmt.printable(flip.id, one_line=True),
                "href": href,
                "subset": flip.subset,
                "target": fmt.shorten(fmt.without_canary(flip.target), _ANSWER),
                "base": fmt.shorten(fmt.without_canary(flip.base_answer or ""), _ANSWER),
                "arm": fmt.shorten(fmt.without_canary(flip.arm_answer or ""), _ANSWER),
            }
        )
    return rows


def _named(label: str) -> tuple[str, str]:
    """The run and the arm that a comparison's name is of: ``tuesday · calculator``."""
    run, _, arm = label.partition(" · ")
    return run, arm


def _points(value: float | None) -> str:
    return fmt.UNKNOWN if value is None else f"{100 * value:+.2f}"


def _ends(ends: Sequence[float] | None) -> str:
    return fmt.UNKNOWN if ends is None else f"{100 * ends[0]:+.2f} … {100 * ends[1]:+.2f}"


def _p(value: float | None) -> str:
    return fmt.UNKNOWN if value is None else f"{value:.3g}"
