"""Estimate the speed of a run and its end from the replies so far."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from keju.progress.display import Progress

RATE_WINDOW = 10.0
"""Seconds over which rates are averaged."""
ETA_WINDOW = 60.0
FEWEST_REPLIES = 2
"""The number of replies that a speed needs if fewer requests are in flight."""
LATE_ROUNDS, LATE_SECONDS = 3, 5.0
"""An answer is late after three times the average time and at least five seconds."""


class TimeLeft(NamedTuple):
    """The time until the end of a run."""

    seconds: float
    at_least: bool
    """Whether this is only a lower bound because the next answer is late."""


Counted = Callable[[Progress], int]


def _answer_count(point: Progress) -> int:
    return point.done


def _returned_count(point: Progress) -> int:
    """The number of finished attempts; a cluster counts only finished ones."""
    return point.requests if point.actors else point.requests - point.in_flight


COUNTED: tuple[Counted, ...] = (_answer_count, _returned_count)


def _count_between(span_start: Progress, span_end: Progress, counter: Counted) -> int:
    """Return the number of replies between two snapshots."""
    return counter(span_end) - counter(span_start)


def _is_measurable(span_start: Progress, span_end: Progress, counter: Counted) -> bool:
    """Return whether enough replies came between two snapshots to measure a speed."""
    return _count_between(span_start, span_end, counter) >= max(FEWEST_REPLIES, span_end.in_flight)


class ProgressThroughput:
    """Measure speeds from the snapshots of a run.

    Speeds are averaged over the last seconds, or over the time in which one round of replies came
    back. A round has as many replies as requests are in flight. Before the first round, no speed is
    known, because short replies come first.
    """

    def __init__(self) -> None:
        self._points: deque[Progress] = deque()

    def add(self, snapshot: Progress) -> None:
        """Add a snapshot and drop snapshots that no measurement needs."""
        points = self._points
        if len(points) > 1 and all(
            _count_between(points[-2], snapshot, counter) == 0 for counter in COUNTED
        ):
            points.pop()  # if no reply came in between, the two ends are enough
        points.append(snapshot)
        while len(points) > 2 and points[1].elapsed <= snapshot.elapsed - ETA_WINDOW:
            if not all(_is_measurable(points[1], snapshot, counter) for counter in COUNTED):
                break
            points.popleft()

    def _measured_span(self, window: float, counter: Counted) -> tuple[Progress, Progress] | None:
        """Return the newest snapshot and the start of the span to measure.

        The start is the newest snapshot that is at least `window` seconds and one round of replies
        older. If there is none, it is the oldest snapshot.
        """
        if not self._points:
            return None
        newest = span_start = self._points[-1]
        for point in reversed(self._points):
            span_start = point
            if (
                _is_measurable(span_start, newest, counter)
                and span_start.elapsed <= newest.elapsed - window
            ):
                break
        is_measurable = _is_measurable(span_start, newest, counter)
        return (
            (span_start, newest) if is_measurable and newest.elapsed > span_start.elapsed else None
        )

    def speeds(self) -> tuple[float, float] | None:
        """Return requests and tokens per second, or None while they are unknown."""
        span = self._measured_span(RATE_WINDOW, _returned_count)
        if span is None:
            return None
        span_start, span_end = span
        tokens = (
            span_end.input_tokens
            + span_end.output_tokens
            - span_start.input_tokens
            - span_start.output_tokens
        )
        seconds = span_end.elapsed - span_start.elapsed
        return _count_between(span_start, span_end, _returned_count) / seconds, tokens / seconds

    def pace(self) -> float | None:
        """Return answers per second, or None while it is unknown."""
        span = self._measured_span(RATE_WINDOW, _answer_count)
        if span is None:
            return None
        span_start, span_end = span
        return (span_end.done - span_start.done) / (span_end.elapsed - span_start.elapsed)

    def actor_rates(self) -> tuple[float, float] | None:
        """Return answers per second of the slowest and the fastest actor, or None while unknown."""
        span = self._measured_span(RATE_WINDOW, _answer_count)
        if span is None or len(span[0].actors) != len(span[1].actors):
            return None
        seconds = span[1].elapsed - span[0].elapsed
        pairs = zip(span[0].actors, span[1].actors, strict=True)
        rates = [
            (later.answered - earlier.answered) / seconds for earlier, later in pairs if later.node
        ]
        return (min(rates), max(rates)) if rates else None

    def outlook(self, total: int) -> TimeLeft | None:
        """Return the time until the end at the present speed, or None while it is unknown.

        The time decreases until the next answer is due. Then it stays the same, because one late
        answer says nothing about the other answers. It becomes None when this answer has taken
        longer than all the remaining answers were expected to take.
        """
        span = self._measured_span(ETA_WINDOW, _answer_count)
        if span is None:
            return None
        span_start, span_end = span
        latest = next(point for point in self._points if point.done == span_end.done)
        if latest.elapsed <= span_start.elapsed:
            return None
        seconds_per_answer = (latest.elapsed - span_start.elapsed) / (
            span_end.done - span_start.done
        )
        seconds_left, waited_seconds = (
            (total - span_end.done) * seconds_per_answer,
            span_end.elapsed - latest.elapsed,
        )
        is_late = waited_seconds > max(LATE_ROUNDS * seconds_per_answer, LATE_SECONDS)
        seconds_left -= min(waited_seconds, seconds_per_answer)
        return (
            None
            if is_late and waited_seconds > seconds_left
            else TimeLeft(max(0.0, seconds_left), is_late)
        )

    def seconds_remaining(self, total: int) -> float | None:
        """Return the seconds until the end, or None while they are unknown."""
        outlook = self.outlook(total)
        return None if outlook is None else outlook.seconds
