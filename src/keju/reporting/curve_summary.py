"""The short answer about difficulty: the curve and what it shows."""

from __future__ import annotations

from keju.reporting import curves
from keju.reporting.brief import BriefColumn, BriefScreen
from keju.reporting.format import percent
from keju.results.schema import Results


def print_curves(screen: BriefScreen, results: Results) -> None:
    """Print accuracy against difficulty for each exam, and the conclusions."""
    labels = screen.labels
    is_ascii = not can_encode("".join(curves.UNICODE_MARKS), screen.file)
    for curve in results.curves:
        screen.put(labels("brief.curve", exam=curve.exam, model=results.model), style="bold")
        screen.put()
        rows = [
            [
                f"{point.difficulty:g}",
                percent(point.accuracy, 1),
                curves.draw_strip(point, is_ascii=is_ascii),
            ]
            for point in curve.points
        ]
        columns = [
            BriefColumn(title=labels("curve.difficulty")),
            BriefColumn(title=labels("curve.accuracy")),
            BriefColumn("left", title=labels("curve.strip"), spare=1),
        ]
        screen.rows(columns, rows)
        screen.put()
        for line in curves.curve_lines(curve, labels):
            is_named = line.startswith(curve.exam)
            screen.sentence(line if is_named else line[:1].upper() + line[1:], "bold")


def can_encode(characters: str, file: object) -> bool:
    """Return whether a stream can write these characters."""
    try:
        characters.encode(getattr(file, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True
