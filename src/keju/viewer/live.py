"""How fast a run is going on: its rate, the time left, a sparkline, and the latest replies."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from keju.types import Record
from keju.viewer.run_index import IndexedRun

SAMPLED: Final = 120
"""The number of replies whose times are read."""
BARS: Final = 40
WINDOW: Final = 60.0
"""Seconds over which the rate is measured."""
LATEST: Final = 5
SILENT: Final = 30.0
"""Seconds without a reply after which the page says so."""


class LiveProgress(NamedTuple):
    """The progress of a run that is going on."""

    answered: int
    total: int
    rate: float | None
    """Replies per second over the last minute."""
    seconds_left: float | None
    silent: float | None
    """Seconds since the last reply, if there were none for a while."""
    bars: list[float]
    """The rate from the beginning to now, as shares of the highest rate."""
    latest: list[Record]

    @property
    def share(self) -> float:
        """The share of the replies that exist."""
        return self.answered / self.total if self.total else 0.0


def live_progress(stored: IndexedRun) -> LiveProgress:
    """Return the progress of a run from the times of its replies."""
    size, total = len(stored.index), max(stored.total, len(stored.index))
    points = _sample_times(stored, size)
    rate = _rate(points, time.time())
    latest = stored.index.records(range(size - 1, max(-1, size - 1 - LATEST), -1))
    silence = time.time() - points[-1][0] if points else 0.0
    return LiveProgress(
        answered=size,
        total=total,
        rate=rate,
        seconds_left=(total - size) / rate if rate else None,
        silent=silence if silence > SILENT else None,
        bars=_bars(points),
        latest=latest,
    )


def _sample_times(stored: IndexedRun, size: int) -> list[tuple[float, int]]:
    """Return times and how many replies there were then, for evenly spaced replies."""
    if not size:
        return []
    step = max(1, size // SAMPLED)
    numbers = sorted({*range(0, size, step), size - 1})
    records = stored.index.records(numbers)
    points, latest_time = [], 0.0
    for number, record in zip(numbers, records, strict=True):
        latest_time = max(latest_time, record.at)  # a retried question keeps its place
        points.append((latest_time, number + 1))
    return [point for point in points if point[0] > 0]


def _rate(points: Sequence[tuple[float, int]], now: float) -> float | None:
    """Return the replies per second over the last minute, or over a shorter run."""
    if len(points) < 2:
        return None
    start = now - WINDOW
    first_count = _count_at(points, start) if points[0][0] < start else points[0][1]
    seconds = now - max(start, points[0][0])
    replies = points[-1][1] - first_count
    return replies / seconds if replies > 0 and seconds > 0 else None


def _count_at(points: Sequence[tuple[float, int]], moment: float) -> float:
    """Return how many replies there were at a time, between two points on a line."""
    place = bisect_right(points, (moment, 1 << 62))
    if place == 0:
        return 0.0
    if place == len(points):
        return float(points[-1][1])
    (start, first_count), (end, last_count) = points[place - 1], points[place]
    share = (moment - start) / (end - start) if end > start else 0.0
    return first_count + share * (last_count - first_count)


def _bars(points: Sequence[tuple[float, int]]) -> list[float]:
    """Return the rates in equal parts of the time as shares of the highest one."""
    if len(points) < 3 or points[-1][0] <= points[0][0]:
        return []
    start, length = points[0][0], points[-1][0] - points[0][0]
    counts = [_count_at(points, start + length * place / BARS) for place in range(BARS + 1)]
    rates = [after - before for before, after in pairwise(counts)]
    highest = max(rates)
    return [max(0.0, rate) / highest for rate in rates] if highest > 0 else []
