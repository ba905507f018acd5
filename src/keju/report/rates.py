"""How fast a run goes and when it ends, told from what has come back."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from keju.engine.display import Progress

RATE_WINDOW = 10.0
"""Seconds over which rates are smoothed."""
ETA_WINDOW = 60.0
FEWEST_REPLIES = 2
"""Replies that tell a speed, where fewer are in flight at once."""
LATE_ROUNDS, LATE_SECONDS = 3, 5.0
"""An answer is overdue after so many times what one takes on average, and so many seconds."""


class Outlook(NamedTuple):
    """The time to the end of a run."""

    seconds: float
    at_least: bool
    """Whether it surely takes longer: the next answer is overdue."""


Counted = Callable[[Progress], int]


def _done(point: Progress) -> int:
    return point.done


def _returned(point: Progress) -> int:
    """Attempts that are over; a cluster counts no others."""
    return point.requests if point.actors else point.requests - point.in_flight


COUNTED: tuple[Counted, ...] = (_done, _returned)


def _came(first: Progress, last: Progress, counted: Counted) -> int:
    """How many came back between two points."""
    return counted(last) - counted(first)


def _tells(first: Progress, last: Progress, counted: Counted) -> bool:
    """Whether as many came back between two points as tell a speed."""
    return _came(first, last, counted) >= max(FEWEST_REPLIES, last.in_flight)


class Rates:
    """Speeds of what has come back, from the snapshots alone.

    They are taken over the last seconds, or over as long as it takes for a round of replies to
    come back: as many as are in flight. Before the first round nothing is known, since short
    replies come first.
    """

    def __init__(self) -> None:
        self._points: deque[Progress] = deque()

    def add(self, snapshot: Progress) -> None:
        """Enter a snapshot and forget what no span needs any more."""
        points = self._points
        if len(points) > 1 and all(_came(points[-2], snapshot, each) == 0 for each in COUNTED):
            points.pop()  # of a time in which nothing came its two ends are enough
        points.append(snapshot)
        while len(points) > 2 and points[1].elapsed <= snapshot.elapsed - ETA_WINDOW:
            if not all(_tells(points[1], snapshot, each) for each in COUNTED):
                break
            points.popleft()

    def _since(self, window: float, counted: Counted) -> tuple[Progress, Progress] | None:
        """The newest point, and the newest one that is at least `window` seconds and a round of
        replies older; the oldest where none is as much as `window` seconds older."""
        if not self._points:
            return None
        last = first = self._points[-1]
        for point in reversed(self._points):
            first = point
            if _tells(first, last, counted) and first.elapsed <= last.elapsed - window:
                break
        enough = _tells(first, last, counted)
        return (first, last) if enough and last.elapsed > first.elapsed else None

    def speeds(self) -> tuple[float, float] | None:
        """Requests and tokens a second; None while nothing is known."""
        span = self._since(RATE_WINDOW, _returned)
        if span is None:
            return None
        first, last = span
        tokens = last.input_tokens + last.output_tokens - first.input_tokens - first.output_tokens
        seconds = last.elapsed - first.elapsed
        return _came(first, last, _returned) / seconds, tokens / seconds

    def pace(self) -> float | None:
        """Answers a second; None while nothing is known."""
        span = self._since(RATE_WINDOW, _done)
        if span is None:
            return None
        first, last = span
        return (last.done - first.done) / (last.elapsed - first.elapsed)

    def of_actors(self) -> tuple[float, float] | None:
        """Answers a second of the slowest and of the fastest actor; None while nothing is known."""
        span = self._since(RATE_WINDOW, _done)
        if span is None or len(span[0].actors) != len(span[1].actors):
            return None
        seconds = span[1].elapsed - span[0].elapsed
        pairs = zip(span[0].actors, span[1].actors, strict=True)
        rates = [(now.answered - then.answered) / seconds for then, now in pairs if now.node]
        return (min(rates), max(rates)) if rates else None

    def outlook(self, total: int) -> Outlook | None:
        """The time to the end at the pace of the answers that came; None while nothing is known.

        It runs down until the next answer is due, and stands still from then on: that one answer
        takes longer tells nothing of the others. It says nothing any more once that answer has
        taken longer than all the others were to take.
        """
        span = self._since(ETA_WINDOW, _done)
        if span is None:
            return None
        first, last = span
        latest = next(point for point in self._points if point.done == last.done)
        if latest.elapsed <= first.elapsed:
            return None
        each = (latest.elapsed - first.elapsed) / (last.done - first.done)
        left, waited = (total - last.done) * each, last.elapsed - latest.elapsed
        late = waited > max(LATE_ROUNDS * each, LATE_SECONDS)
        left -= min(waited, each)
        return None if late and waited > left else Outlook(max(0.0, left), late)

    def remaining(self, total: int) -> float | None:
        """Seconds to the end; None while nothing is known."""
        outlook = self.outlook(total)
        return None if outlook is None else outlook.seconds
