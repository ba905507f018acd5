"""Histograms of the time and the tokens of replies, for figures and for the report of a run.

The scale ends just above the 99th percentile; larger values are in the last column.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from keju.reporting.format import Labels, count
from keju.stats.intervals import quantile
from keju.types import Record, Sample

BINS = 40
"""The number of columns of a histogram."""

Kind = Literal["latency", "tokens"]
KINDS: tuple[Kind, ...] = ("latency", "tokens")
Answers = Iterable[tuple[Sample | None, Record]]


class Histogram(NamedTuple):
    """A histogram; heights and places are shares of the highest column and of the scale."""

    heights: list[float]
    places: list[float]
    """The places of the median and of the 95th percentile."""
    ticks: list[tuple[float, str]]
    n: int
    median: float
    percentile_95: float
    largest: float

    def describe(self, labels: Labels) -> str:
        """Describe the histogram in one line."""
        amounts = {"middle": format_amount(self.median), "high": format_amount(self.percentile_95)}
        return labels("plot.spread", n=count(self.n), **amounts, most=format_amount(self.largest))


def scale_for(*value_sets: Sequence[float]) -> float:
    """Return the end of a scale for several sorted sequences of values."""
    return _round_up(max(_quantile(values, 0.99) for values in value_sets))


def make_histogram(values: Sequence[float], top: float) -> Histogram:
    """Return the histogram of sorted values on a scale that ends at `top`."""
    counts = [0] * BINS
    for value in values:
        counts[min(BINS - 1, int(value / top * BINS))] += 1
    highest = max(counts)
    median, percentile_95 = _quantile(values, 0.5), _quantile(values, 0.95)
    ticks = [(tick / 4, format_amount(top * tick / 4)) for tick in range(5)]
    ticks[-1] = (1.0, f"≥ {format_amount(top)}" if values[-1] > top else format_amount(top))
    return Histogram(
        [column_count / highest for column_count in counts],
        [min(1.0, value / top) for value in (median, percentile_95)],
        ticks,
        len(values),
        median,
        percentile_95,
        values[-1],
    )


def format_amount(value: float) -> str:
    """Format a time or a count with a reasonable number of digits."""
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def _round_up(value: float) -> float:
    """Round up to 1, 2, 4, 10, 20, 40 ..., so that a quarter of it is short to write."""
    if value <= 0:
        return 1.0
    unit = 10.0 ** math.floor(math.log10(value))
    return next(step * unit for step in (1, 2, 4, 10) if step * unit >= value * (1 - 1e-9))


def _quantile(values: Sequence[float], at: float) -> float:
    result = quantile(values, at)
    assert result is not None
    return result


class ReplyCosts:
    """Collects the time and the tokens of the replies of each exam and arm in one pass."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, str], dict[Kind, array[float]]] = {}

    def observe(self, answers: Answers) -> Iterator[tuple[Sample | None, Record]]:
        """Yield the same answers and collect their values."""
        for sample, record in answers:
            reply = record.reply
            if reply.error is None:
                key = (record.bench, record.arm)
                values_by_kind = self._values.get(key)
                if values_by_kind is None:
                    values_by_kind = self._values[key] = {kind: array("f") for kind in KINDS}
                values_by_kind["latency"].append(reply.seconds)
                values_by_kind["tokens"].append(reply.usage.output)
            yield sample, record

    def spreads(self, exam: str, arm: str) -> dict[Kind, Histogram]:
        """Return the histograms of an exam, without those that have only zeros."""
        histograms = {}
        for kind, values in self._values.get((exam, arm), {}).items():
            if any(values):
                ordered = sorted(values)
                histograms[kind] = make_histogram(ordered, scale_for(ordered))
        return histograms
