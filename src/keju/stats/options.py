"""Tests of whether a model prefers an option for its letter rather than its content."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

from keju.stats.intervals import chi_squared_survival, floor_p

_NEGLIGIBLE = 1e-9
"""Share of the largest variance below which a variance is rounding noise."""


class ChiSquared(NamedTuple):
    """Pearson's test of counts against expected counts."""

    statistic: float
    df: int
    p: float


def option_bias(predicted: Sequence[float], gold: Sequence[float]) -> ChiSquared:
    """Test the counts of predicted letters against the gold letters.

    The gold counts are scaled to the number of predictions. Letters that are neither predicted nor
    gold are left out. Raises ValueError for a letter that is never gold.
    """
    pairs = [(p, g) for p, g in zip(predicted, gold, strict=True) if p or g]
    if len(pairs) < 2 or any(g <= 0 for _, g in pairs) or sum(predicted) <= 0:
        raise ValueError("option bias needs predictions and at least two letters that are gold")
    scale = math.fsum(predicted) / math.fsum(gold)
    statistic = math.fsum((p - g * scale) ** 2 / (g * scale) for p, g in pairs)
    df = len(pairs) - 1
    return ChiSquared(statistic, df, chi_squared_survival(statistic, df))


class PlaceBias(NamedTuple):
    """How often each place was chosen, and how often to expect it.

    The expected count of a place is the number of times that the chosen options were at that place.
    """

    choices: list[int]
    expected: list[float]
    statistic: float
    df: int
    p: float


def place_bias(questions: Iterable[Sequence[Sequence[int]]], places: int) -> PlaceBias:
    """Test whether options are chosen for their place.

    Each question was asked in several orders of its options. Entry [i][t] of its square table is
    the place, in order t, of the option that was chosen in order i. If only the content matters,
    any choice could have been made in any of the question's orders. This gives the expected counts
    of the places and their exact covariance (Hoeffding 1951). The quadratic form of the differences
    is chi-squared. Questions with the same answer in all orders add nothing, so a model that knows
    the answers is never flagged.
    """
    choices, expected = [0] * places, [0.0] * places
    covariance = [[0.0] * places for _ in range(places)]
    for table in questions:
        total = _counts(chain.from_iterable(table), places)
        for turn, row in enumerate(table):
            choices[row[turn]] += 1
        for place in range(places):
            expected[place] += total[place] / len(table)
        if len(table) > 1 and any(row != table[0] for row in table):
            _add_covariance(covariance, table, total)
    deviations = [c - e for c, e in zip(choices, expected, strict=True)]
    statistic, df = _quadratic_form(covariance, deviations)
    p = floor_p(chi_squared_survival(statistic, df)) if df else 1.0
    return PlaceBias(choices, expected, statistic, df, p)


def _counts(choices: Iterable[int], places: int) -> list[int]:
    counts = Counter(choices)
    return [counts[place] for place in range(places)]


def _add_covariance(
    covariance: list[list[float]], table: Sequence[Sequence[int]], total: Sequence[int]
) -> None:
    """Add the covariance of one question's counts if its choices were assigned to its orders at
    random."""
    size, places = len(table), len(total)
    scale = 1 / (size - 1)
    for place, count in enumerate(total):
        covariance[place][place] += scale * count
    weighted = [(_counts(row, places), -1 / size) for row in table]
    weighted += [(_counts(column, places), -1 / size) for column in zip(*table, strict=True)]
    weighted.append((list(total), 1 / size**2))
    for counts, weight in weighted:
        nonzero = [(place, count) for place, count in enumerate(counts) if count]
        for row_place, row_count in nonzero:
            for column_place, column_count in nonzero:
                covariance[row_place][column_place] += scale * weight * row_count * column_count


def _quadratic_form(matrix: list[list[float]], vector: list[float]) -> tuple[float, int]:
    """Return the quadratic form of the inverse covariance with `vector`, and its rank."""
    remaining_rows, value = set(range(len(vector))), 0.0
    negligible = _NEGLIGIBLE * max((matrix[i][i] for i in remaining_rows), default=0.0)
    while remaining_rows:
        pivot = max(remaining_rows, key=lambda i: matrix[i][i])
        spread = matrix[pivot][pivot]
        if spread <= negligible:
            break
        remaining_rows.remove(pivot)
        value += vector[pivot] ** 2 / spread
        for i in remaining_rows:
            factor = matrix[i][pivot] / spread
            vector[i] -= factor * vector[pivot]
            for k in remaining_rows:
                matrix[i][k] -= factor * matrix[pivot][k]
    return value, len(vector) - len(remaining_rows)


def recall_spread(recalls: Sequence[float]) -> float:
    """Return RStd: the population standard deviation of the recall of each letter (Zheng et al.
    2024)."""
    mean = math.fsum(recalls) / len(recalls)
    return math.sqrt(math.fsum((r - mean) ** 2 for r in recalls) / len(recalls))
