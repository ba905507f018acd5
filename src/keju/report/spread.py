"""What replies took, as histograms: in figures that stand alone and in the report of a run.

The scale ends behind the 99th percentile; what lies beyond stands in the last column.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from keju.report.format import Labels, count
from keju.stats.intervals import quantile
from keju.types import Record, Sample

BINS = 40
"""Columns of a histogram."""

Kind = Literal["latency", "tokens"]
KINDS: tuple[Kind, ...] = ("latency", "tokens")
Answers = Iterable[tuple[Sample | None, Record]]


class Spread(NamedTuple):
    """A histogram; heights and places are shares of the highest column and of the scale."""

    heights: list[float]
    places: list[float]
    """Of the median and of the 95th percentile."""
    ticks: list[tuple[float, str]]
    n: int
    middle: float
    high: float
    most: float

    def words(self, labels: Labels) -> str:
        """The same in a line."""
        amounts = {"middle": amount(self.middle), "high": amount(self.high)}
        return labels("plot.spread", n=count(self.n), **amounts, most=amount(self.most))


def scale_for(*several: Sequence[float]) -> float:
    """Where a scale ends that fits several sets of sorted values."""
    return _round(max(_quantile(values, 0.99) for values in several))


def spread_of(values: Sequence[float], top: float) -> Spread:
    """The histogram of sorted values on a scale that ends at `top`."""
    counts = [0] * BINS
    for value in values:
        counts[min(BINS - 1, int(value / top * BINS))] += 1
    highest = max(counts)
    middle, high = _quantile(values, 0.5), _quantile(values, 0.95)
    ticks = [(tick / 4, amount(top * tick / 4)) for tick in range(5)]
    ticks[-1] = (1.0, f"≥ {amount(top)}" if values[-1] > top else amount(top))
    return Spread(
        [own / highest for own in counts],
        [min(1.0, value / top) for value in (middle, high)],
        ticks,
        len(values),
        middle,
        high,
        values[-1],
    )


def amount(value: float) -> str:
    """A time or a count in as many digits as it is worth."""
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def _round(value: float) -> float:
    """The next of 1, 2, 4, 10, 20, 40 ...: a quarter of it is short to write."""
    if value <= 0:
        return 1.0
    unit = 10.0 ** math.floor(math.log10(value))
    return next(step * unit for step in (1, 2, 4, 10) if step * unit >= value * (1 - 1e-9))


def _quantile(values: Sequence[float], at: float) -> float:
    found = quantile(values, at)
    assert found is not None
    return found


class Taken:
    """What the replies of each exam and arm took, noted while they pass by."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, str], dict[Kind, array[float]]] = {}

    def noted(self, answers: Answers) -> Iterator[tuple[Sample | None, Record]]:
        """The same answers."""
        for sample, record in answers:
            reply = record.reply
            if reply.error is None:
                key = (record.bench, record.arm)
                own = self._values.get(key)
                if own is None:
                    own = self._values[key] = {kind: array("f") for kind in KINDS}
                own["latency"].append(reply.seconds)
                own["tokens"].append(reply.usage.output)
            yield sample, record

    def spreads(self, exam: str, arm: str) -> dict[Kind, Spread]:
        """The histograms of an exam; none of what no reply tells."""
        found = {}
        for kind, values in self._values.get((exam, arm), {}).items():
            if any(values):
                ordered = sorted(values)
                found[kind] = spread_of(ordered, scale_for(ordered))
        return found
